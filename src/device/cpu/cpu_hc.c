/* Hyper-connections: gates, reduction and expansion of the streams (spec deepseek-v4 3.2), and all of them at once.
 *
 * Streams are the widest rows there are, 64 KiB of each token in DeepSeek V4 Flash, and more than all caches hold. With
 * many rows a task therefore does everything for a few of them: it expands a row and sums its squares, multiplies the
 * rows chunk by chunk, each chunk normed to a place of its own where rows are not a power of two apart, and reduces
 * what a third-level cache still has.
 *
 * Floor: products of 24 rows of 16,384 weights 3.3 microseconds a row at two multiply-adds of sixteen a cycle, reading
 * and writing the streams about as much. 2,048 rows of four streams of 4,096 values, two cores of an AMD EPYC (Zen 5,
 * virtual), thread time a row in turn with the single operations by 64 rows, medians of 15: 12.3 microseconds (20.4);
 * of which products take 4.3, expansion 3.5. With 12, 24 and 32 rows a task 14.1, 12.9 and 12.5. */
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

/* ---------------------------------------------------------------- all at once */

enum {
    MIX_MANY = 32,   /* rows from which on a task does everything for some of them: */
    MIX_ROWS = 48,   /* at most so many, */
    MIX_LEAST = 12,  /* and at least, */
    MIX_CHUNK = 1024 /* so many values at a time, a chunk of lanes16 */
};

struct mix_job {
    struct dev_stream *s;
    const struct cpu_kernels *k;
    const struct hc_mix_args *a;
    struct hc_gates_args gates;
    quant_tile_fn *tile;
    int width, values, n_mix, step;
    struct dev_buf flat; /* few rows: normed streams */
};

/* Row i of the streams, expanded; *factor: of its norm. */
static const float *mix_begin(const struct mix_job *j, int64_t i, float *factor)
{
    const struct hc_mix_args *a = j->a;
    float *const x = buf_floats(a->x, i);
    const float *const gates = buf_floats(a->mix, i);
    const int m = a->streams;
    if (a->y) j->k->hc_expand(m, gates + m, gates + 2 * m, buf_floats(a->y, i), x, j->width);
    *factor = cpu_rms_factor(j->k->dot(j->values, x, x), j->values, (float)a->eps);
    return x;
}

/* What follows the products of row i. */
static void mix_end(const struct mix_job *j, int64_t i)
{
    const struct hc_mix_args *a = j->a;
    float *const mix = buf_floats(a->mix, i), *const out = buf_floats(a->out, i);
    gates_row(j->k, &j->gates, mix);
    j->k->weighted_sum(a->streams, mix, buf_floats(a->x, i), j->width, out);
    j->k->rms_norm(j->width, (float)a->eps, out, a->weight->f32, out);
}

/* Rows of a task. */
struct mix_rows {
    int n;
    const float *x[MIX_ROWS];
    float factor[MIX_ROWS];
};

/* Floats from a row of a chunk to the next: an odd number of cache lines. */
enum { MIX_STRIDE = MIX_CHUNK + 16 };

static size_t mix_thread_bytes(int n_mix)
{
    return MIX_ROWS * (MIX_STRIDE + (size_t)n_mix) * sizeof(float);
}

/* Products of the rows' values from `at` on, one chunk; they are added to those of the chunks before. */
static void mix_chunk(const struct mix_job *j, const struct mix_rows *r, int at, int64_t row0, float *scratch)
{
    const struct tensor_view *const w = &j->a->fn->v;
    const int n = (int)min_i64(MIX_CHUNK, j->values - at);
    float *const part = scratch + MIX_ROWS * MIX_STRIDE;
    for (int i = 0; i < r->n; i++) { /* rows lie far apart: the next one is asked for */
        const float *const next = i + 1 < r->n ? r->x[i + 1] + at : r->x[0] + at + n;
        for (int v = 0; v < n; v += 16) __builtin_prefetch(next + v);
        j->k->scale(n, r->x[i] + at, r->factor[i], scratch + i * MIX_STRIDE);
    }
    j->tile(n, view_row(w, 0) + quant_row_bytes(w->type, at), w->stride[1], j->n_mix, scratch,
            MIX_STRIDE * sizeof(float), r->n, part, (size_t)j->n_mix);
    for (int i = 0; i < r->n; i++) {
        float *const mix = buf_floats(j->a->mix, row0 + i);
        if (at)
            j->k->add(j->n_mix, part + i * j->n_mix, mix);
        else
            memcpy(mix, part + i * j->n_mix, (size_t)j->n_mix * sizeof *mix);
    }
}

static void mix_task(void *arg, int task, int thread)
{
    const struct mix_job *j = arg;
    const int64_t row0 = (int64_t)task * j->step;
    struct mix_rows r = {.n = (int)min_i64(j->step, j->a->n - row0)};
    for (int i = 0; i < r.n; i++) r.x[i] = mix_begin(j, row0 + i, &r.factor[i]);
    for (int at = 0; at < j->values; at += MIX_CHUNK) mix_chunk(j, &r, at, row0, cpu_scratch_of(j->s, thread));
    for (int i = 0; i < r.n; i++) mix_end(j, row0 + i);
}

static void mix_begin_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct mix_job *j = arg;
    for (int64_t i = from; i < to; i++) {
        float factor;
        const float *const x = mix_begin(j, i, &factor);
        j->k->scale(j->values, x, factor, buf_floats(&j->flat, i));
    }
}

static void mix_end_rows(void *arg, int64_t from, int64_t to, int thread)
{
    for (int64_t i = from; i < to; i++) mix_end(arg, i);
}

/* Few rows: their products are cut among the threads by weights. */
static void mix_few(struct mix_job *j)
{
    const struct hc_mix_args *a = j->a;
    j->flat = (struct dev_buf){.d = {.rows = a->n, .groups = 1, .width = j->values},
                               .stride = round_up((size_t)j->values * sizeof(float), 64)};
    j->flat.data = cpu_shared_scratch(j->s, (size_t)a->n * j->flat.stride);
    if (!j->flat.data) return;
    cpu_ranges(j->s, mix_begin_rows, j, a->n, 4 * (int64_t)j->values);
    cpu_matmul(j->s, &(struct matmul_args){.w = a->fn, .x = &j->flat, .out = a->mix, .n = a->n});
    cpu_ranges(j->s, mix_end_rows, j, a->n, 2 * (int64_t)j->values);
}

static bool mix_check(struct dev_stream *s, const struct hc_mix_args *a)
{
    const struct tensor_view *w = &a->fn->v;
    if (!hc_check(s, a->streams) || !cpu_need_f32(s, a->base, "hyper-connection base") ||
        !cpu_need_f32(s, a->scale, "hyper-connection scale") || !cpu_need_f32(s, a->weight, "norm"))
        return false;
    if (quant_type(w->type)->act == ACT_F32 && w->ne[0] == buf_row_values(&a->x->d) &&
        view_rows(w) <= buf_row_values(&a->mix->d))
        return true;
    dev_fail(s, ERR_MODEL, "hyper-connections: a matrix of type %u with %lld rows of %lld values does not fit", w->type,
             (long long)view_rows(w), (long long)w->ne[0]);
    return false;
}

void cpu_hc_mix(struct dev_stream *s, const struct hc_mix_args *a)
{
    if (a->n <= 0 || !mix_check(s, a)) return;
    struct mix_job j = {.s = s, .k = cpu_of(s)->k, .a = a, .tile = quant_tile(cpu_of(s)->isa, a->fn->v.type)};
    j.gates = (struct hc_gates_args){.base = a->base,
                                     .scale = a->scale,
                                     .streams = a->streams,
                                     .iterations = a->iterations,
                                     .eps = a->hc_eps,
                                     .head = a->head};
    j.values = (int)buf_row_values(&a->x->d);
    j.width = j.values / a->streams;
    j.n_mix = (int)view_rows(&a->fn->v);
    if (a->n < MIX_MANY) {
        mix_few(&j);
        return;
    }
    const int each = a->n / (4 * cpu_of(s)->n_threads);
    j.step = (int)max_i64(MIX_LEAST, min_i64(each, MIX_ROWS));
    if (cpu_thread_scratch(s, mix_thread_bytes(j.n_mix))) cpu_tasks(s, mix_task, &j, (a->n + j.step - 1) / j.step);
}

void cpu_hc_work(const struct work_desc *a, struct cpu_work *w)
{
    const size_t few = (size_t)min_i64(a->rows, MIX_MANY - 1);
    if (a->streams)
        cpu_work_raise(w, few * round_up((size_t)a->values * sizeof(float), 64),
                       mix_thread_bytes(a->streams * (2 + a->streams)));
}
