/* Router and expert layer: spec deepseek-v4 3.9. */
#include "device/ref/ref_internal.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- router */

/* Scores of n experts from their logits. */
static void scores(enum router_score kind, const double *logit, int n, double *p)
{
    double max = logit[0], sum = 0;
    for (int e = 1; e < n; e++) max = logit[e] > max ? logit[e] : max;
    for (int e = 0; e < n; e++) {
        p[e] = kind == ROUTER_SOFTMAX ? exp(logit[e] - max) : sqrt(ref_softplus(logit[e]));
        sum += p[e];
    }
    for (int e = 0; e < n && kind == ROUTER_SOFTMAX; e++) p[e] /= sum;
}

/* ids of the k largest p + bias, best first, ties to the lower id. */
static void pick_best(const double *p, const double *bias, int n, int k, int32_t *ids)
{
    for (int i = 0; i < k; i++) {
        int best = -1;
        for (int e = 0; e < n; e++) {
            bool taken = false;
            for (int j = 0; j < i; j++) taken |= ids[j] == e;
            if (taken) continue;
            if (best < 0 || p[e] + (bias ? bias[e] : 0) > p[best] + (bias ? bias[best] : 0)) best = e;
        }
        ids[i] = best;
    }
}

/* ids of the token from the table; false after setting the error. */
static bool pick_by_token(struct dev_stream *s, const struct tensor_view *table, int32_t token, int n, int k,
                          int32_t *ids)
{
    if (token < 0 || token >= view_rows(table)) {
        dev_fail(s, ERR_ARG, "token %d is outside the expert table of %lld rows", token, (long long)view_rows(table));
        return false;
    }
    memcpy(ids, view_row(table, token), (size_t)k * sizeof *ids);
    for (int j = 0; j < k; j++)
        if (ids[j] < 0 || ids[j] >= n) {
            dev_fail(s, ERR_MODEL, "the expert table names expert %d for token %d; the layer has %d", ids[j], token, n);
            return false;
        }
    return true;
}

void ref_router(struct dev_stream *s, const struct router_args *a)
{
    if (!ref_begin(s)) return;
    const int n = a->experts;
    const double *bias = a->bias ? ref_vector(s, a->bias, 1) : NULL;
    double *p = ref_take(s, (size_t)n);
    if (!p || (a->bias && !bias)) return;
    for (int i = 0; i < a->n; i++) {
        int32_t *ids = ref_row_i32(a->ids, i);
        scores(a->score, ref_row(a->logits, i), n, p);
        if (!a->table)
            pick_best(p, bias, n, a->k, ids);
        else if (!pick_by_token(s, &a->table->view, s->rows->token[i], n, a->k, ids))
            return;
        double sum = 0;
        for (int j = 0; j < a->k; j++) sum += p[ids[j]];
        const double divisor = !a->normalise ? 1 : sum > a->floor ? sum : a->floor;
        for (int j = 0; j < a->k; j++) ref_row(a->weight, i)[j] = p[ids[j]] / divisor * a->scale;
    }
}

/* ---------------------------------------------------------------- experts */

/* Scratch for one row through one expert. */
struct expert_scratch {
    double *seen;      /* [max(D, F)]: what a dot product sees of its input */
    double *weight;    /* [max(D, F)]: one decoded row */
    double *gate, *up; /* [F] */
    double *x;         /* [D]: the row */
    void *act;         /* one activation row */
};

static bool scratch_take(struct dev_stream *s, int64_t d, int64_t f, struct expert_scratch *t)
{
    const int64_t longest = d > f ? d : f;
    size_t act = 0;
    for (int i = 0; i < ACT_COUNT; i++) {
        const size_t bytes = act_row_bytes((enum act_format)i, longest);
        act = bytes > act ? bytes : act;
    }
    t->seen = ref_take(s, (size_t)longest);
    t->weight = ref_take(s, (size_t)longest);
    t->gate = ref_take(s, (size_t)longest);
    t->up = ref_take(s, (size_t)f);
    t->x = ref_take(s, (size_t)d);
    double *act_row = ref_take(s, act / sizeof(double) + 8); /* 64 bytes more: rows start on 64-byte borders */
    if (!t->seen || !t->weight || !t->gate || !t->up || !t->x || !act_row) return false;
    t->act = (void *)(((uintptr_t)act_row + 63) & ~(uintptr_t)63);
    return true;
}

/* out[r] (or +=) = row r of v . x, x as v's dot product sees it. */
static bool multiply(struct dev_stream *s, const struct tensor_view *v, const double *x, struct expert_scratch *t,
                     bool add, double *out)
{
    if (!ref_dot_input(s, v, x, t->act, t->seen)) return false;
    for (int64_t r = 0; r < v->ne[1]; r++) {
        if (!ref_decode_row(s, v, r, t->weight)) return false;
        const double y = ref_dot(t->weight, t->seen, v->ne[0]);
        out[r] = add ? out[r] + y : y;
    }
    return true;
}

/* Adds weight times the expert's output for x to y; mid (or NULL) receives what enters the down matrix. */
static bool expert_add(struct dev_stream *s, const struct expert *e, const double *x, double weight, double clamp,
                       struct expert_scratch *t, double *mid, double *y)
{
    if (!multiply(s, &e->gate, x, t, false, t->gate) || !multiply(s, &e->up, x, t, false, t->up)) return false;
    for (int64_t f = 0; f < e->gate.ne[1]; f++) {
        double gate = t->gate[f], up = t->up[f];
        if (clamp > 1e-6) {
            gate = fmin(gate, clamp);
            up = fmax(-clamp, fmin(up, clamp));
        }
        t->gate[f] = ref_silu(gate) * up * weight;
    }
    if (mid) memcpy(mid, t->gate, (size_t)e->gate.ne[1] * sizeof *mid);
    for (int64_t f = e->gate.ne[1]; f < e->down.ne[0]; f++) t->gate[f] = 0; /* rows padded to whole blocks */
    return multiply(s, &e->down, t->gate, t, true, y);
}

/* The row's routed experts in ascending id; equal ids in selection order. */
static bool row_experts(struct dev_stream *s, const struct moe_args *a, int i, struct experts_ticket *ticket,
                        struct expert_scratch *t)
{
    const int32_t *ids = ref_row_i32(a->ids, i);
    const int k = a->k;
    for (int rank = 0; rank < k; rank++)
        for (int j = 0; j < k; j++) {
            int before = 0;
            for (int o = 0; o < k; o++) before += ids[o] < ids[j] || (ids[o] == ids[j] && o < j);
            if (before != rank) continue;
            struct expert e;
            struct err err = {0};
            if (experts_get(ticket, ids[j], &e, &err)) {
                dev_fail(s, err.code, "%s", err.msg);
                return false;
            }
            double *mid = a->mid ? ref_row(a->mid, i) + j * e.gate.ne[1] : NULL;
            if (!expert_add(s, &e, t->x, ref_row(a->weight, i)[j], a->clamp, t, mid, ref_row(a->out, i))) return false;
        }
    return true;
}

static bool routed(struct dev_stream *s, const struct moe_args *a, int i, struct expert_scratch *t)
{
    struct experts_ticket *ticket;
    struct err err = {0};
    if (experts_want(a->experts, a->layer, ref_row_i32(a->ids, i), a->k, &ticket, &err)) {
        dev_fail(s, err.code, "%s", err.msg);
        return false;
    }
    const bool ok = row_experts(s, a, i, ticket, t);
    experts_done(ticket);
    return ok;
}

void ref_moe(struct dev_stream *s, const struct moe_args *a)
{
    if (!ref_begin(s)) return;
    const struct expert_layer *layer = experts_layer(a->experts, a->layer);
    const int64_t d = buf_row_values(&a->x->desc);
    if (!layer) {
        dev_fail(s, ERR_ARG, "ref: there is no expert layer %d", a->layer);
        return;
    }
    int64_t f = layer->down.ne[0];
    if (a->shared_gate && a->shared_gate->view.ne[1] > f) f = a->shared_gate->view.ne[1];
    struct expert_scratch t;
    if (!scratch_take(s, d, f, &t)) return;
    for (int i = 0; i < a->n; i++) {
        memcpy(t.x, ref_row(a->x, i), (size_t)d * sizeof *t.x); /* out may be x */
        memset(ref_row(a->out, i), 0, (size_t)d * sizeof(double));
        if (!routed(s, a, i, &t)) return;
        if (!a->shared_gate) continue;
        const double weight = a->shared_weight ? ref_row(a->shared_weight, i)[0] : 1;
        const struct expert shared = {a->shared_gate->view, a->shared_up->view, a->shared_down->view};
        if (!expert_add(s, &shared, t.x, weight, a->shared_clamp, &t, NULL, ref_row(a->out, i))) return;
    }
}
