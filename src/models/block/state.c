/* Session state as layers of rings, stores and scans. */
#include "models/block/state.h"
#include "base/mem.h"

/* ---------------------------------------------------------------- what a layer keeps */

static bool scan_of(const struct state_layout *of, int l, struct scan_desc *d)
{
    return of->scan && of->scan(of->model, l, d);
}

size_t block_state_bytes(const struct state_layout *of, int ctx)
{
    const struct dev_ops *op = of->dev->op;
    size_t sum = sizeof(struct block_state) + (size_t)of->layers * sizeof(struct state_layer);
    for (int l = 0; l < of->layers; l++) {
        struct ring_desc d;
        struct row_format f;
        struct scan_desc c;
        for (int i = 0; i < STATE_RINGS; i++)
            if (of->ring(of->model, l, i, &d)) sum += op->ring_bytes(of->dev, &d);
        for (int i = 0; i < STATE_STORES; i++)
            if (of->store(of->model, l, i, &f))
                sum += op->store_bytes(of->dev, &f, of->store_rows(of->model, l, i, ctx) + 1);
        if (scan_of(of, l, &c)) sum += op->scan_bytes(of->dev, &c);
    }
    return sum;
}

static bool layer_create(const struct state_layout *of, int l, struct state_layer *y)
{
    const struct dev_ops *op = of->dev->op;
    struct ring_desc d;
    struct row_format f;
    struct scan_desc c;
    for (int i = 0; i < STATE_RINGS; i++)
        if (of->ring(of->model, l, i, &d) && !(y->ring[i] = op->ring_create(of->dev, &d))) return false;
    for (int i = 0; i < STATE_STORES; i++)
        if (of->store(of->model, l, i, &f) && !(y->store[i] = op->store_create(of->dev, &f))) return false;
    return !scan_of(of, l, &c) || (y->scan = op->scan_create(of->dev, &c));
}

int block_state_open(const struct state_layout *of, int ctx, struct block_state *s, struct err *e)
{
    *s = (struct block_state){.of = of, .ctx = ctx};
    s->layer = mem_try((size_t)of->layers * sizeof *s->layer);
    bool ok = s->layer != NULL;
    for (int l = 0; l < of->layers && ok; l++) ok = layer_create(of, l, &s->layer[l]);
    if (ok) return 0;
    block_state_free(s);
    return err_set(e, ERR_MEMORY, "out of memory for the state of a session of %d tokens", ctx);
}

void block_state_free(struct block_state *s)
{
    for (int l = 0; s->layer && l < s->of->layers; l++) {
        const struct dev_ops *op = s->of->dev->op;
        for (int i = 0; i < STATE_RINGS; i++)
            if (s->layer[l].ring[i]) op->ring_free(s->layer[l].ring[i]);
        for (int i = 0; i < STATE_STORES; i++)
            if (s->layer[l].store[i]) op->store_free(s->layer[l].store[i]);
        if (s->layer[l].scan) op->scan_free(s->layer[l].scan);
    }
    mem_free(s->layer);
    s->layer = NULL;
}

static int layer_fork(const struct state_layout *of, int l, int length, struct state_layer *a,
                      const struct state_layer *b)
{
    const struct dev_ops *op = of->dev->op;
    int rc = 0;
    for (int i = 0; i < STATE_RINGS && !rc; i++)
        if (a->ring[i]) rc = op->ring_copy(a->ring[i], b->ring[i]);
    for (int i = 0; i < STATE_STORES && !rc; i++)
        if (a->store[i]) rc = op->store_share(a->store[i], b->store[i], of->store_rows(of->model, l, i, length));
    if (a->scan && !rc) rc = op->scan_copy(a->scan, b->scan);
    return rc;
}

int block_state_fork(struct block_state *a, const struct block_state *b, struct err *e)
{
    int rc = 0;
    for (int l = 0; l < a->of->layers && !rc; l++) rc = layer_fork(a->of, l, b->length, &a->layer[l], &b->layer[l]);
    if (rc) return err_set(e, rc, "out of memory while forking a session of %d tokens", b->length);
    a->length = b->length;
    a->high = b->high;
    a->floor = b->floor;
    return 0;
}

/* ---------------------------------------------------------------- steps */

static bool layer_reserve(struct block_state *s, int l, int from, int to)
{
    const struct state_layout *of = s->of;
    for (int i = 0; i < STATE_STORES; i++)
        if (s->layer[l].store[i] &&
            of->dev->op->store_reserve(s->layer[l].store[i], of->store_rows(of->model, l, i, from),
                                       of->store_rows(of->model, l, i, to)))
            return false;
    return true;
}

/* Makes the rows of tokens [from, to) writable. */
static bool stores_reserve(struct block_state *s, int from, int to)
{
    for (int l = 0; l < s->of->layers; l++)
        if (!layer_reserve(s, l, from, to)) return false;
    return true;
}

int block_state_reserve(struct block_state *s, int l, int from, int to, struct err *e)
{
    if (layer_reserve(s, l, from, to)) return 0;
    return err_set(e, ERR_MEMORY, "out of memory for the rows of tokens %d to %d", from, to);
}

int block_state_prepare(struct block_state *s, const struct segment *seg, struct err *e)
{
    const int end = seg->pos0 + seg->n;
    if (!stores_reserve(s, seg->pos0, end))
        return err_set(e, ERR_MEMORY,
                       "out of memory for the rows of tokens %d to %d; a session needs less with a smaller context",
                       seg->pos0, end);
    s->replayed = 0;
    if (!seg->bulk) {
        if (end > s->high) s->high = end;
        if (s->high - s->of->draft_max > s->floor) s->floor = s->high - s->of->draft_max;
    }
    return 0;
}

/* Scans: the bank that the step has written, if it is kept as a whole; else its rows one by one. */
static void scans_commit(struct block_state *s, struct dev_stream *stream, const struct segment *seg, int n)
{
    const struct dev_ops *op = s->of->dev->op;
    const bool whole = n == seg->n && s->replayed == 0;
    for (int l = 0; l < s->of->layers; l++) {
        if (!s->layer[l].scan) continue;
        if (whole)
            op->scan_flip(s->layer[l].scan);
        else
            op->scan_replay(stream, s->layer[l].scan, s->replayed, n);
    }
    s->replayed = n;
}

void block_state_commit(struct block_state *s, struct dev_stream *stream, const struct segment *seg, int n)
{
    if (!n) return;
    s->length = seg->pos0 + n;
    scans_commit(s, stream, seg, n);
    if (!seg->bulk) return;
    for (int l = 0; l < s->of->layers; l++)
        for (int i = 0; i < STATE_RINGS; i++)
            if (s->layer[l].ring[i]) s->of->dev->op->ring_flip(s->layer[l].ring[i]);
    s->floor = s->high = s->length;
}

int block_state_length(const void *state)
{
    return ((const struct block_state *)state)->length;
}

bool block_state_rewind(void *state, int pos)
{
    struct block_state *s = state;
    if (pos < s->floor || pos > s->length) return false;
    for (int l = 0; l < s->of->layers && pos < s->length; l++)
        if (s->layer[l].scan) return false; /* a sum cannot be taken back */
    s->length = pos;
    return true;
}

/* ---------------------------------------------------------------- anchors */

size_t block_state_anchor_bytes(const struct state_layout *of, int pos)
{
    size_t sum = 0;
    for (int l = 0; l < of->layers; l++) {
        struct ring_desc d;
        struct scan_desc c;
        int first;
        for (int i = 0; i < STATE_RINGS; i++)
            if (of->ring(of->model, l, i, &d))
                sum += (size_t)of->ring_needed(of->model, l, i, pos, &first) * of->dev->op->row_bytes(of->dev, &d.fmt);
        if (scan_of(of, l, &c)) sum += of->dev->op->scan_state_bytes(of->dev, &c);
    }
    return sum;
}

/* Copies what layer l needs at pos between the state and bytes; returns how many bytes that are. One of to and from is
 * NULL. */
static size_t layer_move(const struct state_layout *of, const struct state_layer *y, int l, int pos, unsigned char *to,
                         const unsigned char *from)
{
    const struct dev_ops *op = of->dev->op;
    size_t at = 0;
    for (int i = 0; i < STATE_RINGS; i++) {
        struct ring_desc d;
        int first;
        if (!of->ring(of->model, l, i, &d)) continue;
        const int n = of->ring_needed(of->model, l, i, pos, &first);
        if (n && to) op->ring_get(y->ring[i], first, n, to + at);
        if (n && from) op->ring_put(y->ring[i], first, n, from + at);
        at += (size_t)n * op->row_bytes(of->dev, &d.fmt);
    }
    struct scan_desc c;
    if (!scan_of(of, l, &c)) return at;
    if (to) op->scan_get(y->scan, to + at);
    if (from) op->scan_put(y->scan, from + at);
    return at + op->scan_state_bytes(of->dev, &c);
}

void block_state_anchor_take(const struct block_state *s, void *dst)
{
    unsigned char *to = dst;
    for (int l = 0; l < s->of->layers; l++) to += layer_move(s->of, &s->layer[l], l, s->length, to, NULL);
}

void block_state_anchor_restore(struct block_state *s, int pos, const void *src)
{
    const unsigned char *from = src;
    for (int l = 0; l < s->of->layers; l++) from += layer_move(s->of, &s->layer[l], l, pos, NULL, from);
    s->length = s->high = s->floor = pos;
}

/* ---------------------------------------------------------------- rows for snapshots */

size_t block_state_rows_bytes(const struct state_layout *of, int pos)
{
    size_t sum = 0;
    for (int l = 0; l < of->layers; l++)
        for (int i = 0; i < STATE_STORES; i++) {
            struct row_format f;
            if (of->store(of->model, l, i, &f))
                sum += (size_t)of->store_rows(of->model, l, i, pos) * of->dev->op->row_bytes(of->dev, &f);
        }
    return sum;
}

size_t block_state_rows_held(const void *state)
{
    const struct block_state *s = state;
    return block_state_rows_bytes(s->of, s->length);
}

size_t block_state_rows_take(const void *state, size_t from, size_t n, void *dst)
{
    const struct block_state *s = state;
    const struct state_layout *of = s->of;
    size_t begin = 0, taken = 0; /* begin: of a store among all rows */
    for (int l = 0; l < of->layers; l++)
        for (int i = 0; i < STATE_STORES; i++) {
            struct row_format f;
            if (!of->store(of->model, l, i, &f)) continue;
            const size_t row = of->dev->op->row_bytes(of->dev, &f), at = from + taken;
            const size_t end = begin + (size_t)of->store_rows(of->model, l, i, s->length) * row;
            size_t rows = at < end ? (end - at) / row : 0;
            if (rows > (n - taken) / row) rows = (n - taken) / row;
            if (rows)
                of->dev->op->store_get(s->layer[l].store[i], (int64_t)((at - begin) / row), (int64_t)rows,
                                       (unsigned char *)dst + taken);
            taken += rows * row;
            if (from + taken < end) return taken;
            begin = end;
        }
    return taken;
}

int block_state_rows_restore(void *state, int pos, const void *src, struct err *e)
{
    struct block_state *s = state;
    const struct state_layout *of = s->of;
    const unsigned char *from = src;
    if (!stores_reserve(s, 0, pos)) return err_set(e, ERR_MEMORY, "out of memory for the rows of %d tokens", pos);
    for (int l = 0; l < of->layers; l++)
        for (int i = 0; i < STATE_STORES; i++) {
            struct row_format f;
            if (!of->store(of->model, l, i, &f)) continue;
            const int64_t n = of->store_rows(of->model, l, i, pos);
            if (n) of->dev->op->store_put(s->layer[l].store[i], 0, n, from);
            from += (size_t)n * of->dev->op->row_bytes(of->dev, &f);
        }
    return 0;
}
