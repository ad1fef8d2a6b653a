/* Forward pass of DeepSeek V4, spec deepseek-v4 3: a list of stage calls in the order of the spec. T rows at once;
 * every buffer is [T][...] as deepseek4_scratch_id says. */
#include "models/deepseek4/deepseek4_internal.h"
#include <math.h>

/* What the stages of one layer call share. T rows of the step from row `row` on: all, or a part that the widest buffers
 * hold. */
struct stage {
    const struct deepseek4_model *m;
    const struct deepseek4_shape *s;
    struct step *step;
    struct dev_stream *st;
    const struct dev_ops *op;
    struct block_scratch *y;
    int T, row, l;
    struct rows rows; /* of a part */
    const struct deepseek4_layer *w;
    const struct deepseek4_layer_shape *ls;
};

static struct stage stage_begin(const struct deepseek4_model *m, struct step *step, int T)
{
    return (struct stage){.m = m,
                          .s = &m->shape,
                          .step = step,
                          .st = step->stream,
                          .op = step->stream->dev->op,
                          .y = step->scratch,
                          .T = T};
}

/* Runs a stage for one part of the rows, `most` at most, after the other. */
static void by_parts(const struct stage *all, int most, void (*stage)(const struct stage *part))
{
    struct stage g = *all;
    for (g.row = 0; g.row < all->T; g.row += most) {
        g.T = all->T - g.row < most ? all->T - g.row : most;
        g.rows = block_step_part(&g.step->rows, g.row, g.T);
        g.op->set_rows(g.st, &g.rows);
        stage(&g);
    }
    g.op->set_rows(g.st, &g.step->rows);
}

/* The stage's rows of a buffer that has those of the whole step. */
static struct dev_buf *rows_of(const struct stage *g, enum deepseek4_view view, struct dev_buf *all)
{
    return block_scratch_from(g->y, view, all, g->row);
}

/* The stage's rows of an input. The forms that it has of all rows are lost. */
static struct linear_input input_of(const struct stage *g, enum deepseek4_input input, enum deepseek4_view view)
{
    struct linear_input in = g->y->input[input];
    linear_input_renew(&in);
    in.rows = rows_of(g, view, in.rows);
    return in;
}

static void norm(const struct stage *g, struct dev_buf *x, struct dev_buf *out, const struct dev_mat *weight,
                 int groups, int width)
{
    g->op->rms_norm(
        g->st,
        &(struct rms_norm_args){
            .x = x, .out = out, .weight = weight, .eps = g->s->eps, .groups = groups, .width = width, .n = g->T});
}

static const struct dev_rope *rope_of(const struct stage *g)
{
    return g->ls->ratio ? g->m->rope_compressed : g->m->rope_plain;
}

/* Rotates the last r values of every group. */
static void rotate(const struct stage *g, struct dev_buf *x, int groups, int width)
{
    g->op->rope(g->st,
                &(struct rope_args){
                    .x = x, .rope = rope_of(g), .groups = groups, .width = width, .first = width - g->s->r, .n = g->T});
}

/* ---------------------------------------------------------------- hyper-connections, spec 3.2 */

/* streams, which take y first, -> gates in S_MIX, their mixture, normed, in S_XN. head: only the mixture's weights. */
static void hc_mix(const struct stage *g, struct dev_buf *y, struct dev_buf *streams, const struct deepseek4_hc *hc,
                   const struct dev_mat *weight, bool head)
{
    const struct deepseek4_shape *s = g->s;
    g->op->hc_mix(g->st, &(struct hc_mix_args){.y = y,
                                               .x = streams,
                                               .mix = g->y->buf[S_MIX],
                                               .out = g->y->buf[S_XN],
                                               .fn = hc->fn.mat,
                                               .base = hc->base,
                                               .scale = hc->scale,
                                               .weight = weight,
                                               .streams = s->n,
                                               .iterations = s->iterations,
                                               .eps = s->eps,
                                               .hc_eps = s->hc_eps,
                                               .head = head,
                                               .n = g->T});
}

/* streams <- post * S_Y + comb . streams */
static void hc_post(const struct stage *g)
{
    g->op->hc_expand(
        g->st,
        &(struct hc_expand_args){
            .y = g->y->buf[S_Y], .gates = g->y->buf[S_MIX], .x = g->step->carry[0], .streams = g->s->n, .n = g->T});
}

/* ---------------------------------------------------------------- attention, spec 3.3 - 3.8 */

/* S_XN -> S_QR, S_RAW packed */
static void project(const struct stage *g)
{
    const struct deepseek4_shape *s = g->s;
    struct block_scratch *y = g->y;
    linear(g->st, &y->input[INPUT_NORMED], &g->w->q_a, y->buf[S_QR], g->T);
    norm(g, y->buf[S_QR], y->buf[S_QR], g->w->q_a_norm, 1, s->Rq);

    linear(g->st, &y->input[INPUT_NORMED], &g->w->kv, y->buf[S_KV], g->T);
    norm(g, y->buf[S_KV], y->buf[S_KV], g->w->kv_norm, 1, s->d);
    rotate(g, y->buf[S_KV], 1, s->d);
    g->op->pack(g->st, &(struct pack_args){.x = y->buf[S_KV], .out = y->buf[S_RAW], .n = g->T});
}

/* S_XN -> rows of finished windows in the lane's stores */
static void compress(const struct stage *g, const struct deepseek4_lane *lane, bool index)
{
    struct block_scratch *y = g->y;
    linear(g->st, &y->input[INPUT_NORMED], &lane->kv, y->buf[S_LANE_KV], g->T);
    linear(g->st, &y->input[INPUT_NORMED], &lane->gate, y->buf[S_LANE_GATE], g->T);
    g->op->compress(g->st, &(struct compress_args){.kv = y->buf[S_LANE_KV],
                                                   .gate = y->buf[S_LANE_GATE],
                                                   .ape = lane->ape,
                                                   .norm = lane->norm,
                                                   .eps = g->s->eps,
                                                   .ratio = g->ls->ratio,
                                                   .w = index ? g->s->ID : g->s->d,
                                                   .overlap = g->ls->indexed,
                                                   .rope = g->m->rope_compressed,
                                                   .hadamard = index && g->s->hadamard,
                                                   .ring_kv = y->ring[index ? RING_INDEX_KV : RING_KV],
                                                   .ring_score = y->ring[index ? RING_INDEX_SCORE : RING_SCORE],
                                                   .store = y->store[index ? STORE_INDEX : STORE_KV]});
}

/* True if some row sees more compressed rows than the indexer selects. */
static bool selection_matters(const struct stage *g)
{
    for (int i = 0; i < g->T; i++)
        if ((g->rows.pos[i] + 1) / g->ls->ratio > g->s->IK) return true;
    return false;
}

/* S_QR, S_XN -> S_SELECT, or NULL where every row sees all; spec 3.6 */
static struct dev_buf *select_rows(const struct stage *g, struct linear_input *qr)
{
    const struct deepseek4_shape *s = g->s;
    struct block_scratch *y = g->y;
    if (!g->ls->indexed || !selection_matters(g)) return NULL;
    struct linear_input normed = input_of(g, INPUT_NORMED, VIEW_XN);
    linear(g->st, qr, &g->w->index_q, y->buf[S_INDEX_Q], g->T);
    rotate(g, y->buf[S_INDEX_Q], s->IH, s->ID);
    if (s->hadamard)
        g->op->hadamard(g->st,
                        &(struct hadamard_args){.x = y->buf[S_INDEX_Q], .groups = s->IH, .width = s->ID, .n = g->T});
    g->op->round(g->st, &(struct round_args){.x = y->buf[S_INDEX_Q], .fmt = s->index_row, .groups = s->IH, .n = g->T});
    linear(g->st, &normed, &g->w->index_proj, y->buf[S_INDEX_W], g->T);
    g->op->select(g->st, &(struct select_args){.q = y->buf[S_INDEX_Q],
                                               .weight = y->buf[S_INDEX_W],
                                               .scale = 1 / sqrt((double)s->ID * s->IH),
                                               .store = y->store[STORE_INDEX],
                                               .ratio = g->ls->ratio,
                                               .top_k = s->IK,
                                               .out = y->buf[S_SELECT],
                                               .n = g->T});
    return y->buf[S_SELECT];
}

/* A part of the rows of S_QR, S_XN -> S_Y */
static void attend(const struct stage *g)
{
    const struct deepseek4_shape *s = g->s;
    struct block_scratch *y = g->y;
    struct linear_input qr = input_of(g, INPUT_QR, VIEW_QR);
    linear(g->st, &qr, &g->w->q_b, y->buf[S_Q], g->T);
    linear_input_renew(&y->input[INPUT_HEADS]);
    struct dev_buf *const act = linear_input_made(&y->input[INPUT_HEADS], &g->w->out_a);
    g->op->attention(g->st, &(struct attention_args){.q = y->buf[S_Q],
                                                     .rope = rope_of(g),
                                                     .eps = s->eps,
                                                     .raw = y->buf[S_RAW],
                                                     .ring = y->ring[RING_RAW],
                                                     .store = g->ls->ratio ? y->store[STORE_KV] : NULL,
                                                     .ratio = g->ls->ratio,
                                                     .selected = select_rows(g, &qr),
                                                     .sinks = g->w->sinks,
                                                     .scale = 1 / sqrt((double)s->d),
                                                     .out = act ? NULL : y->buf[S_Q],
                                                     .act = act,
                                                     .n = g->T});
    linear(g->st, &y->input[INPUT_HEADS], &g->w->out_a, y->buf[S_LOW], g->T);
    linear_input_renew(&y->input[INPUT_LOW]);
    linear(g->st, &y->input[INPUT_LOW], &g->w->out_b, rows_of(g, VIEW_Y, y->buf[S_Y]), g->T);
}

/* S_XN -> S_Y. What later rows of the step look at is computed for all of them first. */
static void attention(const struct stage *g)
{
    struct block_scratch *y = g->y;
    linear_input_renew(&y->input[INPUT_NORMED]);
    project(g);
    if (g->ls->ratio) compress(g, &g->w->attn_lane, false);
    if (g->ls->indexed) compress(g, &g->w->index_lane, true);
    by_parts(g, DEEPSEEK4_PART, attend);
    g->op->ring_write(g->st, &(struct ring_write_args){.x = y->buf[S_RAW], .ring = y->ring[RING_RAW]});
}

/* ---------------------------------------------------------------- MoE, spec 3.9: S_XN -> S_Y */

static void moe(const struct stage *g)
{
    struct block_scratch *y = g->y;
    const struct taps *taps = g->step->taps;
    struct dev_buf *mid = tap_wanted(taps, TAP_EXPERT_MID) ? taps->expert_mid : NULL;
    linear_input_renew(&y->input[INPUT_NORMED]);
    linear(g->st, &y->input[INPUT_NORMED], &g->w->router, y->buf[S_ROUTER], g->T);
    g->op->router(g->st, &(struct router_args){.logits = y->buf[S_ROUTER],
                                               .experts = g->ls->E,
                                               .bias = g->w->router_bias,
                                               .table = g->w->router_table,
                                               .k = g->ls->K,
                                               .scale = g->s->route_scale,
                                               .floor = ldexp(1, DEEPSEEK4_ROUTE_FLOOR_LOG2),
                                               .normalise = g->s->route_norm,
                                               .ids = y->buf[S_IDS],
                                               .weight = y->buf[S_WEIGHTS],
                                               .n = g->T});
    g->op->moe(g->st, &(struct moe_args){.x = y->buf[S_XN],
                                         .ids = y->buf[S_IDS],
                                         .weight = y->buf[S_WEIGHTS],
                                         .k = g->ls->K,
                                         .experts = g->m->experts,
                                         .layer = g->l,
                                         .shared_gate = g->w->shared_gate.mat,
                                         .shared_up = g->w->shared_up.mat,
                                         .shared_down = g->w->shared_down.mat,
                                         .clamp = g->ls->clamp,
                                         .shared_clamp = g->ls->shared_clamp,
                                         .out = y->buf[S_Y],
                                         .mid = mid,
                                         .n = g->T});
    tap_at(taps, TAP_EXPERT_MID, g->l, g->st, mid, g->T);
}

/* ---------------------------------------------------------------- the layer, spec 3.3 */

void deepseek4_layer_run(const void *model, struct step *step, int l)
{
    const struct deepseek4_model *m = model;
    struct stage g = stage_begin(m, step, step->rows.n);
    struct dev_buf *const *b = g.y->buf;
    g.l = l;
    g.w = &m->layer[l];
    g.ls = &m->shape.layer[l];
    g.op->set_rows(g.st, &step->rows);
    block_step_segments(step, l, step->rows.n_segments, NULL);

    hc_mix(&g, NULL, step->carry[0], &g.w->hc_attn, g.w->attn_norm, false);
    tap_at(step->taps, TAP_ATTN_IN, l, g.st, b[S_XN], g.T);
    attention(&g);
    tap_at(step->taps, TAP_ATTN_OUT, l, g.st, b[S_Y], g.T);

    hc_mix(&g, b[S_Y], step->carry[0], &g.w->hc_ffn, g.w->ffn_norm, false);
    tap_at(step->taps, TAP_FFN_IN, l, g.st, b[S_XN], g.T);
    moe(&g);
    tap_at(step->taps, TAP_FFN_OUT, l, g.st, b[S_Y], g.T);
    hc_post(&g);
    tap_at(step->taps, TAP_LAYER_OUT, l, g.st, step->carry[0], g.T);
}

/* ---------------------------------------------------------------- ends of the model */

int deepseek4_prepare(const void *model, struct step *step, struct err *e)
{
    const struct deepseek4_model *m = model;
    struct rows *r = &step->rows;
    for (int i = 0; i < r->n; i++) {
        r->raw_first[i] = r->pos[i] < m->shape.W ? 0 : r->pos[i] - m->shape.W + 1;
        r->raw_last[i] = r->pos[i];
    }
    return block_step_prepare(step, e);
}

void deepseek4_embed(const void *model, struct step *step)
{
    const struct deepseek4_model *m = model;
    block_step_embed(step, &m->embedding, m->shape.n);
}

void deepseek4_head(const void *model, struct step *step, const int *row, int n, struct dev_buf *logits)
{
    const struct deepseek4_model *m = model;
    struct dev_buf *const *b = ((struct block_scratch *)step->scratch)->buf;
    for (int i = 0; i < n; i += DEEPSEEK4_HEADS) {
        struct stage g = stage_begin(m, step, n - i < DEEPSEEK4_HEADS ? n - i : DEEPSEEK4_HEADS);
        g.op->set_rows(g.st, &step->rows);
        g.op->gather(g.st, &(struct gather_args){.x = step->carry[0], .out = b[S_HEAD], .row = row + i, .n = g.T});
        hc_mix(&g, NULL, b[S_HEAD], &m->output_hc, m->output_norm, true);
        linear_input_renew(&g.y->input[INPUT_HEAD]);
        linear(g.st, &g.y->input[INPUT_HEAD], &m->output, block_scratch_from(g.y, VIEW_LOGITS, logits, i), g.T);
    }
}

int deepseek4_commit(const void *model, struct step *step, int segment, int n, struct err *e)
{
    (void)model, (void)e;
    struct deepseek4_state *s = step->state[segment];
    block_state_commit(&s->base, step->stream, &step->rows.segments[segment], n);
    return 0;
}
