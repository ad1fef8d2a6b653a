/* Activation quantisers with AVX2; same bits as quant_act.c. */
#include "quant/quant_internal.h"
#ifdef __AVX2__
#include <float.h>
#include <immintrin.h>
#include <math.h>
#include "quant/quant_bits.h"

static inline __m256i magnitudes(__m256i max, const float *x, int n)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    for (int i = 0; i < n; i += 8)
        max = _mm256_max_epi32(max, _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(x + i)), mask));
    return max;
}

/* Bits of the largest magnitude; a NaN counts as larger than infinity. */
static inline uint32_t magnitude_bits(const float *x, int n)
{
    const __m256i v = magnitudes(_mm256_setzero_si256(), x, n);
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* Nearest integers of 32 products. */
static inline __m256i codes32(const float *x, __m256 inv)
{
    __m256i v[4];
    for (int i = 0; i < 4; i++) v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inv));
    const __m256i lo = _mm256_packs_epi32(v[0], v[1]), hi = _mm256_packs_epi32(v[2], v[3]);
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(lo, hi), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Sums of the two halves of 32 codes. */
static inline void half_sums(__m256i q, int16_t *sums)
{
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
    const __m256i v = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    const __m256i w = _mm256_add_epi32(v, _mm256_shuffle_epi32(v, 0x4e));
    const __m256i s = _mm256_add_epi32(w, _mm256_shuffle_epi32(w, 0xb1));
    sums[0] = (int16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(s));
    sums[1] = (int16_t)_mm_cvtsi128_si32(_mm256_extracti128_si256(s, 1));
}

void act_q8_0_avx2(const float *x, int64_t n_blocks, int8_t *q, float *d, int32_t *offset)
{
    for (int64_t b = 0; b < n_blocks; b++, x += 32, q += 32) {
        const float max = bits_f32(magnitude_bits(x, 32)), scale = max / 127, inv = 1 / scale;
        if (max <= FLT_MAX && inv <= FLT_MAX) {
            d[b] = scale;
            const __m256i v = codes32(x, _mm256_set1_ps(inv));
            int16_t sums[2];
            _mm256_storeu_si256((__m256i *)q, v);
            half_sums(v, sums);
            offset[b] = -128 * (sums[0] + sums[1]);
        } else {
            act_q8_0_scalar(x, 1, q, d + b, offset + b);
        }
    }
}

/* The first value whose magnitude has the given bits; there is one among the 256. */
static inline float first_of_magnitude(const float *x, uint32_t bits)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff), want = _mm256_set1_epi32((int)bits);
    for (;; x += 8) {
        const __m256i v = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)x), mask);
        const int hit = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(v, want)));
        if (hit) return x[__builtin_ctz((unsigned)hit)];
    }
}

void act_q8_k_avx2(const float *x, int64_t n_blocks, int8_t *q, float *d, int16_t *bsums)
{
    for (int64_t b = 0; b < n_blocks; b++, x += 256, q += 256, bsums += 16) {
        const uint32_t max = magnitude_bits(x, 256);
        const float inv = -127 / first_of_magnitude(x, max);
        if (max > 0x7f7fffff || !(fabsf(inv) <= FLT_MAX)) {
            act_q8_k_scalar(x, 1, q, d + b, bsums);
            continue;
        }
        d[b] = 1 / inv;
        for (int i = 0; i < 8; i++) {
            const __m256i v = codes32(x + 32 * i, _mm256_set1_ps(inv));
            _mm256_storeu_si256((__m256i *)(q + 32 * i), v);
            half_sums(v, bsums + 2 * i);
        }
    }
}
#else
void act_q8_0_avx2(const float *x, int64_t n_blocks, int8_t *q, float *d, int32_t *offset)
{
    act_q8_0_scalar(x, n_blocks, q, d, offset);
}

void act_q8_k_avx2(const float *x, int64_t n_blocks, int8_t *q, float *d, int16_t *bsums)
{
    act_q8_k_scalar(x, n_blocks, q, d, bsums);
}
#endif
