/* Scalar dot products of the types with activations ACT_Q8_0 (spec gguf-and-quants 3.2, more-quants 3). */
#include "quant/quant_blocks.h"
#include "quant/quant_dots_scalar.h"

float quant_dot_q8_0(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    float acc = 0;
    for (int b = 0; b < k / 32; b++, w += Q8_0_BYTES, q += 32) {
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += (int8_t)w[Q8_0_QS + i] * q[i];
        acc += (float)sum * (f16_to_f32(load_u16(w)) * d[b]);
    }
    return acc;
}

float quant_dot_q4_0(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    float acc = 0;
    for (int b = 0; b < k / 32; b++, w += Q4_0_BYTES, q += 32) {
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += (nibble32(w + Q4_0_QS, i) - 8) * q[i];
        acc += (float)sum * f16_to_f32(load_u16(w)) * d[b];
    }
    return acc;
}

float quant_dot_mxfp4(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    float acc = 0;
    for (int b = 0; b < k / 32; b++, w += MXFP4_BYTES, q += 32) {
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += mxfp4_doubled(nibble32(w + MXFP4_QS, i)) * q[i];
        acc += d[b] * mxfp4_scale(w[0]) * (float)sum;
    }
    return acc;
}

float quant_dot_q4_1(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    const float *s = act_sum(x, k);
    float acc = 0;
    for (int b = 0; b < k / 32; b++, w += Q4_1_BYTES, q += 32) {
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += nibble32(w + Q4_1_QS, i) * q[i];
        acc += f16_to_f32(load_u16(w)) * d[b] * (float)sum + f16_to_f32(load_u16(w + Q4_1_M)) * s[b];
    }
    return acc;
}

float quant_dot_q5_0(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    float acc = 0;
    for (int b = 0; b < k / 32; b++, w += Q5_0_BYTES, q += 32) {
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += (q5_code(w + Q5_0_QH, w + Q5_0_QS, i) - 16) * q[i];
        acc += f16_to_f32(load_u16(w)) * d[b] * (float)sum;
    }
    return acc;
}

float quant_dot_q5_1(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    const float *s = act_sum(x, k);
    float acc = 0;
    for (int b = 0; b < k / 32; b++, w += Q5_1_BYTES, q += 32) {
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += q5_code(w + Q5_1_QH, w + Q5_1_QS, i) * q[i];
        acc += f16_to_f32(load_u16(w)) * d[b] * (float)sum + f16_to_f32(load_u16(w + Q5_1_M)) * s[b];
    }
    return acc;
}

float quant_dot_iq4_nl(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    float acc = 0;
    for (int b = 0; b < k / 32; b++, w += IQ4_NL_BYTES, q += 32) {
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += iq4_levels[nibble32(w + IQ4_NL_QS, i)] * q[i];
        acc += f16_to_f32(load_u16(w)) * d[b] * (float)sum;
    }
    return acc;
}

/* A scale per 16 values. */
float quant_dot_nvfp4(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    float acc = 0;
    for (int b = 0; b < k / 64; b++, w += NVFP4_BYTES, q += 64, d += 2) {
        for (int j = 0; j < 4; j++) {
            int sum = 0;
            for (int i = 16 * j; i < 16 * (j + 1); i++) sum += nvfp4_code(w, i) * q[i];
            acc += d[j / 2] * nvfp4_scale(w[j]) * (float)sum;
        }
    }
    return acc;
}

/* One scale over several activation blocks, whose scaled sums are added up first. */
static inline float dot_wide(int k, const uint8_t *w, const void *x, int block, size_t block_bytes,
                             int (*code)(const uint8_t *, int))
{
    const int8_t *q = x;
    const float *d = act_d(ACT_Q8_0, x, k);
    float acc = 0;
    for (int b = 0; b < k / block; b++, w += block_bytes) {
        float t = 0;
        for (int j = 0; j < block / 32; j++, q += 32, d++) {
            int sum = 0;
            for (int i = 0; i < 32; i++) sum += code(w, 32 * j + i) * q[i];
            t += *d * (float)sum;
        }
        acc += f16_to_f32(load_u16(w)) * t;
    }
    return acc;
}

float quant_dot_q1_0(int k, const uint8_t *w, const void *x)
{
    return dot_wide(k, w, x, 128, BITS_QS + 16, q1_0_code);
}

float quant_dot_q2_0(int k, const uint8_t *w, const void *x)
{
    return dot_wide(k, w, x, 64, BITS_QS + 16, q2_0_code);
}

float quant_dot_q2_0_128(int k, const uint8_t *w, const void *x)
{
    return dot_wide(k, w, x, 128, BITS_QS + 32, q2_0_code);
}
