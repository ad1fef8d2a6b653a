/* AVX-512 slab kernels of Q4_K, Q5_K and Q6_K: codes of Q6_K are 32 too high. Spec gguf-and-quants 2.6 to 2.8. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"

/* 64 values of a block, from value 64*i on: unsigned codes. */
INLINE __m512i codes64(enum qtype t, const uint8_t *b, const struct prep *p, int i)
{
    const __m512i m4 = _mm512_set1_epi8(15);
    if (t == QT_Q6_K) {
        const __m512i lo = _mm512_and_si512(_mm512_srli_epi16(load512(b + 64 * (i / 2)), 4 * (i % 2)), m4);
        const __m512i shift =
            join256(_mm256_set1_epi16((short)(4 * (i % 2))), _mm256_set1_epi16((short)(4 * (i % 2) + 2)));
        const __m512i bits = _mm512_srlv_epi16(twice256(load256(b + Q6_K_QH + 32 * (i / 2))), shift);
        return _mm512_or_si512(lo, _mm512_slli_epi16(_mm512_and_si512(bits, _mm512_set1_epi8(3)), 4));
    }
    const uint8_t *const qs = b + (t == QT_Q4_K ? Q4_K_QS : Q5_K_QS);
    const __m512i halves = join256(_mm256_setzero_si256(), _mm256_set1_epi16(4));
    const __m512i lo = _mm512_and_si512(_mm512_srlv_epi16(twice256(load256(qs + 32 * i)), halves), m4);
    if (t == QT_Q4_K) return lo;
    const __m512i shift = join256(_mm256_set1_epi16((short)(2 * i)), _mm256_set1_epi16((short)(2 * i + 1)));
    const __m512i bits = _mm512_srlv_epi16(twice256(load256(b + Q5_K_QH)), shift);
    return _mm512_or_si512(lo, _mm512_slli_epi16(_mm512_and_si512(bits, _mm512_set1_epi8(1)), 4));
}

INLINE void fill_half(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at, struct half256 *s)
{
    (void)book;
    fill_by_rows(codes64, t, row, at, s);
}

INLINE void fill_blocks(enum qtype t, const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)
{
    fill256(fill_half, t, NULL, row, first, n_blocks, slab);
}

SLAB256(q4_k, QT_Q4_K, quant_pack_pairs, 8)
SLAB256(q5_k, QT_Q5_K, quant_pack_pairs, 8)
SLAB256(q6_k, QT_Q6_K, quant_pack_high_16, 16)
#endif
