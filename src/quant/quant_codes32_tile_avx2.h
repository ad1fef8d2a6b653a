/* Body of the AVX2 tiles of the types whose steps cover 32 codes (activations ACT_Q8_0; IQ4_XS: ACT_Q8_K). The products
 * use |code| as the unsigned operand and give its sign to the activation; |code| <= 128 and |q| <= 127 keep pairs in 16
 * bits. */
#ifndef QUANT_QUANT_CODES32_TILE_AVX2_H
#define QUANT_QUANT_CODES32_TILE_AVX2_H
#include "quant/quant_codes32_avx2.h"

enum {
    SPAN = 8,      /* steps of a slab */
    SLAB_COLS = 3, /* from so many activation rows on, unpacking pays */
};

struct slab {
    _Alignas(32) int8_t code[SPAN][8][32]; /* [block][group of four][row][4] */
    _Alignas(32) float d[SPAN][ROWS];
    _Alignas(32) float second[SPAN][ROWS];
};

INLINE __m256i pair_products(__m256i magnitude, __m256i w, __m256i a)
{
    return _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(a, w));
}

/* Second scales of step b; sub: those of the steps of a block of IQ4_XS. */
INLINE __m256 second_scales(enum qtype t, const uint8_t *const row[ROWS], size_t at, const __m256 sub[8], int b)
{
    if (t == QT_IQ4_XS) return sub[b % 8];
    return has_second(t) ? f16_of_rows(row, at + Q4_1_M) : _mm256_setzero_ps();
}

INLINE __m256 rows_direct(enum qtype t, int k, const uint8_t *const row[ROWS], size_t next, const uint8_t *x)
{
    const __m256i ones = _mm256_set1_epi16(1);
    const int fetch = t == QT_IQ4_XS ? 8 : 2; /* steps */
    __m256 acc = _mm256_setzero_ps(), sub[8];
    for (int b = 0; b < k / 32; b++) {
        const size_t at = block_at(t, b);
        const __m256i a = load256(x + 32 * b);
        __m256i v[ROWS];
        if (b % fetch == 0) prefetch_rows(row, at, block_at(t, fetch), next);
        if (t == QT_IQ4_XS && b % 8 == 0) iq4_xs_scales(row, at, sub);
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            const __m256i w = codes(t, row[r] + at, b);
            const __m256i pairs = has_min(t) ? _mm256_maddubs_epi16(w, a) : pair_products(_mm256_abs_epi8(w), w, a);
            v[r] = _mm256_madd_epi16(pairs, ones);
        }
        acc = step(t, acc, lane_sums(v), scales(t, row, at), second_scales(t, row, at, sub, b),
                   _mm256_set1_ps(step_d(t, x, k, b)), has_min(t) ? row_sum(x, k)[b] : 0);
    }
    return acc;
}

INLINE void slab_fill(enum qtype t, const uint8_t *const row[ROWS], int first, int n_blocks, struct slab *s)
{
    __m256 sub[8];
    for (int b = 0; b < n_blocks; b++) {
        const size_t at = block_at(t, first + b);
        __m256i v[ROWS];
        if (t == QT_IQ4_XS && b == 0) iq4_xs_scales(row, at, sub);
        UNROLL for (int r = 0; r < ROWS; r++) v[r] = codes(t, row[r] + at, b);
        transpose8(v);
        UNROLL for (int j = 0; j < 8; j++) store256(s->code[b][j], v[j]);
        _mm256_store_ps(s->d[b], scales(t, row, at));
        if (has_second(t)) _mm256_store_ps(s->second[b], second_scales(t, row, at, sub, b));
    }
}

/* How many pair sums fit 16 bits: codes up to 8, 12, 15, 16; 31; larger ones. */
INLINE int pair_sums(enum qtype t)
{
    return t == QT_Q8_0 || t == QT_IQ4_NL || t == QT_IQ4_XS ? 1 : t == QT_Q5_1 ? 4 : 8;
}

/* One block of a slab times four activation rows; q: their codes. */
INLINE void slab_block(enum qtype t, const int8_t code[8][32], const uint8_t *const q[COLS], size_t at,
                       __m256i sum[COLS])
{
    const __m256i ones = _mm256_set1_epi16(1);
    const int n = pair_sums(t);
    __m256i first[COLS];
    UNROLL for (int c = 0; c < COLS; c++)
    {
        sum[c] = _mm256_setzero_si256();
    }
    UNROLL for (size_t j = 0; j < 8; j++)
    {
        const __m256i w = load256(code[j]), magnitude = _mm256_abs_epi8(w);
        UNROLL for (int c = 0; c < COLS; c++)
        {
            const __m256i x = spread32(q[c] + at + 4 * j);
            const __m256i p = has_min(t) ? _mm256_maddubs_epi16(w, x) : pair_products(magnitude, w, x);
            if (n == 1)
                sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(p, ones));
            else
                sum[c] = _mm256_add_epi16(sum[c], p);
            KEEP(sum[c]);
            if (n == 4 && j == 3) first[c] = _mm256_madd_epi16(sum[c], ones), sum[c] = _mm256_setzero_si256();
        }
    }
    if (n == 1) return;
    UNROLL for (int c = 0; c < COLS; c++)
    {
        sum[c] = _mm256_madd_epi16(sum[c], ones);
        if (n == 4) sum[c] = _mm256_add_epi32(sum[c], first[c]);
    }
}

INLINE void slab_columns(enum qtype t, const struct slab *s, int first, int n_blocks, const uint8_t *const x[COLS],
                         int k, float acc[COLS][ROWS])
{
    const float *d[COLS], *total[COLS];
    __m256 v[COLS];
    UNROLL for (int c = 0; c < COLS; c++)
    {
        d[c] = row_d(x[c], k) + (t == QT_IQ4_XS ? first / 8 : first);
        total[c] = row_sum(x[c], k) + first;
        v[c] = _mm256_load_ps(acc[c]);
    }
    for (int b = 0; b < n_blocks; b++) {
        __m256i sum[COLS];
        slab_block(t, s->code[b], x, 32 * (size_t)(first + b), sum);
        const __m256 dw = _mm256_load_ps(s->d[b]);
        const __m256 second = has_second(t) ? _mm256_load_ps(s->second[b]) : _mm256_setzero_ps();
        UNROLL for (int c = 0; c < COLS; c++)
        {
            const __m256 da = _mm256_set1_ps(d[c][t == QT_IQ4_XS ? 0 : b]);
            v[c] = step(t, v[c], sum[c], dw, second, da, has_min(t) ? total[c][b] : 0);
        }
    }
    UNROLL for (int c = 0; c < COLS; c++)
    {
        _mm256_store_ps(acc[c], v[c]);
    }
}

INLINE void rows_slab(enum qtype t, int k, const uint8_t *const row[ROWS], const uint8_t *x, size_t x_stride, int n,
                      float acc[COL_CHUNK][ROWS])
{
    struct slab s;
    memset(acc, 0, COL_CHUNK * sizeof acc[0]);
    for (int first = 0; first < k / 32; first += SPAN) {
        const int n_blocks = k / 32 - first < SPAN ? k / 32 - first : SPAN;
        slab_fill(t, row, first, n_blocks, &s);
        for (int c = 0; c < n; c += COLS) {
            const uint8_t *cols[COLS];
            row_pointers(x, x_stride, c, n, COLS, cols);
            slab_columns(t, &s, first, n_blocks, cols, k, acc + c);
        }
    }
}

INLINE void tile(enum qtype t, int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                 int n_cols, float *out, size_t out_stride)
{
    const int from = SLAB_COLS;
    if (n_cols >= from)
        tile_walk(rows_direct, rows_slab, t, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
    else
        tile_walk(rows_direct, NULL, t, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
}

#endif
