/* Layout facts that every host device shares: where a position lies in a ring, which rows a step writes, how many
 * compressed rows a position sees, where a weight row begins; and rotation tables. No arithmetic on values. */
#ifndef DEVICE_INTERNAL_H
#define DEVICE_INTERNAL_H
#include "device/device.h"

/* ---------------------------------------------------------------- buffers and weights */

/* Values in one row of a buffer. */
static inline int64_t buf_row_values(const struct buf_desc *d)
{
    return (int64_t)d->groups * d->width;
}

/* Rows of a weight; a 3-D view counts as its matrices one after the other. */
static inline int64_t view_rows(const struct tensor_view *v)
{
    return v->ne[1] * v->ne[2];
}

static inline const uint8_t *view_row(const struct tensor_view *v, int64_t r)
{
    return v->data + (uint64_t)(r % v->ne[1]) * v->stride[1] + (uint64_t)(r / v->ne[1]) * v->stride[2];
}

/* Groups into which a matmul cuts a buffer row: one per weight row length, so a row of n streams can be read as one. */
static inline int64_t matmul_groups(const struct tensor_view *w, const struct buf_desc *x)
{
    return buf_row_values(x) / w->ne[0];
}

/* ---------------------------------------------------------------- rotation */

struct dev_rope {
    int pairs;
    bool halves;
    double magnitude;
    double *freq;  /* [pairs] */
    uint8_t *axis; /* [pairs] */
};

/* rope_create and rope_free of struct dev_ops. */
struct dev_rope *host_rope_create(struct dev *d, const struct rope_desc *desc);
void host_rope_free(struct dev_rope *r);

/* ---------------------------------------------------------------- rings */

static inline bool row_format_same(const struct row_format *a, const struct row_format *b)
{
    return a->kind == b->kind && a->width == b->width && a->n_fp8 == b->n_fp8 && a->block == b->block;
}

static inline bool ring_same(const struct ring_desc *a, const struct ring_desc *b)
{
    return row_format_same(&a->fmt, &b->fmt) && a->span == b->span && a->slack == b->slack;
}

static inline int ring_capacity(const struct ring_desc *d)
{
    return d->span + d->slack;
}

static inline int ring_slot(const struct ring_desc *d, int32_t pos)
{
    return (int)(pos % (d->span + d->slack));
}

/* What writing a segment into a ring means. Row first + i of positions [first, end) comes from row
 * segment.row0 + (first + i - segment.pos0) of the step; positions [carry, first) are copied from the current bank. */
struct ring_plan {
    bool other;    /* into the other bank (bulk) instead of the current one */
    int32_t carry; /* carry == first: nothing to copy */
    int32_t first, end;
};

static inline struct ring_plan ring_plan_segment(const struct ring_desc *d, const struct segment *g)
{
    const int32_t end = g->pos0 + g->n;
    const int32_t keep = end > d->span ? end - d->span : 0; /* first position that the committed session needs */
    struct ring_plan p = {.other = g->bulk, .carry = g->pos0, .first = g->pos0, .end = end};
    if (!g->bulk) return p;
    p.first = keep > g->pos0 ? keep : g->pos0;
    p.carry = keep < g->pos0 ? keep : p.first;
    return p;
}

/* A segment that writes in place must fit in the slack, or it would overwrite rows that are still needed. */
static inline bool ring_fits(const struct ring_desc *d, const struct segment *g)
{
    return g->bulk || g->n <= d->slack;
}

/* ---------------------------------------------------------------- compressed rows */

/* Rows that the token at pos sees: row c is there from position ratio*(c+1)-1 on. Also: rows of a session of pos+1
 * tokens. */
static inline int64_t compressed_visible(int32_t pos, int ratio)
{
    return ((int64_t)pos + 1) / ratio;
}

/* Rows [*first, *end) that a segment emits; row c is emitted by position ratio*(c+1)-1. */
static inline void compressed_emitted(const struct segment *g, int ratio, int64_t *first, int64_t *end)
{
    *first = (int64_t)g->pos0 / ratio;
    *end = ((int64_t)g->pos0 + g->n) / ratio;
}

/* Segments of a store that hold rows [0, n). */
static inline int64_t store_segments(int64_t n)
{
    return (n + STORE_SEGMENT - 1) / STORE_SEGMENT;
}

#endif
