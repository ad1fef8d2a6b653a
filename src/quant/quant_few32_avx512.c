/* AVX-512 tile of Q8_0 for some activation rows (ACT_Q8_0), which share a pass over the weights: a block of sixteen
 * weight rows is transposed, so that a vector has four codes of each, and multiplied with four codes of every column,
 * all in registers.
 *
 * Floor: a column takes eight products, on one unit on Intel (Ice Lake), four float operations and ten loads; the
 * weights about 60 operations, half of them shuffles, and 32 loads: with eight columns 64 cycles of products, 160
 * operations on two units, 112 loads, of which 80 pass at 1.15 a cycle. Measured, one of two cores of an Intel Xeon
 * (Ice Lake, virtual, 3.4 GHz), weights in the second-level cache, cycles for 544 bytes of weights (sixteen rows) with
 * 2, 3, 4, 5 and 8 columns: 62, 70, 81, 94 and 117. Rows as they lie, four columns at a time, take 69, 92 and 113 with
 * 2 to 4; with the transposed block in memory and pointers to all rows this took 115 and 150 with 5 and 8.
 *
 * From memory on Intel the rows are sixteen long streams: with two threads 33 GB/s with 4 columns, 30 with 5, 21 with 8
 * (before: 28, 22, 20); with 2, 34 to 38, but steps of two sessions were slower than with rows as they lie, 28 for 29
 * tokens/s. On Zen 5 they lie side by side and the next sixteen are one long run of lines, asked for in their order
 * while these are multiplied: 15.8 GB/s with eight columns where sixteen streams gave 11.2 (two threads, 2 cores,
 * virtual, with the block in memory). */
#ifdef __AVX512VNNI__
#include "quant/quant_blocks.h"
#include "quant/quant_direct_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

enum {
    FEW_LEAST = 3,    /* columns of a pass, of all that this takes */
    FEW_COLS = 8,     /* the most */
    FEW_NEAR = 256,   /* bytes between a line that is asked for, into the first-level cache, and the place of work */
    FEW_SECOND = 1024 /* into the second-level one, of rows that ask for themselves */
};

/* Four rows side by side: their addresses are sums of two registers. With a pointer of its own for each of two dozen
 * rows most would be loaded again for every block, and loads are scarce. */
struct stride {
    size_t one, three;
};

INLINE struct stride stride_of(size_t bytes)
{
    struct stride s = {bytes, 3 * bytes};
    __asm__("" : "+r"(s.three));
    return s;
}

INLINE const uint8_t *row_of_four(const uint8_t *first, const struct stride *s, int i)
{
    __asm__("" : "+r"(first)); /* sums are made anew for every use */
    return first + (i == 3 ? s->three : (size_t)i * s->one);
}

/* A block of sixteen rows: codes 128 too high, [group of four][row][4]. */
struct block {
    __m512i code[8];
    __m512 d;
};

/* Sixteen rows, equally far apart, and what is asked for meanwhile. */
struct few_rows {
    const uint8_t *row;
    struct stride stride;
    const uint8_t *next; /* rows behind them; NULL: none, or they have been asked for */
};

/* Lines of eight rows. */
INLINE void ask_rows(const struct few_rows *w, bool alone, const uint8_t *from)
{
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const char *const line = (const char *)row_of_four(from, &w->stride, r % 4);
        _mm_prefetch(line + FEW_NEAR, _MM_HINT_T0);
        if (alone) _mm_prefetch(line + FEW_SECOND, _MM_HINT_T1);
        if (r == 3) from += 4 * w->stride.one;
    }
}

/* The f16 that four rows' blocks begin with, in the lower half. */
INLINE __m128i four_scales(const struct few_rows *w, const uint8_t *from)
{
    __m128i v = _mm_cvtsi32_si128(load_u16(row_of_four(from, &w->stride, 0)));
    v = _mm_insert_epi16(v, load_u16(row_of_four(from, &w->stride, 1)), 1);
    v = _mm_insert_epi16(v, load_u16(row_of_four(from, &w->stride, 2)), 2);
    return _mm_insert_epi16(v, load_u16(row_of_four(from, &w->stride, 3)), 3);
}

INLINE struct block unpack(const struct few_rows *w, bool alone, int b)
{
    const uint8_t *from = w->row + (size_t)b * Q8_0_BYTES;
    __asm__("" : "+r"(from));
    __m256i v[SLAB_ROWS];
    __m128i d[4];
    struct block to;
    ask_rows(w, alone, from + (b % 2 ? ROWS * w->stride.one : 0)); /* two blocks are about a line */
    UNROLL for (int g = 0; g < 4; g++)
    {
        UNROLL for (int i = 0; i < 4; i++) v[4 * g + i] = load256(row_of_four(from, &w->stride, i) + Q8_0_QS);
        d[g] = four_scales(w, from);
        from += 4 * w->stride.one;
    }
    octets(v, to.code);
    UNROLL for (int i = 0; i < 8; i++) to.code[i] = _mm512_xor_si512(to.code[i], _mm512_set1_epi8((char)0x80));
    to.d = _mm512_cvtph_ps(_mm256_set_m128i(_mm_unpacklo_epi64(d[2], d[3]), _mm_unpacklo_epi64(d[0], d[1])));
    return to;
}

/* The next rows' share of block b. */
INLINE void ask_next(const struct few_rows *w, int b)
{
    enum { SHARE = SLAB_ROWS * Q8_0_BYTES };
    if (!w->next) return;
    const uintptr_t from = (uintptr_t)w->next + (size_t)b * SHARE;
    UNROLL for (int i = 0; i < SHARE; i += 64) _mm_prefetch((const char *)(const void *)(from + i), _MM_HINT_T1);
}

/* The four bytes at the same place of a column in all lanes. */
INLINE __m512i spread_at(const uint8_t *col, size_t at)
{
    __m512i v = _mm512_set1_epi32((int)load_u32(col + at));
    KEEP512(v); /* columns in turn: each one's products wait for each other */
    return v;
}

/* acc += block b times C columns. */
INLINE void multiply(int C, int k, int b, const struct block *w, const uint8_t *const col[FEW_COLS],
                     __m512 acc[FEW_COLS])
{
    size_t q = 32 * (size_t)b, d = (size_t)k + 4 * (size_t)b, offset = d + (size_t)k / 8;
    __m512i sum[FEW_COLS];
    /* places of all columns from a pointer each and these: there are no registers for more */
    __asm__("" : "+r"(q), "+r"(d), "+r"(offset));
    UNROLL for (int c = 0; c < C; c++) sum[c] = spread_at(col[c], offset);
    UNROLL for (int i = 0; i < 8; i++) UNROLL for (int c = 0; c < C; c++) sum[c] =
        dp512(sum[c], w->code[i], spread_at(col[c], q + 4 * (size_t)i));
    UNROLL for (int c = 0; c < C; c++)
    {
        const __m512 by = _mm512_mul_ps(w->d, _mm512_castsi512_ps(spread_at(col[c], d)));
        acc[c] = _mm512_add_ps(acc[c], _mm512_mul_ps(_mm512_cvtepi32_ps(sum[c]), by));
    }
}

/* alone: nobody else asks for the rows. */
INLINE void rows_few(bool alone, int C, int k, const struct few_rows *rows, const uint8_t *x, size_t x_stride,
                     __m512 acc[FEW_COLS])
{
    const uint8_t *col[FEW_COLS];
    const int n = k / 32;
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm512_setzero_ps();
    struct block w = unpack(rows, alone, 0);
    for (int b = 0; b < n; b++) {
        ask_next(rows, b);
        multiply(C, k, b, &w, col, acc);
        if (b + 1 < n) w = unpack(rows, alone, b + 1);
    }
}

/* Asks for the begin of rows that nobody has asked for. */
INLINE void ask_first(const uint8_t *row, size_t stride)
{
    for (size_t at = 0; at < FEW_SECOND; at += 64)
        for (size_t r = 0; r < SLAB_ROWS; r++) _mm_prefetch((const char *)row + r * stride + at, _MM_HINT_T1);
}

/* Activation rows, and where their results go: of a weight row and the next of a step's `apart` values apart. */
struct few_columns {
    const uint8_t *x;
    size_t x_stride;
    int n;
    float *out;
    size_t out_stride;
};

/* Sixteen rows times all columns. */
INLINE void step_few(bool alone, int k, struct few_rows rows, const struct few_columns *to, int r, int apart)
{
    const int passes = (to->n + FEW_COLS - 1) / FEW_COLS;
    for (int i = 0; i < passes; i++, rows.next = NULL) {
        const int c0 = to->n * i / passes, n = to->n * (i + 1) / passes - c0;
        const uint8_t *const x = to->x + (size_t)c0 * to->x_stride;
        __m512 acc[FEW_COLS];
        UNROLL for (int C = FEW_LEAST; C <= FEW_COLS; C++) if (n == C)
            rows_few(alone, C, k, &rows, x, to->x_stride, acc);
        for (int c = 0; c < n; c++) {
            float *const out = to->out + (size_t)(c0 + c) * to->out_stride + r, lane[SLAB_ROWS];
            _mm512_storeu_ps(lane, acc[c]);
            for (int j = 0; j < SLAB_ROWS; j++) out[j * apart] = lane[j];
        }
    }
}

static void step_alone(int k, struct few_rows rows, const struct few_columns *to, int r, int apart)
{
    step_few(true, k, rows, to, r, apart);
}

static void step_asked(int k, struct few_rows rows, const struct few_columns *to, int r)
{
    step_few(false, k, rows, to, r, 1);
}

/* Sixteen long streams: every row asks for what follows in its own. */
INLINE void streams(int k, const uint8_t *w, size_t w_stride, int steps, const struct few_columns *to)
{
    const struct stride stride = stride_of((size_t)steps * w_stride);
    for (int j = 0; j < steps; j++) {
        const struct few_rows rows = {.row = w + (size_t)j * w_stride, .stride = stride};
        step_alone(k, rows, to, j, steps);
    }
}

/* Sixteen rows side by side, which ask for the next sixteen as one run. */
INLINE void runs(int k, const uint8_t *w, size_t w_stride, int steps, const struct few_columns *to)
{
    const size_t run = SLAB_ROWS * w_stride;
    struct few_rows rows = {.row = w, .stride = stride_of(w_stride)};
    ask_first(w, w_stride);
    for (int j = 0; j < steps; j++, rows.row += run) {
        rows.next = j + 1 < steps ? rows.row + run : NULL;
        if (j == 0)
            step_alone(k, rows, to, 0, 1);
        else
            step_asked(k, rows, to, j * SLAB_ROWS);
    }
}

void tile_q8_0_avx512(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride, int n_cols,
                      float *out, size_t out_stride)
{
    const bool intel = __builtin_cpu_is("intel");
    const int from = intel ? FEW_LEAST : 5; /* columns, from which on this is faster than rows as they lie */
    const int steps = n_cols < from ? 0 : n_rows / SLAB_ROWS, done = steps * SLAB_ROWS;
    const struct few_columns to = {x, x_stride, n_cols, out, out_stride};
    if (steps) (intel ? streams : runs)(k, w, w_stride, steps, &to);
    if (done < n_rows)
        tile_q8_0_lying_avx512(k, (const uint8_t *)w + (size_t)done * w_stride, w_stride, n_rows - done, x, x_stride,
                               n_cols, out + done, out_stride);
}
#endif
