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
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i p0 = _mm256_shuffle_epi8(parity, _mm256_and_si256(bits, low));
    const __m256i p1 = _mm256_shuffle_epi8(parity, _mm256_and_si256(_mm256_srli_epi16(bits, 4), low));
    return _mm256_or_si256(bits, _mm256_xor_si256(p0, p1));
}

/* From words of 32 values, as IQ2_XXS and IQ3_XXS have them: four times seven sign bits, scale nibble. */
INLINE void prepare_words(__m256i word, struct prep *p)
{
    const __m256i scale = _mm256_or_si256(_mm256_slli_epi32(_mm256_srli_epi32(word, 28), 1), _mm256_set1_epi32(1));
    __m256i bits = _mm256_and_si256(word, _mm256_set1_epi32(0x7f));
    bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_slli_epi32(word, 1), _mm256_set1_epi32(0x7f00)));
    bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_slli_epi32(word, 2), _mm256_set1_epi32(0x7f0000)));
    bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_slli_epi32(word, 3), _mm256_set1_epi32(0x7f000000)));
    put_scales(p, twice16(scale));
    store256(p->sign, with_parity(bits));
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
    } else if (t == QT_IQ3_S) {
        const __m128i s = odd_scales(_mm_cvtsi32_si128((int)load_u32(b + IQ3_S_SCALES)));
        put_scales(p, twice16(_mm256_cvtepu8_epi32(s)));
        store256(p->sign, load256(b + IQ3_S_SIGNS));
    } else if (t == QT_IQ1_S) {
        const __m128i h = _mm_loadu_si128((const __m128i *)(b + IQ1_S_HIGH));
        const __m128i s = _mm_and_si128(_mm_srli_epi16(h, 11), _mm_set1_epi16(14));
        put_scales(p, twice16(_mm256_cvtepu16_epi32(_mm_or_si128(s, _mm_set1_epi16(1)))));
    } else {
        put_scales(p, iq1_m_scales16(b));
    }
}

/* ---- codes */

INLINE __m256i join64(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return _mm256_setr_epi64x((long long)a, (long long)b, (long long)c, (long long)d);
}

INLINE __m256i iq3_entries(const uint32_t *grid, const uint8_t *low, unsigned high)
{
    return _mm256_setr_epi32((int)grid[low[0] | (high << 8 & 256)], (int)grid[low[1] | (high << 7 & 256)],
                             (int)grid[low[2] | (high << 6 & 256)], (int)grid[low[3] | (high << 5 & 256)],
                             (int)grid[low[4] | (high << 4 & 256)], (int)grid[low[5] | (high << 3 & 256)],
                             (int)grid[low[6] | (high << 2 & 256)], (int)grid[low[7] | (high << 1 & 256)]);
}

/* Four entries of IQ1 whose index has `high` above the byte; minus: the bit that lowers the values is set. */
INLINE uint64_t iq1_entry(unsigned low, unsigned high, unsigned minus)
{
    return iq1s_grid[low | high] | (minus ? 0 : 0x0202020202020202);
}

/* Magnitudes of values 32g.. of a block; of IQ1 codes. */
INLINE __m256i grid32(enum qtype t, const uint8_t *b, int g)
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
    if (t == QT_IQ2_S) {
        const uint8_t *const low = b + IQ2_S_LOW + 4 * g;
        const unsigned h = b[IQ2_S_HIGH + g];
        return join64(iq2s_grid[low[0] | (h << 8 & 0x300)], iq2s_grid[low[1] | (h << 6 & 0x300)],
                      iq2s_grid[low[2] | (h << 4 & 0x300)], iq2s_grid[low[3] | (h << 2 & 0x300)]);
    }
    if (t == QT_IQ3_XXS) return iq3_entries(iq3xxs_grid, b + IQ3_XXS_INDEX + 8 * g, 0);
    if (t == QT_IQ3_S) return iq3_entries(iq3s_grid, b + IQ3_S_LOW + 8 * g, b[IQ3_S_HIGH + g]);
    if (t == QT_IQ1_S) {
        const uint8_t *const low = b + IQ1_S_LOW + 4 * g;
        const unsigned h = load_u16(b + IQ1_S_HIGH + 2 * g);
        const __m256i v = join64(iq1s_grid[low[0] | (h << 8 & 0x700)], iq1s_grid[low[1] | (h << 5 & 0x700)],
                                 iq1s_grid[low[2] | (h << 2 & 0x700)], iq1s_grid[low[3] | (h >> 1 & 0x700)]);
        return _mm256_or_si256(v, _mm256_set1_epi8(h & 0x8000 ? 0 : 2));
    }
    const uint8_t *const low = b + IQ1_M_LOW + 4 * g;
    const unsigned h = load_u16(b + IQ1_M_HIGH + 2 * g);
    return join64(iq1_entry(low[0], h << 8 & 0x700, h & 8), iq1_entry(low[1], h << 4 & 0x700, h & 0x80),
                  iq1_entry(low[2], h & 0x700, h & 0x800), iq1_entry(low[3], h >> 4 & 0x700, h & 0x8000));
}

/* +1 or -1 per value of group g. */
INLINE __m256i signs32(const struct prep *p, int g)
{
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i v = _mm256_and_si256(_mm256_shuffle_epi8(spread32(p->sign + 4 * g), spread), bit);
    return _mm256_or_si256(_mm256_cmpeq_epi8(v, bit), _mm256_set1_epi8(1));
}

#endif
