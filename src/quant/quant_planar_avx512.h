/* Direct AVX-512 kernels of code books with groups of eight values, planar: vector p holds value p of every group of
 * two blocks. Included by *_avx512.c only. */
#ifndef QUANT_QUANT_PLANAR_AVX512_H
#define QUANT_QUANT_PLANAR_AVX512_H
#include "quant/quant_direct_avx512.h"

enum {
    PLANES = 8,
    PIECE = 16 /* pairs of blocks whose activation planes are made at a time */
};

/* Codes of two activation blocks by planes. */
INLINE void planes_of(const uint8_t *first, const uint8_t *second, uint8_t plane[PLANES][64])
{
    /* byte 8*p + g of a vector with eight groups: value p of group g */
    const __m512i by_value =
        _mm512_set_epi8(63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 60,
                        52, 44, 36, 28, 20, 12, 4, 59, 51, 43, 35, 27, 19, 11, 3, 58, 50, 42, 34, 26, 18, 10, 2, 57, 49,
                        41, 33, 25, 17, 9, 1, 56, 48, 40, 32, 24, 16, 8, 0);
    for (int i = 0; i < 8; i++) {
        uint64_t q[PLANES];
        store512(q, _mm512_permutexvar_epi8(by_value, load512((i < 4 ? first : second) + 64 * (i % 4))));
        for (int p = 0; p < PLANES; p++) memcpy(plane[p] + 8 * i, &q[p], 8);
    }
}

INLINE __m256 step8(__m256 acc, __m256i sum, __m256 d, float yd)
{
    return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_mul_ps(d, _mm256_set1_ps(yd)), _mm256_cvtepi32_ps(sum)));
}

/* Results so far of the rows of a step. */
INLINE __m256 load_rows(const float *out, int step, int n_rows)
{
    const int steps = stream_steps(n_rows, ROWS);
    float lane[ROWS] = {0};
    for (int r = step, i = 0; i < ROWS && r < n_rows; i++, r += steps) lane[i] = out[r];
    return _mm256_loadu_ps(lane);
}

#endif
