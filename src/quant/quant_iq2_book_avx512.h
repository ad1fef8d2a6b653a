/* The code book of IQ2_XXS in registers (spec more-quants 8.3, gguf-and-quants 2.9). Included by *_avx512.c only. */
#ifndef QUANT_QUANT_IQ2_BOOK_AVX512_H
#define QUANT_QUANT_IQ2_BOOK_AVX512_H
#include "quant/quant_avx512.h"
#include "quant/quant_blocks.h"

/* Matrix over bits that gives seven signs an eighth, their parity. */
#define SIGN_PARITY 0x010204081020407f

/* The code book: plane h holds byte h of every code. */
struct book {
    __m512i plane[2][4];
};

INLINE struct book book_load(void)
{
    struct book k;
    for (int i = 0; i < 4; i++) {
        const __m512i a = load512(iq2xxs_codes + 64 * i), b = load512(iq2xxs_codes + 64 * i + 32);
        k.plane[0][i] = join256(_mm512_cvtepi16_epi8(a), _mm512_cvtepi16_epi8(b));
        k.plane[1][i] =
            join256(_mm512_cvtepi16_epi8(_mm512_srli_epi16(a, 8)), _mm512_cvtepi16_epi8(_mm512_srli_epi16(b, 8)));
    }
    return k;
}

INLINE __m512i look_up(const __m512i plane[4], __m512i index)
{
    const __m512i lo = _mm512_permutex2var_epi8(plane[0], index, plane[1]);
    const __m512i hi = _mm512_permutex2var_epi8(plane[2], index, plane[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lo, hi);
}

#endif
