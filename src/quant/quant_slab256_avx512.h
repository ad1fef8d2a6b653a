/* Slabs of the types with blocks of 256, for the AVX-512 kernels (activations ACT_Q8_K): what multiplies them. */
#ifndef QUANT_QUANT_SLAB256_AVX512_H
#define QUANT_QUANT_SLAB256_AVX512_H
#include "quant/quant_k_avx2.h"
#include "quant/quant_slab_avx512.h"

/* One block of sixteen rows. */
struct half256 {
    uint8_t code[64][64];  /* [group of four][row][4] */
    int32_t scale[16][16]; /* [sub-block][row]; those of Q2_K are in its codes */
    int16_t min[8][32];    /* [pair of activation sums][row][2] */
    float d[SLAB_ROWS];
    float dmin[SLAB_ROWS];
};

/* Vectors of four bytes per column before the scales: pairs of sums, or what the codes' height adds per sub-block. */
INLINE int panel_sums(enum qtype t)
{
    return t == QT_Q6_K ? 16 : 8;
}

/* acc + d*yd*sum - dmin*yd*min */
INLINE __m512 step512(enum qtype t, __m512 acc, __m512i sum, __m512i min, const struct half256 *s, __m512 yd)
{
    const __m512 v = _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(s->d), yd), _mm512_cvtepi32_ps(sum));
    if (!has_min(t)) return _mm512_add_ps(acc, v);
    const __m512 m = _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(s->dmin), yd), _mm512_cvtepi32_ps(min));
    return _mm512_add_ps(acc, _mm512_sub_ps(v, m));
}

/* sum += groups [j0, j0 + n) of a block times the columns. */
INLINE void groups512(int C, const struct half256 s[HALVES], const uint8_t *x, int j0, int n,
                      __m512i sum[QUANT_PANEL][HALVES])
{
    UNROLL for (int j = j0; j < j0 + n; j++)
    {
        const __m512i w0 = load512(s[0].code[j]), w1 = load512(s[1].code[j]);
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m512i a = spread512(x + 4 * (j * C + c));
            sum[c][0] = _mm512_dpbusd_epi32(sum[c][0], w0, a);
            sum[c][1] = _mm512_dpbusd_epi32(sum[c][1], w1, a);
        }
    }
}

/* Exact sums per row: codes times scales. */
INLINE void sums512(enum qtype t, int C, const struct half256 s[HALVES], const uint8_t *x,
                    __m512i total[QUANT_PANEL][HALVES])
{
    const int each = t == QT_Q2_K ? 8 : sub_block(t) / 4;
    UNROLL for (int c = 0; c < C; c++) total[c][0] = total[c][1] = _mm512_setzero_si512();
    for (int i = 0; i < 64 / each; i++) {
        __m512i sum[QUANT_PANEL][HALVES];
        if (t == QT_Q2_K) {
            groups512(C, s, x, i * each, each, total);
            continue;
        }
        UNROLL for (int c = 0; c < C; c++) sum[c][0] = sum[c][1] =
            has_min(t) ? _mm512_setzero_si512() : spread512(x + 4 * ((64 + i) * C + c));
        groups512(C, s, x, i * each, each, sum);
        UNROLL for (int c = 0; c < C; c++) UNROLL for (int h = 0; h < HALVES; h++) total[c][h] =
            _mm512_add_epi32(total[c][h], _mm512_mullo_epi32(sum[c][h], load512(s[h].scale[i])));
    }
}

INLINE void mins512(int C, const struct half256 s[HALVES], const uint8_t *x, __m512i min[QUANT_PANEL][HALVES])
{
    UNROLL for (int c = 0; c < C; c++) min[c][0] = min[c][1] = _mm512_setzero_si512();
    UNROLL for (int i = 0; i < 8; i++)
    {
        const __m512i w0 = load512(s[0].min[i]), w1 = load512(s[1].min[i]);
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m512i a = spread512(x + 4 * ((64 + i) * C + c));
            min[c][0] = _mm512_dpwssd_epi32(min[c][0], w0, a);
            min[c][1] = _mm512_dpwssd_epi32(min[c][1], w1, a);
        }
    }
}

INLINE void columns256(enum qtype t, int C, int n_blocks, const uint8_t *slab, const uint8_t *x, bool start, bool last,
                       float *acc)
{
    const struct half256 *s = (const struct half256 *)(const void *)slab;
    const int sums = panel_sums(t);
    __m512 v[QUANT_PANEL][HALVES];
    UNROLL for (int c = 0; c < C; c++) acc_load(acc, c, start, v[c]);
    for (int b = 0; b < n_blocks; b++, s += HALVES, x += 4 * (65 + sums) * C) {
        __m512i total[QUANT_PANEL][HALVES], min[QUANT_PANEL][HALVES];
        sums512(t, C, s, x, total);
        if (has_min(t)) mins512(C, s, x, min);
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m512 yd = spread_float(x + 4 * ((64 + sums) * C + c));
            UNROLL for (int h = 0; h < HALVES; h++) v[c][h] = step512(t, v[c][h], total[c][h], min[c][h], s + h, yd);
        }
    }
    UNROLL for (int c = 0; c < C; c++)
    {
        if (t == QT_IQ2_XXS && last)
            UNROLL for (int h = 0; h < HALVES; h++) v[c][h] = _mm512_mul_ps(v[c][h], _mm512_set1_ps(0.125f));
        acc_store(acc, c, v[c]);
    }
}

/* Defines the kernels of a type by `fill_half`, which unpacks one block of sixteen rows. */
#define SLAB256(name, type, packing)                                                                                   \
    static void name##_fill(const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)              \
    {                                                                                                                  \
        struct half256 *const s = (struct half256 *)(void *)slab;                                                      \
        for (int h = 0; h < HALVES; h++)                                                                               \
            for (int b = 0; b < n_blocks; b++) {                                                                       \
                const size_t at = (size_t)(first + b) * block_bytes(type);                                             \
                prefetch_slab(row + SLAB_ROWS * h, at + 2 * block_bytes(type), block_bytes(type));                     \
                fill_half(type, row + SLAB_ROWS * h, at, s + HALVES * b + h);                                          \
            }                                                                                                          \
    }                                                                                                                  \
    QUANT_MULTIPLY(name##_multiply, columns256, type)                                                                  \
    const struct quant_slab slab_##name##_avx512 = {.block = 256,                                                      \
                                                    .from = 3,                                                         \
                                                    .slab_block = HALVES * sizeof(struct half256),                     \
                                                    .panel_block = type == QT_Q6_K ? 4 * 81 : 4 * 73,                  \
                                                    .pack = packing,                                                   \
                                                    .fill = name##_fill,                                               \
                                                    .multiply = name##_multiply};

#endif
