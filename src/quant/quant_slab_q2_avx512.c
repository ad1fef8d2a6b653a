/* AVX-512 slab kernels of Q2_K and IQ2_XXS. Rows are transposed while still packed, four bytes at a time; a vector then
 * has the bits of the same values of sixteen rows, and is unpacked in all of them at once. Spec
 * gguf-and-quants 2.5, 2.9, more-quants 8.3.
 *
 * Codes of Q2_K are multiplied by their scale, which fits (3 * 15), so that a block is one chain of products. Those of
 * IQ2_XXS are 43 too high. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"
#include "quant/quant_iq2_book_avx512.h"

/* Transposes four groups of four bytes of sixteen rows: v[i], group i of row 0, of row 1 ... */
INLINE void groups_of_rows(const uint8_t *const row[SLAB_ROWS], size_t at, __m512i v[4])
{
    __m512i a[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        a[i] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(row[i] + at)));
        a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(row[4 + i] + at)), 1);
        a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(row[8 + i] + at)), 2);
        a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(row[12 + i] + at)), 3);
    }
    const __m512i b0 = _mm512_unpacklo_epi32(a[0], a[1]), b1 = _mm512_unpackhi_epi32(a[0], a[1]);
    const __m512i b2 = _mm512_unpacklo_epi32(a[2], a[3]), b3 = _mm512_unpackhi_epi32(a[2], a[3]);
    v[0] = _mm512_unpacklo_epi64(b0, b2);
    v[1] = _mm512_unpackhi_epi64(b0, b2);
    v[2] = _mm512_unpacklo_epi64(b1, b3);
    v[3] = _mm512_unpackhi_epi64(b1, b3);
}

/* Bytes a and b of every group of four, as 16-bit numbers. */
INLINE __m512i bytes_of_groups(__m512i v, int a, int b)
{
    const int32_t first = (int32_t)(0x80008000u | (uint32_t)b << 16 | (uint32_t)a);
    const __m128i of128 = _mm_add_epi32(_mm_set1_epi32(first), _mm_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c));
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(of128));
}

/* Four scales per group of v: codes of the vectors that they belong to, and factors of activation sums. */
INLINE void q2_k_sub_blocks(const __m512i bits[16], __m512i v, int i0, struct half256 *s)
{
    const __m512i low = _mm512_set1_epi16(15), m2 = _mm512_set1_epi8(3);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i scale = _mm512_and_si512(bytes_of_groups(v, i, i), low);
        const int shift = (i0 + i) / 2 % 4 * 2, half = (i0 + i) / 8, part = (i0 + i) % 2;
        UNROLL for (int j = 0; j < 4; j++)
        {
            const __m512i code =
                _mm512_and_si512(_mm512_srli_epi16(bits[8 * half + 4 * part + j], (unsigned)shift), m2);
            store512(s->code[4 * (i0 + i) + j], _mm512_mullo_epi16(code, scale)); /* no carry from the low byte */
        }
    }
    UNROLL for (int i = 0; i < 4; i += 2)
        store512(s->min[(i0 + i) / 2], _mm512_srli_epi16(bytes_of_groups(v, i, i + 1), 4));
}

INLINE void fill_q2_k(const uint8_t *const row[SLAB_ROWS], size_t at, struct half256 *s)
{
    __m512i bits[16], scales[4];
#pragma GCC unroll 16
    for (int r = 0; r < SLAB_ROWS; r++) bits[r] = load512(row[r] + at + Q2_K_QS);
    transpose16(bits);
    groups_of_rows(row, at + Q2_K_SCALES, scales);
    UNROLL for (int i = 0; i < 4; i++) q2_k_sub_blocks(bits, scales[i], 4 * i, s);
    _mm512_store_ps(s->d, f16_of_slab_rows(row, at + Q2_K_D));
    _mm512_store_ps(s->dmin, f16_of_slab_rows(row, at + Q2_K_DMIN));
}

/* Control of a shift that takes eight bits from bit `first` + `step` * i of every four bytes to byte i. */
INLINE __m512i bits_at(int first, int step)
{
    uint64_t c = 0;
    for (int i = 0; i < 8; i++) c |= (uint64_t)((first + step * (i % 4) + 32 * (i / 4)) & 63) << 8 * i;
    return _mm512_set1_epi64((long long)c);
}

/* Unsigned codes by six bits: two say which magnitude, the third is the sign. */
INLINE __m512i iq2_values(void)
{
    uint64_t v = 0;
    static const int magnitude[4] = {8, 25, 43, 0};
    for (int i = 0; i < 8; i++) v |= (uint64_t)(IQ2_OFFSET + (i < 4 ? magnitude[i] : -magnitude[i - 4])) << 8 * i;
    return _mm512_set1_epi64((long long)v);
}

/* One group of 32 of sixteen rows: indices of the code book, signs and scale. */
INLINE void iq2_group(const struct book *k, __m512i index, __m512i word, __m512i values, uint8_t code[8][64])
{
    const __m512i plane[2] = {look_up(k->plane[0], index), look_up(k->plane[1], index)};
    const __m512i seven = _mm512_multishift_epi64_epi8(bits_at(0, 7), word), m2 = _mm512_set1_epi8(3);
    const __m512i sign = _mm512_gf2p8affine_epi64_epi8(seven, _mm512_set1_epi64(SIGN_PARITY), 0);
    UNROLL for (int j = 0; j < 8; j++)
    {
        const __m512i m = _mm512_multishift_epi64_epi8(bits_at(8 * (j / 2), 2), plane[j % 2]);
        const __m512i s = _mm512_multishift_epi64_epi8(bits_at(4 * j - 2, 1), sign);
        /* the upper bits are what happens to follow: values repeat every eight */
        store512(code[j], _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(m2, m, s, 0xca), values));
    }
}

INLINE void fill_iq2_xxs(const uint8_t *const row[SLAB_ROWS], size_t at, struct half256 *s)
{
    const struct book book = book_load();
    const __m512i values = iq2_values(), one = _mm512_set1_epi32(1);
    _Alignas(64) uint8_t packed[16][64];
    __m512i v[16];
#pragma GCC unroll 16
    for (int r = 0; r < SLAB_ROWS; r++) v[r] = load512(row[r] + at + IQ2_XXS_GROUPS);
    transpose16(v);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) store512(packed[i], v[i]);
    for (int g = 0; g < 8; g++) {
        const __m512i word = load512(packed[2 * g + 1]);
        iq2_group(&book, load512(packed[2 * g]), word, values, s->code + 8 * g);
        store512(s->scale[g], _mm512_or_si512(_mm512_slli_epi32(_mm512_srli_epi32(word, 28), 1), one));
    }
    _mm512_store_ps(s->d, f16_of_slab_rows(row, at));
}

INLINE void fill_half(enum qtype t, const uint8_t *const row[SLAB_ROWS], size_t at, struct half256 *s)
{
    if (t == QT_Q2_K)
        fill_q2_k(row, at, s);
    else
        fill_iq2_xxs(row, at, s);
}

SLAB256(q2_k, QT_Q2_K, quant_pack_pairs, 8)
SLAB256(iq2_xxs, QT_IQ2_XXS, quant_pack_high_32, 8)
#endif
