/* Answers, written by any thread. They are framed here, into bytes that the HTTP thread only moves to the connection.
 */
#include "serve/http_internal.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } known[] = {{200, "OK"},
                 {201, "Created"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {304, "Not Modified"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {413, "Content Too Large"},
                 {414, "URI Too Long"},
                 {415, "Unsupported Media Type"},
                 {417, "Expectation Failed"},
                 {422, "Unprocessable Content"},
                 {426, "Upgrade Required"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {499, "Client Closed Request"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"},
                 {505, "HTTP Version Not Supported"},
                 {529, "Overloaded"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status) return known[i].text;
    return status < 400 ? "OK" : status < 500 ? "Client Error" : "Server Error";
}

static void add_date(struct str *to)
{
    char text[40];
    time_t now = time(NULL);
    struct tm tm;
    /* In the C locale's names, whatever the process's. */
    static const char day[] = "SunMonTueWedThuFriSat", month[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (!gmtime_r(&now, &tm)) return;
    snprintf(text, sizeof text, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", day + 3 * tm.tm_wday, tm.tm_mday,
             month + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    str_printf(to, "Date: %s\r\n", text);
}

/* The head of an answer without the line of its length and the empty one. */
static void add_head(struct str *to, int minor, bool keep, int status, const char *type, const char *extra,
                     const char *cors)
{
    str_printf(to, "HTTP/1.1 %d %s\r\n", status, reason(status));
    add_date(to);
    if (type) str_printf(to, "Content-Type: %s\r\n", type);
    if (cors) str_puts(to, cors);
    if (extra) str_puts(to, extra);
    if (!keep)
        str_puts(to, "Connection: close\r\n");
    else if (minor == 0)
        str_puts(to, "Connection: keep-alive\r\n");
}

void http_answer_text(struct str *to, int minor, bool keep, int status, const char *type, size_t n, const char *extra,
                      const char *cors)
{
    add_head(to, minor, keep, status, type, extra, cors);
    if (status == 204 || status == 304)
        str_puts(to, "\r\n");
    else
        str_printf(to, "Content-Length: %zu\r\n\r\n", n);
}

/* ---- life ---- */

struct http_reply *http_reply_create(struct http_conn *c)
{
    struct http_reply *r = mem_alloc(sizeof *r);
    r->http = c->http;
    r->conn = c;
    atomic_init(&r->holders, 1);
    atomic_init(&r->refs, 2);
    r->minor = c->head.minor;
    r->keep_alive = c->head.keep_alive;
    r->head_only = !strcmp(http_head_text(&c->head, c->head.method), "HEAD");
    if (c->verdict.cors.n) r->cors = mem_strdup(str_c(&c->verdict.cors));
    pthread_mutex_init(&r->lock, NULL);
    atomic_fetch_add(&c->http->refs, 1);
    return r;
}

void http_reply_unref(struct http_reply *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1) return;
    if (r->drop) r->drop(r->gone_arg);
    pthread_mutex_destroy(&r->lock);
    str_free(&r->out);
    mem_free(r->cors);
    http_unref(r->http);
    mem_free(r);
}

/* Has the HTTP thread look after it. */
static void make_dirty(struct http_reply *r)
{
    struct http *h = r->http;
    pthread_mutex_lock(&h->lock);
    bool was = r->is_dirty || h->closed;
    if (!was) {
        r->is_dirty = true;
        atomic_fetch_add(&r->refs, 1);
        r->next_dirty = h->dirty;
        h->dirty = r;
    }
    pthread_mutex_unlock(&h->lock);
    if (!was) http_wake(h);
}

struct http_reply *http_reply_hold(struct http_reply *r)
{
    atomic_fetch_add(&r->holders, 1);
    return r;
}

void http_reply_release(struct http_reply *r)
{
    if (!r || atomic_fetch_sub(&r->holders, 1) != 1) return;
    pthread_mutex_lock(&r->lock);
    bool lost = !r->finished && !r->is_gone;
    r->abandoned = lost;
    pthread_mutex_unlock(&r->lock);
    if (lost) make_dirty(r);
    http_reply_unref(r);
}

/* ---- the client went away ---- */

bool http_reply_gone(const struct http_reply *r)
{
    return atomic_load(&r->is_gone);
}

size_t http_reply_unread(struct http_reply *r)
{
    pthread_mutex_lock(&r->lock);
    size_t n = r->out.n + atomic_load(&r->unsent);
    pthread_mutex_unlock(&r->lock);
    return n;
}

void http_reply_on_gone(struct http_reply *r, void (*gone)(void *arg), void (*drop)(void *arg), void *arg)
{
    pthread_mutex_lock(&r->lock);
    assert(!r->gone && !r->drop);
    bool late = r->is_gone && !r->finished;
    r->gone_arg = arg;
    r->drop = drop;
    r->gone = late ? NULL : gone;
    pthread_mutex_unlock(&r->lock);
    if (late) gone(arg);
}

void http_reply_lose(struct http_reply *r)
{
    pthread_mutex_lock(&r->lock);
    void (*gone)(void *) = r->finished ? NULL : r->gone;
    r->gone = NULL;
    r->is_gone = true;
    str_free(&r->out);
    pthread_mutex_unlock(&r->lock);
    r->conn = NULL;
    if (gone) gone(r->gone_arg);
}

/* ---- writing ---- */

/* Queues a head; the lock is held. With length -1 the body is streamed. */
static void queue_head(struct http_reply *r, int status, const char *type, int64_t length, const char *extra)
{
    struct str text = {0};
    r->begun = true;
    r->bodiless = r->head_only || status == 204 || status == 304;
    r->chunked = length < 0 && r->minor == 1 && !r->bodiless;
    if (atomic_load(&r->http->stopping)) r->keep_alive = false;
    /* HTTP/1.0 knows the end of a stream by the end of the connection. */
    if (length < 0 && r->minor == 0) r->keep_alive = false;
    if (length < 0 && status != 204 && status != 304) {
        add_head(&text, r->minor, r->keep_alive, status, type, extra, r->cors);
        str_puts(&text, r->minor == 1 ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    } else {
        http_answer_text(&text, r->minor, r->keep_alive, status, type, length < 0 ? 0 : (size_t)length, extra, r->cors);
    }
    str_add(&r->out, text.p + r->n_probe, text.n - (size_t)r->n_probe);
    str_free(&text);
}

void http_reply_send(struct http_reply *r, int status, const char *type, const void *body, size_t n, const char *extra)
{
    pthread_mutex_lock(&r->lock);
    bool now = !r->begun && !r->is_gone;
    if (now) {
        queue_head(r, status, type, (int64_t)n, extra);
        if (!r->bodiless) str_add(&r->out, body, n);
        r->finished = true;
    }
    pthread_mutex_unlock(&r->lock);
    if (now) make_dirty(r);
}

bool http_reply_begin(struct http_reply *r, int status, const char *type, const char *extra)
{
    pthread_mutex_lock(&r->lock);
    assert(!r->begun || r->is_gone);
    bool here = !r->is_gone;
    if (here) queue_head(r, status, type, -1, extra);
    pthread_mutex_unlock(&r->lock);
    if (here) make_dirty(r);
    return here;
}

/* A client that reads slower than the answer is made costs memory up to a limit, and then its connection: the engine is
 * never held up. One piece may be larger than the limit by itself. */
static bool room_for_more(struct http_reply *r)
{
    if (r->is_gone) return false;
    if (r->out.n + atomic_load(&r->unsent) <= r->http->limits.unread_bytes) return true;
    r->overflow = true;
    r->is_gone = true;
    return false;
}

bool http_reply_write(struct http_reply *r, const void *bytes, size_t n)
{
    pthread_mutex_lock(&r->lock);
    assert((r->begun && !r->finished) || r->is_gone);
    bool here = room_for_more(r);
    if (here && !r->bodiless && n) {
        r->n_zero = 0;
        if (r->chunked) str_printf(&r->out, "%zx\r\n", n);
        str_add(&r->out, bytes, n);
        if (r->chunked) str_puts(&r->out, "\r\n");
    }
    bool tell = here ? n > 0 : r->overflow;
    pthread_mutex_unlock(&r->lock);
    if (tell) make_dirty(r);
    return here;
}

bool http_reply_end(struct http_reply *r)
{
    pthread_mutex_lock(&r->lock);
    assert((r->begun && !r->finished) || r->is_gone);
    bool here = !r->is_gone;
    if (here && r->chunked) str_puts(&r->out, "0\r\n\r\n");
    r->finished = r->finished || here;
    pthread_mutex_unlock(&r->lock);
    if (here) make_dirty(r);
    return here;
}
