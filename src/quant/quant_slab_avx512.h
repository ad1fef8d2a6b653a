/* What the AVX-512 slab kernels share (quant.h). Included by quant_slab*_avx512.c only.
 *
 * One float lane per weight row. A slab is two halves of sixteen rows; a vector holds four consecutive codes of row 0,
 * of row 1 ..., unsigned, so one instruction multiplies 64 codes with four activations, which lie side by side in the
 * panel, in all lanes and adds. Sums, chains and operands of 32 rows times four columns fit the registers. */
#ifndef QUANT_QUANT_SLAB_AVX512_H
#define QUANT_QUANT_SLAB_AVX512_H
#include "quant/quant_avx512.h"

enum { HALVES = QUANT_SLAB / SLAB_ROWS, PANEL = 4 };

/* A value of a panel in all lanes. */
INLINE __m512i spread512(const uint8_t *p)
{
    __m512i v = _mm512_set1_epi32((int)load_u32(p));
    __asm__("" : "+v"(v)); /* loaded once, not once per use */
    return v;
}

INLINE __m512 spread_float(const uint8_t *p)
{
    return _mm512_castsi512_ps(spread512(p));
}

/* The chains of column c. */
INLINE void acc_load(const float *acc, int c, bool first, __m512 v[HALVES])
{
    UNROLL for (int h = 0; h < HALVES; h++) v[h] =
        first ? _mm512_setzero_ps() : _mm512_load_ps(acc + QUANT_SLAB * c + SLAB_ROWS * h);
}

INLINE void acc_store(float *acc, int c, const __m512 v[HALVES])
{
    UNROLL for (int h = 0; h < HALVES; h++) _mm512_store_ps(acc + QUANT_SLAB * c + SLAB_ROWS * h, v[h]);
}

/* Fewest activation rows with which unpacking pays: with fewer the direct kernels are faster (Q8_0: 8 sessions of
 * ds4-bench; types with blocks of 256: bench_quant). */
enum { SLAB_FROM_32 = 9 };
#define SLAB_FROM_256(t) ((t) == QT_Q2_K ? 4 : (t) == QT_Q4_K || (t) == QT_Q5_K || (t) == QT_Q6_K ? 6 : 3)

/* Defines multiply of a type by the body for every number of columns. */
#define QUANT_MULTIPLY(name, body, type)                                                                               \
    static void name(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc)            \
    {                                                                                                                  \
        const bool first = piece & SLAB_FIRST, last = piece & SLAB_LAST;                                               \
        if (n == 4) body(type, 4, n_blocks, slab, panel, first, last, acc);                                            \
        if (n == 3) body(type, 3, n_blocks, slab, panel, first, last, acc);                                            \
        if (n == 2) body(type, 2, n_blocks, slab, panel, first, last, acc);                                            \
        if (n == 1) body(type, 1, n_blocks, slab, panel, first, last, acc);                                            \
    }

extern const struct quant_slab slab_q8_0_avx512, slab_q4_0_avx512, slab_mxfp4_avx512, slab_q2_k_avx512,
    slab_q4_k_avx512, slab_q5_k_avx512, slab_q6_k_avx512, slab_iq2_xxs_avx512, slab_q4_1_avx512, slab_q5_0_avx512,
    slab_q5_1_avx512, slab_iq4_nl_avx512, slab_iq4_xs_avx512, slab_q3_k_avx512, slab_tq1_0_avx512, slab_tq2_0_avx512,
    slab_iq2_xs_avx512, slab_iq2_s_avx512, slab_iq3_xxs_avx512, slab_iq3_s_avx512, slab_iq1_s_avx512, slab_iq1_m_avx512;

#endif
