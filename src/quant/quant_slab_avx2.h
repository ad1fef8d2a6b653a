/* What the slab kernels with vectors of 32 bytes share (quant.h): the sets AVX2 and AVX-VNNI, which differ in how they
 * multiply. Included by their files only.
 *
 * One float lane per weight row. A slab is two halves of sixteen rows, one behind the other; two vectors hold four
 * consecutive codes of each of them, and are multiplied with four activations of a column of the panel, in all lanes.
 * The chains of a half's columns run through all blocks before the other half's, so that they and the sums stay near
 * the registers. */
#ifndef QUANT_QUANT_SLAB_AVX2_H
#define QUANT_QUANT_SLAB_AVX2_H
#include "quant/quant_avx2.h"

#ifdef __AVXVNNI__
#define SLAB_NAME(name) slab_##name##_avxvnni
enum { VNNI = 1 };
#else
#define SLAB_NAME(name) slab_##name##_avx2
enum { VNNI = 0 };
#endif

enum { HALF = 16 /* rows */, HALVES = QUANT_SLAB / HALF, PARTS = HALF / ROWS, PANEL = 4 };

/* A value of a panel in all lanes. */
INLINE __m256i spread(const uint8_t *p)
{
    __m256i v = spread32(p);
    KEEP(v); /* loaded once, not once per use */
    return v;
}

INLINE __m256 spread_float(const uint8_t *p)
{
    return _mm256_castsi256_ps(spread(p));
}

/* sum + two products of 16-bit numbers per lane. */
INLINE __m256i add_pairs(__m256i sum, __m256i w, __m256i a)
{
#ifdef __AVXVNNI__
    return _mm256_dpwssd_avx_epi32(sum, w, a);
#else
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w, a));
    KEEP(sum);
    return sum;
#endif
}

INLINE __m256i add16(__m256i sum, __m256i v)
{
    sum = _mm256_add_epi16(sum, v);
    KEEP(sum);
    return sum;
}

/* The chains of a half in column c. */
INLINE void chains_load(const float *acc, int c, int half, int piece, __m256 v[PARTS])
{
    UNROLL for (int p = 0; p < PARTS; p++) v[p] =
        piece & SLAB_FIRST ? _mm256_setzero_ps() : _mm256_load_ps(acc + QUANT_SLAB * c + HALF * half + ROWS * p);
}

INLINE void chains_store(float *acc, int c, int half, const __m256 v[PARTS])
{
    UNROLL for (int p = 0; p < PARTS; p++) _mm256_store_ps(acc + QUANT_SLAB * c + HALF * half + ROWS * p, v[p]);
}

/* Asks for the bytes of the rows that are unpacked next. */
INLINE void prefetch_half(const uint8_t *const row[HALF], size_t at, size_t bytes)
{
    prefetch_rows(row, at, bytes + 63, 0);
    prefetch_rows(row + ROWS, at, bytes + 63, 0);
}

/* Defines multiply of a type by the body for every number of columns. */
#define QUANT_MULTIPLY(name, body, type)                                                                               \
    static void name(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc)            \
    {                                                                                                                  \
        for (int h = 0; h < HALVES; h++) {                                                                             \
            if (n == 4) body(type, 4, n_blocks, slab, panel, h, piece, acc);                                           \
            if (n == 3) body(type, 3, n_blocks, slab, panel, h, piece, acc);                                           \
            if (n == 2) body(type, 2, n_blocks, slab, panel, h, piece, acc);                                           \
            if (n == 1) body(type, 1, n_blocks, slab, panel, h, piece, acc);                                           \
        }                                                                                                              \
    }

extern const struct quant_slab SLAB_NAME(q8_0), SLAB_NAME(q4_0), SLAB_NAME(mxfp4), SLAB_NAME(q2_k), SLAB_NAME(q4_k),
    SLAB_NAME(q5_k), SLAB_NAME(q6_k), SLAB_NAME(iq2_xxs), SLAB_NAME(q4_1), SLAB_NAME(q5_0), SLAB_NAME(q5_1),
    SLAB_NAME(iq4_nl), SLAB_NAME(iq4_xs), SLAB_NAME(q3_k), SLAB_NAME(tq1_0), SLAB_NAME(tq2_0), SLAB_NAME(iq2_xs),
    SLAB_NAME(iq2_s), SLAB_NAME(iq3_xxs), SLAB_NAME(iq3_s), SLAB_NAME(iq1_s), SLAB_NAME(iq1_m);

#endif
