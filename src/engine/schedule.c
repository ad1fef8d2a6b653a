/* Who is served when. Sessions that wait with at most DRAFT_MAX tokens share decode steps, which run all layers at
 * once; more tokens go in chunks, and a chunk is swept through the layers one call at a time, so that a decoding
 * session waits for at most one layer of somebody's prompt; chunks are then as small as pace.h says. One chunk is in
 * flight at a time; the session that has waited longest for its next one goes first.
 *
 * Invariant: a session is in at most one batch (s->batch), and its waiting tokens stay behind its history until commit.
 */
#include "base/clock.h"
#include "engine/engine_internal.h"

static bool session_waits(const struct ds4_session *s)
{
    return s && s->status == DS4_BUSY && !s->batch;
}

static bool session_small(const struct ds4_session *s)
{
    return s->pending <= DRAFT_MAX;
}

/* The waiting session of one kind that has waited longest and fits into b. */
static struct ds4_session *next_waiting(const struct ds4_engine *g, const struct batch *b, bool small)
{
    struct ds4_session *first = NULL;
    for (int i = 0; i < g->n_slots; i++) {
        struct ds4_session *s = g->session[i];
        if (!session_waits(s) || session_small(s) != small || !batch_fits(b, 1)) continue;
        if (!first || s->ticket < first->ticket) first = s;
    }
    return first;
}

/* How many waiting tokens go next, at most chunk: up to a mark ahead, and long prompts in pieces that end where rewind
 * points are cheap. */
static int next_rows(const struct ds4_session *s, int chunk)
{
    const int mark = anchors_next_mark(&s->anchors, s->length);
    int n = s->pending < chunk ? s->pending : chunk;
    if (n < s->pending) {
        const int end = (s->length + n) / ANCHOR_STEP * ANCHOR_STEP;
        if (end > s->length) n = end - s->length;
    }
    return mark - s->length < n ? mark - s->length : n;
}

static void session_end(struct ds4_session *s, enum ds4_state status, const struct err *why)
{
    s->status = status;
    s->pending = 0;
    if (why) s->failure = *why;
}

/* Ends the submissions of a batch that failed with err and drops it. */
static void batch_fail(struct ds4_engine *g, struct batch *b, const struct err *err)
{
    for (int i = 0; i < b->step.rows.n_segments; i++) {
        struct ds4_session *s = b->owner[i];
        session_end(s, atomic_load(&s->cancel) ? DS4_CANCELLED : DS4_FAILED, err);
    }
    batch_drop(g, b);
}

/* Rows that need logits: the last one of a submission, and where a rewind point will be taken. */
static int wanted_logits(struct batch *b)
{
    int n = 0;
    for (int i = 0; i < b->step.rows.n_segments; i++) {
        const struct segment *seg = &b->segments[i];
        const struct ds4_session *s = b->owner[i];
        if (s->pending == seg->n || anchors_wanted(&s->anchors, s->length + seg->n))
            b->head_row[n++] = seg->row0 + seg->n - 1;
    }
    return n;
}

/* Behind the last layer: logits, then every session that still wants its rows gets them. */
static int batch_finish(struct ds4_engine *g, struct batch *b, struct err *e)
{
    const int n_logits = wanted_logits(b);
    if (n_logits) {
        const int rc = batch_head(g, b, b->head_row, n_logits, e);
        if (rc) return rc;
    }
    int next = 0, failed = 0;
    for (int i = 0; i < b->step.rows.n_segments; i++) {
        const struct segment *seg = &b->segments[i];
        struct ds4_session *s = b->owner[i];
        const bool logits = next < n_logits && b->head_row[next] == seg->row0 + seg->n - 1;
        const bool cancelled = atomic_load(&s->cancel);
        struct err why = {0};
        const int rc = batch_commit(g, b, i, cancelled ? 0 : seg->n, &why);
        if (cancelled) {
            session_end(s, DS4_CANCELLED, NULL);
        } else if (rc) {
            session_end(s, DS4_FAILED, &why);
            failed = err_set(e, rc, "%s", why.msg);
        } else {
            if (logits) g->dev->op->read_f32(g->stream, g->logits, next, 1, s->logits);
            session_advance(s, seg->n, logits);
            s->ticket = ++g->ticket;
            if (s->pending == 0) s->status = DS4_DONE;
        }
        next += logits;
    }
    batch_done(b);
    return failed;
}

static int decode_step(struct ds4_engine *g, struct err *e)
{
    struct batch *b = &g->decode;
    struct ds4_session *s;
    while ((s = next_waiting(g, b, true)) && batch_fits(b, next_rows(s, g->prefill_chunk)))
        batch_add(b, s, next_rows(s, g->prefill_chunk));
    const double begun = clock_s();
    int rc = 0;
    while (rc == 0 && b->layer < g->n_layers) rc = batch_layer(g, b, e);
    if (rc == 0) rc = batch_finish(g, b, e);
    pace_decode(&g->pace, clock_s() - begun);
    return rc;
}

/* beside: an answer is being written. */
static int sweep_step(struct ds4_engine *g, bool beside, struct err *e)
{
    struct batch *b = &g->sweep;
    if (b->step.rows.n == 0) {
        struct ds4_session *s = next_waiting(g, b, false);
        batch_add(b, s, next_rows(s, beside ? pace_rows(&g->pace) : g->prefill_chunk));
    }
    const int rows = b->step.rows.n, layer = b->layer;
    const double begun = clock_s();
    int rc = batch_layer(g, b, e);
    if (rc == 0 && b->layer == g->n_layers) rc = batch_finish(g, b, e);
    pace_layer(&g->pace, rows, layer, g->n_layers, clock_s() - begun);
    return rc;
}

/* Ends what was cancelled and is not inside a step. */
static void reap_cancelled(struct ds4_engine *g)
{
    for (int i = 0; i < g->n_slots; i++) {
        struct ds4_session *s = g->session[i];
        if (!s || s->status != DS4_BUSY || !atomic_load(&s->cancel)) continue;
        if (s->batch) batch_drop(g, s->batch);
        session_end(s, DS4_CANCELLED, NULL);
    }
}

static bool engine_busy(const struct ds4_engine *g)
{
    for (int i = 0; i < g->n_slots; i++)
        if (g->session[i] && g->session[i]->status == DS4_BUSY) return true;
    return false;
}

int ds4_engine_step(ds4_engine *g, struct ds4_error *e)
{
    struct err err = {0};
    reap_cancelled(g);
    const bool sweep = g->sweep.step.rows.n > 0 || next_waiting(g, &g->sweep, false);
    const bool decode = next_waiting(g, &g->decode, true);
    if (!sweep && !decode) return 0;
    const bool decode_now = decode && (!sweep || g->decode_turn);
    g->decode_turn = !decode_now;
    const int rc = decode_now ? decode_step(g, &err) : sweep_step(g, decode, &err);
    if (rc) batch_fail(g, decode_now ? &g->decode : &g->sweep, &err);
    if (rc && rc != ERR_CANCELLED) return engine_error(e, &err);
    return engine_busy(g);
}

/* ---------------------------------------------------------------- submissions */

void session_enqueue(struct ds4_session *s, int n)
{
    atomic_store(&s->cancel, false);
    s->pending = n;
    s->done = 0;
    s->status = DS4_BUSY;
    s->ticket = ++s->engine->ticket;
}

int ds4_session_submit(ds4_session *s, const int32_t *tokens, int n, struct ds4_error *e)
{
    struct err err = {0};
    int rc = session_idle(s, &err);
    if (rc == 0 && n < 1) rc = err_set(&err, ERR_ARG, "no tokens to evaluate");
    if (rc == 0 && n > s->ctx - s->length)
        rc = err_set(&err, ERR_LIMIT, "%d tokens more do not fit behind %d of a context of %d tokens", n, s->length,
                     s->ctx);
    if (rc == 0) rc = session_check_tokens(s, tokens, n, &err);
    if (rc) return engine_error(e, &err);
    for (int i = 0; i < n; i++) s->tokens[s->length + i] = tokens[i];
    session_enqueue(s, n);
    return 0;
}

enum ds4_state ds4_session_collect(ds4_session *s, int *done, struct ds4_error *e)
{
    const enum ds4_state status = s->status;
    if (done) *done = s->done;
    if (status == DS4_FAILED) engine_error(e, &s->failure);
    if (status != DS4_BUSY) s->status = DS4_IDLE;
    return status;
}

void ds4_session_cancel(ds4_session *s)
{
    atomic_store(&s->cancel, true);
}

int session_run(struct ds4_session *s, ds4_progress *progress, void *arg, struct err *e)
{
    const int total = s->pending;
    if (progress) progress(arg, 0, total);
    while (s->status == DS4_BUSY) {
        ds4_engine_step(s->engine, NULL);
        if (progress) progress(arg, s->done, total);
    }
    const enum ds4_state status = s->status;
    s->status = DS4_IDLE;
    if (status == DS4_CANCELLED) return err_set(e, ERR_CANCELLED, "cancelled after %d of %d tokens", s->done, total);
    return status == DS4_FAILED ? err_set(e, s->failure.code, "%s", s->failure.msg) : 0;
}
