#include "serve_kit.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/log.h"
#include "base/mem.h"
#include "serve/api.h"
#include "serve/asking.h"
#include "serve/scripted.h"
#include "temp_files.h"

enum { PATIENCE_S = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all here */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int n_over;

/* Waits for changed, with the lock. */
static void wait_a_little(const char *what, const struct timespec *until)
{
    if (pthread_cond_timedwait(&changed, &lock, until) != ETIMEDOUT) return;
    pthread_mutex_unlock(&lock);
    fail_msg("%s did not come", what);
}

static struct timespec patience(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += PATIENCE_S;
    return t;
}

#define WAIT_FOR(condition)                                                                                            \
    do {                                                                                                               \
        const struct timespec until = patience();                                                                      \
        pthread_mutex_lock(&lock);                                                                                     \
        while (!(condition)) wait_a_little(#condition, &until);                                                        \
        pthread_mutex_unlock(&lock);                                                                                   \
    } while (0)

/* ---------------------------------------------------------------- JSON */

const char *serve_json(const char *fmt, ...)
{
    static struct str text[16];
    static unsigned at;
    struct str *s = &text[at++ % 16];
    va_list ap;
    str_clear(s);
    va_start(ap, fmt);
    str_vprintf(s, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < s->n; i++)
        if (s->p[i] == '\'') s->p[i] = '"';
    return s->p;
}

const char *serve_user(const char *text, const char *more)
{
    return serve_json("{'messages':[{'role':'user','content':'%s'}],'thinking':false%s}", text, more);
}

/* ---------------------------------------------------------------- a model that can be held and broken */

static struct {
    const struct served_ops *inner;
    struct served_ops ops;
    bool closed, waiting;
    int permits, steps, forks;
    int code[SERVE_CALLS];
    char message[SERVE_CALLS][100];
} hooked;

/* True, with *e, once after serve_fail. */
static int broken(enum serve_call call, struct ds4_error *e)
{
    pthread_mutex_lock(&lock);
    const int code = hooked.code[call];
    hooked.code[call] = 0;
    pthread_mutex_unlock(&lock);
    if (!code || !e) return code;
    e->code = code;
    snprintf(e->message, sizeof e->message, "%s", hooked.message[call]);
    return code;
}

static int hooked_encode(const void *model, const struct prompt *p, struct ds4_tokens *out, size_t *at,
                         struct ds4_error *e)
{
    const int rc = broken(SERVE_ENCODE, e);
    return rc ? rc : hooked.inner->encode(model, p, out, at, e);
}

static int hooked_create(void *model, int ctx, struct served_session **out, struct ds4_error *e)
{
    const int rc = hooked.inner->session_create(model, ctx, out, e);
    if (rc == 0) (*out)->ops = &hooked.ops;
    return rc;
}

static int hooked_fork(struct served_session *s, struct served_session **out, struct ds4_error *e)
{
    int rc = broken(SERVE_FORK, e);
    if (rc == 0) rc = hooked.inner->fork(s, out, e);
    if (rc == 0) {
        (*out)->ops = &hooked.ops;
        pthread_mutex_lock(&lock);
        hooked.forks++;
        pthread_mutex_unlock(&lock);
    }
    return rc;
}

static int hooked_sync(struct served_session *s, const int32_t *tokens, int n, struct ds4_sync_info *info,
                       struct ds4_error *e)
{
    const int rc = broken(SERVE_SYNC, e);
    return rc ? rc : hooked.inner->sync(s, tokens, n, info, e);
}

static int hooked_submit(struct served_session *s, const int32_t *tokens, int n, struct ds4_error *e)
{
    const int rc = broken(SERVE_SUBMIT, e);
    return rc ? rc : hooked.inner->submit(s, tokens, n, e);
}

static enum ds4_state hooked_collect(struct served_session *s, int *done, struct ds4_error *e)
{
    const enum ds4_state state = hooked.inner->collect(s, done, e);
    return state == DS4_DONE && broken(SERVE_COLLECT, e) ? DS4_FAILED : state;
}

static int hooked_next(struct served_session *s, const struct served_draw *d, struct served_choice *out,
                       struct ds4_error *e)
{
    const int rc = broken(SERVE_NEXT, e);
    return rc ? rc : hooked.inner->next(s, d, out, e);
}

static int hooked_step(void *model, struct ds4_error *e)
{
    pthread_mutex_lock(&lock);
    hooked.waiting = true;
    pthread_cond_broadcast(&changed);
    while (hooked.closed && !hooked.permits) pthread_cond_wait(&changed, &lock);
    if (hooked.permits) hooked.permits--;
    hooked.waiting = false;
    hooked.steps++;
    pthread_mutex_unlock(&lock);
    return hooked.inner->step(model, e);
}

static struct served hook(const struct served *m)
{
    hooked.inner = m->ops;
    hooked.ops = *m->ops;
    hooked.ops.encode = hooked_encode;
    hooked.ops.session_create = hooked_create;
    hooked.ops.fork = hooked_fork;
    hooked.ops.sync = hooked_sync;
    hooked.ops.submit = hooked_submit;
    hooked.ops.collect = hooked_collect;
    hooked.ops.next = hooked_next;
    hooked.ops.step = hooked_step;
    hooked.closed = false;
    hooked.permits = hooked.steps = hooked.forks = 0;
    memset(hooked.code, 0, sizeof hooked.code);
    return (struct served){&hooked.ops, m->model};
}

void serve_gate_close(void)
{
    pthread_mutex_lock(&lock);
    hooked.closed = true;
    pthread_mutex_unlock(&lock);
}

void serve_gate_open(void)
{
    pthread_mutex_lock(&lock);
    hooked.closed = false;
    hooked.permits = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void serve_gate_pass(int n)
{
    pthread_mutex_lock(&lock);
    hooked.permits += n;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void serve_gate_await(void)
{
    WAIT_FOR(hooked.waiting && !hooked.permits);
}

int serve_steps(void)
{
    pthread_mutex_lock(&lock);
    const int n = hooked.steps;
    pthread_mutex_unlock(&lock);
    return n;
}

int serve_forks(void)
{
    pthread_mutex_lock(&lock);
    const int n = hooked.forks;
    pthread_mutex_unlock(&lock);
    return n;
}

void serve_fail(enum serve_call call, int code, const char *message)
{
    pthread_mutex_lock(&lock);
    hooked.code[call] = code;
    snprintf(hooked.message[call], sizeof hooked.message[call], "%s", message);
    pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- answers */

static void close_bracket(struct serve_answer *a)
{
    if (a->last == 'R' || a->last == 'T') str_puts(&a->line, "]");
    a->last = 0;
}

static void on_started(void *arg, const struct usage *usage)
{
    struct serve_answer *a = arg;
    pthread_mutex_lock(&lock);
    a->started = true;
    a->first = *usage;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_alive(void *arg)
{
    pthread_mutex_lock(&lock);
    ((struct serve_answer *)arg)->alive++;
    pthread_mutex_unlock(&lock);
}

static void add_logprob(struct str *s, const struct event_logprob *p)
{
    str_add(s, p->bytes, p->n);
    str_printf(s, ":%g", (double)p->logprob);
}

static void add_logprobs(struct serve_answer *a, const struct event *v)
{
    add_logprob(&a->logprobs, &v->token);
    str_puts(&a->logprobs, "(");
    for (int i = 0; i < v->n_alternatives; i++) {
        if (i) str_puts(&a->logprobs, " ");
        add_logprob(&a->logprobs, &v->alternative[i]);
    }
    str_puts(&a->logprobs, ") ");
}

static void on_event(void *arg, const struct event *v)
{
    static const char kinds[] = {[EVENT_REASONING] = 'R', [EVENT_TEXT] = 'T', [EVENT_CALL_BEGIN] = 'C'};
    struct serve_answer *a = arg;
    pthread_mutex_lock(&lock);
    if (v->kind == EVENT_LOGPROBS) {
        add_logprobs(a, v);
    } else {
        if (v->kind <= EVENT_CALL_BEGIN && (a->last != kinds[v->kind] || v->kind == EVENT_CALL_BEGIN)) {
            close_bracket(a);
            str_printf(&a->line, "[%c ", a->last = kinds[v->kind]);
        }
        if (v->kind == EVENT_CALL_BEGIN && a->n_calls < 8) snprintf(a->call[a->n_calls++], CALL_ID_SIZE, "%s", v->id);
        if (v->n) str_add(&a->line, v->bytes, v->n);
        if (v->kind == EVENT_CALL_BEGIN) str_puts(&a->line, " ");
        if (v->kind == EVENT_CALL_END) str_puts(&a->line, "]");
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_over(struct serve_answer *a)
{
    close_bracket(a);
    a->over = true;
    a->order = ++n_over;
    pthread_cond_broadcast(&changed);
}

static void on_end(void *arg, const struct answer_result *result)
{
    struct serve_answer *a = arg;
    pthread_mutex_lock(&lock);
    a->result = *result;
    snprintf(a->stop_string, sizeof a->stop_string, "%s", result->stop_string ? result->stop_string : "");
    on_over(a);
    pthread_mutex_unlock(&lock);
}

static void on_error(void *arg, const struct api_error *error)
{
    struct serve_answer *a = arg;
    pthread_mutex_lock(&lock);
    a->error = *error;
    on_over(a);
    pthread_mutex_unlock(&lock);
}

static void on_drop(void *arg)
{
    pthread_mutex_lock(&lock);
    ((struct serve_answer *)arg)->dropped = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static const struct client client = {on_started, on_alive, on_event, on_end, on_error, on_drop};

void serve_ask_as(struct serve_kit *k, const char *key, enum api api, const char *json, struct serve_answer *a)
{
    struct request *r;
    struct ask ask;
    struct api_error why = {0};
    memset(a, 0, sizeof *a);
    if (api_read(api, mem_strdup(json), strlen(json), &r, &why)) fail_msg("%s", why.message);
    r->key = key ? mem_strdup(key) : NULL;
    if (asking_prepare(&k->options.model, k->options.memory, k->options.ctx, r, "test", &ask, &a->error)) {
        a->over = a->dropped = true;
        return;
    }
    a->error = (struct api_error){0};
    if (asking_check_fits(&ask, k->options.ctx, &a->error) == 0)
        a->number = scheduler_add(k->scheduler, &ask, &client, a, &a->error);
    if (a->number) return;
    ask_free(&ask);
    a->over = a->dropped = true;
}

void serve_ask(struct serve_kit *k, enum api api, const char *json, struct serve_answer *a)
{
    serve_ask_as(k, NULL, api, json, a);
}

void serve_wait(struct serve_answer *a)
{
    WAIT_FOR(a->dropped);
}

void serve_await(struct serve_answer *a, size_t length)
{
    WAIT_FOR(a->line.n >= length || a->over);
}

void serve_await_started(struct serve_answer *a)
{
    WAIT_FOR(a->started || a->over);
}

void serve_say(struct serve_kit *k, enum api api, const char *json, struct serve_answer *a)
{
    serve_ask(k, api, json, a);
    serve_wait(a);
}

void serve_answer_free(struct serve_answer *a)
{
    str_free(&a->line);
    str_free(&a->logprobs);
}

void serve_expect(struct serve_kit *k, const char *json, const char *line, enum finish finish)
{
    struct serve_answer a;
    serve_say(k, API_CHAT, json, &a);
    if (a.error.status) fail_msg("%s: %s", json, a.error.message);
    assert_string_equal(str_c(&a.line), line);
    assert_int_equal(a.result.finish, finish);
    serve_answer_free(&a);
}

/* ---------------------------------------------------------------- models and the scheduler */

void serve_script(const char *lines, int ctx, int chunk, struct served *out)
{
    char path[TEMP_PATH];
    struct err e = {0};
    temp_file(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(lines, f);
    fclose(f);
    const struct scripted_options o = {.path = path, .ctx = ctx, .prefill_chunk = chunk, .sessions = 1};
    const int rc = scripted_open(&o, out, &e);
    temp_remove(path);
    if (rc) fail_msg("%s", e.msg);
}

void serve_prompt(const struct served *m, const char *text, struct prompt *p)
{
    struct served_info info;
    struct err e = {0};
    const struct chat_message message = {.role = CHAT_USER, .text = {text, strlen(text)}};
    const struct chat_options o = {.thinking = CHAT_THINK_OFF};
    m->ops->info(m->model, &info);
    if (info.codec->render(&message, 1, &o, p, &e)) fail_msg("%s", e.msg);
}

static void on_log(void *arg, enum log_level level, const char *subject, const char *text)
{
    struct serve_kit *k = arg;
    pthread_mutex_lock(&lock);
    str_printf(&k->log, "%s: %s\n", subject, text);
    pthread_mutex_unlock(&lock);
}

static void *run(void *arg)
{
    scheduler_run(arg);
    return NULL;
}

void serve_kit_start(struct serve_kit *k, const char *lines)
{
    struct scheduler_options *o = &k->options;
    struct served_info info;
    struct err e = {0};
    k->inner = o->model;
    k->scripted = lines != NULL;
    if (lines) serve_script(lines, o->ctx, 0, &k->inner);
    k->inner.ops->info(k->inner.model, &info);
    o->model = hook(&k->inner);
    o->memory = tool_memory_new(1000, 1 << 20);
    if (!o->sessions) o->sessions = 1;
    if (!o->ctx) o->ctx = info.ctx;
    if (!o->max_tokens) o->max_tokens = 1000;
    n_over = 0;
    log_to(on_log, k, LOG_INFO);
    if (scheduler_create(o, &k->scheduler, &e)) fail_msg("%s", e.msg);
    assert_int_equal(pthread_create(&k->thread, NULL, run, k->scheduler), 0);
}

void serve_kit_end(struct serve_kit *k)
{
    scheduler_stop(k->scheduler);
    serve_gate_open();
    pthread_join(k->thread, NULL);
    scheduler_free(k->scheduler);
    tool_memory_free(k->options.memory);
    log_to(NULL, NULL, LOG_WARN);
    if (k->scripted) scripted_close(&k->inner);
    str_free(&k->log);
}
