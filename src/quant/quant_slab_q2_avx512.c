/* AVX-512 slab kernels of Q2_K and IQ2_XXS. Rows are transposed while still packed, four bytes at a time; a vector then
 * has the bits of the same values of sixteen rows, and is unpacked in all of them at once. Spec
 * gguf-and-quants 2.5, 2.9, more-quants 8.3.
 *
 * Codes of Q2_K are multiplied by their scale, which fits (3 * 15), so that a block is one chain of products. Those of
 * IQ2_XXS are 43 too high.
 *
 * While the codes of half a part are stored, the rows of the next half are loaded, a pair of them every few stores
 * (quant_slab_rows_avx512.h).
 *
 * Floor of unpacking a block of 64 rows on Zen 5: 300 stores of 512 bits, one a cycle; of sixteen rows and 32 values of
 * IQ2_XXS 37 operations on four units and, of these, 21 on the two that shuffle, of Q2_K 35 and 16: 330 and 280 cycles.
 * Where one unit shuffles and two do the rest (Intel), 24 of 43 and 10 of 35: 770 and 570.
 * Measured, source in the second-level cache, cycles by the clock of products in alternation, medians of 21 (one of
 * two cores of an AMD EPYC, Zen 5, virtual): 490 to 500 and 480 to 490 (700 and 660 with all loads of a part before its
 * stores); between products with 48 columns, from memory, 660 to 690 and 630 to 650 (830 to 860 and 850 to 870).
 * Look-ups in single registers: 550. Before that, one of two cores of an Intel Xeon (Ice Lake, virtual): 1,040 to 1,070
 * (1,170 to 1,230 with look-ups in two registers and values one by one) and 940 to 1,000.
 */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"
#include "quant/quant_iq2_book_avx512.h"
#include "quant/quant_iq2_table.h"
#include "quant/quant_slab_rows_avx512.h"

/* The codes of a vector, two bits each. */
INLINE __m512i q2_k_codes(__m512i v, int shift)
{
    return shift ? bits_moved(v, 2, shift, 0) : _mm512_and_si512(v, _mm512_set1_epi8(3));
}

/* Half a block of sixteen rows: codes of 128 values times their scales, and factors of activation sums. Meanwhile n
 * reads another half: 32 bytes from `codes` on, sixteen from `other` on. */
INLINE void q2_k_half(const __m512i bits[8], const __m512i scales[2], struct ahead *n, size_t codes, size_t other,
                      uint8_t (*code)[64], int16_t (*min)[2 * SLAB_ROWS])
{
    UNROLL for (int i = 0; i < 8; i++)
    {
        const __m512i scale = _mm512_and_si512(bytes_of_lanes(scales[i / 4], i % 4, i % 4), _mm512_set1_epi16(15));
        ahead_octet(n, codes, i);
        UNROLL for (int j = 0; j < 4; j++)
        {
            const __m512i v = q2_k_codes(bits[4 * (i % 2) + j], i / 2 * 2);
            store512(code[4 * i + j], _mm512_mullo_epi16(v, scale)); /* no carry from the low byte */
        }
        if (i % 2) continue;
        ahead_quad(n, other, i / 2);
        store512(min[i / 2], _mm512_srli_epi16(bytes_of_lanes(scales[i / 4], i % 4, i % 4 + 1), 4));
    }
}

INLINE void fill_q2_k(const struct filling *f)
{
    struct part256 *s = f->to;
    struct ahead now = rows_ahead(QT_Q2_K, f, 0);
    __m512i bits[8], scales[4], last[4];
    octets_of_rows(now.row, now.at + Q2_K_QS, bits);
    quads_of_rows(now.row, now.at + Q2_K_SCALES, scales);
    for (int i = 1; i <= f->parts * f->n_blocks; i++, s++) {
        struct ahead next = rows_ahead(QT_Q2_K, f, i);
        q2_k_half(bits, scales, &now, Q2_K_QS + 32, Q2_K_BYTES - 16, s->code, s->min);
        turn_octets(now.octet, bits);
        turn_quads(now.quad, last);
        _mm512_store_ps(s->d, f16_of_lanes(last[3]));
        _mm512_store_ps(s->dmin, f16_of_upper(last[3]));
        q2_k_half(bits, scales + 2, &next, Q2_K_QS, Q2_K_SCALES, s->code + 32, s->min + 4);
        turn_octets(next.octet, bits);
        turn_quads(next.quad, scales);
        now = next;
    }
}

/* ---- IQ2_XXS. Byte t of a lane has value i of eight number t of a group of 32, in vector i: look-ups and signs come
 * in this order, and the panels have it too (quant_pack_iq2_xxs_eighths). */

/* The code book: iq2xxs_even, iq2xxs_odd, which have the codes of values 0, 2, 4 and 6, and 1, 3, 5, 7. */
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

/* Look-ups of single registers where those of two are three operations. */
INLINE __m512i look_up_plane(bool of_two, const __m512i plane[4], __m512i index, __mmask64 seven)
{
    if (of_two)
        return _mm512_mask_mov_epi8(_mm512_permutex2var_epi8(plane[0], index, plane[1]), seven,
                                    _mm512_permutex2var_epi8(plane[2], index, plane[3]));
    const __mmask64 six = _mm512_movepi8_mask(_mm512_slli_epi16(index, 1));
    const __m512i low = _mm512_permutexvar_epi8(index, plane[0]), high = _mm512_permutexvar_epi8(index, plane[2]);
    return _mm512_mask_mov_epi8(_mm512_mask_permutexvar_epi8(low, six, index, plane[1]), seven,
                                _mm512_mask_permutexvar_epi8(high, six, index, plane[3]));
}

/* Two values by six bits: codes in the lower four, signs above; signs in the lower two, codes above. */
static const struct {
    uint8_t value[64];
} of_two[2][2] = {{{IQ2_TABLE(0, 4)}, {IQ2_TABLE(2, 5)}}, {{IQ2_TABLE(2, 0)}, {IQ2_TABLE(4, 1)}}};

/* Matrix over bits: signs of values 4, 6, 5, 7, 0, 2, 1, 3 of seven, the eighth being their parity. */
#define SIGNS_BY_TWO 0x1040207f01040208

/* Values i and j by codes in the lower bits of m, k and l in the upper ones; signs: in bits 4 and 5, 0 and 1. */
INLINE void put_four(__m512i m, __m512i sign, uint8_t *i, uint8_t *j, uint8_t *k, uint8_t *l)
{
    const __m512i low = choose512(_mm512_set1_epi8(0x0f), m, sign);
    store512(i, look_up64(load512(of_two[0][0].value), low));
    store512(j, look_up64(load512(of_two[0][1].value), low));
    const __m512i high = choose512(_mm512_set1_epi8(0x3c), _mm512_srli_epi16(m, 2), sign);
    store512(k, look_up64(load512(of_two[1][0].value), high));
    store512(l, look_up64(load512(of_two[1][1].value), high));
}

/* Half a block of sixteen rows: four times indices of the code book, signs and scale. Meanwhile n reads another half:
 * 32 bytes from `groups` on; and what begins with d. */
INLINE void iq2_half(bool two, const struct planes *k, const __m512i v[8], struct ahead *n, size_t groups,
                     uint8_t (*code)[64], float (*scale)[SLAB_ROWS])
{
    const __m512 scales = _mm512_setr_ps(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    UNROLL for (int g = 0; g < 4; g++, code += 8)
    {
        const __m512i index = v[2 * g], word = v[2 * g + 1];
        const __mmask64 seven = _mm512_movepi8_mask(index);
        const __m512i even = look_up_plane(two, k->even, index, seven), odd = look_up_plane(two, k->odd, index, seven);
        /* seven bits of every eight */
        const __m512i sevens = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x352e2720150e0700), word);
        const __m512i sign = _mm512_gf2p8affine_epi64_epi8(sevens, _mm512_set1_epi64(SIGNS_BY_TWO), 0);
        ahead_octet(n, groups, 2 * g);
        put_four(even, sign, code[0], code[2], code[4], code[6]);
        ahead_octet(n, groups, 2 * g + 1);
        put_four(odd, _mm512_srli_epi16(sign, 2), code[1], code[3], code[5], code[7]);
        _mm512_store_ps(scale[g], _mm512_permutexvar_ps(_mm512_srli_epi32(word, 28), scales));
        if (groups != IQ2_XXS_GROUPS) ahead_quad(n, 0, g);
    }
}

INLINE void fill_iq2_xxs(bool two, const struct filling *f)
{
    struct part256 *s = f->to;
    const struct planes planes = planes_load();
    struct ahead now = rows_ahead(QT_IQ2_XXS, f, 0);
    __m512i v[8], head[4];
    octets_of_rows(now.row, now.at + IQ2_XXS_GROUPS, v);
    for (int i = 1; i <= f->parts * f->n_blocks; i++, s++) {
        struct ahead next = rows_ahead(QT_IQ2_XXS, f, i);
        iq2_half(two, &planes, v, &now, IQ2_XXS_GROUPS + 32, s->code, s->float_scale);
        turn_octets(now.octet, v);
        turn_quads(now.quad, head);
        _mm512_store_ps(s->d, f16_of_lanes(head[0]));
        iq2_half(two, &planes, v, &next, IQ2_XXS_GROUPS, s->code + 32, s->float_scale + 4);
        turn_octets(next.octet, v);
        now = next;
    }
}

INLINE void fill_blocks(enum qtype t, const struct filling *f)
{
    if (t == QT_Q2_K)
        fill_q2_k(f);
    else if (looks_up_two())
        fill_iq2_xxs(true, f);
    else
        fill_iq2_xxs(false, f);
}

SLAB256(q2_k, QT_Q2_K, quant_pack_pairs, 8)
SLAB256(iq2_xxs, QT_IQ2_XXS, quant_pack_iq2_xxs_eighths, 8)
#endif
