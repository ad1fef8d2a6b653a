/* Binding of a family's tensors by tables. */
#include "models/block/bind.h"
#include <stdio.h>

static int slot_bind(const struct canonical *c, struct dev *dev, const char *prefix, const struct bind_slot *t,
                     struct err *e)
{
    const int64_t ne[2] = {t->ne0, t->ne1};
    const struct tensor_view *v = canonical_need(c, e, t->ne1 ? 2 : 1, ne, "%s%s", prefix, t->name);
    if (!v) return e ? e->code : ERR_MODEL;
    char name[128];
    snprintf(name, sizeof name, "%s%s", prefix, t->name);
    if (t->weight) return weight_bind(dev, v, name, t->weight, e);
    *t->mat = dev->op->mat_create(dev, v);
    return *t->mat ? 0 : err_set(e, ERR_MEMORY, "out of memory while binding %s", name);
}

int bind_slots(const struct canonical *c, struct dev *dev, const char *prefix, const struct bind_slot *t, int n,
               struct err *e)
{
    for (int i = 0; i < n; i++) {
        const int rc = slot_bind(c, dev, prefix, &t[i], e);
        if (rc) return rc;
    }
    return 0;
}

static int expert_view(const struct canonical *c, const char *p, const char *part, int64_t ne0, int64_t ne1,
                       int64_t ne2, struct tensor_view *v, struct err *e)
{
    const int64_t ne[3] = {ne0, ne1, ne2};
    const struct tensor_view *t = canonical_need(c, e, 3, ne, "%sffn_%s_exps.weight", p, part);
    if (!t) return e ? e->code : ERR_MODEL;
    const struct quant_type *q = quant_type(t->type);
    if (!q || !q->decode)
        return err_set(e, ERR_MODEL, "%sffn_%s_exps.weight has type %u (%s), which this version cannot compute with", p,
                       part, t->type, q ? q->name : "unknown");
    *v = *t;
    return 0;
}

int bind_experts(const struct canonical *c, const char *prefix, int64_t D, int64_t F, int64_t E, struct expert_layer *x,
                 struct err *e)
{
    const struct tensor_view *down = canonical_tensor(c, "%sffn_down_exps.weight", prefix);
    int rc = expert_view(c, prefix, "gate", D, F, E, &x->gate, e);
    if (!rc) rc = expert_view(c, prefix, "up", D, F, E, &x->up, e);
    return rc ? rc : expert_view(c, prefix, "down", down && down->ne[0] > F ? down->ne[0] : F, D, E, &x->down, e);
}

void mats_free(struct dev *dev, struct dev_mat **const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (*list[i]) dev->op->mat_free(*list[i]);
}

unsigned weight_format(const struct weight *w)
{
    return w->mat ? 1u << w->act : 0;
}
