/* Scalar tile kernels: the reference for the order of every sum (docs/numerics.md). One value at a time; the other
 * kernel sets must give the same bits. */
#include <math.h>
#include "quant/quant_blocks.h"
#include "quant/quant_internal.h"

typedef float dot_fn(int k, const uint8_t *w, const void *x);

static inline void tile(dot_fn *dot, int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                        int n_cols, float *out, size_t out_stride)
{
    for (int c = 0; c < n_cols; c++)
        for (int r = 0; r < n_rows; r++)
            out[(size_t)c * out_stride + (size_t)r] =
                dot(k, (const uint8_t *)w + (size_t)r * w_stride, (const char *)x + (size_t)c * x_stride);
}

/* Sixteen striped lanes inside chunks of 1,024, a fixed tree, chunks in order. */
static inline float lanes16(int k, const uint8_t *w, const float *x, float (*value)(const uint8_t *w, int i))
{
    float total = 0;
    for (int first = 0; first < k; first += 1024) {
        const int end = first + 1024 < k ? first + 1024 : k;
        float lane[16] = {0};
        for (int i = first; i < (end + 15) / 16 * 16; i++)
            lane[i % 16] = i < end ? fmaf(value(w, i), x[i], lane[i % 16]) : fmaf(0, 0, lane[i % 16]);
        for (int half = 8; half > 0; half /= 2)
            for (int i = 0; i < half; i++) lane[i] += lane[i + half];
        total += lane[0];
    }
    return total;
}

static float value_f32(const uint8_t *w, int i)
{
    return bits_f32(load_u32(w + 4 * (size_t)i));
}

static float value_f16(const uint8_t *w, int i)
{
    return f16_to_f32(load_u16(w + 2 * (size_t)i));
}

static float value_bf16(const uint8_t *w, int i)
{
    return bf16_to_f32(load_u16(w + 2 * (size_t)i));
}

static float dot_f32(int k, const uint8_t *w, const void *x)
{
    return lanes16(k, w, x, value_f32);
}

static float dot_f16(int k, const uint8_t *w, const void *x)
{
    return lanes16(k, w, x, value_f16);
}

static float dot_bf16(int k, const uint8_t *w, const void *x)
{
    return lanes16(k, w, x, value_bf16);
}

static float dot_q8_0(int k, const uint8_t *w, const void *x)
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

static float dot_q4_0(int k, const uint8_t *w, const void *x)
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

static float dot_mxfp4(int k, const uint8_t *w, const void *x)
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

static float dot_q2_k(int k, const uint8_t *w, const void *x)
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

static float dot_q4_k(int k, const uint8_t *w, const void *x)
{
    return dot_q45_k(k, w, x, Q4_K_BYTES, code_q4_k);
}

static float dot_q5_k(int k, const uint8_t *w, const void *x)
{
    return dot_q45_k(k, w, x, Q5_K_BYTES, q5_k_code);
}

static float dot_q6_k(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *yd = act_d(ACT_Q8_K, x, k);
    float acc = 0;
    for (int b = 0; b < k / 256; b++, w += Q6_K_BYTES, q += 256) {
        int s = 0;
        for (int i = 0; i < 256; i++) s += q6_k_scale(w, i) * q6_k_code(w, i) * q[i];
        acc += f16_to_f32(load_u16(w + Q6_K_D)) * yd[b] * (float)s;
    }
    return acc;
}

static float dot_iq2_xxs(int k, const uint8_t *w, const void *x)
{
    const int8_t *q = x;
    const float *yd = act_d(ACT_Q8_K, x, k);
    float acc = 0;
    for (int b = 0; b < k / 256; b++, w += IQ2_XXS_BYTES, q += 256) {
        int s = 0;
        for (int i = 0; i < 256; i++) s += iq2_xxs_scale(w, i / 32) * iq2_xxs_value(w, i) * q[i];
        acc += f16_to_f32(load_u16(w)) * yd[b] * (float)s;
    }
    return acc * 0.125f;
}

static quant_tile_fn tile_f32, tile_f16, tile_bf16, tile_q8_0, tile_q4_0, tile_mxfp4, tile_q2_k, tile_q4_k, tile_q5_k,
    tile_q6_k, tile_iq2_xxs;
QUANT_TILE(tile_f32, tile, dot_f32)
QUANT_TILE(tile_f16, tile, dot_f16)
QUANT_TILE(tile_bf16, tile, dot_bf16)
QUANT_TILE(tile_q8_0, tile, dot_q8_0)
QUANT_TILE(tile_q4_0, tile, dot_q4_0)
QUANT_TILE(tile_mxfp4, tile, dot_mxfp4)
QUANT_TILE(tile_q2_k, tile, dot_q2_k)
QUANT_TILE(tile_q4_k, tile, dot_q4_k)
QUANT_TILE(tile_q5_k, tile, dot_q5_k)
QUANT_TILE(tile_q6_k, tile, dot_q6_k)
QUANT_TILE(tile_iq2_xxs, tile, dot_iq2_xxs)

const quant_tile_table quant_tiles_scalar = {
    [QT_F32] = tile_f32,   [QT_F16] = tile_f16,     [QT_BF16] = tile_bf16,       [QT_Q8_0] = tile_q8_0,
    [QT_Q4_0] = tile_q4_0, [QT_MXFP4] = tile_mxfp4, [QT_Q2_K] = tile_q2_k,       [QT_Q4_K] = tile_q4_k,
    [QT_Q5_K] = tile_q5_k, [QT_Q6_K] = tile_q6_k,   [QT_IQ2_XXS] = tile_iq2_xxs,
};
