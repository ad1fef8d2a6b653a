/* Weights as doubles, and products with them. A product with a quantised weight sees the quantised activation, decoded.
 */
#include "device/ref/ref_internal.h"
#include <string.h>

static const struct quant_type *type_or_fail(struct dev_stream *s, const struct tensor_view *v)
{
    const struct quant_type *type = quant_type(v->type);
    if (type && type->decode) return type;
    dev_fail(s, ERR_MODEL, "weights of type %s (%u) cannot be decoded by this build",
             type && type->name ? type->name : "?", v->type);
    return NULL;
}

bool ref_decode_row(struct dev_stream *s, const struct tensor_view *v, int64_t r, double *out)
{
    const struct quant_type *type = type_or_fail(s, v);
    float *narrow = type ? ref_narrow(s, (size_t)v->ne[0]) : NULL;
    if (!narrow) return false;
    type->decode(view_row(v, r), narrow, v->ne[0]);
    for (int64_t i = 0; i < v->ne[0]; i++) out[i] = narrow[i];
    return true;
}

const double *ref_vector(struct dev_stream *s, const struct dev_mat *m, int64_t n_rows)
{
    const int64_t width = m->view.ne[0];
    double *out = ref_take(s, (size_t)(n_rows * width));
    for (int64_t r = 0; out && r < n_rows; r++)
        if (!ref_decode_row(s, &m->view, r, out + r * width)) return NULL;
    return out;
}

bool ref_act_row(struct dev_stream *s, enum act_format f, const double *x, int n, void *row)
{
    float *narrow = ref_narrow(s, (size_t)n);
    if (!narrow) return false;
    for (int i = 0; i < n; i++) narrow[i] = (float)x[i];
    act_quantise(f, narrow, n, row);
    return true;
}

bool ref_act_values(struct dev_stream *s, enum act_format f, const void *row, int n, double *out)
{
    float *narrow = ref_narrow(s, (size_t)n);
    if (!narrow) return false;
    act_decode(f, row, n, narrow);
    for (int i = 0; i < n; i++) out[i] = narrow[i];
    return true;
}

bool ref_dot_input(struct dev_stream *s, const struct tensor_view *v, const double *x, void *act, double *out)
{
    const struct quant_type *type = type_or_fail(s, v);
    if (!type) return false;
    const int n = (int)v->ne[0];
    if (type->act == ACT_F32) {
        memcpy(out, x, (size_t)n * sizeof *out);
        return true;
    }
    return ref_act_row(s, type->act, x, n, act) && ref_act_values(s, type->act, act, n, out);
}

double ref_dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

void ref_act_quant(struct dev_stream *s, const struct act_quant_args *a)
{
    if (!ref_begin(s)) return;
    const struct buf_desc *d = &a->out->desc;
    const size_t group_bytes = act_row_bytes(d->act, d->width);
    for (int i = 0; i < a->n; i++)
        for (int g = 0; g < d->groups; g++) {
            uint8_t *row = a->out->data + (size_t)i * a->out->row_bytes + (size_t)g * group_bytes;
            if (!ref_act_row(s, d->act, ref_row(a->x, i) + (size_t)g * d->width, d->width, row)) return;
        }
}

/* The rows of a matmul's input as doubles: those of the buffer, or decoded activations in scratch. [n][groups*width] */
static const double *input_rows(struct dev_stream *s, const struct dev_buf *x, int n)
{
    const struct buf_desc *d = &x->desc;
    if (d->kind == BUF_FLOAT) return ref_row(x, 0);
    double *out = ref_take(s, (size_t)(n * buf_row_values(d)));
    const size_t group_bytes = act_row_bytes(d->act, d->width);
    for (int i = 0; out && i < n; i++)
        for (int g = 0; g < d->groups; g++) {
            const uint8_t *row = x->data + (size_t)i * x->row_bytes + (size_t)g * group_bytes;
            if (!ref_act_values(s, d->act, row, d->width, out + i * buf_row_values(d) + (size_t)g * d->width))
                return NULL;
        }
    return out;
}

/* The input has to be what the weight's dot product takes, and the shapes have to agree. */
static bool matmul_fits(struct dev_stream *s, const struct matmul_args *a)
{
    const struct tensor_view *w = &a->w->view;
    const struct buf_desc *x = &a->x->desc;
    const struct quant_type *type = type_or_fail(s, w);
    if (!type) return false;
    const enum act_format got = x->kind == BUF_ACT ? x->act : ACT_F32;
    const bool whole = buf_row_values(x) % w->ne[0] == 0 && (x->kind == BUF_FLOAT || x->width == w->ne[0]);
    const int64_t groups = whole ? matmul_groups(w, x) : 1;
    const bool fits = a->each ? buf_row_values(&a->out->desc) >= view_rows(w) * groups
                              : view_rows(w) % groups == 0 && buf_row_values(&a->out->desc) >= view_rows(w);
    if (got == type->act && (x->kind == BUF_FLOAT || x->kind == BUF_ACT) && whole && fits) return true;
    dev_fail(s, ERR_ARG, "ref: matmul of %s [%lld, %lld] with %d x %d values (activation format %d) into %d x %d",
             type->name, (long long)w->ne[0], (long long)view_rows(w), x->groups, x->width, (int)got,
             a->out->desc.groups, a->out->desc.width);
    return false;
}

void ref_matmul(struct dev_stream *s, const struct matmul_args *a)
{
    if (!ref_begin(s) || !matmul_fits(s, a)) return;
    const struct tensor_view *w = &a->w->view;
    const int64_t k = w->ne[0], rows = view_rows(w), x_row = buf_row_values(&a->x->desc);
    const int64_t groups = matmul_groups(w, &a->x->desc), rows_per_group = rows / groups;
    const double *x = input_rows(s, a->x, a->n);
    double *weight = ref_take(s, (size_t)k);
    if (!x || !weight) return;
    for (int64_t r = 0; r < rows; r++) {
        if (!ref_decode_row(s, w, r, weight)) return;
        const double *group = a->each ? x : x + r / rows_per_group * k;
        for (int i = 0; i < a->n; i++)
            for (int64_t g = 0; g < (a->each ? groups : 1); g++)
                ref_row(a->out, i)[g * rows + r] = ref_dot(weight, group + g * k + i * x_row, k);
    }
}
