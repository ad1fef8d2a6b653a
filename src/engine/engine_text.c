/* Text to tokens and back, chat frames: the tokenizer and the family's prompt codec behind the types of ds4.h. All of
 * it reads the engine only, so any thread may call it. */
#include "engine/engine_internal.h"
#include "engine/engine_prompt.h"
#include "base/mem.h"

/* ---------------------------------------------------------------- opening */

/* The elements of a string array of the file; NULL: out of memory. */
static struct bpe_text *texts_of(const struct gguf_kv *kv, struct err *e)
{
    struct bpe_text *t = mem_try((size_t)kv->count * sizeof *t);
    for (uint64_t i = 0; t && i < kv->count; i++) {
        struct gguf_str v;
        if (gguf_string(kv, i, &v, e)) {
            mem_free(t);
            return NULL;
        }
        t[i] = (struct bpe_text){v.p, (size_t)v.n};
    }
    if (!t) err_set(e, ERR_MEMORY, "no memory for a vocabulary of %u strings", (unsigned)kv->count);
    return t;
}

int engine_text_open(struct ds4_engine *g, struct err *e)
{
    const struct prompt_codec *p = g->family->prompt;
    const struct gguf_kv *tokens = canonical_tokens(g->canonical), *merges = canonical_merges(g->canonical);
    struct bpe_text *t = texts_of(tokens, e), *m = t ? texts_of(merges, e) : NULL;
    int rc = e->code;
    if (rc == 0)
        rc = bpe_create(t, (size_t)tokens->count, m, (size_t)merges->count, p->specials, p->n_specials, p->pretokenizer,
                        p->check, &g->bpe, e);
    mem_free(m);
    mem_free(t);
    return rc;
}

/* ---------------------------------------------------------------- tokens */

void ds4_tokens_free(struct ds4_tokens *t)
{
    struct bpe_ids ids = {t->p, t->n, t->cap};
    bpe_ids_free(&ids);
    *t = (struct ds4_tokens){0};
}

int ds4_tokenize(const ds4_engine *g, const char *text, size_t n, bool rendered, struct ds4_tokens *out,
                 struct ds4_error *e)
{
    struct err err = {0};
    struct bpe_ids ids = {out->p, out->n, out->cap};
    const int rc =
        rendered ? bpe_encode_rendered(g->bpe, text, n, &ids, &err) : bpe_encode(g->bpe, text, n, &ids, &err);
    *out = (struct ds4_tokens){ids.p, ids.n, ids.cap};
    return rc ? engine_error(e, &err) : 0;
}

size_t ds4_token_bytes(const ds4_engine *g, int32_t id, const char **bytes)
{
    return bpe_token_bytes(g->bpe, id, bytes);
}

bool ds4_token_is_stop(const ds4_engine *g, int32_t id)
{
    const struct prompt_codec *p = g->family->prompt;
    for (size_t i = 0; i < p->n_stops; i++)
        if (id >= 0 && bpe_special(g->bpe, p->stops[i]) == id) return true;
    return false;
}

bool ds4_token_is_special(const ds4_engine *g, int32_t id)
{
    return bpe_is_special(g->bpe, id);
}

static int32_t special_or_none(const struct ds4_engine *g, const char *text)
{
    return text ? bpe_special(g->bpe, text) : -1;
}

int32_t ds4_token_think_begin(const ds4_engine *g)
{
    return special_or_none(g, g->family->prompt->think_open);
}

int32_t ds4_token_think_end(const ds4_engine *g)
{
    return special_or_none(g, g->family->prompt->think_close);
}

/* ---------------------------------------------------------------- chat */

static const enum chat_role roles[] = {
    [DS4_SYSTEM] = CHAT_SYSTEM, [DS4_USER] = CHAT_USER, [DS4_ASSISTANT] = CHAT_ASSISTANT, [DS4_TOOL] = CHAT_TOOL};
static const enum chat_thinking thinkings[] = {
    [DS4_THINK_OFF] = CHAT_THINK_OFF, [DS4_THINK_HIGH] = CHAT_THINK_HIGH, [DS4_THINK_MAX] = CHAT_THINK_MAX};

static enum ds4_think think_of(enum chat_thinking t)
{
    return t == CHAT_THINK_OFF ? DS4_THINK_OFF : t == CHAT_THINK_MAX ? DS4_THINK_MAX : DS4_THINK_HIGH;
}

/* Wording of efforts: 0 is a family's first checkpoint, 1 its later one. */
int engine_prompt_efforts(const ds4_engine *g)
{
    bool known;
    if (g->effort == DS4_EFFORT_FILE) return canonical_late_effort(g->canonical, &known);
    return g->effort == DS4_EFFORT_LATE;
}

const struct prompt_codec *engine_prompt_codec(const ds4_engine *g)
{
    return g->family->prompt;
}

int engine_prompt_encode(const ds4_engine *g, const struct prompt *p, struct ds4_tokens *out, size_t *at,
                         struct ds4_error *e)
{
    struct err err = {0};
    struct bpe_ids ids = {out->p, out->n, out->cap};
    const int rc = prompt_encode(g->bpe, p, &ids, at, &err);
    *out = (struct ds4_tokens){ids.p, ids.n, ids.cap};
    return rc ? engine_error(e, &err) : 0;
}

static int messages_convert(const struct ds4_message *m, size_t n, struct chat_message *out, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if ((size_t)m[i].role >= sizeof roles / sizeof *roles)
            return err_set(e, ERR_ARG, "message %zu has no known role", i);
        out[i] = (struct chat_message){
            .role = roles[m[i].role],
            .text = {m[i].text ? m[i].text : "", m[i].text ? m[i].n_text : 0},
            .reasoning = {m[i].reasoning ? m[i].reasoning : "", m[i].reasoning ? m[i].n_reasoning : 0}};
    }
    return 0;
}

/* Appends messages in the family's frame: a whole conversation, or one that follows a finished answer. */
static int chat_encode(const ds4_engine *g, bool follows, const struct ds4_message *m, size_t n, enum ds4_think think,
                       int ctx, struct ds4_tokens *out, enum ds4_think *used, struct ds4_error *e)
{
    struct err err = {0};
    const struct prompt_codec *p = g->family->prompt;
    if ((size_t)think >= sizeof thinkings / sizeof *thinkings) {
        err_set(&err, ERR_ARG, "no such way of thinking: %d", (int)think);
        return engine_error(e, &err);
    }
    const struct chat_options o = {.thinking = thinkings[think], .ctx = ctx, .efforts = engine_prompt_efforts(g)};
    struct chat_message *list = mem_try(n * sizeof *list);
    struct prompt prompt = {0};
    int rc = list ? messages_convert(m, n, list, &err) : err_set(&err, ERR_MEMORY, "no memory for %zu messages", n);
    if (rc == 0) rc = follows ? p->render_next(list, n, 0, &o, &prompt, &err) : p->render(list, n, &o, &prompt, &err);
    mem_free(list);
    rc = rc ? engine_error(e, &err) : engine_prompt_encode(g, &prompt, out, NULL, e);
    prompt_free(&prompt);
    if (rc == 0 && used) *used = think_of(p->thinking_used(&o));
    return rc;
}

int ds4_chat_tokens(const ds4_engine *g, const struct ds4_message *m, size_t n, enum ds4_think think, int ctx,
                    struct ds4_tokens *out, enum ds4_think *used, struct ds4_error *e)
{
    return chat_encode(g, false, m, n, think, ctx, out, used, e);
}

int ds4_chat_next_tokens(const ds4_engine *g, const struct ds4_message *m, size_t n, enum ds4_think think, int ctx,
                         struct ds4_tokens *out, enum ds4_think *used, struct ds4_error *e)
{
    return chat_encode(g, true, m, n, think, ctx, out, used, e);
}

bool ds4_is_rendered_chat(const ds4_engine *g, const char *text, size_t n)
{
    return g->family->prompt->is_rendered(text, n);
}
