/* Which experts a row uses and with which weight (spec deepseek-v4 3.9). */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

struct router_job {
    struct dev_stream *s;
    const struct router_args *a;
    int n_experts;
};

double cpu_softplus(double x)
{
    return x > 20 ? x : x < -20 ? exp(x) : log1p(exp(x));
}

/* Scores of n experts: in double, rounded to float at the end. */
static void scores(enum router_score kind, const float *logit, int n, float *p)
{
    double max = logit[0], sum = 0;
    if (kind == ROUTER_SQRT_SOFTPLUS) {
        for (int e = 0; e < n; e++) p[e] = sqrtf((float)cpu_softplus(logit[e]));
        return;
    }
    for (int e = 1; e < n; e++) max = logit[e] > max ? logit[e] : max;
    for (int e = 0; e < n; e++) sum += exp(logit[e] - max);
    for (int e = 0; e < n; e++) p[e] = (float)(exp(logit[e] - max) / sum);
}

/* The k largest in descending order, ties to the lower id. A value that is not a number is never larger. */
static void top_k(const float *score, int n, int k, uint8_t *taken, int32_t *ids)
{
    memset(taken, 0, (size_t)n);
    for (int i = 0; i < k; i++) {
        int best = -1;
        for (int e = 0; e < n; e++)
            if (!taken[e] && (best < 0 || score[e] > score[best])) best = e;
        taken[best] = 1;
        ids[i] = best;
    }
}

static void table_ids(const struct router_args *a, int32_t token, int32_t *ids)
{
    memcpy(ids, view_row(&a->table->v, token), (size_t)a->k * sizeof *ids);
}

static void route_row(const struct router_job *j, int64_t row, float *scratch)
{
    const struct router_args *a = j->a;
    const int n = j->n_experts;
    float *p = scratch, *score = scratch + n, *weight = buf_floats(a->weight, row), sum = 0;
    int32_t *ids = buf_ints(a->ids, row);
    scores(a->score, buf_floats(a->logits, row), n, p);
    for (int e = 0; e < n; e++) score[e] = a->bias ? p[e] + a->bias->f32[e] : p[e];
    if (a->table)
        table_ids(a, j->s->rows->token[row], ids);
    else
        top_k(score, n, a->k, (uint8_t *)(score + n), ids);
    for (int i = 0; i < a->k; i++) sum += weight[i] = p[ids[i]];
    const float by = a->normalise ? (sum > (float)a->floor ? sum : (float)a->floor) : 1;
    for (int i = 0; i < a->k; i++) weight[i] = weight[i] / by * (float)a->scale;
}

static void route_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct router_job *j = arg;
    for (int64_t i = from; i < to; i++) route_row(j, i, cpu_scratch_of(j->s, thread));
}

static bool table_check(struct dev_stream *s, const struct router_args *a, int32_t token)
{
    const struct tensor_view *v = &a->table->v;
    if (token < 0 || token >= view_rows(v)) {
        dev_fail(s, ERR_ARG, "token %d is outside the expert table of %lld rows", token, (long long)view_rows(v));
        return false;
    }
    for (int i = 0; i < a->k; i++) {
        int32_t id;
        memcpy(&id, view_row(v, token) + (size_t)i * sizeof id, sizeof id);
        if (id >= 0 && id < a->experts) continue;
        dev_fail(s, ERR_MODEL, "the expert table names expert %d for token %d; the layer has %d", id, token,
                 a->experts);
        return false;
    }
    return true;
}

static bool router_check(struct dev_stream *s, const struct router_args *a, int n_experts)
{
    if (!cpu_need_f32(s, a->bias, "router bias")) return false;
    if (a->k > n_experts) {
        dev_fail(s, ERR_MODEL, "router: %d experts per token of %d experts", a->k, n_experts);
        return false;
    }
    for (int i = 0; a->table && i < a->n; i++)
        if (!table_check(s, a, s->rows->token[i])) return false;
    return true;
}

void cpu_router(struct dev_stream *s, const struct router_args *a)
{
    struct router_job j = {.s = s, .a = a, .n_experts = a->experts};
    if (!cpu_ready(s) || !router_check(s, a, j.n_experts)) return;
    if (!cpu_thread_scratch(s, (size_t)j.n_experts * (2 * sizeof(float) + 1))) return;
    cpu_ranges(s, route_rows, &j, a->n, (int64_t)j.n_experts * (a->k + 50));
}
