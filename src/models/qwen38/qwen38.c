/* The family table of Qwen3.8, and the life of a bound model. */
#include "models/qwen38/qwen38.h"
#include "models/qwen38/qwen38_internal.h"
#include "models/qwen38/qwen38_prompt.h"
#include "base/mem.h"

static void unbind(void *model)
{
    struct qwen38_model *m = model;
    if (!m) return;
    qwen38_weights_free(m);
    if (m->rope) m->dev->op->rope_free(m->rope);
    qwen38_shape_free(&m->shape);
    mem_free(m);
}

static int bind(const struct canonical *c, const struct plan *plan, const struct bind_options *o, void **model,
                struct err *e)
{
    struct qwen38_model *m = mem_alloc(sizeof *m);
    m->dev = plan_device(plan, 0, PART_DENSE);
    m->draft_max = o->draft_max;
    int rc = qwen38_shape_read(c, o, &m->shape, e);
    if (!rc && !(m->rope = qwen38_rope(c, m->dev, &m->shape)))
        rc = err_set(e, ERR_MEMORY, "out of memory for rotation tables");
    if (!rc) rc = qwen38_weights_bind(c, m, e);
    if (rc) {
        unbind(m);
        return rc;
    }
    qwen38_layout(m);
    qwen38_scratch_layout(m);
    *model = m;
    return 0;
}

static int n_layers(const void *model)
{
    return ((const struct qwen38_model *)model)->shape.blocks;
}

static int n_vocab(const void *model)
{
    return ((const struct qwen38_model *)model)->shape.V;
}

static int carry(const void *model, int n_rows, struct buf_desc part[])
{
    const struct qwen38_shape *s = &((const struct qwen38_model *)model)->shape;
    part[0] = scratch_floats(n_rows, s->hc, s->E);
    return 1;
}

static void describe(const void *model, struct str *out)
{
    const struct qwen38_model *m = model;
    const struct qwen38_shape *s = &m->shape;
    int recurrent = 0;
    for (int l = 0; l < s->L; l++) recurrent += s->layer[l].recurrent;
    str_printf(out, "layers %d (%d recurrent, %d attention), width %d, %d streams, vocabulary %d%s\n", s->L, recurrent,
               s->L - recurrent, s->E, s->hc, s->V, s->blocks > s->L ? ", a draft block" : "");
    str_printf(out, "delta net %d value heads and %d key heads x %d, %d taps\n", s->Hv, s->Hk, s->Dl, s->Kc);
    str_printf(out, "attention %d heads and %d kv heads x %d (%d rotated)", s->H, s->Hkv, s->D, s->Rn);
    if (s->q) str_printf(out, ", indexer %d heads x %d, %d blocks of %d", s->Hi, s->Di, s->Kb, s->q);
    str_printf(out, "\nn-gram memory in layer %d: %d rows a token, up to %d tokens, table read by %s\n", s->lp, s->Np,
               s->G, rowtable_way(m->memory.table));
    str_printf(out, "experts %d, %d per token\n", s->layer[0].NE, s->layer[0].K);
}

const struct family qwen38_family = {
    .name = "qwen38",
    .bind = bind,
    .unbind = unbind,
    .n_layers = n_layers,
    .n_vocab = n_vocab,
    .describe = describe,
    .cost = qwen38_cost,
    .carry = carry,
    .scratch_bytes = qwen38_scratch_bytes,
    .scratch_create = qwen38_scratch_create,
    .scratch_free = block_scratch_free,
    .work = qwen38_work,
    .state_bytes = qwen38_state_bytes,
    .state_create = qwen38_state_create,
    .state_free = qwen38_state_free,
    .state_fork = qwen38_state_fork,
    .state_length = block_state_length,
    .prepare = qwen38_prepare,
    .embed = qwen38_embed,
    .layer = qwen38_layer_run,
    .head = qwen38_head,
    .commit = qwen38_commit,
    .has_draft = qwen38_has_draft,
    .guess = qwen38_guess,
    .rewind = block_state_rewind,
    .anchor_bytes = qwen38_anchor_bytes,
    .anchor_bytes_at = qwen38_anchor_bytes_at,
    .anchor_take = qwen38_anchor_take,
    .anchor_restore = qwen38_anchor_restore,
    .rows_bytes = block_state_rows_held,
    .rows_take = block_state_rows_take,
    .rows_bytes_at = qwen38_rows_bytes_at,
    .rows_restore = block_state_rows_restore,
    .prompt = &qwen38_prompt,
};
