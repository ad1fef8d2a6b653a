/* Rows of weights transposed while still packed, four bytes at a time: a vector then has the same bytes of sixteen
 * rows, one row per lane, and is unpacked in all of them at once. Included by quant_slab*_avx512.c only.
 *
 * Of four vectors with sixteen bytes of each row, inserts cost a load and a blend, on either pipe, and eight shuffles
 * the one pipe for them; transposing unpacked codes takes four of these per vector, and of bytes that hold two codes
 * or four twice or four times as many vectors.
 *
 * Loads that follow dozens of stores wait for these, as the queue of stores is full, and what they bring comes late
 * (one of two cores of an AMD EPYC, Zen 5, virtual: 128 loads of 32 bytes with what transposes them take 119 cycles,
 * 256 stores 256, by turns of 16 and 32 395, of 4 and 8 290). Hence rows are read some steps ahead, between the stores
 * of those before. */
#ifndef QUANT_QUANT_SLAB_ROWS_AVX512_H
#define QUANT_QUANT_SLAB_ROWS_AVX512_H
#include "quant/quant_avx512.h"

/* What lies before this is loaded and stored before what lies behind. */
INLINE void in_order(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Sixteen bytes of rows i, 4 + i, 8 + i and 12 + i. */
INLINE __m512i load_quad(const uint8_t *const row[SLAB_ROWS], size_t at, int i)
{
    __m512i a = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(row[i] + at)));
    a = _mm512_inserti32x4(a, _mm_loadu_si128((const __m128i *)(row[4 + i] + at)), 1);
    a = _mm512_inserti32x4(a, _mm_loadu_si128((const __m128i *)(row[8 + i] + at)), 2);
    return _mm512_inserti32x4(a, _mm_loadu_si128((const __m128i *)(row[12 + i] + at)), 3);
}

/* Four groups of four bytes from four vectors: of every 128 bits of theirs. */
INLINE void turn_quads(const __m512i a[4], __m512i v[4])
{
    const __m512i b0 = _mm512_unpacklo_epi32(a[0], a[1]), b1 = _mm512_unpackhi_epi32(a[0], a[1]);
    const __m512i b2 = _mm512_unpacklo_epi32(a[2], a[3]), b3 = _mm512_unpackhi_epi32(a[2], a[3]);
    v[0] = _mm512_unpacklo_epi64(b0, b2);
    v[1] = _mm512_unpackhi_epi64(b0, b2);
    v[2] = _mm512_unpacklo_epi64(b1, b3);
    v[3] = _mm512_unpackhi_epi64(b1, b3);
}

/* Four groups of four bytes of sixteen rows: v[i], group i of row 0, of row 1 ... */
INLINE void quads_of_rows(const uint8_t *const row[SLAB_ROWS], size_t at, __m512i v[4])
{
    __m512i a[4];
    UNROLL for (int i = 0; i < 4; i++) a[i] = load_quad(row, at, i);
    turn_quads(a, v);
}

/* Eight groups of four bytes likewise, by half of the loads and a half more shuffles. a: 32 bytes of rows 0 and 4, 1
 * and 5, 2 and 6, 3 and 7, 8 and 12 ... */
INLINE void turn_octets(const __m512i a[8], __m512i v[8])
{
    __m512i b[8];
    turn_quads(a, b);
    turn_quads(a + 4, b + 4);
    UNROLL for (int i = 0; i < 4; i++)
    {
        v[i] = _mm512_shuffle_i32x4(b[i], b[4 + i], 0x88);
        v[4 + i] = _mm512_shuffle_i32x4(b[i], b[4 + i], 0xdd);
    }
}

/* row: 32 bytes of each. */
INLINE void octets(const __m256i row[SLAB_ROWS], __m512i v[8])
{
    __m512i a[8];
    UNROLL for (int i = 0; i < 8; i++) a[i] = join256(row[i + (i & 4)], row[i + (i & 4) + 4]);
    turn_octets(a, v);
}

/* Rows to be read while others are stored. */
struct ahead {
    const uint8_t *const *row;
    size_t at;
    __m512i octet[8], quad[4];
};

/* Step i of eight that read 32 bytes of the rows from `at` on, of four that read sixteen. */
INLINE void ahead_octet(struct ahead *n, size_t at, int i)
{
    const int r = i + (i & 4);
    in_order();
    n->octet[i] = join256(load256(n->row[r] + n->at + at), load256(n->row[r + 4] + n->at + at));
    in_order();
}

INLINE void ahead_quad(struct ahead *n, size_t at, int i)
{
    in_order();
    n->quad[i] = load_quad(n->row, n->at + at, i);
    in_order();
}

INLINE void octets_of_rows(const uint8_t *const row[SLAB_ROWS], size_t at, __m512i v[8])
{
    __m256i bytes[SLAB_ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < SLAB_ROWS; r++) bytes[r] = load256(row[r] + at);
    octets(bytes, v);
}

/* The f16 in the lower halves of lanes, in the upper ones. */
INLINE __m512 f16_of_lanes(__m512i v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

INLINE __m512 f16_of_upper(__m512i v)
{
    return f16_of_lanes(_mm512_srli_epi32(v, 16));
}

/* The f16 that the rows' blocks begin with; that end at `end`. */
INLINE __m512 f16_first(const uint8_t *const row[SLAB_ROWS], size_t at)
{
    __m512i v[4];
    quads_of_rows(row, at, v);
    return f16_of_lanes(v[0]);
}

INLINE __m512 f16_last(const uint8_t *const row[SLAB_ROWS], size_t end)
{
    __m512i v[4];
    quads_of_rows(row, end - 16, v);
    return f16_of_upper(v[3]);
}

/* Bytes a and b of every lane, as 16-bit numbers. */
INLINE __m512i bytes_of_lanes(__m512i v, int a, int b)
{
    const int32_t first = (int32_t)(0x80008000u | (uint32_t)b << 16 | (uint32_t)a);
    const __m128i of128 = _mm_add_epi32(_mm_set1_epi32(first), _mm_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c));
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(of128));
}

/* Byte i of every lane, signed. */
INLINE __m512i byte_of_lanes(__m512i v, unsigned i)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(v, 24 - 8 * i), 24);
}

/* n bits of bytes, from bit `from` on, at bit `to`; the others are zero. */
INLINE __m512i bits_moved(__m512i v, int n, int from, int to)
{
    uint64_t matrix = 0;
    for (int i = 0; i < n; i++) matrix |= moved(1, from + i, to + i);
    return _mm512_gf2p8affine_epi64_epi8(v, _mm512_set1_epi64((long long)matrix), 0);
}

/* Bytes of a lane from its bits first.., first + each .. */
INLINE __m512i bytes_from(__m512i v, int first, int each)
{
    uint64_t at = 0;
    for (int i = 0; i < 8; i++) at |= (uint64_t)((32 * (i / 4) + first + each * (i % 4)) & 63) << 8 * i;
    return _mm512_multishift_epi64_epi8(_mm512_set1_epi64((long long)at), v);
}

/* Bits of a where the mask has them set, else of b. */
INLINE __m512i choose512(__m512i mask, __m512i a, __m512i b)
{
    return _mm512_ternarylogic_epi32(mask, a, b, 0xca);
}

/* Twice the scale in the bits of mask, plus one. */
INLINE __m512i odd_of_lanes(__m512i v, int mask)
{
    return _mm512_ternarylogic_epi32(v, _mm512_set1_epi32(mask), _mm512_set1_epi32(1), 0xea);
}

/* ---- nibbles */

/* Look-ups by the lower six bits of bytes. */
INLINE __m512i look_up64(__m512i table, __m512i index)
{
    return _mm512_permutexvar_epi8(index, table);
}

/* Codes of 32 values of sixteen rows whose nibbles lie in sixteen bytes from `at` on, the low ones first; a table that
 * repeats needs no other bits masked. */
INLINE void nibbles_of_rows(const uint8_t *const row[SLAB_ROWS], size_t at, __m512i table, uint8_t code[8][64])
{
    __m512i v[4];
    quads_of_rows(row, at, v);
    UNROLL for (int i = 0; i < 4; i++)
    {
        store512(code[i], look_up64(table, v[i]));
        store512(code[4 + i], look_up64(table, _mm512_srli_epi16(v[i], 4)));
    }
}

#endif
