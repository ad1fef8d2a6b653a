/* AVX-512 slab kernels of IQ1_S and IQ1_M. The code book, whose planes would take 64 look-ups for 64 groups, is read
 * group by group: the two bytes of a code are copied to where sixteen rows' codes of sixteen values make a vector, and
 * these are unpacked in all rows at once. Byte t of a lane has value j of four number t of sixteen values, in vector j;
 * the panels have this order too (quant_pack_iq1_m_fourths). Spec more-quants 2.5.
 *
 * Floor of 256 values of sixteen rows: 512 codes and a load for four indices, three loads a cycle, 213 cycles, two
 * (Ice Lake) 320; two shifts and joins a cycle for the values, 64 (planes: 512). Measured, 256 values from the
 * second-level cache, in alternation. One of two cores of an Intel Xeon (Ice Lake, virtual), 64 rows: IQ1_S 2,030
 * cycles, IQ1_M 2,150, with a load for every index 2,490 and 2,580; gathers of sixteen took longer. One core of an
 * Intel Xeon (Emerald Rapids), with a load for every index, 32 rows, two rounds: IQ1_S 382 and 385 ns, IQ1_M 436 and
 * 440; row by row with entries of eight bytes 700 and 845, 747 and 831. */
#ifdef __AVX512VNNI__
#include "quant/quant_iq1_index_avx512.h"
#include "quant/quant_slab256_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

/* Codes of sixteen values, two bits each, of one row after the other. */
typedef uint32_t packed_codes[IQ1_GROUPS / 2][SLAB_ROWS];

INLINE void gather_codes(enum qtype t, const uint8_t *const row[SLAB_ROWS], size_t at, packed_codes packed)
{
    _Alignas(64) uint16_t index[SLAB_ROWS][IQ1_GROUPS];
    for (int r = 0; r < SLAB_ROWS; r++) put_indices(t, row[r] + at, index[r]);
    __asm__ volatile("" : "+m"(index)); /* stored all before the first is loaded */
    for (int r = 0; r < SLAB_ROWS; r++)
#pragma GCC unroll 16
        for (int i = 0; i < IQ1_GROUPS / 2; i += 2) {
            uint32_t code[2];
            four_codes(index[r] + 2 * i, code);
            packed[i][r] = code[0];
            packed[i + 1][r] = code[1];
        }
}

/* Sixteen values of sixteen rows as eighths, IQ1_OFFSET too high: eight times the code, and 2 where all are higher. */
INLINE void put_sixteen(const uint32_t packed[SLAB_ROWS], __m512i higher, uint8_t code[4][64])
{
    const __m512i v = load512(packed), eights = _mm512_set1_epi8(0x18);
    UNROLL for (int j = 0; j < 4; j++)
    {
        const __m512i at3 =
            j < 2 ? _mm512_slli_epi16(v, 3 - 2 * (unsigned)j) : _mm512_srli_epi16(v, 2 * (unsigned)j - 3);
        store512(code[j], _mm512_ternarylogic_epi32(at3, eights, higher, 0xea));
    }
}

INLINE __m512i two_where_clear(__m512i bit1)
{
    return _mm512_andnot_si512(bit1, _mm512_set1_epi8(2));
}

INLINE void fill_iq1_s(const uint8_t *const row[SLAB_ROWS], size_t at, const packed_codes packed, struct part256 *s)
{
    __m512i words[4];
    quads_of_rows(row, at + IQ1_S_HIGH, words);
    UNROLL for (int g = 0; g < 8; g++)
    {
        const __m512i word = g % 2 ? words[g / 2] : _mm512_slli_epi32(words[g / 2], 16);
        const __m512i higher = two_where_clear(_mm512_srai_epi32(word, 31));
        UNROLL for (int i = 0; i < 2; i++) put_sixteen(packed[2 * g + i], higher, s->code + 8 * g + 4 * i);
        put_scale(QT_IQ1_S, s, g, odd_of_lanes(_mm512_srli_epi32(word, 27), 14));
    }
    _mm512_store_ps(s->d, f16_first(row, at));
}

/* The upper four bits of four words. */
INLINE __m512 iq1_m_d_of_lanes(__m512i words01, __m512i words23)
{
    const __m512i low = _mm512_srli_epi32(_mm512_and_si512(words01, _mm512_set1_epi32(0xf000)), 12);
    const __m512i second = _mm512_slli_epi32(_mm512_srli_epi32(words01, 28), 4);
    const __m512i third = _mm512_srli_epi32(_mm512_and_si512(words23, _mm512_set1_epi32(0xf000)), 4);
    const __m512i last = _mm512_srli_epi32(_mm512_and_si512(words23, _mm512_set1_epi32((int)0xf0000000)), 16);
    return f16_of_lanes(_mm512_or_si512(_mm512_or_si512(low, second), _mm512_or_si512(third, last)));
}

INLINE void fill_iq1_m(const uint8_t *const row[SLAB_ROWS], size_t at, const packed_codes packed, struct part256 *s)
{
    __m512i bits[4], last[4];
    quads_of_rows(row, at + IQ1_M_HIGH, bits);
    quads_of_rows(row, at + IQ1_M_SCALES - 8, last);
    UNROLL for (int k = 0; k < 16; k++)
    {
        /* bit 3 of two nibbles to bit 1 of two bytes each */
        const uint64_t from = (uint64_t)(8 * (k % 4) + 2) * 0x0101 + (uint64_t)(8 * (k % 4) + 6) * 0x01010000;
        const __m512i each = _mm512_set1_epi64((long long)(from | (from + 0x20202020) << 32));
        const __m512i higher = two_where_clear(_mm512_multishift_epi64_epi8(each, bits[k / 4]));
        const int scale = 16 * (k / 4 % 2) + 3 * (k % 4);
        const __m512i word = last[2 + k / 8];
        put_sixteen(packed[k], higher, s->code + 4 * k);
        store512(s->scale[k],
                 odd_of_lanes(scale ? _mm512_srli_epi32(word, (unsigned)scale - 1) : _mm512_slli_epi32(word, 1), 14));
    }
    _mm512_store_ps(s->d, iq1_m_d_of_lanes(last[2], last[3]));
}

INLINE void fill_part(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    (void)book;
    _Alignas(64) packed_codes packed;
    gather_codes(t, row, at, packed);
    if (t == QT_IQ1_S)
        fill_iq1_s(row, at, packed, s);
    else
        fill_iq1_m(row, at, packed, s);
}

INLINE void fill_blocks(enum qtype t, const struct filling *f)
{
    fill256(fill_part, t, NULL, f);
}

SLAB256(iq1_s, QT_IQ1_S, quant_pack_iq1_s_fourths, 8)
SLAB256(iq1_m, QT_IQ1_M, quant_pack_iq1_m_fourths, 16)
#endif
