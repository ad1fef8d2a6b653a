/* Scales, minimums and signs of the types with blocks of 256, for the AVX2 and AVX-512 kernels (spec
 * gguf-and-quants 2.5 to 2.9, more-quants 2). */
#ifndef QUANT_QUANT_K_AVX2_H
#define QUANT_QUANT_K_AVX2_H
#include "quant/quant_avx2.h"
#include "quant/quant_traits.h"

/* What a block needs besides its codes. */
struct prep {
    _Alignas(32) int16_t scale[16];  /* per 16 values */
    _Alignas(32) int16_t min[16];    /* factors of the activation sums */
    _Alignas(32) uint8_t sign[32];   /* per 8 values: sign bits; IQ1: 2 where the values are higher, else 0 */
    _Alignas(32) uint16_t index[64]; /* in a code book; of IQ3_XXS as bytes */
};

/* Scales that are the factors of the activation sums, too. */
INLINE void put_scales(struct prep *p, __m256i scale)
{
    store256(p->scale, scale);
    store256(p->min, scale);
}

/* 32-bit numbers below 2^15 as pairs of 16-bit ones. */
INLINE __m256i twice16(__m256i v)
{
    return _mm256_or_si256(v, _mm256_slli_epi32(v, 16));
}

/* The 6-bit scales and minimums of Q4_K and Q5_K, one byte each. */
INLINE void q4_k_factors(const uint8_t *s, uint64_t *scale, uint64_t *min)
{
    const uint32_t a = load_u32(s), b = load_u32(s + 4), c = load_u32(s + 8);
    const uint64_t scale_hi = (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030),
                   min_hi = (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030);
    *scale = (a & 0x3f3f3f3f) | scale_hi << 32;
    *min = (b & 0x3f3f3f3f) | min_hi << 32;
}

/* The same as 16-bit numbers, each twice because they cover two activation sums. */
INLINE void prepare_q4_k(const uint8_t *s, struct prep *p)
{
    uint64_t a, b;
    q4_k_factors(s, &a, &b);
    const __m128i scale = _mm_cvtsi64_si128((long long)a), min = _mm_cvtsi64_si128((long long)b);
    store256(p->scale, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(scale, scale)));
    store256(p->min, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(min, min)));
}

/* The 6-bit scales of Q3_K, 32 too high in the file. */
INLINE __m256i q3_k_scales16(const uint8_t *s)
{
    const uint32_t a = load_u32(s), b = load_u32(s + 4), c = load_u32(s + 8);
    const uint32_t low = 0x0f0f0f0f, high = 0x30303030;
    const __m128i v = _mm_setr_epi32((int)((a & low) | (c << 4 & high)), (int)((b & low) | (c << 2 & high)),
                                     (int)((a >> 4 & low) | (c & high)), (int)((b >> 4 & low) | (c >> 2 & high)));
    return _mm256_cvtepi8_epi16(_mm_sub_epi8(v, _mm_set1_epi8(32)));
}

#include "quant/quant_grid_avx2.h"

INLINE void prepare(enum qtype t, const uint8_t *b, struct prep *p)
{
    if (t == QT_Q2_K) {
        const __m128i s = _mm_loadu_si128((const __m128i *)(b + Q2_K_SCALES)), low = _mm_set1_epi8(15);
        store256(p->scale, _mm256_cvtepu8_epi16(_mm_and_si128(s, low)));
        store256(p->min, _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(s, 4), low)));
    } else if (t == QT_Q6_K) {
        put_scales(p, _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + Q6_K_SCALES))));
    } else if (t == QT_Q3_K) {
        put_scales(p, q3_k_scales16(b + Q3_K_SCALES));
    } else if (t == QT_TQ1_0 || t == QT_TQ2_0) {
        put_scales(p, _mm256_set1_epi16(1));
    } else if (t == QT_Q4_K || t == QT_Q5_K) {
        prepare_q4_k(b + Q4_K_SCALES, p);
    } else {
        grid_prepare(t, b, p);
    }
}

/* Scales d of the blocks at the same offset of eight rows. */
INLINE __m256 d_of_rows(enum qtype t, const uint8_t *const row[ROWS], size_t at)
{
    if (t != QT_IQ1_M) return f16_of_rows(row, at + d_at(t));
    const __m128i h =
        _mm_setr_epi16((short)iq1_m_d(row[0] + at), (short)iq1_m_d(row[1] + at), (short)iq1_m_d(row[2] + at),
                       (short)iq1_m_d(row[3] + at), (short)iq1_m_d(row[4] + at), (short)iq1_m_d(row[5] + at),
                       (short)iq1_m_d(row[6] + at), (short)iq1_m_d(row[7] + at));
    return _mm256_cvtph_ps(h);
}

/* offset: how much too high the codes of sum were. */
INLINE __m256 step(enum qtype t, __m256 acc, __m256i sum, __m256i min, __m256 d, __m256 dmin, __m256 yd, int offset)
{
    if (has_min(t)) {
        const __m256 s = _mm256_mul_ps(_mm256_mul_ps(d, yd), _mm256_cvtepi32_ps(sum));
        const __m256 m = _mm256_mul_ps(_mm256_mul_ps(dmin, yd), _mm256_cvtepi32_ps(min));
        return _mm256_add_ps(acc, _mm256_sub_ps(s, m));
    }
    if (offset) sum = _mm256_sub_epi32(sum, _mm256_mullo_epi32(min, _mm256_set1_epi32(offset)));
    __m256 s = _mm256_cvtepi32_ps(sum);
    if (block_factor(t) != 1) s = _mm256_mul_ps(s, _mm256_set1_ps(block_factor(t)));
    return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_mul_ps(d, yd), s));
}

#endif
