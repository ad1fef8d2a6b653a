/* The code books of IQ2_XS, IQ2_S and IQ3 as planes of bytes in the first-level cache, and look-ups of 64 indices at a
 * time (spec more-quants 8.3). Included by *_avx512.c only. */
#ifndef QUANT_QUANT_GRID_BOOK_AVX512_H
#define QUANT_QUANT_GRID_BOOK_AVX512_H
#include "quant/quant_avx512.h"
#include "quant/quant_k_avx2.h"

/* A code book by planes; whether it is looked up in two registers at once (looks_up_two). */
struct book {
    const uint8_t *plane[2];
    bool two;
};

INLINE int entries(enum qtype t)
{
    return t == QT_IQ3_XXS ? 256 : t == QT_IQ2_S ? 1024 : 512;
}

INLINE bool is_iq3(enum qtype t)
{
    return t == QT_IQ3_XXS || t == QT_IQ3_S;
}

INLINE struct book book_of(enum qtype t, bool two)
{
    if (t == QT_IQ2_XS) return (struct book){{iq2xs_planes[0], iq2xs_planes[1]}, two};
    if (t == QT_IQ2_S) return (struct book){{iq2s_planes[0], iq2s_planes[1]}, two};
    if (t == QT_IQ3_XXS) return (struct book){{iq3xxs_planes[0], iq3xxs_planes[1]}, two};
    return (struct book){{iq3s_planes[0], iq3s_planes[1]}, two};
}

/* Bits 8 and 9 of 64 indices. */
struct high {
    __mmask64 bit[2];
};

INLINE __m512i look_up256(bool two, const uint8_t *plane, __m512i index)
{
    const __m512i v0 = load512(plane), v1 = load512(plane + 64), v2 = load512(plane + 128), v3 = load512(plane + 192);
    const __mmask64 seven = _mm512_movepi8_mask(index);
    if (two)
        return _mm512_mask_blend_epi8(seven, _mm512_permutex2var_epi8(v0, index, v1),
                                      _mm512_permutex2var_epi8(v2, index, v3));
    const __mmask64 six = _mm512_movepi8_mask(_mm512_slli_epi16(index, 1));
    const __m512i low = _mm512_permutexvar_epi8(index, v0), high = _mm512_permutexvar_epi8(index, v2);
    return _mm512_mask_mov_epi8(_mm512_mask_permutexvar_epi8(low, six, index, v1), seven,
                                _mm512_mask_permutexvar_epi8(high, six, index, v3));
}

INLINE __m512i look_up512(bool two, const uint8_t *plane, __m512i index, const struct high *h)
{
    return _mm512_mask_blend_epi8(h->bit[0], look_up256(two, plane, index), look_up256(two, plane + 256, index));
}

/* Bytes of plane i. */
INLINE __m512i look_up(enum qtype t, const struct book *k, int i, __m512i index, const struct high *h)
{
    const uint8_t *const plane = k->plane[i];
    const bool two = k->two;
    if (entries(t) == 256) return look_up256(two, plane, index);
    if (entries(t) == 512) return look_up512(two, plane, index, h);
    return _mm512_mask_blend_epi8(h->bit[1], look_up512(two, plane, index, h), look_up512(two, plane + 512, index, h));
}

#endif
