/* Decoding with guesses. */
#include "lookahead.h"
#include "base/mem.h"

void lookahead_begin(struct lookahead *l, ds4_engine *g, ds4_session *s, const struct ds4_sampling *p, int guesses)
{
    struct ds4_model_info info;
    ds4_engine_info(g, &info);
    *l = (struct lookahead){.engine = g, .session = s, .sampling = p, .guesses = guesses, .n_vocab = info.n_vocab};
    if (guesses) l->logits = mem_alloc((size_t)(1 + guesses) * (size_t)info.n_vocab * sizeof *l->logits);
}

int lookahead_length(const struct lookahead *l)
{
    return ds4_session_length(l->session) + (l->n ? l->at + 1 : 0);
}

const float *lookahead_logits(const struct lookahead *l)
{
    return l->n ? l->logits + (size_t)l->at * (size_t)l->n_vocab : ds4_session_logits(l->session);
}

/* One token more in the session. */
static int advance(struct lookahead *l, int32_t id, struct ds4_error *e)
{
    int rc = ds4_session_submit(l->session, &id, 1, e);
    while (!rc && (rc = ds4_engine_step(l->engine, e)) > 0) rc = 0;
    const enum ds4_state state = ds4_session_collect(l->session, NULL, rc ? NULL : e);
    if (rc) return rc;
    return state == DS4_DONE ? 0 : state == DS4_CANCELLED ? DS4_E_CANCELLED : e ? e->code : DS4_E_DEVICE;
}

/* The rows up to `at` become history. */
static int keep(struct lookahead *l, struct ds4_error *e)
{
    const int n = l->n;
    l->n = 0;
    return n ? ds4_session_commit(l->session, l->at + 1, e) : 0;
}

int lookahead_next(struct lookahead *l, int32_t id, struct ds4_error *e)
{
    if (l->at + 1 < l->n && l->row[l->at + 1] == id) return l->at++, 0;
    const int rc = keep(l, e);
    if (rc) return rc;
    const int n = l->guesses ? ds4_session_propose(l->session, id, l->sampling, l->guesses, l->row + 1, e) : 0;
    if (n < 0) return n;
    if (n == 0) return advance(l, id, e);
    l->row[0] = id;
    const int bad = ds4_session_draft(l->session, l->row, 1 + n, l->logits, e);
    if (!bad) l->n = 1 + n, l->at = 0;
    return bad;
}

int lookahead_end(struct lookahead *l, int rc, struct ds4_error *e)
{
    const int bad = keep(l, rc ? NULL : e);
    mem_free(l->logits);
    return rc ? rc : bad;
}
