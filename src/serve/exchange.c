#include "serve/exchange.h"
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "serve/asking.h"

enum { SILENCE_S = 4 }; /* a client that gets a stream hears something at least so often, and a second later at most */

/* What tells a client its answer; lives as long as the job. */
struct exchange {
    struct server *server;
    size_t counted;
    struct http_reply *reply;
    struct journal_entry *entry; /* until the answer is over */
    struct encoder *encoder;
    bool stream;
    const char *path;
    double told; /* s: when something was written last */
    struct str out;
};

/* ---------------------------------------------------------------- telling, on the scheduler's thread */

static const char *path_of(enum asked what)
{
    static const char *const paths[] = {[ASKED_CHAT] = "/v1/chat/completions",
                                        [ASKED_COMPLETIONS] = "/v1/completions",
                                        [ASKED_RESPONSES] = "/v1/responses",
                                        [ASKED_MESSAGES] = "/v1/messages",
                                        [ASKED_COUNT] = "/v1/messages/count_tokens"};
    return paths[what];
}

/* Ends the entry. */
static void send_error(struct http_reply *reply, struct journal_entry *entry, const char *path,
                       const struct api_error *why)
{
    struct str body = {0};
    char extra[40] = "";
    if (why->retry_after) snprintf(extra, sizeof extra, "Retry-After: %d\r\n", why->retry_after);
    api_error_body(path, why, &body);
    http_reply_send(reply, why->status, "application/json", body.p, body.n, *extra ? extra : NULL);
    journal_told(entry, body.n);
    journal_end(entry, why->status, "error");
    str_free(&body);
}

static void flush(struct exchange *x)
{
    if (!x->out.n) return;
    http_reply_write(x->reply, x->out.p, x->out.n);
    journal_told(x->entry, x->out.n);
    str_clear(&x->out);
    x->told = clock_s();
}

static void on_started(void *arg, const struct usage *usage)
{
    struct exchange *x = arg;
    encoder_started(x->encoder, usage, &x->out);
    flush(x);
}

static void on_alive(void *arg)
{
    struct exchange *x = arg;
    if (clock_s() - x->told < SILENCE_S) return;
    encoder_alive(x->encoder, &x->out);
    flush(x);
}

static void on_event(void *arg, const struct event *event)
{
    struct exchange *x = arg;
    encoder_event(x->encoder, event, &x->out);
    flush(x);
}

static void end_entry(struct exchange *x, int status, const char *how)
{
    journal_end(x->entry, status, how);
    x->entry = NULL;
}

static void on_end(void *arg, const struct answer_result *result)
{
    struct exchange *x = arg;
    encoder_end(x->encoder, result, &x->out);
    if (x->stream) {
        flush(x);
        http_reply_end(x->reply);
    } else {
        http_reply_send(x->reply, 200, "application/json", x->out.p, x->out.n, NULL);
        journal_told(x->entry, x->out.n);
    }
    end_entry(x, 200, "complete");
}

static void on_error(void *arg, const struct api_error *why)
{
    struct exchange *x = arg;
    if (!x->stream) {
        send_error(x->reply, x->entry, x->path, why);
        x->entry = NULL;
        return;
    }
    encoder_error(x->encoder, why, &x->out);
    flush(x);
    http_reply_end(x->reply);
    end_entry(x, 200, "error");
}

static void on_drop(void *arg)
{
    struct exchange *x = arg;
    end_entry(x, x->stream ? 200 : 0, "client gone");
    http_reply_release(x->reply);
    server_uncount(x->server, x->counted);
    encoder_free(x->encoder);
    str_free(&x->out);
    mem_free(x);
}

static size_t unread(void *arg)
{
    const struct exchange *x = arg;
    return x->stream ? http_reply_unread(x->reply) : 0;
}

static const struct client teller = {on_started, on_alive, on_event, on_end, on_error, on_drop, unread};

/* ---------------------------------------------------------------- a client that goes away */

struct leaver {
    struct scheduler *scheduler;
    uint64_t number;
};

static void on_gone(void *arg)
{
    const struct leaver *l = arg;
    scheduler_cancel(l->scheduler, l->number);
}

static void watch_client(struct server *s, struct http_reply *reply, uint64_t number)
{
    struct leaver *l = mem_alloc(sizeof *l);
    *l = (struct leaver){s->scheduler, number};
    http_reply_on_gone(reply, on_gone, mem_free, l);
}

/* ---------------------------------------------------------------- asking */

static void answer_count(const struct incoming *q, const struct ask *a)
{
    char body[64];
    const int n = snprintf(body, sizeof body, "{\"input_tokens\":%zu}\n", a->tokens.n);
    http_reply_send(q->reply, 200, "application/json", body, (size_t)n, NULL);
    journal_told(q->entry, (size_t)n);
    journal_end(q->entry, 200, "complete");
}

static struct exchange *exchange_new(struct server *s, struct incoming *q, const struct request *r)
{
    struct exchange *x = mem_alloc(sizeof *x);
    *x = (struct exchange){.server = s,
                           .counted = q->counted,
                           .reply = http_reply_hold(q->reply),
                           .entry = q->entry,
                           .encoder = encoder_new(r, s->info.id),
                           .stream = r->stream,
                           .path = path_of(q->what),
                           .told = clock_s()};
    q->counted = 0;
    return x;
}

static void queue(struct server *s, struct incoming *q, struct ask *a)
{
    struct api_error why;
    struct http_reply *reply = q->reply;
    if (!scheduler_open(s->scheduler, &why)) {
        send_error(reply, q->entry, path_of(q->what), &why); /* with its status, also where a stream was asked for */
        ask_free(a);
        return;
    }
    struct exchange *x = exchange_new(s, q, a->request);
    if (x->stream)
        http_reply_begin(reply, 200, "text/event-stream", "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n");
    const uint64_t number = scheduler_add(s->scheduler, a, &teller, x, &why);
    if (number) {
        watch_client(s, reply, number);
        return;
    }
    on_error(x, &why);
    on_drop(x);
    ask_free(a);
}

static enum api api_of(enum asked what)
{
    static const enum api apis[] = {[ASKED_CHAT] = API_CHAT,
                                    [ASKED_COMPLETIONS] = API_COMPLETIONS,
                                    [ASKED_RESPONSES] = API_RESPONSES,
                                    [ASKED_MESSAGES] = API_MESSAGES,
                                    [ASKED_COUNT] = API_MESSAGES};
    return apis[what];
}

void exchange_refuse(struct incoming *q)
{
    struct api_error why = {.status = 503, .type = "server_error", .retry_after = 5};
    snprintf(why.message, sizeof why.message, "too many large requests at the same time; try again later");
    send_error(q->reply, q->entry, path_of(q->what), &why);
}

void exchange_begin(struct server *s, struct incoming *q)
{
    struct request *r;
    struct ask a;
    struct api_error why;
    char *body = q->body;
    q->body = NULL;
    int rc = api_read(api_of(q->what), body, q->n_body, &r, &why);
    if (rc == 0) {
        r->key = q->key ? mem_strdup(q->key) : NULL;
        rc = asking_prepare(&s->o.model, s->memory, s->o.ctx, r, q->who, &a, &why);
    }
    if (rc) {
        send_error(q->reply, q->entry, path_of(q->what), &why);
    } else if (q->what == ASKED_COUNT) {
        answer_count(q, &a);
        ask_free(&a);
    } else if (asking_check_fits(&a, s->o.ctx, &why)) {
        send_error(q->reply, q->entry, path_of(q->what), &why);
        ask_free(&a);
    } else {
        queue(s, q, &a);
    }
}
