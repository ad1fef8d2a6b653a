/* What multiplies slabs of the types with blocks of 256: see quant_slab256_avx512.h. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"

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

/* Values whose sum fits 16 bits, so that one instruction multiplies it by a scale and adds: magnitudes up to 4 (Q3_K),
 * 9 (IQ1_M) or 15 (Q4_K, half of a sub-block) times 128 times 16. Of other types' sums the product takes two, the
 * adding a third. */
INLINE int narrow_values(enum qtype t)
{
    return t == QT_Q3_K || t == QT_IQ1_M || t == QT_Q4_K ? 16 : 0;
}

/* total + scales times sums */
INLINE __m512i scaled512(enum qtype t, __m512i total, __m512i sum, __m512i scale)
{
    if (t == QT_Q2_K) return _mm512_add_epi32(total, sum);
    if (narrow_values(t)) return _mm512_dpwssd_epi32(total, sum, scale);
    return _mm512_add_epi32(total, _mm512_mullo_epi32(sum, scale));
}

/* The scales of sub-block i; for narrow sums without what their sign put into the upper halves. */
INLINE __m512i scale512(enum qtype t, const struct half256 *s, int i)
{
    const __m512i v = load512(s->scale[i]);
    return t == QT_Q3_K ? _mm512_and_si512(v, _mm512_set1_epi32(0xffff)) : v;
}

/* Exact sums per row: codes times scales. */
INLINE void sums512(enum qtype t, int C, const struct half256 s[HALVES], const uint8_t *x, __m512i total[PANEL][HALVES])
{
    const int block = sub_block(t) / 4, each = t == QT_Q2_K ? 8 : narrow_values(t) ? narrow_values(t) / 4 : block;
    UNROLL for (int c = 0; c < C; c++) total[c][0] = total[c][1] = _mm512_setzero_si512();
    for (int i = 0; i < 64; i += each) {
        __m512i sum[PANEL][HALVES];
        if (t == QT_Q2_K && C > 2) {
            groups512(C, s[0].code, s[1].code, x, i, each, total);
            continue;
        }
        UNROLL for (int c = 0; c < C; c++) sum[c][0] = sum[c][1] =
            has_min(t) ? _mm512_setzero_si512() : spread512(x + 4 * ((64 + i / block) * C + c));
        groups512(C, s[0].code, s[1].code, x, i, each, sum);
        /* Q2_K: of few columns one chain of products would wait for itself */
        UNROLL for (int h = 0; h < HALVES; h++)
        {
            const __m512i scale = scale512(t, s + h, i / block);
            UNROLL for (int c = 0; c < C; c++) total[c][h] = scaled512(t, total[c][h], sum[c][h], scale);
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

INLINE void columns256(enum qtype t, int C, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    const struct half256 *s = (const struct half256 *)(const void *)slab;
    const int sums = panel_sums(t);
    for (int b = 0; b < n_blocks; b++, s += HALVES, x += 4 * (65 + sums) * C) {
        __m512i total[PANEL][HALVES], min[PANEL][HALVES];
        sums512(t, C, s, x, total);
        if (has_min(t)) mins512(C, s, x, min);
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m512 yd = spread_float(x + 4 * ((64 + sums) * C + c));
            UNROLL for (int h = 0; h < HALVES; h++)
            {
                float *const v = acc_at(acc, c, h);
                _mm512_store_ps(v, step512(t, _mm512_load_ps(v), total[c][h], min[c][h], s + h, yd));
            }
        }
    }
}

/* Each class by one of its types. */
QUANT_MULTIPLY(slab256_q2_k, columns256, QT_Q2_K)
QUANT_MULTIPLY(slab256_q4_k, columns256, QT_Q4_K)
QUANT_MULTIPLY(slab256_q5_k, columns256, QT_Q5_K)
QUANT_MULTIPLY(slab256_32, columns256, QT_IQ3_S)
QUANT_MULTIPLY(slab256_32_eighths, columns256, QT_IQ1_S)
QUANT_MULTIPLY(slab256_16, columns256, QT_Q6_K)
QUANT_MULTIPLY(slab256_16_narrow, columns256, QT_Q3_K)
QUANT_MULTIPLY(slab256_16_eighths, columns256, QT_IQ1_M)
#endif
