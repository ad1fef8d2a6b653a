/* AVX-512 tiles of NVFP4, Q1_0, Q2_0 and Q2_0_128 for few activation rows (ACT_Q8_0). 64 unsigned codes share a vector;
 * products start from what their offset adds. Spec more-quants 2.6, 2.7.
 *
 * Floor: memory for NVFP4, whose 36 bytes for 64 values take about 10 vector instructions, two a cycle; of the others
 * the 6 to 8 instructions of 64 values, 50 * 10^9 weights per second at 3 GHz. Measured, one core of an Intel Xeon
 * (Emerald Rapids), 1 and 4 activation rows, 10^9 weights per second from the cache, and GB/s from memory, where Q8_0
 * gets 13.5: NVFP4 25, 42, 12.6; Q1_0 34, 57, 4.9; Q2_0 31, 48, 8.1; Q2_0_128 34, 55, 8.5 (value by value: 0.7 to 1).
 */
#ifdef __AVX512VNNI__
#include "quant/quant_direct_avx512.h"
#include "quant/quant_wide_avx512.h"

/* Sums of the four lanes of each quarter of eight vectors. */
INLINE void quarter_sums(const __m512i v[ROWS], __m256i sum[4])
{
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    __m512i b[2];
    lanes_of_four_rows(v, b);
    const __m512i lo = _mm512_permutex2var_epi64(b[0], first, b[1]), hi = _mm512_permutex2var_epi64(b[0], second, b[1]);
    sum[0] = _mm512_castsi512_si256(lo);
    sum[1] = _mm512_extracti64x4_epi64(lo, 1);
    sum[2] = _mm512_castsi512_si256(hi);
    sum[3] = _mm512_extracti64x4_epi64(hi, 1);
}

/* acc + (da * scale) * sum per 16 values. */
INLINE __m256 step_nvfp4(__m256 acc, const __m512i v[ROWS], const __m256 scale[4], const float *da)
{
    __m256i sum[4];
    quarter_sums(v, sum);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m256 d = _mm256_mul_ps(_mm256_set1_ps(da[i / 2]), scale[i]);
        acc = _mm256_add_ps(acc, _mm256_mul_ps(d, _mm256_cvtepi32_ps(sum[i])));
    }
    return acc;
}

/* total + da * sum per 32 values. */
INLINE __m256 step_wide(__m256 total, const __m512i v[ROWS], const float *da)
{
    __m256i s0, s1;
    half_sums(v, &s0, &s1);
    total = _mm256_add_ps(total, _mm256_mul_ps(_mm256_set1_ps(da[0]), _mm256_cvtepi32_ps(s0)));
    return _mm256_add_ps(total, _mm256_mul_ps(_mm256_set1_ps(da[1]), _mm256_cvtepi32_ps(s1)));
}

INLINE void rows_direct(enum qtype t, enum asking ask, int C, int k, const uint8_t *const row[ROWS], const uint8_t *x,
                        size_t x_stride, __m256 acc[DIRECT_COLS])
{
    const __m512i offset = _mm512_set1_epi8((char)wide_offset(t));
    const uint8_t *col[DIRECT_COLS];
    const int parts = wide_parts(t);
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm256_setzero_ps();
    for (int b = 0; b < k / 64; b += parts) {
        const size_t at = (size_t)(b / parts) * wide_bytes(t);
        __m256 total[DIRECT_COLS], scale[4];
        UNROLL for (int r = 0; r < ROWS; r++) ask_ahead(ask, row[r], at, wide_bytes(t));
        if (t == QT_NVFP4)
            nvfp4_scales(row, at, scale);
        else
            scale[0] = f16_of_rows(row, at);
        UNROLL for (int c = 0; c < C; c++) total[c] = _mm256_setzero_ps();
        UNROLL for (int i = 0; i < parts; i++)
        {
            __m512i w[ROWS], v[ROWS];
            UNROLL for (int r = 0; r < ROWS; r++) w[r] = wide_codes(t, row[r] + at, i);
            UNROLL for (int c = 0; c < C; c++)
            {
                const __m512i q = load512(col[c] + 64 * (b + i)), zero = _mm512_setzero_si512();
                const __m512i start = _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(zero, offset, q));
                const float *const da = row_d(col[c], k) + 2 * (b + i);
                UNROLL for (int r = 0; r < ROWS; r++) v[r] = _mm512_dpbusd_epi32(start, w[r], q);
                if (t == QT_NVFP4)
                    acc[c] = step_nvfp4(acc[c], v, scale, da);
                else
                    total[c] = step_wide(total[c], v, da);
            }
        }
        UNROLL for (int c = 0; c < C; c++) if (t != QT_NVFP4) acc[c] =
            _mm256_add_ps(acc[c], _mm256_mul_ps(scale[0], total[c]));
    }
}

QUANT_TILE_DIRECT(tile_nvfp4_avx512, QT_NVFP4)
QUANT_TILE_DIRECT(tile_q1_0_avx512, QT_Q1_0)
QUANT_TILE_DIRECT(tile_q2_0_avx512, QT_Q2_0)
QUANT_TILE_DIRECT(tile_q2_0_128_avx512, QT_Q2_0_128)
#endif
