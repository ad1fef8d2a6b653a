/* The server: its loop, its list of connections, and what reaches it from other threads.
 *
 * The loop, the buffers and the listeners are libevent's (core), used from one thread, so without its locks. Its evhttp
 * and libmicrohttpd were tried against the requests of tests/serve and take what must not be taken; docs/server-http.md
 * has the list. */
#include "serve/http_internal.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- lists of connections ---- */

void http_list_add(struct http_list *l, struct http_conn *c)
{
    c->next = NULL;
    c->prev = l->last;
    if (l->last)
        l->last->next = c;
    else
        l->first = c;
    l->last = c;
}

void http_list_remove(struct http_list *l, struct http_conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        l->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        l->last = c->prev;
}

static void close_all(struct http_list *l)
{
    while (l->first) http_conn_close(l->first);
}

/* ---- clients come and go ---- */

static void pause_listeners(struct http *h, bool pause)
{
    if (h->paused == pause) return;
    h->paused = pause;
    for (size_t i = 0; i < h->n_listener; i++)
        pause ? evconnlistener_disable(h->listener[i]) : evconnlistener_enable(h->listener[i]);
}

/* The next client waits in the backlog, for a moment or until somebody leaves. */
static void pause_for_a_moment(struct http *h)
{
    const struct timeval moment = {0, 100 * 1000};
    pause_listeners(h, true);
    evtimer_add(h->resume, &moment);
}

static bool is_full(struct http *h)
{
    return h->n_conn >= h->limits.connections && !h->idle.first;
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    if (is_full(arg))
        pause_for_a_moment(arg);
    else
        pause_listeners(arg, false);
}

void http_conn_closed(struct http *h)
{
    h->n_conn--;
    atomic_store(&h->n_open, (uint64_t)h->n_conn);
    pause_listeners(h, false);
    if (h->draining && !h->n_conn) event_base_loopbreak(h->base);
}

/* At the limit the connection that has been idle longest makes room; if none is idle, this is the last for now. */
static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *peer, int n, void *arg)
{
    struct http *h = arg;
    bool full = is_full(h);
    if (h->n_conn >= h->limits.connections && !full) http_conn_close(h->idle.first);
    http_conn_open(h, fd, peer);
    if (full) pause_for_a_moment(h);
}

/* Mostly: no more files. */
static void on_accept_error(struct evconnlistener *l, void *arg)
{
    struct http *h = arg;
    log_msg(LOG_WARN, "http", "a client cannot be let in: %s", strerror(errno));
    if (h->idle.first) http_conn_close(h->idle.first);
    pause_for_a_moment(h);
}

/* ---- other threads ---- */

void http_wake(struct http *h)
{
    int kept = errno;
    if (!atomic_exchange(&h->woken, true) && write(h->wake[1], "", 1) < 0) { /* full: it will wake up anyway */
    }
    errno = kept;
}

/* What was asked completely goes on. */
static void begin_drain(struct http *h)
{
    h->draining = true;
    http_unlisten(h);
    for (struct http_conn *c = h->idle.first, *next; c; c = next) {
        next = c->next;
        http_conn_drain(c);
    }
    for (struct http_conn *c = h->busy.first, *next; c; c = next) {
        next = c->next;
        http_conn_drain(c);
    }
    if (!h->n_conn) event_base_loopbreak(h->base);
}

static struct http_reply *take_dirty(struct http *h)
{
    pthread_mutex_lock(&h->lock);
    struct http_reply *list = h->dirty;
    h->dirty = NULL;
    pthread_mutex_unlock(&h->lock);
    return list;
}

/* From here on it may be put on the list again. */
static struct http_reply *clean(struct http *h, struct http_reply *r)
{
    pthread_mutex_lock(&h->lock);
    struct http_reply *next = r->next_dirty;
    r->is_dirty = false;
    pthread_mutex_unlock(&h->lock);
    return next;
}

static void on_woken(evutil_socket_t fd, short what, void *arg)
{
    struct http *h = arg;
    char bytes[64];
    while (read(fd, bytes, sizeof bytes) == sizeof bytes) {
    }
    atomic_store(&h->woken, false);
    for (struct http_reply *r = take_dirty(h), *next; r; r = next) {
        next = clean(h, r);
        if (r->conn) http_conn_attend(r->conn);
        http_reply_unref(r);
    }
    if (atomic_load(&h->stopping) && !h->draining) begin_drain(h);
}

void http_stop(struct http *h)
{
    atomic_store(&h->stopping, true);
    http_wake(h);
}

bool http_stopping(const struct http *h)
{
    return atomic_load(&h->stopping);
}

/* ---- opening and closing ---- */

static void fill_limits(struct http_limits *to, const struct http_limits *from)
{
    *to = *from;
    if (!to->head_bytes) to->head_bytes = 64 << 10;
    if (!to->header_fields) to->header_fields = 128;
    if (!to->body_bytes) to->body_bytes = 64 << 20;
    if (!to->bodies_bytes) to->bodies_bytes = 256 << 20;
    if (!to->unread_bytes) to->unread_bytes = 16 << 20;
    if (!to->connections) to->connections = 4096;
    if (!to->head_ms) to->head_ms = 10 * 1000;
    if (!to->body_ms) to->body_ms = 30 * 1000;
    if (!to->idle_ms) to->idle_ms = 120 * 1000;
    if (!to->stall_ms) to->stall_ms = 30 * 1000;
}

/* One file per connection, some for everything else. */
static void make_room_for_files(struct http *h)
{
    const rlim_t others = 128;
    const rlim_t want = (rlim_t)h->limits.connections + others;
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= want) return;
    const rlim_t before = r.rlim_cur;
    r.rlim_cur = r.rlim_max < want ? r.rlim_max : want;
    if (setrlimit(RLIMIT_NOFILE, &r)) r.rlim_cur = before;
    if (r.rlim_cur >= want) return;
    h->limits.connections = r.rlim_cur > 2 * others ? (int)(r.rlim_cur - others) : (int)(r.rlim_cur / 2);
    log_msg(LOG_WARN, "http",
            "this process may have only %llu files open, so at most %d connections are kept; 'ulimit -n' raises that",
            (unsigned long long)r.rlim_cur, h->limits.connections);
}

static int open_loop(struct http *h, struct err *e)
{
    struct event_config *config = event_config_new();
    if (config) event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    h->base = config ? event_base_new_with_config(config) : NULL;
    if (config) event_config_free(config);
    if (!h->base) return err_set(e, ERR_MEMORY, "the event loop of the server cannot be made: %s", strerror(errno));
    if (pipe(h->wake)) return err_set(e, ERR_IO, "the server cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        evutil_make_socket_nonblocking(h->wake[i]);
        evutil_make_socket_closeonexec(h->wake[i]);
    }
    h->woken_event = event_new(h->base, h->wake[0], EV_READ | EV_PERSIST, on_woken, h);
    h->resume = evtimer_new(h->base, on_resume, h);
    event_add(h->woken_event, NULL);
    return 0;
}

int http_open(const struct http_options *o, struct http **http, struct err *e)
{
    struct http *h = mem_alloc(sizeof *h);
    h->wake[0] = h->wake[1] = -1;
    h->error_body = o->error_body;
    h->arg = o->arg;
    atomic_init(&h->refs, 1);
    pthread_mutex_init(&h->lock, NULL);
    fill_limits(&h->limits, &o->limits);
    http_rules_take(&h->rules, o);
    make_room_for_files(h);
    int rc = open_loop(h, e);
    if (!rc) rc = http_listen(h, o, on_accept, on_accept_error, e);
    if (rc) {
        http_close(h);
        return rc;
    }
    if (h->is_public && !o->n_keys)
        log_msg(LOG_WARN, "http",
                "anybody who reaches this machine may use the server: it listens on an address that is not loopback, "
                "and asks for no key (--api-key)");
    *http = h;
    return 0;
}

void http_run(struct http *h)
{
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before); /* a client that is gone is an error of a write */
    event_base_dispatch(h->base);
    sigset_t pending;
    int taken;
    /* One that waits would come now. */
    if (!sigismember(&before, SIGPIPE) && !sigpending(&pending) && sigismember(&pending, SIGPIPE))
        sigwait(&pipe_signal, &taken);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void free_loop(struct http *h)
{
    if (h->woken_event) event_free(h->woken_event);
    if (h->resume) event_free(h->resume);
    if (h->base) event_base_free(h->base);
    h->base = NULL;
}

/* The last replies may be released later, by other threads: they still lock and wake. */
void http_unref(struct http *h)
{
    if (atomic_fetch_sub(&h->refs, 1) != 1) return;
    for (int i = 0; i < 2; i++)
        if (h->wake[i] >= 0) close(h->wake[i]);
    pthread_mutex_destroy(&h->lock);
    mem_free(h);
}

void http_close(struct http *h)
{
    if (!h) return;
    atomic_store(&h->stopping, true);
    http_unlisten(h);
    close_all(&h->idle);
    close_all(&h->busy);
    pthread_mutex_lock(&h->lock);
    struct http_reply *list = h->dirty;
    h->dirty = NULL;
    h->closed = true;
    pthread_mutex_unlock(&h->lock);
    for (struct http_reply *next; list; list = next) {
        next = clean(h, list);
        http_reply_unref(list);
    }
    free_loop(h);
    for (size_t i = 0; h->address && i < h->n_address; i++) mem_free(h->address[i]);
    mem_free(h->address);
    mem_free(h->listener);
    http_rules_free(&h->rules);
    http_unref(h);
}

/* ---- looking at it ---- */

int http_port(const struct http *h)
{
    return h->port;
}

const char *http_address(const struct http *h, size_t i)
{
    return i < h->n_address ? h->address[i] : NULL;
}

struct http_counts http_counts(const struct http *h)
{
    return (struct http_counts){.connections = atomic_load(&h->n_connections),
                                .requests = atomic_load(&h->n_requests),
                                .refused = atomic_load(&h->n_refused),
                                .dropped_slow = atomic_load(&h->n_dropped_slow),
                                .open = atomic_load(&h->n_open)};
}

int http_keys_read(const char *path, char ***keys, size_t *n, struct err *e)
{
    char *text;
    size_t size, before = *n;
    int rc = file_read(path, 1 << 20, &text, &size, e);
    if (rc) return rc;
    for (char *line = text, *rest; line; line = rest) {
        rest = strchr(line, '\n');
        if (rest) *rest++ = 0;
        line += strspn(line, " \t\r");
        size_t k = strcspn(line, " \t\r");
        if (!k || *line == '#') continue;
        line[k] = 0;
        *keys = mem_grow(*keys, (*n + 1) * sizeof **keys);
        (*keys)[(*n)++] = mem_strdup(line);
    }
    mem_free(text);
    if (*n == before) return err_set(e, ERR_ARG, "%s: no key in it; one key a line is wanted", path);
    return 0;
}
