/* Scalar tile kernels, and the dot products of weights that are plain floats. */
#include <math.h>
#include "quant/quant_blocks.h"
#include "quant/quant_decoded.h"
#include "quant/quant_dots_scalar.h"

static inline void tile(quant_dot_fn *dot, int k, const void *w, size_t w_stride, int n_rows, const void *x,
                        size_t x_stride, int n_cols, float *out, size_t out_stride)
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

static quant_tile_fn tile_f32, tile_f16, tile_bf16, tile_q8_0, tile_q4_0, tile_q4_1, tile_q5_0, tile_q5_1, tile_iq4_nl,
    tile_mxfp4, tile_nvfp4, tile_q1_0, tile_q2_0, tile_q2_0_128, tile_q2_k, tile_q3_k, tile_q4_k, tile_q5_k, tile_q6_k,
    tile_iq4_xs, tile_tq1_0, tile_tq2_0, tile_iq2_xxs, tile_iq2_xs, tile_iq2_s, tile_iq3_xxs, tile_iq3_s, tile_iq1_s,
    tile_iq1_m, tile_q8_1, tile_q8_k, tile_mxfp8, tile_mxfp8_sf;
QUANT_TILE(tile_f32, tile, dot_f32)
QUANT_TILE(tile_f16, tile, dot_f16)
QUANT_TILE(tile_bf16, tile, dot_bf16)
QUANT_TILE(tile_q8_0, tile, quant_dot_q8_0)
QUANT_TILE(tile_q4_0, tile, quant_dot_q4_0)
QUANT_TILE(tile_q4_1, tile, quant_dot_q4_1)
QUANT_TILE(tile_q5_0, tile, quant_dot_q5_0)
QUANT_TILE(tile_q5_1, tile, quant_dot_q5_1)
QUANT_TILE(tile_iq4_nl, tile, quant_dot_iq4_nl)
QUANT_TILE(tile_mxfp4, tile, quant_dot_mxfp4)
QUANT_TILE(tile_nvfp4, tile, quant_dot_nvfp4)
QUANT_TILE(tile_q1_0, tile, quant_dot_q1_0)
QUANT_TILE(tile_q2_0, tile, quant_dot_q2_0)
QUANT_TILE(tile_q2_0_128, tile, quant_dot_q2_0_128)
QUANT_TILE(tile_q2_k, tile, quant_dot_q2_k)
QUANT_TILE(tile_q3_k, tile, quant_dot_q3_k)
QUANT_TILE(tile_q4_k, tile, quant_dot_q4_k)
QUANT_TILE(tile_q5_k, tile, quant_dot_q5_k)
QUANT_TILE(tile_q6_k, tile, quant_dot_q6_k)
QUANT_TILE(tile_iq4_xs, tile, quant_dot_iq4_xs)
QUANT_TILE(tile_tq1_0, tile, quant_dot_tq1_0)
QUANT_TILE(tile_tq2_0, tile, quant_dot_tq2_0)
QUANT_TILE(tile_iq2_xxs, tile, quant_dot_iq2_xxs)
QUANT_TILE(tile_iq2_xs, tile, quant_dot_iq2_xs)
QUANT_TILE(tile_iq2_s, tile, quant_dot_iq2_s)
QUANT_TILE(tile_iq3_xxs, tile, quant_dot_iq3_xxs)
QUANT_TILE(tile_iq3_s, tile, quant_dot_iq3_s)
QUANT_TILE(tile_iq1_s, tile, quant_dot_iq1_s)
QUANT_TILE(tile_iq1_m, tile, quant_dot_iq1_m)
QUANT_TILE_DECODED(tile_q8_1, quant_decode_q8_1, tile_f32, 32, Q8_1_BYTES)
QUANT_TILE_DECODED(tile_q8_k, quant_decode_q8_k, tile_f32, 256, Q8_K_BYTES)
QUANT_TILE_DECODED(tile_mxfp8, quant_decode_mxfp8, tile_f32, 256, MXFP8_BYTES)
QUANT_TILE_DECODED(tile_mxfp8_sf, quant_decode_mxfp8_sf, tile_f32, 256, MXFP8_BYTES)

const quant_tile_table quant_tiles_scalar = {
    [QT_F32] = tile_f32,
    [QT_F16] = tile_f16,
    [QT_BF16] = tile_bf16,
    [QT_Q8_0] = tile_q8_0,
    [QT_Q4_0] = tile_q4_0,
    [QT_Q4_1] = tile_q4_1,
    [QT_Q5_0] = tile_q5_0,
    [QT_Q5_1] = tile_q5_1,
    [QT_IQ4_NL] = tile_iq4_nl,
    [QT_MXFP4] = tile_mxfp4,
    [QT_NVFP4] = tile_nvfp4,
    [QT_Q1_0] = tile_q1_0,
    [QT_Q2_0] = tile_q2_0,
    [SLOT_Q2_0_128] = tile_q2_0_128,
    [QT_Q2_K] = tile_q2_k,
    [QT_Q3_K] = tile_q3_k,
    [QT_Q4_K] = tile_q4_k,
    [QT_Q5_K] = tile_q5_k,
    [QT_Q6_K] = tile_q6_k,
    [QT_IQ4_XS] = tile_iq4_xs,
    [QT_TQ1_0] = tile_tq1_0,
    [QT_TQ2_0] = tile_tq2_0,
    [QT_IQ2_XXS] = tile_iq2_xxs,
    [QT_IQ2_XS] = tile_iq2_xs,
    [QT_IQ2_S] = tile_iq2_s,
    [QT_IQ3_XXS] = tile_iq3_xxs,
    [QT_IQ3_S] = tile_iq3_s,
    [QT_IQ1_S] = tile_iq1_s,
    [QT_IQ1_M] = tile_iq1_m,
    [QT_Q8_1] = tile_q8_1,
    [QT_Q8_K] = tile_q8_k,
    [SLOT_MXFP8] = tile_mxfp8,
    [SLOT_MXFP8_SF] = tile_mxfp8_sf,
};
