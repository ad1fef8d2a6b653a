/* Scalar dot products of the types with blocks of 256, activations ACT_Q8_K (spec gguf-and-quants 3.2, more-quants 3;
 * K types sum a block as one integer, docs/numerics.md). */
#include "quant/quant_dots_scalar.h"
#include "quant/quant_grid_blocks.h"

float quant_dot_q2_k(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *yd = act_d(ACT_Q8_K, x, k);
    const int16_t *bsums = act_bsums(x, k);
    float acc = 0;
    for (int b = 0; b < k / 256; b++, w += Q2_K_BYTES, q += 256, bsums += 16) {
        const float d = f16_to_f32(load_u16(w + Q2_K_D)), dmin = f16_to_f32(load_u16(w + Q2_K_DMIN));
        int s = 0, m = 0;
        for (int i = 0; i < 256; i++) s += (w[Q2_K_SCALES + i / 16] & 15) * q2_k_code(w, i) * q[i];
        for (int i = 0; i < 16; i++) m += (w[Q2_K_SCALES + i] >> 4) * bsums[i];
        acc += yd[b] * d * (float)s - yd[b] * dmin * (float)m;
    }
    return acc;
}

/* Q4_K and Q5_K differ in their codes only. */
static inline float dot_q45_k(int k, const uint8_t *w, const void *x, size_t block_bytes,
                              int (*code)(const uint8_t *, int))
{
    const int8_t *q = x;
    const float *yd = act_d(ACT_Q8_K, x, k);
    const int16_t *bsums = act_bsums(x, k);
    float acc = 0;
    for (int b = 0; b < k / 256; b++, w += block_bytes, q += 256, bsums += 16) {
        const float d = f16_to_f32(load_u16(w + Q4_K_D)), dmin = f16_to_f32(load_u16(w + Q4_K_DMIN));
        int s = 0, m = 0;
        for (int i = 0; i < 256; i++) s += q4_k_scale(w + Q4_K_SCALES, i / 32) * code(w, i) * q[i];
        for (int i = 0; i < 16; i++) m += q4_k_min(w + Q4_K_SCALES, i / 2) * bsums[i];
        acc += d * yd[b] * (float)s - dmin * yd[b] * (float)m;
    }
    return acc;
}

static int code_q4_k(const uint8_t *b, int i)
{
    return q4_k_code(b + Q4_K_QS, i);
}

float quant_dot_q4_k(int k, const uint8_t *w, const void *x)
{
    return dot_q45_k(k, w, x, Q4_K_BYTES, code_q4_k);
}

float quant_dot_q5_k(int k, const uint8_t *w, const void *x)
{
    return dot_q45_k(k, w, x, Q5_K_BYTES, q5_k_code);
}

/* Blocks whose scaled products are one integer S: the step is (d * yd) * S; per_scale values share a scale. */
static inline float dot_scaled(int k, const uint8_t *w, const void *x, size_t block_bytes, size_t d_at, int per_scale,
                               int (*scale)(const uint8_t *, int), int (*code)(const uint8_t *, int))
{
    const int8_t *q = x;
    const float *yd = act_d(ACT_Q8_K, x, k);
    float acc = 0;
    for (int b = 0; b < k / 256; b++, w += block_bytes, q += 256) {
        int s = 0;
        for (int i = 0; i < 256; i++) s += scale(w, i / per_scale) * code(w, i) * q[i];
        acc += f16_to_f32(load_u16(w + d_at)) * yd[b] * (float)s;
    }
    return acc;
}

static int one(const uint8_t *b, int k)
{
    return 1;
}

float quant_dot_q3_k(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, Q3_K_BYTES, Q3_K_D, 16, q3_k_scale, q3_k_code);
}

float quant_dot_q6_k(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, Q6_K_BYTES, Q6_K_D, 16, q6_k_scale, q6_k_code);
}

float quant_dot_tq1_0(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, TQ1_0_BYTES, TQ1_0_D, 256, one, tq1_0_code);
}

float quant_dot_tq2_0(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, TQ2_0_BYTES, TQ2_0_D, 256, one, tq2_0_code);
}

float quant_dot_iq2_xxs(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, IQ2_XXS_BYTES, 0, 32, iq2_xxs_scale, iq2_xxs_value) * 0.125f;
}

float quant_dot_iq2_xs(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, IQ2_XS_BYTES, 0, 16, iq2_xs_scale, iq2_xs_value) * 0.125f;
}

float quant_dot_iq2_s(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, IQ2_S_BYTES, 0, 16, iq2_s_scale, iq2_s_value) * 0.125f;
}

float quant_dot_iq3_xxs(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, IQ3_XXS_BYTES, 0, 32, iq3_xxs_scale, iq3_xxs_value) * 0.25f;
}

float quant_dot_iq3_s(int k, const uint8_t *w, const void *x)
{
    return dot_scaled(k, w, x, IQ3_S_BYTES, 0, 32, iq3_s_scale, iq3_s_value);
}

/* Eighths: S / 8 is exact. */
float quant_dot_iq1_s(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *yd = act_d(ACT_Q8_K, x, k);
    float acc = 0;
    for (int b = 0; b < k / 256; b++, w += IQ1_S_BYTES, q += 256) {
        int s = 0;
        for (int i = 0; i < 256; i++) s += iq1_s_scale(w, i / 32) * iq1_s_value(w, i) * q[i];
        acc += f16_to_f32(load_u16(w)) * yd[b] * ((float)s * 0.125f);
    }
    return acc;
}

float quant_dot_iq1_m(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *yd = act_d(ACT_Q8_K, x, k);
    float acc = 0;
    for (int b = 0; b < k / 256; b++, w += IQ1_M_BYTES, q += 256) {
        int s = 0;
        for (int i = 0; i < 256; i++) s += iq1_m_scale(w, i / 16) * iq1_m_value(w, i) * q[i];
        acc += f16_to_f32(iq1_m_d(w)) * yd[b] * ((float)s * 0.125f);
    }
    return acc;
}

/* A step per 32 values. */
float quant_dot_iq4_xs(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *yd = act_d(ACT_Q8_K, x, k);
    float acc = 0;
    for (int b = 0; b < k / 256; b++, w += IQ4_XS_BYTES, q += 256) {
        const float d = f16_to_f32(load_u16(w)) * yd[b];
        for (int j = 0; j < 8; j++) {
            int s = 0;
            for (int i = 32 * j; i < 32 * (j + 1); i++) s += iq4_xs_code(w, i) * q[i];
            acc += d * (float)iq4_xs_scale(w, j) * (float)s;
        }
    }
    return acc;
}
