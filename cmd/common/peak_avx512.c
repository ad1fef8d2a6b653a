/* The loops with AVX-512. */
#include "peak_internal.h"
#ifdef __AVX512VNNI__
#include <immintrin.h>

int64_t peak_int8_avx512(int rounds, volatile float *sink)
{
    __m512i sum[PEAK_CHAINS], a = _mm512_set1_epi8((char)*sink), w = _mm512_set1_epi8(3);
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) {
        sum[i] = _mm512_setzero_si512();
        __asm__("" : "+v"(sum[i])); /* unlike the others */
    }
    for (int n = 0; n < rounds; n++) {
        __asm__("" : "+v"(a), "+v"(w)); /* no product is known from the round before */
#pragma GCC unroll 12
        for (int i = 0; i < PEAK_CHAINS; i++) {
            sum[i] = _mm512_dpbusd_epi32(sum[i], w, a);
            __asm__("" : "+v"(sum[i])); /* in place: copies would take the loop's time */
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) *sink = (float)(_mm_cvtsi128_si32(_mm512_castsi512_si128(sum[i])) & 1);
    return (int64_t)rounds * PEAK_CHAINS * 64;
}

int64_t peak_f32_avx512(int rounds, volatile float *sink)
{
    __m512 sum[PEAK_CHAINS], a = _mm512_set1_ps(*sink), w = _mm512_set1_ps(0.5f);
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) {
        sum[i] = _mm512_setzero_ps();
        __asm__("" : "+v"(sum[i])); /* unlike the others */
    }
    for (int n = 0; n < rounds; n++) {
        __asm__("" : "+v"(a), "+v"(w));
#pragma GCC unroll 12
        for (int i = 0; i < PEAK_CHAINS; i++) {
            sum[i] = _mm512_fmadd_ps(w, a, sum[i]);
            __asm__("" : "+v"(sum[i])); /* in place: copies would take the loop's time */
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_CHAINS; i++) *sink = _mm512_cvtss_f32(sum[i]) * 0;
    return (int64_t)rounds * PEAK_CHAINS * 16;
}
#else
typedef int peak_avx512_not_built;
#endif
