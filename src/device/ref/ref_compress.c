/* The compressor, spec deepseek-v4 3.5: windows of `ratio` positions become one row each. */
#include "device/ref/ref_internal.h"
#include <math.h>
#include <string.h>

/* What one segment reads: this step's rows, and the rings for earlier positions. */
struct window_source {
    const struct compress_args *a;
    const struct segment *seg;
    int index;           /* of the segment */
    const double *score; /* [segment.n][c*w] gate + ape */
};

/* Values of a projected row: two halves with overlap. */
static int projected_width(const struct compress_args *a)
{
    return a->overlap ? 2 * a->w : a->w;
}

static const double *kv_at(const struct window_source *src, int32_t pos)
{
    if (pos < src->seg->pos0) return ref_ring_row(src->a->ring_kv[src->index], pos);
    return ref_row(src->a->kv, src->seg->row0 + pos - src->seg->pos0);
}

static const double *score_at(const struct window_source *src, int32_t pos)
{
    if (pos < src->seg->pos0) return ref_ring_row(src->a->ring_score[src->index], pos);
    return src->score + (size_t)(pos - src->seg->pos0) * (size_t)projected_width(src->a);
}

/* A value that takes part in a channel's softmax. */
struct candidate {
    double score, kv;
};

/* Candidates of channel j for the window that starts at `start`: for every phase first the previous window's position
 * (its first half of the row), then the current one's (with overlap the second half). Returns their number. */
static int channel_candidates(const struct window_source *src, int32_t start, int j, struct candidate *out)
{
    const struct compress_args *a = src->a;
    int n = 0;
    for (int r = 0; r < a->ratio; r++) {
        const int32_t prev = start - a->ratio + r, cur = start + r;
        if (a->overlap && prev >= 0)
            out[n++] = (struct candidate){.score = score_at(src, prev)[j], .kv = kv_at(src, prev)[j]};
        const int at = a->overlap ? a->w + j : j;
        out[n++] = (struct candidate){.score = score_at(src, cur)[at], .kv = kv_at(src, cur)[at]};
    }
    return n;
}

static double weighted_mean(const struct candidate *c, int n)
{
    double max = -INFINITY, sum = 0, weighted = 0;
    for (int i = 0; i < n; i++) max = c[i].score > max ? c[i].score : max;
    for (int i = 0; i < n; i++) {
        const double e = exp(c[i].score - max);
        sum += e;
        weighted += e * c[i].kv;
    }
    return weighted / sum;
}

static void emit_row(const struct window_source *src, int64_t index, const double *norm, struct candidate *cand,
                     double *row)
{
    const struct compress_args *a = src->a;
    const int32_t start = (int32_t)(index * a->ratio);
    for (int j = 0; j < a->w; j++) row[j] = weighted_mean(cand, channel_candidates(src, start, j, cand));
    ref_norm_group(row, norm, a->eps, a->w, row);
    ref_rotate(row + a->w - 2 * a->rope->pairs, a->rope, (int32_t[3]){start, start, start}, false);
    if (a->hadamard) ref_hadamard_group(row, a->w);
    ref_round_row(&a->store[src->index]->fmt, row);
}

/* gate + ape of every row of the segment. */
static void bias_scores(const struct compress_args *a, const struct segment *g, const double *ape, double *score)
{
    const int64_t width = projected_width(a);
    for (int i = 0; i < g->n; i++) {
        const double *gate = ref_row(a->gate, g->row0 + i), *bias = ape + (g->pos0 + i) % a->ratio * width;
        for (int64_t j = 0; j < width; j++) score[i * width + j] = gate[j] + bias[j];
    }
}

static void compress_segment(struct dev_stream *s, const struct compress_args *a, int index, const double *ape,
                             const double *norm)
{
    const struct segment *g = &s->rows->segments[index];
    const size_t width = (size_t)projected_width(a);
    double *score = ref_take(s, (size_t)g->n * width);
    double *row = ref_take(s, (size_t)a->w);
    struct candidate *cand = (struct candidate *)(void *)ref_take(s, 2 * 2 * (size_t)a->ratio);
    if (!score || !row || !cand) return;
    bias_scores(a, g, ape, score);
    const struct window_source src = {.a = a, .seg = g, .index = index, .score = score};
    int64_t first, end;
    compressed_emitted(g, a->ratio, &first, &end);
    for (int64_t c = first; c < end; c++) {
        double *out = ref_store_row(a->store[index], c);
        if (!out) {
            dev_fail(s, ERR_ARG, "ref: compressed row %lld was not reserved", (long long)c);
            return;
        }
        emit_row(&src, c, norm, cand, row);
        memcpy(out, row, (size_t)a->w * sizeof *out);
    }
    ref_ring_write_segment(s, a->ring_kv[index], g, ref_row(a->kv, g->row0), a->kv->row_bytes / sizeof(double));
    ref_ring_write_segment(s, a->ring_score[index], g, score, width);
}

void ref_compress(struct dev_stream *s, const struct compress_args *a)
{
    for (int i = 0; i < s->rows->n_segments; i++) {
        if (!ref_begin(s)) return;
        const double *ape = ref_vector(s, a->ape, a->ratio), *norm = ref_vector(s, a->norm, 1);
        if (ape && norm) compress_segment(s, a, i, ape, norm);
    }
}
