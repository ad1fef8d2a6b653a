/* Slabs of the types with blocks of 256, for the AVX-512 kernels (activations ACT_Q8_K): what multiplies them.
 *
 * Floor: of the multiplying units' time scales take one product in nine (sub-blocks of 32; on Intel three in eleven),
 * minimums one in eight. One core of an Intel Xeon (Emerald Rapids, int8 peak 362 thousand million multiply-adds a
 * second), 48 and 1,024 activations of 4,096 values, three runs of bench_quant whose clock moved: Q2_K 192 to 234, 256
 * to 265; IQ2_XXS 122 to 203, 138 to 218; Q4_K 134 to 173, 165 to 207; Q6_K 95 to 154, 106 to 156. Zen 4, 3.7 GHz, peak
 * 236, panels of four rows: IQ2_XXS 175 and 196, Q2_K 173 and 192, Q4_K 150 and 173, Q6_K 146 and 176. */
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

/* multiply (quant.h) of types whose slabs are alike: with minimums; scales for 32 or 16 values; a sum in eighths
 * (block_factor). slab256_q2_k: codes that have their scales in them. */
typedef void slab_multiply(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc);
slab_multiply slab256_q2_k, slab256_min, slab256_32, slab256_32_eighths, slab256_16, slab256_16_eighths;

INLINE slab_multiply *slab256_multiply(enum qtype t)
{
    if (t == QT_Q2_K) return slab256_q2_k;
    if (has_min(t)) return slab256_min;
    if (sub_block(t) == 32) return is_iq1(t) ? slab256_32_eighths : slab256_32;
    return is_iq1(t) ? slab256_16_eighths : slab256_16;
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

/* One block of sixteen rows; book: what the codes are looked up in. */
typedef void half256_fn(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at,
                        struct half256 *s);

INLINE void fill256(half256_fn *half, enum qtype t, const void *book, const uint8_t *const row[QUANT_SLAB], int first,
                    int n_blocks, uint8_t *slab)
{
    struct half256 *const s = (struct half256 *)(void *)slab;
    for (int h = 0; h < HALVES; h++)
        for (int b = 0; b < n_blocks; b++) {
            const size_t at = (size_t)(first + b) * block_bytes(t);
            half(t, book, row + SLAB_ROWS * h, at, s + HALVES * b + h);
        }
}

/* Defines the kernels of a type by `fill_blocks`, which is fill of several types; sums: panel_sums. */
#define SLAB256(name, type, packing, sums)                                                                             \
    static void name##_fill(const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)              \
    {                                                                                                                  \
        fill_blocks(type, row, first, n_blocks, slab);                                                                 \
    }                                                                                                                  \
    static void name##_multiply(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc) \
    {                                                                                                                  \
        slab256_multiply(type)(n_blocks, slab, panel, n, piece, acc);                                                  \
        if (last_factor(type) != 1 && (piece & SLAB_LAST)) acc_scale(acc, n, last_factor(type));                       \
    }                                                                                                                  \
    const struct quant_slab slab_##name##_avx512 = {.block = 256,                                                      \
                                                    .panel = PANEL,                                                    \
                                                    .from = SLAB_FROM_256(type),                                       \
                                                    .slab_block = HALVES * sizeof(struct half256),                     \
                                                    .panel_block = 4 * (65 + (sums)),                                  \
                                                    .pack = packing,                                                   \
                                                    .fill = name##_fill,                                               \
                                                    .multiply = name##_multiply};

#endif
