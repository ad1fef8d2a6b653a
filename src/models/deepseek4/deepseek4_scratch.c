/* Scratch rows of one layer call: a table of buffers whose sum is part of the memory plan. */
#include "models/deepseek4/deepseek4_internal.h"

static int most_experts(const struct deepseek4_shape *s, bool used)
{
    int most = 1;
    for (int l = 0; l < s->L; l++) most = scratch_larger(most, used ? s->layer[l].K : s->layer[l].E);
    return most;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Values in the projected rows of the widest compressor; 0: there is none. */
static int lane_width(const struct deepseek4_shape *s)
{
    int most = 0;
    for (int l = 0; l < s->L; l++)
        if (s->layer[l].ratio)
            most = scratch_larger(most, s->layer[l].indexed ? 2 * scratch_larger(s->d, s->ID) : s->d);
    return most;
}

/* Description of buffer id for T rows; width 0: the model needs none. */
static struct buf_desc describe(const void *model, int id, int T)
{
    const struct deepseek4_shape *s = &((const struct deepseek4_model *)model)->shape;
    const int P = smaller(T, DEEPSEEK4_PART);
    bool indexed = false;
    for (int l = 0; l < s->L; l++) indexed |= s->layer[l].indexed;
    switch ((enum deepseek4_scratch_id)id) {
    case S_HEAD:
        return scratch_floats(smaller(T, DEEPSEEK4_HEADS), 1, s->n * s->D);
    case S_MIX:
        return scratch_floats(T, 1, 2 * s->n + s->n * s->n);
    case S_XN:
        return scratch_floats(T, 1, s->D);
    case S_QR:
        return scratch_floats(T, 1, s->Rq);
    case S_Q:
        return scratch_floats(P, s->H, s->d);
    case S_KV:
        return scratch_floats(T, 1, s->d);
    case S_RAW:
        return (struct buf_desc){.kind = BUF_PACKED, .rows = T, .groups = 1, .width = s->d, .fmt = s->kv_row};
    case S_LANE_KV:
    case S_LANE_GATE:
        return scratch_floats(T, 1, lane_width(s));
    case S_INDEX_Q:
        return scratch_floats(P, s->IH, indexed ? s->ID : 0);
    case S_INDEX_W:
        return scratch_floats(P, 1, indexed ? s->IH : 0);
    case S_SELECT:
        return scratch_ints(P, indexed ? 1 + s->IK : 0);
    case S_LOW:
        return scratch_floats(P, 1, s->G * s->Ro);
    case S_ROUTER:
        return scratch_floats(T, 1, most_experts(s, false));
    case S_IDS:
        return scratch_ints(T, most_experts(s, true));
    case S_WEIGHTS:
        return scratch_floats(T, 1, most_experts(s, true));
    case S_COUNT:
        break;
    }
    return scratch_floats(T, 1, 0);
}

/* Where the rows of an input are, and how its quantised forms are cut. */
static const enum deepseek4_scratch_id rows_of[INPUT_COUNT] = {
    [INPUT_NORMED] = S_XN, [INPUT_QR] = S_QR, [INPUT_HEADS] = S_Q, [INPUT_LOW] = S_LOW, [INPUT_HEAD] = S_XN};

static int input_of(const void *model, int input, int *groups, unsigned *formats)
{
    const struct deepseek4_model *m = model;
    *groups = input == INPUT_HEADS ? m->shape.G : 1;
    *formats = m->formats[input];
    return rows_of[input];
}

void deepseek4_scratch_layout(struct deepseek4_model *m)
{
    m->rows = (struct scratch_layout){.dev = m->dev,
                                      .model = m,
                                      .bufs = S_COUNT,
                                      .inputs = INPUT_COUNT,
                                      .views = VIEW_COUNT,
                                      .rings = RING_COUNT,
                                      .stores = STORE_COUNT,
                                      .buf = describe,
                                      .input = input_of};
}

size_t deepseek4_scratch_bytes(const void *model, int n_rows, int n_segments)
{
    return block_scratch_bytes(&((const struct deepseek4_model *)model)->rows, n_rows, n_segments);
}

int deepseek4_scratch_create(const void *model, int n_rows, int n_segments, void **scratch, struct err *e)
{
    return block_scratch_create(&((const struct deepseek4_model *)model)->rows, n_rows, n_segments, scratch, e);
}

bool deepseek4_work(const void *model, int l, int n_rows, int n_segments, int ctx, struct moe_args *moe,
                    struct work_desc *d)
{
    const struct deepseek4_model *m = model;
    const struct deepseek4_shape *s = &m->shape;
    if (l >= s->L) return false;
    const struct deepseek4_layer_shape *y = &s->layer[l];
    const struct deepseek4_layer *w = &m->layer[l];
    *moe = (struct moe_args){.k = y->K,
                             .experts = m->experts,
                             .layer = l,
                             .shared_gate = w->shared_gate.mat,
                             .shared_up = w->shared_up.mat,
                             .shared_down = w->shared_down.mat};
    *d = (struct work_desc){.rows = n_rows,
                            .segments = n_segments,
                            .ctx = ctx,
                            .values = scratch_larger(scratch_larger(s->n * s->D, s->H * s->d), s->G * s->Ro),
                            .heads = s->H,
                            .width = s->d,
                            .window = s->W,
                            .pairs = s->r / 2,
                            .ratio = y->ratio,
                            .wide = y->indexed ? 2 * scratch_larger(s->d, s->ID) : s->d,
                            .top_k = y->indexed ? s->IK : 0,
                            .index_heads = s->IH,
                            .index_width = s->ID,
                            .streams = s->n,
                            .moe = moe};
    return true;
}
