/* Selection of compressed rows and the mixed attention: spec deepseek-v4 3.6, 3.7. */
#include "device/ref/ref_internal.h"
#include <math.h>

/* ---------------------------------------------------------------- select */

/* Scores of rows 0 .. n-1 of the store for row i; what is not a number is the least, so that scores have an order. */
static bool index_scores(struct dev_stream *s, const struct select_args *a, int i, int64_t n, double *score)
{
    const struct dev_store *st = a->store[s->rows->segment[i]];
    const struct buf_desc *q = &a->q->desc;
    for (int64_t c = 0; c < n; c++) {
        const double *row = ref_store_row(st, c);
        if (!row) {
            dev_fail(s, ERR_ARG, "ref: index row %lld was never written", (long long)c);
            return false;
        }
        score[c] = 0;
        for (int h = 0; h < q->groups; h++) {
            const double dot = ref_dot(ref_row(a->q, i) + (size_t)h * q->width, row, q->width);
            score[c] += (a->weight ? ref_row(a->weight, i)[h] : 1) * a->scale * (dot > 0 ? dot : 0);
        }
        if (isnan(score[c])) score[c] = -INFINITY;
    }
    return true;
}

/* True if row c is among the k best: fewer than k rows are better, the lower row winning ties. */
static bool among_best(const double *score, int64_t n, int64_t c, int k)
{
    int64_t better = 0;
    for (int64_t o = 0; o < n; o++) better += score[o] > score[c] || (score[o] == score[c] && o < c);
    return better < k;
}

void ref_select(struct dev_stream *s, const struct select_args *a)
{
    for (int i = 0; i < a->n; i++) {
        if (!ref_begin(s)) return;
        const int64_t n = compressed_visible(s->rows->pos[i], a->ratio);
        int32_t *out = ref_row_i32(a->out, i);
        out[0] = -1;
        if (n <= a->top_k) continue;
        double *score = ref_take(s, (size_t)n);
        if (!score || !index_scores(s, a, i, n, score)) return;
        out[0] = 0;
        for (int64_t c = 0; c < n; c++)
            if (among_best(score, n, c, a->top_k)) out[1 + out[0]++] = (int32_t)c;
    }
}

/* ---------------------------------------------------------------- attention */

static const double *raw_row(const struct dev_stream *s, const struct attention_args *a, int i, int32_t pos)
{
    const struct segment *g = ref_segment_of(s, i);
    if (pos < g->pos0) return ref_ring_row(a->ring[s->rows->segment[i]], pos);
    return ref_row(a->raw, g->row0 + pos - g->pos0);
}

/* Appends the compressed rows that row i sees; returns the new count, or -1 after setting the error. */
static int64_t append_compressed(struct dev_stream *s, const struct attention_args *a, int i, const double **list,
                                 int64_t n)
{
    const struct dev_store *st = a->store ? a->store[s->rows->segment[i]] : NULL;
    if (!st) return n;
    const int32_t *selected = a->selected ? ref_row_i32(a->selected, i) : NULL;
    const bool all = !selected || selected[0] < 0;
    const int64_t count = all ? compressed_visible(s->rows->pos[i], a->ratio) : selected[0];
    for (int64_t j = 0; j < count; j++) {
        const int64_t c = all ? j : selected[1 + j];
        const double *row = ref_store_row(st, c);
        if (!row) {
            dev_fail(s, ERR_ARG, "ref: compressed row %lld was never written", (long long)c);
            return -1;
        }
        list[n++] = row;
    }
    return n;
}

/* Everything that row i sees, in order; NULL after setting the error. */
static const double **visible_rows(struct dev_stream *s, const struct attention_args *a, int i, int64_t *n)
{
    const int32_t first = s->rows->raw_first[i], last = s->rows->raw_last[i];
    const int64_t n_raw = last >= first ? (int64_t)last - first + 1 : 0;
    const int64_t n_compressed = a->store ? compressed_visible(s->rows->pos[i], a->ratio) : 0;
    const double **list = (const double **)(void *)ref_take(s, (size_t)(n_raw + n_compressed));
    if (!list) return NULL;
    for (int64_t j = 0; j < n_raw; j++) list[j] = raw_row(s, a, i, (int32_t)(first + j));
    *n = append_compressed(s, a, i, list, n_raw);
    return *n < 0 ? NULL : list;
}

/* One head: softmax over the rows and the sink, which has no value. z: scratch [n]. */
static void attend(const double *q, const double **rows, int64_t n, int width, double sink, double scale, double *z,
                   double *out)
{
    double max = sink;
    for (int64_t j = 0; j < n; j++) {
        z[j] = ref_dot(q, rows[j], width) * scale;
        max = z[j] > max ? z[j] : max;
    }
    double denominator = exp(sink - max);
    for (int d = 0; d < width; d++) out[d] = 0;
    for (int64_t j = 0; j < n; j++) {
        const double e = exp(z[j] - max);
        denominator += e;
        for (int d = 0; d < width; d++) out[d] += e * rows[j][d];
    }
    for (int d = 0; d < width; d++) out[d] /= denominator;
}

void ref_attention(struct dev_stream *s, const struct attention_args *a)
{
    const int heads = a->q->desc.groups, width = a->q->desc.width;
    struct dev_buf *const to = a->out ? a->out : a->q;
    for (int i = 0; i < a->n; i++) {
        if (!ref_begin(s)) return;
        int64_t n = 0;
        const double *sinks = ref_vector(s, a->sinks, 1);
        const double **rows = visible_rows(s, a, i, &n);
        double *z = ref_take(s, (size_t)n);
        if (!sinks || !rows || !z) return;
        const int32_t *pos = s->rows->rope_pos + 3 * (size_t)i;
        const int first = a->rope ? width - 2 * a->rope->pairs : 0;
        for (int h = 0; h < heads; h++) {
            double *q = ref_row(a->q, i) + (size_t)h * width, *out = ref_row(to, i) + (size_t)h * width;
            if (a->rope) ref_norm_group(q, NULL, a->eps, width, q);
            if (a->rope) ref_rotate(q + first, a->rope, pos, false);
            attend(q, rows, n, width, sinks[h], a->scale, z, out);
            if (a->rope) ref_rotate(out + first, a->rope, pos, true);
        }
    }
    if (a->act) ref_act_quant(s, &(struct act_quant_args){.x = to, .out = a->act, .n = a->n});
}
