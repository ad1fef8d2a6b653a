/* What the AVX-512 slab kernels share (quant.h). Included by quant_slab*_avx512.c only.
 *
 * One float lane per weight row. A slab is two halves of sixteen rows; a vector holds four consecutive codes of row 0,
 * of row 1 ..., unsigned, so one instruction multiplies 64 codes with four activations, which lie side by side in the
 * panel, in all lanes and adds. The sums of 32 rows times eight columns fit the registers: sixteen chains of products,
 * as an instruction's latency of five times two units needs ten (Intel; with four columns 0.8 of the peak were out of
 * reach). */
#ifndef QUANT_QUANT_SLAB_AVX512_H
#define QUANT_QUANT_SLAB_AVX512_H
#include "quant/quant_avx512.h"

enum { HALVES = QUANT_SLAB / SLAB_ROWS, PANEL = 8 };

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

/* sum += the products of groups [j0, j0 + n) of a slab's codes, [group][row][4] of each half, with the columns of x. */
INLINE void groups512(int C, const uint8_t (*code0)[64], const uint8_t (*code1)[64], const uint8_t *x, int j0, int n,
                      __m512i sum[PANEL][HALVES])
{
    UNROLL for (int j = j0; j < j0 + n; j++)
    {
        const __m512i w0 = load512(code0[j]), w1 = load512(code1[j]);
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m512i a = spread512(x + 4 * (j * C + c));
            sum[c][0] = _mm512_dpbusd_epi32(sum[c][0], w0, a);
            sum[c][1] = _mm512_dpbusd_epi32(sum[c][1], w1, a);
        }
    }
}

/* The codes of 32 values in registers: columns pass by, PASS at a time, so that the float steps of some lie between the
 * products of others. With a float step per 32 values that is faster than all columns at once (groups512). */
enum { PASS = 5 };

struct held512 {
    __m512i w[HALVES][8];
};

INLINE struct held512 hold512(const uint8_t (*code0)[64], const uint8_t (*code1)[64])
{
    struct held512 v;
    UNROLL for (int j = 0; j < 8; j++)
    {
        v.w[0][j] = load512(code0[j]), v.w[1][j] = load512(code1[j]);
        __asm__("" : "+v"(v.w[0][j]), "+v"(v.w[1][j])); /* loaded once, not once per pass */
    }
    return v;
}

/* Columns of the first of one or two passes. */
INLINE int first_pass(int C)
{
    return C <= PASS ? C : (C + 1) / 2;
}

/* sum = what `start` has of columns [c0, c0 + n) of C, plus their products; x: the columns' codes of the 32 values. */
INLINE void pass512(int C, int c0, int n, const struct held512 *v, const uint8_t *start, const uint8_t *x,
                    __m512i sum[PASS][HALVES])
{
    UNROLL for (int c = 0; c < n; c++) sum[c][0] = sum[c][1] = spread512(start + 4 * (c0 + c));
    UNROLL for (int j = 0; j < 8; j++) UNROLL for (int c = 0; c < n; c++)
    {
        const __m512i a = spread512(x + 4 * (j * C + c0 + c));
        sum[c][0] = _mm512_dpbusd_epi32(sum[c][0], v->w[0][j], a);
        sum[c][1] = _mm512_dpbusd_epi32(sum[c][1], v->w[1][j], a);
    }
}

/* What a pass has left in memory stays there: the registers belong to the next one. */
INLINE void pass_end(void)
{
    __asm__("" : : : "memory");
}

/* Starts the chains of n columns. */
INLINE void acc_start(float *acc, int n)
{
    for (int i = 0; i < HALVES * n; i++) _mm512_store_ps(acc + SLAB_ROWS * i, _mm512_setzero_ps());
}

/* The chain of half h of column c. It stays in memory between steps: the registers belong to the sums. */
INLINE float *acc_at(float *acc, int c, int h)
{
    return acc + QUANT_SLAB * c + SLAB_ROWS * h;
}

INLINE void acc_scale(float *acc, int n, float factor)
{
    for (int i = 0; i < HALVES * n; i++)
        _mm512_store_ps(acc + SLAB_ROWS * i,
                        _mm512_mul_ps(_mm512_load_ps(acc + SLAB_ROWS * i), _mm512_set1_ps(factor)));
}

/* Fewest activation rows with which unpacking pays: with fewer the direct kernels are as fast, which need no panels.
 * Four rows share a pass of theirs (but for code books). Their time over that of slabs for 4,096 values, one core of an
 * Intel Xeon (Emerald Rapids), the weights in the second-level cache, and 64 MB of them: 5 rows 1.5 to 2 and 1.3 to
 * 1.6 for types with blocks of 32 to 128 but Q8_0 (1.1 and 1.1; 9 rows 1.4, 1.2), 4 rows 1.2 and 1.1; Q2_K, Q4_K and
 * Q5_K with 6 rows 1.3 and 1.15, with 4 rows 1.1 and 0.9; Q6_K with 8 rows 1.2 and 1.05; Q3_K and TQ2_0 with 4 rows 1.1
 * to 1.4 and 1.1; IQ4_XS, TQ1_0 and code books with 3 rows 1.1 to 2.2 and 1.0 to 1.8. From memory not measured: Q1_0,
 * Q2_0, Q4_1, Q5, TQ, IQ1_S, IQ2_S and IQ3_S. */
#define SLAB_FROM_32(t) ((t) == QT_Q8_0 ? 9 : 5)
#define SLAB_FROM_256(t)                                                                                               \
    ((t) == QT_Q6_K                      ? 8                                                                           \
     : (t) == QT_Q2_K                    ? 5                                                                           \
     : (t) == QT_Q4_K || (t) == QT_Q5_K  ? 6                                                                           \
     : (t) == QT_Q3_K || (t) == QT_TQ2_0 ? 4                                                                           \
                                         : 3)

/* Defines multiply of a class of types by the body for every number of columns. */
#define QUANT_MULTIPLY(name, body, class)                                                                              \
    void name(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc)                   \
    {                                                                                                                  \
        if (piece & SLAB_FIRST) acc_start(acc, n);                                                                     \
        if (n == 8) body(class, 8, n_blocks, slab, panel, acc);                                                        \
        if (n == 7) body(class, 7, n_blocks, slab, panel, acc);                                                        \
        if (n == 6) body(class, 6, n_blocks, slab, panel, acc);                                                        \
        if (n == 5) body(class, 5, n_blocks, slab, panel, acc);                                                        \
        if (n == 4) body(class, 4, n_blocks, slab, panel, acc);                                                        \
        if (n == 3) body(class, 3, n_blocks, slab, panel, acc);                                                        \
        if (n == 2) body(class, 2, n_blocks, slab, panel, acc);                                                        \
        if (n == 1) body(class, 1, n_blocks, slab, panel, acc);                                                        \
    }

extern const struct quant_slab slab_q8_0_avx512, slab_q4_0_avx512, slab_mxfp4_avx512, slab_q2_k_avx512,
    slab_q4_k_avx512, slab_q5_k_avx512, slab_q6_k_avx512, slab_iq2_xxs_avx512, slab_q4_1_avx512, slab_q5_0_avx512,
    slab_q5_1_avx512, slab_iq4_nl_avx512, slab_iq4_xs_avx512, slab_q3_k_avx512, slab_tq1_0_avx512, slab_tq2_0_avx512,
    slab_iq2_xs_avx512, slab_iq2_s_avx512, slab_iq3_xxs_avx512, slab_iq3_s_avx512, slab_iq1_s_avx512, slab_iq1_m_avx512,
    slab_q1_0_avx512, slab_q2_0_avx512, slab_q2_0_128_avx512, slab_nvfp4_avx512;

#endif
