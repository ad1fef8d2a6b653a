/* One case of one operation on one device: its steps, its state, and what came out. A case is run on several devices
 * and cut into steps in several ways; results are compared value by value. */
#ifndef OPS_BENCH_H
#define OPS_BENCH_H
#include <math.h>
#include <stdlib.h>
#include "device_kit.h"

/* Values that belong together. limit: allowed difference as a share of scale (0: of the largest wanted value); limit 0:
 * equal values. coded: rounded on the way, so that a value near a tie may have gone to the neighbour. */
struct chunk {
    size_t at;
    int n;
    double limit, scale;
    bool coded;
};

enum { RESULT_CHUNKS = 40000, RESULT_VALUES = 1100000 };

struct result {
    size_t n_values;
    int n_chunks;
    double v[RESULT_VALUES];
    struct chunk chunk[RESULT_CHUNKS];
};

struct bench {
    struct kit k;
    struct history h;
    int rows_per_step;
    bool extreme; /* inputs hold values that nothing ordinary makes: see bench_extremes */
    int r0, n;    /* the current step holds rows [r0, r0+n) of the history */
    struct step st;
    struct result *out;
    struct dev_ring *ring[2][KIT_SLOTS]; /* by session */
    struct dev_store *store[KIT_SLOTS];
    struct dev_scan *scan[KIT_SLOTS];
    struct dev_ring *seg_ring[2][KIT_SLOTS]; /* by segment of the current step */
    struct dev_store *seg_store[KIT_SLOTS];
    struct dev_scan *seg_scan[KIT_SLOTS];
};

/* Goes on to the next step; false behind the last. */
static inline bool bench_step(struct bench *b)
{
    b->r0 += b->n;
    if (b->r0 >= b->h.n) return false;
    b->n = b->h.n - b->r0 < b->rows_per_step ? b->h.n - b->r0 : b->rows_per_step;
    step_make(&b->st, &b->h, b->r0, b->r0 + b->n);
    for (int i = 0; i < b->st.rows.n_segments; i++) {
        const int slot = b->st.seg[i].slot;
        for (int l = 0; l < 2; l++) b->seg_ring[l][i] = b->ring[l][slot];
        b->seg_store[i] = b->store[slot];
        b->seg_scan[i] = b->scan[slot];
    }
    b->k.op->set_rows(b->k.stream, &b->st.rows);
    return true;
}

/* Commits the rings of bulk segments. */
static inline void bench_commit(struct bench *b)
{
    for (int i = 0; i < b->st.rows.n_segments; i++)
        for (int l = 0; l < 2; l++)
            if (b->st.seg[i].bulk && b->seg_ring[l][i]) b->k.op->ring_flip(b->seg_ring[l][i]);
}

/* A copy of n values with some replaced; which ones depends on their index from `first` on only. */
static inline const float *bench_extremes(struct bench *b, const float *x, int64_t first, int64_t n)
{
    static const float kinds[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 3e38f, 1e-42f, -0.0f};
    float *y = kit_memory(&b->k, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        struct kit draw = {.seed = (uint64_t)(first + i)};
        const uint64_t bits = kit_bits(&draw);
        y[i] = bits % 97 ? x[i] : kinds[bits >> 32 & 7];
    }
    return y;
}

/* The current step's rows of values [h.n][groups*width], in a buffer of their own. */
static inline struct dev_buf *bench_input(struct bench *b, const float *all, int groups, int width)
{
    const int64_t row = (int64_t)groups * width, first = b->r0 * row;
    const float *x = all + first;
    return kit_filled(&b->k, b->n, groups, width, b->extreme ? bench_extremes(b, x, first, b->n * row) : x);
}

/* ---------------------------------------------------------------- state before the first step */

/* Rings of every session with the rows that were written before its first position. */
static inline void bench_rings(struct bench *b, int lane, struct row_format fmt, int span)
{
    for (int slot = 0; slot < KIT_SLOTS; slot++) {
        struct dev_ring *r = b->ring[lane][slot] = kit_ring(&b->k, fmt, span, b->h.slack);
        const int32_t start = b->h.start[slot];
        const int n = start < span ? start : span;
        b->k.op->ring_put(r, start - n, n, kit_random_rows(&b->k, &fmt, n));
    }
}

/* Stores of every session; with rows: all that its last position sees. */
static inline void bench_stores(struct bench *b, struct row_format fmt, int ratio, bool rows)
{
    for (int slot = 0; slot < KIT_SLOTS; slot++) {
        struct dev_store *st = b->store[slot] = kit_store(&b->k, fmt);
        const int64_t n = history_end(&b->h, slot) / ratio;
        assert_int_equal(b->k.op->store_reserve(st, rows ? 0 : b->h.start[slot] / ratio, n), 0);
        if (rows && n) b->k.op->store_put(st, 0, n, kit_random_rows(&b->k, &fmt, n));
    }
}

/* Scans of every session with a state. */
static inline void bench_scans(struct bench *b, const struct scan_desc *d)
{
    const struct row_format fmt = kit_format(ROWFMT_F32, d->value_heads * d->width * d->width, 0);
    for (int slot = 0; slot < KIT_SLOTS; slot++) {
        b->scan[slot] = kit_own(&b->k, KIT_SCAN, b->k.op->scan_create(b->k.dev, d));
        b->k.op->scan_put(b->scan[slot], kit_random_rows(&b->k, &fmt, 1));
    }
}

/* ---------------------------------------------------------------- results */

static inline struct chunk *result_add(struct bench *b, const double *v, int n, double limit)
{
    struct result *r = b->out;
    assert_true(r->n_values + (size_t)n <= RESULT_VALUES && r->n_chunks < RESULT_CHUNKS);
    memcpy(r->v + r->n_values, v, (size_t)n * sizeof *v);
    struct chunk *c = &r->chunk[r->n_chunks++];
    *c = (struct chunk){.at = r->n_values, .n = n, .limit = limit};
    r->n_values += (size_t)n;
    return c;
}

/* The leading n values of row i of a float buffer. */
static inline struct chunk *result_row(struct bench *b, const struct dev_buf *buf, int row_values, int i, int n,
                                       double limit)
{
    double *v = kit_memory(&b->k, (size_t)row_values * sizeof *v);
    b->k.op->read_f64(b->k.stream, buf, i, 1, v);
    kit_check(&b->k);
    return result_add(b, v, n, limit);
}

/* All rows of the step. */
static inline void result_rows(struct bench *b, const struct dev_buf *buf, int row_values, double limit)
{
    for (int i = 0; i < b->n; i++) result_row(b, buf, row_values, i, row_values, limit);
}

static inline void result_ids(struct bench *b, const struct dev_buf *buf, int row_values, int i, int n)
{
    int32_t *ids = kit_memory(&b->k, (size_t)row_values * sizeof *ids);
    double *v = kit_memory(&b->k, (size_t)row_values * sizeof *v);
    b->k.op->read_i32(b->k.stream, buf, i, 1, ids);
    kit_check(&b->k);
    for (int j = 0; j < n; j++) v[j] = ids[j];
    result_add(b, v, n, 0);
}

/* Ring rows [pos, pos+n) of a session. */
static inline void result_ring(struct bench *b, int lane, const struct row_format *fmt, int slot, int32_t pos, int n,
                               double limit)
{
    const double *v = kit_ring_values(&b->k, b->ring[lane][slot], fmt, pos, n);
    for (int i = 0; i < n; i++) result_add(b, v + (int64_t)i * fmt->width, fmt->width, limit);
}

/* The last rows that every session needs at its end. */
static inline void result_rings(struct bench *b, int lane, const struct row_format *fmt, int span, double limit)
{
    for (int slot = 0; slot < KIT_SLOTS; slot++) {
        const int32_t end = history_end(&b->h, slot);
        const int n = end < span ? end : span;
        result_ring(b, lane, fmt, slot, end - n, n, limit);
    }
}

/* Compares with what was wanted; what names the case. A chunk that rounds on the way may differ by a step of its
 * rounding in at most one of eight chunks. */
static inline void result_compare(const struct result *want, const struct result *got, const char *what)
{
    int flips = 0, coded = 0;
    assert_int_equal(want->n_chunks, got->n_chunks);
    assert_int_equal(want->n_values, got->n_values);
    for (int i = 0; i < want->n_chunks; i++) {
        const struct chunk *c = &want->chunk[i];
        double scale = c->scale, worst = 0;
        for (int j = 0; j < c->n && c->scale == 0; j++) scale = fmax(scale, fabs(want->v[c->at + (size_t)j]));
        for (int j = 0; j < c->n; j++) {
            const double w = want->v[c->at + (size_t)j], g = got->v[c->at + (size_t)j];
            const double difference = w == g ? 0 : fabs(w - g);
            if (!(difference <= (c->coded ? 0.02 : c->limit) * scale))
                fail_msg("%s: chunk %d value %d: got %.9g, wanted %.9g, difference %.3g of %.3g", what, i, j, g, w,
                         difference / scale, c->limit);
            worst = fmax(worst, difference);
        }
        coded += c->coded;
        flips += worst > c->limit * scale;
    }
    if (flips > 1 + coded / 8) fail_msg("%s: %d of %d rounded rows differ", what, flips, coded);
}

/* Not-a-number is one value: its sign and payload say nothing. */
static inline void result_same_bits(const struct result *want, const struct result *got, const char *what)
{
    assert_int_equal(want->n_values, got->n_values);
    for (size_t i = 0; i < want->n_values; i++)
        if (memcmp(&want->v[i], &got->v[i], sizeof want->v[i]) && !(isnan(want->v[i]) && isnan(got->v[i])))
            fail_msg("%s: value %zu: %.17g and %.17g", what, i, want->v[i], got->v[i]);
}

#endif
