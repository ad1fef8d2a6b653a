/* The loop with AVX-VNNI; floats take that of AVX2. */
#include "peak_internal.h"
#ifdef __AVXVNNI__
#include <immintrin.h>

int64_t peak_int8_avxvnni(int rounds, volatile float *sink)
{
    __m256i sum[PEAK_CHAINS], a = _mm256_set1_epi8((char)*sink), w = _mm256_set1_epi8(3);
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) {
        sum[i] = _mm256_setzero_si256();
        __asm__("" : "+x"(sum[i])); /* unlike the others */
    }
    for (int n = 0; n < rounds; n++) {
        __asm__("" : "+x"(a), "+x"(w)); /* no product is known from the round before */
#pragma GCC unroll 12
        for (int i = 0; i < PEAK_CHAINS; i++) {
            sum[i] = _mm256_dpbusd_avx_epi32(sum[i], w, a);
            __asm__("" : "+x"(sum[i])); /* in place: copies would take the loop's time */
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) *sink = (float)(_mm256_extract_epi32(sum[i], 0) & 1);
    return (int64_t)rounds * PEAK_CHAINS * 32;
}
#else
typedef int peak_avxvnni_not_built;
#endif
