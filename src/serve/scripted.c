#include "serve/scripted.h"
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/mem.h"
#include "models/deepseek4/deepseek4_prompt.h"
#include "models/qwen38/qwen38_prompt.h"
#include "serve/scripted_file.h"
#include "serve/scripted_vocabulary.h"

enum { N_LAYERS = 4, TEXT_CUT = 4, SLICE_NS = 2000000 };

struct scripted {
    struct script script;
    struct scripted_vocabulary *vocabulary;
    const struct prompt_codec *codec;
    int32_t eos;
    int ctx, chunk, sessions;
    struct scripted_session **session;
    size_t n_sessions;
};

struct scripted_session {
    struct served_session base;
    struct scripted *model;
    int32_t *token; /* [ctx] history, then what waits */
    int length, pending, done;
    enum ds4_state status;
    atomic_bool cancel;
    bool prefill;
    int layer;    /* of the chunk that is being read */
    uint64_t due; /* when the unit of work is done, ns */
    char failure[600];
    /* the answer: where its line has got to */
    const struct script_line *line;
    int64_t repetition; /* line->repeat: in the echo */
    size_t at;          /* offset in these bytes */
    int64_t emitted;
    struct str echo;
};

static struct scripted_session *of(struct served_session *s)
{
    return (struct scripted_session *)s;
}

static uint64_t ns(double ms)
{
    return (uint64_t)(ms * 1e6);
}

/* ---------------------------------------------------------------- the model */

static void info(const void *model, struct served_info *out)
{
    const struct scripted *m = model;
    const bool qwen = !strcmp(m->script.family, "qwen38");
    *out = (struct served_info){.name = "scripted",
                                .family = m->script.family,
                                .id = qwen ? "qwen3.8-flash-next" : "deepseek-v4-flash",
                                .codec = m->codec,
                                .ctx = m->ctx,
                                .sessions = m->sessions};
}

static void add_token(struct ds4_tokens *t, int32_t id)
{
    if (t->n == t->cap) t->p = mem_grow(t->p, (t->cap = 2 * t->cap + 256) * sizeof *t->p);
    t->p[t->n++] = id;
}

static int encode(const void *model, const struct prompt *p, struct ds4_tokens *out, size_t *at_part,
                  struct ds4_error *e)
{
    const struct scripted *m = model;
    for (size_t i = 0; i < p->n; i++) {
        const struct prompt_part *part = &p->part[i];
        if (at_part) at_part[i] = out->n;
        if (part->special)
            add_token(out, scripted_vocabulary_id(m->vocabulary, true, part->special, strlen(part->special)));
        for (size_t at = 0; !part->special && at < part->n; at += TEXT_CUT) {
            const size_t n = part->n - at < TEXT_CUT ? part->n - at : TEXT_CUT;
            add_token(out, scripted_vocabulary_id(m->vocabulary, false, p->text.p + part->start + at, n));
        }
    }
    return 0;
}

static size_t token_bytes(const void *model, int32_t id, const char **bytes)
{
    return scripted_vocabulary_bytes(((const struct scripted *)model)->vocabulary, id, NULL, bytes);
}

static bool token_is_control(const void *model, int32_t id)
{
    bool control;
    const char *bytes;
    scripted_vocabulary_bytes(((const struct scripted *)model)->vocabulary, id, &control, &bytes);
    return control;
}

static bool token_is_stop(const void *model, int32_t id)
{
    return id == ((const struct scripted *)model)->eos;
}

/* ---------------------------------------------------------------- sessions */

static const struct served_ops ops;

static int session_create(void *model, int ctx, struct served_session **out, struct ds4_error *e)
{
    struct scripted *m = model;
    struct scripted_session *s = mem_alloc(sizeof *s);
    s->base.ops = &ops;
    s->model = m;
    s->token = mem_alloc((size_t)m->ctx * sizeof *s->token);
    m->session = mem_grow(m->session, (m->n_sessions + 1) * sizeof *m->session);
    m->session[m->n_sessions++] = s;
    *out = &s->base;
    return 0;
}

static void session_free(struct served_session *base)
{
    struct scripted_session *s = of(base);
    struct scripted *m = s->model;
    for (size_t i = 0; i < m->n_sessions; i++)
        if (m->session[i] == s) m->session[i--] = m->session[--m->n_sessions];
    str_free(&s->echo);
    mem_free(s->token);
    mem_free(s);
}

static int session_fork(struct served_session *base, struct served_session **out, struct ds4_error *e)
{
    const struct scripted_session *s = of(base);
    session_create(s->model, s->model->ctx, out, e);
    of(*out)->length = s->length;
    memcpy(of(*out)->token, s->token, (size_t)s->length * sizeof *s->token);
    return 0;
}

static int session_length(const struct served_session *s)
{
    return ((const struct scripted_session *)s)->length;
}

static const int32_t *session_tokens(const struct served_session *s)
{
    return ((const struct scripted_session *)s)->token;
}

static int session_mark(struct served_session *s, int pos, struct ds4_error *e)
{
    return 0;
}

static int fail(struct ds4_error *e, int code, const char *message)
{
    e->code = code;
    snprintf(e->message, sizeof e->message, "%s", message);
    return code;
}

static void enqueue(struct scripted_session *s, const int32_t *tokens, int n, bool prefill)
{
    memcpy(s->token + s->length, tokens, (size_t)n * sizeof *tokens);
    s->pending = n;
    s->done = s->layer = 0;
    s->prefill = prefill;
    s->status = n ? DS4_BUSY : DS4_DONE;
    s->due = clock_ns() + (s->line ? ns(prefill ? s->line->layer_ms : s->line->token_ms) : 0);
    atomic_store(&s->cancel, false);
}

static int session_submit(struct served_session *base, const int32_t *tokens, int n, struct ds4_error *e)
{
    struct scripted_session *s = of(base);
    if (n > s->model->ctx - s->length) return fail(e, DS4_E_LIMIT, "the context is full");
    enqueue(s, tokens, n, false);
    return 0;
}

static int session_sync(struct served_session *base, const int32_t *tokens, int n, struct ds4_sync_info *found,
                        struct ds4_error *e)
{
    struct scripted_session *s = of(base);
    int common = 0;
    if (n > s->model->ctx) return fail(e, DS4_E_LIMIT, "the prompt does not fit into the context");
    while (common < n && common < s->length && tokens[common] == s->token[common]) common++;
    *found = (struct ds4_sync_info){.reused = common, .first_diff = common < n && common < s->length ? common : -1};
    s->length = common;
    enqueue(s, tokens + common, n - common, true);
    return 0;
}

static enum ds4_state session_collect(struct served_session *base, int *done, struct ds4_error *e)
{
    struct scripted_session *s = of(base);
    const enum ds4_state status = s->status;
    if (done) *done = s->done;
    if (status == DS4_FAILED && e) fail(e, DS4_E_DEVICE, s->failure);
    if (status != DS4_BUSY) s->status = DS4_IDLE;
    return status;
}

static void session_cancel(struct served_session *base)
{
    atomic_store(&of(base)->cancel, true);
}

/* ---------------------------------------------------------------- work */

static void session_end(struct scripted_session *s, enum ds4_state status)
{
    s->status = status;
    s->pending = 0;
}

static void commit(struct scripted_session *s, int n)
{
    s->length += n;
    s->pending -= n;
    s->done += n;
    s->layer = 0;
    if (!s->pending) session_end(s, DS4_DONE);
}

/* The unit of work that was due is done: a layer of a chunk, the pause ahead of the first token, or all that was
 * submitted. */
static void advance(struct scripted_session *s)
{
    const struct script_line *l = s->line;
    if (!s->prefill) {
        commit(s, s->pending);
        return;
    }
    if (l && l->error && l->error_at == SCRIPT_AT_PREFILL) {
        snprintf(s->failure, sizeof s->failure, "%s", l->error);
        session_end(s, DS4_FAILED);
        return;
    }
    const int n = s->pending < s->model->chunk ? s->pending : s->model->chunk;
    if (++s->layer == N_LAYERS && n == s->pending && l && l->token_ms > 0) {
        s->due = clock_ns() + ns(l->token_ms);
        return;
    }
    if (s->layer >= N_LAYERS) commit(s, n);
    s->due = clock_ns() + (l ? ns(l->layer_ms) : 0);
}

static void wait_for(uint64_t due, uint64_t now)
{
    const uint64_t n = due - now < SLICE_NS ? due - now : SLICE_NS;
    nanosleep(&(struct timespec){.tv_nsec = (long)n}, NULL);
}

static int step(void *model, struct ds4_error *e)
{
    struct scripted *m = model;
    const uint64_t now = clock_ns();
    uint64_t first = UINT64_MAX;
    bool busy = false, moved = false;
    for (size_t i = 0; i < m->n_sessions; i++) {
        struct scripted_session *s = m->session[i];
        if (s->status != DS4_BUSY) continue;
        if (atomic_load(&s->cancel)) {
            session_end(s, DS4_CANCELLED);
            moved = true;
        } else if (now >= s->due) {
            advance(s);
            moved = true;
        } else if (s->due < first) {
            first = s->due;
        }
        busy |= s->status == DS4_BUSY;
    }
    if (busy && !moved) wait_for(first, now);
    return busy;
}

/* ---------------------------------------------------------------- answers */

/* The prompt as JSON in which a control token is an array of its spelling; ASCII without <, > and &. */
static void echo_of(const struct prompt *p, struct str *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->n; i++) {
        const struct prompt_part *part = &p->part[i];
        if (part->special)
            json_array_append_new(list, json_pack("[s]", part->special));
        else
            json_array_append_new(list, json_stringn(p->text.p + part->start, part->n));
    }
    char *text = json_dumps(list, JSON_ENSURE_ASCII);
    for (const char *c = text ? text : ""; *c; c++) {
        if (*c == '<' || *c == '>' || *c == '&')
            str_printf(out, "\\u%04x", (unsigned)*c);
        else
            str_add(out, c, 1);
    }
    mem_free(text);
    json_decref(list);
}

static bool fits(const struct script_line *l, const struct str *prompt)
{
    for (size_t i = 0; i < l->n_when; i++)
        if (!memmem(prompt->p, prompt->n, l->when[i], strlen(l->when[i]))) return false;
    return true;
}

/* The first line with uses left that fits, else the last one, which never runs out. */
static const struct script_line *choose(struct script *script, const struct str *prompt)
{
    enum { USED_UP = -1 };
    for (size_t i = 0; i + 1 < script->n; i++) {
        struct script_line *l = &script->line[i];
        if (l->times == USED_UP || !fits(l, prompt)) continue;
        if (l->times == 1)
            l->times = USED_UP;
        else if (l->times)
            l->times--;
        return l;
    }
    return &script->line[script->n - 1];
}

static int begin(struct served_session *base, const struct prompt *p, struct ds4_error *e)
{
    struct scripted_session *s = of(base);
    struct str text = {0};
    prompt_spell(p, &text);
    s->line = choose(&s->model->script, &text);
    str_free(&text);
    s->repetition = s->emitted = 0;
    s->at = 0;
    str_clear(&s->echo);
    if (s->line->echo) echo_of(p, &s->echo);
    return 0;
}

/* Steps over to the next repetition, and behind the last one to the echo. */
static void normalise(struct scripted_session *s)
{
    while (s->repetition < s->line->repeat && s->at >= s->line->bytes.n) {
        s->repetition = s->line->bytes.n ? s->repetition + 1 : s->line->repeat;
        s->at = 0;
    }
}

static size_t next_cut(const struct script_line *l, size_t at)
{
    size_t low = 0, high = l->n_cuts - 1;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (l->cut[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return l->cut[low];
}

/* The bytes of the next token; false: there is none. */
static bool next_bytes(struct scripted_session *s, const char **bytes, size_t *n)
{
    const struct script_line *l = s->line;
    normalise(s);
    const bool echo = s->repetition == l->repeat;
    const struct str *from = echo ? &s->echo : &l->bytes;
    if (s->at >= from->n) return false;
    const size_t rest = from->n - s->at;
    *bytes = from->p + s->at;
    *n = echo ? (rest < l->echo_cut ? rest : l->echo_cut) : next_cut(l, s->at) - s->at;
    s->at += *n;
    return true;
}

static void fill_logprobs(const struct script_line *l, const struct served_draw *d, struct served_choice *out)
{
    out->logprob = (float)l->logprob;
    for (int i = 0; i < l->n_alternatives && i < d->alternatives; i++) {
        const struct script_alternative *a = &l->alternative[i];
        out->alternative[out->n_alternatives++] = (struct served_alternative){a->text, a->n, (float)a->logprob};
    }
}

static int next(struct served_session *base, const struct served_draw *d, struct served_choice *out,
                struct ds4_error *e)
{
    struct scripted_session *s = of(base);
    const struct script_line *l = s->line;
    const char *bytes;
    size_t n;
    *out = (struct served_choice){.id = s->model->eos};
    if (l->error && l->error_at == s->emitted) return fail(e, DS4_E_DEVICE, l->error);
    if (!next_bytes(s, &bytes, &n)) return l->full ? fail(e, DS4_E_LIMIT, "the context is full") : 0;
    out->id = scripted_vocabulary_id(s->model->vocabulary, false, bytes, n);
    s->emitted++;
    if (d->logprobs) fill_logprobs(l, d, out);
    return 0;
}

/* Byte number i of what is left to say, echo excluded. */
static char rest_at(const struct scripted_session *s, size_t i)
{
    return s->line->bytes.p[(s->at + i) % s->line->bytes.n];
}

static void forced(struct served_session *base, const char *text, size_t n)
{
    struct scripted_session *s = of(base);
    while (n && strchr(" \t\r\n", text[0])) text++, n--;
    while (n && strchr(" \t\r\n", text[n - 1])) n--;
    normalise(s);
    if (!n || s->repetition == s->line->repeat) return;
    const size_t size = s->line->bytes.n;
    const uint64_t all = (uint64_t)(s->line->repeat - s->repetition) * size - s->at, enough = 2 * size + n;
    const size_t rest = all < enough ? (size_t)all : (size_t)enough; /* what repeats needs no second look */
    for (size_t i = 0; i + n <= rest; i++) {
        size_t k = 0;
        while (k < n && rest_at(s, i + k) == text[k]) k++;
        if (k < n) continue;
        s->repetition += (int64_t)((s->at + i + n) / size);
        s->at = (s->at + i + n) % size;
        return;
    }
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

int scripted_open(const struct scripted_options *o, struct served *out, struct err *e)
{
    struct scripted *m = mem_alloc(sizeof *m);
    const int rc = script_read(o->path, &m->script, e);
    *out = (struct served){&ops, m};
    if (rc) {
        script_free(&m->script);
        mem_free(m);
        return rc;
    }
    m->vocabulary = scripted_vocabulary_new();
    m->codec = strcmp(m->script.family, "qwen38") ? &deepseek4_prompt : &qwen38_prompt;
    m->eos = scripted_vocabulary_id(m->vocabulary, true, m->codec->stops[0], strlen(m->codec->stops[0]));
    m->ctx = o->ctx ? o->ctx : 32768;
    m->chunk = o->prefill_chunk ? o->prefill_chunk : 2048;
    m->sessions = o->sessions ? o->sessions : 1;
    return 0;
}

void scripted_close(struct served *s)
{
    struct scripted *m = s->model;
    mem_free(m->session);
    scripted_vocabulary_free(m->vocabulary);
    script_free(&m->script);
    mem_free(m);
    *s = (struct served){0};
}
