/* Going back, and making a history equal to a list of tokens. A state cannot be shortened at will: the family still
 * holds what some last positions need, rewind points hold others, and from the best of these the rest is evaluated
 * again. */
#include "engine/engine_internal.h"
#include <string.h>

int session_reset(struct ds4_session *s, struct err *e)
{
    const struct ds4_engine *g = s->engine;
    void *state = NULL;
    const int rc = g->family->state_create(g->model, s->ctx, &state, e);
    if (rc) return rc;
    g->family->state_free(s->state);
    s->state = state;
    return 0;
}

void session_replace(struct ds4_session *s, const void *tokens, int length, const void *logits)
{
    s->status = DS4_IDLE;
    s->length = length;
    s->have_logits = logits != NULL;
    memcpy(s->tokens, tokens, (size_t)length * sizeof *s->tokens);
    if (logits) memcpy(s->logits, logits, (size_t)s->engine->n_vocab * sizeof *s->logits);
    anchors_cut(&s->anchors, -1);
    anchors_take(s);
}

/* The history ends at pos now; logits are there only if pos has a rewind point. */
static void history_cut(struct ds4_session *s, int pos, const float *logits)
{
    s->length = pos;
    s->have_logits = logits != NULL;
    if (logits) memcpy(s->logits, logits, (size_t)s->engine->n_vocab * sizeof *logits);
    anchors_cut(&s->anchors, pos);
}

int session_reach(struct ds4_session *s, int pos, struct err *e)
{
    const struct family *f = s->engine->family;
    if (pos >= s->length) return 0;
    const int i = anchors_find(&s->anchors, pos);
    const struct anchor *a = i >= 0 ? s->anchors.at[i] : NULL;
    if (a && a->pos == pos) {
        f->anchor_restore(s->state, pos, a->part);
        history_cut(s, pos, a->logits);
    } else if (f->rewind(s->state, pos)) {
        history_cut(s, pos, NULL);
    } else if (a) {
        f->anchor_restore(s->state, a->pos, a->part);
        history_cut(s, a->pos, a->logits);
    } else {
        const int rc = session_reset(s, e);
        if (rc) return rc;
        history_cut(s, 0, NULL);
    }
    return 0;
}

/* Goes back to pos or before, and one token further if pos is all that is wanted but its logits are lost. */
static int go_back(struct ds4_session *s, int pos, int wanted, struct err *e)
{
    const int rc = session_reach(s, pos, e);
    return rc || s->length < wanted || s->have_logits || wanted == 0 ? rc : session_reach(s, wanted - 1, e);
}

/* Evaluates s->tokens[length..n). */
static int go_on(struct ds4_session *s, int n, ds4_progress *progress, void *arg, struct err *e)
{
    if (s->length == n) return 0;
    session_enqueue(s, n - s->length);
    return session_run(s, progress, arg, e);
}

int ds4_session_rewind(ds4_session *s, int pos, struct ds4_error *e)
{
    struct err err = {0};
    int rc = session_idle(s, &err);
    if (rc == 0 && (pos < 0 || pos > s->length))
        rc = err_set(&err, ERR_ARG, "no way back to position %d: the history has %d tokens", pos, s->length);
    if (rc == 0) rc = go_back(s, pos, pos, &err);
    if (rc == 0) rc = go_on(s, pos, NULL, NULL, &err);
    return rc ? engine_error(e, &err) : 0;
}

int ds4_session_mark(ds4_session *s, int pos, struct ds4_error *e)
{
    struct err err = {0};
    if (pos < 0 || pos > s->ctx) {
        err_set(&err, ERR_ARG, "no position %d in a context of %d tokens", pos, s->ctx);
        return engine_error(e, &err);
    }
    if (pos < s->length) {
        const int i = anchors_find(&s->anchors, pos);
        if (i >= 0 && s->anchors.at[i]->pos == pos) s->anchors.marked[i] = true;
        return 0;
    }
    if (anchors_mark(&s->anchors, pos, &err)) return engine_error(e, &err);
    if (pos == s->length && s->status != DS4_BUSY && !s->n_draft) anchors_take(s);
    return 0;
}

/* ---------------------------------------------------------------- sync */

static int sync_check(const struct ds4_session *s, const int32_t *tokens, int n, struct err *e)
{
    const int rc = session_idle(s, e);
    if (rc) return rc;
    if (n < 1) return err_set(e, ERR_ARG, "an empty prompt");
    if (n >= s->ctx)
        return err_set(e, ERR_LIMIT, "a prompt of %d tokens does not fit into a context of %d with room for an answer",
                       n, s->ctx);
    return session_check_tokens(s, tokens, n, e);
}

static int common_prefix(const struct ds4_session *s, const int32_t *tokens, int n)
{
    int i = 0;
    while (i < n && i < s->length && tokens[i] == s->tokens[i]) i++;
    return i;
}

/* Goes back as far as needed and queues the rest of the prompt. tokens may be the session's own list. */
static int sync_queue(struct ds4_session *s, const int32_t *tokens, int n, struct ds4_sync_info *info, struct err *e)
{
    const int common = common_prefix(s, tokens, n);
    if (common < s->length && common < n) info->first_diff = common;
    const int rc = go_back(s, common, n, e);
    if (rc) return rc;
    info->reused = s->length;
    memmove(s->tokens + common, tokens + common, (size_t)(n - common) * sizeof *tokens);
    session_enqueue(s, n - s->length);
    if (s->length == n) s->status = DS4_DONE;
    return 0;
}

int ds4_session_sync_submit(ds4_session *s, const int32_t *tokens, int n, struct ds4_sync_info *info,
                            struct ds4_error *e)
{
    struct err err = {0};
    struct ds4_sync_info found = {.first_diff = -1};
    int rc = sync_check(s, tokens, n, &err);
    if (rc == 0) rc = sync_queue(s, tokens, n, &found, &err);
    if (info) *info = found;
    return rc ? engine_error(e, &err) : 0;
}

int ds4_session_sync(ds4_session *s, const int32_t *tokens, int n, ds4_progress *progress, void *arg,
                     struct ds4_sync_info *info, struct ds4_error *e)
{
    struct err err = {0};
    struct ds4_sync_info found = {.first_diff = -1};
    int rc = sync_check(s, tokens, n, &err);
    if (rc == 0) rc = sync_queue(s, tokens, n, &found, &err);
    if (rc == 0 && s->status == DS4_DONE) s->status = DS4_IDLE;
    if (rc == 0 && s->status == DS4_BUSY) {
        rc = session_run(s, progress, arg, &err);
        found.evaluated = s->done;
    }
    if (info) *info = found;
    return rc ? engine_error(e, &err) : 0;
}
