/* AVX-512 slab kernels of Q2_K and IQ2_XXS. Rows are transposed while still packed, four bytes at a time; a vector then
 * has the bits of the same values of sixteen rows, and is unpacked in all of them at once. Spec
 * gguf-and-quants 2.5, 2.9, more-quants 8.3.
 *
 * Codes of Q2_K are multiplied by their scale, which fits (3 * 15), so that a block is one chain of products. Those of
 * IQ2_XXS are 43 too high.
 *
 * Floor of unpacking where one unit shuffles and two do the rest (Intel): of sixteen rows and 32 values of IQ2_XXS 22
 * shuffles, of which look-ups in the book are eight, in the values eight, and the transposition four, and as many other
 * operations; a vector of Q2_K nearly four operations on either unit: 700 and 600 cycles for a block of 64 rows.
 * Measured, source in the second-level cache, cycles by the clock of products in alternation, medians of 201 (one of
 * two cores of an Intel Xeon, Ice Lake, virtual): 1,040 to 1,070 (1,170 to 1,230 with look-ups in two registers and
 * values one by one) and 940 to 1,000; where experts of 48 rows are multiplied, from memory, a tenth of the time.
 */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"
#include "quant/quant_iq2_book_avx512.h"
#include "quant/quant_iq2_table.h"
#include "quant/quant_slab_rows_avx512.h"

/* Four scales per group of v: codes of the vectors that they belong to, and factors of activation sums. */
INLINE void q2_k_sub_blocks(const __m512i bits[16], __m512i v, int i0, struct part256 *s)
{
    const __m512i low = _mm512_set1_epi16(15);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i scale = _mm512_and_si512(bytes_of_lanes(v, i, i), low);
        const int shift = (i0 + i) / 2 % 4 * 2, half = (i0 + i) / 8, part = (i0 + i) % 2;
        UNROLL for (int j = 0; j < 4; j++)
        {
            const __m512i code = bits_moved(bits[8 * half + 4 * part + j], 2, shift, 0);
            store512(s->code[4 * (i0 + i) + j], _mm512_mullo_epi16(code, scale)); /* no carry from the low byte */
        }
    }
    UNROLL for (int i = 0; i < 4; i += 2)
        store512(s->min[(i0 + i) / 2], _mm512_srli_epi16(bytes_of_lanes(v, i, i + 1), 4));
}

INLINE void fill_q2_k(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    __m512i bits[16], scales[4], last[4];
    UNROLL for (int i = 0; i < 4; i++) quads_of_rows(row, at + Q2_K_QS + 16 * (size_t)i, bits + 4 * i);
    quads_of_rows(row, at + Q2_K_SCALES, scales);
    UNROLL for (int i = 0; i < 4; i++) q2_k_sub_blocks(bits, scales[i], 4 * i, s);
    quads_of_rows(row, at + Q2_K_BYTES - 16, last);
    _mm512_store_ps(s->d, f16_of_lanes(last[3]));
    _mm512_store_ps(s->dmin, f16_of_upper(last[3]));
}

/* ---- IQ2_XXS. Byte t of a lane has value i of eight number t of a group of 32, in vector i: look-ups and signs come
 * in this order, and the panels have it too (quant_pack_iq2_xxs_eighths). */

/* The code book: iq2xxs_even, iq2xxs_odd, which have the codes of values 4, 0, 2 and 6, and 5, 1, 3, 7. */
struct planes {
    __m512i even[4], odd[4];
};

INLINE struct planes planes_load(void)
{
    struct planes k;
    UNROLL for (int i = 0; i < 4; i++) k.even[i] = load512(iq2xxs_even + 64 * i),
                                       k.odd[i] = load512(iq2xxs_odd + 64 * i);
    return k;
}

/* Bits 6 and 7 of indices. */
struct upper {
    __mmask64 six, seven;
};

/* Look-ups of single registers: those of two are three operations. */
INLINE __m512i look_up_plane(const __m512i plane[4], __m512i index, const struct upper *u)
{
    const __m512i low = _mm512_permutexvar_epi8(index, plane[0]), high = _mm512_permutexvar_epi8(index, plane[2]);
    return _mm512_mask_mov_epi8(_mm512_mask_permutexvar_epi8(low, u->six, index, plane[1]), u->seven,
                                _mm512_mask_permutexvar_epi8(high, u->six, index, plane[3]));
}

/* Two values by six bits: their signs, and codes in the four above. */
static const struct {
    uint8_t value[64];
} of_two[2] = {{IQ2_TABLE(2, 0)}, {IQ2_TABLE(4, 1)}};

/* Matrices over bits: signs of values 0, 2, 1, 3, 4, 6, 5, 7 of seven, the eighth being their parity; the upper and the
 * lower two bits moved to the middle. */
#define SIGNS_BY_TWO 0x010402081040207f
#define OUTER_CODES  0x0000010240800000

/* Values i and j: the codes in the middle of m, the signs in the lower bits of `sign`. */
INLINE void put_two(__m512i m, __m512i sign, const __m512i *values, uint8_t *i, uint8_t *j)
{
    const __m512i at = _mm512_ternarylogic_epi32(m, _mm512_set1_epi8(0x3c), sign, 0xe2);
    store512(i, _mm512_permutexvar_epi8(at, values[0]));
    store512(j, _mm512_permutexvar_epi8(at, values[1]));
}

/* One group of 32 of sixteen rows: indices of the code book, signs and scale. */
INLINE void iq2_group(const struct planes *k, __m512i index, __m512i word, const __m512i values[2], uint8_t code[8][64])
{
    const struct upper u = {_mm512_movepi8_mask(_mm512_slli_epi16(index, 1)), _mm512_movepi8_mask(index)};
    const __m512i even = look_up_plane(k->even, index, &u), odd = look_up_plane(k->odd, index, &u);
    const __m512i outer = _mm512_set1_epi64(OUTER_CODES);
    /* seven bits of every eight */
    const __m512i seven = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x352e2720150e0700), word);
    const __m512i sign = _mm512_gf2p8affine_epi64_epi8(seven, _mm512_set1_epi64(SIGNS_BY_TWO), 0);
    put_two(_mm512_gf2p8affine_epi64_epi8(even, outer, 0), _mm512_srli_epi16(sign, 4), values, code[4], code[6]);
    put_two(_mm512_gf2p8affine_epi64_epi8(odd, outer, 0), _mm512_srli_epi16(sign, 6), values, code[5], code[7]);
    put_two(even, sign, values, code[0], code[2]);
    put_two(odd, _mm512_srli_epi16(sign, 2), values, code[1], code[3]);
}

INLINE void fill_iq2_xxs(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    const struct planes planes = planes_load();
    const __m512i values[2] = {load512(of_two[0].value), load512(of_two[1].value)};
    const __m512 scales = _mm512_setr_ps(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    _Alignas(64) uint8_t packed[16][64];
    UNROLL for (int i = 0; i < 16; i += 4)
    {
        __m512i v[4];
        quads_of_rows(row, at + IQ2_XXS_GROUPS + 4 * (size_t)i, v);
        UNROLL for (int j = 0; j < 4; j++) store512(packed[i + j], v[j]);
    }
    for (int g = 0; g < 8; g++) {
        const __m512i word = load512(packed[2 * g + 1]);
        iq2_group(&planes, load512(packed[2 * g]), word, values, s->code + 8 * g);
        _mm512_store_ps(s->float_scale[g], _mm512_permutexvar_ps(_mm512_srli_epi32(word, 28), scales));
    }
    _mm512_store_ps(s->d, f16_first(row, at));
}

INLINE void fill_part(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    (void)book;
    if (t == QT_Q2_K)
        fill_q2_k(row, at, s);
    else
        fill_iq2_xxs(row, at, s);
}

INLINE void fill_blocks(enum qtype t, const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)
{
    fill256(fill_part, t, NULL, row, first, n_blocks, slab);
}

SLAB256(q2_k, QT_Q2_K, quant_pack_pairs, 8)
SLAB256(iq2_xxs, QT_IQ2_XXS, quant_pack_iq2_xxs_eighths, 8)
#endif
