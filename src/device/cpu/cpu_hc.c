/* Hyper-connections: gates, reduction and expansion of the streams (spec deepseek-v4 3.2). */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

struct hc_job {
    const struct cpu_kernels *k;
    const void *a;
};

static bool hc_check(struct dev_stream *s, int streams)
{
    if (!cpu_ready(s)) return false;
    if (streams >= 1 && streams <= CPU_MAX_STREAMS) return true;
    dev_fail(s, ERR_MODEL, "%d hyper-connection streams; this device handles 1 to %d", streams, CPU_MAX_STREAMS);
    return false;
}

/* ---------------------------------------------------------------- gates */

static float strided_sum(const float *x, int n, int stride)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i * stride];
    return sum;
}

static void strided_divide(float *x, int n, int stride, float by)
{
    for (int i = 0; i < n; i++) x[i * stride] /= by;
}

static void softmax_row(const struct cpu_kernels *k, float *c, int m)
{
    float max = c[0];
    for (int i = 1; i < m; i++) max = c[i] > max ? c[i] : max;
    for (int i = 0; i < m; i++) c[i] -= max;
    k->exp(m, c, c);
    strided_divide(c, m, 1, strided_sum(c, m, 1));
}

static void sinkhorn(const struct cpu_kernels *k, float *c, int m, int iterations, float eps)
{
    for (int j = 0; j < m; j++) {
        softmax_row(k, c + j * m, m);
        for (int i = 0; i < m; i++) c[j * m + i] += eps;
    }
    for (int it = 0; it < iterations; it++) {
        for (int j = 0; it > 0 && j < m; j++) strided_divide(c + j * m, m, 1, strided_sum(c + j * m, m, 1) + eps);
        for (int i = 0; i < m; i++) strided_divide(c + i, m, m, strided_sum(c + i, m, m) + eps);
    }
}

static void gates_row(const struct cpu_kernels *k, const struct hc_gates_args *a, float *x)
{
    const int m = a->streams, n = a->head ? m : 2 * m + m * m;
    const float *base = a->base->f32, *scale = a->scale->f32, eps = (float)a->eps;
    for (int i = 0; i < n; i++) x[i] = x[i] * scale[i < m ? 0 : i < 2 * m ? 1 : 2] + base[i];
    k->sigmoid(a->head ? m : 2 * m, x, x);
    for (int i = 0; i < m; i++) x[i] += eps;
    if (a->head) return;
    for (int i = m; i < 2 * m; i++) x[i] *= 2;
    sinkhorn(k, x + 2 * m, m, a->iterations, eps);
}

static void gates_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct hc_job *j = arg;
    const struct hc_gates_args *a = j->a;
    for (int64_t i = from; i < to; i++) gates_row(j->k, a, buf_floats(a->mix, i));
}

void cpu_hc_gates(struct dev_stream *s, const struct hc_gates_args *a)
{
    if (!hc_check(s, a->streams) || !cpu_need_f32(s, a->base, "hyper-connection base") ||
        !cpu_need_f32(s, a->scale, "hyper-connection scale"))
        return;
    struct hc_job j = {.k = cpu_of(s)->k, .a = a};
    cpu_ranges(s, gates_rows, &j, a->n, (int64_t)a->streams * a->streams * (a->iterations * 8 + 64));
}

/* ---------------------------------------------------------------- streams */

static void mean_row(const struct cpu_kernels *k, int streams, const float *x, int width, float *out)
{
    float ones[CPU_MAX_STREAMS];
    for (int i = 0; i < streams; i++) ones[i] = 1;
    k->weighted_sum(streams, ones, x, width, out);
    k->scale(width, out, 1.0f / (float)streams, out);
}

static void reduce_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct hc_job *j = arg;
    const struct hc_reduce_args *a = j->a;
    const int width = (int)buf_row_values(&a->out->d);
    for (int64_t i = from; i < to; i++)
        if (a->gates)
            j->k->weighted_sum(a->streams, buf_floats(a->gates, i), buf_floats(a->x, i), width, buf_floats(a->out, i));
        else
            mean_row(j->k, a->streams, buf_floats(a->x, i), width, buf_floats(a->out, i));
}

void cpu_hc_reduce(struct dev_stream *s, const struct hc_reduce_args *a)
{
    if (!hc_check(s, a->streams)) return;
    struct hc_job j = {.k = cpu_of(s)->k, .a = a};
    cpu_ranges(s, reduce_rows, &j, a->n, buf_row_values(&a->x->d));
}

static void expand_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct hc_job *j = arg;
    const struct hc_expand_args *a = j->a;
    const int width = (int)buf_row_values(&a->y->d), m = a->streams;
    for (int64_t i = from; i < to; i++) {
        const float *gates = a->gates ? buf_floats(a->gates, i) : NULL;
        for (int k = 0; k < m && a->apart; k++)
            j->k->add_scaled(width, buf_floats(a->y, i), gates ? gates[k] : 1, buf_floats(a->x, i) + k * width);
        if (a->apart) continue;
        j->k->hc_expand(m, gates + m, gates + 2 * m, buf_floats(a->y, i), buf_floats(a->x, i), width);
    }
}

void cpu_hc_expand(struct dev_stream *s, const struct hc_expand_args *a)
{
    if (!hc_check(s, a->streams)) return;
    struct hc_job j = {.k = cpu_of(s)->k, .a = a};
    cpu_ranges(s, expand_rows, &j, a->n, 2 * buf_row_values(&a->x->d));
}
