/* Codes of NVFP4, Q1_0, Q2_0 and Q2_0_128 for the AVX-512 kernels. Included by *_avx512.c only. */
#ifndef QUANT_QUANT_WIDE_AVX512_H
#define QUANT_QUANT_WIDE_AVX512_H
#include "quant/quant_avx512.h"
#include "quant/quant_wide_avx2.h"

/* Unsigned codes 64i.. of a block, wide_offset too high. */
INLINE __m512i wide_codes(enum qtype t, const uint8_t *b, int i)
{
    if (t == QT_Q1_0) {
        uint64_t set;
        memcpy(&set, b + BITS_QS + 8 * i, sizeof set);
        return _mm512_maskz_set1_epi8(set, 2);
    }
    if (t == QT_NVFP4) {
        const __m512i twice = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3),
                      shift = _mm512_setr_epi64(0, 4, 0, 4, 0, 4, 0, 4);
        const __m512i v = _mm512_permutexvar_epi64(twice, _mm512_castsi256_si512(load256(b + NVFP4_QS)));
        const __m512i nibble = _mm512_and_si512(_mm512_srlv_epi64(v, shift), _mm512_set1_epi8(15));
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(nvfp4_levels()), nibble);
    }
    const __m512i two_bytes = _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(b + BITS_QS + 16 * i)));
    const __m512i by_two = _mm512_set1_epi64(0x0e0c0a0806040200);
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(by_two, two_bytes), _mm512_set1_epi8(3));
}

#endif
