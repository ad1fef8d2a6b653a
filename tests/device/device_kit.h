/* What device tests share: one device with everything that was made on it, seeded values, weights of every type, and
 * row tables of several sessions. Every function ends the test when the device reports an error. */
#ifndef DEVICE_KIT_H
#define DEVICE_KIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/mem.h"
#include "device/device.h"

enum kit_kind { KIT_BUF, KIT_MAT, KIT_ROPE, KIT_RING, KIT_STORE, KIT_SCAN, KIT_EXPERTS, KIT_MEMORY };
enum { KIT_OWNED = 4096 };

struct kit {
    struct dev *dev;
    const struct dev_ops *op;
    struct dev_stream *stream;
    uint64_t seed;
    int n_owned;
    struct {
        enum kit_kind kind;
        void *p;
    } owned[KIT_OWNED];
};

static inline void kit_open(struct kit *k, struct dev *dev, uint64_t seed)
{
    memset(k, 0, sizeof *k);
    k->dev = dev;
    k->op = dev->op;
    k->stream = k->op->stream_create(dev);
    assert_non_null(k->stream);
    k->seed = seed;
}

static inline void *kit_own(struct kit *k, enum kit_kind kind, void *p)
{
    assert_non_null(p);
    assert_true(k->n_owned < KIT_OWNED);
    k->owned[k->n_owned].kind = kind;
    k->owned[k->n_owned++].p = p;
    return p;
}

static inline void kit_check(const struct kit *k)
{
    struct err e = {0};
    if (dev_error(k->stream, &e)) fail_msg("%s: %s", k->op->name, e.msg);
}

/* Frees what was made; the device itself stays. */
static inline void kit_close(struct kit *k)
{
    for (int i = k->n_owned - 1; i >= 0; i--) {
        void *p = k->owned[i].p;
        switch (k->owned[i].kind) {
        case KIT_BUF:
            k->op->buf_free(p);
            break;
        case KIT_MAT:
            k->op->mat_free(p);
            break;
        case KIT_ROPE:
            k->op->rope_free(p);
            break;
        case KIT_RING:
            k->op->ring_free(p);
            break;
        case KIT_STORE:
            k->op->store_free(p);
            break;
        case KIT_SCAN:
            k->op->scan_free(p);
            break;
        case KIT_EXPERTS:
            experts_close(p);
            break;
        case KIT_MEMORY:
            mem_free(p);
            break;
        }
    }
    k->op->stream_free(k->stream);
}

/* ---------------------------------------------------------------- values */

static inline uint64_t kit_bits(struct kit *k)
{
    uint64_t z = k->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Bell-shaped around 0, standard deviation about 1, every value a float. */
static inline float kit_value(struct kit *k)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += (double)(kit_bits(k) >> 40) * 0x1p-24;
    return (float)sum;
}

static inline void *kit_memory(struct kit *k, size_t bytes)
{
    return kit_own(k, KIT_MEMORY, mem_try_aligned(bytes + 64, 64));
}

static inline float *kit_values(struct kit *k, int64_t n, double deviation)
{
    float *x = kit_memory(k, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(kit_value(k) * deviation);
    return x;
}

/* ---------------------------------------------------------------- buffers */

static inline struct dev_buf *kit_buf(struct kit *k, struct buf_desc desc)
{
    return kit_own(k, KIT_BUF, k->op->buf_create(k->dev, &desc));
}

static inline struct dev_buf *kit_floats(struct kit *k, int rows, int groups, int width)
{
    return kit_buf(k, (struct buf_desc){.kind = BUF_FLOAT, .rows = rows, .groups = groups, .width = width});
}

/* A float buffer that holds rows of groups*width values. */
static inline struct dev_buf *kit_filled(struct kit *k, int rows, int groups, int width, const float *values)
{
    struct dev_buf *b = kit_floats(k, rows, groups, width);
    k->op->write_f32(k->stream, b, 0, rows, values);
    kit_check(k);
    return b;
}

static inline struct dev_buf *kit_ints(struct kit *k, int rows, int width, const int32_t *values)
{
    struct dev_buf *b = kit_buf(k, (struct buf_desc){.kind = BUF_I32, .rows = rows, .groups = 1, .width = width});
    if (values) k->op->write_i32(k->stream, b, 0, rows, values);
    kit_check(k);
    return b;
}

/* ---------------------------------------------------------------- weights */

/* Random blocks of the types without an encoder; their F16 scales are set to small values. */
static inline void kit_random_blocks(struct kit *k, enum qtype type, int64_t n_blocks, uint8_t *out)
{
    const struct quant_type *t = quant_type(type);
    for (int64_t b = 0; b < n_blocks; b++, out += t->block_bytes) {
        for (int i = 0; i < t->block_bytes; i++) out[i] = (uint8_t)kit_bits(k);
        const uint16_t d = f32_to_f16(0.001f + 0.001f * (float)(kit_bits(k) % 8));
        const uint16_t dmin = f32_to_f16(0.001f * (float)(kit_bits(k) % 8));
        if (type == QT_Q6_K) {
            memcpy(out + 208, &d, 2);
        } else { /* Q5_K */
            memcpy(out, &d, 2);
            memcpy(out + 2, &dmin, 2);
        }
    }
}

/* Encoded rows: the same weights come again for every device, number of threads and piece of a case, and to encode them
 * is most of what a case takes. The last tensors are remembered, by all their values. */
static inline void kit_encode(enum qtype type, const float *x, int64_t k0, int64_t rows, uint8_t *out)
{
    static struct {
        enum qtype type;
        int64_t k0, rows;
        float *x;
        uint8_t *data;
    } seen[16], *s;
    static unsigned next;
    const size_t n = (size_t)(k0 * rows), bytes = (size_t)rows * quant_row_bytes(type, k0);
    for (s = seen; s < seen + 16; s++)
        if (s->x && s->type == type && s->k0 == k0 && s->rows == rows && !memcmp(s->x, x, n * sizeof *x)) {
            memcpy(out, s->data, bytes);
            return;
        }
    float *const even = malloc((size_t)k0 * sizeof *even);
    s = &seen[next++ % 16];
    s->type = type, s->k0 = k0, s->rows = rows;
    s->x = realloc(s->x, n * sizeof *x);
    s->data = realloc(s->data, bytes);
    assert_true(even && s->x && s->data);
    for (int64_t i = 0; i < k0; i++) even[i] = 1;
    for (int64_t r = 0; r < rows; r++)
        assert_int_equal(quant_encode(type, x + r * k0, k0, even, out + (size_t)r * quant_row_bytes(type, k0)), 0);
    memcpy(s->x, x, n * sizeof *x);
    memcpy(s->data, out, bytes);
    free(even);
}

/* A view of n2 matrices of `rows` rows of k0 values: encoded from x, or random (x NULL). */
static inline struct tensor_view kit_tensor(struct kit *k, enum qtype type, int64_t k0, int64_t rows, int64_t n2,
                                            const float *x)
{
    const size_t row_bytes = quant_row_bytes(type, k0);
    assert_true(row_bytes > 0);
    uint8_t *data = kit_memory(k, (size_t)(rows * n2) * row_bytes);
    if (type == QT_Q5_K || type == QT_Q6_K) {
        kit_random_blocks(k, type, rows * n2 * (k0 / 256), data);
    } else if (type == QT_F32 && x) { /* as they are, infinities too */
        memcpy(data, x, (size_t)(rows * n2) * row_bytes);
    } else {
        if (!x) x = kit_values(k, k0 * rows * n2, 1);
        kit_encode(type, x, k0, rows * n2, data);
    }
    return (struct tensor_view){.type = type,
                                .ne = {k0, rows, n2, 1},
                                .stride = {0, row_bytes, row_bytes * (uint64_t)rows, 0},
                                .data = data,
                                .file = -1};
}

static inline struct dev_mat *kit_mat_of(struct kit *k, const struct tensor_view *v)
{
    return kit_own(k, KIT_MAT, k->op->mat_create(k->dev, v));
}

static inline struct dev_mat *kit_mat(struct kit *k, enum qtype type, int64_t k0, int64_t rows, const float *x)
{
    const struct tensor_view v = kit_tensor(k, type, k0, rows, 1, x);
    return kit_mat_of(k, &v);
}

static inline struct dev_mat *kit_vector(struct kit *k, int64_t n, const float *x)
{
    return kit_mat(k, QT_F32, n, 1, x);
}

/* I32 rows of n values. */
static inline struct dev_mat *kit_id_table(struct kit *k, int64_t n, int64_t rows, const int32_t *ids)
{
    int32_t *copy = kit_memory(k, (size_t)(n * rows) * sizeof *copy);
    memcpy(copy, ids, (size_t)(n * rows) * sizeof *copy);
    const struct tensor_view v = {.type = QT_I32,
                                  .ne = {n, rows, 1, 1},
                                  .stride = {0, (uint64_t)n * 4, (uint64_t)(n * rows) * 4, 0},
                                  .data = (const uint8_t *)copy,
                                  .file = -1};
    return kit_mat_of(k, &v);
}

static inline struct dev_rope *kit_rope(struct kit *k, const double *freq, int pairs)
{
    return kit_own(k, KIT_ROPE, k->op->rope_create(k->dev, &(struct rope_desc){.freq = freq, .pairs = pairs}));
}

/* Halves, an axis per pair, a magnitude; frequencies 1, 1/3, ... */
static inline struct dev_rope *kit_rope_halves(struct kit *k, int pairs)
{
    double freq[64] = {1};
    uint8_t axis[64] = {0};
    for (int i = 1; i < pairs; i++) freq[i] = freq[i - 1] / 3, axis[i] = (uint8_t)(i % 3);
    const struct rope_desc d = {.freq = freq, .pairs = pairs, .axis = axis, .halves = true, .magnitude = 1.25};
    return kit_own(k, KIT_ROPE, k->op->rope_create(k->dev, &d));
}

/* Frequencies 1, 1/3, 1/9, ... */
static inline struct dev_rope *kit_rope_of(struct kit *k, int pairs)
{
    double freq[64] = {1};
    for (int i = 1; i < pairs; i++) freq[i] = freq[i - 1] / 3;
    return kit_rope(k, freq, pairs);
}

/* ---------------------------------------------------------------- stored rows */

static inline struct row_format kit_format(enum row_format_kind kind, int width, int n_fp8)
{
    return (struct row_format){.kind = kind,
                               .width = width,
                               .n_fp8 = n_fp8,
                               .block = kind == ROWFMT_FP8   ? 64
                                        : kind == ROWFMT_FP4 ? 32
                                                             : 0};
}

static inline struct dev_ring *kit_ring(struct kit *k, struct row_format fmt, int span, int slack)
{
    const struct ring_desc desc = {.fmt = fmt, .span = span, .slack = slack};
    return kit_own(k, KIT_RING, k->op->ring_create(k->dev, &desc));
}

static inline struct dev_store *kit_store(struct kit *k, struct row_format fmt)
{
    return kit_own(k, KIT_STORE, k->op->store_create(k->dev, &fmt));
}

/* n rows of values in the device's stored form. */
static inline void *kit_encoded(struct kit *k, const struct row_format *fmt, int64_t n, const double *values)
{
    const size_t bytes = k->op->row_bytes(k->dev, fmt);
    uint8_t *rows = kit_memory(k, (size_t)n * bytes);
    for (int64_t i = 0; i < n; i++) k->op->row_encode(k->dev, fmt, values + i * fmt->width, rows + (size_t)i * bytes);
    return rows;
}

static inline void *kit_random_rows(struct kit *k, const struct row_format *fmt, int64_t n)
{
    double *values = kit_memory(k, (size_t)(n * fmt->width) * sizeof *values);
    for (int64_t i = 0; i < n * fmt->width; i++) values[i] = kit_value(k);
    return kit_encoded(k, fmt, n, values);
}

static inline void kit_decoded(const struct kit *k, const struct row_format *fmt, const void *rows, int64_t n,
                               double *values)
{
    const size_t bytes = k->op->row_bytes(k->dev, fmt);
    for (int64_t i = 0; i < n; i++)
        k->op->row_decode(k->dev, fmt, (const uint8_t *)rows + (size_t)i * bytes, values + i * fmt->width);
}

static inline double *kit_ring_values(struct kit *k, const struct dev_ring *r, const struct row_format *fmt,
                                      int32_t pos, int n)
{
    void *rows = kit_memory(k, (size_t)n * k->op->row_bytes(k->dev, fmt));
    double *values = kit_memory(k, (size_t)n * (size_t)fmt->width * sizeof *values);
    k->op->ring_get(r, pos, n, rows);
    kit_decoded(k, fmt, rows, n, values);
    return values;
}

static inline double *kit_store_values(struct kit *k, const struct dev_store *st, const struct row_format *fmt,
                                       int64_t row, int64_t n)
{
    void *rows = kit_memory(k, (size_t)n * k->op->row_bytes(k->dev, fmt));
    double *values = kit_memory(k, (size_t)n * (size_t)fmt->width * sizeof *values);
    k->op->store_get(st, row, n, rows);
    kit_decoded(k, fmt, rows, n, values);
    return values;
}

/* ---------------------------------------------------------------- row tables */

enum { KIT_ROWS = 64, KIT_SLOTS = 3 };

/* Rows of up to three sessions, session after session; session i continues at start[i]. */
struct history {
    int n;
    int count[KIT_SLOTS];
    int32_t start[KIT_SLOTS];
    int window; /* raw window */
    int ahead;  /* raw rows behind the own one that are visible (inside the session's rows) */
    int slack;  /* of the rings: longer segments are bulk */
    int ratio;  /* of windows whose first rope position rows know; 0: none */
};

/* One step of a history. */
struct step {
    struct rows rows;
    int32_t token[KIT_ROWS], segment[KIT_ROWS], pos[KIT_ROWS], rope_pos[3 * KIT_ROWS];
    int32_t first[KIT_ROWS], last[KIT_ROWS], window[3 * KIT_ROWS];
    struct segment seg[KIT_SLOTS];
};

static inline int32_t history_end(const struct history *h, int slot)
{
    return h->start[slot] + h->count[slot];
}

/* Row i of the step is row r of the history. */
static inline void step_row(struct step *st, const struct history *h, int slot, int32_t pos, int r)
{
    const int i = st->rows.n++;
    const int32_t last = pos + h->ahead < history_end(h, slot) ? pos + h->ahead : history_end(h, slot) - 1;
    if (!st->rows.n_segments || st->seg[st->rows.n_segments - 1].slot != slot)
        st->seg[st->rows.n_segments++] = (struct segment){.slot = slot, .row0 = i, .pos0 = pos};
    struct segment *g = &st->seg[st->rows.n_segments - 1];
    g->n++;
    g->bulk = g->n > h->slack;
    st->token[i] = (r * 7 + 3) % 11;
    st->segment[i] = st->rows.n_segments - 1;
    st->pos[i] = pos;
    for (int a = 0; a < 3; a++) st->rope_pos[3 * i + a] = pos + 2 * a;
    for (int a = 0; a < 3; a++) st->window[3 * i + a] = pos + 2 * a - (h->ratio ? h->ratio - 1 : 0);
    st->first[i] = pos >= h->window ? pos - h->window + 1 : 0;
    st->last[i] = last;
}

/* The step that holds rows [r0, r1) of the history. */
static inline void step_make(struct step *st, const struct history *h, int r0, int r1)
{
    memset(st, 0, sizeof *st);
    int r = 0;
    for (int slot = 0; slot < KIT_SLOTS; slot++)
        for (int i = 0; i < h->count[slot]; i++, r++)
            if (r >= r0 && r < r1) step_row(st, h, slot, h->start[slot] + i, r);
    st->rows.token = st->token;
    st->rows.segment = st->segment;
    st->rows.pos = st->pos;
    st->rows.rope_pos = st->rope_pos;
    st->rows.raw_first = st->first;
    st->rows.raw_last = st->last;
    st->rows.segments = st->seg;
    st->rows.window_rope = st->window;
}

#endif
