/* AVX-512 tiles of the types with blocks of 32 codes, Q8_0, Q4_0 and MXFP4, for few activation rows (ACT_Q8_0). Codes
 * are made unsigned; the activations say what that adds to a block's sum. Two blocks share a vector.
 *
 * Floor: memory; 544 bytes of Q8_0 (eight rows, two blocks) take about 80 vector instructions, two a cycle. Measured
 * (Zen 4, 2 cores, 3.7 GHz): from the cache 38 GB/s per thread, from memory 29 to 34 GB/s with two threads where plain
 * reading gives 26 to 33. Four activation rows: 66 thousand million multiply-adds/s per thread. */
#ifdef __AVX512VNNI__
#include "quant/quant_codes32_avx2.h"
#include "quant/quant_direct_avx512.h"

/* Codes of the blocks at a and b, 128, 8 or 12 too high. */
INLINE __m512i unsigned_codes(enum qtype t, const uint8_t *a, const uint8_t *b)
{
    if (t == QT_Q8_0)
        return _mm512_xor_si512(join256(load256(a + Q8_0_QS), load256(b + Q8_0_QS)), _mm512_set1_epi8((char)0x80));
    const size_t qs = t == QT_Q4_0 ? Q4_0_QS : MXFP4_QS;
    const __m128i lo = _mm_loadu_si128((const __m128i *)(a + qs)), hi = _mm_loadu_si128((const __m128i *)(b + qs));
    const __m512i twice = join256(_mm256_broadcastsi128_si256(lo), _mm256_broadcastsi128_si256(hi));
    const __m512i shift = _mm512_broadcast_i64x4(_mm256_set_m128i(_mm_set1_epi16(4), _mm_setzero_si128()));
    const __m512i nibble = _mm512_and_si512(_mm512_srlv_epi16(twice, shift), _mm512_set1_epi8(15));
    const __m128i doubled = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return t == QT_Q4_0 ? nibble : _mm512_shuffle_epi8(_mm512_broadcast_i32x4(doubled), nibble);
}

/* What the surplus of the codes adds to a block's sum, negated; sum: -128 times the activations' sum. */
INLINE __m256i surplus(enum qtype t, int32_t sum)
{
    return _mm256_set1_epi32(t == QT_Q8_0 ? sum : t == QT_Q4_0 ? sum / 16 : sum / 32 * 3);
}

INLINE __m256 scales_of_rows(enum qtype t, const uint8_t *const row[ROWS], size_t at)
{
    __m256 d, unused;
    if (t == QT_MXFP4) return scales(t, row, at);
    f16_pairs_of_rows(row, at, &d, &unused);
    return d;
}

INLINE void rows_direct(enum qtype t, int C, int k, const uint8_t *const row[ROWS], const uint8_t *x, size_t x_stride,
                        __m256 acc[DIRECT_COLS])
{
    const uint8_t *col[DIRECT_COLS];
    const __m256 none = _mm256_setzero_ps(); /* second scales */
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm256_setzero_ps();
    for (int b = 0; b < k / 32; b += 2) {
        const size_t at = (size_t)b * block_bytes(t), second = b + 1 < k / 32 ? at + block_bytes(t) : at;
        __m512i w[ROWS];
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            ask_ahead(row[r], at, t == QT_Q8_0 ? 64 : 2 * block_bytes(t));
            w[r] = unsigned_codes(t, row[r] + at, row[r] + second);
        }
        const __m256 d0 = scales_of_rows(t, row, at), d1 = scales_of_rows(t, row, second);
        UNROLL for (int c = 0; c < C; c++)
        {
            const float *const da = row_d(col[c], k) + b;
            const int32_t *const offset = row_offset(col[c], k) + b;
            const __m512i a = load512(col[c] + 32 * b); /* of a single last block: and what follows */
            __m512i v[ROWS];
            __m256i s0, s1;
            UNROLL for (int r = 0; r < ROWS; r++) v[r] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), w[r], a);
            half_sums(v, &s0, &s1);
            acc[c] = step(t, acc[c], _mm256_add_epi32(s0, surplus(t, offset[0])), d0, none, _mm256_set1_ps(da[0]), 0);
            if (second > at)
                acc[c] =
                    step(t, acc[c], _mm256_add_epi32(s1, surplus(t, offset[1])), d1, none, _mm256_set1_ps(da[1]), 0);
        }
    }
}

QUANT_TILE_DIRECT(tile_q8_0_avx512, QT_Q8_0)
QUANT_TILE_DIRECT(tile_q4_0_avx512, QT_Q4_0)
QUANT_TILE_DIRECT(tile_mxfp4_avx512, QT_MXFP4)
#endif
