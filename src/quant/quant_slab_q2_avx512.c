/* AVX-512 slab kernels of Q2_K and IQ2_XXS. Rows are transposed while still packed, four bytes at a time; a vector then
 * has the bits of the same values of sixteen rows, and is unpacked in all of them at once. Spec
 * gguf-and-quants 2.5, 2.9, more-quants 8.3.
 *
 * Codes of Q2_K are multiplied by their scale, which fits (3 * 15), so that a block is one chain of products. Those of
 * IQ2_XXS are 43 too high.
 *
 * Floor of unpacking where one unit shuffles and two do the rest (Intel): a vector of IQ2_XXS takes two shuffles for
 * its share of the look-ups in the book and in the values and half of one for the transposition, one of Q2_K nearly
 * five operations on either unit: 320 and 300 cycles for a block of 32 rows. Measured, source in the second-level
 * cache, cycles by the clock of products in alternation (Intel Xeon, Emerald Rapids): 440 to 450 and 360 to 380; before
 * rows were transposed by inserts from memory, the book lay as it is looked up and lines were not asked for again, 640
 * to 660 and 460 to 510.
 */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"
#include "quant/quant_iq2_book_avx512.h"
#include "quant/quant_iq2_table.h"
#include "quant/quant_slab_rows_avx512.h"

/* Four scales per group of v: codes of the vectors that they belong to, and factors of activation sums. */
INLINE void q2_k_sub_blocks(const __m512i bits[16], __m512i v, int i0, struct part256 *s)
{
    const __m512i low = _mm512_set1_epi16(15), m2 = _mm512_set1_epi8(3);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i scale = _mm512_and_si512(bytes_of_lanes(v, i, i), low);
        const int shift = (i0 + i) / 2 % 4 * 2, half = (i0 + i) / 8, part = (i0 + i) % 2;
        UNROLL for (int j = 0; j < 4; j++)
        {
            const __m512i code =
                _mm512_and_si512(_mm512_srli_epi16(bits[8 * half + 4 * part + j], (unsigned)shift), m2);
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

/* The code book: iq2xxs_even, iq2xxs_odd. */
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

/* Unsigned codes by six bits. */
enum { PLACES = 6 };
static const struct {
    uint8_t value[64];
} at_place[PLACES] = {{IQ2_TABLE(2, 0)}, {IQ2_TABLE(2, 1)}, {IQ2_TABLE(4, 2)},
                      {IQ2_TABLE(4, 3)}, {IQ2_TABLE(0, 4)}, {IQ2_TABLE(0, 5)}};

/* The codes whose magnitudes lie in `bits` of m. */
INLINE __m512i codes_at(int bits, __m512i m, __m512i sign, const __m512i *values)
{
    /* other bits are what happens to be there: values repeat */
    return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(_mm512_set1_epi8((char)bits), m, sign, 0xca), *values);
}

/* One group of 32 of sixteen rows: indices of the code book, signs and scale. */
INLINE void iq2_group(const struct planes *k, __m512i index, __m512i word, const __m512i v[PLACES], uint8_t code[8][64])
{
    const __m512i even = look_up(k->even, index), odd = look_up(k->odd, index);
    const __m512i even6 = _mm512_srli_epi16(even, 2), odd7 = _mm512_srli_epi16(odd, 2);
    /* seven bits of every eight */
    const __m512i seven = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x352e2720150e0700), word);
    const __m512i sign = _mm512_gf2p8affine_epi64_epi8(seven, _mm512_set1_epi64(SIGN_PARITY), 0);
    const __m512i sign4 = _mm512_srli_epi16(sign, 4);
    store512(code[0], codes_at(0x0c, even, sign, v + 0));
    store512(code[1], codes_at(0x0c, odd, sign, v + 1));
    store512(code[2], codes_at(0x30, even, sign, v + 2));
    store512(code[3], codes_at(0x30, odd, sign, v + 3));
    store512(code[4], codes_at(0x03, even, sign, v + 4));
    store512(code[5], codes_at(0x03, odd, sign, v + 5));
    store512(code[6], codes_at(0x30, even6, sign4, v + 2));
    store512(code[7], codes_at(0x30, odd7, sign4, v + 3));
}

INLINE void fill_iq2_xxs(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    const struct planes planes = planes_load();
    const __m512i one = _mm512_set1_epi32(1);
    __m512i values[PLACES];
    UNROLL for (int i = 0; i < PLACES; i++) values[i] = load512(at_place[i].value);
    _Alignas(64) uint8_t packed[16][64];
    __m512i v[16];
    UNROLL for (int i = 0; i < 4; i++) quads_of_rows(row, at + IQ2_XXS_GROUPS + 16 * (size_t)i, v + 4 * i);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) store512(packed[i], v[i]);
    for (int g = 0; g < 8; g++) {
        const __m512i word = load512(packed[2 * g + 1]);
        iq2_group(&planes, load512(packed[2 * g]), word, values, s->code + 8 * g);
        put_scale(QT_IQ2_XXS, s, g, _mm512_or_si512(_mm512_slli_epi32(_mm512_srli_epi32(word, 28), 1), one));
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
