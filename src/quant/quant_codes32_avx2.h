/* Codes and scales of the types whose steps cover 32 codes, for the AVX2 and AVX-512 kernels: Q8_0, Q4_0, Q4_1, Q5_0,
 * Q5_1, IQ4_NL, MXFP4, and IQ4_XS, whose blocks hold eight times 32. A step has one or two scales per weight row. */
#ifndef QUANT_QUANT_CODES32_AVX2_H
#define QUANT_QUANT_CODES32_AVX2_H
#include "quant/quant_avx2.h"
#include "quant/quant_blocks.h"

/* Of IQ4_XS: of eight steps. */
INLINE size_t block_bytes(enum qtype t)
{
    return t == QT_Q8_0     ? Q8_0_BYTES
           : t == QT_Q4_0   ? Q4_0_BYTES
           : t == QT_Q4_1   ? Q4_1_BYTES
           : t == QT_Q5_0   ? Q5_0_BYTES
           : t == QT_Q5_1   ? Q5_1_BYTES
           : t == QT_IQ4_NL ? IQ4_NL_BYTES
           : t == QT_IQ4_XS ? IQ4_XS_BYTES
                            : MXFP4_BYTES;
}

/* Where the block of step b begins. */
INLINE size_t block_at(enum qtype t, int b)
{
    return (size_t)(t == QT_IQ4_XS ? b / 8 : b) * block_bytes(t);
}

INLINE bool has_min(enum qtype t)
{
    return t == QT_Q4_1 || t == QT_Q5_1;
}

/* A minimum, or the sub-block's own scale. */
INLINE bool has_second(enum qtype t)
{
    return has_min(t) || t == QT_IQ4_XS;
}

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
    if (t == QT_Q4_0) return _mm256_sub_epi8(nibbles(p + Q4_0_QS), _mm256_set1_epi8(8));
    if (t == QT_Q4_1) return nibbles(p + Q4_1_QS);
    if (t == QT_Q5_0) { /* n - 16: the upper bits are set where the fifth one is not */
        const __m256i high = _mm256_andnot_si256(bytes_of_bits(p + Q5_0_QH), _mm256_set1_epi8((char)0xf0));
        return _mm256_or_si256(nibbles(p + Q5_0_QS), high);
    }
    if (t == QT_Q5_1) {
        const __m256i high = _mm256_and_si256(bytes_of_bits(p + Q5_1_QH), _mm256_set1_epi8(16));
        return _mm256_or_si256(nibbles(p + Q5_1_QS), high);
    }
    if (t == QT_MXFP4) {
        const __m128i doubled = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
        return look_up16(doubled, nibbles(p + MXFP4_QS));
    }
    const __m128i levels = _mm_loadu_si128((const __m128i *)iq4_levels);
    return look_up16(levels, nibbles(p + (t == QT_IQ4_NL ? IQ4_NL_QS : IQ4_XS_QS + 16 * (b % 8))));
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

/* The activation scale of step b. */
INLINE float step_d(enum qtype t, const uint8_t *x, int k, int b)
{
    return row_d(x, k)[t == QT_IQ4_XS ? b / 8 : b];
}

#endif
