/* Forward pass of Qwen3.8, spec qwen38 3: a list of stage calls in the order of the spec. T rows at once; every buffer
 * is [T][...] as qwen38_scratch_id says. */
#include "models/qwen38/qwen38_stage.h"
#include <math.h>

struct stage qwen38_stage(const struct qwen38_model *m, struct step *step, int T)
{
    struct block_scratch *y = step->scratch;
    return (struct stage){.m = m,
                          .s = &m->shape,
                          .step = step,
                          .st = step->stream,
                          .op = step->stream->dev->op,
                          .y = y,
                          .b = y->buf,
                          .in = y->input,
                          .streams = step->carry ? step->carry[0] : NULL,
                          .rows = &step->rows,
                          .T = T};
}

void qwen38_norm(const struct stage *g, struct dev_buf *x, struct dev_buf *out, const struct dev_mat *weight,
                 int groups, int width, bool each)
{
    g->op->rms_norm(g->st, &(struct rms_norm_args){.x = x,
                                                   .out = out,
                                                   .weight = weight,
                                                   .eps = g->s->eps,
                                                   .groups = groups,
                                                   .width = width,
                                                   .each = each,
                                                   .n = g->T});
}

static void rotate(const struct stage *g, struct dev_buf *x, int groups, int width)
{
    g->op->rope(g->st, &(struct rope_args){.x = x, .rope = g->m->rope, .groups = groups, .width = width, .n = g->T});
}

void qwen38_product(const struct stage *g, enum qwen38_input input, bool renew, const struct weight *w,
                    struct dev_buf *out)
{
    if (renew) linear_input_renew(&g->in[input]);
    linear(g->st, &g->in[input], w, out, g->T);
}

static void element(const struct stage *g, enum element_kind kind, struct dev_buf *x, struct dev_buf *y,
                    struct dev_buf *out, double scale, double factor)
{
    g->op->element(g->st, &(struct element_args){
                              .kind = kind, .x = x, .y = y, .out = out, .scale = scale, .factor = factor, .n = g->T});
}

void qwen38_segments(const struct stage *g, const int *state_of)
{
    block_step_segments(g->step, g->l, g->rows->n_segments, state_of);
}

/* ---------------------------------------------------------------- hyper-connections, spec 3.2 */

void qwen38_mix(const struct stage *g, struct dev_buf *streams, const struct qwen38_mixer *w)
{
    const struct qwen38_shape *s = g->s;
    qwen38_norm(g, streams, g->b[S_FLAT], w->norm, s->hc, s->E, true);
    qwen38_product(g, INPUT_STREAMS, true, &w->down, g->b[S_LOW]);
    element(g, ELEMENT_SILU, g->b[S_LOW], NULL, g->b[S_LOW], 1.0 / s->hc, 1);
    qwen38_product(g, INPUT_LOW, true, &w->up, g->b[S_GATES]);
    element(g, ELEMENT_GATE, g->b[S_FLAT], g->b[S_GATES], g->b[S_GATES], 1, 1);
    g->op->hc_reduce(g->st,
                     &(struct hc_reduce_args){.x = g->b[S_GATES], .out = g->b[S_MIXED], .streams = s->hc, .n = g->T});
    if (!w->inject.mat) return;
    qwen38_product(g, INPUT_STREAMS, false, &w->inject, g->b[S_INJECT]);
    element(g, ELEMENT_SIGMOID, g->b[S_INJECT], NULL, g->b[S_INJECT], 1.0 / s->hc, 2);
}

/* every stream += its weight * S_Y */
static void combine(const struct stage *g)
{
    g->op->hc_expand(
        g->st,
        &(struct hc_expand_args){
            .y = g->b[S_Y], .gates = g->b[S_INJECT], .x = g->streams, .streams = g->s->hc, .apart = true, .n = g->T});
}

/* ---------------------------------------------------------------- n-gram memory, spec 3.4 */

/* Rows of the table -> S_MEMORY. A read that failed ends the step. */
static void memory_await(const struct stage *g)
{
    struct qwen38_work *w = g->step->work;
    struct err e = {0};
    struct rowtable_gather *gather = w->gather;
    w->gather = NULL;
    if (rowtable_wait(gather, &e))
        dev_fail(g->st, e.code, "%s", e.msg);
    else
        g->op->write_f32(g->st, g->b[S_MEMORY], 0, g->T, w->memory);
}

static void remember(const struct stage *g)
{
    const struct qwen38_shape *s = g->s;
    const struct qwen38_memory *w = &g->m->memory;
    memory_await(g);
    qwen38_product(g, INPUT_MEMORY, true, &w->key, g->b[S_KEY]);
    qwen38_product(g, INPUT_MEMORY, false, &w->value, g->b[S_VALUE]);
    qwen38_norm(g, g->b[S_KEY], g->b[S_KEY], w->norm_key, s->hc, s->E, true);
    qwen38_norm(g, g->streams, g->b[S_QUERY], w->norm_query, s->hc, s->E, true);
    g->op->memory_gate(g->st, &(struct memory_gate_args){.key = g->b[S_KEY],
                                                         .query = g->b[S_QUERY],
                                                         .value = g->b[S_VALUE],
                                                         .out = g->b[S_GATED],
                                                         .streams = s->hc,
                                                         .n = g->T});
    qwen38_norm(g, g->b[S_GATED], g->b[S_KEY], w->norm_conv, s->hc, s->E, true);
    g->op->conv(g->st, &(struct conv_args){.x = g->b[S_KEY],
                                           .out = g->b[S_QUERY],
                                           .weight = w->conv,
                                           .taps = s->Kp,
                                           .dilation = s->G,
                                           .silu = true,
                                           .ring = g->y->ring[RING_STREAMS]});
    element(g, ELEMENT_ADD, g->b[S_GATED], g->b[S_QUERY], g->b[S_GATED], 1, 1);
    element(g, ELEMENT_ADD, g->streams, g->b[S_GATED], g->streams, 1, 1);
}

/* ---------------------------------------------------------------- gated delta net, spec 3.5: S_MIXED -> S_Y */

static void delta_net(const struct stage *g)
{
    const struct qwen38_shape *s = g->s;
    qwen38_product(g, INPUT_MIXED, true, &g->w->qkv, g->b[S_U]);
    qwen38_product(g, INPUT_MIXED, false, &g->w->z, g->b[S_Z]);
    qwen38_product(g, INPUT_MIXED, false, &g->w->beta, g->b[S_BETA]);
    qwen38_product(g, INPUT_MIXED, false, &g->w->alpha, g->b[S_ALPHA]);
    g->op->conv(g->st, &(struct conv_args){.x = g->b[S_U],
                                           .out = g->b[S_C],
                                           .weight = g->w->conv,
                                           .taps = s->Kc,
                                           .dilation = 1,
                                           .silu = true,
                                           .ring = g->y->ring[RING_CONV]});
    element(g, ELEMENT_SIGMOID, g->b[S_BETA], NULL, g->b[S_BETA], 1, 1);
    g->op->decay(g->st, &(struct decay_args){
                            .x = g->b[S_ALPHA], .out = g->b[S_ALPHA], .a = g->w->a, .bias = g->w->dt, .n = g->T});
    g->op->delta_scan(g->st, &(struct delta_scan_args){.x = g->b[S_C],
                                                       .decay = g->b[S_ALPHA],
                                                       .beta = g->b[S_BETA],
                                                       .eps = 1e-6,
                                                       .scale = 1 / sqrt((double)s->Dl),
                                                       .scan = g->y->scan,
                                                       .out = g->b[S_STATE]});
    qwen38_norm(g, g->b[S_STATE], g->b[S_STATE], g->w->out_norm, s->Hv, s->Dl, false);
    element(g, ELEMENT_GATE, g->b[S_STATE], g->b[S_Z], g->b[S_STATE], 1, 1);
    qwen38_product(g, INPUT_STATE, true, &g->w->out, g->b[S_Y]);
}

/* ---------------------------------------------------------------- attention, spec 3.6: S_MIXED -> S_Y */

/* True if some row sees more blocks than are selected. */
static bool selection_matters(const struct stage *g)
{
    for (int i = 0; i < g->rows->n_segments; i++)
        if ((g->rows->segments[i].pos0 + g->rows->segments[i].n) / g->s->q > g->s->Kb) return true;
    return false;
}

/* Keys of blocks are kept even while all is seen. -> S_SELECT, or NULL where every row sees all. */
static struct dev_buf *select_blocks(const struct stage *g)
{
    const struct qwen38_shape *s = g->s;
    if (!s->q) return NULL;
    qwen38_product(g, INPUT_MIXED, false, &g->w->index_k, g->b[S_INDEX_K]);
    g->op->pool(g->st, &(struct pool_args){.x = g->b[S_INDEX_K],
                                           .norm = g->w->index_k_norm,
                                           .eps = s->eps,
                                           .ratio = s->q,
                                           .rope = g->m->rope,
                                           .ring = g->y->ring[RING_INDEX],
                                           .store = g->y->store[STORE_BLOCK]});
    if (!selection_matters(g)) return NULL;
    qwen38_product(g, INPUT_MIXED, false, &g->w->index_q, g->b[S_INDEX_Q]);
    qwen38_norm(g, g->b[S_INDEX_Q], g->b[S_INDEX_Q], g->w->index_q_norm, s->Hi, s->Di, false);
    rotate(g, g->b[S_INDEX_Q], s->Hi, s->Di);
    g->op->select(g->st, &(struct select_args){.q = g->b[S_INDEX_Q],
                                               .scale = 1,
                                               .store = g->y->store[STORE_BLOCK],
                                               .ratio = s->q,
                                               .top_k = s->Kb,
                                               .out = g->b[S_SELECT],
                                               .n = g->T});
    return g->b[S_SELECT];
}

static void attention(const struct stage *g)
{
    const struct qwen38_shape *s = g->s;
    qwen38_product(g, INPUT_MIXED, true, &g->w->q, g->b[S_Q]);
    qwen38_product(g, INPUT_MIXED, false, &g->w->gate, g->b[S_GATE]);
    qwen38_product(g, INPUT_MIXED, false, &g->w->k, g->b[S_K]);
    qwen38_product(g, INPUT_MIXED, false, &g->w->v, g->b[S_V]);
    qwen38_norm(g, g->b[S_Q], g->b[S_Q], g->w->q_norm, s->H, s->D, false);
    rotate(g, g->b[S_Q], s->H, s->D);
    qwen38_norm(g, g->b[S_K], g->b[S_K], g->w->k_norm, s->Hkv, s->D, false);
    rotate(g, g->b[S_K], s->Hkv, s->D);
    g->op->store_write(g->st,
                       &(struct store_write_args){.x = g->b[S_K], .y = g->b[S_V], .store = g->y->store[STORE_KV]});
    struct dev_buf *selected = select_blocks(g);
    g->op->attention_heads(g->st, &(struct attention_heads_args){.q = g->b[S_Q],
                                                                 .kv_heads = s->Hkv,
                                                                 .store = g->y->store[STORE_KV],
                                                                 .block = s->q,
                                                                 .selected = selected,
                                                                 .scale = 1 / sqrt((double)s->D),
                                                                 .out = g->b[S_Q],
                                                                 .n = g->T});
    element(g, ELEMENT_GATE, g->b[S_Q], g->b[S_GATE], g->b[S_Q], 1, 1);
    qwen38_product(g, INPUT_HEADS, true, &g->w->out, g->b[S_Y]);
}

/* ---------------------------------------------------------------- experts, spec 3.7: S_MIXED -> S_Y */

static void moe(const struct stage *g)
{
    const struct taps *taps = g->step->taps;
    struct dev_buf *mid = tap_wanted(taps, TAP_EXPERT_MID) ? taps->expert_mid : NULL;
    qwen38_product(g, INPUT_MIXED, true, &g->w->router, g->b[S_ROUTER]);
    g->op->router(g->st, &(struct router_args){.score = ROUTER_SOFTMAX,
                                               .logits = g->b[S_ROUTER],
                                               .experts = g->ls->NE,
                                               .k = g->ls->K,
                                               .scale = 1,
                                               .normalise = true,
                                               .ids = g->b[S_IDS],
                                               .weight = g->b[S_WEIGHTS],
                                               .n = g->T});
    qwen38_product(g, INPUT_MIXED, false, &g->w->shared_in, g->b[S_SHARED]);
    element(g, ELEMENT_SIGMOID, g->b[S_SHARED], NULL, g->b[S_SHARED], 1, 1);
    g->op->moe(g->st, &(struct moe_args){.x = g->b[S_MIXED],
                                         .ids = g->b[S_IDS],
                                         .weight = g->b[S_WEIGHTS],
                                         .k = g->ls->K,
                                         .experts = g->m->experts,
                                         .layer = g->l,
                                         .shared_gate = g->w->shared_gate.mat,
                                         .shared_up = g->w->shared_up.mat,
                                         .shared_down = g->w->shared_down.mat,
                                         .shared_weight = g->b[S_SHARED],
                                         .out = g->b[S_Y],
                                         .mid = mid,
                                         .n = g->T});
    tap_at(taps, TAP_EXPERT_MID, g->l, g->st, mid, g->T);
}

/* ---------------------------------------------------------------- the layer, spec 3.3 */

void qwen38_layer_stages(const struct stage *g)
{
    const struct taps *taps = g->step->taps;
    qwen38_mix(g, g->streams, &g->w->attn);
    tap_at(taps, TAP_ATTN_IN, g->l, g->st, g->b[S_MIXED], g->T);
    if (g->ls->recurrent)
        delta_net(g);
    else
        attention(g);
    tap_at(taps, TAP_ATTN_OUT, g->l, g->st, g->b[S_Y], g->T);
    combine(g);

    qwen38_mix(g, g->streams, &g->w->ffn);
    tap_at(taps, TAP_FFN_IN, g->l, g->st, g->b[S_MIXED], g->T);
    moe(g);
    tap_at(taps, TAP_FFN_OUT, g->l, g->st, g->b[S_Y], g->T);
    combine(g);
    tap_at(taps, TAP_LAYER_OUT, g->l, g->st, g->streams, g->T);
}

void qwen38_at_layer(struct stage *g, int l)
{
    g->l = l;
    g->w = &g->m->layer[l];
    g->ls = &g->s->layer[l];
}

void qwen38_layer_run(const void *model, struct step *step, int l)
{
    const struct qwen38_model *m = model;
    struct stage g = qwen38_stage(m, step, step->rows.n);
    qwen38_at_layer(&g, l);
    g.op->set_rows(g.st, &step->rows);
    if (l >= m->shape.L) {
        qwen38_draft_follow(&g);
        return;
    }
    qwen38_segments(&g, NULL);
    if (l == m->shape.lp) remember(&g);
    qwen38_layer_stages(&g);
}

/* ---------------------------------------------------------------- ends of the model */

int qwen38_prepare(const void *model, struct step *step, struct err *e)
{
    const struct qwen38_model *m = model;
    const struct rows *r = &step->rows;
    for (int i = 0; i < r->n; i++) r->raw_first[i] = 0, r->raw_last[i] = r->pos[i];
    const int rc = block_step_prepare(step, e);
    return rc ? rc : qwen38_work_create(m, step, e);
}

void qwen38_embed(const void *model, struct step *step)
{
    const struct qwen38_model *m = model;
    block_step_embed(step, &m->embedding, m->shape.hc);
}

void qwen38_head(const void *model, struct step *step, const int *row, int n, struct dev_buf *logits)
{
    const struct qwen38_model *m = model;
    struct stage g = qwen38_stage(m, step, n);
    g.op->set_rows(g.st, &step->rows);
    g.op->gather(g.st, &(struct gather_args){.x = step->carry[0], .out = g.b[S_HEAD], .row = row, .n = n});
    qwen38_mix(&g, g.b[S_HEAD], &m->head);
    qwen38_product(&g, INPUT_MIXED, true, &m->output, logits);
}
