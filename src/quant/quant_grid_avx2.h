/* The types with code books for the AVX2 kernels: scales and signs of a block, and its codes by table loads (spec
 * gguf-and-quants 2.9, more-quants 2.3 to 2.5). Part of quant_k_avx2.h. */
#ifndef QUANT_QUANT_GRID_AVX2_H
#define QUANT_QUANT_GRID_AVX2_H

/* ---- scales and signs */

/* Sign bytes from seven stored bits each; the eighth is their parity. */
INLINE __m256i with_parity(__m256i bits)
{
    const char o = (char)0x80; /* parity of a nibble, in bit 7 */
    const __m256i parity = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, o, o, 0, o, 0, 0, o, o, 0, 0, o, 0, o, o, 0));
    const __m256i both = _mm256_xor_si256(bits, _mm256_srli_epi16(bits, 4));
    return _mm256_or_si256(bits, _mm256_shuffle_epi8(parity, _mm256_and_si256(both, _mm256_set1_epi8(15))));
}

/* Of words of 32 values, as IQ2_XXS and IQ3_XXS have them (four times seven sign bits, scale nibble): sign bytes, and
 * the scales 2s + 1. */
INLINE __m256i word_signs(__m256i word)
{
    const __m256i pairs = _mm256_blend_epi16(word, _mm256_slli_epi32(word, 2), 0xaa);
    const __m256i apart_by_8 = _mm256_add_epi16(pairs, _mm256_and_si256(pairs, _mm256_set1_epi16((short)0xff80)));
    return with_parity(_mm256_and_si256(apart_by_8, _mm256_set1_epi8(0x7f)));
}

INLINE __m256i word_scales(__m256i word)
{
    return _mm256_or_si256(_mm256_srli_epi32(word, 27), _mm256_set1_epi32(1));
}

INLINE void prepare_words(__m256i word, struct prep *p)
{
    put_scales(p, twice16(word_scales(word)));
    store256(p->sign, word_signs(word));
}

/* The second words of eight groups. */
INLINE __m256i iq2_xxs_words(const uint8_t *b)
{
    const __m256 lo = _mm256_loadu_ps((const float *)(const void *)(b + IQ2_XXS_GROUPS));
    const __m256 hi = _mm256_loadu_ps((const float *)(const void *)(b + IQ2_XXS_GROUPS + 32));
    return _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(lo, hi, 0xdd)), 0xd8);
}

/* 2s + 1 of nibbles, low ones first. */
INLINE __m128i odd_scales(__m128i bytes)
{
    const __m128i low = _mm_set1_epi8(15);
    const __m128i s = _mm_unpacklo_epi8(_mm_and_si128(bytes, low), _mm_and_si128(_mm_srli_epi16(bytes, 4), low));
    return _mm_or_si128(_mm_add_epi8(s, s), _mm_set1_epi8(1));
}

INLINE __m256i odd_scales16(const uint8_t *b)
{
    return _mm256_cvtepu8_epi16(odd_scales(_mm_loadl_epi64((const __m128i *)b)));
}

/* The upper seven bits of 32 words. */
INLINE __m256i iq2_xs_sevens(const uint8_t *b)
{
    const __m256i lo = _mm256_srli_epi16(load256(b + IQ2_XS_CODES), 9);
    const __m256i hi = _mm256_srli_epi16(load256(b + IQ2_XS_CODES + 32), 9);
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(lo, hi), 0xd8);
}

/* 2s + 1 from three bits, four scales per word. */
INLINE __m256i iq1_m_scales16(const uint8_t *b)
{
    const __m256i each = _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5, 4, 5, 6, 7,
                                          6, 7, 6, 7, 6, 7);
    const __m256i up = _mm256_set1_epi64x(0x0010008004002000); /* bits 3j.. to the top */
    const __m256i words =
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadl_epi64((const __m128i *)(b + IQ1_M_SCALES))), each);
    const __m256i s = _mm256_srli_epi16(_mm256_mullo_epi16(words, up), 13);
    return _mm256_or_si256(_mm256_add_epi16(s, s), _mm256_set1_epi16(1));
}

/* ---- indices of more than eight bits: low bytes, and what has the other bits in place */

INLINE void put_index(struct prep *p, int at, const uint8_t *low, __m256i high)
{
    store256(p->index + at, _mm256_or_si256(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)low)), high));
}

/* Four 16-bit lanes from each of four bytes. */
INLINE __m256i bytes_to_fours(const uint8_t *b)
{
    const char z = (char)0x80;
    const __m256i each = _mm256_setr_epi8(0, z, 0, z, 0, z, 0, z, 1, z, 1, z, 1, z, 1, z, 2, z, 2, z, 2, z, 2, z, 3, z,
                                          3, z, 3, z, 3, z);
    return _mm256_shuffle_epi8(spread32(b), each);
}

INLINE void index_iq2_s(const uint8_t *b, struct prep *p)
{
    const __m256i up = _mm256_set1_epi64x(0x0004001000400100); /* bits 2r.. to bit 8 */
    UNROLL for (int i = 0; i < 2; i++)
    {
        const __m256i v = _mm256_mullo_epi16(bytes_to_fours(b + IQ2_S_HIGH + 4 * i), up);
        put_index(p, 16 * i, b + IQ2_S_LOW + 16 * i, _mm256_and_si256(v, _mm256_set1_epi16(0x300)));
    }
}

INLINE void index_iq3_s(const uint8_t *b, struct prep *p)
{
    const __m256i bit =
        _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, (short)0x8000);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m256i v = _mm256_and_si256(_mm256_set1_epi16((short)load_u16(b + IQ3_S_HIGH + 2 * i)), bit);
        const __m256i set = _mm256_cmpeq_epi16(v, bit);
        put_index(p, 16 * i, b + IQ3_S_LOW + 16 * i, _mm256_and_si256(set, _mm256_set1_epi16(0x100)));
    }
}

INLINE void index_iq1_s(const uint8_t *b, struct prep *p)
{
    const __m256i up = _mm256_set1_epi64x(0x0000000400200100); /* bits 3r.. to bit 8, those of r = 3 apart */
    const __m256i last = _mm256_set1_epi64x((long long)0xffff000000000000);
    const __m256i each = _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5, 4, 5, 6, 7,
                                          6, 7, 6, 7, 6, 7);
    UNROLL for (int i = 0; i < 2; i++)
    {
        const __m128i four = _mm_loadl_epi64((const __m128i *)(b + IQ1_S_HIGH + 8 * i));
        const __m256i h = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(four), each);
        const __m256i v = _mm256_or_si256(_mm256_mullo_epi16(h, up), _mm256_and_si256(_mm256_srli_epi16(h, 1), last));
        put_index(p, 16 * i, b + IQ1_S_LOW + 16 * i, _mm256_and_si256(v, _mm256_set1_epi16(0x700)));
    }
}

INLINE void index_iq1_m(const uint8_t *b, struct prep *p)
{
    const __m128i packed = _mm_loadu_si128((const __m128i *)(b + IQ1_M_HIGH)), low = _mm_set1_epi8(15);
    const __m128i even = _mm_and_si128(packed, low), odd = _mm_and_si128(_mm_srli_epi16(packed, 4), low);
    const __m128i n[2] = {_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd)};
    UNROLL for (int i = 0; i < 2; i++)
    {
        const __m256i v = _mm256_slli_epi16(_mm256_cvtepu8_epi16(n[i]), 8);
        put_index(p, 16 * i, b + IQ1_M_LOW + 16 * i, _mm256_and_si256(v, _mm256_set1_epi16(0x700)));
        const __m128i high = _mm_and_si128(_mm_srli_epi16(n[i], 2), _mm_set1_epi8(2)); /* bit 3 to bit 1 */
        _mm_store_si128((__m128i *)(p->sign + 16 * i), _mm_xor_si128(high, _mm_set1_epi8(2)));
    }
}

INLINE void grid_prepare(enum qtype t, const uint8_t *b, struct prep *p)
{
    if (t == QT_IQ2_XXS) {
        prepare_words(iq2_xxs_words(b), p);
    } else if (t == QT_IQ3_XXS) {
        prepare_words(load256(b + IQ3_XXS_WORDS), p);
    } else if (t == QT_IQ2_XS) {
        put_scales(p, odd_scales16(b + IQ2_XS_SCALES));
        store256(p->sign, with_parity(iq2_xs_sevens(b)));
    } else if (t == QT_IQ2_S) {
        put_scales(p, odd_scales16(b + IQ2_S_SCALES));
        store256(p->sign, load256(b + IQ2_S_SIGNS));
        index_iq2_s(b, p);
    } else if (t == QT_IQ3_S) {
        const __m128i s = odd_scales(_mm_cvtsi32_si128((int)load_u32(b + IQ3_S_SCALES)));
        put_scales(p, twice16(_mm256_cvtepu8_epi32(s)));
        store256(p->sign, load256(b + IQ3_S_SIGNS));
        index_iq3_s(b, p);
    } else if (t == QT_IQ1_S) {
        const __m128i h = _mm_loadu_si128((const __m128i *)(b + IQ1_S_HIGH));
        const __m128i s = _mm_and_si128(_mm_srli_epi16(h, 11), _mm_set1_epi16(14));
        put_scales(p, twice16(_mm256_cvtepu16_epi32(_mm_or_si128(s, _mm_set1_epi16(1)))));
        const __m256i high = _mm256_cvtepi16_epi32(_mm_cmpgt_epi16(h, _mm_set1_epi16(-1))); /* bit 15 clear */
        store256(p->sign, _mm256_and_si256(high, _mm256_set1_epi8(2)));
        index_iq1_s(b, p);
    } else {
        put_scales(p, iq1_m_scales16(b));
        index_iq1_m(b, p);
    }
}

/* ---- codes */

INLINE __m256i join64(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return _mm256_setr_epi64x((long long)a, (long long)b, (long long)c, (long long)d);
}

INLINE __m256i entries4(const uint64_t *grid, const uint16_t *i)
{
    return join64(grid[i[0]], grid[i[1]], grid[i[2]], grid[i[3]]);
}

/* A byte per group of eight, spread over its values. */
INLINE __m256i over_groups(const uint8_t *bytes)
{
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    return _mm256_shuffle_epi8(spread32(bytes), spread);
}

/* Magnitudes of values 32g.. of a block; of IQ1 codes. */
INLINE __m256i grid32(enum qtype t, const uint8_t *b, const struct prep *p, int g)
{
    if (t == QT_IQ2_XXS) {
        const uint8_t *const i = b + IQ2_XXS_GROUPS + 8 * g;
        return join64(iq2xxs_grid[i[0]], iq2xxs_grid[i[1]], iq2xxs_grid[i[2]], iq2xxs_grid[i[3]]);
    }
    if (t == QT_IQ2_XS) {
        const uint8_t *const v = b + IQ2_XS_CODES + 8 * g;
        return join64(iq2xs_grid[load_u16(v) & 511], iq2xs_grid[load_u16(v + 2) & 511],
                      iq2xs_grid[load_u16(v + 4) & 511], iq2xs_grid[load_u16(v + 6) & 511]);
    }
    if (t == QT_IQ2_S) return entries4(iq2s_grid, p->index + 4 * g);
    if (t == QT_IQ3_XXS) {
        const uint8_t *const i = b + IQ3_XXS_INDEX + 8 * g;
        return _mm256_setr_epi32((int)iq3xxs_grid[i[0]], (int)iq3xxs_grid[i[1]], (int)iq3xxs_grid[i[2]],
                                 (int)iq3xxs_grid[i[3]], (int)iq3xxs_grid[i[4]], (int)iq3xxs_grid[i[5]],
                                 (int)iq3xxs_grid[i[6]], (int)iq3xxs_grid[i[7]]);
    }
    if (t == QT_IQ3_S) {
        const uint16_t *const i = p->index + 8 * g;
        return _mm256_setr_epi32((int)iq3s_grid[i[0]], (int)iq3s_grid[i[1]], (int)iq3s_grid[i[2]], (int)iq3s_grid[i[3]],
                                 (int)iq3s_grid[i[4]], (int)iq3s_grid[i[5]], (int)iq3s_grid[i[6]],
                                 (int)iq3s_grid[i[7]]);
    }
    return _mm256_or_si256(entries4(iq1s_grid, p->index + 4 * g), over_groups(p->sign + 4 * g));
}

/* +1 or -1 per value of group g. */
INLINE __m256i signs32(const struct prep *p, int g)
{
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i v = _mm256_and_si256(over_groups(p->sign + 4 * g), bit);
    return _mm256_or_si256(_mm256_cmpeq_epi8(v, bit), _mm256_set1_epi8(1));
}

#endif
