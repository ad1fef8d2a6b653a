/* Binding of weights, and products that quantise their rows once. */
#include "models/block/linear.h"
#include "quant/quant.h"
#include <assert.h>
#include <string.h>

int weight_bind(struct dev *d, const struct tensor_view *v, const char *name, struct weight *w, struct err *e)
{
    const struct quant_type *t = quant_type(v->type);
    if (!t || !t->decode)
        return err_set(
            e, ERR_MODEL,
            "%s has type %u (%s), which this version cannot compute with; use a file with another type for it", name,
            v->type, t ? t->name : "unknown");
    w->mat = d->op->mat_create(d, v);
    if (!w->mat) return err_set(e, ERR_MEMORY, "out of memory while binding %s", name);
    w->act = t->act;
    w->rows = (int)(v->ne[1] * v->ne[2]);
    return 0;
}

void weight_unbind(struct dev *d, struct weight *w)
{
    if (w->mat) d->op->mat_free(w->mat);
    w->mat = NULL;
}

void linear_input_renew(struct linear_input *x)
{
    memset(x->have, 0, sizeof x->have);
}

struct dev_buf *linear_input_made(struct linear_input *x, const struct weight *w)
{
    if (w->act == ACT_F32) return NULL;
    assert(x->act[w->act]);
    x->have[w->act] = true;
    return x->act[w->act];
}

static void multiply(struct dev_stream *s, struct linear_input *x, const struct weight *w, struct dev_buf *out,
                     bool each, int n)
{
    struct dev_buf *in = x->rows;
    if (w->act != ACT_F32) {
        in = x->act[w->act];
        assert(in);
        if (!x->have[w->act]) s->dev->op->act_quant(s, &(struct act_quant_args){.x = x->rows, .out = in, .n = n});
        x->have[w->act] = true;
    }
    s->dev->op->matmul(s, &(struct matmul_args){.w = w->mat, .x = in, .out = out, .each = each, .n = n});
}

void linear(struct dev_stream *s, struct linear_input *x, const struct weight *w, struct dev_buf *out, int n)
{
    multiply(s, x, w, out, false, n);
}

void linear_each(struct dev_stream *s, struct linear_input *x, const struct weight *w, struct dev_buf *out, int n)
{
    multiply(s, x, w, out, true, n);
}
