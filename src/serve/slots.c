/* Which session a prompt goes to: the one whose history it goes on from, or the one whose loss costs least, with a copy
 * of a history that begins alike where there is one. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/str.h"
#include "serve/scheduler_internal.h"

enum {
    FORK_FROM = 64,    /* tokens in common that are worth a copy */
    MARKED_TURNS = 4,  /* of the last turns: where the next request may differ */
    HALF_LIFE_S = 600, /* what an unused history is worth halves in this time */
};

static struct history history_of(const struct slot *t)
{
    return (struct history){t->session->ops->tokens(t->session), t->sampled, t->session->ops->length(t->session)};
}

/* What it would cost to read an idle history again, and how likely that is. */
static double worth(const struct slot *t, double now)
{
    const int n = t->session->ops->length(t->session);
    return n * exp2(-(now - t->used) / HALF_LIFE_S);
}

/* The idle session that is worth least. */
static struct slot *least(struct scheduler *s, double now)
{
    struct slot *best = NULL;
    for (int i = 0; i < s->n_slots; i++) {
        struct slot *t = &s->slot[i];
        if (t->job) continue;
        if (!best || worth(t, now) < worth(best, now)) best = t;
    }
    return best;
}

struct match {
    struct slot *slot; /* NULL: nothing in common with any */
    struct prefix prefix;
};

/* The history that shares most with the prompt: of idle sessions only, or also of those that write an answer. */
static struct match best_match(struct scheduler *s, const struct ask *a, bool idle)
{
    struct match best = {0};
    for (int i = 0; i < s->n_slots; i++) {
        struct slot *t = &s->slot[i];
        if (t->job && (idle || !t->answering)) continue; /* a prompt that is being read cannot be copied */
        const struct history h = history_of(t);
        const struct prefix p = prefix_find(&s->o.model, &h, a->tokens.p, (int)a->tokens.n);
        if (p.reused > best.prefix.reused) best = (struct match){t, p};
    }
    return best;
}

/* Whether going on from this history keeps all of it that is worth keeping: the prompt goes on from its end, from
 * within its last answer, or from not far before. */
static bool goes_on(const struct scheduler *s, const struct match *m)
{
    const struct history h = history_of(m->slot);
    int from = h.n;
    while (from > 0 && h.sampled[from - 1]) from--;
    const int lost = from - m->prefix.reused;
    return lost <= 0 || lost < m->prefix.reused / 8;
}

/* The target becomes a copy of the source's history. */
static int copy_history(struct slot *target, const struct slot *source, struct ds4_error *e)
{
    struct served_session *copy = NULL;
    const int rc = source->session->ops->fork(source->session, &copy, e);
    if (rc) return rc;
    target->session->ops->session_free(target->session);
    target->session = copy;
    memcpy(target->sampled, source->sampled, (size_t)copy->ops->length(copy) * sizeof *target->sampled);
    return 0;
}

/* ---------------------------------------------------------------- the reason in the log */

static void add_token_text(const struct scheduler *s, int32_t id, struct str *out)
{
    enum { MOST = 24 };
    const char *bytes;
    size_t n = s->o.model.ops->token_bytes(s->o.model.model, id, &bytes);
    const bool cut = n > MOST;
    if (cut) n = MOST;
    str_puts(out, "\"");
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n')
            str_puts(out, "\\n");
        else
            str_add(out, bytes[i] == '"' ? "'" : &bytes[i], 1);
    }
    str_puts(out, cut ? "...\"" : "\"");
}

/* near: the history that shares most with the prompt, which is not that of t where too little is shared. */
static void explain(struct scheduler *s, struct slot *t, const struct match *near, const struct job *j)
{
    const bool other = t->prefix.reused == 0 && near->slot;
    const struct history h = history_of(other ? near->slot : t);
    const struct prefix *p = other ? &near->prefix : &t->prefix;
    struct str text = {0};
    if (p->reused == 0 && h.n == 0)
        str_puts(&text, "no history to go on from");
    else if (p->reused == h.n)
        str_printf(&text, "goes on from all %d tokens", h.n);
    else if (p->from == (int)j->ask.tokens.n)
        str_printf(&text, "the prompt is a part of a history of %d tokens", h.n);
    else {
        str_printf(&text, "differs at token %d: history ", p->reused);
        add_token_text(s, h.token[p->reused], &text);
        str_puts(&text, ", prompt ");
        add_token_text(s, j->ask.tokens.p[p->from], &text);
    }
    text_defuse(text.p, text.n);
    snprintf(t->why, sizeof t->why, "%s", str_c(&text));
    str_free(&text);
}

/* ---------------------------------------------------------------- reading the prompt */

/* Where the next request may go on differently: behind the system text, at the last turns, where the answer starts.
 * After the sync: what was dropped of the history before is ahead again. */
static int mark_turns(struct slot *t, const struct ask *a, int shift, int n, struct ds4_error *e)
{
    const struct served_ops *ops = t->session->ops;
    int rc = 0;
    for (int i = 0; i < a->n_turns && rc == 0; i++) {
        const int pos = a->turn[i] + shift;
        if ((i == 0 || i >= a->n_turns - MARKED_TURNS) && pos >= ops->length(t->session) && pos < n)
            rc = ops->mark(t->session, pos, e);
    }
    /* behind the control token of the last turn: with and without thinking go on from there */
    if (rc == 0 && a->n_turns && a->turn[a->n_turns - 1] + 1 + shift < n)
        rc = ops->mark(t->session, a->turn[a->n_turns - 1] + 1 + shift, e);
    return rc ? rc : ops->mark(t->session, n, e);
}

/* The prompt with the history's own tokens for what it has of it. */
static int32_t *effective(const struct slot *t, const struct ask *a, int *n)
{
    const struct prefix *p = &t->prefix;
    *n = p->reused + (int)a->tokens.n - p->from;
    int32_t *list = mem_alloc((size_t)(*n + 1) * sizeof *list);
    memcpy(list, t->session->ops->tokens(t->session), (size_t)p->reused * sizeof *list);
    memcpy(list + p->reused, a->tokens.p + p->from, (a->tokens.n - (size_t)p->from) * sizeof *list);
    return list;
}

static int read_prompt(struct scheduler *s, struct slot *t, struct job *j, struct ds4_error *e)
{
    const struct served_ops *ops = t->session->ops;
    struct ds4_sync_info found;
    int n;
    if (t->prefix.reused - t->prefix.from + (int)j->ask.tokens.n >= s->o.ctx)
        t->prefix = (struct prefix){0}; /* only the prompt's own tokens are known to fit */
    int32_t *tokens = effective(t, &j->ask, &n);
    const int shift = t->prefix.reused - t->prefix.from;
    int rc = ops->begin(t->session, &j->ask.prompt, e);
    if (rc == 0) rc = ops->sync(t->session, tokens, n, &found, e);
    if (rc == 0) rc = mark_turns(t, &j->ask, shift, n, e);
    mem_free(tokens);
    if (rc) return rc;
    memset(t->sampled + t->prefix.reused, 0, (size_t)(n - t->prefix.reused) * sizeof *t->sampled);
    t->usage = (struct usage){.prompt = n, .cached = found.reused};
    return 0;
}

int slot_place(struct scheduler *s, struct job *j, struct slot **out, struct ds4_error *e)
{
    struct match m = best_match(s, &j->ask, true);
    struct slot *t = m.slot;
    int rc = 0;
    if (!t || !goes_on(s, &m)) {
        m = best_match(s, &j->ask, false);
        t = least(s, j->placed);
        const bool copy = m.slot && m.slot != t && m.prefix.reused >= FORK_FROM;
        if (copy && m.slot->job && !m.slot->ready) return SLOT_LATER;
        if (copy) rc = copy_history(t, m.slot, e);
    }
    if (rc) return rc;
    const struct history h = history_of(t);
    t->prefix = prefix_find(&s->o.model, &h, j->ask.tokens.p, (int)j->ask.tokens.n);
    explain(s, t, &m, j);
    t->answering = t->ready = false;
    *out = t;
    return read_prompt(s, t, j, e);
}

int slot_read(const struct slot *t)
{
    if (t->answering) return t->usage.prompt - t->usage.cached;
    const int read = t->session->ops->length(t->session) - t->usage.cached;
    return read > 0 ? read : 0; /* what was kept of the history may have to be gone through again */
}
