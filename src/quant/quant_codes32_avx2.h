/* Codes and scales of the types whose steps cover 32 codes (quant_traits.h), for the AVX2 and AVX-512 kernels. */
#ifndef QUANT_QUANT_CODES32_AVX2_H
#define QUANT_QUANT_CODES32_AVX2_H
#include "quant/quant_avx2.h"
#include "quant/quant_traits.h"

INLINE __m256i nibbles(const uint8_t *p)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)p);
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(v, 4), v), _mm256_set1_epi8(15));
}

/* All bits of byte i are bit i of 32. */
INLINE __m256i bytes_of_bits(const uint8_t *p)
{
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(spread32(p), spread), bit), bit);
}

INLINE __m256i look_up16(__m128i table, __m256i index)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index);
}

/* Codes of step b of the block at p. */
INLINE __m256i codes(enum qtype t, const uint8_t *p, int b)
{
    if (t == QT_Q8_0) return load256(p + Q8_0_QS);
    const __m256i n = nibbles(p + nibbles_at(t, b));
    if (t == QT_Q4_0) return _mm256_sub_epi8(n, _mm256_set1_epi8(8));
    if (t == QT_Q4_1) return n;
    /* n - 16: the upper bits are set where the fifth one is not */
    if (t == QT_Q5_0)
        return _mm256_or_si256(n, _mm256_andnot_si256(bytes_of_bits(p + Q5_0_QH), _mm256_set1_epi8((char)0xf0)));
    if (t == QT_Q5_1) return _mm256_or_si256(n, _mm256_and_si256(bytes_of_bits(p + Q5_1_QH), _mm256_set1_epi8(16)));
    if (t == QT_MXFP4) return look_up16(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12), n);
    return look_up16(_mm_loadu_si128((const __m128i *)iq4_levels), n);
}

/* Scales of the blocks at the same offset of eight rows. */
INLINE __m256 scales(enum qtype t, const uint8_t *const row[ROWS], size_t at)
{
    if (t != QT_MXFP4) return f16_of_rows(row, at);
    const __m256i e = _mm256_setr_epi32(row[0][at], row[1][at], row[2][at], row[3][at], row[4][at], row[5][at],
                                        row[6][at], row[7][at]);
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, _mm256_cmpgt_epi32(e, one)));
}

/* The scales of the eight steps of a block of IQ4_XS in eight rows, one row per lane. */
INLINE void iq4_xs_scales(const uint8_t *const row[ROWS], size_t at, __m256 v[8])
{
    const __m256i by = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14),
                  shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    __m256i s[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const __m256i low = _mm256_srlv_epi32(spread32(row[r] + at + IQ4_XS_LOW), shift);
        const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(load_u16(row[r] + at + IQ4_XS_HIGH)), by);
        const __m256i both = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                             _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
        s[r] = _mm256_sub_epi32(both, _mm256_set1_epi32(32));
    }
    transpose8(s);
    UNROLL for (int i = 0; i < 8; i++) v[i] = _mm256_cvtepi32_ps(s[i]);
}

/* Scales of the weight rows (second: see has_second) and of an activation row. */
INLINE __m256 step(enum qtype t, __m256 acc, __m256i sum, __m256 dw, __m256 second, __m256 da, float x_sum)
{
    const __m256 s = _mm256_cvtepi32_ps(sum);
    if (t == QT_Q8_0) return _mm256_add_ps(acc, _mm256_mul_ps(s, _mm256_mul_ps(dw, da)));
    if (t == QT_Q4_0) return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_mul_ps(s, dw), da));
    const __m256 d = _mm256_mul_ps(da, dw);
    if (t == QT_IQ4_XS) return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_mul_ps(d, second), s));
    if (!has_second(t)) return _mm256_add_ps(acc, _mm256_mul_ps(d, s));
    const __m256 min = _mm256_mul_ps(second, _mm256_set1_ps(x_sum));
    return _mm256_add_ps(acc, _mm256_add_ps(_mm256_mul_ps(d, s), min));
}

#endif
