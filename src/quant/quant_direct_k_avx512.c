/* AVX-512 tiles of Q2_K, Q4_K, Q5_K and Q6_K for few activation rows (ACT_Q8_K). A block is four vectors of 64 unsigned
 * codes, in the order in which the bytes of the file hold them, and four of 16-bit scales; the activations are taken in
 * the same order. Codes of Q6_K are 32 too high. Spec gguf-and-quants 2.5 to 2.8.
 *
 * Floor: memory. Measured for Q2_K (Zen 4, 2 cores, 3.7 GHz): from the cache 15 GB/s per thread, from memory 25 to 28
 * GB/s with two threads where plain reading gives 27 to 40; the AVX2 kernel 19 to 24. */
#ifdef __AVX512VNNI__
#include "quant/quant_direct_avx512.h"
#include "quant/quant_k_avx2.h"

enum { PARTS = 4 };

/* Where the halves of part i of a block begin, in values. */
INLINE int first_half(enum qtype t, int i)
{
    return t == QT_Q2_K ? 32 * i : t == QT_Q6_K ? 64 * i : 128 * (i / 2) + 32 * (i % 2);
}

INLINE int second_half(enum qtype t, int i)
{
    return first_half(t, i) + (t == QT_Q2_K ? 128 : t == QT_Q6_K ? 32 : 64);
}

/* Two vectors of the same 64-bit elements. */
INLINE __m512i halves(uint64_t first, uint64_t second)
{
    return join256(_mm256_set1_epi64x((long long)first), _mm256_set1_epi64x((long long)second));
}

/* Matrices over bits that move n bits of a byte, from bit `from` on, to bit 4. */
INLINE uint64_t to_bit4(int n, int from)
{
    return (uint64_t)1 << from << 24 | (n > 1 ? (uint64_t)2 << from << 16 : 0);
}

/* The bytes of a block that hold codes: low bits of parts 0 and 1, of 2 and 3 (Q2_K: of all); high bits, twice. */
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
    const uint8_t *const qs = b + (t == QT_Q2_K ? Q2_K_QS : t == QT_Q4_K ? Q4_K_QS : t == QT_Q5_K ? Q5_K_QS : 0);
    struct bits v;
    v.low[0] = kept(load512(qs));
    if (t != QT_Q2_K) v.low[1] = kept(load512(qs + 64));
    if (t == QT_Q5_K) v.high[0] = v.high[1] = kept(twice256(load256(b + Q5_K_QH)));
    if (t == QT_Q6_K) v.high[0] = kept(twice256(load256(b + Q6_K_QH)));
    if (t == QT_Q6_K) v.high[1] = kept(twice256(load256(b + Q6_K_QH + 32)));
    return v;
}

/* Unsigned codes of part i. */
INLINE __m512i codes(enum qtype t, const struct bits *v, int i)
{
    if (t == QT_Q2_K) return _mm512_and_si512(_mm512_srli_epi16(v->low[0], 2 * i), _mm512_set1_epi8(3));
    const __m512i m4 = _mm512_set1_epi8(15), low = _mm512_srli_epi16(v->low[i / 2], 4 * (i % 2));
    if (t == QT_Q4_K) return _mm512_and_si512(low, m4);
    const __m512i move = t == QT_Q5_K ? halves(to_bit4(1, first_half(t, i) / 32), to_bit4(1, second_half(t, i) / 32))
                                      : halves(to_bit4(2, 4 * (i % 2)), to_bit4(2, 4 * (i % 2) + 2));
    const __m512i high = _mm512_gf2p8affine_epi64_epi8(v->high[i / 2], move, 0);
    return _mm512_ternarylogic_epi32(low, m4, high, 0xea); /* low & m4 | high */
}

/* Scales of a block as 16-bit numbers, one per sub-block, and factors of the sums of 16 activations. */
INLINE void factors(enum qtype t, const uint8_t *b, __m256i *scale, __m256i *min)
{
    if (t == QT_Q2_K) {
        const __m128i s = _mm_loadu_si128((const __m128i *)(b + Q2_K_SCALES)), m4 = _mm_set1_epi8(15);
        *scale = _mm256_cvtepu8_epi16(_mm_and_si128(s, m4));
        *min = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(s, 4), m4));
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
INLINE void block_products(enum qtype t, int C, const uint8_t *const row[ROWS], int b, int k,
                           const uint8_t *const col[DIRECT_COLS], __m512i v[DIRECT_COLS][ROWS])
{
    __m512i q[DIRECT_COLS][PARTS];
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int i = 0; i < PARTS; i++)
    {
        const uint8_t *const at = col[c] + 256 * b;
        q[c][i] = join256(load256(at + first_half(t, i)), load256(at + second_half(t, i)));
    }
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const uint8_t *const block = row[r] + (size_t)b * block_bytes(t);
        __m256i scale, min;
        __m512i s[DIRECT_COLS];
        ask_ahead(block, 0, block_bytes(t));
        factors(t, block, &scale, &min);
        const struct bits bits = bits_load(t, block);
        UNROLL for (int i = 0; i < PARTS; i++)
        {
            const __m512i code = codes(t, &bits, i), by = spread(t, scale, i);
            UNROLL for (int c = 0; c < C; c++) s[c] =
                _mm512_dpwssd_epi32(i ? s[c] : _mm512_setzero_si512(), _mm512_maddubs_epi16(code, q[c][i]), by);
        }
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m256i folded = _mm256_add_epi32(_mm512_castsi512_si256(s[c]), _mm512_extracti64x4_epi64(s[c], 1));
            v[c][r] = join256(folded, _mm256_madd_epi16(min, load256(row_bsums(col[c], k) + 16 * b)));
        }
    }
}

INLINE void rows_direct(enum qtype t, int C, int k, const uint8_t *const row[ROWS], const uint8_t *x, size_t x_stride,
                        __m256 acc[DIRECT_COLS])
{
    const uint8_t *col[DIRECT_COLS];
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm256_setzero_ps();
    for (int b = 0; b < k / 256; b++) {
        __m512i v[DIRECT_COLS][ROWS];
        __m256 d, dmin;
        block_products(t, C, row, b, k, col, v);
        f16_pairs_of_rows(row, (size_t)b * block_bytes(t) + (t == QT_Q6_K ? Q6_K_D - 2 : d_at(t)), &d, &dmin);
        UNROLL for (int c = 0; c < C; c++)
        {
            __m256i sum, min;
            half_sums(v[c], &sum, &min);
            acc[c] = step(t, acc[c], sum, min, t == QT_Q6_K ? dmin : d, dmin, _mm256_set1_ps(row_d(col[c], k)[b]),
                          t == QT_Q6_K ? Q6_OFFSET : 0);
        }
    }
}

QUANT_TILE_DIRECT(tile_q2_k_avx512, QT_Q2_K)
QUANT_TILE_DIRECT(tile_q4_k_avx512, QT_Q4_K)
QUANT_TILE_DIRECT(tile_q5_k_avx512, QT_Q5_K)
QUANT_TILE_DIRECT(tile_q6_k_avx512, QT_Q6_K)
#endif
