/* Operations value by value (spec qwen38 3.2, 3.4, 3.5). */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

struct element_job {
    const struct cpu_kernels *k;
    const void *a;
};

static void add_row(const struct cpu_kernels *k, int n, const float *x, const float *y, float *out)
{
    if (out != y && out != x) memcpy(out, x, (size_t)n * sizeof *out);
    k->add(n, out == x || out != y ? y : x, out);
}

static void element_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct element_job *j = arg;
    const struct element_args *a = j->a;
    const int n = (int)buf_row_values(&a->out->d);
    for (int64_t i = from; i < to; i++) {
        const float *x = buf_floats(a->x, i), *y = a->y ? buf_floats(a->y, i) : NULL;
        float *out = buf_floats(a->out, i);
        switch (a->kind) {
        case ELEMENT_SILU:
            j->k->silu(n, (float)a->scale, x, out);
            break;
        case ELEMENT_SIGMOID:
            j->k->scale(n, x, (float)a->scale, out);
            j->k->sigmoid(n, out, out);
            j->k->scale(n, out, (float)a->factor, out);
            break;
        case ELEMENT_GATE:
            j->k->gate(n, x, y, out);
            break;
        case ELEMENT_ADD:
            add_row(j->k, n, x, y, out);
            break;
        }
    }
}

void cpu_element(struct dev_stream *s, const struct element_args *a)
{
    if (!cpu_ready(s)) return;
    struct element_job j = {.k = cpu_of(s)->k, .a = a};
    cpu_ranges(s, element_rows, &j, a->n, 4 * buf_row_values(&a->out->d));
}

/* One value per head: in double, rounded to float at the end; the same code in every kernel set. */
static void decay_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct decay_args *a = ((const struct element_job *)arg)->a;
    const int64_t n = buf_row_values(&a->out->d);
    for (int64_t i = from; i < to; i++)
        for (int64_t h = 0; h < n; h++) {
            const double x = (double)buf_floats(a->x, i)[h] + (double)a->bias->f32[h];
            buf_floats(a->out, i)[h] = (float)exp((double)a->a->f32[h] * cpu_softplus(x));
        }
}

void cpu_decay(struct dev_stream *s, const struct decay_args *a)
{
    if (!cpu_ready(s) || !cpu_need_f32(s, a->a, "decay rates") || !cpu_need_f32(s, a->bias, "decay bias")) return;
    struct element_job j = {.a = a};
    cpu_ranges(s, decay_rows, &j, a->n, 64 * buf_row_values(&a->out->d));
}

/* sigmoid(sign(g) sqrt(max(|g|, 1e-6))), 1/2 where g is 0 */
static float memory_weight(float g)
{
    if (g == 0) return 0.5f;
    const double size = sqrt(fmax(fabs((double)g), 1e-6));
    return (float)(1 / (1 + exp(g > 0 ? -size : size)));
}

static void memory_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct element_job *j = arg;
    const struct memory_gate_args *a = j->a;
    const int width = (int)buf_row_values(&a->value->d);
    for (int64_t i = from; i < to; i++) {
        const int64_t row = i / a->streams;
        const size_t at = (size_t)(i % a->streams) * (size_t)width;
        const float dot = j->k->dot(width, buf_floats(a->key, row) + at, buf_floats(a->query, row) + at);
        const float g = dot / sqrtf((float)width);
        j->k->scale(width, buf_floats(a->value, row), memory_weight(g), buf_floats(a->out, row) + at);
    }
}

void cpu_memory_gate(struct dev_stream *s, const struct memory_gate_args *a)
{
    if (!cpu_ready(s)) return;
    struct element_job j = {.k = cpu_of(s)->k, .a = a};
    cpu_ranges(s, memory_rows, &j, (int64_t)a->n * a->streams, 4 * buf_row_values(&a->value->d));
}
