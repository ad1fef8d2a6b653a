/* Codes and scales of the types with blocks of 32 signed codes, Q8_0, Q4_0 and MXFP4, for the AVX2 and AVX-512 kernels.
 */
#ifndef QUANT_QUANT_CODES32_AVX2_H
#define QUANT_QUANT_CODES32_AVX2_H
#include "quant/quant_avx2.h"
#include "quant/quant_blocks.h"

INLINE size_t block_bytes(enum qtype t)
{
    return t == QT_Q8_0 ? Q8_0_BYTES : t == QT_Q4_0 ? Q4_0_BYTES : MXFP4_BYTES;
}

INLINE __m256i nibbles(const uint8_t *p)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)p);
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(v, 4), v), _mm256_set1_epi8(15));
}

/* Codes of the block at b. */
INLINE __m256i codes(enum qtype t, const uint8_t *b)
{
    if (t == QT_Q8_0) return load256(b + Q8_0_QS);
    if (t == QT_Q4_0) return _mm256_sub_epi8(nibbles(b + Q4_0_QS), _mm256_set1_epi8(8));
    const __m128i doubled = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(doubled), nibbles(b + MXFP4_QS));
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

#endif
