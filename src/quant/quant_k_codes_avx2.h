/* Codes of the types with blocks of 256, 32 at a time, for the AVX2 and AVX-512 kernels. */
#ifndef QUANT_QUANT_K_CODES_AVX2_H
#define QUANT_QUANT_K_CODES_AVX2_H
#include "quant/quant_k_avx2.h"

/* Digits of base 3 of values 32g.. of TQ1_0: (x * 3^r mod 256) * 3 / 256. */
INLINE __m256i tq1_0_digits(const uint8_t *b, int g)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    __m128i lo = _mm_loadu_si128((const __m128i *)(b + (g < 5 ? 0 : 32))), hi = lo;
    __m256i by_lo = _mm256_set1_epi16(power[g < 5 ? g : g == 5 ? 0 : g == 6 ? 2 : 4]), by_hi = by_lo;
    if (g < 5) hi = _mm_loadu_si128((const __m128i *)(b + 16));
    if (g == 5 || g == 6) by_hi = _mm256_set1_epi16(power[g == 5 ? 1 : 3]);
    if (g == 7) {
        hi = _mm_set1_epi32((int)load_u32(b + TQ1_0_HIGH));
        by_hi = _mm256_setr_epi16(1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27);
    }
    const __m256i low = _mm256_set1_epi16(255), three = _mm256_set1_epi16(3);
    const __m256i x = _mm256_and_si256(_mm256_mullo_epi16(_mm256_cvtepu8_epi16(lo), by_lo), low);
    const __m256i y = _mm256_and_si256(_mm256_mullo_epi16(_mm256_cvtepu8_epi16(hi), by_hi), low);
    const __m256i v = _mm256_packus_epi16(_mm256_srli_epi16(_mm256_mullo_epi16(x, three), 8),
                                          _mm256_srli_epi16(_mm256_mullo_epi16(y, three), 8));
    return _mm256_permute4x64_epi64(v, 0xd8);
}

/* Unsigned codes of values 32g.. of a block. */
INLINE __m256i codes(enum qtype t, const uint8_t *b, const struct prep *p, int g)
{
    const __m256i m2 = _mm256_set1_epi8(3), m4 = _mm256_set1_epi8(15);
    if (t == QT_Q2_K) return _mm256_and_si256(_mm256_srli_epi16(load256(b + Q2_K_QS + 32 * (g / 4)), 2 * (g % 4)), m2);
    if (t == QT_Q4_K) return _mm256_and_si256(_mm256_srli_epi16(load256(b + Q4_K_QS + 32 * (g / 2)), 4 * (g % 2)), m4);
    if (t == QT_Q5_K) {
        const __m256i lo = _mm256_and_si256(_mm256_srli_epi16(load256(b + Q5_K_QS + 32 * (g / 2)), 4 * (g % 2)), m4);
        const __m256i hi = _mm256_and_si256(_mm256_srli_epi16(load256(b + Q5_K_QH), g), _mm256_set1_epi8(1));
        return _mm256_or_si256(lo, _mm256_slli_epi16(hi, 4));
    }
    if (t == QT_Q6_K) {
        const int h = g / 4, part = g % 4;
        const __m256i lo =
            _mm256_and_si256(_mm256_srli_epi16(load256(b + 64 * h + 32 * (part & 1)), part < 2 ? 0 : 4), m4);
        const __m256i hi = _mm256_and_si256(_mm256_srli_epi16(load256(b + Q6_K_QH + 32 * h), 2 * part), m2);
        return _mm256_or_si256(lo, _mm256_slli_epi16(hi, 4));
    }
    if (t == QT_Q3_K) {
        const __m256i lo = _mm256_and_si256(_mm256_srli_epi16(load256(b + Q3_K_QS + 32 * (g / 4)), 2 * (g % 4)), m2);
        const __m256i hi = _mm256_and_si256(_mm256_srli_epi16(load256(b + Q3_K_HIGH), g), _mm256_set1_epi8(1));
        return _mm256_or_si256(lo, _mm256_slli_epi16(hi, 2));
    }
    if (t == QT_TQ2_0) return _mm256_and_si256(_mm256_srli_epi16(load256(b + 32 * (g / 4)), 2 * (g % 4)), m2);
    if (t == QT_TQ1_0) return tq1_0_digits(b, g);
    if (!has_signs(t)) return grid32(t, b, p, g);
    const __m256i offset = _mm256_set1_epi8((char)code_offset(t));
    return _mm256_add_epi8(_mm256_sign_epi8(grid32(t, b, p, g), signs32(p, g)), offset);
}

#endif
