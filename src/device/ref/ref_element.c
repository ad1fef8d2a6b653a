/* Operations value by value: spec qwen38 3.2, 3.4, 3.5. */
#include "device/ref/ref_internal.h"
#include <math.h>

double ref_sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

double ref_silu(double x)
{
    return x * ref_sigmoid(x);
}

double ref_softplus(double x)
{
    if (x > 20) return x;
    if (x < -20) return exp(x);
    return log1p(exp(x));
}

static double element(const struct element_args *a, double x, double y)
{
    switch (a->kind) {
    case ELEMENT_SILU:
        return ref_silu(a->scale * x);
    case ELEMENT_SIGMOID:
        return a->factor * ref_sigmoid(a->scale * x);
    case ELEMENT_GATE:
        return x * ref_sigmoid(y);
    case ELEMENT_ADD:
        return x + y;
    }
    return x;
}

void ref_element(struct dev_stream *s, const struct element_args *a)
{
    if (!ref_begin(s)) return;
    for (int i = 0; i < a->n; i++)
        for (int64_t d = 0; d < buf_row_values(&a->out->desc); d++)
            ref_row(a->out, i)[d] = element(a, ref_row(a->x, i)[d], a->y ? ref_row(a->y, i)[d] : 0);
}

void ref_decay(struct dev_stream *s, const struct decay_args *a)
{
    if (!ref_begin(s)) return;
    const double *rate = ref_vector(s, a->a, 1), *bias = ref_vector(s, a->bias, 1);
    if (!rate || !bias) return;
    for (int i = 0; i < a->n; i++)
        for (int64_t d = 0; d < buf_row_values(&a->out->desc); d++)
            ref_row(a->out, i)[d] = exp(rate[d] * ref_softplus(ref_row(a->x, i)[d] + bias[d]));
}

void ref_memory_gate(struct dev_stream *s, const struct memory_gate_args *a)
{
    if (!ref_begin(s)) return;
    const int64_t width = buf_row_values(&a->value->desc);
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < a->streams; k++) {
            const double *key = ref_row(a->key, i) + k * width, *query = ref_row(a->query, i) + k * width;
            const double g = ref_dot(key, query, width) / sqrt((double)width);
            const double r = g == 0 ? 0 : copysign(sqrt(fmax(fabs(g), 1e-6)), g), gate = ref_sigmoid(r);
            for (int64_t d = 0; d < width; d++) ref_row(a->out, i)[k * width + d] = gate * ref_row(a->value, i)[d];
        }
}
