/* What a row costs at least (spec qwen38 2.2, 3.4 to 3.7). */
#include "models/qwen38/qwen38_internal.h"
#include <stdio.h>
#include <string.h>
#include "models/block/cost.h"

/* Rows whose indexer selects: before, its query is not even computed. */
static bool selects(const struct qwen38_shape *s, int to)
{
    return s->q && to / s->q > s->Kb;
}

/* Names are those that are bound in qwen38_weights.c; other tensors (drafts) are not read. */
static void add_tensor(const struct qwen38_shape *s, bool tied, const char *name, const struct tensor_view *v, int to,
                       struct family_cost *c)
{
    int l;
    if (!strcmp(name, "token_embd.weight")) {
        cost_tensor(c, v, 1, s->V, false);
        if (tied) cost_tensor(c, v, 1, 1, false);
    } else if (!strncmp(name, "output", 6)) {
        cost_tensor(c, v, 1, 1, false);
    } else if (!strncmp(name, "per_layer", 9)) {
        cost_tensor(c, v, s->Np, v->ne[1], false);
    } else if (sscanf(name, "blk.%d.", &l) == 1 && l >= 0 && l < s->L) {
        if (strstr(name, "_exps.weight"))
            cost_tensor(c, v, s->layer[l].K, s->layer[l].NE, true);
        else if (!strstr(name, ".indexer.q_") || selects(s, to))
            cost_tensor(c, v, 1, 1, !strstr(name, "conv1d"));
    }
}

/* Attention: scores and sums over what the row at pos sees, and the scores of blocks where some are selected. A delta
 * net: the state times the key, plus the update, times the query. */
static double attention_at(const struct qwen38_shape *s, bool recurrent, int64_t pos)
{
    if (recurrent) return 3 * (double)s->Hv * s->Dl * s->Dl;
    const int64_t blocks = s->q ? (pos + 1) / s->q : 0, rest = s->q ? (pos + 1) % s->q : pos + 1;
    const bool cut = s->q && blocks > s->Kb;
    const double index = cut ? (double)s->Hi * s->Di * (double)blocks : 0;
    return 2 * (double)s->H * s->D * (double)((cut ? s->Kb : blocks) * s->q + rest) + index;
}

void qwen38_cost(const void *model, const struct canonical *c, int from, int to, struct family_cost *cost)
{
    const struct qwen38_model *m = model;
    const struct qwen38_shape *s = &m->shape;
    const bool tied = canonical_tensor(c, "output.weight") == NULL;
    *cost = (struct family_cost){0};
    for (int i = 0; i < canonical_n_tensors(c); i++) {
        const struct tensor_view *v;
        const char *name = canonical_tensor_at(c, i, &v);
        add_tensor(s, tied, name, v, to, cost);
    }
    for (int l = 0; l < s->L; l++)
        for (int pos = from; pos < to; pos++)
            cost->attention += attention_at(s, s->layer[l].recurrent, pos) / (to - from);
}
