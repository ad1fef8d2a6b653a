/* AVX-512 tile of Q8_0 for some activation rows (ACT_Q8_0), which share a pass over the weights: a block of sixteen
 * weight rows is transposed, so that a vector has four codes of each, and multiplied with four codes of every column.
 * While it is multiplied the next one is transposed: products would wait for all of its shuffles.
 *
 * Floor: loads, two a cycle on Zen 5. 544 bytes of weights take 48 (where a line is crossed, two), each column another
 * 10: 64 cycles for eight columns, and 44 of multiplications, two a cycle. Where multiplications, float operations and
 * shuffles share two units (Intel), a column takes 12 of them and the weights about 60. Measured (Zen 5, 2 cores,
 * virtual, two threads in turn with rows as they lie, 4,096 values), GB/s: eight columns 40 and 29 from the cache, 26
 * and 24 from memory (plain reading 52), six 28 and 28. What memory costs more than the cache does not hide behind the
 * products, whatever the distance of what is asked for and the order of rows: not understood. */
#ifdef __AVX512VNNI__
#include "quant/quant_blocks.h"
#include "quant/quant_direct_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

enum {
    FEW_FROM = 6,     /* columns from which on this is faster than rows as they lie */
    FEW_COLS = 8,     /* most columns of a pass; none has fewer than half of them */
    FEW_NEAR = 512,   /* bytes between a line that is asked for, into the first-level cache, and the place of work */
    FEW_SECOND = 1024 /* into the second-level one */
};

/* A block of sixteen rows: codes 128 too high, [group of four][row][4]. */
struct block {
    _Alignas(64) uint8_t code[8][64];
    float d[SLAB_ROWS];
};

INLINE void unpack(const uint8_t *const row[SLAB_ROWS], int b, struct block *to)
{
    const size_t at = (size_t)b * Q8_0_BYTES;
    const uint8_t *const *const asked = row + ROWS * (b % 2); /* two blocks are about a line */
    __m512i v[8];
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const uintptr_t line = (uintptr_t)asked[r] + at;
        _mm_prefetch((const char *)(const void *)(line + FEW_NEAR), _MM_HINT_T0);
        _mm_prefetch((const char *)(const void *)(line + FEW_SECOND), _MM_HINT_T1);
    }
    octets_of_rows(row, at + Q8_0_QS, v);
    UNROLL for (int i = 0; i < 8; i++) store512(to->code[i], _mm512_xor_si512(v[i], _mm512_set1_epi8((char)0x80)));
    UNROLL for (int r = 0; r < SLAB_ROWS; r += ROWS) _mm256_store_ps(to->d + r, f16_of_rows(row + r, at));
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

INLINE void rows_few(int C, int k, const uint8_t *const row[SLAB_ROWS], const uint8_t *x, size_t x_stride,
                     __m512 acc[FEW_COLS])
{
    const uint8_t *col[FEW_COLS];
    struct block w[2];
    const int n = k / 32;
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm512_setzero_ps();
    unpack(row, 0, &w[0]);
    for (int b = 0; b < n; b++) {
        if (b + 1 < n) unpack(row, b + 1, &w[(b + 1) % 2]);
        multiply(C, k, b, &w[b % 2], col, acc);
    }
}

INLINE void store_lanes(float *out, __m512 v, int step, int n_rows)
{
    const int steps = stream_steps(n_rows, SLAB_ROWS);
    float lane[SLAB_ROWS];
    _mm512_storeu_ps(lane, v);
    for (int r = step, i = 0; i < SLAB_ROWS && r < n_rows; i++, r += steps) out[r] = lane[i];
}

/* Asks for what no step before has asked for. */
INLINE void ask_first(const uint8_t *const row[SLAB_ROWS])
{
    for (size_t at = 0; at < FEW_SECOND; at += 64)
        for (int r = 0; r < SLAB_ROWS; r++) _mm_prefetch((const char *)row[r] + at, _MM_HINT_T1);
}

/* A step over sixteen rows, for n columns from FEW_FROM to FEW_COLS. */
INLINE void step_few(int k, const uint8_t *const row[SLAB_ROWS], const uint8_t *x, size_t x_stride, int n, int step,
                     int n_rows, float *out, size_t out_stride)
{
    __m512 acc[FEW_COLS];
    UNROLL for (int C = FEW_COLS / 2; C <= FEW_COLS; C++) if (n == C) rows_few(C, k, row, x, x_stride, acc);
    for (int c = 0; c < n; c++) store_lanes(out + (size_t)c * out_stride, acc[c], step, n_rows);
}

void tile_q8_0_avx512(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride, int n_cols,
                      float *out, size_t out_stride)
{
    if (n_cols < FEW_FROM) {
        tile_q8_0_lying_avx512(k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
        return;
    }
    const int passes = (n_cols + FEW_COLS - 1) / FEW_COLS;
    for (int j = 0; j < stream_steps(n_rows, SLAB_ROWS); j++) {
        const uint8_t *row[SLAB_ROWS];
        stream_pointers(w, w_stride, j, n_rows, SLAB_ROWS, row);
        if (j == 0) ask_first(row);
        for (int i = 0; i < passes; i++) {
            const int c = n_cols * i / passes, n = n_cols * (i + 1) / passes - c;
            step_few(k, row, (const uint8_t *)x + (size_t)c * x_stride, x_stride, n, j, n_rows,
                     out + (size_t)c * out_stride, out_stride);
        }
    }
}
#endif
