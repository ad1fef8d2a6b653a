#include "turn.h"
#include <stdint.h>
#include <string.h>
#include "common/token_list.h"

/* ---------------------------------------------------------------- the text that asks for an effort */

/* An empty turn: the first token of a chat, the effort's, then the user's. */
static int empty_turn(const ds4_engine *g, enum ds4_think think, int ctx, struct ds4_tokens *out, enum ds4_think *used,
                      struct ds4_error *e)
{
    const struct ds4_message m = {.role = DS4_USER, .text = ""};
    out->n = 0;
    return ds4_chat_tokens(g, &m, 1, think, ctx, out, used, e);
}

static void cut(struct ds4_tokens *t, size_t from, size_t n)
{
    memmove(t->p + from, t->p + from + n, (t->n - from - n) * sizeof *t->p);
    t->n -= n;
}

/* The effort's tokens alone. Without thinking there are none, so that both turns differ at their second token only if
 * the other has some. */
static int effort_tokens(const ds4_engine *g, enum ds4_think think, int ctx, struct ds4_tokens *out,
                         struct ds4_error *e)
{
    struct ds4_tokens none = {0};
    int rc = empty_turn(g, DS4_THINK_OFF, ctx, &none, NULL, e);
    if (!rc) rc = empty_turn(g, think, ctx, out, NULL, e);
    const bool any = !rc && out->n > none.n && none.n > 1 && out->p[1] != none.p[1];
    const size_t n = any ? out->n - none.n : 0;
    if (out->n) cut(out, 0, 1);
    out->n = n;
    ds4_tokens_free(&none);
    return rc;
}

static bool begins_with(const struct ds4_tokens *history, const struct ds4_tokens *effort)
{
    return effort->n && history->n > effort->n && !memcmp(history->p + 1, effort->p, effort->n * sizeof *effort->p);
}

static void insert(struct ds4_tokens *t, const struct ds4_tokens *effort)
{
    for (size_t i = 0; i < effort->n; i++) token_list_add(t, 0);
    memmove(t->p + 1 + effort->n, t->p + 1, (t->n - 1 - effort->n) * sizeof *t->p);
    memcpy(t->p + 1, effort->p, effort->n * sizeof *effort->p);
}

/* Gives a history the effort's tokens of this way of thinking. One that is no chat has no place for them. */
static int set_effort(const ds4_engine *g, const struct options *o, struct ds4_tokens *history, struct ds4_error *e)
{
    struct ds4_tokens wanted = {0}, other = {0}, turn = {0};
    int rc = effort_tokens(g, o->sampling.think, o->runtime.ctx, &wanted, e);
    if (!rc) rc = empty_turn(g, DS4_THINK_OFF, o->runtime.ctx, &turn, NULL, e);
    const bool chat = !rc && turn.n && history->p[0] == turn.p[0];
    if (chat && !begins_with(history, &wanted)) {
        for (enum ds4_think t = DS4_THINK_HIGH; !rc && t <= DS4_THINK_MAX; t++) {
            rc = effort_tokens(g, t, INT32_MAX, &other, e);
            if (!rc && begins_with(history, &other)) cut(history, 1, other.n);
        }
        if (!rc) insert(history, &wanted);
    }
    ds4_tokens_free(&wanted);
    ds4_tokens_free(&other);
    ds4_tokens_free(&turn);
    return rc;
}

/* ---------------------------------------------------------------- turns */

static int next_turn(const ds4_engine *g, const struct options *o, const struct ds4_message *m,
                     struct ds4_tokens *history, enum ds4_think *used, struct ds4_error *e)
{
    struct ds4_tokens t = {0};
    for (size_t i = 0; i < history->n; i++) token_list_add(&t, history->p[i]);
    int rc = set_effort(g, o, &t, e);
    if (!rc) rc = ds4_chat_next_tokens(g, m, 1, o->sampling.think, o->runtime.ctx, &t, used, e);
    if (rc) {
        ds4_tokens_free(&t);
        return rc;
    }
    ds4_tokens_free(history);
    *history = t;
    return 0;
}

int turn_tokens(const ds4_engine *g, const struct options *o, const char *text, size_t n, struct ds4_tokens *history,
                enum ds4_think *used, struct ds4_error *e)
{
    struct ds4_message m[2] = {{.role = DS4_SYSTEM, .text = o->system, .n_text = strlen(o->system)},
                               {.role = DS4_USER, .text = text, .n_text = n}};
    if (history->n) return next_turn(g, o, &m[1], history, used, e);
    const size_t from = *o->system ? 0 : 1;
    return ds4_chat_tokens(g, m + from, 2 - from, o->sampling.think, o->runtime.ctx, history, used, e);
}

enum ds4_think turn_thinking(const ds4_engine *g, const struct options *o)
{
    struct ds4_tokens t = {0};
    enum ds4_think used = o->sampling.think;
    empty_turn(g, o->sampling.think, o->runtime.ctx, &t, &used, NULL);
    ds4_tokens_free(&t);
    return used;
}
