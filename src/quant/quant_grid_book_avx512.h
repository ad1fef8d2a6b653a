/* The code books of IQ2_XS, IQ2_S and IQ3 as planes of bytes in the first-level cache, and look-ups of 64 indices at a
 * time (spec more-quants 8.3). Included by *_avx512.c only. */
#ifndef QUANT_QUANT_GRID_BOOK_AVX512_H
#define QUANT_QUANT_GRID_BOOK_AVX512_H
#include "quant/quant_avx512.h"
#include "quant/quant_k_avx2.h"

enum { MOST_ENTRIES = 1024 };

/* A code book by planes: byte 0, 1 of the packed codes; of IQ3 the six bits of values 0 and 1, of values 2 and 3, with
 * what happens to follow above. */
struct book {
    _Alignas(64) uint8_t plane[2][MOST_ENTRIES];
};

INLINE int entries(enum qtype t)
{
    return t == QT_IQ3_XXS ? 256 : t == QT_IQ2_S ? 1024 : 512;
}

INLINE bool is_iq3(enum qtype t)
{
    return t == QT_IQ3_XXS || t == QT_IQ3_S;
}

INLINE void book_fill(enum qtype t, struct book *k)
{
    const uint16_t *const codes = t == QT_IQ2_XS    ? iq2xs_codes
                                  : t == QT_IQ2_S   ? iq2s_codes
                                  : t == QT_IQ3_XXS ? iq3xxs_codes
                                                    : iq3s_codes;
    for (int i = 0; i < entries(t); i += 32) {
        const __m512i v = load512(codes + i);
        store256(k->plane[0] + i, _mm512_cvtepi16_epi8(v));
        store256(k->plane[1] + i, _mm512_cvtepi16_epi8(_mm512_srli_epi16(v, is_iq3(t) ? 6 : 8)));
    }
}

/* Bits 8 and 9 of 64 indices. */
struct high {
    __mmask64 bit[2];
};

/* Look-ups of single registers: those of two are three operations. */
INLINE __m512i look_up256(const uint8_t *plane, __m512i index)
{
    const __mmask64 six = _mm512_movepi8_mask(_mm512_slli_epi16(index, 1)), seven = _mm512_movepi8_mask(index);
    const __m512i low = _mm512_permutexvar_epi8(index, load512(plane));
    const __m512i high = _mm512_permutexvar_epi8(index, load512(plane + 128));
    return _mm512_mask_mov_epi8(_mm512_mask_permutexvar_epi8(low, six, index, load512(plane + 64)), seven,
                                _mm512_mask_permutexvar_epi8(high, six, index, load512(plane + 192)));
}

INLINE __m512i look_up512(const uint8_t *plane, __m512i index, const struct high *h)
{
    return _mm512_mask_blend_epi8(h->bit[0], look_up256(plane, index), look_up256(plane + 256, index));
}

INLINE __m512i look_up(enum qtype t, const uint8_t *plane, __m512i index, const struct high *h)
{
    if (entries(t) == 256) return look_up256(plane, index);
    if (entries(t) == 512) return look_up512(plane, index, h);
    return _mm512_mask_blend_epi8(h->bit[1], look_up512(plane, index, h), look_up512(plane + 512, index, h));
}

#endif
