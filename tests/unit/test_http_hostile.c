/* What no client should send, through raw sockets: each is refused or dropped, and the server goes on serving. */
#include "base/clock.h"
#include "../support/http_kit.h"

#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

static void expect_alive(const struct http_kit *k)
{
    struct http_answer a = {0};
    http_client_ask(k, "GET", "/hello", "", NULL, &a);
    assert_int_equal(a.status, 200);
    assert_string_equal(str_c(&a.body), "hello");
    http_answer_free(&a);
}

struct attempt {
    const char *what;
    int status; /* of the one answer; the connection is closed behind it */
    const char *bytes;
    size_t n; /* 0: up to the zero */
};

#define HEAD    "POST /any HTTP/1.1\r\nHost: localhost\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n\r\n"
/* What would be a request of its own if the one before ended where an attacker wants it to. */
#define HIDDEN         "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define BYTES(literal) literal, sizeof(literal) - 1

static const struct attempt attempts[] = {
    {"bare LF", 400, "GET /hello HTTP/1.1\nHost: localhost\n\n" HIDDEN},
    {"bare LF behind the request line", 400, "GET /hello HTTP/1.1\nHost: localhost\r\n\r\n"},
    {"bare LF inside a value", 400, HEAD "X: a\nContent-Length: 5\r\n\r\nhello"},
    {"bare CR inside a value", 400, HEAD "X: a\rContent-Length: 5\r\n\r\nhello"},
    {"CR CR LF", 400, HEAD "X: a\r\r\n\r\n"},
    {"two equal lengths", 400, HEAD "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" HIDDEN},
    {"two different lengths", 400, HEAD "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!" HIDDEN},
    {"two lengths, one in capitals", 400, HEAD "Content-Length: 5\r\nCONTENT-LENGTH: 0\r\n\r\nhello" HIDDEN},
    {"list of lengths", 400, HEAD "Content-Length: 5, 5\r\n\r\nhello" HIDDEN},
    {"length and chunks", 400, HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN},
    {"chunks and length", 400, HEAD "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" HIDDEN},
    {"two codings", 400, HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" HIDDEN},
    {"list of codings", 501, HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" HIDDEN},
    {"chunked twice", 501, HEAD "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" HIDDEN},
    {"coding that ends like chunked", 501, HEAD "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" HIDDEN},
    {"quoted coding", 501, HEAD "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" HIDDEN},
    {"coding behind a vertical tab", 400, HEAD "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n" HIDDEN},
    {"coding in HTTP/1.0", 400, "POST /any HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN},
    {"negative length", 400, HEAD "Content-Length: -5\r\n\r\nhello"},
    {"length with a plus", 400, HEAD "Content-Length: +5\r\n\r\nhello" HIDDEN},
    {"hexadecimal length", 400, HEAD "Content-Length: 0x10\r\n\r\nhello" HIDDEN},
    {"length with a point", 400, HEAD "Content-Length: 5.0\r\n\r\nhello"},
    {"length with a blank", 400, HEAD "Content-Length: 5 5\r\n\r\nhello"},
    {"empty length", 400, HEAD "Content-Length: \r\n\r\nhello"},
    {"length of 2^63", 413, HEAD "Content-Length: 9223372036854775808\r\n\r\n"},
    {"length of 2^64", 413, HEAD "Content-Length: 18446744073709551616\r\n\r\n"},
    {"length of 2^64 + 5", 413, HEAD "Content-Length: 18446744073709551621\r\n\r\nhello" HIDDEN},
    {"length over the limit", 413, HEAD "Content-Length: 67108865\r\n\r\n"},
    {"huge chunk", 413, CHUNKED "7fffffffffffffff\r\nhello"},
    {"chunk of 2^63", 400, CHUNKED "8000000000000000\r\nhello"},
    {"chunk of 2^64 + 5", 400, CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n" HIDDEN},
    {"chunk with seventeen digits", 400, CHUNKED "00000000000000005\r\nhello\r\n0\r\n\r\n" HIDDEN},
    {"negative chunk", 400, CHUNKED "-5\r\nhello\r\n0\r\n\r\n" HIDDEN},
    {"chunk with a plus", 400, CHUNKED "+5\r\nhello\r\n0\r\n\r\n" HIDDEN},
    {"chunk with 0x", 400, CHUNKED "0x5\r\nhello\r\n0\r\n\r\n" HIDDEN},
    {"chunk with a blank", 400, CHUNKED " 5\r\nhello\r\n0\r\n\r\n" HIDDEN},
    {"chunk with a blank behind", 400, CHUNKED "5 \r\nhello\r\n0\r\n\r\n" HIDDEN},
    {"chunk without a size", 400, CHUNKED "\r\nhello\r\n0\r\n\r\n" HIDDEN},
    {"chunk line with a bare LF", 400, CHUNKED "5\nhello\n0\n\n" HIDDEN},
    {"bare LF in a chunk's extension", 400, CHUNKED "5;a\nhello\r\n0\r\n\r\n" HIDDEN},
    {"chunk that is longer than it says", 400, CHUNKED "5\r\nhello!\r\n0\r\n\r\n" HIDDEN},
    {"no CRLF behind a chunk", 400, CHUNKED "5\r\nhello0\r\n\r\n" HIDDEN},
    {"trailer without a colon", 400, CHUNKED "0\r\nnonsense\r\n\r\n" HIDDEN},
    {"trailer with a bare LF", 400, CHUNKED "0\r\nX: y\nZ: 1\r\n\r\n" HIDDEN},
    {"folded trailer", 400, CHUNKED "0\r\nX: y\r\n z\r\n\r\n" HIDDEN},
    {"field without a colon", 400, HEAD "nonsense\r\n\r\n"},
    {"field without a name", 400, HEAD ": nonsense\r\n\r\n"},
    {"blank before the colon", 400, HEAD "Content-Length : 5\r\n\r\nhello" HIDDEN},
    {"tab before the colon", 400, HEAD "Content-Length\t: 5\r\n\r\nhello" HIDDEN},
    {"blank before the first field", 400, "GET /hello HTTP/1.1\r\n Host: localhost\r\n\r\n"},
    {"name with a bracket", 400, HEAD "X[]: 5\r\n\r\n"},
    {"name beyond ASCII", 400, HEAD "X\xc3\xa9: 5\r\n\r\n"},
    {"zero in a value", 400, BYTES(HEAD "X: a\0b\r\n\r\n")},
    {"zero in a name", 400, BYTES(HEAD "X\0: b\r\n\r\n")},
    {"zero in the target", 400, BYTES("GET /hel\0lo HTTP/1.1\r\nHost: localhost\r\n\r\n")},
    {"escape in a value", 400, HEAD "X: \x1b[2J\r\n\r\n"},
    {"folded field", 400, HEAD "X: a\r\n b\r\n\r\n"},
    {"folded length", 400, HEAD "Content-Length:\r\n 5\r\n\r\nhello" HIDDEN},
    {"no Host in HTTP/1.1", 400, "GET /hello HTTP/1.1\r\n\r\n"},
    {"two Hosts", 400, "GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"},
    {"Host with a path", 400, "GET /hello HTTP/1.1\r\nHost: localhost/x\r\n\r\n"},
    {"Host with a user", 400, "GET /hello HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n"},
    {"Host with two ports", 400, "GET /hello HTTP/1.1\r\nHost: localhost:1:2\r\n\r\n"},
    {"two keys", 400,
     "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n"},
    {"HTTP/0.9", 400, "GET /hello\r\n"},
    {"HTTP/0.9 in the form of HTTP/1.1", 505, "GET /hello HTTP/0.9\r\nHost: localhost\r\n\r\n"},
    {"preface of HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    {"HTTP/9.9", 505, "GET /hello HTTP/9.9\r\nHost: localhost\r\n\r\n"},
    {"lower-case version", 400, "GET /hello http/1.1\r\nHost: localhost\r\n\r\n"},
    {"version with a blank behind", 400, "GET /hello HTTP/1.1 \r\nHost: localhost\r\n\r\n"},
    {"version with three digits", 400, "GET /hello HTTP/1.10\r\nHost: localhost\r\n\r\n"},
    {"hello of TLS", 400, BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")},
    {"two blanks in the request line", 400, "GET  /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"blank in the target", 400, "GET /hel lo HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"tab in the request line", 400, "GET\t/hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"no method", 400, " /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"method with a bracket", 400, "GE[T /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"endless method", 400, "GETGETGETGETGETGETGETGETGETGETGETGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"two empty lines in front", 400, "\r\n\r\nGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"target without a slash", 400, "GET hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"target with a fragment", 400, "GET /hello#x HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"target beyond ASCII", 400, "GET /h\xc3\xa9llo HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"target of another scheme", 400, "GET https://localhost/hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"target without a host", 400, "GET http:///hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"target with a bad host", 400, "GET http://a@b/hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"CONNECT", 400, "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"asterisk with GET", 400, "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"encoded zero in the path", 400, "GET /hel%00lo HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"encoded line end in the path", 400, "GET /hello%0d%0aX:%20y HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"half a percent sign", 400, "GET /hello% HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"percent sign without digits", 400, "GET /hello%4g HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {"unknown expectation", 417, HEAD "Expect: gifts\r\nContent-Length: 5\r\n\r\nhello"},
    {"compressed body", 415, HEAD "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"},
};

/* Exactly one answer, of this status, and then the end: nothing behind it was read as another request. */
static void attempt(const struct http_kit *k, const struct attempt *t)
{
    struct http_answer a = {0};
    int fd = http_client(k);
    http_client_send(fd, t->bytes, t->n ? t->n : strlen(t->bytes));
    http_client_answer(fd, "GET", &a);
    if (a.status != t->status || a.cut || !http_client_ended(fd))
        fail_msg("%s: status %d, wanted %d and the end: %s", t->what, a.status, t->status, str_c(&a.head));
    assert_non_null(strstr(str_c(&a.body), "\"message\":\""));
    http_answer_free(&a);
    close(fd);
}

static void test_refused(void **state)
{
    struct http_kit k = {0};
    http_kit_start(&k);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) attempt(&k, &attempts[i]);
    expect_alive(&k);
    http_kit_end(&k);
}

/* The same, in pieces of one byte: the reader's memory of what came before is the same. */
static void test_refused_bytewise(void **state)
{
    struct http_kit k = {0};
    http_kit_start(&k);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const struct attempt *t = &attempts[i];
        struct http_answer a = {0};
        int fd = http_client(&k);
        for (size_t j = 0; j < (t->n ? t->n : strlen(t->bytes)); j++) http_client_send(fd, t->bytes + j, 1);
        http_client_answer(fd, "GET", &a);
        if (a.status != t->status || !http_client_ended(fd))
            fail_msg("%s in bytes: status %d, wanted %d", t->what, a.status, t->status);
        http_answer_free(&a);
        close(fd);
    }
    http_kit_end(&k);
}

/* Unusual, and right. */
static void test_accepted(void **state)
{
    static const struct attempt right[] = {
        {"an empty line in front", 200, "\r\nGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"a later HTTP/1", 200, "GET /hello HTTP/1.3\r\nHost: localhost\r\n\r\n"},
        {"no blank behind a colon", 200, "GET /hello HTTP/1.1\r\nHost:localhost\r\nX:\r\n\r\n"},
        {"blanks around a value", 200, "GET /hello HTTP/1.1\r\nHost: \t localhost \t \r\n\r\n"},
        {"a value beyond ASCII", 200, "GET /hello HTTP/1.1\r\nHost: localhost\r\nX: \xc3\xa9\xff\r\n\r\n"},
        {"query", 200, "GET /hello?a=/b&c=%zz?d HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"percent-encoded path", 200, "GET /h%65ll%6F HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"absolute target", 200, "GET http://localhost/hello?x HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"absolute target, capitals", 200, "GET HTTP://LocalHost:8000/hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"absolute target that names a foreign host", 403,
         "GET http://evil.example/hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"absolute target without a path", 404, "GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"two dots", 404, "GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"encoded dots", 404, "GET /%2e%2e/%2e%2e/hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"dots behind a path", 404, "GET /x/../hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"two slashes", 404, "GET //hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"lower-case method", 501, "get /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"unknown method", 501, "FETCH /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"TRACE", 405, "TRACE /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"length of zeros", 200, HEAD "Content-Length: 000\r\n\r\n"},
        {"length with leading zeros", 200, HEAD "Content-Length: 00000000000000000000000005\r\n\r\nhello"},
        {"extensions and trailers", 200, CHUNKED "5;a=b;c=\"d\"\r\nhello\r\n00;x\r\nT: \xe9 x\r\nU:\r\n\r\n"},
        {"sixteen digits", 200, CHUNKED "000000000000000A\r\nhellohello\r\n0000000000000000\r\n\r\n"},
        {"coding in capitals", 200, HEAD "TRANSFER-ENCODING: CHUNKED\r\n\r\n0\r\n\r\n"},
    };
    struct http_kit k = {0};
    struct http_answer a = {0};
    http_kit_start(&k);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        int fd = http_client(&k);
        http_client_put(fd, right[i].bytes);
        http_client_answer(fd, "GET", &a);
        if (a.status != right[i].status)
            fail_msg("%s: %d, wanted %d: %s", right[i].what, a.status, right[i].status, str_c(&a.body));
        /* The connection is in step: the next request is answered too. */
        http_client_put(fd, HIDDEN);
        http_client_answer(fd, "GET", &a);
        if (a.status != 200 || strcmp(str_c(&a.body), "hello")) fail_msg("%s: out of step behind it", right[i].what);
        close(fd);
    }
    http_answer_free(&a);
    http_kit_end(&k);
}

/* ---- too much ---- */

static void expect_status(const struct http_kit *k, const struct str *bytes, int status)
{
    struct attempt t = {"too much", status, bytes->p, bytes->n};
    attempt(k, &t);
}

static void add_run(struct str *s, char c, size_t n)
{
    for (size_t i = 0; i < n; i++) str_add(s, &c, 1);
}

static void test_too_long(void **state)
{
    struct http_kit k = {0};
    struct str s = {0};
    http_kit_start(&k);
    str_puts(&s, HEAD "X: ");
    add_run(&s, 'a', 1 << 20);
    str_puts(&s, "\r\n\r\n");
    expect_status(&k, &s, 431);

    str_clear(&s);
    str_puts(&s, HEAD);
    for (int i = 0; i < 1000; i++) str_printf(&s, "X%d: %d\r\n", i, i);
    str_puts(&s, "\r\n");
    expect_status(&k, &s, 431);

    str_clear(&s);
    str_puts(&s, HEAD); /* a name that never ends */
    add_run(&s, 'X', 1 << 20);
    expect_status(&k, &s, 431);

    str_clear(&s);
    str_puts(&s, "GET /");
    add_run(&s, 'a', 10000);
    str_puts(&s, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect_status(&k, &s, 414);

    str_clear(&s);
    str_puts(&s, CHUNKED "5;"); /* an extension that never ends */
    add_run(&s, 'a', 1 << 20);
    expect_status(&k, &s, 400);

    str_clear(&s);
    str_puts(&s, CHUNKED "0\r\n");
    for (int i = 0; i < 10000; i++) str_puts(&s, "Trailer: value\r\n");
    str_puts(&s, "\r\n");
    expect_status(&k, &s, 400);

    str_clear(&s); /* at the limits, but not beyond */
    str_puts(&s, "GET /hello?");
    add_run(&s, 'q', 8000);
    str_puts(&s, " HTTP/1.1\r\nHost: localhost\r\nX: ");
    add_run(&s, 'a', 50000);
    str_puts(&s, "\r\n\r\n");
    int fd = http_client(&k);
    struct http_answer a = {0};
    http_client_send(fd, s.p, s.n);
    http_client_answer(fd, "GET", &a);
    assert_int_equal(a.status, 200);
    http_answer_free(&a);
    close(fd);
    str_free(&s);
    http_kit_end(&k);
}

static void test_long_bodies(void **state)
{
    struct http_kit k = {.options.limits = {.body_bytes = 100000, .bodies_bytes = 150000}};
    struct http_answer a = {0};
    struct str s = {0};
    http_kit_start(&k);
    str_puts(&s, HEAD "Content-Length: 100001\r\n\r\n");
    expect_status(&k, &s, 413);
    str_clear(&s);
    str_puts(&s, CHUNKED);
    for (int i = 0; i < 11; i++) {
        str_puts(&s, "2710\r\n");
        add_run(&s, 'x', 10000);
        str_puts(&s, "\r\n");
    }
    expect_status(&k, &s, 413);

    /* Bodies that are being read share a limit: the second does not fit while the first is half there. */
    int first = http_client(&k);
    str_clear(&s);
    str_puts(&s, HEAD "Content-Length: 100000\r\n\r\n");
    add_run(&s, 'x', 99999);
    http_client_send(first, s.p, s.n);
    /* By the end of these its bytes have been read: every one takes a turn or more of the loop, which reads 16 KiB of
     * them. */
    for (int i = 0; i < 100; i++) http_client_ask(&k, "GET", "/hello", "", NULL, &a);
    http_client_ask(&k, "POST", "/any", "X: 1\r\n", s.p + s.n - 60000, &a);
    assert_int_equal(a.status, 503);
    char value[16];
    assert_non_null(http_answer_field(&a, "Retry-After", value, sizeof value));
    http_client_put(first, "x");
    http_client_answer(first, "POST", &a);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body.n, 100000);
    close(first);
    http_client_ask(&k, "POST", "/any", "", s.p + s.n - 60000, &a);
    assert_int_equal(a.status, 200);
    http_answer_free(&a);
    str_free(&s);
    http_kit_end(&k);
}

/* ---- too slow ---- */

/* One byte now and then keeps a connection only until the limit of the whole, and nobody else waits. */
static void trickle(const char *text, int status)
{
    struct http_kit k = {.options.limits = {.head_ms = 300, .body_ms = 300, .idle_ms = 20000}};
    struct http_answer a = {0};
    http_kit_start(&k);
    int fd = http_client(&k);
    double begun = clock_s();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    http_client_put(fd, text);
    while (!poll(&p, 1, 20)) {
        http_client_send(fd, "a", 1);
        expect_alive(&k);
        assert_true(clock_s() - begun < 20);
    }
    http_client_answer(fd, "GET", &a);
    assert_int_equal(a.status, status);
    assert_true(clock_s() - begun > 0.29);
    assert_true(http_client_ended(fd));
    http_answer_free(&a);
    close(fd);
    http_kit_end(&k);
}

static void test_slow_line(void **state)
{
    trickle("GET /", 408);
}

static void test_slow_field(void **state)
{
    trickle("GET /hello HTTP/1.1\r\nHost: localhost\r\nX: ", 408);
}

static void test_slow_body(void **state)
{
    trickle(HEAD "Content-Length: 60000\r\n\r\n", 408);
}

static void test_slow_chunk(void **state)
{
    trickle(CHUNKED "ffff\r\n", 408);
}

static void test_idle_is_closed(void **state)
{
    struct http_kit k = {.options.limits = {.idle_ms = 200}};
    struct http_answer a = {0};
    http_kit_start(&k);
    int silent = http_client(&k), used = http_client(&k);
    http_client_put(used, HIDDEN);
    http_client_answer(used, "GET", &a);
    assert_int_equal(a.status, 200);
    assert_true(http_client_ended(silent));
    assert_true(http_client_ended(used));
    http_answer_free(&a);
    close(silent);
    close(used);
    http_kit_end(&k);
}

/* ---- too many ---- */

static void test_thousand_idle(void **state)
{
    enum { N = 1000 };
    static int fd[N];
    struct rlimit r;
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = r.rlim_max < 3 * N ? r.rlim_max : 3 * N;
    setrlimit(RLIMIT_NOFILE, &r);
    if (r.rlim_cur < 2 * N + 200) {
        print_message("skipped: %llu open files are too few for 1,000 connections with both ends here\n",
                      (unsigned long long)r.rlim_cur);
        skip();
    }
    struct http_kit k = {.options.limits.connections = N + 50};
    http_kit_start(&k);
    for (int i = 0; i < N; i++) {
        fd[i] = http_client(&k);
        if (i % 2) http_client_put(fd[i], "GET /hel"); /* half of them inside a request */
    }
    double begun = clock_s();
    for (int i = 0; i < 100; i++) expect_alive(&k);
    assert_true(clock_s() - begun < 10); /* 100 connections and requests; a few ms on a quiet machine */
    assert_true(http_counts(k.http).open >= N);
    for (int i = 0; i < N; i++) close(fd[i]);
    http_kit_end(&k);
}

/* Beyond the limit of connections the one that has been idle longest makes room. */
static void test_idle_make_room(void **state)
{
    enum { N = 20 };
    int fd[3 * N];
    struct http_kit k = {.options.limits.connections = N};
    struct http_answer a = {0};
    http_kit_start(&k);
    for (int i = 0; i < 3 * N; i++) {
        fd[i] = http_client(&k);
        expect_alive(&k);
    }
    for (int i = 0; i < 2 * N; i++) assert_true(http_client_ended(fd[i]));
    http_client_put(fd[3 * N - 1], HIDDEN);
    http_client_answer(fd[3 * N - 1], "GET", &a);
    assert_int_equal(a.status, 200);
    http_answer_free(&a);
    for (int i = 0; i < 3 * N; i++) close(fd[i]);
    http_kit_end(&k);
}

/* Where all connections are busy, new ones wait until one ends. One beyond the limit is let in to find that out. */
static void test_busy_make_others_wait(void **state)
{
    enum { N = 4 };
    int fd[N + 1];
    struct http_kit_wait *w[N + 1];
    struct http_kit k = {.options.limits = {.connections = N}};
    struct http_answer a = {0};
    http_kit_start(&k);
    for (int i = 0; i <= N; i++) {
        fd[i] = http_client(&k);
        http_client_put(fd[i], "GET /wait HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        w[i] = http_kit_take(&k);
    }
    int late = http_client(&k);
    http_client_put(late, HIDDEN);
    usleep(250 * 1000);
    assert_int_equal(http_counts(k.http).open, N + 1);
    for (int i = 0; i <= N; i++) {
        http_reply_send(w[i]->reply, 200, NULL, "", 0, NULL);
        http_reply_release(w[i]->reply);
        http_client_answer(fd[i], "GET", &a);
        assert_int_equal(a.status, 200);
        close(fd[i]);
        http_kit_free(w[i]);
    }
    http_client_answer(late, "GET", &a);
    assert_int_equal(a.status, 200);
    http_answer_free(&a);
    close(late);
    http_kit_end(&k);
}

/* ---- resets ---- */

static void test_resets(void **state)
{
    static const char *const stages[] = {"",
                                         "\r\n",
                                         "GET /hel",
                                         HEAD,
                                         HEAD "Content-Length: 5\r\n\r\n",
                                         HEAD "Content-Length: 5\r\n\r\nhel",
                                         CHUNKED,
                                         CHUNKED "5\r\nhel",
                                         CHUNKED "5\r\nhello\r\n0\r\n",
                                         HIDDEN};
    struct http_kit k = {0};
    http_kit_start(&k);
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        for (int gently = 0; gently < 2; gently++) {
            int fd = http_client(&k);
            http_client_put(fd, stages[i]);
            if (gently)
                close(fd);
            else
                http_client_reset(fd);
            expect_alive(&k);
        }
    }
    while (http_counts(k.http).open > 1) expect_alive(&k); /* none of them is kept */
    http_kit_end(&k);
}

/* A client that ends its request too early but still reads is told so. */
static void test_half_a_request(void **state)
{
    static const char *const stages[] = {"GET /hel", HEAD, HEAD "Content-Length: 5\r\n\r\nhel",
                                         CHUNKED "5\r\nhello\r\n"};
    struct http_kit k = {0};
    struct http_answer a = {0};
    http_kit_start(&k);
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        int fd = http_client(&k);
        http_client_put(fd, stages[i]);
        shutdown(fd, SHUT_WR);
        http_client_answer(fd, "GET", &a);
        assert_int_equal(a.status, 400);
        assert_true(http_client_ended(fd));
        close(fd);
    }
    http_answer_free(&a);
    http_kit_end(&k);
}

/* ---- pipelines ---- */

static void test_ten_thousand_pipelined(void **state)
{
    enum { N = 10000 };
    struct http_kit k = {0};
    struct http_answer a = {0};
    struct str all = {0};
    http_kit_start(&k);
    int fd = http_client(&k);
    for (int i = 0; i < N; i++) str_printf(&all, "GET /things/%d HTTP/1.1\r\nHost: localhost\r\n\r\n", i);
    /* Sent by a thread of its own would be kinder; a client that does not read first is what the server has to live
     * with. So as much as fits is sent, then answers are read. */
    size_t sent = 0;
    for (int i = 0; i < N; i++) {
        char number[16];
        while (sent < all.n) {
            ssize_t n = send(fd, all.p + sent, all.n - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n <= 0) break;
            sent += (size_t)n;
        }
        http_client_answer(fd, "GET", &a);
        assert_int_equal(a.status, 200);
        snprintf(number, sizeof number, "%d", i);
        assert_string_equal(str_c(&a.body), number);
        if (i % 1000 == 0) expect_alive(&k); /* others have their turn */
    }
    assert_int_equal(sent, all.n);
    close(fd);
    str_free(&all);
    http_answer_free(&a);
    http_kit_end(&k);
}

/* A client that pipelines and never reads is held back by what it does not read, and then dropped. */
static void test_pipeline_without_reading(void **state)
{
    struct http_kit k = {.options.limits = {.stall_ms = 1500}};
    struct str all = {0};
    http_kit_start(&k);
    int fd = http_client(&k);
    for (int i = 0; i < 20; i++) {
        str_puts(&all, "GET /things/");
        add_run(&all, 'x', 5000);
        str_puts(&all, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    for (double end = clock_s() + 20; !http_counts(k.http).dropped_slow;) {
        ssize_t n = send(fd, all.p, all.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < (ssize_t)all.n && n > 0) http_client_send(fd, all.p + n, all.n - (size_t)n);
        if (n < 0) usleep(1000);
        assert_true(clock_s() < end);
    }
    assert_true(http_counts(k.http).requests < 4000); /* what the system's buffers hold, and ours of 256 KiB */
    expect_alive(&k);
    str_free(&all);
    close(fd);
    http_kit_end(&k);
}

/* The answer to a request that is refused early is not lost because the client is still sending. */
static void test_refused_while_sending(void **state)
{
    struct http_kit k = {0};
    struct http_answer a = {0};
    struct str s = {0};
    http_kit_start(&k);
    str_puts(&s, "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n");
    add_run(&s, 'x', 3000000);
    for (int i = 0; i < 5; i++) {
        int fd = http_client(&k);
        bool reset = !http_client_send(fd, s.p, s.n); /* a reset could have overtaken the answer */
        http_client_answer(fd, "POST", &a);
        assert_int_equal(a.status, 404);
        char byte;
        assert_int_equal(http_client_read(fd, &byte, 1, &reset), 0);
        assert_false(reset);
        close(fd);
    }
    http_answer_free(&a);
    str_free(&s);
    http_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_bytewise),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_long_bodies),
        cmocka_unit_test(test_slow_line),
        cmocka_unit_test(test_slow_field),
        cmocka_unit_test(test_slow_body),
        cmocka_unit_test(test_slow_chunk),
        cmocka_unit_test(test_idle_is_closed),
        cmocka_unit_test(test_thousand_idle),
        cmocka_unit_test(test_idle_make_room),
        cmocka_unit_test(test_busy_make_others_wait),
        cmocka_unit_test(test_resets),
        cmocka_unit_test(test_half_a_request),
        cmocka_unit_test(test_ten_thousand_pipelined),
        cmocka_unit_test(test_pipeline_without_reading),
        cmocka_unit_test(test_refused_while_sending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
