/* Session state of spec qwen38 4.1. Recurrent layers: the inputs of the short convolution and the matrices; attention
 * layers: rows of keys and values, raw keys of the incomplete block, keys of blocks. The n-gram layer keeps the inputs
 * of its convolution. A draft block is an attention layer one position behind, with the streams of the last token. On
 * the host: the last tokens, for the n-gram hash, with their rope positions. */
#include "models/qwen38/qwen38_internal.h"
#include "base/mem.h"
#include <string.h>

/* ---------------------------------------------------------------- what a layer keeps */

static bool drafts(const struct qwen38_model *m, int l)
{
    return l >= m->shape.L;
}

/* Rows before the present one that a ring must still hold, and their width; false: no such ring. */
static bool ring_span(const struct qwen38_model *m, int l, int id, int *span, int *width)
{
    const struct qwen38_shape *s = &m->shape;
    const bool recurrent = s->layer[l].recurrent;
    switch (id) {
    case RING_CONV:
        *span = s->Kc - 1, *width = (2 * s->Hk + s->Hv) * s->Dl;
        return recurrent && *span > 0;
    case RING_INDEX:
        *span = s->q, *width = s->Di;
        return !recurrent && s->q;
    case RING_STREAMS: /* of the n-gram convolution, or the draft's shift */
        *span = l == s->lp ? (s->Kp - 1) * s->G : 1, *width = s->hc * s->E;
        return (l == s->lp && *span > 0) || drafts(m, l);
    default:
        return false;
    }
}

static bool ring_describe(const void *model, int l, int id, struct ring_desc *d)
{
    const struct qwen38_model *m = model;
    int span, width;
    if (!ring_span(m, l, id, &span, &width)) return false;
    *d = (struct ring_desc){.fmt = {.kind = ROWFMT_F32, .width = width}, .span = span, .slack = m->draft_max};
    return true;
}

static bool store_describe(const void *model, int l, int id, struct row_format *f)
{
    const struct qwen38_shape *s = &((const struct qwen38_model *)model)->shape;
    *f = id == STORE_KV ? s->kv_row : s->block_row;
    return !s->layer[l].recurrent && (id == STORE_KV || (id == STORE_BLOCK && s->q));
}

static bool scan_describe(const void *model, int l, struct scan_desc *d)
{
    const struct qwen38_model *m = model;
    const struct qwen38_shape *s = &m->shape;
    *d = (struct scan_desc){.key_heads = s->Hk, .value_heads = s->Hv, .width = s->Dl, .slack = m->draft_max};
    return s->layer[l].recurrent;
}

/* Tokens of which a layer has rows: the draft's last one waits for the next token. */
static int layer_tokens(const struct qwen38_model *m, int l, int pos)
{
    return drafts(m, l) && pos > 0 ? pos - 1 : pos;
}

static int64_t store_rows(const void *model, int l, int id, int pos)
{
    const struct qwen38_model *m = model;
    const int n = layer_tokens(m, l, pos);
    return id == STORE_KV ? n : m->shape.q ? n / m->shape.q : 0;
}

static int ring_needed(const void *model, int l, int id, int pos, int *first)
{
    const struct qwen38_model *m = model;
    const int n = id == RING_STREAMS ? pos : layer_tokens(m, l, pos);
    int span, width;
    ring_span(m, l, id, &span, &width);
    *first = id == RING_INDEX ? n / m->shape.q * m->shape.q : n - span;
    if (*first < 0) *first = 0;
    return n - *first;
}

void qwen38_layout(struct qwen38_model *m)
{
    m->layout = (struct state_layout){.dev = m->dev,
                                      .layers = m->shape.blocks,
                                      .draft_max = m->draft_max,
                                      .model = m,
                                      .ring = ring_describe,
                                      .store = store_describe,
                                      .scan = scan_describe,
                                      .store_rows = store_rows,
                                      .ring_needed = ring_needed};
}

static const struct state_layout *layout(const void *model)
{
    return &((const struct qwen38_model *)model)->layout;
}

/* ---------------------------------------------------------------- the last tokens */

int qwen38_past_count(const struct qwen38_shape *s)
{
    const int grams = s->G - 1, block = s->q;
    return grams > block ? grams : block;
}

const struct qwen38_past *qwen38_past_at(const struct qwen38_state *s, int pos)
{
    return &s->past[pos % qwen38_past_count(&s->model->shape)];
}

static size_t past_bytes(const void *model)
{
    const struct qwen38_model *m = model;
    return (size_t)qwen38_past_count(&m->shape) * sizeof(struct qwen38_past);
}

/* ---------------------------------------------------------------- life */

size_t qwen38_state_bytes(const void *model, int ctx)
{
    return sizeof(struct qwen38_state) + past_bytes(model) + block_state_bytes(layout(model), ctx);
}

int qwen38_state_create(const void *model, int ctx, void **state, struct err *e)
{
    struct qwen38_state *s = mem_alloc(sizeof *s);
    s->model = model;
    s->past = mem_alloc(past_bytes(model));
    const int rc = block_state_open(layout(model), ctx, &s->base, e);
    if (rc)
        qwen38_state_free(s);
    else
        *state = s;
    return rc;
}

void qwen38_state_free(void *state)
{
    struct qwen38_state *s = state;
    if (!s) return;
    block_state_free(&s->base);
    mem_free(s->past);
    mem_free(s);
}

int qwen38_state_fork(void *dst, const void *src, struct err *e)
{
    struct qwen38_state *a = dst;
    const struct qwen38_state *b = src;
    memcpy(a->past, b->past, past_bytes(b->model));
    return block_state_fork(&a->base, &b->base, e);
}

static void past_append(struct qwen38_state *s, const struct rows *r, const struct segment *seg, int n)
{
    const int most = qwen38_past_count(&s->model->shape);
    for (int i = n > most ? n - most : 0; i < n; i++) {
        struct qwen38_past *p = &s->past[(seg->pos0 + i) % most];
        p->token = r->token[seg->row0 + i];
        memcpy(p->rope, r->rope_pos + 3 * (size_t)(seg->row0 + i), sizeof p->rope);
    }
}

int qwen38_commit(const void *model, struct step *step, int segment, int n, struct err *e)
{
    (void)model, (void)e;
    struct qwen38_state *s = step->state[segment];
    const struct segment *seg = &step->rows.segments[segment];
    block_state_commit(&s->base, step->stream, seg, n);
    past_append(s, &step->rows, seg, n);
    qwen38_work_done(step, segment);
    return 0;
}

/* ---------------------------------------------------------------- anchors and rows */

size_t qwen38_anchor_bytes_at(const void *model, int pos)
{
    return past_bytes(model) + block_state_anchor_bytes(layout(model), pos);
}

size_t qwen38_anchor_bytes(const void *state)
{
    const struct qwen38_state *s = state;
    return qwen38_anchor_bytes_at(s->model, s->base.length);
}

void qwen38_anchor_take(const void *state, void *dst)
{
    const struct qwen38_state *s = state;
    const size_t n = past_bytes(s->model);
    memcpy(dst, s->past, n);
    block_state_anchor_take(&s->base, (unsigned char *)dst + n);
}

void qwen38_anchor_restore(void *state, int pos, const void *src)
{
    struct qwen38_state *s = state;
    const size_t n = past_bytes(s->model);
    memcpy(s->past, src, n);
    block_state_anchor_restore(&s->base, pos, (const unsigned char *)src + n);
}

size_t qwen38_rows_bytes_at(const void *model, int pos)
{
    return block_state_rows_bytes(layout(model), pos);
}
