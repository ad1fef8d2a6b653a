/* AVX-512 tiles of Q2_K, Q4_K, Q5_K and Q6_K (activations ACT_Q8_K). Slabs hold unsigned codes: those of Q2_K times
 * their scale, which fits (3 * 15), so that a block is one chain of products; those of Q6_K 32 too high. Spec
 * gguf-and-quants 2.5 to 2.8. */
#ifdef __AVX512VNNI__
#include "quant/quant_k_avx512.h"

/* 64 values of a block, from value 64*i on: unsigned codes. */
INLINE __m512i codes64(enum qtype t, const uint8_t *b, const struct prep *p, int i)
{
    const __m512i m4 = _mm512_set1_epi8(15);
    if (t == QT_Q2_K) {
        const __m512i shift =
            join256(_mm256_set1_epi16((short)(4 * (i % 2))), _mm256_set1_epi16((short)(4 * (i % 2) + 2)));
        const __m512i bits = twice256(load256(b + Q2_K_QS + 32 * (i / 2)));
        const __m512i code = _mm512_and_si512(_mm512_srlv_epi16(bits, shift), _mm512_set1_epi8(3));
        const __m512i quarter =
            _mm512_srli_epi16(_mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,
                                               13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                              3);
        const __m512i index = _mm512_add_epi16(quarter, _mm512_set1_epi16((short)(4 * i)));
        const __m512i scale = _mm512_permutexvar_epi16(index, _mm512_castsi256_si512(load256(p->scale)));
        return _mm512_mullo_epi16(code, scale); /* no carry from the low byte */
    }
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

INLINE void slab_fill(enum qtype t, const uint8_t *const row[SLAB_ROWS], size_t at, struct slab16 *s)
{
    struct prep p[SLAB_ROWS];
    for (int r = 0; r < SLAB_ROWS; r++) prepare(t, row[r] + at, &p[r]);
    slab16_scales(t, p, s);
    UNROLL for (int i = 0; i < 4; i++)
    {
        __m512i v[16];
#pragma GCC unroll 16
        for (int r = 0; r < SLAB_ROWS; r++) v[r] = codes64(t, row[r] + at, &p[r], i);
        transpose16(v);
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) store512(s->code[16 * i + j], v[j]);
    }
    _mm512_store_ps(s->d, f16_of_slab_rows(row, at + d_at(t)));
    if (has_min(t)) _mm512_store_ps(s->dmin, f16_of_slab_rows(row, at + dmin_at(t)));
}

INLINE void rows_slab(enum qtype t, int k, const uint8_t *const row[SLAB_ROWS], const uint8_t *x, size_t x_stride,
                      int n, float acc[COL_CHUNK][SLAB_ROWS])
{
    struct slab16 s;
    memset(acc, 0, COL_CHUNK * sizeof acc[0]);
    for (int b = 0; b < k / 256; b++) {
        prefetch_slab(row, (size_t)(b + 1) * block_bytes(t), block_bytes(t));
        slab_fill(t, row, (size_t)b * block_bytes(t), &s);
        slab16_multiply(t, &s, b, k, x, x_stride, n, acc);
    }
}

QUANT_TILE_SLAB(tile_q2_k_avx512, QT_Q2_K, tile_q2_k_avx2)
QUANT_TILE_SLAB(tile_q4_k_avx512, QT_Q4_K, tile_q4_k_avx2)
QUANT_TILE_SLAB(tile_q5_k_avx512, QT_Q5_K, tile_q5_k_avx2)
QUANT_TILE_SLAB(tile_q6_k_avx512, QT_Q6_K, tile_q6_k_avx2)
#endif
