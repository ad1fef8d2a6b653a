/* AVX-512 slab kernels of IQ2_XS and IQ2_S. Indices and signs are transposed before they are looked up
 * (quant_slab_rows_avx512.h). Byte t of a lane has value j of four number t of sixteen values, in vector j; the panels
 * have this order too (quant_pack_iq2_16_fourths). Spec more-quants 2.3, 8.3.
 *
 * Floor of 32 values of sixteen rows, in cycles of the one pipe for shuffles, of which a look-up in two registers takes
 * two, as two of one register: 16 for indices (IQ2_S 32), 8 for values, 4 to transpose (IQ2_S 5, and 5 to arrange
 * bytes): 28 and 50, 900 and 1,600 for 256 values of 64 rows. Measured from the second-level cache, in alternation,
 * medians of 201, one of two cores of an Intel Xeon (Ice Lake, virtual): IQ2_XS 1,760 to 1,790 cycles, IQ2_S 2,360 to
 * 2,410 (with look-ups in two registers 1,830 to 1,860, 2,510 to 2,540). One of two cores of an AMD EPYC (Zen 5,
 * virtual), medians of 15: 1,020 to 1,060 and 1,250 (with planes that each call made and look-ups in single registers
 * 1,300 and 1,570, with these alone 1,230 and 1,420). Before that, one core of an Intel Xeon (Emerald Rapids), 256
 * values of 32 rows from the second-level cache, in alternation: IQ2_XS 299 ns, IQ2_S 446, row by row with single loads
 * from the code books 715 and 703; in a slower second round 503, 526, 1,025 and 932. */
#ifdef __AVX512VNNI__
#include "quant/quant_grid_book_avx512.h"
#include "quant/quant_iq2_values_avx512.h"
#include "quant/quant_slab256_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

/* What 32 values of sixteen rows are looked up by. Bytes of a lane: first eight values of the first sixteen, first of
 * the second, second of the first, second of the second. */
struct eights {
    __m512i index; /* lower eight bits */
    struct high high;
    __m512i sign; /* one bit per value, as iq2_values wants them */
};

/* Bytes 0 and 2 of a, with bytes 0 and 2 of b behind each; bytes 1 and 3. */
INLINE __m512i even_bytes(__m512i a, __m512i b)
{
    return choose512(_mm512_set1_epi16(0xff), a, _mm512_slli_epi16(b, 8));
}

INLINE __m512i odd_bytes(__m512i a, __m512i b)
{
    return choose512(_mm512_set1_epi16(0xff), _mm512_srli_epi16(a, 8), b);
}

/* Four values of each half of an eight as `code` has them, with the signs of both in one byte. */
INLINE void put_sixteen(__m512i code, __m512i sign, uint8_t to[4][64])
{
    UNROLL for (int j = 0; j < 4; j++) store512(to[j], iq2_values(code, sign, j));
}

INLINE void put_eights(enum qtype t, const struct book *k, const struct eights *v, uint8_t code[8][64])
{
    const __m512i half = _mm512_set1_epi16(0xff), s = v->sign;
    const __m512i low = look_up(t, k, 0, v->index, &v->high), high = look_up(t, k, 1, v->index, &v->high);
    put_sixteen(even_bytes(low, high), choose512(half, s, _mm512_slli_epi16(s, 4)), code);
    put_sixteen(odd_bytes(low, high), choose512(half, _mm512_srli_epi16(s, 8), _mm512_srli_epi16(s, 4)), code + 4);
}

INLINE void fill_iq2_xs(const struct book *k, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    UNROLL for (int h = 0; h < 4; h++)
    {
        __m512i words[4]; /* words of sixteen values */
        quads_of_rows(row, at + IQ2_XS_CODES + 16 * (size_t)h, words);
        UNROLL for (int i = 0; i < 4; i += 2)
        {
            const __m512i top = odd_bytes(words[i], words[i + 1]);
            const struct eights v = {
                .index = even_bytes(words[i], words[i + 1]),
                .high = {{_mm512_movepi8_mask(_mm512_slli_epi16(top, 7))}},
                .sign = _mm512_gf2p8affine_epi64_epi8(top, _mm512_set1_epi64(IQ2_SIGNS_UPPER), 0),
            };
            put_eights(QT_IQ2_XS, k, &v, s->code + 16 * h + 4 * i);
        }
    }
    __m512i last[4];
    quads_of_rows(row, at + IQ2_XS_SCALES - 8, last);
    UNROLL for (int i = 0; i < 2; i++) put_nibble_scales(QT_IQ2_XS, last[2 + i], s, 8 * i);
    _mm512_store_ps(s->d, f16_first(row, at));
}

INLINE void fill_iq2_s(const struct book *k, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    const __m512i middle_last =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
    __m512i last[4]; /* bits 8 and 9, scales */
    quads_of_rows(row, at + IQ2_S_HIGH, last);
    UNROLL for (int h = 0; h < 2; h++)
    {
        __m512i index[4], sign[4];
        quads_of_rows(row, at + IQ2_S_LOW + 16 * (size_t)h, index);
        quads_of_rows(row, at + IQ2_S_SIGNS + 16 * (size_t)h, sign);
        UNROLL for (int i = 0; i < 4; i++)
        {
            /* bit 9 of an index at the top of a byte, bit 8 below */
            const __m512i top = _mm512_shuffle_epi8(bytes_from(last[h], 8 * i - 6, 2), middle_last);
            const __m512i signs = _mm512_gf2p8affine_epi64_epi8(sign[i], _mm512_set1_epi64(IQ2_SIGNS), 0);
            const struct eights v = {
                .index = _mm512_shuffle_epi8(index[i], middle_last),
                .high = {{_mm512_movepi8_mask(_mm512_slli_epi16(top, 1)), _mm512_movepi8_mask(top)}},
                .sign = _mm512_shuffle_epi8(signs, middle_last),
            };
            put_eights(QT_IQ2_S, k, &v, s->code + 32 * h + 8 * i);
        }
    }
    UNROLL for (int i = 0; i < 2; i++) put_nibble_scales(QT_IQ2_S, last[2 + i], s, 8 * i);
    _mm512_store_ps(s->d, f16_first(row, at));
}

INLINE void fill_part(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    if (t == QT_IQ2_XS)
        fill_iq2_xs(book, row, at, s);
    else
        fill_iq2_s(book, row, at, s);
}

INLINE void fill_blocks(enum qtype t, const struct filling *f)
{
    const struct book two = book_of(t, true), one = book_of(t, false);
    if (looks_up_two())
        fill256(fill_part, t, &two, f);
    else
        fill256(fill_part, t, &one, f);
}

SLAB256(iq2_xs, QT_IQ2_XS, quant_pack_iq2_16_fourths, 16)
SLAB256(iq2_s, QT_IQ2_S, quant_pack_iq2_16_fourths, 16)
#endif
