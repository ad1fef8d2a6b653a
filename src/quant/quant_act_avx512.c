/* Activation quantisers with AVX-512; same bits as quant_act.c.
 *
 * Sixteen blocks of 32, or sixteen parts of a block of 256, at a time: their largest magnitudes and their sums of codes
 * come from one tree of vectors each, and scales are divided sixteen at a time. What is not a plain case is left to the
 * others.
 *
 * Floor: two passes over the values, each with a load of sixteen; 16 values take a load, a conversion, a product, a
 * narrowing and a store, two or three cycles, 0.05 ns a value. 4,096 values in the first-level cache, one core of an
 * AMD EPYC (Zen 5, virtual), medians of 41 rounds in alternation with AVX2: Q8_0 0.071 ns a value (0.201), Q8_K, which
 * looks for the first of the largest block by block, 0.123 (0.192). One of two cores of an Intel Xeon (Ice Lake,
 * virtual), medians of 41: Q8_K 0.16 ns a value in the first-level cache, 0.20 from the third-level one and 0.35 from
 * memory, where nothing was asked for ahead 0.26 and 0.50; Q8_0 0.13, 0.17 and 0.35. */
#include "quant/quant_internal.h"
#ifdef __AVX512VNNI__
#include <float.h>
#include "quant/quant_avx512.h"

enum { AHEAD = 1024 /* values between those that are asked for and the place of work; they may be another row's */ };

/* Bits of the magnitudes of sixteen values. */
INLINE __m512i magnitudes(const float *x)
{
    return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7fffffff));
}

INLINE __m512i join(__m512i a, __m512i b, bool sum)
{
    return sum ? _mm512_add_epi32(a, b) : _mm512_max_epi32(a, b);
}

/* Lane i: the sum, or the largest, of the lanes of v[i]. */
INLINE __m512i tree16(const __m512i v[16], bool sum)
{
    __m512i q[4], p[2];
    UNROLL for (int i = 0; i < 4; i++) /* quarter r: of v[4r + i] */
    {
        const __m512i a = v[i], b = v[4 + i], c = v[8 + i], d = v[12 + i];
        const __m512i ab = join(_mm512_shuffle_i32x4(a, b, 0x44), _mm512_shuffle_i32x4(a, b, 0xee), sum);
        const __m512i cd = join(_mm512_shuffle_i32x4(c, d, 0x44), _mm512_shuffle_i32x4(c, d, 0xee), sum);
        q[i] = join(_mm512_shuffle_i32x4(ab, cd, 0x88), _mm512_shuffle_i32x4(ab, cd, 0xdd), sum);
    }
    UNROLL for (int i = 0; i < 2; i++) /* two lanes each */
        p[i] = join(_mm512_unpacklo_epi64(q[2 * i], q[2 * i + 1]), _mm512_unpackhi_epi64(q[2 * i], q[2 * i + 1]), sum);
    const __m512 a = _mm512_castsi512_ps(p[0]), b = _mm512_castsi512_ps(p[1]);
    return join(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)), _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd)),
                sum);
}

/* Sixteen codes, stored and returned. */
INLINE __m512i codes16(const float *x, __m512 inv, int8_t *q)
{
    const __m512i v = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inv));
    _mm_storeu_si128((__m128i *)q, _mm512_cvtepi32_epi8(v));
    return v;
}

INLINE bool q8_0_blocks16(const float *x, int8_t *q, float *d, int32_t *offset)
{
    __m512i v[16];
    float inv16[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) v[i] = join(magnitudes(x + 32 * i), magnitudes(x + 32 * i + 16), false);
    const __m512 max = _mm512_castsi512_ps(tree16(v, false)), most = _mm512_set1_ps(FLT_MAX);
    const __m512 scale = _mm512_div_ps(max, _mm512_set1_ps(127)), inv = _mm512_div_ps(_mm512_set1_ps(1), scale);
    if ((_mm512_cmp_ps_mask(max, most, _CMP_LE_OQ) & _mm512_cmp_ps_mask(inv, most, _CMP_LE_OQ)) != 0xffff) return false;
    _mm512_storeu_ps(d, scale);
    _mm512_storeu_ps(inv16, inv);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const __m512 by = _mm512_set1_ps(inv16[i]);
        __builtin_prefetch(x + AHEAD + 32 * i);
        __builtin_prefetch(x + AHEAD + 32 * i + 16);
        v[i] = join(codes16(x + 32 * i, by, q + 32 * i), codes16(x + 32 * i + 16, by, q + 32 * i + 16), true);
    }
    _mm512_storeu_si512(offset, _mm512_slli_epi32(_mm512_sub_epi32(_mm512_setzero_si512(), tree16(v, true)), 7));
    return true;
}

void act_q8_0_avx512(const float *x, int64_t n_blocks, int8_t *q, float *d, int32_t *offset)
{
    for (int64_t b = 0; b < n_blocks; b += 16) {
        if (n_blocks - b >= 16 && q8_0_blocks16(x + 32 * b, q + 32 * b, d + b, offset + b)) continue;
        act_q8_0_avx2(x + 32 * b, n_blocks - b < 16 ? n_blocks - b : 16, q + 32 * b, d + b, offset + b);
    }
}

/* The first value whose magnitude has the given bits; there is one among the 256. */
INLINE float first_of_magnitude(const float *x, uint32_t bits)
{
    const __m512i want = _mm512_set1_epi32((int)bits);
    for (;; x += 16) {
        const __mmask16 hit = _mm512_cmpeq_epi32_mask(magnitudes(x), want);
        if (hit) return x[__builtin_ctz((unsigned)hit)];
    }
}

void act_q8_k_avx512(const float *x, int64_t n_blocks, int8_t *q, float *d, int16_t *bsums)
{
    for (int64_t b = 0; b < n_blocks; b++, x += 256, q += 256, bsums += 16) {
        __m512i v[16], max = magnitudes(x);
        for (int i = 16; i < 256; i += 16) max = join(max, magnitudes(x + i), false);
        const uint32_t bits = (uint32_t)_mm512_reduce_max_epi32(max);
        const float inv = -127 / first_of_magnitude(x, bits);
        if (bits > 0x7f7fffff || !(inv <= FLT_MAX && inv >= -FLT_MAX)) {
            act_q8_k_scalar(x, 1, q, d + b, bsums);
            continue;
        }
        d[b] = 1 / inv;
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __builtin_prefetch(x + AHEAD + 16 * i);
            v[i] = codes16(x + 16 * i, _mm512_set1_ps(inv), q + 16 * i);
        }
        _mm256_storeu_si256((__m256i *)bsums, _mm512_cvtepi32_epi16(tree16(v, true)));
    }
}
#else
void act_q8_0_avx512(const float *x, int64_t n_blocks, int8_t *q, float *d, int32_t *offset)
{
    act_q8_0_scalar(x, n_blocks, q, d, offset);
}

void act_q8_k_avx512(const float *x, int64_t n_blocks, int8_t *q, float *d, int16_t *bsums)
{
    act_q8_k_scalar(x, n_blocks, q, d, bsums);
}
#endif
