/* AVX-512 tiles of Q3_K to Q6_K, and of TQ1_0 and TQ2_0, for few activation rows (ACT_Q8_K). A block is four vectors
 * (TQ1_0: five, of which 52 bytes count) of 64 unsigned codes, in the order in which the bytes of the file hold them,
 * and four of 16-bit scales (none of TQ); the activations are taken in the same order. Spec gguf-and-quants 2.6 to 2.8,
 * more-quants 2.6.
 *
 * Floor: memory. A block takes some 30 vector instructions (TQ2_0 18, TQ1_0 40), two a cycle: at 3.2 GHz 55 * 10^9
 * weights per second (90, 40). One core of an Intel Xeon (Emerald Rapids), 10^9 weights per second from the cache and
 * GB/s from memory, where Q8_0 gets 13.5 (the AVX2 kernels): Q3_K 31, 12.0 (19, 7.4); Q4_K 33, 12.1 (24, 10.4); Q5_K
 * 33, 13.0 (20, 9.4); Q6_K 35, 12.6 (20, 11.7); TQ1_0 32, 6.5 (13, 2.7); TQ2_0 68, 13.6 (39, 9.7). */
#ifdef __AVX512VNNI__
#include "quant/quant_direct_avx512.h"
#include "quant/quant_k_avx2.h"

enum { MOST_PARTS = 5 };

INLINE int parts(enum qtype t)
{
    return t == QT_TQ1_0 ? 5 : 4;
}

/* Two bits per value, four parts in a vector. */
INLINE bool two_bits(enum qtype t)
{
    return t == QT_Q3_K || t == QT_TQ2_0;
}

INLINE bool is_tq(enum qtype t)
{
    return t == QT_TQ1_0 || t == QT_TQ2_0;
}

/* Where the halves of part i of a block begin, in values (not TQ1_0). */
INLINE int first_half(enum qtype t, int i)
{
    return two_bits(t) ? 32 * i : t == QT_Q6_K ? 64 * i : 128 * (i / 2) + 32 * (i % 2);
}

INLINE int second_half(enum qtype t, int i)
{
    return first_half(t, i) + (two_bits(t) ? 128 : t == QT_Q6_K ? 32 : 64);
}

/* The activations of part i of a block. */
INLINE __m512i part_of(enum qtype t, const uint8_t *q, int i)
{
    if (t != QT_TQ1_0) return join256(load256(q + first_half(t, i)), load256(q + second_half(t, i)));
    const __m128i last = i < 4 ? _mm_cvtsi32_si128((int)load_u32(q + 240 + 4 * i)) : _mm_setzero_si128();
    const __m128i middle = _mm_loadu_si128((const __m128i *)(q + 160 + 16 * i));
    return join256(load256(q + 32 * i), _mm256_set_m128i(last, middle));
}

/* Two vectors of the same 64-bit elements. */
INLINE __m512i halves(uint64_t first, uint64_t second)
{
    return join256(_mm256_set1_epi64x((long long)first), _mm256_set1_epi64x((long long)second));
}

/* The bytes of a block that hold codes: low bits of parts 0 and 1, of 2 and 3 (of two bits: of all); high bits, twice.
 * TQ1_0: the digits from the next part's on, as 256ths. */
struct bits {
    __m512i low[2], high[2];
};

INLINE __m512i kept(__m512i v)
{
    __asm__("" : "+v"(v)); /* loaded once: lines are crossed */
    return v;
}

INLINE struct bits bits_load(enum qtype t, const uint8_t *b)
{
    const uint8_t *const qs = b + (t == QT_Q3_K   ? Q3_K_QS
                                   : t == QT_Q4_K ? Q4_K_QS
                                   : t == QT_Q5_K ? Q5_K_QS
                                                  : 0);
    struct bits v;
    v.low[0] = kept(t == QT_TQ1_0 ? _mm512_maskz_loadu_epi8(((__mmask64)1 << TQ1_0_D) - 1, qs) : load512(qs));
    if (!two_bits(t) && t != QT_TQ1_0) v.low[1] = kept(load512(qs + 64));
    if (t == QT_Q3_K) v.high[0] = kept(twice256(load256(b + Q3_K_HIGH)));
    if (t == QT_Q5_K) v.high[0] = v.high[1] = kept(twice256(load256(b + Q5_K_QH)));
    if (t == QT_Q6_K) v.high[0] = kept(twice256(load256(b + Q6_K_QH)));
    if (t == QT_Q6_K) v.high[1] = kept(twice256(load256(b + Q6_K_QH + 32)));
    return v;
}

/* The first digit of base 3: x * 3 / 256, the upper bits of two averages, which round up. The others move up. */
INLINE __m512i next_digit(__m512i *x)
{
    const __m512i less = _mm512_subs_epu8(*x, _mm512_set1_epi8(1));
    const __m512i v = _mm512_avg_epu8(less, _mm512_avg_epu8(less, _mm512_setzero_si512()));
    *x = _mm512_add_epi8(_mm512_add_epi8(*x, *x), *x);
    return _mm512_gf2p8affine_epi64_epi8(v, _mm512_set1_epi64((long long)moved(2, 6, 0)), 0);
}

/* Unsigned codes of part i; parts are taken in order. */
INLINE __m512i codes(enum qtype t, struct bits *v, int i)
{
    if (t == QT_TQ1_0) return next_digit(&v->low[0]);
    if (two_bits(t)) {
        const __m512i m2 = _mm512_set1_epi8(3), low = _mm512_srli_epi16(v->low[0], 2 * (unsigned)i);
        if (t != QT_Q3_K) return _mm512_and_si512(low, m2);
        const __m512i move = halves(moved(1, i, 2), moved(1, i + 4, 2));
        return _mm512_ternarylogic_epi32(low, m2, _mm512_gf2p8affine_epi64_epi8(v->high[0], move, 0), 0xea);
    }
    const __m512i m4 = _mm512_set1_epi8(15), low = _mm512_srli_epi16(v->low[i / 2], 4 * (i % 2));
    if (t == QT_Q4_K) return _mm512_and_si512(low, m4);
    const __m512i move = t == QT_Q5_K ? halves(moved(1, first_half(t, i) / 32, 4), moved(1, second_half(t, i) / 32, 4))
                                      : halves(moved(2, 4 * (i % 2), 4), moved(2, 4 * (i % 2) + 2, 4));
    const __m512i high = _mm512_gf2p8affine_epi64_epi8(v->high[i / 2], move, 0);
    return _mm512_ternarylogic_epi32(low, m4, high, 0xea); /* low & m4 | high */
}

/* Scales of a block as 16-bit numbers, one per sub-block, and factors of the sums of 16 activations. */
INLINE void factors(enum qtype t, const uint8_t *b, __m256i *scale, __m256i *min)
{
    if (is_tq(t)) {
        *min = _mm256_set1_epi16(1);
    } else if (t == QT_Q3_K) {
        *scale = *min = q3_k_scales16(b + Q3_K_SCALES);
    } else if (t == QT_Q6_K) {
        *scale = *min = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + Q6_K_SCALES)));
    } else {
        uint64_t s, m;
        q4_k_factors(b + Q4_K_SCALES, &s, &m);
        const __m128i twice = _mm_cvtsi64_si128((long long)m);
        *scale = _mm256_castsi128_si256(_mm_cvtepu8_epi16(_mm_cvtsi64_si128((long long)s)));
        *min = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(twice, twice));
    }
}

/* Scales of part i, one per pair of values. */
INLINE __m512i spread(enum qtype t, __m256i scale, int i)
{
    const int a = first_half(t, i) / sub_block(t), b = second_half(t, i) / sub_block(t), next = sub_block(t) == 16;
    const __m256i lo = _mm256_set_m128i(_mm_set1_epi16((short)(a + next)), _mm_set1_epi16((short)a));
    const __m256i hi = _mm256_set_m128i(_mm_set1_epi16((short)(b + next)), _mm_set1_epi16((short)b));
    return _mm512_permutexvar_epi16(join256(lo, hi), _mm512_castsi256_si512(scale));
}

/* Block b of eight weight rows times C activation rows: per column and row a vector whose first half adds up to the sum
 * of scaled products, the second to the minimum term. */
INLINE void block_products(enum qtype t, enum asking ask, int C, const uint8_t *const row[ROWS], int b, int k,
                           const uint8_t *const col[DIRECT_COLS], __m512i v[DIRECT_COLS][ROWS])
{
    __m512i q[DIRECT_COLS][MOST_PARTS];
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int i = 0; i < parts(t); i++) q[c][i] =
        part_of(t, col[c] + 256 * b, i);
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const uint8_t *const block = row[r] + (size_t)b * block_bytes(t);
        __m256i scale, min;
        __m512i s[DIRECT_COLS];
        ask_ahead(ask, block, 0, block_bytes(t));
        factors(t, block, &scale, &min);
        struct bits bits = bits_load(t, block);
        UNROLL for (int c = 0; c < C; c++) s[c] = _mm512_setzero_si512();
        UNROLL for (int i = 0; i < parts(t); i++)
        {
            const __m512i code = codes(t, &bits, i);
            const __m512i by = is_tq(t) ? _mm512_setzero_si512() : spread(t, scale, i);
            UNROLL for (int c = 0; c < C; c++) s[c] =
                is_tq(t) ? _mm512_dpbusd_epi32(s[c], code, q[c][i])
                         : _mm512_dpwssd_epi32(s[c], _mm512_maddubs_epi16(code, q[c][i]), by);
        }
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m256i folded = _mm256_add_epi32(_mm512_castsi512_si256(s[c]), _mm512_extracti64x4_epi64(s[c], 1));
            v[c][r] = join256(folded, _mm256_madd_epi16(min, load256(row_bsums(col[c], k) + 16 * b)));
        }
    }
}

INLINE void rows_direct(enum qtype t, enum asking ask, int C, int k, const uint8_t *const row[ROWS], const uint8_t *x,
                        size_t x_stride, __m256 acc[DIRECT_COLS])
{
    const uint8_t *col[DIRECT_COLS];
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm256_setzero_ps();
    for (int b = 0; b < k / 256; b++) {
        __m512i v[DIRECT_COLS][ROWS];
        __m256 d, dmin;
        block_products(t, ask, C, row, b, k, col, v);
        f16_pairs_of_rows(row, (size_t)b * block_bytes(t) + d_at(t) - (has_min(t) ? 0 : 2), &d, &dmin);
        UNROLL for (int c = 0; c < C; c++)
        {
            __m256i sum, min;
            half_sums(v[c], &sum, &min);
            acc[c] = step(t, acc[c], sum, min, has_min(t) ? d : dmin, dmin, _mm256_set1_ps(row_d(col[c], k)[b]),
                          code_offset(t));
        }
    }
}

QUANT_TILE_DIRECT(tile_q3_k_avx512, QT_Q3_K)
QUANT_TILE_DIRECT(tile_q4_k_avx512, QT_Q4_K)
QUANT_TILE_DIRECT(tile_q5_k_avx512, QT_Q5_K)
QUANT_TILE_DIRECT(tile_q6_k_avx512, QT_Q6_K)
QUANT_TILE_DIRECT(tile_tq1_0_avx512, QT_TQ1_0)
QUANT_TILE_DIRECT(tile_tq2_0_avx512, QT_TQ2_0)
#endif
