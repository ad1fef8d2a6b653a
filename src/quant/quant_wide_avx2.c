/* AVX2 tiles of NVFP4, Q1_0, Q2_0 and Q2_0_128 (activations ACT_Q8_0; spec more-quants 2.6, 2.7). Every activation row
 * unpacks anew, 32 codes at a time.
 *
 * Floor: 12 (Q1_0) to 17 (NVFP4) vector instructions for 32 values with the sums of lanes, three a cycle: 16 to 23 *
 * 10^9 weights per second at 3 GHz. Measured, one core of an Intel Xeon (Emerald Rapids), 1 activation row, 10^9
 * weights per second from the cache, and GB/s from memory: NVFP4 13, 7.0; Q1_0 23, 3.2; Q2_0 17, 4.4; Q2_0_128 17, 4.4
 * (value by value: 0.7 to 1). */
#ifdef __AVX2__
#include "quant/quant_codes32_avx2.h"
#include "quant/quant_wide_avx2.h"

/* Codes 32i.. of a block, of Q1_0 0 and 2. */
INLINE __m256i wide_codes(enum qtype t, const uint8_t *b, int i)
{
    if (t == QT_Q1_0) return _mm256_and_si256(bytes_of_bits(b + BITS_QS + 4 * i), _mm256_set1_epi8(2));
    if (t == QT_NVFP4) {
        const __m256i v = _mm256_permute4x64_epi64(
            _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(b + NVFP4_QS + 16 * i))), 0x50);
        const __m256i nibble = _mm256_srlv_epi64(v, _mm256_setr_epi64x(0, 4, 0, 4));
        return look_up16(nvfp4_levels(), _mm256_and_si256(nibble, _mm256_set1_epi8(15)));
    }
    const __m256i four = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(b + BITS_QS + 8 * i)));
    const __m256i pairs =
        _mm256_and_si256(_mm256_or_si256(four, _mm256_slli_epi32(four, 12)), _mm256_set1_epi32(0x000f000f));
    return _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi32(pairs, 6)), _mm256_set1_epi8(3));
}

/* Sums of the lanes of both halves of eight vectors. */
INLINE void half_sums(const __m256i v[ROWS], __m256i *first, __m256i *second)
{
    const __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    *first = _mm256_permute2x128_si256(a, b, 0x20);
    *second = _mm256_permute2x128_si256(a, b, 0x31);
}

INLINE __m256 rows_direct(enum qtype t, int k, const uint8_t *const row[ROWS], size_t next, const uint8_t *x)
{
    const __m256i ones = _mm256_set1_epi16(1), offset = _mm256_set1_epi8((char)wide_offset(t));
    const int n = 2 * wide_parts(t);
    __m256 acc = _mm256_setzero_ps();
    for (int b = 0; b < k / 32; b += n) {
        const size_t at = (size_t)(b / n) * wide_bytes(t);
        __m256 total = _mm256_setzero_ps(), scale[4];
        if (t == QT_NVFP4) nvfp4_scales(row, at, scale);
        prefetch_rows(row, at, wide_bytes(t), next);
        UNROLL for (int i = 0; i < n; i++)
        {
            const __m256i q = load256(x + 32 * (b + i)), surplus = _mm256_maddubs_epi16(offset, q);
            const __m256 da = _mm256_set1_ps(row_d(x, k)[b + i]);
            __m256i v[ROWS], s0, s1;
            UNROLL for (int r = 0; r < ROWS; r++)
            {
                const __m256i pairs = _mm256_maddubs_epi16(wide_codes(t, row[r] + at, i), q);
                v[r] = _mm256_madd_epi16(_mm256_sub_epi16(pairs, surplus), ones);
            }
            if (t != QT_NVFP4) {
                total = _mm256_add_ps(total, _mm256_mul_ps(da, _mm256_cvtepi32_ps(lane_sums(v))));
                continue;
            }
            half_sums(v, &s0, &s1);
            const __m256 d0 = _mm256_mul_ps(da, scale[2 * i]);
            const __m256 d1 = _mm256_mul_ps(da, scale[2 * i + 1]);
            acc = _mm256_add_ps(acc, _mm256_mul_ps(d0, _mm256_cvtepi32_ps(s0)));
            acc = _mm256_add_ps(acc, _mm256_mul_ps(d1, _mm256_cvtepi32_ps(s1)));
        }
        if (t != QT_NVFP4) acc = _mm256_add_ps(acc, _mm256_mul_ps(f16_of_rows(row, at), total));
    }
    return acc;
}

INLINE void tile(enum qtype t, int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                 int n_cols, float *out, size_t out_stride)
{
    tile_walk(rows_direct, NULL, t, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
}

QUANT_TILE(tile_nvfp4_avx2, tile, QT_NVFP4)
QUANT_TILE(tile_q1_0_avx2, tile, QT_Q1_0)
QUANT_TILE(tile_q2_0_avx2, tile, QT_Q2_0)
QUANT_TILE(tile_q2_0_128_avx2, tile, QT_Q2_0_128)
#endif
