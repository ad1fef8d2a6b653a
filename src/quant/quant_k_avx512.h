/* Slabs of the types with blocks of 256, for the AVX-512 kernels: sixteen weight rows, one block each, times activation
 * rows in the format ACT_Q8_K. */
#ifndef QUANT_QUANT_K_AVX512_H
#define QUANT_QUANT_K_AVX512_H
#include "quant/quant_avx512.h"
#include "quant/quant_k_avx2.h"

struct slab16 {
    _Alignas(64) uint8_t code[64][64];  /* [group of four][row][4] */
    _Alignas(64) int32_t scale[16][16]; /* [sub-block][row] */
    _Alignas(64) int16_t min[8][32];    /* [pair of activation sums][row][2] */
    _Alignas(64) float d[SLAB_ROWS];
    _Alignas(64) float dmin[SLAB_ROWS];
};

/* How much too high the codes of a slab are. */
INLINE int code_offset(enum qtype t)
{
    return t == QT_Q6_K ? Q6_OFFSET : t == QT_IQ2_XXS ? IQ2_OFFSET : 0;
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

/* Scales and factors of the activation sums. Those of Q2_K are in its codes. */
INLINE void slab16_scales(enum qtype t, const struct prep p[SLAB_ROWS], struct slab16 *s)
{
    __m512i v[8];
    if (has_min(t)) {
        pairs_of_rows(p, offsetof(struct prep, min), v);
        UNROLL for (int g = 0; g < 8; g++) store512(s->min[g], v[g]);
    }
    if (t == QT_Q2_K) return;
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

/* What the offset of the codes adds to the products of each sub-block, negated. */
INLINE void sub_offsets(enum qtype t, const int16_t *bsums, int32_t at[16])
{
    if (sub_block(t) == 32)
        store256(at, _mm256_madd_epi16(load256(bsums), _mm256_set1_epi16((short)-code_offset(t))));
    else
        store512(at, _mm512_mullo_epi32(_mm512_cvtepi16_epi32(load256(bsums)), _mm512_set1_epi32(-code_offset(t))));
}

/* Exact sums per row of a slab times C activation blocks; q: their codes. */
INLINE void slab16_sums(enum qtype t, int C, const struct slab16 *s, const uint8_t *const q[SLAB_COLS],
                        const int32_t offset[SLAB_COLS][16], __m512i total[SLAB_COLS])
{
    const int per_scale = t == QT_Q2_K ? 64 : sub_block(t) / 4;
    UNROLL for (int c = 0; c < C; c++) total[c] = _mm512_setzero_si512();
    for (int i = 0; i < 64 / per_scale; i++) {
        __m512i sum[SLAB_COLS];
        UNROLL for (int c = 0; c < C; c++) sum[c] =
            code_offset(t) ? _mm512_set1_epi32(offset[c][i]) : _mm512_setzero_si512();
        UNROLL for (int j = i * per_scale; j < (i + 1) * per_scale; j++)
        {
            const __m512i w = load512(s->code[j]);
            UNROLL for (int c = 0; c < C; c++) sum[c] = dot4(sum[c], w, q[c] + 4 * (size_t)j);
        }
        if (t == QT_Q2_K) {
            UNROLL for (int c = 0; c < C; c++) total[c] = sum[c];
            return;
        }
        const __m512i scale = load512(s->scale[i]);
        UNROLL for (int c = 0; c < C; c++) total[c] = _mm512_add_epi32(total[c], _mm512_mullo_epi32(sum[c], scale));
    }
}

INLINE __m512 step16(enum qtype t, __m512 acc, __m512i sum, __m512i min, const struct slab16 *s, __m512 yd)
{
    const __m512 v = _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(s->d), yd), _mm512_cvtepi32_ps(sum));
    if (!has_min(t)) return _mm512_add_ps(acc, v);
    const __m512 m = _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(s->dmin), yd), _mm512_cvtepi32_ps(min));
    return _mm512_add_ps(acc, _mm512_sub_ps(v, m));
}

/* Slab times block b of C activation rows, of which the first n exist. */
INLINE void slab16_columns(enum qtype t, int C, const struct slab16 *s, int b, int k, const uint8_t *x, size_t x_stride,
                           int n, float (*acc)[SLAB_ROWS])
{
    const uint8_t *col[SLAB_COLS], *q[SLAB_COLS];
    _Alignas(64) int32_t offset[SLAB_COLS][16];
    __m512i sum[SLAB_COLS];
    row_pointers(x, x_stride, 0, n, C, col);
    UNROLL for (int c = 0; c < C; c++)
    {
        q[c] = col[c] + 256 * (size_t)b;
        if (code_offset(t)) sub_offsets(t, row_bsums(col[c], k) + 16 * b, offset[c]);
    }
    slab16_sums(t, C, s, q, offset, sum);
    UNROLL for (int c = 0; c < C; c++)
    {
        const int16_t *const bsums = row_bsums(col[c], k) + 16 * b;
        __m512i min = _mm512_setzero_si512();
        if (has_min(t))
            UNROLL for (int i = 0; i < 8; i++) min =
                _mm512_dpwssd_epi32(min, load512(s->min[i]), _mm512_set1_epi32((int)load_u32(bsums + 2 * i)));
        const __m512 yd = _mm512_set1_ps(row_d(col[c], k)[b]);
        _mm512_store_ps(acc[c], step16(t, _mm512_load_ps(acc[c]), sum[c], min, s, yd));
    }
}

/* acc[n] += slab times block b of n activation rows. */
INLINE void slab16_multiply(enum qtype t, const struct slab16 *s, int b, int k, const uint8_t *x, size_t x_stride,
                            int n, float acc[COL_CHUNK][SLAB_ROWS])
{
    int c = 0;
    for (; n - c > SLAB_COLS / 2; c += SLAB_COLS)
        slab16_columns(t, SLAB_COLS, s, b, k, x + (size_t)c * x_stride, x_stride, n - c, acc + c);
    if (c < n) slab16_columns(t, SLAB_COLS / 2, s, b, k, x + (size_t)c * x_stride, x_stride, n - c, acc + c);
}

#endif
