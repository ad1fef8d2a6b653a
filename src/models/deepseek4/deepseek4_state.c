/* Session state of spec deepseek-v4 4.2: per layer a ring of raw rows, rings of the compressors' inputs, and stores of
 * compressed rows. */
#include "models/deepseek4/deepseek4_internal.h"
#include "base/mem.h"

/* ---------------------------------------------------------------- what a layer keeps */

static bool ring_describe(const void *model, int l, int id, struct ring_desc *d)
{
    const struct deepseek4_model *m = model;
    const struct deepseek4_shape *s = &m->shape;
    const struct deepseek4_layer_shape *y = &s->layer[l];
    const bool index = id == RING_INDEX_KV || id == RING_INDEX_SCORE;
    if (id == RING_RAW) {
        *d = (struct ring_desc){.fmt = s->kv_row, .span = s->W, .slack = m->draft_max};
        return true;
    }
    if (id >= RING_COUNT || !y->ratio || (index && !y->indexed)) return false;
    const int c = y->indexed ? 2 : 1, w = index ? s->ID : s->d;
    *d = (struct ring_desc){.fmt = {.kind = ROWFMT_F32, .width = c * w}, .span = c * y->ratio, .slack = m->draft_max};
    return true;
}

static bool store_describe(const void *model, int l, int id, struct row_format *f)
{
    const struct deepseek4_model *m = model;
    const struct deepseek4_layer_shape *y = &m->shape.layer[l];
    *f = id == STORE_KV ? m->shape.kv_row : m->shape.index_row;
    return id == STORE_KV ? y->ratio != 0 : id == STORE_INDEX && y->indexed;
}

static int64_t store_rows(const void *model, int l, int id, int pos)
{
    const int ratio = ((const struct deepseek4_model *)model)->shape.layer[l].ratio;
    return ratio ? pos / ratio : 0;
}

static int ring_needed(const void *model, int l, int id, int pos, int *first)
{
    const struct deepseek4_model *m = model;
    const struct deepseek4_layer_shape *y = &m->shape.layer[l];
    if (id == RING_RAW)
        *first = pos - (m->shape.W - 1);
    else
        *first = pos / y->ratio * y->ratio - (y->indexed ? y->ratio : 0);
    if (*first < 0) *first = 0;
    return pos - *first;
}

void deepseek4_layout(struct deepseek4_model *m)
{
    m->layout = (struct state_layout){.dev = m->dev,
                                      .layers = m->shape.L,
                                      .draft_max = m->draft_max,
                                      .model = m,
                                      .ring = ring_describe,
                                      .store = store_describe,
                                      .store_rows = store_rows,
                                      .ring_needed = ring_needed};
}

/* ---------------------------------------------------------------- the family's functions */

static const struct state_layout *layout(const void *model)
{
    return &((const struct deepseek4_model *)model)->layout;
}

size_t deepseek4_state_bytes(const void *model, int ctx)
{
    return block_state_bytes(layout(model), ctx);
}

int deepseek4_state_create(const void *model, int ctx, void **state, struct err *e)
{
    struct deepseek4_state *s = mem_alloc(sizeof *s);
    const int rc = block_state_open(layout(model), ctx, &s->base, e);
    if (rc)
        mem_free(s);
    else
        *state = s;
    return rc;
}

void deepseek4_state_free(void *state)
{
    struct deepseek4_state *s = state;
    if (s) block_state_free(&s->base);
    mem_free(s);
}

int deepseek4_state_fork(void *dst, const void *src, struct err *e)
{
    return block_state_fork(&((struct deepseek4_state *)dst)->base, &((const struct deepseek4_state *)src)->base, e);
}

size_t deepseek4_anchor_bytes_at(const void *model, int pos)
{
    return block_state_anchor_bytes(layout(model), pos);
}

size_t deepseek4_anchor_bytes(const void *state)
{
    const struct deepseek4_state *s = state;
    return block_state_anchor_bytes(s->base.of, s->base.length);
}

void deepseek4_anchor_take(const void *state, void *dst)
{
    block_state_anchor_take(&((const struct deepseek4_state *)state)->base, dst);
}

void deepseek4_anchor_restore(void *state, int pos, const void *src)
{
    block_state_anchor_restore(&((struct deepseek4_state *)state)->base, pos, src);
}

size_t deepseek4_rows_bytes_at(const void *model, int pos)
{
    return block_state_rows_bytes(layout(model), pos);
}
