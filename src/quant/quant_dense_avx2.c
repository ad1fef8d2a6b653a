/* AVX2 tiles of F32, F16 and BF16 weights (activations ACT_F32): sixteen striped lanes in two vectors per output
 * (docs/numerics.md, lanes16). */
#ifdef __AVX2__
#include "quant/quant_avx2.h"

enum { CHUNK = 1024, LANES = 16, MAX_ROWS = 4, MAX_COLS = 3 };

INLINE size_t value_bytes(enum qtype t)
{
    return t == QT_F32 ? 4 : 2;
}

/* Eight weights as floats. */
INLINE __m256 widen8(enum qtype t, const uint8_t *w)
{
    if (t == QT_F32) return _mm256_loadu_ps((const float *)(const void *)w);
    const __m128i h = _mm_loadu_si128((const __m128i *)w);
    if (t == QT_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

struct lanes {
    __m256 half[2];
};

/* Sixteen positions of R weight rows and C activation rows. */
INLINE void multiply16(enum qtype t, int R, int C, const uint8_t *const *w, const uint8_t *const *x, int at,
                       struct lanes acc[MAX_ROWS][MAX_COLS])
{
    UNROLL for (int h = 0; h < 2; h++)
    {
        __m256 v[MAX_ROWS];
        UNROLL for (int r = 0; r < R; r++) v[r] = widen8(t, w[r] + value_bytes(t) * (size_t)(at + 8 * h));
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m256 a = _mm256_loadu_ps((const float *)(const void *)x[c] + at + 8 * h);
            UNROLL for (int r = 0; r < R; r++) acc[r][c].half[h] = _mm256_fmadd_ps(v[r], a, acc[r][c].half[h]);
        }
    }
}

/* The last n < 16 positions, padded with zeros. */
INLINE void multiply_tail(enum qtype t, int R, int C, const uint8_t *const *w, const uint8_t *const *x, int at, int n,
                          struct lanes acc[MAX_ROWS][MAX_COLS])
{
    uint8_t wt[MAX_ROWS][LANES * 4] = {{0}}, xt[MAX_COLS][LANES * 4] = {{0}};
    const uint8_t *wp[MAX_ROWS], *xp[MAX_COLS];
    for (int r = 0; r < R; r++) {
        memcpy(wt[r], w[r] + value_bytes(t) * (size_t)at, value_bytes(t) * (size_t)n);
        wp[r] = wt[r];
    }
    for (int c = 0; c < C; c++) {
        memcpy(xt[c], x[c] + 4 * (size_t)at, 4 * (size_t)n);
        xp[c] = xt[c];
    }
    multiply16(t, R, C, wp, xp, 0, acc);
}

INLINE float lane_tree(struct lanes v)
{
    const __m256 s8 = _mm256_add_ps(v.half[0], v.half[1]);
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

INLINE void dots(enum qtype t, int R, int C, int k, const uint8_t *const *w, const uint8_t *const *x,
                 float total[MAX_COLS][MAX_ROWS])
{
    memset(total, 0, MAX_COLS * sizeof total[0]);
    for (int first = 0; first < k; first += CHUNK) {
        const int end = k - first < CHUNK ? k : first + CHUNK;
        struct lanes acc[MAX_ROWS][MAX_COLS];
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) acc[r][c].half[0] = acc[r][c].half[1] =
            _mm256_setzero_ps();
        int at = first;
        for (; at + LANES <= end; at += LANES) multiply16(t, R, C, w, x, at, acc);
        if (at < end) multiply_tail(t, R, C, w, x, at, end - at, acc);
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) total[c][r] += lane_tree(acc[r][c]);
    }
}

/* R rows from row r times C columns from column c; rows and columns beyond the last are computed and dropped. */
INLINE void block(enum qtype t, int R, int C, int k, const uint8_t *const *w, int n_rows, const void *x,
                  size_t x_stride, int c, int n_cols, float *out, size_t out_stride)
{
    const uint8_t *xp[MAX_COLS];
    float total[MAX_COLS][MAX_ROWS];
    row_pointers(x, x_stride, c, n_cols, C, xp);
    dots(t, R, C, k, w, xp, total);
    for (int i = 0; i < C && c + i < n_cols; i++)
        for (int r = 0; r < R && r < n_rows; r++) out[(size_t)(c + i) * out_stride + (size_t)r] = total[i][r];
}

INLINE void tile(enum qtype t, int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                 int n_cols, float *out, size_t out_stride)
{
    const uint8_t *wp[MAX_ROWS];
    const int step = n_cols == 1 ? 4 : n_cols == 2 ? 3 : 2;
    for (int r = 0; r < n_rows; r += step) {
        row_pointers(w, w_stride, r, n_rows, step, wp);
        if (n_cols == 1) block(t, 4, 1, k, wp, n_rows - r, x, x_stride, 0, n_cols, out + r, out_stride);
        if (n_cols == 2) block(t, 3, 2, k, wp, n_rows - r, x, x_stride, 0, n_cols, out + r, out_stride);
        if (n_cols <= 2) continue;
        for (int c = 0; c < n_cols;) {
            const int left = n_cols - c; /* by threes, and without a rest of one */
            if (left == 2 || left == 4) {
                block(t, 2, 2, k, wp, n_rows - r, x, x_stride, c, n_cols, out + r, out_stride);
                c += 2;
            } else {
                block(t, 2, 3, k, wp, n_rows - r, x, x_stride, c, n_cols, out + r, out_stride);
                c += 3;
            }
        }
    }
}

QUANT_TILE(tile_f32_avx2, tile, QT_F32)
QUANT_TILE(tile_f16_avx2, tile, QT_F16)
QUANT_TILE(tile_bf16_avx2, tile, QT_BF16)
#endif
