/* The family table of DeepSeek V4, and the life of a bound model. */
#include "models/deepseek4/deepseek4.h"
#include "models/deepseek4/deepseek4_internal.h"
#include "models/deepseek4/deepseek4_prompt.h"
#include "base/mem.h"

static void unbind(void *model)
{
    struct deepseek4_model *m = model;
    if (!m) return;
    deepseek4_weights_free(m);
    if (m->rope_plain) m->dev->op->rope_free(m->rope_plain);
    if (m->rope_compressed) m->dev->op->rope_free(m->rope_compressed);
    deepseek4_shape_free(&m->shape);
    mem_free(m);
}

static int ropes_make(const struct canonical *c, struct deepseek4_model *m, struct err *e)
{
    const int pairs = m->shape.r / 2;
    double *freq = mem_alloc((size_t)(pairs + 1) * sizeof *freq);
    const struct rope_desc rope = {.freq = freq, .pairs = pairs};
    deepseek4_frequencies(c, m->shape.r, false, freq);
    m->rope_plain = m->dev->op->rope_create(m->dev, &rope);
    deepseek4_frequencies(c, m->shape.r, true, freq);
    m->rope_compressed = m->dev->op->rope_create(m->dev, &rope);
    mem_free(freq);
    return m->rope_plain && m->rope_compressed ? 0 : err_set(e, ERR_MEMORY, "out of memory for rotation tables");
}

static int bind(const struct canonical *c, const struct plan *plan, const struct bind_options *o, void **model,
                struct err *e)
{
    struct deepseek4_model *m = mem_alloc(sizeof *m);
    m->dev = plan_device(plan, 0, PART_DENSE);
    m->draft_max = o->draft_max;
    int rc = deepseek4_shape_read(c, o, &m->shape, e);
    if (!rc) rc = ropes_make(c, m, e);
    if (!rc) rc = deepseek4_weights_bind(c, m, e);
    deepseek4_layout(m);
    deepseek4_scratch_layout(m);
    if (rc) {
        unbind(m);
        return rc;
    }
    *model = m;
    return 0;
}

static int n_layers(const void *model)
{
    return ((const struct deepseek4_model *)model)->shape.L;
}

static int n_vocab(const void *model)
{
    return ((const struct deepseek4_model *)model)->shape.V;
}

static int carry(const void *model, int n_rows, struct buf_desc part[])
{
    const struct deepseek4_shape *s = &((const struct deepseek4_model *)model)->shape;
    part[0] = (struct buf_desc){.kind = BUF_FLOAT, .rows = n_rows, .groups = s->n, .width = s->D};
    return 1;
}

static void describe(const void *model, struct str *out)
{
    const struct deepseek4_shape *s = &((const struct deepseek4_model *)model)->shape;
    int n[3] = {0, 0, 0};
    for (int l = 0; l < s->L; l++) n[s->layer[l].indexed ? 1 : s->layer[l].ratio ? 2 : 0]++;
    str_printf(out, "layers %d (%d plain, %d indexed, %d compressed), width %d, vocabulary %d\n", s->L, n[0], n[1],
               n[2], s->D, s->V);
    str_printf(out, "attention %d heads x %d (%d rotated), window %d, query rank %d, %d output groups of rank %d\n",
               s->H, s->d, s->r, s->W, s->Rq, s->G, s->Ro);
    str_printf(out, "indexer %d heads x %d, top %d; streams %d\n", s->IH, s->ID, s->IK, s->n);
    str_printf(out, "experts %d, %d per token\n", s->layer[0].E, s->layer[0].K);
}

const struct family deepseek4_family = {
    .name = "deepseek4",
    .bind = bind,
    .unbind = unbind,
    .n_layers = n_layers,
    .n_vocab = n_vocab,
    .describe = describe,
    .cost = deepseek4_cost,
    .carry = carry,
    .scratch_bytes = deepseek4_scratch_bytes,
    .scratch_create = deepseek4_scratch_create,
    .scratch_free = block_scratch_free,
    .work = deepseek4_work,
    .state_bytes = deepseek4_state_bytes,
    .state_create = deepseek4_state_create,
    .state_free = deepseek4_state_free,
    .state_fork = deepseek4_state_fork,
    .state_length = block_state_length,
    .prepare = deepseek4_prepare,
    .embed = deepseek4_embed,
    .layer = deepseek4_layer_run,
    .head = deepseek4_head,
    .commit = deepseek4_commit,
    .rewind = block_state_rewind,
    .anchor_bytes = deepseek4_anchor_bytes,
    .anchor_bytes_at = deepseek4_anchor_bytes_at,
    .anchor_take = deepseek4_anchor_take,
    .anchor_restore = deepseek4_anchor_restore,
    .rows_bytes = block_state_rows_held,
    .rows_take = block_state_rows_take,
    .rows_bytes_at = deepseek4_rows_bytes_at,
    .rows_restore = block_state_rows_restore,
    .prompt = &deepseek4_prompt,
};
