/* Indices of IQ1_S and IQ1_M in their code book (spec more-quants 2.5). Included by *_avx512.c only. */
#ifndef QUANT_QUANT_IQ1_INDEX_AVX512_H
#define QUANT_QUANT_IQ1_INDEX_AVX512_H
#include "quant/quant_avx512.h"
#include "quant/quant_grid_blocks.h"

enum { IQ1_GROUPS = 32 };

/* The bits beside the low bytes of indices: IQ1_S: a word in each four groups' 64 bits; IQ1_M: a byte in each two
 * groups' 32. */
INLINE __m512i iq1_bits(enum qtype t, const uint8_t *b)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(b + (t == QT_IQ1_S ? IQ1_S_HIGH : IQ1_M_HIGH)));
    return t == QT_IQ1_S ? _mm512_cvtepu16_epi64(v) : _mm512_cvtepu8_epi32(v);
}

INLINE void put_indices(enum qtype t, const uint8_t *b, uint16_t index[IQ1_GROUPS])
{
    const uint64_t high = t == QT_IQ1_S ? 0x0900060003000000 : 0x2400200004000000;
    const __m512i top = _mm512_multishift_epi64_epi8(_mm512_set1_epi64((long long)high), iq1_bits(t, b));
    const __m512i low = _mm512_cvtepu8_epi16(load256(b + (t == QT_IQ1_S ? IQ1_S_LOW : IQ1_M_LOW)));
    store512(index, _mm512_ternarylogic_epi32(top, _mm512_set1_epi16(0x700), low, 0xea));
}

/* Codes of two indices of 16 bits, the second above the first: a load that has what lies before it below, and one that
 * takes that place. */
INLINE uint32_t two_codes(uint32_t index)
{
    uint32_t both = load_u32((const uint8_t *)&iq1s_book + 2 * (size_t)(index >> 16));
    __asm__("movw %1, %w0" : "+r"(both) : "m"(iq1s_book.code[index & 0xffff]));
    return both;
}

/* Codes of four indices, which one load takes: loads are what decides it. */
INLINE void four_codes(const uint16_t index[4], uint32_t code[2])
{
    uint64_t four;
    memcpy(&four, index, sizeof four);
    code[0] = two_codes((uint32_t)four);
    code[1] = two_codes((uint32_t)(four >> 32));
}

#endif
