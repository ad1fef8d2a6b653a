#include "http_kit.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

enum { PATIENCE_S = 20 };

/* ---- the server ---- */

static void say_hello(void *arg, struct http_reply *r, struct http_request *q)
{
    const char *text = q->path + 1;
    http_reply_send(r, 200, "text/plain", text, strlen(text), NULL);
    http_reply_release(r);
}

static void say_rest(void *arg, struct http_reply *r, struct http_request *q)
{
    http_reply_send(r, 200, "text/plain", q->rest, strlen(q->rest), NULL);
    http_reply_release(r);
}

static void echo(void *arg, struct http_reply *r, struct http_request *q)
{
    http_reply_send(r, 200, "application/json", q->body, q->n_body, "X-Extra: yes\r\n");
    http_reply_release(r);
}

static void on_gone(void *arg)
{
    atomic_fetch_add(&((struct http_kit_wait *)arg)->gone, 1);
}

static void on_drop(void *arg)
{
    atomic_fetch_add(&((struct http_kit_wait *)arg)->dropped, 1);
}

static void wait_for_test(void *arg, struct http_reply *r, struct http_request *q)
{
    struct http_kit *k = arg;
    struct http_kit_wait *w = mem_alloc(sizeof *w);
    w->reply = r;
    w->key = q->key;
    http_reply_on_gone(r, on_gone, on_drop, w);
    pthread_mutex_lock(&k->lock);
    if (k->last)
        k->last->next = w;
    else
        k->first = w;
    k->last = w;
    pthread_cond_signal(&k->changed);
    pthread_mutex_unlock(&k->lock);
}

static const struct http_route routes[] = {
    {"GET", "/hello", 0, say_hello},     {"GET", "/open", HTTP_OPEN, say_hello}, {"POST", "/echo", HTTP_JSON, echo},
    {"POST", "/any", 0, echo},           {"GET", "/things/", 0, say_rest},       {"GET", "/wait", 0, wait_for_test},
    {"POST", "/wait", 0, wait_for_test},
};

static void word_error(void *arg, const char *path, int status, const char *message, struct str *out)
{
    str_printf(out, "{\"path\":\"%s\",\"status\":%d,\"message\":\"%s\"}\n", path, status, message);
}

static void *run(void *arg)
{
    http_run(arg);
    return NULL;
}

void http_kit_start(struct http_kit *k)
{
    struct err e = {0};
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, NULL);
    k->options.routes = routes;
    k->options.n_routes = sizeof routes / sizeof *routes;
    k->options.error_body = word_error;
    k->options.arg = k;
    if (http_open(&k->options, &k->http, &e)) fail_msg("%s", e.msg);
    assert_int_equal(pthread_create(&k->thread, NULL, run, k->http), 0);
    k->running = true;
}

void http_kit_end(struct http_kit *k)
{
    http_stop(k->http);
    if (k->running) pthread_join(k->thread, NULL);
    http_close(k->http);
    assert_null(k->first);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->changed);
}

struct http_kit_wait *http_kit_take(struct http_kit *k)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&k->lock);
    int rc = 0;
    while (!k->first && !rc) rc = pthread_cond_timedwait(&k->changed, &k->lock, &until);
    struct http_kit_wait *w = k->first;
    if (w) k->first = w->next;
    if (!k->first) k->last = NULL;
    pthread_mutex_unlock(&k->lock);
    if (!w) fail_msg("no request came");
    return w;
}

void http_kit_until(atomic_int *value, int least)
{
    const struct timespec moment = {0, 1000 * 1000};
    for (double end = clock_s() + PATIENCE_S; atomic_load(value) < least;) {
        if (clock_s() > end) fail_msg("what was waited for did not happen");
        nanosleep(&moment, NULL);
    }
}

void http_kit_free(struct http_kit_wait *w)
{
    http_kit_until(&w->dropped, 1);
    mem_free(w);
}

/* ---- the client ---- */

int http_client_at(int port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {PATIENCE_S, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&a, sizeof a)) fail_msg("connect: %s", strerror(errno));
    return fd;
}

int http_client(const struct http_kit *k)
{
    return http_client_at(http_port(k->http));
}

bool http_client_send(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
        if (k < 0) fail_msg("send: %s", strerror(errno));
        p += k;
        n -= (size_t)k;
    }
    return true;
}

void http_client_put(int fd, const char *text)
{
    http_client_send(fd, text, strlen(text));
}

void http_client_reset(int fd)
{
    const struct linger at_once = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

size_t http_client_read(int fd, void *bytes, size_t n, bool *reset)
{
    ssize_t k;
    do k = recv(fd, bytes, n, 0);
    while (k < 0 && errno == EINTR); /* with a time limit it ends so when the process was stopped and went on */
    if (k >= 0) return (size_t)k;
    if (errno != ECONNRESET) fail_msg("recv: %s", strerror(errno));
    if (reset) *reset = true;
    return 0;
}

bool http_client_ended(int fd)
{
    char c;
    return http_client_read(fd, &c, 1, NULL) == 0;
}

/* Up to n bytes in one piece; false: the end came before. */
static bool read_exactly(int fd, struct str *to, size_t n)
{
    char piece[16384];
    while (n) {
        size_t k = http_client_read(fd, piece, n < sizeof piece ? n : sizeof piece, NULL);
        if (!k) return false;
        str_add(to, piece, k);
        n -= k;
    }
    return true;
}

void http_client_expect(int fd, const char *text)
{
    struct str got = {0};
    read_exactly(fd, &got, strlen(text));
    assert_string_equal(str_c(&got), text);
    str_free(&got);
}

/* Up to an end, which is left out. */
static bool read_until(int fd, struct str *to, const char *end)
{
    size_t k = strlen(end);
    for (;;) {
        if (to->n >= k && !memcmp(to->p + to->n - k, end, k)) break;
        if (!read_exactly(fd, to, 1)) return false;
    }
    to->n -= k;
    to->p[to->n] = 0;
    return true;
}

const char *http_answer_field(const struct http_answer *a, const char *name, char *value, size_t size)
{
    size_t n = strlen(name);
    for (const char *line = strstr(str_c(&a->head), "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, n) || line[n] != ':') continue;
        snprintf(value, size, "%.*s", (int)strcspn(line + n + 2, "\r"), line + n + 2);
        return value;
    }
    return NULL;
}

static bool read_chunks(int fd, struct str *body)
{
    for (;;) {
        struct str line = {0};
        bool whole = read_until(fd, &line, "\r\n");
        size_t n = strtoul(str_c(&line), NULL, 16);
        str_free(&line);
        if (!whole || !read_exactly(fd, body, n)) return false;
        if (!read_until(fd, &line, "\r\n")) return false;
        assert_int_equal(line.n, 0);
        str_free(&line);
        if (!n) return true;
    }
}

static bool read_body(int fd, const char *method, struct http_answer *a)
{
    char value[64], *end;
    bool chunked = http_answer_field(a, "Transfer-Encoding", value, sizeof value),
         length = http_answer_field(a, "Content-Length", value, sizeof value);
    assert_false(chunked && length);
    if (!strcmp(method, "HEAD") || a->status == 204) return true;
    if (chunked) return read_chunks(fd, &a->body);
    if (length) return read_exactly(fd, &a->body, strtoul(value, &end, 10));
    while (read_exactly(fd, &a->body, 1)) {
    }
    return true;
}

void http_client_answer(int fd, const char *method, struct http_answer *a)
{
    http_answer_free(a);
    a->cut = !read_until(fd, &a->head, "\r\n\r\n");
    if (a->cut) return;
    if (strncmp(a->head.p, "HTTP/1.1 ", 9)) fail_msg("no answer: %s", a->head.p);
    a->status = atoi(a->head.p + 9);
    a->cut = a->status != 100 && !read_body(fd, method, a);
}

void http_answer_free(struct http_answer *a)
{
    str_free(&a->head);
    str_free(&a->body);
    memset(a, 0, sizeof *a);
}

void http_client_request(int fd, int port, const char *method, const char *target, const char *fields, const char *body)
{
    struct str text = {0};
    str_printf(&text, "%s %s HTTP/1.1\r\n", method, target);
    if (strncasecmp(fields, "Host:", 5)) str_printf(&text, "Host: localhost:%d\r\n", port);
    str_puts(&text, fields);
    if (body) str_printf(&text, "Content-Length: %zu\r\n", strlen(body));
    str_printf(&text, "\r\n%s", body ? body : "");
    http_client_send(fd, text.p, text.n);
    str_free(&text);
}

void http_client_ask_at(int port, const char *method, const char *target, const char *fields, const char *body,
                        struct http_answer *a)
{
    int fd = http_client_at(port);
    http_client_request(fd, port, method, target, fields, body);
    http_client_answer(fd, method, a);
    close(fd);
}

void http_client_ask(const struct http_kit *k, const char *method, const char *target, const char *fields,
                     const char *body, struct http_answer *a)
{
    http_client_ask_at(http_port(k->http), method, target, fields, body, a);
}
