/* Scratch rows of one layer call, and what operations need beside them. */
#include "models/qwen38/qwen38_internal.h"

static int most_experts(const struct qwen38_shape *s, bool used)
{
    int most = 1;
    for (int l = 0; l < s->blocks; l++) most = scratch_larger(most, used ? s->layer[l].K : s->layer[l].NE);
    return most;
}

/* Groups and width of the float buffers; width 0: not of this kind. */
static struct buf_desc float_rows(const struct qwen38_shape *s, int id, int T)
{
    const bool draft = s->blocks > s->L;
    switch (id) {
    case S_FLAT:
    case S_GATES:
    case S_HEAD:
        return scratch_floats(T, s->hc, s->E);
    case S_DRAFT:
        return scratch_floats(T, s->hc, draft ? s->E : 0);
    case S_LOW:
        return scratch_floats(T, 1, s->rho);
    case S_INJECT:
        return scratch_floats(T, 1, s->hc);
    case S_MIXED:
    case S_Y:
        return scratch_floats(T, 1, s->E);
    case S_U:
    case S_C:
        return scratch_floats(T, 1, (2 * s->Hk + s->Hv) * s->Dl);
    case S_Z:
    case S_STATE:
        return scratch_floats(T, s->Hv, s->Dl);
    case S_BETA:
    case S_ALPHA:
        return scratch_floats(T, 1, s->Hv);
    case S_Q:
    case S_GATE:
        return scratch_floats(T, s->H, s->D);
    case S_K:
    case S_V:
        return scratch_floats(T, s->Hkv, s->D);
    case S_INDEX_K:
        return scratch_floats(T, 1, s->Di);
    case S_INDEX_Q:
        return scratch_floats(T, s->Hi, s->q ? s->Di : 0);
    case S_ROUTER:
        return scratch_floats(T, 1, most_experts(s, false));
    case S_WEIGHTS:
        return scratch_floats(T, 1, most_experts(s, true));
    case S_SHARED:
        return scratch_floats(T, 1, 1);
    default:
        return scratch_floats(T, 1, 0);
    }
}

static struct buf_desc describe(const void *model, int id, int T)
{
    const struct qwen38_shape *s = &((const struct qwen38_model *)model)->shape;
    if (id == S_SELECT) return scratch_ints(T, s->q ? 1 + s->Kb : 0);
    if (id == S_IDS) return scratch_ints(T, most_experts(s, true));
    return float_rows(s, id, T);
}

static int input_of(const void *model, int input, int *groups, unsigned *formats)
{
    static const enum qwen38_scratch_id rows_of[INPUT_COUNT] = {
        [INPUT_STREAMS] = S_FLAT, [INPUT_LOW] = S_LOW,       [INPUT_MIXED] = S_MIXED, [INPUT_HEADS] = S_Q,
        [INPUT_STATE] = S_STATE,  [INPUT_MEMORY] = S_MEMORY, [INPUT_EMBED] = S_EMBED, [INPUT_HIDDEN] = S_FLAT};
    const struct qwen38_model *m = model;
    *groups = input == INPUT_HIDDEN ? m->shape.hc : 1;
    *formats = m->formats[input];
    return rows_of[input];
}

void qwen38_scratch_layout(struct qwen38_model *m)
{
    m->rows = (struct scratch_layout){.dev = m->dev,
                                      .model = m,
                                      .bufs = S_COUNT,
                                      .inputs = INPUT_COUNT,
                                      .rings = RING_COUNT,
                                      .stores = STORE_COUNT,
                                      .scans = 1,
                                      .buf = describe,
                                      .input = input_of};
}

/* Of struct qwen38_work. */
static size_t work_row_bytes(const struct qwen38_shape *s)
{
    const size_t draft = s->blocks > s->L ? 11 * sizeof(int32_t) + sizeof(int) : 0;
    return 3 * sizeof(int32_t) + (size_t)s->Np * sizeof(uint32_t) + (size_t)s->E * sizeof(float) + draft;
}

size_t qwen38_scratch_bytes(const void *model, int n_rows, int n_segments)
{
    const struct qwen38_model *m = model;
    return block_scratch_bytes(&m->rows, n_rows, n_segments) + (size_t)n_rows * work_row_bytes(&m->shape);
}

int qwen38_scratch_create(const void *model, int n_rows, int n_segments, void **scratch, struct err *e)
{
    return block_scratch_create(&((const struct qwen38_model *)model)->rows, n_rows, n_segments, scratch, e);
}

bool qwen38_work(const void *model, int l, int n_rows, int n_segments, int ctx, struct moe_args *moe,
                 struct work_desc *d)
{
    const struct qwen38_model *m = model;
    const struct qwen38_shape *s = &m->shape;
    if (l >= s->blocks) return false;
    const struct qwen38_layer *w = &m->layer[l];
    *moe = (struct moe_args){.k = s->layer[l].K,
                             .experts = m->experts,
                             .layer = l,
                             .shared_gate = w->shared_gate.mat,
                             .shared_up = w->shared_up.mat,
                             .shared_down = w->shared_down.mat};
    *d = (struct work_desc){.rows = n_rows,
                            .segments = n_segments,
                            .ctx = ctx,
                            .values =
                                scratch_larger(scratch_larger(s->hc * s->E, s->H * s->D), (2 * s->Hk + s->Hv) * s->Dl),
                            .heads = s->H,
                            .kv_heads = s->layer[l].recurrent ? 0 : s->Hkv,
                            .width = s->D,
                            .block = s->q,
                            .ratio = s->layer[l].recurrent ? 0 : s->q,
                            .top_k = s->layer[l].recurrent ? 0 : s->Kb,
                            .index_heads = s->Hi,
                            .index_width = s->Di,
                            .scan_width = s->layer[l].recurrent ? s->Dl : 0,
                            .moe = moe};
    return true;
}
