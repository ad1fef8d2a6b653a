/* The loops with AVX2. */
#include "peak_internal.h"
#ifdef __AVX2__
#include <immintrin.h>

int64_t peak_int8_avx2(int rounds, volatile float *sink)
{
    __m256i sum[PEAK_CHAINS], a = _mm256_set1_epi8((char)*sink), w = _mm256_set1_epi8(3);
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) {
        sum[i] = _mm256_setzero_si256();
        __asm__("" : "+x"(sum[i])); /* unlike the others */
    }
    for (int n = 0; n < rounds; n++) {
        __asm__("" : "+x"(a), "+x"(w)); /* no product is known from the round before */
#pragma GCC unroll 12
        for (int i = 0; i < PEAK_CHAINS; i++) {
            sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(_mm256_maddubs_epi16(w, a), ones));
            __asm__("" : "+x"(sum[i]), "+x"(a)); /* each product is made */
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) *sink = (float)(_mm256_extract_epi32(sum[i], 0) & 1);
    return (int64_t)rounds * PEAK_CHAINS * 32;
}

int64_t peak_f32_avx2(int rounds, volatile float *sink)
{
    __m256 sum[PEAK_CHAINS], a = _mm256_set1_ps(*sink), w = _mm256_set1_ps(0.5f);
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) {
        sum[i] = _mm256_setzero_ps();
        __asm__("" : "+x"(sum[i])); /* unlike the others */
    }
    for (int n = 0; n < rounds; n++) {
        __asm__("" : "+x"(a), "+x"(w));
#pragma GCC unroll 12
        for (int i = 0; i < PEAK_CHAINS; i++) {
            sum[i] = _mm256_fmadd_ps(w, a, sum[i]);
            __asm__("" : "+x"(sum[i])); /* in place: copies would take the loop's time */
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) *sink = _mm256_cvtss_f32(sum[i]) * 0;
    return (int64_t)rounds * PEAK_CHAINS * 8;
}
#else
typedef int peak_avx2_not_built;
#endif
