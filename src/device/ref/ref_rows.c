/* Operations on single rows: embedding, norm, rotation, Hadamard, copies. Spec deepseek-v4 3.0, 3.1, 3.4. */
#include "device/ref/ref_internal.h"
#include <math.h>
#include <string.h>

void ref_embed(struct dev_stream *s, const struct embed_args *a)
{
    if (!ref_begin(s)) return;
    const struct tensor_view *table = &a->table->view;
    const int64_t width = table->ne[0];
    for (int i = 0; i < a->n; i++) {
        const int32_t token = s->rows->token[i];
        if (token < 0 || token >= view_rows(table)) {
            dev_fail(s, ERR_ARG, "token %d is outside the embedding table of %lld rows", token,
                     (long long)view_rows(table));
            return;
        }
        double *out = ref_row(a->out, i);
        if (!ref_decode_row(s, table, token, out)) return;
        for (int c = 1; c < a->copies; c++) memcpy(out + c * width, out, (size_t)width * sizeof *out);
    }
}

void ref_norm_group(const double *x, const double *weight, double eps, int n, double *out)
{
    double squares = 0;
    for (int i = 0; i < n; i++) squares += x[i] * x[i];
    const double scale = 1 / sqrt(squares / n + eps);
    for (int i = 0; i < n; i++) out[i] = x[i] * scale * (weight ? weight[i] : 1);
}

void ref_rms_norm(struct dev_stream *s, const struct rms_norm_args *a)
{
    if (!ref_begin(s)) return;
    const double *weight = a->weight ? ref_vector(s, a->weight, 1) : NULL;
    if (a->weight && !weight) return;
    for (int i = 0; i < a->n; i++)
        for (int g = 0; g < a->groups; g++) {
            const size_t at = (size_t)g * a->width;
            const double *w = weight && a->each ? weight + at : weight;
            ref_norm_group(ref_row(a->x, i) + at, w, a->eps, a->width, ref_row(a->out, i) + at);
        }
}

void ref_rotate(double *x, const struct dev_rope *rope, const int32_t pos[3], bool inverse)
{
    const int step = rope->halves ? 1 : 2, apart = rope->halves ? rope->pairs : 1;
    for (int i = 0; i < rope->pairs; i++) {
        const double angle = pos[rope->axis[i]] * rope->freq[i];
        const double c = cos(angle) * rope->magnitude, sn = (inverse ? -sin(angle) : sin(angle)) * rope->magnitude;
        double *a = x + i * step, *b = a + apart;
        const double x0 = *a, x1 = *b;
        *a = x0 * c - x1 * sn;
        *b = x0 * sn + x1 * c;
    }
}

void ref_rope(struct dev_stream *s, const struct rope_args *a)
{
    if (!ref_begin(s)) return;
    for (int i = 0; i < a->n; i++)
        for (int g = 0; g < a->groups; g++)
            ref_rotate(ref_row(a->x, i) + (size_t)g * a->width + a->first, a->rope, s->rows->rope_pos + 3 * (size_t)i,
                       a->inverse);
}

void ref_hadamard_group(double *x, int n)
{
    for (int stride = 1; stride < n; stride *= 2)
        for (int i = 0; i < n; i++) {
            if (i & stride) continue;
            const double lo = x[i], hi = x[i + stride];
            x[i] = lo + hi;
            x[i + stride] = lo - hi;
        }
    for (int i = 0; i < n; i++) x[i] /= sqrt(n);
}

void ref_hadamard(struct dev_stream *s, const struct hadamard_args *a)
{
    if (!ref_begin(s)) return;
    for (int i = 0; i < a->n; i++)
        for (int g = 0; g < a->groups; g++) ref_hadamard_group(ref_row(a->x, i) + (size_t)g * a->width, a->width);
}

void ref_gather(struct dev_stream *s, const struct gather_args *a)
{
    if (!ref_begin(s)) return;
    for (int i = 0; i < a->n; i++) {
        if (a->row[i] < 0 || a->row[i] >= a->x->desc.rows) {
            dev_fail(s, ERR_ARG, "ref: gather of row %d from a buffer of %d rows", a->row[i], a->x->desc.rows);
            return;
        }
        memmove(ref_row(a->out, i), ref_row(a->x, a->row[i]), a->out->row_bytes);
    }
}
