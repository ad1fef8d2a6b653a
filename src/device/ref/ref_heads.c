/* Attention over keys and values of their own, and the keys of blocks (spec qwen38 3.6). */
#include "device/ref/ref_internal.h"
#include <math.h>
#include <string.h>

/* Row of a store, or NULL after setting the error. */
static double *row_of(struct dev_stream *s, const struct dev_store *st, int64_t row)
{
    double *p = ref_store_row(st, row);
    if (!p) dev_fail(s, ERR_ARG, "ref: row %lld of a store was not reserved", (long long)row);
    return p;
}

void ref_store_write(struct dev_stream *s, const struct store_write_args *a)
{
    if (!ref_begin(s)) return;
    const size_t nx = (size_t)buf_row_values(&a->x->desc), ny = a->y ? (size_t)buf_row_values(&a->y->desc) : 0;
    for (int i = 0; i < s->rows->n; i++) {
        const struct dev_store *st = a->store[s->rows->segment[i]];
        double *to = row_of(s, st, s->rows->pos[i]);
        if (!to) return;
        memcpy(to, ref_row(a->x, i), nx * sizeof *to);
        if (ny) memcpy(to + nx, ref_row(a->y, i), ny * sizeof *to);
        ref_round_row(&st->fmt, to);
    }
}

/* ---------------------------------------------------------------- keys of blocks */

static const double *pooled_row(const struct pool_args *a, const struct segment *g, int index, int32_t pos)
{
    return pos < g->pos0 ? ref_ring_row(a->ring[index], pos) : ref_row(a->x, g->row0 + pos - g->pos0);
}

static void pool_segment(struct dev_stream *s, const struct pool_args *a, int index, const double *norm)
{
    const struct segment *g = &s->rows->segments[index];
    const int w = (int)buf_row_values(&a->x->desc);
    int64_t first, end;
    compressed_emitted(g, a->ratio, &first, &end);
    for (int64_t c = first; c < end; c++) {
        double *out = row_of(s, a->store[index], c);
        if (!out) return;
        const int32_t start = (int32_t)(c * a->ratio);
        for (int j = 0; j < w; j++) {
            double sum = 0;
            for (int r = 0; r < a->ratio; r++) sum += pooled_row(a, g, index, start + r)[j];
            out[j] = sum / a->ratio;
        }
        ref_norm_group(out, norm, a->eps, w, out);
        const int row = g->row0 + start + a->ratio - 1 - g->pos0;
        ref_rotate(out, a->rope, s->rows->window_rope + 3 * (size_t)row, false);
        ref_round_row(&a->store[index]->fmt, out);
    }
    ref_ring_write_segment(s, a->ring[index], g, ref_row(a->x, g->row0), a->x->row_bytes / sizeof(double));
}

void ref_pool(struct dev_stream *s, const struct pool_args *a)
{
    for (int i = 0; i < s->rows->n_segments; i++) {
        if (!ref_begin(s)) return;
        const double *norm = ref_vector(s, a->norm, 1);
        if (norm) pool_segment(s, a, i, norm);
    }
}

/* ---------------------------------------------------------------- attention */

/* Rows that query i sees, ascending; NULL after setting the error. */
static const double **seen_rows(struct dev_stream *s, const struct attention_heads_args *a, int i, int64_t *n)
{
    const struct dev_store *st = a->store[s->rows->segment[i]];
    const int64_t all = (int64_t)s->rows->pos[i] + 1;
    const int32_t *selected = a->selected ? ref_row_i32(a->selected, i) : NULL;
    const double **list = (const double **)(void *)ref_take(s, (size_t)all);
    if (!list) return NULL;
    *n = 0;
    for (int b = 0; selected && selected[0] >= 0 && b < selected[0]; b++)
        for (int r = 0; r < a->block; r++) list[(*n)++] = ref_store_row(st, (int64_t)selected[1 + b] * a->block + r);
    for (int64_t p = selected && selected[0] >= 0 ? all / a->block * a->block : 0; p < all; p++)
        list[(*n)++] = ref_store_row(st, p);
    for (int64_t j = 0; j < *n; j++)
        if (!list[j]) {
            dev_fail(s, ERR_ARG, "ref: a visible row of position %d was never written", (int)s->rows->pos[i]);
            return NULL;
        }
    return list;
}

/* One head: key and value begin at key and value of a row. z: scratch [n]. */
static void attend(const double *q, const double **rows, int64_t n, int width, int key, int value, double scale,
                   double *z, double *out)
{
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        z[j] = ref_dot(q, rows[j] + key, width) * scale;
        max = z[j] > max ? z[j] : max;
    }
    for (int d = 0; d < width; d++) out[d] = 0;
    for (int64_t j = 0; j < n; j++) {
        const double e = exp(z[j] - max);
        sum += e;
        for (int d = 0; d < width; d++) out[d] += e * rows[j][value + d];
    }
    for (int d = 0; d < width; d++) out[d] /= sum;
}

void ref_attention_heads(struct dev_stream *s, const struct attention_heads_args *a)
{
    const int heads = a->q->desc.groups, width = a->q->desc.width, each = heads / a->kv_heads;
    for (int i = 0; i < a->n; i++) {
        if (!ref_begin(s)) return;
        int64_t n = 0;
        const double **rows = seen_rows(s, a, i, &n);
        double *z = ref_take(s, (size_t)n);
        if (!rows || !z) return;
        for (int h = 0; h < heads; h++) {
            const size_t at = (size_t)h * width;
            const int key = h / each * width, value = key + a->kv_heads * width;
            attend(ref_row(a->q, i) + at, rows, n, width, key, value, a->scale, z, ref_row(a->out, i) + at);
        }
    }
}
