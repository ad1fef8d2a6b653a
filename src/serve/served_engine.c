#include "serve/served_engine.h"
#include <string.h>
#include "base/mem.h"
#include "engine/engine_prompt.h"

struct served_engine {
    ds4_engine *engine;
    struct ds4_model_info info;
    int sessions, ctx;
};

struct engine_session {
    struct served_session base;
    const struct served_engine *model;
    ds4_session *session;
};

static ds4_session *of(const struct served_session *s)
{
    return ((const struct engine_session *)s)->session;
}

static const struct served_engine *model_of(const struct served_session *s)
{
    return ((const struct engine_session *)s)->model;
}

/* ---------------------------------------------------------------- the model */

/* What the APIs call a family's models. */
static const char *api_id(const struct ds4_model_info *m)
{
    if (!strcmp(m->family, "qwen38")) return "qwen3.8-flash-next";
    return m->n_layers > 43 ? "deepseek-v4-pro" : "deepseek-v4-flash";
}

static void info(const void *model, struct served_info *out)
{
    const struct served_engine *m = model;
    *out = (struct served_info){.name = m->info.name,
                                .family = m->info.family,
                                .id = api_id(&m->info),
                                .codec = engine_prompt_codec(m->engine),
                                .efforts = engine_prompt_efforts(m->engine),
                                .ctx = m->ctx,
                                .sessions = m->sessions};
}

static int encode(const void *model, const struct prompt *p, struct ds4_tokens *out, size_t *at, struct ds4_error *e)
{
    return engine_prompt_encode(((const struct served_engine *)model)->engine, p, out, at, e);
}

static size_t token_bytes(const void *model, int32_t id, const char **bytes)
{
    return ds4_token_bytes(((const struct served_engine *)model)->engine, id, bytes);
}

static bool token_is_control(const void *model, int32_t id)
{
    return ds4_token_is_special(((const struct served_engine *)model)->engine, id);
}

static bool token_is_stop(const void *model, int32_t id)
{
    return ds4_token_is_stop(((const struct served_engine *)model)->engine, id);
}

/* ---------------------------------------------------------------- sessions */

static const struct served_ops ops;

static struct served_session *wrap(const struct served_engine *m, ds4_session *session)
{
    struct engine_session *s = mem_alloc(sizeof *s);
    *s = (struct engine_session){{&ops}, m, session};
    return &s->base;
}

static int session_create(void *model, int ctx, struct served_session **out, struct ds4_error *e)
{
    const struct served_engine *m = model;
    ds4_session *session;
    const int rc = ds4_session_create(m->engine, ctx, &session, e);
    if (rc == 0) *out = wrap(m, session);
    return rc;
}

static void session_free(struct served_session *s)
{
    ds4_session_free(of(s));
    mem_free(s);
}

static int session_fork(struct served_session *s, struct served_session **out, struct ds4_error *e)
{
    ds4_session *session;
    const int rc = ds4_session_fork(of(s), &session, e);
    if (rc == 0) *out = wrap(model_of(s), session);
    return rc;
}

static int session_length(const struct served_session *s)
{
    return ds4_session_length(of(s));
}

static const int32_t *session_tokens(const struct served_session *s)
{
    return ds4_session_tokens(of(s));
}

static int session_mark(struct served_session *s, int pos, struct ds4_error *e)
{
    return ds4_session_mark(of(s), pos, e);
}

static int session_sync(struct served_session *s, const int32_t *tokens, int n, struct ds4_sync_info *found,
                        struct ds4_error *e)
{
    return ds4_session_sync_submit(of(s), tokens, n, found, e);
}

static int session_submit(struct served_session *s, const int32_t *tokens, int n, struct ds4_error *e)
{
    return ds4_session_submit(of(s), tokens, n, e);
}

static enum ds4_state session_collect(struct served_session *s, int *done, struct ds4_error *e)
{
    return ds4_session_collect(of(s), done, e);
}

static void session_cancel(struct served_session *s)
{
    ds4_session_cancel(of(s));
}

static int step(void *model, struct ds4_error *e)
{
    return ds4_engine_step(((struct served_engine *)model)->engine, e);
}

/* ---------------------------------------------------------------- answers */

static int begin(struct served_session *s, const struct prompt *p, struct ds4_error *e)
{
    return 0;
}

static void fill_logprobs(const struct served_engine *m, const float *logits, const struct served_draw *d,
                          struct served_choice *out)
{
    struct ds4_logprob best[SERVED_MAX_ALTERNATIVES];
    out->logprob = ds4_token_logprob(logits, m->info.n_vocab, out->id);
    out->n_alternatives = d->alternatives ? ds4_top_logprobs(logits, m->info.n_vocab, d->alternatives, best) : 0;
    for (int i = 0; i < out->n_alternatives; i++) {
        struct served_alternative *a = &out->alternative[i];
        a->n = ds4_token_bytes(m->engine, best[i].id, &a->bytes);
        a->logprob = best[i].logprob;
    }
}

static int next(struct served_session *s, const struct served_draw *d, struct served_choice *out, struct ds4_error *e)
{
    const struct served_engine *m = model_of(s);
    const float *logits = ds4_session_logits(of(s));
    const int rc = ds4_logits_check(logits, m->info.n_vocab, e);
    if (rc) return rc;
    *out = (struct served_choice){
        .id = ds4_sample(logits, m->info.n_vocab, d->sampling, (uint64_t)ds4_session_length(of(s)))};
    if (d->logprobs) fill_logprobs(m, logits, d, out);
    return 0;
}

static void forced(struct served_session *s, const char *text, size_t n)
{
}

static const struct served_ops ops = {.info = info,
                                      .encode = encode,
                                      .token_bytes = token_bytes,
                                      .token_is_control = token_is_control,
                                      .token_is_stop = token_is_stop,
                                      .session_create = session_create,
                                      .session_free = session_free,
                                      .fork = session_fork,
                                      .length = session_length,
                                      .tokens = session_tokens,
                                      .mark = session_mark,
                                      .sync = session_sync,
                                      .submit = session_submit,
                                      .collect = session_collect,
                                      .cancel = session_cancel,
                                      .step = step,
                                      .begin = begin,
                                      .next = next,
                                      .forced = forced};

void served_engine_open(ds4_engine *g, int sessions, int ctx, struct served *out)
{
    struct served_engine *m = mem_alloc(sizeof *m);
    *m = (struct served_engine){.engine = g, .sessions = sessions, .ctx = ctx};
    ds4_engine_info(g, &m->info);
    *out = (struct served){&ops, m};
}

void served_engine_close(struct served *s)
{
    mem_free(s->model);
    *s = (struct served){0};
}
