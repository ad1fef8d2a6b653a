/* Scales, minimums and signs of the types with blocks of 256, for the AVX2 and AVX-512 kernels (spec
 * gguf-and-quants 2.5 to 2.9). */
#ifndef QUANT_QUANT_K_AVX2_H
#define QUANT_QUANT_K_AVX2_H
#include "quant/quant_avx2.h"
#include "quant/quant_blocks.h"

/* What a block needs besides its codes. */
struct prep {
    _Alignas(32) int16_t scale[16]; /* per 16 values */
    _Alignas(32) int16_t min[16];   /* factors of the activation sums */
    _Alignas(32) uint8_t sign[32];  /* IQ2_XXS: sign bits, one byte per 8 values */
};

INLINE size_t block_bytes(enum qtype t)
{
    return t == QT_Q2_K   ? Q2_K_BYTES
           : t == QT_Q4_K ? Q4_K_BYTES
           : t == QT_Q5_K ? Q5_K_BYTES
           : t == QT_Q6_K ? Q6_K_BYTES
                          : IQ2_XXS_BYTES;
}

/* Values per scale. */
INLINE int sub_block(enum qtype t)
{
    return t == QT_Q2_K || t == QT_Q6_K ? 16 : 32;
}

INLINE bool has_min(enum qtype t)
{
    return t == QT_Q2_K || t == QT_Q4_K || t == QT_Q5_K;
}

/* The 6-bit scales and minimums of Q4_K and Q5_K, each twice because they cover two activation sums. */
INLINE void prepare_q4_k(const uint8_t *s, struct prep *p)
{
    const uint32_t a = load_u32(s), b = load_u32(s + 4), c = load_u32(s + 8);
    const uint32_t scale_hi = (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030),
                   min_hi = (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030);
    const __m128i scale = _mm_setr_epi32((int)(a & 0x3f3f3f3f), (int)scale_hi, 0, 0);
    const __m128i min = _mm_setr_epi32((int)(b & 0x3f3f3f3f), (int)min_hi, 0, 0);
    store256(p->scale, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(scale, scale)));
    store256(p->min, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(min, min)));
}

/* Scales 2s + 1 and the sign bytes: seven stored bits each, the eighth is their parity. */
INLINE void prepare_iq2_xxs(const uint8_t *b, struct prep *p)
{
    const __m256 lo = _mm256_loadu_ps((const float *)(const void *)(b + IQ2_XXS_GROUPS));
    const __m256 hi = _mm256_loadu_ps((const float *)(const void *)(b + IQ2_XXS_GROUPS + 32));
    const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(lo, hi, 0xdd)); /* second words of the groups */
    const __m256i word = _mm256_permute4x64_epi64(odd, 0xd8);
    __m256i scale = _mm256_or_si256(_mm256_slli_epi32(_mm256_srli_epi32(word, 28), 1), _mm256_set1_epi32(1));
    scale = _mm256_or_si256(scale, _mm256_slli_epi32(scale, 16));
    store256(p->scale, scale);
    store256(p->min, scale);

    __m256i bits = _mm256_and_si256(word, _mm256_set1_epi32(0x7f));
    bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_slli_epi32(word, 1), _mm256_set1_epi32(0x7f00)));
    bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_slli_epi32(word, 2), _mm256_set1_epi32(0x7f0000)));
    bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_slli_epi32(word, 3), _mm256_set1_epi32(0x7f000000)));
    const char o = (char)0x80; /* parity of a nibble, in bit 7 */
    const __m256i parity = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, o, o, 0, o, 0, 0, o, o, 0, 0, o, 0, o, o, 0));
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i p0 = _mm256_shuffle_epi8(parity, _mm256_and_si256(bits, low));
    const __m256i p1 = _mm256_shuffle_epi8(parity, _mm256_and_si256(_mm256_srli_epi16(bits, 4), low));
    store256(p->sign, _mm256_or_si256(bits, _mm256_xor_si256(p0, p1)));
}

INLINE void prepare(enum qtype t, const uint8_t *b, struct prep *p)
{
    if (t == QT_Q2_K) {
        const __m128i s = _mm_loadu_si128((const __m128i *)(b + Q2_K_SCALES)), low = _mm_set1_epi8(15);
        store256(p->scale, _mm256_cvtepu8_epi16(_mm_and_si128(s, low)));
        store256(p->min, _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(s, 4), low)));
    } else if (t == QT_Q6_K) {
        const __m256i s = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + Q6_K_SCALES)));
        store256(p->scale, s);
        store256(p->min, s);
    } else if (t == QT_IQ2_XXS) {
        prepare_iq2_xxs(b, p);
    } else {
        prepare_q4_k(b + Q4_K_SCALES, p);
    }
}

INLINE size_t d_at(enum qtype t)
{
    return t == QT_Q2_K ? Q2_K_D : t == QT_Q6_K ? Q6_K_D : 0;
}

INLINE size_t dmin_at(enum qtype t)
{
    return t == QT_Q2_K ? Q2_K_DMIN : Q4_K_DMIN;
}

#endif
