/* Look-ups in the code books of IQ2 and IQ3 for the slab kernels with vectors of 32 bytes: an entry of each of eight
 * rows, a lane each, so that nothing is transposed behind them; signs are applied to all rows at once. An entry of IQ3
 * is four magnitudes; one of IQ2 is eight nibbles (iq2xxs_nibbles), which look up the codes once they have their signs.
 *
 * Indices and signs of a block are all in memory before the first look-up: where every 32 values waited for theirs, the
 * processor's queues filled with what waited, and IQ2_XXS needed 2,860 instead of 2,410 cycles (the measure of
 * quant_slab256_avx2.inc). Each index is loaded alone: taken out of loads of two they needed 2,640 instead of 2,270. */
#ifndef QUANT_QUANT_SLAB_BOOK_AVX2_H
#define QUANT_QUANT_SLAB_BOOK_AVX2_H
#include "quant/quant_k_avx2.h"

INLINE const uint32_t *book_of(enum qtype t)
{
    return t == QT_IQ2_XXS   ? iq2xxs_nibbles
           : t == QT_IQ2_XS  ? iq2xs_nibbles
           : t == QT_IQ2_S   ? iq2s_nibbles
           : t == QT_IQ3_XXS ? iq3xxs_grid
                             : iq3s_grid;
}

/* Bytes of an index. */
INLINE int index_bytes(enum qtype t)
{
    return t == QT_IQ2_XXS || t == QT_IQ3_XXS ? 1 : 2;
}

/* Sixteen bytes at the same place of eight rows: lanes of four bytes. */
INLINE void quads_of_rows(const uint8_t *const row[ROWS], size_t at, __m256i v[4])
{
    __m256i a[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m128i first = _mm_loadu_si128((const __m128i *)(row[i] + at));
        a[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(first),
                                       _mm_loadu_si128((const __m128i *)(row[i + 4] + at)), 1);
    }
    UNROLL for (int i = 0; i < 2; i++)
    {
        const __m256i b = i ? _mm256_unpackhi_epi32(a[0], a[1]) : _mm256_unpacklo_epi32(a[0], a[1]);
        const __m256i c = i ? _mm256_unpackhi_epi32(a[2], a[3]) : _mm256_unpacklo_epi32(a[2], a[3]);
        v[2 * i] = _mm256_unpacklo_epi64(b, c);
        v[2 * i + 1] = _mm256_unpackhi_epi64(b, c);
    }
}

INLINE __m256i entry(enum qtype t, const uint8_t *index)
{
    return _mm256_set1_epi32((int)book_of(t)[index_bytes(t) == 1 ? *index : load_u16(index)]);
}

/* Entry i of every row; indices of rows are `next` bytes apart. */
INLINE __m256i entries_of_rows(enum qtype t, const uint8_t *index, size_t next, int i)
{
#define ENTRY(r) entry(t, index + (r)*next + index_bytes(t) * i)
    const __m256i a = _mm256_blend_epi32(ENTRY(0), ENTRY(1), 0x02), b = _mm256_blend_epi32(ENTRY(2), ENTRY(3), 0x08);
    const __m256i c = _mm256_blend_epi32(ENTRY(4), ENTRY(5), 0x20), d = _mm256_blend_epi32(ENTRY(6), ENTRY(7), 0x80);
#undef ENTRY
    return _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x0c), _mm256_blend_epi32(c, d, 0xc0), 0xf0);
}

/* Nibbles with their signs, byte j of every lane of `signs`, in bit 0. Copies 7 bits apart bring bits i and i + 4 to
 * the nibbles of byte i: three of the lower seven bits, so that none meets the next, and one of all eight. */
INLINE __m256i with_signs(__m256i v, __m256i signs, int j)
{
    const char z = (char)0x80, a = (char)j, b = (char)(j + 4), c = (char)(j + 8), d = (char)(j + 12);
    const __m256i each = _mm256_broadcastsi128_si256(_mm_setr_epi8(a, z, z, a, b, z, z, b, c, z, z, c, d, z, z, d));
    const __m256i copies = _mm256_and_si256(_mm256_shuffle_epi8(signs, each), _mm256_set1_epi32((int)0xff00007f));
    const __m256i by = _mm256_set1_epi32(1 << 13 << 16 | 1 << 14 | 1 << 7 | 1);
    const __m256i spread_out = _mm256_madd_epi16(copies, by);
    return _mm256_or_si256(v, _mm256_and_si256(spread_out, _mm256_set1_epi32(0x11111111)));
}

/* Four magnitudes with the lower or, `high`, the upper signs of byte j, raised. */
INLINE __m256i signed_magnitudes(enum qtype t, __m256i v, __m256i signs, int j, bool high)
{
    const __m256i each = _mm256_broadcastsi128_si256(
        _mm_set_epi32((j + 12) * 0x01010101, (j + 8) * 0x01010101, (j + 4) * 0x01010101, j * 0x01010101));
    const __m256i bit = _mm256_set1_epi32(high ? (int)0x80402010 : 0x08040201);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(signs, each), bit), bit);
    v = _mm256_sign_epi8(v, _mm256_or_si256(set, _mm256_set1_epi8(1)));
    return _mm256_add_epi8(v, _mm256_set1_epi8((char)code_offset(t)));
}

/* Codes of the low nibbles or, `high`, the others. Bit 3 of a nibble is never set, so that what is above it does not
 * matter. */
INLINE __m256i codes_of_nibbles(__m256i v, bool high)
{
    const __m256i code =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(IQ2_OFFSET + 8, IQ2_OFFSET - 8, IQ2_OFFSET + 25, IQ2_OFFSET - 25,
                                                  IQ2_OFFSET + 43, IQ2_OFFSET - 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    return _mm256_shuffle_epi8(code, high ? _mm256_srli_epi16(v, 4) : v);
}

#endif
