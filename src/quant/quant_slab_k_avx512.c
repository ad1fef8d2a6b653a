/* AVX-512 slab kernels of Q4_K, Q5_K and Q6_K: codes of Q6_K are 32 too high. Spec gguf-and-quants 2.6 to 2.8. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"

/* 64 values of a block, from value 64*i on: unsigned codes. */
INLINE __m512i codes64(enum qtype t, const uint8_t *b, int i)
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

/* Pairs of 16-bit factors of sixteen rows, one row per lane of v[0..7]. */
INLINE void pairs_of_rows(const struct prep p[SLAB_ROWS], size_t at, __m512i v[8])
{
    __m256i lo[8], hi[8];
    UNROLL for (int r = 0; r < 8; r++)
    {
        lo[r] = load256((const uint8_t *)&p[r] + at);
        hi[r] = load256((const uint8_t *)&p[8 + r] + at);
    }
    transpose8(lo);
    transpose8(hi);
    UNROLL for (int g = 0; g < 8; g++) v[g] = join256(lo[g], hi[g]);
}

/* Scales and factors of the activation sums. */
INLINE void fill_scales(enum qtype t, const struct prep p[SLAB_ROWS], struct half256 *s)
{
    __m512i v[8];
    if (has_min(t)) {
        pairs_of_rows(p, offsetof(struct prep, min), v);
        UNROLL for (int g = 0; g < 8; g++) store512(s->min[g], v[g]);
    }
    pairs_of_rows(p, offsetof(struct prep, scale), v);
    UNROLL for (int g = 0; g < 8; g++)
    {
        const __m512i second = _mm512_srai_epi32(v[g], 16);
        if (sub_block(t) == 32) {
            store512(s->scale[g], second); /* equal to the first */
        } else {
            store512(s->scale[2 * g], _mm512_srai_epi32(_mm512_slli_epi32(v[g], 16), 16));
            store512(s->scale[2 * g + 1], second);
        }
    }
}

INLINE void fill_half(enum qtype t, const uint8_t *const row[SLAB_ROWS], size_t at, struct half256 *s)
{
    struct prep p[SLAB_ROWS];
    for (int r = 0; r < SLAB_ROWS; r++) prepare(t, row[r] + at, &p[r]);
    fill_scales(t, p, s);
    UNROLL for (int i = 0; i < 4; i++)
    {
        __m512i v[16];
#pragma GCC unroll 16
        for (int r = 0; r < SLAB_ROWS; r++) v[r] = codes64(t, row[r] + at, i);
        transpose16(v);
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) store512(s->code[16 * i + j], v[j]);
    }
    _mm512_store_ps(s->d, f16_of_slab_rows(row, at + d_at(t)));
    if (has_min(t)) _mm512_store_ps(s->dmin, f16_of_slab_rows(row, at + dmin_at(t)));
}

SLAB256(q4_k, QT_Q4_K, quant_pack_pairs)
SLAB256(q5_k, QT_Q5_K, quant_pack_pairs)
SLAB256(q6_k, QT_Q6_K, quant_pack_high_16)
#endif
