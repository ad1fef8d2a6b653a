/* Slabs of the types with blocks of 256, for the AVX-512 kernels (activations ACT_Q8_K): what multiplies them.
 *
 * Floor: of the two 256-bit units' time scales take one product in nine (sub-blocks of 32), minimums one in eight. One
 * core of an AMD EPYC (Zen 4, 3.7 GHz, int8 peak 236 thousand million multiply-adds a second), 1,024 and 48 activations
 * of 4,096 values (bench_quant): IQ2_XXS 196 and 175 of 209, Q2_K 192 and 173 of 199, Q4_K 173 and 150, Q6_K 176 and
 * 146. */
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
    return has_min(t) ? 8 : 256 / sub_block(t);
}

/* acc + d*yd*sum - dmin*yd*min */
INLINE __m512 step512(enum qtype t, __m512 acc, __m512i sum, __m512i min, const struct half256 *s, __m512 yd)
{
    __m512 v = _mm512_cvtepi32_ps(sum);
    if (block_factor(t) != 1) v = _mm512_mul_ps(v, _mm512_set1_ps(block_factor(t)));
    v = _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(s->d), yd), v);
    if (!has_min(t)) return _mm512_add_ps(acc, v);
    const __m512 m = _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(s->dmin), yd), _mm512_cvtepi32_ps(min));
    return _mm512_add_ps(acc, _mm512_sub_ps(v, m));
}

/* sum += groups [j0, j0 + n) of a block times the columns. */
INLINE void groups512(int C, const struct half256 s[HALVES], const uint8_t *x, int j0, int n,
                      __m512i sum[PANEL][HALVES])
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
INLINE void sums512(enum qtype t, int C, const struct half256 s[HALVES], const uint8_t *x, __m512i total[PANEL][HALVES])
{
    const int each = t == QT_Q2_K ? 8 : sub_block(t) / 4;
    UNROLL for (int c = 0; c < C; c++) total[c][0] = total[c][1] = _mm512_setzero_si512();
    for (int i = 0; i < 64 / each; i++) {
        __m512i sum[PANEL][HALVES];
        if (t == QT_Q2_K && C > 2) {
            groups512(C, s, x, i * each, each, total);
            continue;
        }
        UNROLL for (int c = 0; c < C; c++) sum[c][0] = sum[c][1] =
            has_min(t) ? _mm512_setzero_si512() : spread512(x + 4 * ((64 + i) * C + c));
        groups512(C, s, x, i * each, each, sum);
        UNROLL for (int c = 0; c < C; c++) UNROLL for (int h = 0; h < HALVES; h++)
        {
            /* of few columns one chain of products would wait for itself */
            const __m512i v = t == QT_Q2_K ? sum[c][h] : _mm512_mullo_epi32(sum[c][h], load512(s[h].scale[i]));
            total[c][h] = _mm512_add_epi32(total[c][h], v);
        }
    }
}

INLINE void mins512(int C, const struct half256 s[HALVES], const uint8_t *x, __m512i min[PANEL][HALVES])
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
    __m512 v[PANEL][HALVES];
    UNROLL for (int c = 0; c < C; c++) acc_load(acc, c, start, v[c]);
    for (int b = 0; b < n_blocks; b++, s += HALVES, x += 4 * (65 + sums) * C) {
        __m512i total[PANEL][HALVES], min[PANEL][HALVES];
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
        if (last_factor(t) != 1 && last)
            UNROLL for (int h = 0; h < HALVES; h++) v[c][h] = _mm512_mul_ps(v[c][h], _mm512_set1_ps(last_factor(t)));
        acc_store(acc, c, v[c]);
    }
}

/* ---- unpacking */

/* Scales d of the blocks of sixteen rows. */
INLINE __m512 d_of_slab_rows(enum qtype t, const uint8_t *const row[SLAB_ROWS], size_t at)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(d_of_rows(t, row, at)), d_of_rows(t, row + ROWS, at), 1);
}

/* Pairs of 16-bit factors of sixteen rows, one row per lane of v[0..7]. */
INLINE void pairs_of_rows(const struct prep p[SLAB_ROWS], size_t at, __m512i v[8])
{
    __m256i lo[8], hi[8];
    UNROLL for (int r = 0; r < 8; r++)
    {
        lo[r] = load256((const uint8_t *)&p[r] + at);
        hi[r] = load256((const uint8_t *)&p[8 + r] + at);
    }
    transpose8(lo);
    transpose8(hi);
    UNROLL for (int g = 0; g < 8; g++) v[g] = join256(lo[g], hi[g]);
}

/* Scales and factors of the activation sums. */
INLINE void fill_scales(enum qtype t, const struct prep p[SLAB_ROWS], struct half256 *s)
{
    __m512i v[8];
    if (has_min(t)) {
        pairs_of_rows(p, offsetof(struct prep, min), v);
        UNROLL for (int g = 0; g < 8; g++) store512(s->min[g], v[g]);
    }
    pairs_of_rows(p, offsetof(struct prep, scale), v);
    UNROLL for (int g = 0; g < 8; g++)
    {
        const __m512i second = _mm512_srai_epi32(v[g], 16);
        if (sub_block(t) == 32) {
            store512(s->scale[g], second); /* equal to the first */
        } else {
            store512(s->scale[2 * g], _mm512_srai_epi32(_mm512_slli_epi32(v[g], 16), 16));
            store512(s->scale[2 * g + 1], second);
        }
    }
}

/* Values 64i.. of a block, unsigned. */
typedef __m512i codes64_fn(enum qtype t, const uint8_t *b, const struct prep *p, int i);

/* A half of a slab from codes of one row after the other. */
INLINE void fill_by_rows(codes64_fn *codes64, enum qtype t, const uint8_t *const row[SLAB_ROWS], size_t at,
                         struct half256 *s)
{
    struct prep p[SLAB_ROWS];
    for (int r = 0; r < SLAB_ROWS; r++) prepare(t, row[r] + at, &p[r]);
    fill_scales(t, p, s);
    UNROLL for (int i = 0; i < 4; i++)
    {
        __m512i v[16];
#pragma GCC unroll 16
        for (int r = 0; r < SLAB_ROWS; r++) v[r] = codes64(t, row[r] + at, &p[r], i);
        transpose16(v);
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) store512(s->code[16 * i + j], v[j]);
    }
    _mm512_store_ps(s->d, d_of_slab_rows(t, row, at));
    if (has_min(t)) _mm512_store_ps(s->dmin, f16_of_slab_rows(row, at + dmin_at(t)));
}

/* Defines the kernels of a type by `fill_half`, which unpacks one block of sixteen rows; sums: panel_sums. */
#define SLAB256(name, type, packing, sums)                                                                             \
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
                                                    .panel = PANEL,                                                    \
                                                    .from = SLAB_FROM_256(type),                                       \
                                                    .slab_block = HALVES * sizeof(struct half256),                     \
                                                    .panel_block = 4 * (65 + (sums)),                                  \
                                                    .pack = packing,                                                   \
                                                    .fill = name##_fill,                                               \
                                                    .multiply = name##_multiply};

#endif
