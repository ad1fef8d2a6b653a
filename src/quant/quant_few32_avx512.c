/* AVX-512 tile of Q8_0 for some activation rows (ACT_Q8_0), which share a pass over the weights: a block of sixteen
 * weight rows is transposed, so that a vector has four codes of each, and multiplied with four codes of every column.
 * While it is multiplied the next one is transposed: products would wait for all of its shuffles.
 *
 * Floor: loads, two a cycle on Zen 5. 544 bytes of weights take 48 (where a line is crossed, two), each column another
 * 10: 64 cycles for eight columns, and 44 of multiplications, two a cycle. Where multiplications, float operations and
 * shuffles share two units (Intel), a column takes 12 of them and the weights about 60.
 *
 * Sixteen rows lie side by side, so the next sixteen are one long run of lines: they are asked for in their order while
 * these are multiplied, and wait in the second-level cache. Two threads in turn, medians of 11 rounds over 400 MB
 * beside other work (Zen 5, 2 cores, virtual), GB/s with eight columns: 15.8 where sixteen long streams, each asked for
 * by itself, gave 11.2; with five 23.4 where rows as they lie, four and one at a time, gave 16.6; with four 16.8
 * and 16.4. */
#ifdef __AVX512VNNI__
#include "quant/quant_blocks.h"
#include "quant/quant_direct_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

enum {
    FEW_FROM = 5,     /* columns from which on this is faster than rows as they lie */
    FEW_COLS = 8,     /* most columns of a pass; none has fewer than half of them */
    FEW_NEAR = 256,   /* bytes between a line that is asked for, into the first-level cache, and the place of work */
    FEW_SECOND = 1024 /* into the second-level one, of rows that nobody has asked for */
};

/* A block of sixteen rows: codes 128 too high, [group of four][row][4]. */
struct block {
    _Alignas(64) uint8_t code[8][64];
    float d[SLAB_ROWS];
};

/* Sixteen rows that lie side by side, and what is asked for meanwhile. */
struct few_rows {
    const uint8_t *row[SLAB_ROWS];
    const uint8_t *next; /* rows behind them; NULL: none, or they have been asked for */
    bool first;          /* nobody has asked for these */
};

INLINE void unpack(const struct few_rows *w, int b, struct block *to)
{
    const size_t at = (size_t)b * Q8_0_BYTES;
    const uint8_t *const *const asked = w->row + ROWS * (b % 2); /* two blocks are about a line */
    __m512i v[8];
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const uintptr_t line = (uintptr_t)asked[r] + at;
        _mm_prefetch((const char *)(const void *)(line + FEW_NEAR), _MM_HINT_T0);
        if (w->first) _mm_prefetch((const char *)(const void *)(line + FEW_SECOND), _MM_HINT_T1);
    }
    octets_of_rows(w->row, at + Q8_0_QS, v);
    UNROLL for (int i = 0; i < 8; i++) store512(to->code[i], _mm512_xor_si512(v[i], _mm512_set1_epi8((char)0x80)));
    UNROLL for (int r = 0; r < SLAB_ROWS; r += ROWS) _mm256_store_ps(to->d + r, f16_of_rows(w->row + r, at));
}

/* The next rows' share of block b. */
INLINE void ask_next(const struct few_rows *w, int b)
{
    enum { SHARE = SLAB_ROWS * Q8_0_BYTES };
    if (!w->next) return;
    const uintptr_t from = (uintptr_t)w->next + (size_t)b * SHARE;
    UNROLL for (int i = 0; i < SHARE; i += 64) _mm_prefetch((const char *)(const void *)(from + i), _MM_HINT_T1);
}

/* acc += block b times C columns. */
INLINE void multiply(int C, int k, int b, const struct block *w, const uint8_t *const col[FEW_COLS],
                     __m512 acc[FEW_COLS])
{
    const __m512 d = _mm512_load_ps(w->d);
    __m512i sum[FEW_COLS];
    UNROLL for (int c = 0; c < C; c++) sum[c] = _mm512_set1_epi32(row_offset(col[c], k)[b]);
    UNROLL for (int i = 0; i < 8; i++)
    {
        const __m512i v = load512(w->code[i]);
        UNROLL for (int c = 0; c < C; c++)
        {
            __m512i a = _mm512_set1_epi32((int)load_u32(col[c] + 32 * b + 4 * i));
            KEEP512(a); /* columns in turn: each one's products wait for each other */
            sum[c] = _mm512_dpbusd_epi32(sum[c], v, a);
        }
    }
    UNROLL for (int c = 0; c < C; c++)
    {
        const __m512 by = _mm512_mul_ps(d, _mm512_set1_ps(row_d(col[c], k)[b]));
        acc[c] = _mm512_add_ps(acc[c], _mm512_mul_ps(_mm512_cvtepi32_ps(sum[c]), by));
    }
}

INLINE void rows_few(int C, int k, const struct few_rows *rows, const uint8_t *x, size_t x_stride, __m512 acc[FEW_COLS])
{
    const uint8_t *col[FEW_COLS];
    struct block w[2];
    const int n = k / 32;
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm512_setzero_ps();
    unpack(rows, 0, &w[0]);
    for (int b = 0; b < n; b++) {
        if (b + 1 < n) unpack(rows, b + 1, &w[(b + 1) % 2]);
        ask_next(rows, b);
        multiply(C, k, b, &w[b % 2], col, acc);
    }
}

/* Asks for the begin of rows that nobody has asked for. */
INLINE void ask_first(const uint8_t *const row[SLAB_ROWS])
{
    for (size_t at = 0; at < FEW_SECOND; at += 64)
        for (int r = 0; r < SLAB_ROWS; r++) _mm_prefetch((const char *)row[r] + at, _MM_HINT_T1);
}

/* m of sixteen rows times n columns, from FEW_COLS / 2 to FEW_COLS. */
INLINE void step_few(int k, const struct few_rows *rows, int m, const uint8_t *x, size_t x_stride, int n, float *out,
                     size_t out_stride)
{
    __m512 acc[FEW_COLS];
    UNROLL for (int C = FEW_COLS / 2; C <= FEW_COLS; C++) if (n == C) rows_few(C, k, rows, x, x_stride, acc);
    for (int c = 0; c < n; c++) _mm512_mask_storeu_ps(out + (size_t)c * out_stride, (__mmask16)((1u << m) - 1), acc[c]);
}

void tile_q8_0_avx512(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride, int n_cols,
                      float *out, size_t out_stride)
{
    if (n_cols < FEW_FROM) {
        tile_q8_0_lying_avx512(k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
        return;
    }
    const int passes = (n_cols + FEW_COLS - 1) / FEW_COLS;
    for (int r = 0; r < n_rows; r += SLAB_ROWS) {
        const int left = n_rows - r, m = left < SLAB_ROWS ? left : SLAB_ROWS;
        const uint8_t *const from = (const uint8_t *)w + (size_t)r * w_stride;
        struct few_rows rows = {.next = left > SLAB_ROWS ? from + SLAB_ROWS * w_stride : NULL, .first = r == 0};
        row_pointers(from, w_stride, 0, m, SLAB_ROWS, rows.row);
        if (rows.first) ask_first(rows.row);
        for (int i = 0; i < passes; i++, rows.next = NULL, rows.first = false) {
            const int c = n_cols * i / passes, n = n_cols * (i + 1) / passes - c;
            step_few(k, &rows, m, (const uint8_t *)x + (size_t)c * x_stride, x_stride, n,
                     out + (size_t)c * out_stride + r, out_stride);
        }
    }
}
#endif
