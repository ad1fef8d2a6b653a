/* What the AVX-512 kernel files share. Included by *_avx512.c only.
 *
 * Tiles with several activation rows work on sixteen weight rows at a time, one float lane per row: the rows are
 * unpacked into a slab, four consecutive codes of row 0, of row 1 ... in one vector, which all activation rows then
 * use: one instruction multiplies 64 codes with four activations in all lanes and adds. With one or two activation rows
 * a block is multiplied as it lies in memory, eight rows at a time. */
#ifndef QUANT_QUANT_AVX512_H
#define QUANT_QUANT_AVX512_H
#include "quant/quant_avx2.h"

quant_tile_fn tile_f32_avx512, tile_f16_avx512, tile_bf16_avx512, tile_q8_0_avx512, tile_q4_0_avx512, tile_mxfp4_avx512,
    tile_q2_k_avx512, tile_q4_k_avx512, tile_q5_k_avx512, tile_q6_k_avx512, tile_iq2_xxs_avx512;

enum {
    SLAB_ROWS = 16, /* weight rows of a slab */
    SLAB_COLS = 8   /* activation rows that share one pass over a slab */
};

INLINE __m512i load512(const void *p)
{
    return _mm512_loadu_si512(p);
}

INLINE void store512(void *p, __m512i v)
{
    _mm512_storeu_si512(p, v);
}

/* The same 32 bytes in both halves. */
INLINE __m512i twice256(__m256i v)
{
    return _mm512_broadcast_i64x4(v);
}

INLINE __m512i join256(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* acc + the products of 64 unsigned codes with four signed activations, in groups of four. */
INLINE __m512i dot4(__m512i acc, __m512i codes, const void *q)
{
    return _mm512_dpbusd_epi32(acc, codes, _mm512_set1_epi32((int)load_u32(q)));
}

/* The f16 at the same offset of sixteen rows. */
INLINE __m512 f16_of_slab_rows(const uint8_t *const row[SLAB_ROWS], size_t at)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(f16_of_rows(row, at)), f16_of_rows(row + ROWS, at), 1);
}

/* Transposes sixteen vectors of sixteen 32-bit values. */
INLINE void transpose16(__m512i v[16])
{
    __m512i a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    /* b[4g + j]: column j of every quarter, rows 4g .. 4g+3 */
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
#pragma GCC unroll 16
    for (int j = 0; j < 4; j++) {
        const __m512i lo0 = _mm512_shuffle_i32x4(b[j], b[4 + j], 0x88);      /* quarters 0, 2 of rows 0..3, 4..7 */
        const __m512i hi0 = _mm512_shuffle_i32x4(b[j], b[4 + j], 0xdd);      /* quarters 1, 3 */
        const __m512i lo1 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0x88); /* rows 8..11, 12..15 */
        const __m512i hi1 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0xdd);
        v[j] = _mm512_shuffle_i32x4(lo0, lo1, 0x88);
        v[4 + j] = _mm512_shuffle_i32x4(hi0, hi1, 0x88);
        v[8 + j] = _mm512_shuffle_i32x4(lo0, lo1, 0xdd);
        v[12 + j] = _mm512_shuffle_i32x4(hi0, hi1, 0xdd);
    }
}

/* Asks for the bytes of the rows of a slab that are unpacked next. */
INLINE void prefetch_slab(const uint8_t *const row[SLAB_ROWS], size_t at, size_t bytes)
{
    for (int r = 0; r < SLAB_ROWS; r++)
        for (size_t i = 0; i < bytes + 63; i += 64)
            _mm_prefetch((const char *)(const void *)((uintptr_t)row[r] + at + i), _MM_HINT_T0);
}

/* Sixteen weight rows times n <= COL_CHUNK activation rows; fills acc[n][SLAB_ROWS]. */
typedef void slab16_fn(enum qtype t, int k, const uint8_t *const row[SLAB_ROWS], const uint8_t *x, size_t x_stride,
                       int n, float acc[COL_CHUNK][SLAB_ROWS]);

/* Walks over a tile by slabs. */
INLINE void slab_walk(slab16_fn *slab, enum qtype t, int k, const void *w, size_t w_stride, int n_rows,
                      const uint8_t *x, size_t x_stride, int n_cols, float *out, size_t out_stride)
{
    for (int r = 0; r < n_rows; r += SLAB_ROWS) {
        const uint8_t *row[SLAB_ROWS];
        const __mmask16 there = n_rows - r < SLAB_ROWS ? (__mmask16)((1u << (n_rows - r)) - 1) : (__mmask16)0xffff;
        row_pointers(w, w_stride, r, n_rows, ROWS, row);
        row_pointers(w, w_stride, r + ROWS, n_rows, ROWS, row + ROWS);
        for (int c = 0; c < n_cols; c += COL_CHUNK) {
            const int n = n_cols - c < COL_CHUNK ? n_cols - c : COL_CHUNK;
            _Alignas(64) float acc[COL_CHUNK][SLAB_ROWS];
            slab(t, k, row, x + (size_t)c * x_stride, x_stride, n, acc);
            for (int i = 0; i < n; i++)
                _mm512_mask_storeu_ps(out + (size_t)(c + i) * out_stride + r, there, _mm512_load_ps(acc[i]));
        }
    }
}

/* From so many activation rows on, unpacking pays. */
enum { SLAB_FROM = 3 };

/* A tile kernel that works by slabs, and with fewer activation rows as another kernel does. */
#define QUANT_TILE_SLAB(name, type, few)                                                                               \
    void name(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride, int n_cols,           \
              float *out, size_t out_stride)                                                                           \
    {                                                                                                                  \
        if (n_cols < SLAB_FROM)                                                                                        \
            few(k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                                         \
        else                                                                                                           \
            slab_walk(rows_slab, type, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                  \
    }

#endif
