/* What multiplies slabs of the types with blocks of 256: see quant_slab256_avx512.h. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"

/* Values that are summed up before they are multiplied by a scale: of a sub-block; or fewer, whose sum fits 16 bits, so
 * that one instruction multiplies it and adds: magnitudes up to 4 (Q3_K), 9 (IQ1_M) or 15 (Q4_K) times 127 times 16,
 * 32 times 127 times eight (Q6_K). Of other sums the product takes two, the adding a third. */
INLINE bool narrow(enum qtype t)
{
    return t == QT_Q3_K || t == QT_IQ1_M || t == QT_Q4_K || t == QT_Q6_K;
}

INLINE int sum_values(enum qtype t)
{
    return t == QT_Q6_K ? 8 : narrow(t) ? 16 : sub_block(t);
}

/* Vectors of four bytes per column before the scales: pairs of sums, or what the codes' height adds per sum. */
INLINE int panel_sums(enum qtype t)
{
    return has_min(t) ? 128 / sub_block(t) : 256 / sum_values(t);
}

/* acc + d*yd*v - dmin*yd*min */
INLINE __m512 step512(enum qtype t, __m512 acc, __m512 v, __m512i min, const struct part256 *s, __m512 yd)
{
    if (block_factor(t) != 1) v = _mm512_mul_ps(v, _mm512_set1_ps(block_factor(t)));
    v = _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(s->d), yd), v);
    if (!has_min(t)) return _mm512_add_ps(acc, v);
    const __m512 m = _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(s->dmin), yd), _mm512_cvtepi32_ps(min));
    return _mm512_add_ps(acc, _mm512_sub_ps(v, m));
}

/* total + scales times sums */
INLINE __m512i scaled512(enum qtype t, __m512i total, __m512i sum, __m512i scale)
{
    if (t == QT_Q2_K) return _mm512_add_epi32(total, sum);
    if (narrow(t)) return dpw512(total, sum, scale);
    return _mm512_add_epi32(total, _mm512_mullo_epi32(sum, scale));
}

/* Exact sums per row: codes times scales. */
INLINE void whole_sums512(enum qtype t, int C, int c0, int n, const struct part256 s[PARTS], const uint8_t *x,
                          __m512i total[PASS][PARTS])
{
    const struct codes512 codes = {{s[0].code, s[1].code, s[2].code, s[3].code}};
    const int block = sub_block(t) / 4, each = (t == QT_Q2_K ? 32 : sum_values(t)) / 4;
    zero512(n, total);
    for (int i = 0; i < 64; i += each) {
        __m512i sum[PASS][PARTS];
        if (t == QT_Q2_K && n > 1) {
            groups512(C, c0, n, &codes, x, i, each, total);
            continue;
        }
        if (has_min(t))
            zero512(n, sum);
        else
            start512(n, x + 4 * ((64 + i / each) * C + c0), sum);
        groups512(C, c0, n, &codes, x, i, each, sum);
        /* Q2_K: of one column four chains of products would wait for themselves */
        UNROLL for (int h = 0; h < PARTS; h++)
        {
            __m512i scale = load512(s[h].scale[i / block]);
            __asm__("" : "+v"(scale)); /* loaded once, not once per column */
            UNROLL for (int c = 0; c < n; c++) total[c][h] = scaled512(t, total[c][h], sum[c][h], scale);
        }
    }
}

/* The same of sub-blocks [from, to) as floats. */
INLINE struct chains512 float_sums512(enum qtype t, int C, int c0, int n, const struct part256 s[PARTS],
                                      const uint8_t *x, int from, int to)
{
    const struct codes512 codes = {{s[0].code, s[1].code, s[2].code, s[3].code}};
    const int each = sub_block(t) / 4;
    struct chains512 total;
    chains_zero(n, &total);
    for (int i = from; i < to; i++) {
        __m512i sum[PASS][PARTS];
        start512(n, x + 4 * ((64 + i) * C + c0), sum);
        groups512(C, c0, n, &codes, x, each * i, each, sum);
        UNROLL for (int h = 0; h < PARTS; h++)
        {
            __m512 scale = _mm512_load_ps(s[h].float_scale[i]);
            __asm__("" : "+v"(scale)); /* loaded once, not once per column */
            UNROLL for (int c = 0; c < n; c++) total.v[c][h] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[c][h]), scale, total.v[c][h]);
        }
    }
    return total;
}

/* Exact sums of the halves of a block, added: that rounds once. */
INLINE struct chains512 half_sums512(enum qtype t, int C, int c0, int n, const struct part256 s[PARTS],
                                     const uint8_t *x)
{
    const int half = 128 / sub_block(t);
    _Alignas(64) float first[PASS * QUANT_SLAB];
    struct chains512 v = float_sums512(t, C, c0, n, s, x, 0, half);
    chains_store(n, &v, first);
    v = float_sums512(t, C, c0, n, s, x, half, 2 * half);
    UNROLL for (int c = 0; c < n; c++) UNROLL for (int h = 0; h < PARTS; h++) v.v[c][h] =
        _mm512_add_ps(_mm512_load_ps(first + QUANT_SLAB * c + SLAB_ROWS * h), v.v[c][h]);
    return v;
}

/* Those of thirds, of at most six sub-blocks of sixteen, added as integers. */
INLINE void third_sums512(enum qtype t, int C, int c0, int n, const struct part256 s[PARTS], const uint8_t *x,
                          __m512i total[PASS][PARTS])
{
    static const int from[] = {0, 6, 11, 16};
    _Alignas(64) int32_t before[PASS][PARTS][SLAB_ROWS];
    UNROLL for (int i = 0; i < 3; i++)
    {
        const struct chains512 v = float_sums512(t, C, c0, n, s, x, from[i], from[i + 1]);
        UNROLL for (int c = 0; c < n; c++) UNROLL for (int h = 0; h < PARTS; h++)
        {
            total[c][h] = _mm512_cvtps_epi32(v.v[c][h]);
            if (i) total[c][h] = _mm512_add_epi32(total[c][h], load512(before[c][h]));
            if (i < 2) store512(before[c][h], total[c][h]);
        }
    }
}

/* Sums of a block, rounded to floats once. */
INLINE struct chains512 sums512(enum qtype t, int C, int c0, int n, const struct part256 s[PARTS], const uint8_t *x)
{
    if (float_scales(t) && sub_block(t) == 32) return half_sums512(t, C, c0, n, s, x);
    __m512i total[PASS][PARTS];
    struct chains512 v;
    if (float_scales(t))
        third_sums512(t, C, c0, n, s, x, total);
    else
        whole_sums512(t, C, c0, n, s, x, total);
    UNROLL for (int c = 0; c < n; c++) UNROLL for (int h = 0; h < PARTS; h++) v.v[c][h] =
        _mm512_cvtepi32_ps(total[c][h]);
    return v;
}

INLINE void mins512(enum qtype t, int C, int c0, int n, const struct part256 s[PARTS], const uint8_t *x,
                    __m512i min[PASS][PARTS])
{
    zero512(n, min);
    UNROLL for (int i = 0; i < panel_sums(t); i++)
    {
        __m512i w[PARTS];
        UNROLL for (int h = 0; h < PARTS; h++) w[h] = load512(s[h].min[i]);
        UNROLL for (int c = 0; c < n; c++)
        {
            const __m512i a = spread512(x + 4 * ((64 + i) * C + c0 + c));
            UNROLL for (int h = 0; h < PARTS; h++) min[c][h] = _mm512_dpwssd_epi32(min[c][h], w[h], a);
        }
    }
}

/* Columns [c0, c0 + n) of C. Their chains of floats have a step a block: registers are for the sums. */
INLINE void pass256(enum qtype t, int C, int c0, int n, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    const struct part256 *s = (const struct part256 *)(const void *)slab;
    for (int b = 0; b < n_blocks; b++, s += PARTS, x += 4 * (65 + panel_sums(t)) * C) {
        __m512i min[PASS][PARTS];
        const struct chains512 v = sums512(t, C, c0, n, s, x);
        if (has_min(t)) mins512(t, C, c0, n, s, x, min);
        struct chains512 k = chains_load(n, acc);
        UNROLL for (int c = 0; c < n; c++)
        {
            const __m512 yd = spread_float(x + 4 * ((64 + panel_sums(t)) * C + c0 + c));
            UNROLL for (int h = 0; h < PARTS; h++) k.v[c][h] = step512(t, k.v[c][h], v.v[c][h], min[c][h], s + h, yd);
        }
        chains_store(n, &k, acc);
    }
}

/* Each class by one of its types. */
QUANT_MULTIPLY(slab256_q2_k, pass256, QT_Q2_K)
QUANT_MULTIPLY(slab256_q4_k, pass256, QT_Q4_K)
QUANT_MULTIPLY(slab256_q5_k, pass256, QT_Q5_K)
QUANT_MULTIPLY(slab256_32, pass256, QT_IQ3_S)
QUANT_MULTIPLY(slab256_32_eighths, pass256, QT_IQ1_S)
QUANT_MULTIPLY(slab256_16, pass256, QT_IQ2_S)
QUANT_MULTIPLY(slab256_q6_k, pass256, QT_Q6_K)
QUANT_MULTIPLY(slab256_16_narrow, pass256, QT_Q3_K)
QUANT_MULTIPLY(slab256_16_eighths, pass256, QT_IQ1_M)
#endif
