/* What a row costs at least (spec deepseek-v4 2.3, 3.5 to 3.9). */
#include "models/deepseek4/deepseek4_internal.h"
#include <stdio.h>
#include <string.h>
#include "models/block/cost.h"

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && !strcmp(name + n - k, end);
}

/* Rows whose indexer selects: before, its query is not even computed. */
static bool selects(const struct deepseek4_shape *s, int l, int to)
{
    return to / s->layer[l].ratio > s->IK;
}

/* Names are those that are bound in deepseek4_weights.c; other tensors (drafts) are not read. */
static void add_tensor(const struct deepseek4_shape *s, const char *name, const struct tensor_view *v, int to,
                       struct family_cost *c)
{
    int l;
    if (!strcmp(name, "token_embd.weight")) {
        cost_tensor(c, v, 1, s->V, false);
    } else if (!strncmp(name, "output", 6)) {
        cost_tensor(c, v, 1, 1, false);
    } else if (sscanf(name, "blk.%d.", &l) == 1 && l >= 0 && l < s->L) {
        if (ends_with(name, "_exps.weight"))
            cost_tensor(c, v, s->layer[l].K, s->layer[l].E, true);
        else if (ends_with(name, "_tid2eid.weight"))
            cost_tensor(c, v, 1, s->V, false);
        else if (!strstr(name, ".indexer.") || selects(s, l, to))
            cost_tensor(c, v, 1, 1, !ends_with(name, "_ape.weight"));
    }
}

/* Scores and sums over what the row at pos sees, and the scores of an index where it selects. */
static double attention_at(const struct deepseek4_shape *s, const struct deepseek4_layer_shape *ls, int64_t pos)
{
    const int64_t raw = pos < s->W ? pos + 1 : s->W, compressed = ls->ratio ? (pos + 1) / ls->ratio : 0;
    const bool cut = ls->indexed && compressed > s->IK;
    const double heads = 2 * (double)s->H * s->d, index = cut ? (double)s->IH * s->ID * (double)compressed : 0;
    return heads * (double)(raw + (cut ? s->IK : compressed)) + index;
}

void deepseek4_cost(const void *model, const struct canonical *c, int from, int to, struct family_cost *cost)
{
    const struct deepseek4_model *m = model;
    const struct deepseek4_shape *s = &m->shape;
    *cost = (struct family_cost){0};
    for (int i = 0; i < canonical_n_tensors(c); i++) {
        const struct tensor_view *v;
        const char *name = canonical_tensor_at(c, i, &v);
        add_tensor(s, name, v, to, cost);
    }
    for (int l = 0; l < s->L; l++)
        for (int pos = from; pos < to; pos++) cost->attention += attention_at(s, &s->layer[l], pos) / (to - from);
}
