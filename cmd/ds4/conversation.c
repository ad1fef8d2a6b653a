#include "conversation.h"
#include <stdio.h>
#include "common/failure.h"
#include "resume.h"
#include "terminal.h"
#include "common/token_list.h"
#include "turn.h"

int conversation_begin(struct conversation *c, ds4_engine *g, const struct options *o, struct ds4_error *e)
{
    *c = (struct conversation){.g = g, .o = *o};
    return resume_begin(g, o, &c->s, &c->history, e);
}

int conversation_end(struct conversation *c, struct ds4_error *e)
{
    int rc = 0;
    terminal_forget_interrupt();
    if (c->o.session && c->changed && c->history.n) rc = conversation_save(c, c->o.session, e);
    ds4_session_free(c->s);
    ds4_tokens_free(&c->history);
    return rc;
}

/* There is none where not even the old one could be made again after another context had failed. */
static int need_session(struct conversation *c, struct ds4_error *e)
{
    return c->s ? 0 : ds4_session_create(c->g, c->o.runtime.ctx, &c->s, e);
}

/* ---------------------------------------------------------------- turns */

static int too_long(const struct conversation *c, size_t n, struct ds4_error *e)
{
    const size_t room = c->history.n < (size_t)c->o.runtime.ctx ? (size_t)c->o.runtime.ctx - c->history.n : 0;
    return failure(e, DS4_E_LIMIT,
                   "this is %zu tokens long, but of the context of %d tokens %zu are left; /ctx N makes it larger, "
                   "/reset begins anew",
                   n - c->history.n, c->o.runtime.ctx, room);
}

static int answer(struct conversation *c, const char *text, size_t n, struct ds4_tokens *t, struct generate_result *r,
                  struct ds4_error *e)
{
    enum ds4_think used;
    for (size_t i = 0; i < c->history.n; i++) token_list_add(t, c->history.p[i]);
    int rc = need_session(c, e);
    if (!rc) rc = turn_tokens(c->g, &c->o, text, n, t, &used, e);
    if (rc) return rc;
    if (t->n >= (size_t)c->o.runtime.ctx) return too_long(c, t->n, e);
    return generate_answer(c->g, c->s, &c->o, used != DS4_THINK_OFF, t, r, e);
}

int conversation_turn(struct conversation *c, const char *text, size_t n, struct generate_result *r,
                      struct ds4_error *e)
{
    struct ds4_tokens t = {0};
    *r = (struct generate_result){0};
    const int rc = answer(c, text, n, &t, r, e);
    if (rc || !r->generated) {
        ds4_tokens_free(&t);
        return rc;
    }
    ds4_tokens_free(&c->history);
    c->history = t;
    c->changed = true;
    return 0;
}

void conversation_reset(struct conversation *c)
{
    c->history.n = 0;
}

/* ---------------------------------------------------------------- another context */

/* The old session goes before the new one comes, so that only one of them needs memory beside the copy. */
static int replace_session(struct conversation *c, int ctx, const void *copy, size_t n_copy, struct ds4_error *e)
{
    ds4_session_free(c->s);
    c->s = NULL;
    const int rc = ds4_session_create(c->g, ctx, &c->s, e);
    if (!rc && n_copy) ds4_session_restore(c->s, copy, n_copy, NULL);
    return rc;
}

int conversation_resize(struct conversation *c, int n, struct ds4_error *e)
{
    struct ds4_model_info info;
    void *copy = NULL;
    size_t n_copy = 0;
    ds4_engine_info(c->g, &info);
    if (n < 2 || n > info.ctx_max)
        return failure(e, DS4_E_ARG, "a context has 2 to %d tokens with this model, not %d", info.ctx_max, n);
    if (c->history.n >= (size_t)n)
        return failure(e, DS4_E_LIMIT, "the conversation has %zu tokens, which a context of %d does not hold",
                       c->history.n, n);
    int rc = need_session(c, e);
    if (!rc && ds4_session_length(c->s) <= n) ds4_session_snapshot(c->s, &copy, &n_copy, NULL);
    if (!rc) rc = replace_session(c, n, copy, n_copy, e);
    if (!rc)
        c->o.runtime.ctx = n;
    else
        replace_session(c, c->o.runtime.ctx, copy, n_copy, NULL);
    ds4_free(copy);
    return rc;
}

/* ---------------------------------------------------------------- files */

int conversation_save(struct conversation *c, const char *path, struct ds4_error *e)
{
    if (!c->history.n) return failure(e, DS4_E_ARG, "nothing has been said yet that could be saved");
    const int rc = need_session(c, e);
    return rc ? rc : resume_save(c->s, path, &c->history, e);
}

int conversation_load(struct conversation *c, const char *path, struct ds4_error *e)
{
    int rc = need_session(c, e);
    if (!rc) rc = ds4_session_load(c->s, path, e);
    if (rc) return rc;
    resume_take(c->s, &c->history);
    c->changed = true;
    return 0;
}
