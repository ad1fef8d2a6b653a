/* AVX-512 tiles of the types with blocks of 32 signed codes: Q8_0, Q4_0, MXFP4 (activations ACT_Q8_0). Slabs hold the
 * codes 128 too high, so that they are unsigned; the activations say what that adds to a block's sum. */
#ifdef __AVX512VNNI__
#include "quant/quant_avx512.h"
#include "quant/quant_codes32_avx2.h"

enum { SPAN = 8 /* blocks of a slab, an even number */ };

struct slab {
    _Alignas(64) uint8_t code[SPAN][8][64]; /* [block][group of four][row][4] */
    _Alignas(64) float d[SPAN][SLAB_ROWS];
};

INLINE void slab_fill(enum qtype t, const uint8_t *const row[SLAB_ROWS], int first, int n_blocks, struct slab *s)
{
    const __m512i high = _mm512_set1_epi8((char)0x80);
    for (int b = 0; b < n_blocks; b += 2) {
        const size_t at = (size_t)(first + b) * block_bytes(t), second = b + 1 < n_blocks ? at + block_bytes(t) : at;
        __m512i v[16];
#pragma GCC unroll 16
        for (int r = 0; r < SLAB_ROWS; r++)
            v[r] = _mm512_xor_si512(join256(codes(t, row[r] + at), codes(t, row[r] + second)), high);
        transpose16(v);
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) store512(s->code[b + j / 8][j % 8], v[j]);
        for (int i = 0; i < 2; i++) {
            _mm256_store_ps(s->d[b + i], scales(t, row, i ? second : at));
            _mm256_store_ps(s->d[b + i] + ROWS, scales(t, row + ROWS, i ? second : at));
        }
    }
}

INLINE __m512 step512(enum qtype t, __m512 acc, __m512i sum, __m512 dw, __m512 da)
{
    const __m512 s = _mm512_cvtepi32_ps(sum);
    if (t == QT_Q8_0) return _mm512_add_ps(acc, _mm512_mul_ps(s, _mm512_mul_ps(dw, da)));
    if (t == QT_Q4_0) return _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(s, dw), da));
    return _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(da, dw), s));
}

/* Slab times C activation rows, of which the first n exist. */
INLINE void slab_columns(enum qtype t, int C, const struct slab *s, int first, int n_blocks, int k, const uint8_t *x,
                         size_t x_stride, int n, float (*acc)[SLAB_ROWS])
{
    const uint8_t *col[SLAB_COLS];
    __m512 v[SLAB_COLS];
    row_pointers(x, x_stride, 0, n, C, col);
    UNROLL for (int c = 0; c < C; c++) v[c] = _mm512_load_ps(acc[c]);
    for (int b = 0; b < n_blocks; b++) {
        __m512i sum[SLAB_COLS];
        UNROLL for (int c = 0; c < C; c++) sum[c] = _mm512_set1_epi32(row_offset(col[c], k)[first + b]);
        UNROLL for (int j = 0; j < 8; j++)
        {
            const __m512i w = load512(s->code[b][j]);
            UNROLL for (int c = 0; c < C; c++) sum[c] = dot4(sum[c], w, col[c] + 32 * (first + b) + 4 * j);
        }
        const __m512 dw = _mm512_load_ps(s->d[b]);
        UNROLL for (int c = 0; c < C; c++) v[c] =
            step512(t, v[c], sum[c], dw, _mm512_set1_ps(row_d(col[c], k)[first + b]));
    }
    UNROLL for (int c = 0; c < C; c++) _mm512_store_ps(acc[c], v[c]);
}

INLINE void rows_slab(enum qtype t, int k, const uint8_t *const row[SLAB_ROWS], const uint8_t *x, size_t x_stride,
                      int n, float acc[COL_CHUNK][SLAB_ROWS])
{
    struct slab s;
    memset(acc, 0, COL_CHUNK * sizeof acc[0]);
    for (int first = 0; first < k / 32; first += SPAN) {
        const int n_blocks = k / 32 - first < SPAN ? k / 32 - first : SPAN;
        int c = 0;
        prefetch_slab(row, (size_t)(first + SPAN) * block_bytes(t), SPAN * block_bytes(t));
        slab_fill(t, row, first, n_blocks, &s);
        for (; n - c > SLAB_COLS / 2; c += SLAB_COLS)
            slab_columns(t, SLAB_COLS, &s, first, n_blocks, k, x + (size_t)c * x_stride, x_stride, n - c, acc + c);
        if (c < n)
            slab_columns(t, SLAB_COLS / 2, &s, first, n_blocks, k, x + (size_t)c * x_stride, x_stride, n - c, acc + c);
    }
}

/* The AVX2 kernels are as fast as the memory where there is little to multiply. */
QUANT_TILE_SLAB(tile_q8_0_avx512, QT_Q8_0, tile_q8_0_avx2)
QUANT_TILE_SLAB(tile_q4_0_avx512, QT_Q4_0, tile_q4_0_avx2)
QUANT_TILE_SLAB(tile_mxfp4_avx512, QT_MXFP4, tile_mxfp4_avx2)
#endif
