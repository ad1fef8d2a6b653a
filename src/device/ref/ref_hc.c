/* Hyper-connections: spec deepseek-v4 3.2 (around a sublayer) and 3.11 (head). */
#include "device/ref/ref_internal.h"
#include <math.h>
#include <string.h>

static void softmax_row(double *row, int m, double eps)
{
    double max = row[0], sum = 0;
    for (int k = 1; k < m; k++) max = row[k] > max ? row[k] : max;
    for (int k = 0; k < m; k++) sum += row[k] = exp(row[k] - max);
    for (int k = 0; k < m; k++) row[k] = row[k] / sum + eps;
}

/* Divides m values `step` apart by their sum + eps. */
static void normalise(double *x, int m, int step, double eps)
{
    double sum = 0;
    for (int k = 0; k < m; k++) sum += x[k * step];
    for (int k = 0; k < m; k++) x[k * step] /= sum + eps;
}

/* comb [m][m], rows = old streams: softmax of the rows, then columns, then (iterations - 1) times rows and columns. */
static void sinkhorn(double *comb, int m, int iterations, double eps)
{
    for (int j = 0; j < m; j++) softmax_row(comb + j * m, m, eps);
    for (int k = 0; k < m; k++) normalise(comb + k, m, m, eps);
    for (int it = 1; it < iterations; it++) {
        for (int j = 0; j < m; j++) normalise(comb + j * m, m, 1, eps);
        for (int k = 0; k < m; k++) normalise(comb + k, m, m, eps);
    }
}

void ref_hc_gates(struct dev_stream *s, const struct hc_gates_args *a)
{
    if (!ref_begin(s)) return;
    const double *base = ref_vector(s, a->base, 1), *scale = ref_vector(s, a->scale, 1);
    if (!base || !scale) return;
    const int m = a->streams;
    for (int i = 0; i < a->n; i++) {
        double *x = ref_row(a->mix, i);
        for (int j = 0; j < m; j++) x[j] = ref_sigmoid(x[j] * scale[0] + base[j]) + a->eps;
        if (a->head) continue;
        for (int j = m; j < 2 * m; j++) x[j] = 2 * ref_sigmoid(x[j] * scale[1] + base[j]);
        for (int j = 2 * m; j < 2 * m + m * m; j++) x[j] = x[j] * scale[2] + base[j];
        sinkhorn(x + 2 * m, m, a->iterations, a->eps);
    }
}

void ref_hc_reduce(struct dev_stream *s, const struct hc_reduce_args *a)
{
    if (!ref_begin(s)) return;
    const int64_t width = buf_row_values(&a->out->desc);
    for (int i = 0; i < a->n; i++) {
        const double *x = ref_row(a->x, i), *pre = a->gates ? ref_row(a->gates, i) : NULL;
        for (int64_t d = 0; d < width; d++) {
            double sum = 0;
            for (int j = 0; j < a->streams; j++) sum += (pre ? pre[j] : 1) * x[j * width + d];
            ref_row(a->out, i)[d] = pre ? sum : sum / a->streams;
        }
    }
}

void ref_hc_expand(struct dev_stream *s, const struct hc_expand_args *a)
{
    if (!ref_begin(s)) return;
    const int m = a->streams;
    const int64_t width = buf_row_values(&a->y->desc);
    if (a->apart) {
        for (int i = 0; i < a->n; i++)
            for (int64_t d = 0; d < m * width; d++)
                ref_row(a->x, i)[d] += (a->gates ? ref_row(a->gates, i)[d / width] : 1) * ref_row(a->y, i)[d % width];
        return;
    }
    double *old = ref_take(s, (size_t)(m * width));
    if (!old) return;
    for (int i = 0; i < a->n; i++) {
        double *x = ref_row(a->x, i);
        const double *y = ref_row(a->y, i), *post = ref_row(a->gates, i) + m, *comb = post + m;
        memcpy(old, x, (size_t)(m * width) * sizeof *old);
        for (int k = 0; k < m; k++)
            for (int64_t d = 0; d < width; d++) {
                double sum = post[k] * y[d];
                for (int j = 0; j < m; j++) sum += comb[j * m + k] * old[j * width + d];
                x[k * width + d] = sum;
            }
    }
}

enum { MIX_ROWS = 64 }; /* whose normed values are kept while weights pass by */

/* mix = fn . normed x, of rows [first, end). */
static bool mix_products(struct dev_stream *s, const struct hc_mix_args *a, int first, int end, double *weight,
                         double *x)
{
    const struct tensor_view *w = &a->fn->view;
    const int64_t n = w->ne[0], rows = view_rows(w);
    for (int i = first; i < end; i++) ref_norm_group(ref_row(a->x, i), NULL, a->eps, (int)n, x + (i - first) * n);
    for (int64_t r = 0; r < rows; r++) {
        if (!ref_decode_row(s, w, r, weight)) return false;
        for (int i = first; i < end; i++) ref_row(a->mix, i)[r] = ref_dot(weight, x + (i - first) * n, n);
    }
    return true;
}

static bool mix_all(struct dev_stream *s, const struct hc_mix_args *a)
{
    const int64_t n = a->fn->view.ne[0];
    if (!ref_begin(s)) return false;
    double *const weight = ref_take(s, (size_t)n), *const x = ref_take(s, (size_t)(n * MIX_ROWS));
    if (!weight || !x) return false;
    for (int i = 0; i < a->n; i += MIX_ROWS)
        if (!mix_products(s, a, i, a->n - i < MIX_ROWS ? a->n : i + MIX_ROWS, weight, x)) return false;
    return true;
}

void ref_hc_mix(struct dev_stream *s, const struct hc_mix_args *a)
{
    if (a->y)
        ref_hc_expand(
            s, &(struct hc_expand_args){.y = a->y, .gates = a->mix, .x = a->x, .streams = a->streams, .n = a->n});
    if (!mix_all(s, a)) return;
    ref_hc_gates(s, &(struct hc_gates_args){.mix = a->mix,
                                            .base = a->base,
                                            .scale = a->scale,
                                            .streams = a->streams,
                                            .iterations = a->iterations,
                                            .eps = a->hc_eps,
                                            .head = a->head,
                                            .n = a->n});
    ref_hc_reduce(
        s, &(struct hc_reduce_args){.x = a->x, .gates = a->mix, .out = a->out, .streams = a->streams, .n = a->n});
    ref_rms_norm(s, &(struct rms_norm_args){.x = a->out,
                                            .out = a->out,
                                            .weight = a->weight,
                                            .eps = a->eps,
                                            .groups = 1,
                                            .width = (int)buf_row_values(&a->out->desc),
                                            .n = a->n});
}
