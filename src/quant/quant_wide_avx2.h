/* The types whose blocks take two or more blocks of activations (ACT_Q8_0): Q1_0, Q2_0, Q2_0_128, which scale the sum
 * of all, and NVFP4, which scales every 16 values (spec more-quants 2.6, 2.7). For the AVX2 and AVX-512
 * kernels. */
#ifndef QUANT_QUANT_WIDE_AVX2_H
#define QUANT_QUANT_WIDE_AVX2_H
#include "quant/quant_avx2.h"
#include "quant/quant_blocks.h"
#include "quant/quant_internal.h"

/* Times 64 values of a block. */
INLINE int wide_parts(enum qtype t)
{
    return t == QT_Q1_0 || t == QT_Q2_0_128 ? 2 : 1;
}

INLINE size_t wide_bytes(enum qtype t)
{
    return t == QT_NVFP4 ? NVFP4_BYTES : BITS_QS + (t == QT_Q2_0_128 ? 32 : 16);
}

/* How much too high unsigned codes are, those of Q1_0 being 0 and 2. */
INLINE int wide_offset(enum qtype t)
{
    return t == QT_NVFP4 ? NVFP4_OFFSET : 1;
}

/* Unsigned values of the nibbles of NVFP4. */
INLINE __m128i nvfp4_levels(void)
{
    return _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
}

/* The four scales of the blocks at the same offset of eight rows: as F16 with the bits of E4M3 they are 2^-8 times the
 * value, of which half is wanted. */
INLINE void nvfp4_scales(const uint8_t *const row[ROWS], size_t at, __m256 scale[4])
{
    const __m256i each =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i v = _mm256_setr_epi32(
        (int)load_u32(row[0] + at), (int)load_u32(row[1] + at), (int)load_u32(row[2] + at), (int)load_u32(row[3] + at),
        (int)load_u32(row[4] + at), (int)load_u32(row[5] + at), (int)load_u32(row[6] + at), (int)load_u32(row[7] + at));
    const __m256i b = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v, each), order);
    const __m256i valid = _mm256_andnot_si256(_mm256_cmpeq_epi8(b, _mm256_set1_epi8(0x7f)), b);
    UNROLL for (int i = 0; i < 2; i++)
    {
        const __m128i two = i ? _mm256_extracti128_si256(valid, 1) : _mm256_castsi256_si128(valid);
        const __m256i half =
            _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepu8_epi16(two), 7), _mm256_set1_epi16(0x3f80));
        const __m256 by = _mm256_set1_ps(0x1p7f);
        scale[2 * i] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), by);
        scale[2 * i + 1] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), by);
    }
}

#endif
