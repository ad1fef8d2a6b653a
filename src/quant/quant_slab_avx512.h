/* What the AVX-512 slab kernels share (quant.h). Included by quant_slab*_avx512.c only.
 *
 * One float lane per weight row. A slab is four parts of sixteen rows; a vector holds four consecutive codes of row 0,
 * of row 1 ..., unsigned, so one instruction multiplies 64 codes with four activations, which lie side by side in the
 * panel, in all lanes and adds. A pass takes 64 rows times three columns: twelve chains of products, as an
 * instruction's latency of five times two units needs ten (Intel), and as many chains of floats, or totals of
 * integers, stay in registers.
 *
 * What decides it on Intel (Ice Lake): 512 bits are loaded 1.15 times a cycle, not twice, so that two products a cycle
 * ask for at most 0.57 loads each: this shape needs 0.58 (32 rows times eight columns 0.63). And a load whose address
 * has the twelve lower bits of a store that is not done yet waits for it: with the chains of floats in memory, a block
 * of Q8_0 took 132 cycles where it takes 103 when no addresses meet. */
#ifndef QUANT_QUANT_SLAB_AVX512_H
#define QUANT_QUANT_SLAB_AVX512_H
#include "quant/quant_avx512.h"

enum { PARTS = QUANT_SLAB / SLAB_ROWS, PANEL = 6, PASS = 3 /* columns */ };

/* sum += two products of 16-bit numbers each, in place, as dp512. */
INLINE __m512i dpw512(__m512i sum, __m512i w, __m512i x)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
}

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

/* Columns of the first of one or two passes. */
INLINE int first_pass(int C)
{
    return C <= PASS ? C : (C + 1) / 2;
}

/* The codes of a slab's parts: [group][row][4]. */
struct codes512 {
    const uint8_t (*part[PARTS])[64];
};

/* sum += the products of groups [j0, j0 + n) of codes with columns [c0, c0 + m) of the C of x. */
INLINE void groups512(int C, int c0, int m, const struct codes512 *codes, const uint8_t *x, int j0, int n,
                      __m512i sum[PASS][PARTS])
{
    UNROLL for (int j = j0; j < j0 + n; j++)
    {
        __m512i w[PARTS];
        UNROLL for (int h = 0; h < PARTS; h++)
        {
            w[h] = load512(codes->part[h][j]);
            __asm__("" : "+v"(w[h])); /* loaded once, not once per use */
        }
        UNROLL for (int c = 0; c < m; c++)
        {
            const __m512i a = spread512(x + 4 * (j * C + c0 + c));
            UNROLL for (int h = 0; h < PARTS; h++) sum[c][h] = dp512(sum[c][h], w[h], a);
        }
    }
}

/* Sums of m columns that start at what `start` has of each in all lanes. */
INLINE void start512(int m, const uint8_t *start, __m512i sum[PASS][PARTS])
{
    UNROLL for (int c = 0; c < m; c++)
    {
        const __m512i v = spread512(start + 4 * c);
        UNROLL for (int h = 0; h < PARTS; h++) sum[c][h] = v;
    }
}

INLINE void zero512(int m, __m512i sum[PASS][PARTS])
{
    UNROLL for (int c = 0; c < m; c++) UNROLL for (int h = 0; h < PARTS; h++) sum[c][h] = _mm512_setzero_si512();
}

/* Chains of floats of columns, [column][QUANT_SLAB], in registers while a pass goes through a piece. */
struct chains512 {
    __m512 v[PASS][PARTS];
};

INLINE struct chains512 chains_load(int m, const float *acc)
{
    struct chains512 k;
    UNROLL for (int c = 0; c < m; c++) UNROLL for (int h = 0; h < PARTS; h++) k.v[c][h] =
        _mm512_load_ps(acc + QUANT_SLAB * c + SLAB_ROWS * h);
    return k;
}

INLINE void chains_zero(int m, struct chains512 *k)
{
    UNROLL for (int c = 0; c < m; c++) UNROLL for (int h = 0; h < PARTS; h++) k->v[c][h] = _mm512_setzero_ps();
}

INLINE void chains_store(int m, const struct chains512 *k, float *acc)
{
    UNROLL for (int c = 0; c < m; c++) UNROLL for (int h = 0; h < PARTS; h++)
        _mm512_store_ps(acc + QUANT_SLAB * c + SLAB_ROWS * h, k->v[c][h]);
}

/* Starts the chains of `parts` parts of n columns. */
INLINE void acc_start(float *acc, int parts, int n)
{
    for (int c = 0; c < n; c++, acc += QUANT_SLAB)
        for (int h = 0; h < parts; h++) _mm512_store_ps(acc + SLAB_ROWS * h, _mm512_setzero_ps());
}

INLINE void acc_scale(float *acc, int parts, int n, float factor)
{
    for (int c = 0; c < n; c++, acc += QUANT_SLAB)
        for (int h = 0; h < parts; h++)
            _mm512_store_ps(acc + SLAB_ROWS * h,
                            _mm512_mul_ps(_mm512_load_ps(acc + SLAB_ROWS * h), _mm512_set1_ps(factor)));
}

/* Fewest activation rows with which unpacking pays: with fewer the direct kernels are as fast, which need no panels.
 * Four rows share a pass of theirs (but for code books). Their time over that of slabs for 4,096 values, one core of an
 * Intel Xeon (Emerald Rapids), the weights in the second-level cache, and 64 MB of them: 5 rows 1.5 to 2 and 1.3 to
 * 1.6 for types with blocks of 32 to 128 but Q8_0 (1.1 and 1.1; 9 rows 1.4, 1.2), 4 rows 1.2 and 1.1; Q2_K, Q4_K and
 * Q5_K with 6 rows 1.3 and 1.15, with 4 rows 1.1 and 0.9; Q6_K with 8 rows 1.2 and 1.05; Q3_K and TQ2_0 with 4 rows 1.1
 * to 1.4 and 1.1; IQ4_XS, TQ1_0 and code books with 3 rows 1.1 to 2.2 and 1.0 to 1.8. From memory not measured: Q1_0,
 * Q2_0, Q4_1, Q5, TQ, IQ1_S, IQ2_S and IQ3_S. Slabs of 64 rows, one of two cores of an Intel Xeon (Ice Lake, virtual):
 * Q8_0 with 9 rows 1.04 and 1.00, MXFP4 with 5 rows 1.2 and 1.2, Q2_K 1.02 and 1.02, Q4_K 1.04 and 1.08, Q5_K 0.99 and
 * 0.98, with 6 rows 1.11 and 1.12, Q6_K with 8 rows 1.05 and 1.07, IQ2_XXS with 3 rows 1.24 and 1.24. */
#define SLAB_FROM_32(t) ((t) == QT_Q8_0 ? 9 : 5)
#define SLAB_FROM_256(t)                                                                                               \
    ((t) == QT_Q6_K                      ? 8                                                                           \
     : (t) == QT_Q2_K || (t) == QT_Q4_K  ? 5                                                                           \
     : (t) == QT_Q5_K                    ? 6                                                                           \
     : (t) == QT_Q3_K || (t) == QT_TQ2_0 ? 4                                                                           \
                                         : 3)

/* Columns of a panel of C, in passes: pass(class, C, first, columns, ...). */
#define PASSES(pass, class, C, n_blocks, slab, panel, acc)                                                             \
    (pass(class, C, 0, first_pass(C), n_blocks, slab, panel, acc),                                                     \
     first_pass(C) < (C)                                                                                               \
         ? pass(class, C, first_pass(C), (C)-first_pass(C), n_blocks, slab, panel, (acc) + QUANT_SLAB * first_pass(C)) \
         : (void)0)

/* Defines multiply of a class of types by its pass for every number of columns. */
#define QUANT_MULTIPLY(name, pass, class)                                                                              \
    void name(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc)                   \
    {                                                                                                                  \
        if (piece & SLAB_FIRST) acc_start(acc, PARTS, n);                                                              \
        if (n == 6) PASSES(pass, class, 6, n_blocks, slab, panel, acc);                                                \
        if (n == 5) PASSES(pass, class, 5, n_blocks, slab, panel, acc);                                                \
        if (n == 4) PASSES(pass, class, 4, n_blocks, slab, panel, acc);                                                \
        if (n == 3) PASSES(pass, class, 3, n_blocks, slab, panel, acc);                                                \
        if (n == 2) PASSES(pass, class, 2, n_blocks, slab, panel, acc);                                                \
        if (n == 1) PASSES(pass, class, 1, n_blocks, slab, panel, acc);                                                \
    }

extern const struct quant_slab slab_q8_0_avx512, slab_q4_0_avx512, slab_mxfp4_avx512, slab_q2_k_avx512,
    slab_q4_k_avx512, slab_q5_k_avx512, slab_q6_k_avx512, slab_iq2_xxs_avx512, slab_q4_1_avx512, slab_q5_0_avx512,
    slab_q5_1_avx512, slab_iq4_nl_avx512, slab_iq4_xs_avx512, slab_q3_k_avx512, slab_tq1_0_avx512, slab_tq2_0_avx512,
    slab_iq2_xs_avx512, slab_iq2_s_avx512, slab_iq3_xxs_avx512, slab_iq3_s_avx512, slab_iq1_s_avx512, slab_iq1_m_avx512,
    slab_q1_0_avx512, slab_q2_0_avx512, slab_q2_0_128_avx512, slab_nvfp4_avx512;

#endif
