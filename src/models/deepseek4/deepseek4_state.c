/* Session state of spec deepseek-v4 4.2: per layer a ring of raw rows, rings of the compressors' inputs, and stores of
 * compressed rows. Rings are addressed by absolute position, stores by index; what is committed is a counter. */
#include "models/deepseek4/deepseek4_internal.h"
#include "base/mem.h"

/* ---------------------------------------------------------------- what a layer keeps */

/* Description of ring `id` of layer l; false: the layer has none. */
static bool ring_describe(const struct deepseek4_model *m, int l, int id, struct ring_desc *d)
{
    const struct deepseek4_shape *s = &m->shape;
    const struct deepseek4_layer_shape *y = &s->layer[l];
    const bool index = id == RING_INDEX_KV || id == RING_INDEX_SCORE;
    if (id == RING_RAW) {
        *d = (struct ring_desc){.fmt = s->kv_row, .span = s->W, .slack = m->draft_max};
        return true;
    }
    if (!y->ratio || (index && !y->indexed)) return false;
    const int c = y->indexed ? 2 : 1, w = index ? s->ID : s->d;
    *d = (struct ring_desc){.fmt = {.kind = ROWFMT_F32, .width = c * w}, .span = c * y->ratio, .slack = m->draft_max};
    return true;
}

static bool store_describe(const struct deepseek4_model *m, int l, int id, struct row_format *f)
{
    const struct deepseek4_layer_shape *y = &m->shape.layer[l];
    *f = id == STORE_KV ? m->shape.kv_row : m->shape.index_row;
    return id == STORE_KV ? y->ratio != 0 : y->indexed;
}

size_t deepseek4_state_bytes(const void *model, int ctx)
{
    const struct deepseek4_model *m = model;
    const struct dev_ops *op = m->dev->op;
    size_t sum = sizeof(struct deepseek4_state) + (size_t)m->shape.L * sizeof(struct deepseek4_layer_state);
    for (int l = 0; l < m->shape.L; l++) {
        struct ring_desc d;
        struct row_format f;
        for (int i = 0; i < RING_COUNT; i++)
            if (ring_describe(m, l, i, &d)) sum += op->ring_bytes(m->dev, &d);
        for (int i = 0; i < STORE_COUNT; i++)
            if (store_describe(m, l, i, &f)) sum += op->store_bytes(m->dev, &f, ctx / m->shape.layer[l].ratio + 1);
    }
    return sum;
}

static bool layer_state_create(const struct deepseek4_model *m, int l, struct deepseek4_layer_state *y)
{
    const struct dev_ops *op = m->dev->op;
    struct ring_desc d;
    struct row_format f;
    for (int i = 0; i < RING_COUNT; i++)
        if (ring_describe(m, l, i, &d) && !(y->ring[i] = op->ring_create(m->dev, &d))) return false;
    for (int i = 0; i < STORE_COUNT; i++)
        if (store_describe(m, l, i, &f) && !(y->store[i] = op->store_create(m->dev, &f))) return false;
    return true;
}

int deepseek4_state_create(const void *model, int ctx, void **state, struct err *e)
{
    const struct deepseek4_model *m = model;
    struct deepseek4_state *s = mem_alloc(sizeof *s);
    s->model = m;
    s->ctx = ctx;
    s->layer = mem_try((size_t)m->shape.L * sizeof *s->layer);
    bool ok = s->layer != NULL;
    for (int l = 0; l < m->shape.L && ok; l++) ok = layer_state_create(m, l, &s->layer[l]);
    if (ok) {
        *state = s;
        return 0;
    }
    deepseek4_state_free(s);
    return err_set(e, ERR_MEMORY, "out of memory for the state of a session of %d tokens", ctx);
}

void deepseek4_state_free(void *state)
{
    struct deepseek4_state *s = state;
    if (!s) return;
    const struct dev_ops *op = s->model->dev->op;
    for (int l = 0; s->layer && l < s->model->shape.L; l++) {
        for (int i = 0; i < RING_COUNT; i++)
            if (s->layer[l].ring[i]) op->ring_free(s->layer[l].ring[i]);
        for (int i = 0; i < STORE_COUNT; i++)
            if (s->layer[l].store[i]) op->store_free(s->layer[l].store[i]);
    }
    mem_free(s->layer);
    mem_free(s);
}

int deepseek4_state_length(const void *state)
{
    return ((const struct deepseek4_state *)state)->length;
}

/* Rows of the stores of layer l that belong to the first pos tokens. */
static int64_t store_rows(const struct deepseek4_model *m, int l, int pos)
{
    return m->shape.layer[l].ratio ? pos / m->shape.layer[l].ratio : 0;
}

int deepseek4_state_fork(void *dst, const void *src, struct err *e)
{
    struct deepseek4_state *a = dst;
    const struct deepseek4_state *b = src;
    const struct dev_ops *op = a->model->dev->op;
    int rc = 0;
    for (int l = 0; l < a->model->shape.L; l++) {
        for (int i = 0; i < RING_COUNT && !rc; i++)
            if (a->layer[l].ring[i]) rc = op->ring_copy(a->layer[l].ring[i], b->layer[l].ring[i]);
        for (int i = 0; i < STORE_COUNT && !rc; i++)
            if (a->layer[l].store[i])
                rc = op->store_share(a->layer[l].store[i], b->layer[l].store[i], store_rows(b->model, l, b->length));
    }
    if (rc) return err_set(e, rc, "out of memory while forking a session of %d tokens", b->length);
    a->length = b->length;
    a->high = b->high;
    a->floor = b->floor;
    return 0;
}

/* ---------------------------------------------------------------- steps */

int deepseek4_state_prepare(struct deepseek4_state *s, const struct segment *seg, struct err *e)
{
    const struct deepseek4_model *m = s->model;
    const int end = seg->pos0 + seg->n;
    for (int l = 0; l < m->shape.L; l++)
        for (int i = 0; i < STORE_COUNT; i++) {
            if (!s->layer[l].store[i]) continue;
            if (m->dev->op->store_reserve(s->layer[l].store[i], store_rows(m, l, seg->pos0), store_rows(m, l, end)))
                return err_set(
                    e, ERR_MEMORY,
                    "out of memory for the rows of tokens %d to %d; a session needs less with a smaller context",
                    seg->pos0, end);
        }
    if (!seg->bulk) {
        if (end > s->high) s->high = end;
        if (s->high - m->draft_max > s->floor) s->floor = s->high - m->draft_max;
    }
    return 0;
}

void deepseek4_state_commit(struct deepseek4_state *s, const struct segment *seg, int n)
{
    if (!n) return;
    s->length = seg->pos0 + n;
    if (!seg->bulk) return;
    for (int l = 0; l < s->model->shape.L; l++)
        for (int i = 0; i < RING_COUNT; i++)
            if (s->layer[l].ring[i]) s->model->dev->op->ring_flip(s->layer[l].ring[i]);
    s->floor = s->high = s->length;
}

bool deepseek4_rewind(void *state, int pos)
{
    struct deepseek4_state *s = state;
    if (pos < s->floor || pos > s->length) return false;
    s->length = pos;
    return true;
}

/* ---------------------------------------------------------------- anchors */

/* Rows of ring `id` that a session of pos tokens still needs: from *first to pos - 1. */
static int ring_needed(const struct deepseek4_model *m, int l, int id, int pos, int *first)
{
    const struct deepseek4_layer_shape *y = &m->shape.layer[l];
    if (id == RING_RAW)
        *first = pos - (m->shape.W - 1);
    else
        *first = pos / y->ratio * y->ratio - (y->indexed ? y->ratio : 0);
    if (*first < 0) *first = 0;
    return pos - *first;
}

size_t deepseek4_anchor_bytes_at(const void *model, int pos)
{
    const struct deepseek4_model *m = model;
    size_t sum = 0;
    for (int l = 0; l < m->shape.L; l++)
        for (int i = 0; i < RING_COUNT; i++) {
            struct ring_desc d;
            int first;
            if (ring_describe(m, l, i, &d))
                sum += (size_t)ring_needed(m, l, i, pos, &first) * m->dev->op->row_bytes(m->dev, &d.fmt);
        }
    return sum;
}

size_t deepseek4_anchor_bytes(const void *state)
{
    const struct deepseek4_state *s = state;
    return deepseek4_anchor_bytes_at(s->model, s->length);
}

/* Copies the needed rows of every ring between the state and `bytes`. */
static void anchor_move(struct deepseek4_state *s, int pos, unsigned char *to, const unsigned char *from)
{
    const struct deepseek4_model *m = s->model;
    for (int l = 0; l < m->shape.L; l++)
        for (int i = 0; i < RING_COUNT; i++) {
            struct ring_desc d;
            int first;
            if (!ring_describe(m, l, i, &d)) continue;
            const int n = ring_needed(m, l, i, pos, &first);
            const size_t bytes = (size_t)n * m->dev->op->row_bytes(m->dev, &d.fmt);
            if (n && to) m->dev->op->ring_get(s->layer[l].ring[i], first, n, to);
            if (n && from) m->dev->op->ring_put(s->layer[l].ring[i], first, n, from);
            if (to) to += bytes;
            if (from) from += bytes;
        }
}

void deepseek4_anchor_take(const void *state, void *dst)
{
    const struct deepseek4_state *s = state;
    struct deepseek4_state view = *s; /* anchor_move reads only when it has a destination */
    anchor_move(&view, s->length, dst, NULL);
}

void deepseek4_anchor_restore(void *state, int pos, const void *src)
{
    struct deepseek4_state *s = state;
    anchor_move(s, pos, NULL, src);
    s->length = s->high = s->floor = pos;
}

/* ---------------------------------------------------------------- rows for snapshots */

size_t deepseek4_rows_bytes_at(const void *model, int pos)
{
    const struct deepseek4_model *m = model;
    size_t sum = 0;
    for (int l = 0; l < m->shape.L; l++)
        for (int i = 0; i < STORE_COUNT; i++) {
            struct row_format f;
            if (store_describe(m, l, i, &f)) sum += (size_t)store_rows(m, l, pos) * m->dev->op->row_bytes(m->dev, &f);
        }
    return sum;
}

size_t deepseek4_rows_bytes(const void *state)
{
    const struct deepseek4_state *s = state;
    return deepseek4_rows_bytes_at(s->model, s->length);
}

size_t deepseek4_rows_take(const void *state, size_t from, size_t n, void *dst)
{
    const struct deepseek4_state *s = state;
    const struct deepseek4_model *m = s->model;
    size_t begin = 0, taken = 0; /* begin: of a store among all rows */
    for (int l = 0; l < m->shape.L; l++)
        for (int i = 0; i < STORE_COUNT; i++) {
            struct row_format f;
            if (!store_describe(m, l, i, &f)) continue;
            const size_t row = m->dev->op->row_bytes(m->dev, &f), at = from + taken;
            const size_t end = begin + (size_t)store_rows(m, l, s->length) * row;
            size_t rows = at < end ? (end - at) / row : 0;
            if (rows > (n - taken) / row) rows = (n - taken) / row;
            if (rows)
                m->dev->op->store_get(s->layer[l].store[i], (int64_t)((at - begin) / row), (int64_t)rows,
                                      (unsigned char *)dst + taken);
            taken += rows * row;
            if (from + taken < end) return taken;
            begin = end;
        }
    return taken;
}

/* Room for the rows of the first pos tokens. */
static bool rows_reserve(struct deepseek4_state *s, int pos)
{
    for (int l = 0; l < s->model->shape.L; l++)
        for (int i = 0; i < STORE_COUNT; i++)
            if (s->layer[l].store[i] &&
                s->model->dev->op->store_reserve(s->layer[l].store[i], 0, store_rows(s->model, l, pos)))
                return false;
    return true;
}

int deepseek4_rows_restore(void *state, int pos, const void *src, struct err *e)
{
    struct deepseek4_state *s = state;
    const struct deepseek4_model *m = s->model;
    const unsigned char *from = src;
    if (!rows_reserve(s, pos)) return err_set(e, ERR_MEMORY, "out of memory for the rows of %d tokens", pos);
    for (int l = 0; l < m->shape.L; l++)
        for (int i = 0; i < STORE_COUNT; i++) {
            struct row_format f;
            if (!store_describe(m, l, i, &f)) continue;
            const int64_t n = store_rows(m, l, pos);
            if (n) m->dev->op->store_put(s->layer[l].store[i], 0, n, from);
            from += (size_t)n * m->dev->op->row_bytes(m->dev, &f);
        }
    return 0;
}
