/* The draft block, spec qwen38 3.10. Row i is made of the streams that the trunk left at position i and of token i + 1,
 * and guesses token i + 2. It follows every step one position behind; guesses go on from there, and are forgotten when
 * the next step computes the same rows again. */
#include "models/qwen38/qwen38_stage.h"
#include "base/mem.h"
#include <string.h>

/* Streams of the rows before, and the next token's embedding -> S_DRAFT; T rows of the draft. */
static void draft_enter(const struct stage *g, struct dev_buf *before)
{
    const struct qwen38_shape *s = g->s;
    const struct qwen38_draft *w = &g->m->draft;
    g->op->embed(g->st,
                 &(struct embed_args){.table = g->m->embedding.mat, .out = g->b[S_EMBED], .copies = 1, .n = g->T});
    qwen38_norm(g, g->b[S_EMBED], g->b[S_EMBED], w->embed_norm, 1, s->E, false);
    qwen38_product(g, INPUT_EMBED, true, &w->embed_proj, g->b[S_EMBED_Y]);
    qwen38_norm(g, before, g->b[S_FLAT], w->hidden_norm, 1, s->hc * s->E, false);
    linear_input_renew(&g->in[INPUT_HIDDEN]);
    linear_each(g->st, &g->in[INPUT_HIDDEN], &w->hidden_proj, g->streams, g->T);
    g->op->hc_expand(g->st, &(struct hc_expand_args){
                                .y = g->b[S_EMBED_Y], .x = g->streams, .streams = s->hc, .apart = true, .n = g->T});
}

/* One position behind the step: the streams that its rows left, shifted by one. The step's own streams stay. */
void qwen38_draft_follow(struct stage *g)
{
    const struct qwen38_work *w = g->step->work;
    qwen38_segments(g, NULL);
    g->op->conv(g->st, &(struct conv_args){.x = g->step->carry[0],
                                           .out = g->b[S_HEAD],
                                           .weight = g->m->draft.shift,
                                           .taps = 2,
                                           .dilation = 1,
                                           .ring = g->y->ring[RING_STREAMS]});
    if (!w->draft.n) return;
    g->op->gather(g->st,
                  &(struct gather_args){.x = g->b[S_HEAD], .out = g->b[S_BEFORE], .row = w->take, .n = w->draft.n});
    g->rows = &w->draft;
    g->T = w->draft.n;
    g->streams = g->b[S_DRAFT];
    g->op->set_rows(g->st, g->rows);
    qwen38_segments(g, w->state_of);
    draft_enter(g, g->b[S_BEFORE]);
    qwen38_layer_stages(g);
}

/* ---------------------------------------------------------------- guesses */

bool qwen38_has_draft(const void *model)
{
    const struct qwen38_model *m = model;
    return m->shape.blocks > m->shape.L;
}

/* The row table of one row of the draft. */
struct guess_row {
    struct segment segment;
    int32_t token, of, pos, first, last, rope[3], window[3];
    struct rows rows;
};

/* Rope positions at pos, which may lie behind the history: there they count on from its last token. */
static void rope_at(const struct qwen38_state *s, int pos, int32_t rope[3])
{
    const int last = s->base.length - 1;
    memcpy(rope, qwen38_past_at(s, pos < last ? pos : last)->rope, 3 * sizeof *rope);
    for (int a = 0; a < 3 && pos > last; a++) rope[a] += pos - last;
}

static void row_make(const struct qwen38_state *s, int32_t token, int pos, struct guess_row *r)
{
    const int q = s->model->shape.q;
    *r = (struct guess_row){.segment = {.n = 1, .pos0 = pos}, .token = token, .pos = pos, .last = pos};
    rope_at(s, pos, r->rope);
    if (q && (pos + 1) % q == 0) rope_at(s, pos + 1 - q, r->window);
    r->rows = (struct rows){.n = 1,
                            .token = &r->token,
                            .segment = &r->of,
                            .pos = &r->pos,
                            .rope_pos = r->rope,
                            .raw_first = &r->first,
                            .raw_last = &r->last,
                            .n_segments = 1,
                            .segments = &r->segment,
                            .window_rope = r->window};
}

/* The streams of the last token of the history -> row 0 of a buffer. */
static void last_streams(const struct stage *g, const struct qwen38_state *s, struct dev_buf *out)
{
    const struct row_format f = {.kind = ROWFMT_F32, .width = g->s->hc * g->s->E};
    struct dev *dev = g->m->dev;
    void *bytes = mem_alloc(g->op->row_bytes(dev, &f));
    double *values = mem_alloc((size_t)f.width * sizeof *values);
    g->op->ring_get(s->base.layer[g->l].ring[RING_STREAMS], s->base.length - 1, 1, bytes);
    g->op->row_decode(dev, &f, bytes, values);
    g->op->write_f64(g->st, out, 0, 1, values);
    mem_free(values);
    mem_free(bytes);
}

int qwen38_guess(const void *model, void *state, const struct guess *a, struct err *e)
{
    const struct qwen38_model *m = model;
    struct qwen38_state *s = state;
    struct guess_row r;
    struct step step = {.stream = a->stream, .scratch = a->scratch, .state = &state};
    struct stage g = qwen38_stage(m, &step, 1);
    row_make(s, a->token, s->base.length - 1 + a->index, &r);
    qwen38_at_layer(&g, m->shape.L);
    const int rc = block_state_reserve(&s->base, g.l, r.pos + 1, r.pos + 2, e); /* row i comes with token i + 1 */
    if (rc) return rc;
    g.rows = &r.rows;
    g.op->set_rows(g.st, g.rows);
    qwen38_segments(&g, NULL);
    if (a->index == 0)
        last_streams(&g, s, g.b[S_BEFORE]);
    else
        g.op->gather(g.st, &(struct gather_args){.x = g.b[S_DRAFT], .out = g.b[S_BEFORE], .row = (int[]){0}, .n = 1});
    g.streams = g.b[S_DRAFT];
    draft_enter(&g, g.b[S_BEFORE]);
    qwen38_layer_stages(&g);
    qwen38_mix(&g, g.streams, &m->draft.head);
    qwen38_product(&g, INPUT_MIXED, true, &m->output, a->logits);
    return dev_error(g.st, e);
}
