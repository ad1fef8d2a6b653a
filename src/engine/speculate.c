/* Drafts: rows that are evaluated but not yet decided on. Their batch stays in flight inside the session from draft to
 * commit; other sessions go on meanwhile. */
#include "engine/engine_internal.h"
#include <string.h>

static int draft_check(const struct ds4_session *s, const int32_t *tokens, int n, struct err *e)
{
    const int rc = session_idle(s, e);
    if (rc) return rc;
    if (n < 1 || n > DRAFT_MAX) return err_set(e, ERR_ARG, "a draft of %d tokens: 1 to %d are possible", n, DRAFT_MAX);
    if (n > s->ctx - s->length)
        return err_set(e, ERR_LIMIT, "a draft of %d tokens does not fit behind %d of a context of %d tokens", n,
                       s->length, s->ctx);
    return session_check_tokens(s, tokens, n, e);
}

static int draft_run(struct ds4_session *s, int n, struct err *e)
{
    struct ds4_engine *g = s->engine;
    struct batch *b = &s->draft;
    batch_add(b, s, n);
    int rc = 0;
    while (rc == 0 && b->layer < g->n_layers) rc = batch_layer(g, b, e);
    for (int i = 0; i < n; i++) b->head_row[i] = i;
    if (rc == 0) rc = batch_head(g, b, b->head_row, n, e);
    if (rc) {
        batch_drop(g, b);
        return rc;
    }
    g->dev->op->read_f32(g->stream, g->logits, 0, n, s->draft_logits);
    s->n_draft = n;
    return 0;
}

int ds4_session_draft(ds4_session *s, const int32_t *tokens, int n, float *logits, struct ds4_error *e)
{
    struct err err = {0};
    int rc = draft_check(s, tokens, n, &err);
    if (rc == 0) {
        atomic_store(&s->cancel, false);
        memmove(s->tokens + s->length, tokens, (size_t)n * sizeof *tokens);
        rc = draft_run(s, n, &err);
    }
    if (rc) return engine_error(e, &err);
    if (logits) memcpy(logits, s->draft_logits, (size_t)n * (size_t)s->engine->n_vocab * sizeof *logits);
    return 0;
}

/* ---------------------------------------------------------------- guesses */

/* Guess number i of those behind the tokens that lead to it. */
static int guess_one(ds4_session *s, int32_t token, int i, struct err *e)
{
    struct ds4_engine *g = s->engine;
    const struct guess a = {
        .stream = g->stream, .scratch = g->scratch, .token = token, .index = i, .logits = g->logits};
    int rc = g->family->guess(g->model, s->state, &a, e);
    if (rc == 0) g->dev->op->read_f32(g->stream, g->logits, 0, 1, s->draft_logits);
    if (rc == 0) rc = dev_error(g->stream, e);
    dev_clear(g->stream);
    if (rc == 0 && g->canonical && canonical_damaged(g->canonical, e)) rc = e->code ? e->code : ERR_IO;
    return rc;
}

int ds4_session_propose(ds4_session *s, int32_t token, const struct ds4_sampling *p, int n, int32_t *guess,
                        struct ds4_error *e)
{
    struct err err = {0};
    const int room = s->ctx - s->length - 1;
    int rc = session_idle(s, &err);
    if (rc == 0) rc = session_check_tokens(s, &token, 1, &err);
    if (rc) return engine_error(e, &err);
    if (!engine_has_draft(s->engine) || s->length == 0) return 0;
    if (n > DRAFT_MAX - 1) n = DRAFT_MAX - 1;
    if (n > room) n = room;
    for (int i = 0; i < n; i++) {
        rc = guess_one(s, i ? guess[i - 1] : token, i, &err);
        if (rc) return engine_error(e, &err);
        guess[i] = ds4_sample(s->draft_logits, s->engine->n_vocab, p, (uint64_t)s->length + 1 + (uint64_t)i);
    }
    return n > 0 ? n : 0;
}

/* ---------------------------------------------------------------- keeping */

/* Rows from the draft's row `from` on up to one behind which a rewind point is wanted, at most to n_keep. */
static int next_border(const struct ds4_session *s, int from, int n_keep)
{
    int n = 1;
    while (from + n < n_keep && !anchors_wanted(&s->anchors, s->length + n)) n++;
    return from + n;
}

/* Commits n_keep > 0 rows, with the rewind points on the way. */
static int keep_rows(struct ds4_session *s, int n_keep, struct err *e)
{
    const size_t row = (size_t)s->engine->n_vocab;
    for (int n = 0; n < n_keep;) {
        const int to = next_border(s, n, n_keep), rc = batch_commit(s->engine, &s->draft, 0, to, e);
        if (rc) return rc;
        memcpy(s->logits, s->draft_logits + (size_t)(to - 1) * row, row * sizeof *s->logits);
        s->pending = to - n;
        session_advance(s, to - n, true);
        n = to;
    }
    return 0;
}

int ds4_session_commit(ds4_session *s, int n_keep, struct ds4_error *e)
{
    struct err err = {0};
    if (n_keep < 0 || n_keep > s->n_draft || s->n_draft == 0) {
        err_set(&err, ERR_ARG, "%d rows to keep of a draft of %d", n_keep, s->n_draft);
        return engine_error(e, &err);
    }
    const int rc = n_keep ? keep_rows(s, n_keep, &err) : batch_commit(s->engine, &s->draft, 0, 0, &err);
    batch_done(&s->draft);
    s->n_draft = 0;
    return rc ? engine_error(e, &err) : 0;
}
