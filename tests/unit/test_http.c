/* What the HTTP layer promises (src/serve/http.h), through raw sockets. */
#include "../support/http_kit.h"
#include "../support/temp_files.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

#define HELLO "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define WAIT  "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void expect_field(const struct http_answer *a, const char *name, const char *value)
{
    char got[256];
    const char *v = http_answer_field(a, name, got, sizeof got);
    if (value && !v) fail_msg("no %s in: %s", name, str_c(&a->head));
    if (!value && v) fail_msg("%s: %s was not expected", name, v);
    if (value) assert_string_equal(v, value);
}

static void expect_answer(int fd, const char *method, int status, const char *body)
{
    struct http_answer a = {0};
    http_client_answer(fd, method, &a);
    assert_false(a.cut);
    assert_int_equal(a.status, status);
    if (body) assert_string_equal(str_c(&a.body), body);
    http_answer_free(&a);
}

static void expect_status(const struct http_kit *k, const char *method, const char *target, const char *fields,
                          const char *body, int status)
{
    struct http_answer a = {0};
    http_client_ask(k, method, target, fields, body, &a);
    if (a.status != status) fail_msg("%s %s %s: %d, wanted %d", method, target, fields, a.status, status);
    http_answer_free(&a);
}

/* Sends a request at /wait on a new connection; the test has its reply. */
static struct http_kit_wait *ask_and_wait(struct http_kit *k, const char *text, int *fd)
{
    *fd = http_client(k);
    http_client_put(*fd, text);
    return http_kit_take(k);
}

static void finish(struct http_kit_wait *w)
{
    http_reply_release(w->reply);
    http_kit_free(w);
}

/* ---- requests ---- */

static void test_keep_alive(void **state)
{
    struct http_kit k = {0};
    struct http_answer a = {0};
    char value[64];
    http_kit_start(&k);
    int fd = http_client(&k);
    for (int i = 0; i < 3; i++) {
        http_client_put(fd, HELLO);
        http_client_answer(fd, "GET", &a);
        assert_int_equal(a.status, 200);
        assert_string_equal(a.body.p, "hello");
        expect_field(&a, "Content-Type", "text/plain");
        expect_field(&a, "Content-Length", "5");
        expect_field(&a, "Connection", NULL);
        assert_non_null(http_answer_field(&a, "Date", value, sizeof value));
        assert_int_equal(strlen(value), strlen("Mon, 30 Nov 2026 03:22:42 GMT"));
    }
    http_client_put(fd, "GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: x, Close\r\n\r\n");
    http_client_answer(fd, "GET", &a);
    expect_field(&a, "Connection", "close");
    assert_true(http_client_ended(fd));
    close(fd);

    fd = http_client(&k);
    http_client_put(fd, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    http_client_answer(fd, "GET", &a);
    expect_field(&a, "Connection", "keep-alive");
    http_client_put(fd, "GET /hello HTTP/1.0\r\n\r\n");
    http_client_answer(fd, "GET", &a);
    expect_field(&a, "Connection", "close");
    assert_true(http_client_ended(fd));
    close(fd);
    struct http_counts n = http_counts(k.http);
    assert_int_equal(n.requests, 6);
    assert_int_equal(n.connections, 2);
    assert_int_equal(n.refused, 0);
    http_answer_free(&a);
    http_kit_end(&k);
}

/* A body as it must arrive, whole and unchanged, however it is cut. */
static void send_body(int fd, const struct str *body, size_t chunk, size_t piece)
{
    struct str s = {0};
    str_puts(&s, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: Application/JSON; charset=utf-8\r\n");
    if (!chunk)
        str_printf(&s, "Content-Length: %zu\r\n\r\n", body->n);
    else
        str_puts(&s, "Transfer-Encoding: chunked\r\n\r\n");
    if (!chunk) str_add(&s, body->p, body->n);
    for (size_t i = 0; chunk && i < body->n; i += chunk) {
        size_t n = body->n - i < chunk ? body->n - i : chunk;
        str_printf(&s, "%zX\r\n", n);
        str_add(&s, body->p + i, n);
        str_puts(&s, "\r\n");
    }
    if (chunk) str_puts(&s, "0\r\n\r\n");
    for (size_t i = 0; i < s.n; i += piece) http_client_send(fd, s.p + i, s.n - i < piece ? s.n - i : piece);
    str_free(&s);
}

static void test_bodies(void **state)
{
    struct http_kit k = {0};
    struct http_answer a = {0};
    struct str body = {0};
    http_kit_start(&k);
    int fd = http_client(&k);
    for (unsigned i = 0; i < 3000000; i++) str_add(&body, &(char){(char)(i * 2654435761u >> 24)}, 1);
    const size_t sizes[] = {1, 100, 5000, 3000000}, chunks[] = {0, 1, 7, 4096, 100000}, pieces[] = {1, 3, 100000};
    for (size_t s = 0; s < 4; s++) {
        for (size_t c = 0; c < 5; c++) {
            for (size_t p = 0; p < 3; p++) {
                struct str part = {.p = body.p + 17, .n = sizes[s] - (s == 3 ? 17 : 0)};
                if (part.n > 10000 && (pieces[p] < 1000 || (c && chunks[c] < 1000))) continue;
                send_body(fd, &part, chunks[c], pieces[p]);
                http_client_answer(fd, "POST", &a);
                assert_int_equal(a.status, 200);
                assert_int_equal(a.body.n, part.n);
                assert_memory_equal(a.body.p, part.p, part.n);
            }
        }
    }
    expect_field(&a, "X-Extra", "yes");
    close(fd);
    str_free(&body);
    http_answer_free(&a);
    http_kit_end(&k);
}

static void test_expect_continue(void **state)
{
    struct http_kit k = {0};
    http_kit_start(&k);
    int fd = http_client(&k);
    for (int i = 0; i < 2; i++) {
        http_client_put(fd,
                        "POST /any HTTP/1.1\r\nHost: localhost\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n");
        http_client_expect(fd, "HTTP/1.1 100 Continue\r\n\r\n");
        http_client_put(fd, "hello");
        expect_answer(fd, "POST", 200, "hello");
    }
    /* Who sends the body at once needs no leave. */
    http_client_put(fd,
                    "POST /any HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello");
    expect_answer(fd, "POST", 200, "hello");
    /* Who will be refused is told before the body is sent. */
    http_client_put(fd,
                    "POST /nothing HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    expect_answer(fd, "POST", 404, NULL);
    assert_true(http_client_ended(fd));
    close(fd);
    http_kit_end(&k);
}

static void test_routes(void **state)
{
    struct http_kit k = {0};
    struct http_answer a = {0};
    http_kit_start(&k);
    http_client_ask(&k, "GET", "/nothing?x=1", "", NULL, &a);
    assert_int_equal(a.status, 404);
    assert_string_equal(str_c(&a.body),
                        "{\"path\":\"/nothing\",\"status\":404,\"message\":\"There is nothing at this path.\"}\n");
    expect_field(&a, "Content-Type", "application/json");
    http_client_ask(&k, "DELETE", "/hello", "", NULL, &a);
    assert_int_equal(a.status, 405);
    expect_field(&a, "Allow", "GET, HEAD");
    http_client_ask(&k, "PUT", "/wait", "", "body", &a);
    assert_int_equal(a.status, 405);
    expect_field(&a, "Allow", "GET, HEAD, POST");
    http_client_ask(&k, "GET", "/any", "Connection: Upgrade\r\nUpgrade: websocket\r\n", NULL, &a);
    assert_int_equal(a.status, 426);
    expect_field(&a, "Upgrade", "HTTP/1.1");
    http_client_ask(&k, "GET", "/things/a%2Fb/%20c?d", "", NULL, &a);
    assert_string_equal(str_c(&a.body), "a/b/ c");
    expect_status(&k, "GET", "/things/", "", NULL, 404);
    expect_status(&k, "GET", "/things", "", NULL, 404);
    expect_status(&k, "POST", "/things/x", "", "body", 405);
    http_client_ask(&k, "OPTIONS", "/wait", "", NULL, &a);
    assert_int_equal(a.status, 204);
    expect_field(&a, "Allow", "GET, HEAD, POST, OPTIONS");
    expect_field(&a, "Content-Length", NULL);
    expect_status(&k, "OPTIONS", "*", "", NULL, 204);

    expect_status(&k, "POST", "/echo", "Content-Type: application/json\r\n", "{}", 200);
    expect_status(&k, "POST", "/echo", "Content-Type: application/json;x=y\r\n", "{}", 200);
    expect_status(&k, "POST", "/echo", "Content-Type: application/jsonx\r\n", "{}", 415);
    expect_status(&k, "POST", "/echo", "Content-Type: text/plain\r\n", "{}", 415);
    expect_status(&k, "POST", "/echo", "", "{}", 415);
    http_answer_free(&a);
    http_kit_end(&k);
}

static void test_head_and_refusals_keep_step(void **state)
{
    struct http_kit k = {0};
    struct http_answer a = {0};
    http_kit_start(&k);
    int fd = http_client(&k);
    http_client_put(fd, "HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    http_client_answer(fd, "HEAD", &a);
    assert_int_equal(a.status, 200);
    expect_field(&a, "Content-Length", "5");
    http_client_put(fd, "HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect_answer(fd, "HEAD", 404, NULL);
    http_client_put(fd, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect_answer(fd, "GET", 404, NULL);
    http_client_put(fd, "HEAD /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct http_kit_wait *w = http_kit_take(&k); /* a streamed answer to HEAD has no body either */
    assert_true(http_reply_begin(w->reply, 200, "text/plain", NULL));
    assert_true(http_reply_write(w->reply, "body", 4));
    assert_true(http_reply_end(w->reply));
    http_client_answer(fd, "HEAD", &a);
    expect_field(&a, "Transfer-Encoding", "chunked");
    finish(w);
    http_client_put(fd, HELLO HELLO);
    expect_answer(fd, "GET", 200, "hello");
    expect_answer(fd, "GET", 200, "hello");
    close(fd);
    http_answer_free(&a);
    http_kit_end(&k);
}

/* ---- who may ask ---- */

static void test_keys(void **state)
{
    static const char *const keys[] = {"first-key", "second key"};
    static const char *const wrong[] = {"",
                                        "Authorization: Bearer first-kez\r\n",
                                        "Authorization: Bearer first-ke\r\n",
                                        "Authorization: Bearer first-key1\r\n",
                                        "Authorization: Bearer\r\n",
                                        "Authorization: Bearer \r\n",
                                        "Authorization: Basic first-key\r\n",
                                        "Authorization: first-key\r\n",
                                        "x-api-key: \r\n",
                                        "x-api-key: second\r\n",
                                        "x-api-key: Bearer first-key\r\n"};
    struct http_kit k = {.options = {.keys = keys, .n_keys = 2}};
    struct http_answer a = {0};
    http_kit_start(&k);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) expect_status(&k, "GET", "/hello", wrong[i], NULL, 401);
    http_client_ask(&k, "POST", "/wait", "x-api-key: guess\r\n", "body", &a);
    assert_int_equal(a.status, 401);
    expect_field(&a, "WWW-Authenticate", "Bearer");
    assert_null(strstr(str_c(&a.body), "first-key"));
    expect_status(&k, "GET", "/nothing", "", NULL, 401); /* what exists is nobody's business */
    expect_status(&k, "GET", "/open", "", NULL, 200);
    expect_status(&k, "OPTIONS", "/hello", "", NULL, 204);
    expect_status(&k, "GET", "/hello", "Authorization: Bearer first-key\r\n", NULL, 200);
    expect_status(&k, "GET", "/hello", "authorization: bearer  first-key\r\n", NULL, 200);
    expect_status(&k, "GET", "/hello", "X-API-Key: second key\r\n", NULL, 200);
    expect_status(&k, "GET", "/hello", "Authorization: Bearer x\r\nx-api-key: first-key\r\n", NULL, 200);
    int fd;
    struct http_kit_wait *w =
        ask_and_wait(&k, "GET /wait HTTP/1.1\r\nHost: localhost\r\nx-api-key: second key\r\n\r\n", &fd);
    assert_int_equal(w->key, 1);
    http_reply_send(w->reply, 204, NULL, NULL, 0, NULL);
    expect_answer(fd, "GET", 204, "");
    finish(w);
    close(fd);
    http_answer_free(&a);
    http_kit_end(&k);
}

static void test_keys_read(void **state)
{
    char path[TEMP_PATH], **keys = NULL;
    size_t n = 0;
    struct err e = {0};
    temp_file(path);
    FILE *f = fopen(path, "w");
    fputs("# two keys\n\n  one \r\ntwo", f);
    fclose(f);
    assert_int_equal(http_keys_read(path, &keys, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(keys[0], "one");
    assert_string_equal(keys[1], "two");
    f = fopen(path, "w");
    fputs("# nothing\n", f);
    fclose(f);
    assert_int_equal(http_keys_read(path, &keys, &n, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, path));
    for (size_t i = 0; i < n; i++) mem_free(keys[i]);
    mem_free(keys);
}

static void ask_host(const struct http_kit *k, const char *host, int status)
{
    char field[128];
    snprintf(field, sizeof field, "Host: %s\r\n", host);
    expect_status(k, "GET", "/hello", field, NULL, status);
}

/* A page that was opened under a name whose address was changed to 127.0.0.1 still sends that name. */
static void test_hosts(void **state)
{
    static const char *const allowed[] = {"my.box"};
    static const char *const good[] = {"localhost", "LocalHost:8000", "127.0.0.1",  "127.0.0.1:1",
                                       "127.1.2.3", "[::1]",          "[::1]:8000", "[0:0:0:0:0:0:0:1]",
                                       "my.box",    "MY.BOX:8000"};
    static const char *const bad[] = {"",
                                      "evil.example",
                                      "evil.example:8000",
                                      "127.0.0.1.evil.example",
                                      "localhost.evil.example",
                                      "evil-localhost",
                                      "localhost.",
                                      "128.0.0.1",
                                      "0127.0.0.1",
                                      "127.1",
                                      "2130706433",
                                      "[::2]",
                                      "[::ffff:10.0.0.1]",
                                      "my.box.evil.example",
                                      "my",
                                      "192.168.0.1"};
    struct http_kit k = {.options = {.allow_hosts = allowed, .n_allow_hosts = 1}};
    http_kit_start(&k);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) ask_host(&k, good[i], 200);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) ask_host(&k, bad[i], 403);
    http_kit_end(&k);
    static const char *const any[] = {"*"};
    struct http_kit open = {.options = {.allow_hosts = any, .n_allow_hosts = 1}};
    http_kit_start(&open);
    ask_host(&open, "evil.example", 200);
    http_kit_end(&open);
}

static void ask_origin(const struct http_kit *k, const char *origin, int status, const char *cors)
{
    char field[256];
    struct http_answer a = {0};
    snprintf(field, sizeof field, "Origin: %s\r\n", origin);
    http_client_ask(k, "GET", "/hello", field, NULL, &a);
    if (a.status != status) fail_msg("Origin %s: %d, wanted %d", origin, a.status, status);
    expect_field(&a, "Access-Control-Allow-Origin", cors);
    http_answer_free(&a);
}

static void test_origins(void **state)
{
    static const char *const allowed[] = {"https://app.example"}, *const all[] = {"*"};
    struct http_kit k = {.options = {.allow_origins = allowed, .n_allow_origins = 1}};
    struct http_answer a = {0};
    char own[64], other_port[64];
    http_kit_start(&k);
    snprintf(own, sizeof own, "http://localhost:%d", http_port(k.http));
    ask_origin(&k, own, 200, NULL);
    snprintf(own, sizeof own, "http://127.0.0.1:%d", http_port(k.http));
    ask_origin(&k, own, 200, NULL);
    snprintf(other_port, sizeof other_port, "http://localhost:%d", http_port(k.http) - 1);
    ask_origin(&k, other_port, 403, NULL);
    ask_origin(&k, "http://localhost", 403, NULL);
    ask_origin(&k, "null", 403, NULL);
    ask_origin(&k, "https://evil.example", 403, NULL);
    ask_origin(&k, "https://app.example.evil.example", 403, NULL);
    ask_origin(&k, "http://app.example", 403, NULL);
    ask_origin(&k, "https://app.example", 200, "https://app.example");

    http_client_ask(&k, "OPTIONS", "/echo",
                    "Origin: https://app.example\r\nAccess-Control-Request-Method: "
                    "POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n",
                    NULL, &a);
    assert_int_equal(a.status, 204);
    expect_field(&a, "Access-Control-Allow-Origin", "https://app.example");
    expect_field(&a, "Access-Control-Allow-Headers", "authorization,content-type");
    expect_field(&a, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    expect_field(&a, "Vary", "Origin");
    http_client_ask(&k, "OPTIONS", "/echo", "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n",
                    NULL, &a);
    assert_int_equal(a.status, 403);
    expect_field(&a, "Access-Control-Allow-Origin", NULL);
    expect_field(&a, "Access-Control-Allow-Methods", NULL);
    http_client_ask(&k, "GET", "/nothing", "Origin: https://app.example\r\n", NULL, &a); /* an error can be read, too */
    assert_int_equal(a.status, 404);
    expect_field(&a, "Access-Control-Allow-Origin", "https://app.example");
    http_kit_end(&k);

    struct http_kit open = {.options = {.allow_origins = all, .n_allow_origins = 1}};
    int fd;
    http_kit_start(&open);
    ask_origin(&open, "https://evil.example", 200, "*");
    struct http_kit_wait *w = ask_and_wait(&open, "GET /wait HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", &fd);
    http_reply_begin(w->reply, 200, "text/event-stream", NULL);
    http_reply_end(w->reply);
    http_client_answer(fd, "GET", &a);
    expect_field(&a, "Access-Control-Allow-Origin", "*");
    finish(w);
    close(fd);
    http_answer_free(&a);
    http_kit_end(&open);
}

/* ---- streams ---- */

#define CHUNKED_HEAD_END "Transfer-Encoding: chunked\r\n\r\n"

static void read_head(int fd, const char *last_line)
{
    char all[1024] = "";
    size_t n = 0;
    while (!strstr(all, "\r\n\r\n")) {
        assert_int_equal(http_client_read(fd, all + n, 1, NULL), 1);
        all[++n] = 0;
    }
    assert_non_null(strstr(all, last_line));
}

/* Each piece reaches the client before the next is written. */
static void test_stream(void **state)
{
    struct http_kit k = {0};
    int fd;
    http_kit_start(&k);
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
    assert_true(http_reply_begin(w->reply, 200, "text/event-stream", "Cache-Control: no-cache\r\n"));
    read_head(fd, CHUNKED_HEAD_END);
    assert_true(http_reply_write(w->reply, "data: 1\n\n", 9));
    http_client_expect(fd, "9\r\ndata: 1\n\n\r\n");
    assert_true(http_reply_write(w->reply, "", 0)); /* not the end */
    assert_true(http_reply_write(w->reply, "data: [DONE]\n\n", 14));
    http_client_expect(fd, "e\r\ndata: [DONE]\n\n\r\n");
    http_reply_send(w->reply, 503, NULL, "late", 4, NULL); /* nothing: an answer was begun */
    assert_true(http_reply_end(w->reply));
    http_client_expect(fd, "0\r\n\r\n");
    finish(w);
    http_client_put(fd, HELLO);
    expect_answer(fd, "GET", 200, "hello");
    close(fd);

    w = ask_and_wait(&k, "GET /wait HTTP/1.0\r\n\r\n", &fd);
    assert_true(http_reply_begin(w->reply, 200, "text/event-stream", NULL));
    read_head(fd, "Connection: close\r\n\r\n");
    assert_true(http_reply_write(w->reply, "data: 1\n\n", 9));
    http_client_expect(fd, "data: 1\n\n");
    assert_true(http_reply_end(w->reply));
    assert_true(http_client_ended(fd));
    finish(w);
    close(fd);
    http_kit_end(&k);
}

/* What is asked far ahead waits outside, and is all answered. */
static void test_far_ahead(void **state)
{
    enum { N = 4000 };
    struct http_kit k = {0};
    struct str all = {0};
    int fd;
    for (int i = 0; i < N; i++) str_puts(&all, HELLO);
    http_kit_start(&k);
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
    http_client_send(fd, all.p, all.n);
    usleep(300 * 1000); /* more than enough to read too much */
    http_reply_send(w->reply, 200, "text/plain", "first", 5, NULL);
    expect_answer(fd, "GET", 200, "first");
    for (int i = 0; i < N; i++) expect_answer(fd, "GET", 200, "hello");
    finish(w);

    struct str body = {0}; /* a body of which a part has been waiting */
    struct http_answer a = {0};
    for (int i = 0; i < 40000; i++) str_printf(&body, "%d,", i);
    str_clear(&all);
    str_printf(&all, "POST /any HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", body.n);
    str_add(&all, body.p, body.n);
    http_client_put(fd, WAIT);
    w = http_kit_take(&k);
    http_client_send(fd, all.p, all.n);
    usleep(300 * 1000);
    http_reply_send(w->reply, 200, "text/plain", "first", 5, NULL);
    expect_answer(fd, "GET", 200, "first");
    http_client_answer(fd, "POST", &a);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body.p, body.p);
    finish(w);
    http_answer_free(&a);
    str_free(&body);
    close(fd);
    str_free(&all);
    http_kit_end(&k);
}

/* Two answers of one connection never mix, whatever was asked ahead. */
static void test_pipelined_streams(void **state)
{
    struct http_kit k = {0};
    http_kit_start(&k);
    int fd = http_client(&k);
    http_client_put(fd, WAIT HELLO WAIT "POST /any HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
    for (int i = 0; i < 2; i++) {
        struct http_kit_wait *w = http_kit_take(&k);
        assert_true(http_reply_begin(w->reply, 200, "text/plain", NULL));
        for (int j = 0; j < 10; j++) http_reply_write(w->reply, "x", 1);
        http_reply_end(w->reply);
        expect_answer(fd, "GET", 200, "xxxxxxxxxx");
        expect_answer(fd, "GET", 200, i ? "abc" : "hello");
        finish(w);
    }
    close(fd);
    http_kit_end(&k);
}

static void no_log(void *arg, enum log_level level, const char *subject, const char *text)
{
}

/* An answer that nobody finishes. */
static void test_lost_answers(void **state)
{
    struct http_kit k = {0};
    struct http_answer a = {0};
    int fd;
    log_to(no_log, NULL, LOG_ERROR);
    http_kit_start(&k);
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
    finish(w);
    expect_answer(fd, "GET", 500, NULL);
    assert_true(http_client_ended(fd));
    close(fd);
    w = ask_and_wait(&k, WAIT, &fd);
    http_reply_begin(w->reply, 200, "text/plain", NULL);
    http_reply_write(w->reply, "half", 4);
    finish(w);
    http_client_answer(fd, "GET", &a);
    assert_true(a.cut);
    close(fd);
    http_answer_free(&a);
    http_kit_end(&k);
    log_to(NULL, NULL, LOG_INFO);
}

/* ---- clients that go away ---- */

enum leaving { CLOSES, RESETS, HALF_CLOSES_THEN_CLOSES, LEAVING_COUNT };

static void leave(int fd, enum leaving how)
{
    if (how == RESETS)
        http_client_reset(fd);
    else if (how == HALF_CLOSES_THEN_CLOSES)
        shutdown(fd, SHUT_WR);
    if (how != RESETS) close(fd);
}

/* Nothing is written by anybody: it is noticed all the same. begun: the head is out. */
static void gone_unwritten(enum leaving how, bool begun, const char *request)
{
    struct http_kit k = {0};
    int fd;
    http_kit_start(&k);
    struct http_kit_wait *w = ask_and_wait(&k, request, &fd);
    if (begun) {
        assert_true(http_reply_begin(w->reply, 200, "text/event-stream", NULL));
        read_head(fd, "\r\n");
    }
    assert_false(http_reply_gone(w->reply));
    leave(fd, how);
    http_kit_until(&w->gone, 1);
    assert_true(http_reply_gone(w->reply));
    if (begun) assert_false(http_reply_write(w->reply, "x", 1));
    assert_false(begun ? http_reply_end(w->reply) : http_reply_begin(w->reply, 200, NULL, NULL));
    assert_int_equal(atomic_load(&w->dropped), 0);
    assert_int_equal(atomic_load(&w->gone), 1);
    finish(w);
    http_kit_end(&k);
}

static void test_gone_while_waiting(void **state)
{
    for (int how = 0; how < LEAVING_COUNT; how++) gone_unwritten(how, false, WAIT);
    gone_unwritten(CLOSES, false, "GET /wait HTTP/1.0\r\n\r\n");
}

static void test_gone_while_streaming(void **state)
{
    for (int how = 0; how < LEAVING_COUNT; how++) gone_unwritten(how, true, WAIT);
}

/* With so much asked ahead that nothing more is read. */
static void test_gone_behind_a_pipeline(void **state)
{
    struct str s = {0};
    str_puts(&s, WAIT);
    for (int i = 0; i < 3000; i++) str_puts(&s, HELLO);
    for (int how = 0; how < LEAVING_COUNT; how++) gone_unwritten(how, false, str_c(&s));
    str_free(&s);
}

/* While something is written, by the first failing write. */
static void test_gone_while_writing(void **state)
{
    for (int how = 0; how < LEAVING_COUNT; how++) {
        struct http_kit k = {0};
        int fd;
        http_kit_start(&k);
        struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
        assert_true(http_reply_begin(w->reply, 200, "text/event-stream", NULL));
        leave(fd, how);
        double end = clock_s() + 20;
        while (http_reply_write(w->reply, "data: x\n\n", 9)) {
            assert_true(clock_s() < end);
            usleep(1000);
        }
        http_kit_until(&w->gone, 1);
        finish(w);
        http_kit_end(&k);
    }
}

/* A client that will send nothing more but reads is served to the end, however long it takes. */
static void test_half_close(void **state)
{
    enum { N = 4 };
    static const char *const request[N] = {WAIT, WAIT, "GET /wait HTTP/1.0\r\n\r\n", "GET /wait HTTP/1.0\r\n\r\n"};
    struct http_kit k = {0};
    struct http_kit_wait *w[N];
    struct http_answer a = {0};
    char value[64];
    int fd[N];
    http_kit_start(&k);
    for (int i = 0; i < N; i++) {
        w[i] = ask_and_wait(&k, request[i], &fd[i]);
        if (i % 2) assert_true(http_reply_begin(w[i]->reply, 200, "text/plain", NULL));
        shutdown(fd[i], SHUT_WR);
    }
    usleep(900 * 1000); /* several looks at whether it is still there */
    for (int i = 0; i < N; i++) {
        assert_false(http_reply_gone(w[i]->reply));
        if (i % 2 == 0) assert_true(http_reply_begin(w[i]->reply, 200, "text/plain", NULL));
        assert_true(http_reply_write(w[i]->reply, "hello ", 6));
    }
    usleep(300 * 1000);
    for (int i = 0; i < N; i++) {
        assert_true(http_reply_write(w[i]->reply, "world", 5));
        assert_true(http_reply_end(w[i]->reply));
        http_client_answer(fd[i], "GET", &a);
        assert_int_equal(a.status, 200);
        assert_false(a.cut);
        assert_non_null(http_answer_field(&a, "Date", value, sizeof value));
        assert_string_equal(str_c(&a.body), "hello world");
        assert_true(http_client_ended(fd[i]));
        assert_int_equal(atomic_load(&w[i]->gone), 0);
        finish(w[i]);
        close(fd[i]);
    }
    http_answer_free(&a);
    http_kit_end(&k);
}

/* What was asked before the half-close is all answered. */
static void test_half_close_pipelined(void **state)
{
    struct http_kit k = {0};
    http_kit_start(&k);
    int fd = http_client(&k);
    for (int i = 0; i < 100; i++) http_client_put(fd, HELLO);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 100; i++) expect_answer(fd, "GET", 200, "hello");
    assert_true(http_client_ended(fd));
    close(fd);
    http_kit_end(&k);
}

static void count_call(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Who asks to be told when it has happened already is told at once. */
static struct http_reply *late_reply;
static atomic_int late_gone;

static void keep_late(void *arg, struct http_reply *r, struct http_request *q)
{
    late_reply = r;
    atomic_store(&late_gone, 1);
}

static void *run_late(void *arg)
{
    http_run(arg);
    return NULL;
}

static void test_told_late(void **state)
{
    static const struct http_route route = {"GET", "/late", 0, keep_late};
    const struct http_options o = {.routes = &route, .n_routes = 1};
    struct http_kit k = {0};
    struct err e = {0};
    static atomic_int calls;
    assert_int_equal(http_open(&o, &k.http, &e), 0);
    pthread_create(&k.thread, NULL, run_late, k.http);
    int fd = http_client(&k);
    http_client_put(fd, "GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n");
    http_kit_until(&late_gone, 1);
    close(fd);
    while (!http_reply_gone(late_reply)) usleep(1000);
    http_reply_on_gone(late_reply, count_call, NULL, &calls);
    assert_int_equal(atomic_load(&calls), 1);
    /* A reply outlives its server. */
    struct http_reply *again = http_reply_hold(late_reply);
    http_stop(k.http);
    pthread_join(k.thread, NULL);
    http_close(k.http);
    assert_false(http_reply_begin(again, 200, NULL, NULL));
    http_reply_send(again, 200, NULL, "x", 1, NULL);
    http_reply_release(late_reply);
    http_reply_release(again);
    assert_int_equal(atomic_load(&calls), 1);
}

/* ---- slow readers ---- */

/* Costs memory up to the limit, never time of the writer; then it is dropped. */
static void test_slow_reader(void **state)
{
    struct http_kit k = {.options.limits = {.unread_bytes = 1 << 20}};
    char piece[10000];
    int fd;
    http_kit_start(&k);
    memset(piece, 'x', sizeof piece);
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
    assert_true(http_reply_begin(w->reply, 200, "text/event-stream", NULL));
    size_t most = 0;
    double begun = clock_s(), longest = 0;
    while (clock_s() - begun < 20) {
        double before = clock_s();
        if (!http_reply_write(w->reply, piece, sizeof piece)) break;
        longest = clock_s() - before > longest ? clock_s() - before : longest;
        size_t unread = http_reply_unread(w->reply);
        most = unread > most ? unread : most;
    }
    assert_true(http_reply_gone(w->reply));
    assert_true(most > 1 << 19 && most <= (1 << 20) + 2 * sizeof piece);
    assert_true(longest < 2); /* microseconds on a quiet machine */
    http_kit_until(&w->gone, 1);
    finish(w);
    while (http_counts(k.http).open) usleep(1000);
    assert_int_equal(http_counts(k.http).dropped_slow, 1);
    close(fd);
    http_kit_end(&k);
}

/* An answer in one piece may be larger than the limit; who takes nothing of it is dropped after a while. */
static void test_stalled_reader(void **state)
{
    struct http_kit k = {.options.limits = {.unread_bytes = 1 << 20}}, strict = {.options.limits = {.stall_ms = 300}};
    struct http_answer a = {0};
    struct str large = {0};
    int fd;
    http_kit_start(&k);
    for (int i = 0; i < 2000000; i++) str_puts(&large, "12345678");
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
    http_reply_send(w->reply, 200, "text/plain", large.p, large.n, NULL);
    http_client_answer(fd, "GET", &a);
    assert_int_equal(a.body.n, large.n);
    assert_memory_equal(a.body.p, large.p, large.n);
    finish(w);
    close(fd);
    http_kit_end(&k);
    http_kit_start(&strict);
    w = ask_and_wait(&strict, WAIT, &fd);
    http_reply_send(w->reply, 200, "text/plain", large.p, large.n, NULL);
    http_reply_release(w->reply);
    while (!http_counts(strict.http).dropped_slow) usleep(1000);
    http_kit_free(w);
    close(fd);
    http_kit_end(&strict);
    str_free(&large);
    http_answer_free(&a);
}

/* Who reads all the time is served to the end, even if the system lets nothing more be written for longer than a reader
 * may do nothing. */
static void test_steady_slow_reader(void **state)
{
    enum { BYTES = 12 << 20, SLOW = 40, A_READ = 16 << 10, PAUSE_US = 100000 }; /* 4 s */
    struct http_kit k = {.options.limits = {.unread_bytes = 1 << 20, .stall_ms = 1500}};
    char *large = mem_alloc(BYTES), *got = mem_alloc(A_READ);
    size_t n = 0;
    int fd;
    http_kit_start(&k);
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
    http_reply_send(w->reply, 200, "text/plain", large, BYTES, NULL);
    for (int i = 0; n < BYTES; i++) {
        const ssize_t more = recv(fd, got, A_READ, 0);
        if (more <= 0) fail_msg("%zu bytes, then the connection ended", n);
        n += (size_t)more;
        if (i < SLOW) usleep(PAUSE_US);
    }
    assert_int_equal(http_counts(k.http).dropped_slow, 0);
    mem_free(large);
    mem_free(got);
    finish(w);
    close(fd);
    http_kit_end(&k);
}

/* A writer that watches what is unread can write any amount to a reader that is just slower than memory. */
static void *read_slowly(void *arg)
{
    struct http_answer *a = arg;
    http_client_answer(a->status, "GET", a);
    return NULL;
}

static void test_paced_writer(void **state)
{
    enum { PIECES = 3000, PIECE = 10000 };
    struct http_kit k = {.options.limits = {.unread_bytes = 1 << 20}};
    char piece[PIECE];
    int fd;
    pthread_t reader;
    http_kit_start(&k);
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
    struct http_answer a = {.status = fd};
    pthread_create(&reader, NULL, read_slowly, &a);
    assert_true(http_reply_begin(w->reply, 200, "text/plain", NULL));
    for (int i = 0; i < PIECES; i++) {
        memset(piece, 'a' + i % 26, sizeof piece);
        while (http_reply_unread(w->reply) > 1 << 19) usleep(100);
        assert_true(http_reply_write(w->reply, piece, sizeof piece));
    }
    assert_true(http_reply_end(w->reply));
    pthread_join(reader, NULL);
    assert_int_equal(a.body.n, PIECES * PIECE);
    for (int i = 0; i < PIECES; i++) assert_int_equal(a.body.p[(size_t)i * PIECE + 77], 'a' + i % 26);
    finish(w);
    close(fd);
    http_answer_free(&a);
    http_kit_end(&k);
}

/* ---- places ---- */

static int connect_unix(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const struct timeval patience = {20, 0};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void test_unix_socket(void **state)
{
    char folder[TEMP_PATH], path[TEMP_PATH + 16], address[TEMP_PATH + 32];
    struct stat st;
    struct err e = {0};
    temp_folder(folder);
    snprintf(path, sizeof path, "%s/socket", folder);
    struct http_kit k = {.options.unix_path = path};
    mode_t mask = umask(027);
    http_kit_start(&k);
    umask(mask);
    snprintf(address, sizeof address, "unix:%s", path);
    assert_string_equal(http_address(k.http, 0), address);
    assert_null(http_address(k.http, 1));
    assert_int_equal(http_port(k.http), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0750);
    int fd = connect_unix(path);
    http_client_put(fd, "GET /hello HTTP/1.1\r\nHost: whatever\r\n\r\n"); /* no browser gets here */
    expect_answer(fd, "GET", 200, "hello");
    http_client_put(fd, WAIT);
    struct http_kit_wait *w = http_kit_take(&k);
    close(fd);
    http_kit_until(&w->gone, 1);
    finish(w);

    struct http *second;
    assert_int_equal(http_open(&k.options, &second, &e), ERR_IO); /* somebody listens there */
    assert_non_null(strstr(e.msg, path));
    http_kit_end(&k);
    assert_int_equal(stat(path, &st), -1);

    struct sockaddr_un a = {.sun_family = AF_UNIX}; /* left over from a process that was killed */
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    close(fd);
    http_kit_start(&k);
    fd = connect_unix(path);
    http_client_put(fd, HELLO);
    expect_answer(fd, "GET", 200, "hello");
    close(fd);
    http_kit_end(&k);

    FILE *f = fopen(path, "w"); /* something else is left alone */
    fclose(f);
    err_clear(&e);
    assert_int_equal(http_open(&k.options, &second, &e), ERR_IO);
    assert_int_equal(stat(path, &st), 0);
}

static void test_addresses(void **state)
{
    static const char *const both[] = {"127.0.0.1", "::1"}, *const nowhere[] = {"no-such-host.invalid"};
    struct err e = {0};
    struct http *h;
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    bool have_v6 = probe >= 0 && !bind(probe, (struct sockaddr *)&a, sizeof a);
    if (probe >= 0) close(probe);
    struct http_kit k = {.options = {.hosts = both, .n_hosts = have_v6 ? 2 : 1}};
    char text[64];
    http_kit_start(&k);
    snprintf(text, sizeof text, "http://127.0.0.1:%d", http_port(k.http));
    assert_string_equal(http_address(k.http, 0), text);
    expect_status(&k, "GET", "/hello", "", NULL, 200);
    if (have_v6) {
        snprintf(text, sizeof text, "http://[::1]:%d", http_port(k.http));
        assert_string_equal(http_address(k.http, 1), text);
        a.sin6_port = htons((uint16_t)http_port(k.http));
        int fd = socket(AF_INET6, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
        http_client_put(fd, "GET /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n");
        expect_answer(fd, "GET", 200, "hello");
        http_client_put(fd, "GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        expect_answer(fd, "GET", 403, NULL);
        close(fd);
    }
    struct http_options second = k.options; /* the port is taken */
    second.port = http_port(k.http);
    assert_int_equal(http_open(&second, &h, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "--port"));
    err_clear(&e);
    second.hosts = nowhere;
    second.n_hosts = 1;
    assert_int_equal(http_open(&second, &h, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "no-such-host.invalid"));
    err_clear(&e);
    second.port = 65536;
    assert_int_equal(http_open(&second, &h, &e), ERR_ARG);
    http_kit_end(&k);
}

static void keep_log(void *arg, enum log_level level, const char *subject, const char *text)
{
    if (level <= LOG_WARN) str_puts(arg, text);
}

/* Served to others without a key: said once, at the start. */
static void test_public_warning(void **state)
{
    static const char *const everywhere[] = {"0.0.0.0"}, *const here[] = {"127.0.0.1"}, *const keys[] = {"k"};
    const struct {
        const char *const *hosts;
        size_t n_keys;
        bool warned;
    } cases[] = {{everywhere, 0, true}, {everywhere, 1, false}, {here, 0, false}};
    for (size_t i = 0; i < 3; i++) {
        const struct http_options o = {.hosts = cases[i].hosts, .n_hosts = 1, .keys = keys, .n_keys = cases[i].n_keys};
        struct str said = {0};
        struct http *h;
        struct err e = {0};
        log_to(keep_log, &said, LOG_INFO);
        assert_int_equal(http_open(&o, &h, &e), 0);
        log_to(NULL, NULL, LOG_INFO);
        assert_true(cases[i].warned == (strstr(str_c(&said), "--api-key") != NULL));
        http_close(h);
        str_free(&said);
    }
}

/* ---- the end ---- */

static bool can_connect(const struct http_kit *k, int port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool yes = !connect(fd, (struct sockaddr *)&a, sizeof a);
    close(fd);
    return yes;
}

static void test_drain(void **state)
{
    struct http_kit k = {0};
    int running, stream, ahead, idle, half;
    http_kit_start(&k);
    int port = http_port(k.http);
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &running), *s = ask_and_wait(&k, WAIT, &stream),
                         *p = ask_and_wait(&k, WAIT, &ahead);
    assert_true(http_reply_begin(s->reply, 200, "text/plain", NULL));
    idle = http_client(&k);
    http_client_put(idle, HELLO);
    expect_answer(idle, "GET", 200, "hello");
    half = http_client(&k);
    http_client_put(half, "POST /any HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    expect_answer(half, "POST", 100, NULL);
    assert_false(http_stopping(k.http));
    http_stop(k.http);
    assert_true(http_stopping(k.http));
    assert_true(http_client_ended(idle));
    expect_answer(half, "POST", 503, NULL);
    assert_true(http_client_ended(half));
    while (can_connect(&k, port)) usleep(1000);
    http_client_put(ahead, HELLO); /* asked on a connection that is still open */
    http_reply_send(p->reply, 200, "text/plain", "ahead", 5, NULL);
    expect_answer(ahead, "GET", 200, "ahead");
    assert_true(http_reply_write(s->reply, "to the end", 10));
    assert_true(http_reply_end(s->reply));
    expect_answer(stream, "GET", 200, "to the end");
    assert_true(http_client_ended(stream));
    http_reply_send(w->reply, 200, "text/plain", "done", 4, NULL);
    struct http_answer a = {0};
    http_client_answer(running, "GET", &a);
    assert_string_equal(str_c(&a.body), "done");
    expect_field(&a, "Connection", "close");
    http_answer_free(&a);
    close(running), close(stream), close(ahead), close(idle), close(half);
    pthread_join(k.thread, NULL); /* http_run returns by itself */
    k.running = false;
    finish(w), finish(s), finish(p);
    http_kit_end(&k);
}

/* Closed in the middle of answers: their clients are gone for those who write. */
static void test_close_in_the_middle(void **state)
{
    struct http_kit k = {0};
    int fd;
    http_kit_start(&k);
    struct http_kit_wait *w = ask_and_wait(&k, WAIT, &fd);
    http_reply_begin(w->reply, 200, "text/plain", NULL);
    read_head(fd, CHUNKED_HEAD_END);
    http_reply_hold(w->reply);
    http_stop(k.http);
    close(fd);
    pthread_join(k.thread, NULL);
    k.running = false;
    http_kit_end(&k);
    assert_int_equal(atomic_load(&w->gone), 1);
    assert_false(http_reply_write(w->reply, "x", 1));
    http_reply_release(w->reply);
    finish(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep_alive),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_expect_continue),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_head_and_refusals_keep_step),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_keys_read),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_far_ahead),
        cmocka_unit_test(test_pipelined_streams),
        cmocka_unit_test(test_lost_answers),
        cmocka_unit_test(test_gone_while_waiting),
        cmocka_unit_test(test_gone_while_streaming),
        cmocka_unit_test(test_gone_behind_a_pipeline),
        cmocka_unit_test(test_gone_while_writing),
        cmocka_unit_test(test_half_close),
        cmocka_unit_test(test_half_close_pipelined),
        cmocka_unit_test(test_told_late),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_stalled_reader),
        cmocka_unit_test(test_steady_slow_reader),
        cmocka_unit_test(test_paced_writer),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_public_warning),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_close_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
