/* Evaluations in flight: the row table of a step and its way through the layers. Who is served when is the business of
 * schedule.c. After every layer three things are looked at: the stream's error, damaged model files, cancellation. */
#include "engine/engine_internal.h"
#include "base/mem.h"

/* ---------------------------------------------------------------- carry */

int carry_create(struct ds4_engine *g, int rows, struct carry *c, struct err *e)
{
    struct buf_desc part[CARRY_PARTS];
    c->n = g->family->carry(g->model, rows, part);
    for (int i = 0; i < c->n; i++)
        if (!(c->part[i] = g->dev->op->buf_create(g->dev, &part[i])))
            return err_set(e, ERR_MEMORY, "no memory for the buffers of steps of %d rows", rows);
    return 0;
}

void carry_free(struct ds4_engine *g, struct carry *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->part[i]) g->dev->op->buf_free(c->part[i]);
}

uint64_t carry_bytes(const struct ds4_engine *g, int rows)
{
    struct buf_desc part[CARRY_PARTS];
    uint64_t sum = 0;
    const int n = g->family->carry(g->model, rows, part);
    for (int i = 0; i < n; i++) sum += g->dev->op->buf_bytes(g->dev, &part[i]);
    return sum;
}

/* ---------------------------------------------------------------- batches */

enum { TABLE_COLUMNS = 8 }; /* token, segment, pos, rope_pos (three), raw_first, raw_last */

uint64_t batch_bytes(int rows, int segments)
{
    const uint64_t row = TABLE_COLUMNS * sizeof(int32_t) + sizeof(int);
    return (uint64_t)rows * row + (uint64_t)segments * (sizeof(struct segment) + 2 * sizeof(void *));
}

int batch_create(struct ds4_engine *g, struct batch *b, int rows, int segments, const struct carry *carry,
                 struct err *e)
{
    const size_t n = (size_t)rows;
    *b = (struct batch){.cap_rows = rows, .cap_segments = segments};
    b->table = mem_try(n * TABLE_COLUMNS * sizeof *b->table);
    b->head_row = mem_try(n * sizeof *b->head_row);
    b->segments = mem_try((size_t)segments * sizeof *b->segments);
    b->state = mem_try((size_t)segments * sizeof *b->state);
    b->owner = mem_try((size_t)segments * sizeof *b->owner);
    if (!b->table || !b->head_row || !b->segments || !b->state || !b->owner) {
        batch_free(b);
        return err_set(e, ERR_MEMORY, "no memory for the row table of %d rows", rows);
    }
    b->token = b->table, b->segment = b->table + n, b->pos = b->table + 2 * n;
    b->raw_first = b->table + 3 * n, b->raw_last = b->table + 4 * n, b->rope_pos = b->table + 5 * n;
    b->step = (struct step){.stream = g->stream, .state = b->state, .carry = carry->part, .scratch = g->scratch};
    b->step.rows = (struct rows){.token = b->token,
                                 .segment = b->segment,
                                 .pos = b->pos,
                                 .rope_pos = b->rope_pos,
                                 .raw_first = b->raw_first,
                                 .raw_last = b->raw_last,
                                 .segments = b->segments};
    return 0;
}

void batch_free(struct batch *b)
{
    mem_free(b->table);
    mem_free(b->head_row);
    mem_free(b->segments);
    mem_free(b->state);
    mem_free(b->owner);
    *b = (struct batch){0};
}

bool batch_fits(const struct batch *b, int n)
{
    return b->step.rows.n + n <= b->cap_rows && b->step.rows.n_segments < b->cap_segments;
}

void batch_add(struct batch *b, struct ds4_session *s, int n)
{
    struct rows *r = &b->step.rows;
    const int g = r->n_segments++, row0 = r->n;
    r->n += n;
    b->segments[g] = (struct segment){.slot = s->slot, .row0 = row0, .n = n, .pos0 = s->length, .bulk = n > DRAFT_MAX};
    b->state[g] = s->state;
    b->owner[g] = s;
    s->batch = b;
    for (int i = 0; i < n; i++) {
        const int t = row0 + i;
        b->token[t] = s->tokens[s->length + i];
        b->segment[t] = g;
        b->pos[t] = s->length + i;
        for (int k = 0; k < 3; k++) b->rope_pos[3 * t + k] = b->pos[t];
    }
}

/* Nobody waits for the batch any more. */
static bool batch_unwanted(const void *arg)
{
    const struct batch *b = arg;
    for (int i = 0; i < b->step.rows.n_segments; i++)
        if (!atomic_load(&b->owner[i]->cancel)) return false;
    return true;
}

static int batch_check(struct ds4_engine *g, const struct batch *b, struct err *e)
{
    const int rc = dev_error(g->stream, e);
    if (rc) return rc;
    if (g->canonical && canonical_damaged(g->canonical, e)) return e && e->code ? e->code : ERR_IO;
    return batch_unwanted(b) ? err_set(e, ERR_CANCELLED, "cancelled") : 0;
}

/* From here to its end, ops of the batch end early when it becomes unwanted. */
static void batch_watch(struct ds4_engine *g, const struct batch *b)
{
    if (g->pool) pool_limit(g->pool, b == &g->sweep ? g->threads : g->threads_decode);
    g->stream->unwanted = batch_unwanted;
    g->stream->unwanted_arg = b;
}

static int batch_watch_end(struct ds4_engine *g, const struct batch *b, struct err *e)
{
    g->stream->unwanted = NULL;
    return batch_check(g, b, e);
}

int batch_layer(struct ds4_engine *g, struct batch *b, struct err *e)
{
    if (!b->prepared) {
        const int rc = g->family->prepare(g->model, &b->step, e);
        if (rc) return rc;
        b->prepared = true;
        g->family->embed(g->model, &b->step);
    }
    batch_watch(g, b);
    g->family->layer(g->model, &b->step, b->layer++);
    return batch_watch_end(g, b, e);
}

int batch_head(struct ds4_engine *g, struct batch *b, const int *row, int n, struct err *e)
{
    batch_watch(g, b);
    g->family->head(g->model, &b->step, row, n, g->logits);
    return batch_watch_end(g, b, e);
}

int batch_commit(struct ds4_engine *g, struct batch *b, int segment, int n, struct err *e)
{
    return g->family->commit(g->model, &b->step, segment, n, e);
}

void batch_drop(struct ds4_engine *g, struct batch *b)
{
    dev_clear(g->stream);
    for (int i = 0; b->prepared && i < b->step.rows.n_segments; i++) (void)batch_commit(g, b, i, 0, NULL);
    batch_done(b);
}

void batch_done(struct batch *b)
{
    for (int i = 0; i < b->step.rows.n_segments; i++)
        if (b->owner[i]) b->owner[i]->batch = NULL;
    b->step.rows.n = b->step.rows.n_segments = 0;
    b->layer = 0;
    b->prepared = false;
}
