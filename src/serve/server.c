#include "serve/server.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "serve/exchange.h"
#include "serve/pages.h"
#include "serve/server_internal.h"

enum { FAILED_S = 5, MEMORY_BYTES = 512 << 20, SMALL_BYTES = 1 << 20, BODIES_BYTES = 256 << 20 };

/* ---------------------------------------------------------------- the threads that read requests */

void server_uncount(struct server *s, size_t n)
{
    pthread_mutex_lock(&s->lock);
    s->bodies -= n;
    pthread_mutex_unlock(&s->lock);
}

static void incoming_free(struct server *s, struct incoming *q)
{
    server_uncount(s, q->counted);
    http_reply_release(q->reply);
    mem_free(q->body);
    mem_free(q->who);
    mem_free(q->key);
    mem_free(q);
}

static void *read_requests(void *arg)
{
    struct lane *l = arg;
    struct server *s = l->server;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        while (!l->first && !s->stopping) pthread_cond_wait(&l->wake, &s->lock);
        struct incoming *q = l->first;
        if (q) {
            l->first = q->next;
            if (!l->first) l->end = &l->first;
        }
        pthread_mutex_unlock(&s->lock);
        if (!q) return NULL;
        exchange_begin(s, q);
        incoming_free(s, q);
    }
}

/* False: there are too many large ones. */
static bool enqueue(struct server *s, struct incoming *q)
{
    const bool large = q->n_body > SMALL_BYTES;
    struct lane *l = large ? &s->large : &s->small;
    pthread_mutex_lock(&s->lock);
    const bool room = !large || q->n_body <= BODIES_BYTES - s->bodies;
    if (room) {
        q->counted = large ? q->n_body : 0;
        s->bodies += q->counted;
        *l->end = q;
        l->end = &q->next;
        pthread_cond_signal(&l->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return room;
}

static void lane_open(struct server *s, struct lane *l)
{
    *l = (struct lane){.server = s, .end = &l->first};
    pthread_cond_init(&l->wake, NULL);
}

static void take(struct server *s, enum asked what, struct http_reply *reply, struct http_request *q)
{
    struct incoming *in = mem_alloc(sizeof *in);
    struct str who = {0};
    str_printf(&who, "%s %s %s", q->method, q->path, q->client);
    text_defuse(who.p, who.n);
    *in = (struct incoming){.what = what, .n_body = q->n_body, .reply = reply, .who = mem_strdup(who.p)};
    in->entry = journal_begin(s->journal, q);
    in->key = q->key >= 0 ? mem_strdup(s->o.http.keys[q->key]) : NULL;
    in->body = http_request_take_body(q);
    str_free(&who);
    if (enqueue(s, in)) return;
    exchange_refuse(in);
    incoming_free(s, in);
}

/* ---------------------------------------------------------------- routes */

static void post_chat(void *arg, struct http_reply *r, struct http_request *q)
{
    take(arg, ASKED_CHAT, r, q);
}

static void post_completions(void *arg, struct http_reply *r, struct http_request *q)
{
    take(arg, ASKED_COMPLETIONS, r, q);
}

static void post_responses(void *arg, struct http_reply *r, struct http_request *q)
{
    take(arg, ASKED_RESPONSES, r, q);
}

static void post_messages(void *arg, struct http_reply *r, struct http_request *q)
{
    take(arg, ASKED_MESSAGES, r, q);
}

static void post_count(void *arg, struct http_reply *r, struct http_request *q)
{
    take(arg, ASKED_COUNT, r, q);
}

static void get_page(void *arg, struct http_reply *r, struct http_request *q)
{
    pages_get(arg, r, q);
    http_reply_release(r);
}

static void get_file(void *arg, struct http_reply *r, struct http_request *q)
{
    pages_get_file(r, q);
    http_reply_release(r);
}

static const struct http_route routes[] = {
    {"POST", "/v1/chat/completions", HTTP_JSON, post_chat},
    {"POST", "/v1/completions", HTTP_JSON, post_completions},
    {"POST", "/v1/responses", HTTP_JSON, post_responses},
    {"POST", "/v1/messages", HTTP_JSON, post_messages},
    {"POST", "/v1/messages/count_tokens", HTTP_JSON, post_count},
    {"GET", "/v1/models", 0, get_page},
    {"GET", "/v1/models/", 0, get_page},
    {"GET", "/props", 0, get_page},
    {"GET", "/metrics", 0, get_page},
    {"GET", "/health", HTTP_OPEN, get_page},
    {"GET", "/", HTTP_OPEN, get_file},
    {"GET", "/page.css", HTTP_OPEN, get_file},
    {"GET", "/page.js", HTTP_OPEN, get_file},
    {"GET", "/markdown.js", HTTP_OPEN, get_file},
    {"GET", "/favicon.svg", HTTP_OPEN, get_file},
};

static void error_body(void *arg, const char *path, int status, const char *message, struct str *out)
{
    struct api_error why = {.status = status,
                            .type = status == 401   ? "authentication_error"
                                    : status >= 500 ? "server_error"
                                                    : "invalid_request_error"};
    snprintf(why.message, sizeof why.message, "%s", message);
    api_error_body(path, &why, out);
}

/* ---------------------------------------------------------------- threads */

static void *run_scheduler(void *arg)
{
    scheduler_run(((struct server *)arg)->scheduler);
    return NULL;
}

/* Clients are told for a while; then a supervisor may start the program again. */
static void *watch_model(void *arg)
{
    struct server *s = arg;
    char reason[1000];
    for (int failed = 0; failed < 10 * FAILED_S;) {
        usleep(100000);
        if (http_stopping(s->http)) return NULL;
        if (scheduler_failed(s->scheduler, reason, sizeof reason) && failed++ == 0)
            log_msg(LOG_ERROR, "server", "the model has failed: %s; ending in %d s", reason, FAILED_S);
    }
    http_stop(s->http);
    return NULL;
}

int server_run(struct server *s)
{
    pthread_t scheduler, watch;
    thread_start(&s->small.thread, read_requests, &s->small);
    thread_start(&s->large.thread, read_requests, &s->large);
    thread_start(&scheduler, run_scheduler, s);
    thread_start(&watch, watch_model, s);
    http_run(s->http);
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->small.wake);
    pthread_cond_signal(&s->large.wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(watch, NULL);
    pthread_join(s->small.thread, NULL);
    pthread_join(s->large.thread, NULL);
    scheduler_stop(s->scheduler);
    pthread_join(scheduler, NULL);
    return scheduler_failed(s->scheduler, NULL, 0) ? SERVER_FAILED : 0;
}

void server_stop(struct server *s)
{
    http_stop(s->http);
}

/* ---------------------------------------------------------------- making and freeing */

int server_open(const struct server_options *o, struct server **out, struct err *e)
{
    struct server *s = mem_alloc(sizeof *s);
    s->o = *o;
    pthread_mutex_init(&s->lock, NULL);
    lane_open(s, &s->small);
    lane_open(s, &s->large);
    o->model.ops->info(o->model.model, &s->info);
    s->memory = tool_memory_new(o->tool_ids, MEMORY_BYTES);
    struct http_options http = o->http;
    http.routes = routes;
    http.n_routes = sizeof routes / sizeof *routes;
    http.error_body = error_body;
    http.arg = s;
    const struct scheduler_options so = {.model = o->model,
                                         .memory = s->memory,
                                         .sessions = o->sessions,
                                         .ctx = o->ctx,
                                         .max_tokens = o->max_tokens,
                                         .time_limit = o->time_limit,
                                         .repetition_guard = o->repetition_guard};
    int rc = o->journal ? journal_open(o->journal, http.keys, http.n_keys, &s->journal, e) : 0;
    if (rc == 0) rc = scheduler_create(&so, &s->scheduler, e);
    if (rc == 0) rc = http_open(&http, &s->http, e);
    *out = rc ? NULL : s;
    if (rc) server_close(s);
    return rc;
}

void server_close(struct server *s)
{
    if (!s) return;
    if (s->http) http_close(s->http);
    scheduler_free(s->scheduler);
    tool_memory_free(s->memory);
    journal_close(s->journal);
    pthread_cond_destroy(&s->small.wake);
    pthread_cond_destroy(&s->large.wake);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

const struct http *server_http(const struct server *s)
{
    return s->http;
}
