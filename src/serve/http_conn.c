/* One connection: requests in, answers out, in turn. Bytes are taken only while nothing is being answered; what a
 * client sends ahead waits in a bounded buffer. */
#include "serve/http_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* elsewhere a client is missed only while its unread requests fill the buffer */
#endif

static void advance(struct http_conn *c);
static bool refuse(struct http_conn *c, int status, const char *why, bool keep);

static struct evbuffer *input_of(struct http_conn *c)
{
    return bufferevent_get_input(c->bev);
}

static size_t unsent_of(struct http_conn *c)
{
    return evbuffer_get_length(bufferevent_get_output(c->bev));
}

static void add_timer(struct event *timer, uint64_t ms)
{
    const struct timeval tv = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
    evtimer_add(timer, &tv);
}

static void discard_input(struct http_conn *c)
{
    evbuffer_drain(input_of(c), evbuffer_get_length(input_of(c)));
}

/* Reads no more until what has come is dealt with. (A high watermark would do the same, but libevent calls the reader
 * again and again while it is exceeded.) The client's end is not seen meanwhile, so it is looked for. */
static void hold_input(struct http_conn *c)
{
    c->held = true;
    bufferevent_disable(c->bev, EV_READ);
    if (c->state == CONN_ANSWER) add_timer(c->watch, HTTP_WATCH_MS);
}

static void take_input(struct http_conn *c)
{
    if (!c->held || evbuffer_get_length(input_of(c)) > HTTP_INPUT_BYTES / 2) return;
    c->held = false;
    bufferevent_enable(c->bev, EV_READ);
}

/* ---- states ---- */

static struct http_list *list_of(struct http_conn *c)
{
    return c->state <= CONN_HEAD ? &c->http->idle : &c->http->busy;
}

/* ms 0: no deadline. */
static void set_state(struct http_conn *c, enum http_conn_state state, int ms)
{
    http_list_remove(list_of(c), c);
    c->state = state;
    http_list_add(list_of(c), c);
    if (ms)
        add_timer(c->timer, (uint64_t)ms);
    else
        evtimer_del(c->timer);
    if (state != CONN_ANSWER) evtimer_del(c->watch);
}

static void drop_body(struct http_conn *c)
{
    c->http->bodies_bytes -= c->cap_body;
    mem_free(c->body);
    c->body = NULL;
    c->n_body = c->cap_body = 0;
}

/* The client of the running answer, if there is one, is gone. */
static void lose_reply(struct http_conn *c)
{
    struct http_reply *r = c->reply;
    c->reply = NULL;
    if (!r) return;
    http_reply_lose(r);
    http_reply_unref(r);
}

void http_conn_close(struct http_conn *c)
{
    struct http *h = c->http;
    lose_reply(c);
    http_list_remove(list_of(c), c);
    event_free(c->timer);
    event_free(c->watch);
    bufferevent_free(c->bev);
    drop_body(c);
    http_head_free(&c->head);
    http_verdict_clear(&c->verdict);
    mem_free(c);
    http_conn_closed(h);
}

static void linger(struct http_conn *c)
{
    discard_input(c);
    if (c->eof) {
        http_conn_close(c);
        return;
    }
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    set_state(c, CONN_LINGER, HTTP_LINGER_MS);
}

/* Nothing is read any more; the connection is closed once everything is sent. */
static void send_last(struct http_conn *c)
{
    drop_body(c);
    discard_input(c);
    take_input(c);
    set_state(c, CONN_LAST, 0);
    if (!unsent_of(c)) linger(c);
}

static void next_request(struct http_conn *c)
{
    drop_body(c);
    http_head_clear(&c->head);
    http_verdict_clear(&c->verdict);
    memset(&c->chunks, 0, sizeof c->chunks);
    set_state(c, CONN_IDLE, c->http->limits.idle_ms);
}

/* ---- answers of this layer ---- */

static void answer(struct http_conn *c, int status, const char *type, const struct str *body, bool keep)
{
    struct str text = {0};
    const char *method = c->head.have_line ? http_head_text(&c->head, c->head.method) : "";
    http_answer_text(&text, c->head.minor, keep, status, type, body->n, str_c(&c->verdict.extra),
                     str_c(&c->verdict.cors));
    if (strcmp(method, "HEAD")) str_add(&text, body->p, body->n);
    bufferevent_write(c->bev, text.p, text.n);
    str_free(&text);
}

/* Sends an error answer. Returns whether the connection goes on with the next request. */
static bool refuse(struct http_conn *c, int status, const char *why, bool keep)
{
    struct http *h = c->http;
    struct str body = {0};
    log_msg(LOG_DEBUG, "http", "%s: %d for %s: %s", c->client, status, c->head.path.n ? c->head.path.p : "a request",
            why);
    if (h->error_body)
        h->error_body(h->arg, str_c(&c->head.path), status, why, &body);
    else
        str_printf(&body, "{\"error\":{\"message\":\"%s\"}}", why);
    if (status == 503) str_puts(&c->verdict.extra, "Retry-After: 1\r\n");
    atomic_fetch_add(&h->n_refused, 1);
    answer(c, status, "application/json", &body, keep);
    str_free(&body);
    if (keep)
        next_request(c);
    else
        send_last(c);
    return keep;
}

/* ---- a complete request ---- */

static bool flush_reply(struct http_conn *c);

static bool dispatch(struct http_conn *c)
{
    struct http *h = c->http;
    struct http_request q = {
        .method = http_head_text(&c->head, c->head.method), .path = str_c(&c->head.path), .rest = c->verdict.rest};
    q.body = c->body;
    q.n_body = c->n_body;
    q.key = c->verdict.key;
    q.loopback = c->loopback;
    q.client = c->client;
    q.head = &c->head;
    set_state(c, CONN_ANSWER, 0);
    c->n_probe = c->probe_in = 0;
    c->reply = http_reply_create(c);
    if (c->eof || c->held) add_timer(c->watch, HTTP_WATCH_MS);
    c->verdict.route->handler(h->arg, c->reply, &q);
    c->body = q.body;
    drop_body(c);
    return flush_reply(c);
}

const char *http_request_header(const struct http_request *q, const char *name)
{
    return http_head_value(q->head, name);
}

char *http_request_take_body(struct http_request *q)
{
    char *body = q->body;
    q->body = NULL;
    return body;
}

/* ---- bodies ---- */

static const char too_long_text[] = "The body of the request is too long.";

/* Room for n more bytes and the zero; false after a refusal. */
static bool body_room(struct http_conn *c, size_t n)
{
    struct http *h = c->http;
    if (n > h->limits.body_bytes - c->n_body) {
        refuse(c, 413, too_long_text, false);
        return false;
    }
    if (c->n_body + n < c->cap_body) return true;
    size_t cap = c->cap_body ? 2 * c->cap_body : 4096,
           known = c->head.framing == HTTP_BODY_LENGTH ? (size_t)c->head.length + 1 : h->limits.body_bytes + 1;
    if (cap <= c->n_body + n) cap = c->n_body + n + 1;
    if (cap > known) cap = known;
    char *body = h->bodies_bytes - c->cap_body + cap <= h->limits.bodies_bytes ? mem_try(cap) : NULL;
    if (!body) {
        refuse(c, 503, "Too many large requests at the same time.", false);
        return false;
    }
    if (c->n_body) memcpy(body, c->body, c->n_body);
    mem_free(c->body);
    c->body = body;
    h->bodies_bytes += cap - c->cap_body;
    c->cap_body = cap;
    return true;
}

/* The first piece of the input that lies in one run of memory. */
static const char *first_piece(struct http_conn *c, size_t *n)
{
    *n = evbuffer_get_contiguous_space(input_of(c));
    return (const char *)evbuffer_pullup(input_of(c), (ev_ssize_t)*n);
}

static bool step_chunks(struct http_conn *c)
{
    size_t n, used, n_data = 0;
    const char *p = first_piece(c, &n), *data = NULL;
    enum http_read r = http_chunks_next(&c->chunks, p, n, &used, &data, &n_data);
    if (r == HTTP_READ_BAD) return refuse(c, 400, c->chunks.why, false);
    /* A chunk's size tells before its bytes come. */
    if (http_chunks_promised(&c->chunks) > c->http->limits.body_bytes - c->n_body)
        return refuse(c, 413, too_long_text, false);
    if (n_data && !body_room(c, n_data)) return false;
    if (n_data) memcpy(c->body + c->n_body, data, n_data);
    c->n_body += n_data;
    evbuffer_drain(input_of(c), used);
    return r == HTTP_READ_DONE ? dispatch(c) : true;
}

static bool step_body(struct http_conn *c)
{
    size_t have = evbuffer_get_length(input_of(c));
    if (!have) return c->eof ? refuse(c, 400, "The request ends inside its body.", false) : false;
    if (c->head.framing == HTTP_BODY_CHUNKED) return step_chunks(c);
    size_t left = (size_t)c->head.length - c->n_body, n = have < left ? have : left;
    if (!body_room(c, n)) return false;
    evbuffer_remove(input_of(c), c->body + c->n_body, n);
    c->n_body += n;
    return n == left ? dispatch(c) : true;
}

static bool begin_body(struct http_conn *c)
{
    struct http *h = c->http;
    if (c->head.framing == HTTP_BODY_NONE) return dispatch(c);
    if (c->head.framing == HTTP_BODY_LENGTH && c->head.length > h->limits.body_bytes)
        return refuse(c, 413, too_long_text, false);
    c->body_since_ns = clock_ns();
    set_state(c, CONN_BODY, h->limits.body_ms);
    if (c->head.expect_continue && !evbuffer_get_length(input_of(c)))
        bufferevent_write(c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    return true;
}

/* ---- heads ---- */

static const char stopping_text[] = "The server is shutting down.";

void http_conn_drain(struct http_conn *c)
{
    if (c->state == CONN_HEAD || c->state == CONN_BODY)
        refuse(c, 503, stopping_text, false);
    else if (c->state == CONN_IDLE && unsent_of(c))
        send_last(c);
    else if (c->state == CONN_IDLE)
        http_conn_close(c);
}

static bool judge(struct http_conn *c)
{
    struct http *h = c->http;
    /* An unread body would have to be read to its end, or the connection is closed. */
    bool keep = c->head.keep_alive && c->head.framing == HTTP_BODY_NONE && !h->draining;
    atomic_fetch_add(&h->n_requests, 1);
    http_rules_judge(&h->rules, &c->head, c->loopback && !c->unix_socket, &c->verdict);
    if (c->verdict.status == 204) {
        answer(c, 204, NULL, &(struct str){0}, keep);
        if (keep)
            next_request(c);
        else
            send_last(c);
        return keep;
    }
    if (c->verdict.status) return refuse(c, c->verdict.status, c->verdict.why, keep);
    if (h->draining) return refuse(c, 503, stopping_text, false);
    return begin_body(c);
}

static bool step_head(struct http_conn *c)
{
    size_t n, used;
    if (!evbuffer_get_length(input_of(c))) {
        if (c->eof && c->state == CONN_HEAD) return refuse(c, 400, "The request ends inside its head.", false);
        if (c->eof) send_last(c);
        return false;
    }
    if (unsent_of(c) > HTTP_OUTPUT_BYTES) return false; /* goes on when that is sent */
    if (c->state == CONN_IDLE) set_state(c, CONN_HEAD, c->http->limits.head_ms);
    const char *p = first_piece(c, &n);
    enum http_read r = http_head_feed(&c->head, p, n, &c->http->limits, &used);
    evbuffer_drain(input_of(c), used);
    if (r == HTTP_READ_BAD) return refuse(c, c->head.status, c->head.why, false);
    return r == HTTP_READ_DONE ? judge(c) : true;
}

/* Takes what can be taken. c may be freed. */
static void advance(struct http_conn *c)
{
    for (bool more = true; more;) {
        if (c->state > CONN_BODY) return;
        take_input(c);
        more = c->state == CONN_BODY ? step_body(c) : step_head(c);
    }
}

/* ---- the running answer ---- */

static void free_text(const void *data, size_t n, void *text)
{
    mem_free(text);
}

/* Large pieces are handed over, small ones copied, so that the string keeps its memory. */
static void move_bytes(struct str *from, struct evbuffer *to)
{
    if (from->n < 16 * 1024) {
        evbuffer_add(to, from->p, from->n);
        str_clear(from);
        return;
    }
    evbuffer_add_reference(to, from->p, from->n, free_text, from->p);
    memset(from, 0, sizeof *from);
}

static bool drop_slow(struct http_conn *c)
{
    log_msg(LOG_WARN, "http", "%s: dropped before the end of its answer, because it reads too slowly", c->client);
    atomic_fetch_add(&c->http->n_dropped_slow, 1);
    http_conn_close(c);
    return false;
}

/* Sends what the reply holds. Returns whether the next request may be read. c may be freed otherwise. */
static bool flush_reply(struct http_conn *c)
{
    struct http_reply *r = c->reply;
    pthread_mutex_lock(&r->lock);
    bool overflow = r->overflow, finished = r->finished, lost = r->abandoned && !finished, begun = r->begun,
         keep = r->keep_alive;
    int n_probe = r->n_probe;
    if (r->out.n && !overflow) move_bytes(&r->out, bufferevent_get_output(c->bev));
    atomic_store(&r->unsent, unsent_of(c));
    pthread_mutex_unlock(&r->lock);
    if (overflow) return drop_slow(c);
    if (!finished && !lost) return false;
    if (lost) {
        log_msg(LOG_ERROR, "http", "%s: the answer for %s was given up before its end", c->client,
                str_c(&c->head.path));
        if (begun || n_probe) {
            http_conn_close(c);
            return false;
        }
    }
    c->reply = NULL;
    r->conn = NULL;
    http_reply_unref(r);
    if (lost) return refuse(c, 500, "The server lost this request.", false);
    if (keep && !c->http->draining)
        next_request(c);
    else
        send_last(c);
    return keep && !c->http->draining;
}

void http_conn_attend(struct http_conn *c)
{
    if (flush_reply(c)) advance(c);
}

/* A client that has closed its sending side may still read (then it is served), or be gone altogether: TCP says the
 * same in both cases, until something is sent. So one byte is sent that will have to be sent anyway: of the status
 * line, whose beginning is always the same, or a leading zero of the next chunk's size. Somebody who is gone answers
 * with a reset. */
static void probe(struct http_conn *c)
{
    static const char status[] = "HTTP/1.1 ";
    struct http_reply *r = c->reply;
    struct evbuffer *out = bufferevent_get_output(c->bev);
    pthread_mutex_lock(&r->lock);
    if (!r->begun && r->n_probe < (int)sizeof status - 1) {
        evbuffer_add(out, &status[r->n_probe++], 1);
    } else if (r->chunked && !r->finished && !r->out.n && r->n_zero < HTTP_ZEROS) {
        evbuffer_add(out, "0", 1);
        r->n_zero++;
    }
    pthread_mutex_unlock(&r->lock);
}

static void on_watch(evutil_socket_t fd, short what, void *arg)
{
    struct http_conn *c = arg;
    struct pollfd p = {.fd = bufferevent_getfd(c->bev), .events = POLLRDHUP};
    if (poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP | POLLNVAL)) {
        http_conn_close(c);
        return;
    }
    if ((c->eof || p.revents & POLLRDHUP) && --c->probe_in < 0) {
        c->probe_in = 1 << (c->n_probe < 12 ? c->n_probe++ : c->n_probe);
        if (!unsent_of(c)) probe(c);
    }
    add_timer(c->watch, HTTP_WATCH_MS);
}

/* ---- events ---- */

static void on_read(struct bufferevent *bev, void *arg)
{
    struct http_conn *c = arg;
    if (c->state >= CONN_LAST) {
        discard_input(c);
        return;
    }
    if (c->state != CONN_BODY && evbuffer_get_length(input_of(c)) >= HTTP_INPUT_BYTES) hold_input(c);
    advance(c);
}

static void on_written(struct bufferevent *bev, void *arg)
{
    struct http_conn *c = arg;
    if (c->reply) atomic_store(&c->reply->unsent, 0);
    if (c->state == CONN_LAST)
        linger(c);
    else
        advance(c);
}

/* Whether the client has taken anything since this was asked last. The system lets us write again only when it has
 * passed on a large part of what it holds, and a slow client may take minutes for that. */
static bool takes_bytes(struct http_conn *c)
{
    int held = -1;
#if defined(SO_NWRITE)
    socklen_t n = sizeof held;
    if (getsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_NWRITE, &held, &n)) return false;
#elif defined(TIOCOUTQ)
    if (ioctl(bufferevent_getfd(c->bev), TIOCOUTQ, &held)) return false;
#endif
    const bool taken = held != c->kernel_held;
    c->kernel_held = held;
    return taken;
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
    struct http_conn *c = arg;
    if (what & BEV_EVENT_TIMEOUT) {
        if (takes_bytes(c))
            bufferevent_enable(bev, EV_WRITE);
        else
            drop_slow(c);
    } else if (!(what & BEV_EVENT_EOF) || c->state == CONN_LINGER) {
        http_conn_close(c);
    } else {
        c->eof = true;
        if (c->state == CONN_ANSWER)
            add_timer(c->watch, HTTP_WATCH_MS);
        else
            advance(c);
    }
}

/* For every 16 bytes of a body there is 1 ms more. */
static void body_time_out(struct http_conn *c)
{
    uint64_t spent = (clock_ns() - c->body_since_ns) / 1000000,
             allowed = (uint64_t)c->http->limits.body_ms + c->n_body / 16;
    if (spent < allowed)
        add_timer(c->timer, allowed - spent);
    else
        refuse(c, 408, "The body of the request came too slowly.", false);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct http_conn *c = arg;
    if (c->state == CONN_BODY)
        body_time_out(c);
    else if (c->state == CONN_HEAD)
        refuse(c, 408, "The head of the request came too slowly.", false);
    else
        http_conn_close(c);
}

/* ---- the beginning ---- */

static void set_socket(int fd, bool unix_socket)
{
    int on = 1, idle = 60, interval = 15, count = 4;
    if (unix_socket) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#ifdef TCP_KEEPIDLE
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
#else
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPALIVE, &idle, sizeof idle);
#endif
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

void http_conn_open(struct http *h, int fd, const struct sockaddr *peer)
{
    struct bufferevent *bev = bufferevent_socket_new(h->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!bev) {
        close(fd);
        return;
    }
    struct http_conn *c = mem_alloc(sizeof *c);
    c->http = h;
    c->bev = bev;
    c->kernel_held = -1;
    c->timer = evtimer_new(h->base, on_timer, c);
    c->watch = evtimer_new(h->base, on_watch, c);
    http_client_text(fd, peer, c);
    set_socket(fd, c->unix_socket);
    http_list_add(&h->idle, c);
    h->n_conn++;
    atomic_fetch_add(&h->n_connections, 1);
    atomic_store(&h->n_open, (uint64_t)h->n_conn);
    set_state(c, CONN_IDLE, h->limits.idle_ms);
    const struct timeval stall = {h->limits.stall_ms / 1000, h->limits.stall_ms % 1000 * 1000};
    bufferevent_set_timeouts(bev, NULL, &stall);
    bufferevent_set_max_single_write(bev, 256 * 1024);
    bufferevent_setcb(bev, on_read, on_written, on_end, c);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}
