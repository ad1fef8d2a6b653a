/* Body of the AVX2 tiles of the types with blocks of 256 (activations ACT_Q8_K).
 *
 * Codes are unsigned for the 8-bit products. Those of most types are too high by a constant (code_offset): Q6_K by 32,
 * IQ1 by 9 eighths. Where a value is a magnitude with a sign (has_signs), the sign goes to the activation, and in slabs
 * to the code, made unsigned by an offset. The surplus, the offset times the scales times the activation sums, is an
 * exact integer like the minimum term of other types, and is computed the same way. */
#ifndef QUANT_QUANT_K_TILE_AVX2_H
#define QUANT_QUANT_K_TILE_AVX2_H
#include "quant/quant_k_codes_avx2.h"

struct slab {
    _Alignas(32) uint8_t code[64][32];  /* [group of four][row][4] */
    _Alignas(32) int16_t scale[16][16]; /* [sub-block][row][2], a pair of equal values */
    _Alignas(32) int16_t min[8][16];    /* [pair of activation sums][row][2] */
    _Alignas(32) float d[ROWS];
    _Alignas(32) float dmin[ROWS];
};

/* How many pair products fit 16 bits: codes up to 3, 7, 15, 31, 63, 86, 124, 30, 18 times 127, twice. */
INLINE int pair_sums(enum qtype t)
{
    return t == QT_Q4_K || t == QT_TQ1_0 || t == QT_TQ2_0                               ? 8
           : t == QT_Q2_K || t == QT_Q3_K || t == QT_Q5_K || t == QT_IQ3_S || is_iq1(t) ? 4
           : t == QT_Q6_K                                                               ? 2
                                                                                        : 1;
}

/* One block times one activation block: lanes that add up to the sum of scaled products, and to the minimum term. */
INLINE void block_direct(enum qtype t, const uint8_t *b, const struct prep *p, const int8_t *q, __m256i bsums,
                         __m256i *sum, __m256i *min)
{
    /* The scale of the first 16 values in the lower half, that of the others in the upper. */
    const __m256i halves =
        _mm256_setr_epi64x(0x0100010001000100, 0x0100010001000100, 0x0302030203020302, 0x0302030203020302);
    __m256i s = _mm256_setzero_si256();
    UNROLL for (int g = 0; g < 8; g++)
    {
        const __m256i a = load256(q + 32 * g);
        const __m256i pairs = has_signs(t)
                                  ? _mm256_maddubs_epi16(grid32(t, b, p, g), _mm256_sign_epi8(a, signs32(p, g)))
                                  : _mm256_maddubs_epi16(codes(t, b, p, g), a);
        __m256i scale = spread32(p->scale + 2 * g);
        if (sub_block(t) == 16) scale = _mm256_shuffle_epi8(scale, halves);
        s = _mm256_add_epi32(s, _mm256_madd_epi16(pairs, scale));
        KEEP(s);
    }
    *sum = s;
    *min = _mm256_madd_epi16(load256(p->min), bsums);
}

INLINE __m256 finish(enum qtype t, __m256 acc)
{
    return last_factor(t) != 1 ? _mm256_mul_ps(acc, _mm256_set1_ps(last_factor(t))) : acc;
}

INLINE __m256 rows_direct(enum qtype t, int k, const uint8_t *const row[ROWS], size_t next, const uint8_t *x)
{
    const float *const d = row_d(x, k);
    const int16_t *const bsums = row_bsums(x, k);
    __m256 acc = _mm256_setzero_ps();
    for (int b = 0; b < k / 256; b++) {
        const size_t at = (size_t)b * block_bytes(t);
        const __m256i bs = load256(bsums + 16 * b);
        __m256i sum[ROWS], min[ROWS];
        prefetch_rows(row, at, block_bytes(t), next);
        /* In two loops, so that the scales are long in memory when they are needed. */
        struct prep p[ROWS];
        for (int r = 0; r < ROWS; r++) prepare(t, row[r] + at, &p[r]);
        for (int r = 0; r < ROWS; r++)
            block_direct(t, row[r] + at, &p[r], (const int8_t *)x + 256 * b, bs, &sum[r], &min[r]);
        const __m256i m = has_signs(t) ? _mm256_setzero_si256() : lane_sums(min);
        const __m256 dmin = has_min(t) ? f16_of_rows(row, at + dmin_at(t)) : _mm256_setzero_ps();
        acc = step(t, acc, lane_sums(sum), m, d_of_rows(t, row, at), dmin, _mm256_set1_ps(d[b]),
                   has_signs(t) ? 0 : code_offset(t));
    }
    return finish(t, acc);
}

/* Scales and minimums of eight rows, one row per 32-bit lane. */
INLINE void slab_scales(enum qtype t, const struct prep p[ROWS], struct slab *s)
{
    const __m256i first = _mm256_set1_epi32(0x01000100), second = _mm256_set1_epi32(0x03020302);
    const __m256i base =
        _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404, 0x08080808, 0x0c0c0c0c);
    __m256i scale[ROWS], min[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++) scale[r] = load256(p[r].scale);
    transpose8(scale);
    UNROLL for (int g = 0; g < 8; g++)
    {
        if (sub_block(t) == 32) {
            store256(s->scale[g], scale[g]);
        } else {
            store256(s->scale[2 * g], _mm256_shuffle_epi8(scale[g], _mm256_add_epi8(base, first)));
            store256(s->scale[2 * g + 1], _mm256_shuffle_epi8(scale[g], _mm256_add_epi8(base, second)));
        }
    }
    UNROLL for (int r = 0; r < ROWS; r++) min[r] = load256(p[r].min);
    transpose8(min);
    UNROLL for (int g = 0; g < 8; g++) store256(s->min[g], min[g]);
}

INLINE void slab_fill(enum qtype t, const uint8_t *const row[ROWS], size_t at, struct slab *s)
{
    struct prep p[ROWS];
    for (int r = 0; r < ROWS; r++) prepare(t, row[r] + at, &p[r]);
    slab_scales(t, p, s);
    UNROLL for (int g = 0; g < 8; g++)
    {
        __m256i v[ROWS];
        UNROLL for (int r = 0; r < ROWS; r++) v[r] = codes(t, row[r] + at, &p[r], g);
        transpose8(v);
        UNROLL for (int j = 0; j < 8; j++) store256(s->code[8 * g + j], v[j]);
    }
    _mm256_store_ps(s->d, d_of_rows(t, row, at));
    if (has_min(t)) _mm256_store_ps(s->dmin, f16_of_rows(row, at + dmin_at(t)));
}

/* Slab times four activation blocks: exact sums per row. */
INLINE void slab_sums(enum qtype t, const struct slab *s, const uint8_t *const q[COLS], size_t at, __m256i sum[COLS])
{
    const int per_scale = sub_block(t) / 4, n = pair_sums(t);
    UNROLL for (int c = 0; c < COLS; c++)
    {
        sum[c] = _mm256_setzero_si256();
    }
    for (int i = 0; i < 64; i += per_scale) {
        const __m256i scale = load256(s->scale[i / per_scale]);
        UNROLL for (int first = i; first < i + per_scale; first += n)
        {
            __m256i pairs[COLS];
            UNROLL for (int j = first; j < first + n; j++)
            {
                const __m256i w = load256(s->code[j]);
                UNROLL for (int c = 0; c < COLS; c++)
                {
                    const __m256i p = _mm256_maddubs_epi16(w, spread32(q[c] + at + 4 * (size_t)j));
                    pairs[c] = j == first ? p : _mm256_add_epi16(pairs[c], p);
                    KEEP(pairs[c]);
                }
            }
            UNROLL for (int c = 0; c < COLS; c++)
            {
                sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(pairs[c], scale));
                KEEP(sum[c]);
            }
        }
    }
}

INLINE void slab_columns(enum qtype t, const struct slab *s, int b, const uint8_t *const x[COLS], int k,
                         float acc[COLS][ROWS])
{
    __m256i sum[COLS], min[COLS];
    slab_sums(t, s, x, 256 * (size_t)b, sum);
    UNROLL for (int c = 0; c < COLS; c++)
    {
        const int16_t *const bsums = row_bsums(x[c], k) + 16 * b;
        min[c] = _mm256_setzero_si256();
        UNROLL for (int i = 0; i < 8; i++) min[c] =
            _mm256_add_epi32(min[c], _mm256_madd_epi16(load256(s->min[i]), spread32(bsums + 2 * i)));
    }
    const __m256 d = _mm256_load_ps(s->d), dmin = has_min(t) ? _mm256_load_ps(s->dmin) : _mm256_setzero_ps();
    UNROLL for (int c = 0; c < COLS; c++)
    {
        const __m256 yd = _mm256_set1_ps(row_d(x[c], k)[b]);
        _mm256_store_ps(acc[c], step(t, _mm256_load_ps(acc[c]), sum[c], min[c], d, dmin, yd, code_offset(t)));
    }
}

INLINE void rows_slab(enum qtype t, int k, const uint8_t *const row[ROWS], const uint8_t *x, size_t x_stride, int n,
                      float acc[COL_CHUNK][ROWS])
{
    struct slab s;
    memset(acc, 0, COL_CHUNK * sizeof acc[0]);
    for (int b = 0; b < k / 256; b++) {
        slab_fill(t, row, (size_t)b * block_bytes(t), &s);
        for (int c = 0; c < n; c += COLS) {
            const uint8_t *cols[COLS];
            row_pointers(x, x_stride, c, n, COLS, cols);
            slab_columns(t, &s, b, cols, k, acc + c);
        }
    }
    for (int c = 0; c < n; c++) _mm256_store_ps(acc[c], finish(t, _mm256_load_ps(acc[c])));
}

/* From so many activation rows on, unpacking pays. */
INLINE int slab_cols(enum qtype t)
{
    return has_signs(t) || is_iq1(t) ? 2 : 3;
}

INLINE void tile(enum qtype t, int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                 int n_cols, float *out, size_t out_stride)
{
    const int from = slab_cols(t);
    if (n_cols >= from)
        tile_walk(rows_direct, rows_slab, t, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
    else
        tile_walk(rows_direct, NULL, t, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
}

#endif
