/* AVX-512 tile of Q2_K for few activation rows (ACT_Q8_K). The four lanes of the 64 bytes of codes are sub-blocks for
 * each of the four shifts, so the product of code and scale, at most 45, is looked up within the lane: sixteen entries
 * hold the four codes of its four sub-blocks. Minima of four rows lie in one vector, and the sums of sixteen
 * activations are two bytes each, so that both terms are products of bytes. Spec gguf-and-quants 2.5.
 *
 * Floor: 26 vector instructions for 84 bytes, where products of bytes with 16-bit scales behind them took 37. */
#ifdef __AVX512VNNI__
#include "quant/quant_direct_avx512.h"
#include "quant/quant_k_avx2.h"

enum { PARTS = 4 };

/* Scale times code: entry 4*i + code of a lane for its sub-block in part i. */
INLINE __m512i products(const uint8_t *block)
{
    const __m512i sub_block =
        _mm512_set_epi64(/* in the low byte of every two */
                         0x000f000f000d000d, 0x000b000b00090009, 0x000e000e000c000c, 0x000a000a00080008,
                         0x0007000700050005, 0x0003000300010001, 0x0006000600040004, 0x0002000200000000);
    const __m512i scales = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(block + Q2_K_SCALES)));
    const __m512i by_two = _mm512_maskz_shuffle_epi8(0x5555555555555555, scales, sub_block);
    return _mm512_mullo_epi16(_mm512_and_si512(by_two, _mm512_set1_epi8(15)), _mm512_set1_epi32(0x03020100));
}

/* Codes of part i with the scales of their sub-blocks. */
INLINE __m512i scaled(__m512i bytes, __m512i products, int i)
{
    const __m512i m3 = _mm512_set1_epi8(3), first = _mm512_set1_epi8((char)(4 * i));
    if (i == 0) return _mm512_shuffle_epi8(products, _mm512_and_si512(bytes, m3));
    const __m512i at = _mm512_ternarylogic_epi32(_mm512_srli_epi16(bytes, 2 * (unsigned)i), m3, first, 0xea);
    return _mm512_shuffle_epi8(products, at); /* at: shifted & 3 | first */
}

/* Minima of four rows, one in each lane. */
INLINE __m512i minima(const uint8_t *const *row, size_t at)
{
    const __m128i *const p[4] = {(const void *)(row[0] + at), (const void *)(row[1] + at), (const void *)(row[2] + at),
                                 (const void *)(row[3] + at)};
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128(p[0]));
    v = _mm512_inserti32x4(v, _mm_loadu_si128(p[1]), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128(p[2]), 2);
    v = _mm512_inserti32x4(v, _mm_loadu_si128(p[3]), 3);
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}

/* Minima of eight rows times the sums of sixteen activations, which are 256 times their high plus their low bytes. */
INLINE __m256i minimum_terms(const __m512i min[2], const uint8_t *sums)
{
    const __m512i low_bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
    const __m512i odd = _mm512_set1_epi8(1), b = twice256(load256(sums));
    const __m512i low = _mm512_permutexvar_epi8(low_bytes, b); /* as signed bytes: the high ones round to nearest */
    const __m512i high =
        _mm512_permutexvar_epi8(_mm512_or_si512(low_bytes, odd), _mm512_add_epi16(b, _mm512_set1_epi16(128)));
    __m512i v[2];
    UNROLL for (int i = 0; i < 2; i++)
    {
        const __m512i by_high = _mm512_dpbusd_epi32(_mm512_setzero_si512(), min[i], high);
        v[i] = _mm512_dpbusd_epi32(_mm512_slli_epi32(by_high, 8), min[i], low);
    }
    const __m512i pairs = _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
    const __m512i all = _mm512_add_epi32(pairs, _mm512_shuffle_epi32(pairs, _MM_PERM_BADC));
    const __m512i by_row = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castsi512_si256(_mm512_permutexvar_epi32(by_row, all));
}

/* Block b of eight weight rows times C activation rows: per column and row a vector that adds up to the sum of scaled
 * products. */
INLINE void block_products(enum asking ask, int C, const uint8_t *const row[ROWS], int b,
                           const uint8_t *const col[DIRECT_COLS], __m512i v[DIRECT_COLS][ROWS])
{
    __m512i q[DIRECT_COLS][PARTS];
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int i = 0; i < PARTS; i++)
    {
        const uint8_t *const at = col[c] + 256 * b + 32 * i;
        q[c][i] = join256(load256(at), load256(at + 128));
    }
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const uint8_t *const block = row[r] + (size_t)b * Q2_K_BYTES;
        ask_ahead(ask, block, 0, Q2_K_BYTES);
        const __m512i table = products(block);
        __m512i bytes = load512(block + Q2_K_QS);
        KEEP512(bytes); /* loaded once: lines are crossed */
        UNROLL for (int i = 0; i < PARTS; i++)
        {
            const __m512i w = scaled(bytes, table, i);
            UNROLL for (int c = 0; c < C; c++) v[c][r] =
                _mm512_dpbusd_epi32(i ? v[c][r] : _mm512_setzero_si512(), w, q[c][i]);
        }
    }
}

INLINE void rows_direct(enum qtype t, enum asking ask, int C, int k, const uint8_t *const row[ROWS], const uint8_t *x,
                        size_t x_stride, __m256 acc[DIRECT_COLS])
{
    const uint8_t *col[DIRECT_COLS];
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm256_setzero_ps();
    for (int b = 0; b < k / 256; b++) {
        const size_t at = (size_t)b * Q2_K_BYTES;
        __m512i v[DIRECT_COLS][ROWS];
        __m256 d, dmin;
        block_products(ask, C, row, b, col, v);
        const __m512i min[2] = {minima(row, at + Q2_K_SCALES), minima(row + 4, at + Q2_K_SCALES)};
        f16_pairs_of_rows(row, at + Q2_K_D, &d, &dmin);
        UNROLL for (int c = 0; c < C; c++)
        {
            __m256i first, second;
            half_sums(v[c], &first, &second);
            const __m256i terms = minimum_terms(min, (const uint8_t *)(row_bsums(col[c], k) + 16 * b));
            acc[c] = step(t, acc[c], _mm256_add_epi32(first, second), terms, d, dmin,
                          _mm256_set1_ps(row_d(col[c], k)[b]), 0);
        }
    }
}

QUANT_TILE_DIRECT(tile_q2_k_avx512, QT_Q2_K)
#endif
