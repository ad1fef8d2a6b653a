/* Sessions: their parts, their history, copies of them. Evaluation: schedule.c, speculate.c; going back: rewind.c. */
#include "engine_internal.h"
#include <string.h>
#include "base/mem.h"

int session_idle(const struct ds4_session *s, struct err *e)
{
    if (s->status == DS4_BUSY) return err_set(e, ERR_ARG, "the session still evaluates what was submitted");
    if (s->n_draft) return err_set(e, ERR_ARG, "a draft waits for its commit");
    return 0;
}

int session_check_tokens(const struct ds4_session *s, const int32_t *tokens, int n, struct err *e)
{
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= s->engine->n_vocab)
            return err_set(e, ERR_ARG, "token %d of %d is %d; the vocabulary has ids 0 to %d", i, n, (int)tokens[i],
                           s->engine->n_vocab - 1);
    return 0;
}

struct session_sizes session_sizes(const struct ds4_session *s)
{
    const struct family *f = s->engine->family;
    return (struct session_sizes){.length = s->length,
                                  .n_vocab = s->engine->n_vocab,
                                  .has_logits = s->have_logits,
                                  .rows_bytes = f->rows_bytes(s->state),
                                  .anchor_bytes = f->anchor_bytes(s->state)};
}

bool session_sizes_possible(const struct ds4_engine *g, const struct session_sizes *z)
{
    return z->length >= 0 && z->n_vocab == g->n_vocab && (z->has_logits == 0 || z->has_logits == 1) && !z->reserved &&
           z->rows_bytes == g->family->rows_bytes_at(g->model, z->length) &&
           z->anchor_bytes == g->family->anchor_bytes_at(g->model, z->length);
}

struct session_parts session_parts(const struct session_sizes *z, uint64_t header_bytes)
{
    struct session_parts p = {.tokens = header_bytes};
    p.logits = p.tokens + (uint64_t)z->length * sizeof(int32_t);
    p.rows = p.logits + (z->has_logits ? (uint64_t)z->n_vocab * sizeof(float) : 0);
    p.anchor = p.rows + z->rows_bytes;
    p.end = p.anchor + z->anchor_bytes;
    return p;
}

void session_advance(struct ds4_session *s, int n, bool have_logits)
{
    s->length += n;
    s->pending -= n;
    s->done += n;
    s->have_logits = have_logits;
    anchors_take(s);
}

/* ---------------------------------------------------------------- making and freeing */

static int slot_take(struct ds4_engine *g, struct ds4_session *s, struct err *e)
{
    int i = 0;
    while (i < g->n_slots && g->session[i]) i++;
    if (i == g->n_slots) {
        const int n = g->n_slots ? 2 * g->n_slots : 8;
        struct ds4_session **list = mem_try((size_t)n * sizeof *list);
        if (!list) return err_set(e, ERR_MEMORY, "no memory for a list of %d sessions", n);
        if (g->n_slots) memcpy(list, g->session, (size_t)g->n_slots * sizeof *list);
        mem_free(g->session);
        g->session = list, g->n_slots = n;
    }
    g->session[i] = s;
    s->slot = i;
    return 0;
}

static int session_allocate(struct ds4_session *s, struct err *e)
{
    struct ds4_engine *g = s->engine;
    const size_t row = (size_t)g->n_vocab * sizeof(float);
    s->tokens = mem_try((size_t)s->ctx * sizeof *s->tokens);
    s->logits = mem_try(row);
    s->draft_logits = mem_try(DRAFT_MAX * row);
    if (!s->tokens || !s->logits || !s->draft_logits)
        return err_set(e, ERR_MEMORY, "no memory for a session of %d tokens", s->ctx);
    const int rc = batch_create(g, &s->draft, DRAFT_MAX, 1, &g->carry_decode, e);
    return rc ? rc : g->family->state_create(g->model, s->ctx, &s->state, e);
}

static int session_new(struct ds4_engine *g, int ctx, struct ds4_session **out, struct err *e)
{
    *out = NULL;
    const int most = engine_ctx_max(g);
    if (g->report_only) return err_set(e, ERR_ARG, "the model was opened for its report only");
    if (ctx < DS4_CTX_MIN || ctx > most)
        return err_set(e, ERR_ARG, "a context of %d tokens: from %d to %d are possible with this model", ctx,
                       DS4_CTX_MIN, most);
    const uint64_t bytes = engine_session_promise(g, ctx);
    int rc = engine_promise(g, bytes, e);
    if (rc) return rc;
    struct ds4_session *s = mem_alloc(sizeof *s);
    *s = (struct ds4_session){.engine = g, .slot = -1, .ctx = ctx, .promised = bytes};
    s->anchors.budget = g->anchor_bytes;
    rc = session_allocate(s, e);
    if (rc == 0) rc = slot_take(g, s, e);
    if (rc) {
        ds4_session_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

int ds4_session_create(ds4_engine *g, int ctx, ds4_session **out, struct ds4_error *e)
{
    struct err err = {0};
    return session_new(g, ctx, out, &err) ? engine_error(e, &err) : 0;
}

void ds4_session_free(ds4_session *s)
{
    if (!s) return;
    struct ds4_engine *g = s->engine;
    if (s->batch) batch_drop(g, s->batch);
    if (s->slot >= 0) g->session[s->slot] = NULL;
    g->promised -= s->promised;
    anchors_free(&s->anchors);
    batch_free(&s->draft);
    if (s->state) g->family->state_free(s->state);
    mem_free(s->draft_logits);
    mem_free(s->logits);
    mem_free(s->tokens);
    mem_free(s);
}

static int fork_into(struct ds4_session *s, const struct ds4_session *from, struct err *e)
{
    const int rc = s->engine->family->state_fork(s->state, from->state, e);
    if (rc) return rc;
    memcpy(s->tokens, from->tokens, (size_t)from->length * sizeof *s->tokens);
    s->length = from->length;
    s->have_logits = from->have_logits;
    if (s->have_logits) memcpy(s->logits, from->logits, (size_t)s->engine->n_vocab * sizeof *s->logits);
    return anchors_share(&s->anchors, &from->anchors, from->length, e);
}

int ds4_session_fork(ds4_session *s, ds4_session **out, struct ds4_error *e)
{
    struct err err = {0};
    ds4_session *copy = NULL;
    *out = NULL;
    int rc = session_idle(s, &err);
    if (rc == 0) rc = session_new(s->engine, s->ctx, &copy, &err);
    if (rc == 0) rc = fork_into(copy, s, &err);
    if (rc) {
        ds4_session_free(copy);
        return engine_error(e, &err);
    }
    *out = copy;
    return 0;
}

/* ---------------------------------------------------------------- looking */

int ds4_session_length(const ds4_session *s)
{
    return s->length;
}

int ds4_session_ctx(const ds4_session *s)
{
    return s->ctx;
}

const int32_t *ds4_session_tokens(const ds4_session *s)
{
    return s->tokens;
}

const float *ds4_session_logits(const ds4_session *s)
{
    return s->have_logits ? s->logits : NULL;
}
