/* What no client should do to ds4-server, beyond what test_http_hostile does to its HTTP alone: requests that are valid
 * HTTP and nothing else, clients that go at every stage of an answer, too much at once. Others are served meanwhile,
 * and the server ends well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "../support/api_talk.h"
#include "../support/serve_kit.h"
#include "../support/server_run.h"

static const char script[] = "{'when':'[endless]','text':'again ','repeat':1000000,'token_ms':2,'times':0}\n"
                             "{'when':'[slow to read]','text':'read','layer_ms':150,'times':0}\n"
                             "{'when':'[slow to speak]','text':'said','token_ms':400,'cuts':'whole','times':0}\n"
                             "{'when':'[long]','text':'abcdefghij','cuts':'bytes','repeat':10000,'times':0}\n"
                             "{'text':'quick','times':0}";

static void start(struct server_run *s, const char *options)
{
    *s = (struct server_run){0};
    server_run_script(s, serve_json("%s", script), options);
}

static void expect_alive(const struct server_run *s)
{
    struct http_answer a = {0};
    server_post(s, api_paths[API_CHAT], serve_user("Hi", ""), &a);
    server_said(&a, 200, "\"content\":\"quick\"");
    http_answer_free(&a);
}

/* ---------------------------------------------------------------- bodies */

static void repeat(struct str *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) str_puts(s, text);
}

/* The least request of an API with one more member, whose value is a text repeated between two others. */
static void with_member(enum api api, const char *before, const char *again, size_t n, const char *after,
                        struct str *out)
{
    static const char *const least[API_COUNT] = {"\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]",
                                                 "\"prompt\":\"Hi\"", "\"input\":\"Hi\"",
                                                 "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"};
    str_clear(out);
    str_printf(out, "{\"max_%stokens\":9,%s,\"x\":%s", api == API_RESPONSES ? "output_" : "", least[api], before);
    repeat(out, again, n);
    str_printf(out, "%s}", after);
}

static void test_bodies(void **state)
{
    static const struct {
        const char *before, *again;
        size_t n;
        const char *after;
        int status;
    } bodies[] = {
        {"", "[", 100000, "", 400},           {"", "{\"x\":", 100000, "1", 400},
        {"", "[", 100000, "]", 400},          {"NaN", "", 0, "", 400},
        {"-Infinity", "", 0, "", 400},        {"1e999", "", 0, "", 400},
        {"\"\xed\xa0\x80\"", "", 0, "", 400}, {"\"\xc0\xaf\"", "", 0, "", 400},
        {"\"\\ud83d\"", "", 0, "", 200},      {"\"\\ude00\\ud83d\"", "", 0, "", 200},
        {"1", ",\"x\":1", 10000, "", 200},    {"", "9", 300, "", 200},
        {"[0", ",0", 2000000, "]", 400},      {"\"", ",", 2000000, "\"", 200},
    };
    struct server_run s;
    struct http_answer a = {0};
    struct str body = {0};
    start(&s, "--quiet");
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (enum api api = 0; api < API_COUNT; api++) {
            with_member(api, bodies[i].before, bodies[i].again, bodies[i].n, bodies[i].after, &body);
            server_post(&s, api_paths[api], body.p, &a);
            if (a.status != bodies[i].status)
                fail_msg("%s with %.20s%.20s...: %d, %.300s", api_paths[api], bodies[i].before, bodies[i].again,
                         a.status, str_c(&a.body));
            server_said(&a, bodies[i].status, bodies[i].status == 400 ? "invalid JSON request" : "usage");
        }
        expect_alive(&s);
    }
    http_answer_free(&a);
    str_free(&body);
    server_run_stop(&s);
}

/* The time that a list takes grows with its length and no faster; sanitizers' allocators never extend an array where it
 * is, so with them it would be minutes. */
static void test_many_tools(void **state)
{
    struct server_run s;
    struct http_answer a = {0};
    struct str body = {0};
    start(&s, "--quiet");
    str_puts(&body, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"tools\":[");
    for (int i = 0; i < 50000; i++)
        str_printf(&body, "%s{\"type\":\"function\",\"function\":{\"name\":\"t%d\"}}", i ? "," : "", i);
    str_puts(&body, "]}");
    server_post(&s, api_paths[API_CHAT], body.p, &a);
    server_said(&a, 400, "context_length_exceeded");
    expect_alive(&s);
    str_free(&body);
    http_answer_free(&a);
    server_run_stop(&s);
}

/* ---------------------------------------------------------------- names */

/* A page of another name that points here, and pages of other origins. */
static void test_foreign_pages(void **state)
{
    static const char *const foreign[] = {"Host: evil.example\r\n", "Host: localhost.evil.example:80\r\n",
                                          "Origin: http://evil.example\r\n", "Origin: null\r\n"};
    struct server_run s;
    struct http_answer a = {0};
    char fields[200];
    start(&s, "--quiet");
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        snprintf(fields, sizeof fields, "%s" SERVER_JSON, foreign[i]);
        for (enum api api = 0; api < API_COUNT; api++) {
            http_client_ask_at(s.port, "POST", api_paths[api], fields, serve_user("Hi", ""), &a);
            assert_int_equal(a.status, 403);
        }
        http_client_ask_at(s.port, "GET", "/", foreign[i], NULL, &a);
        assert_int_equal(a.status, 403);
    }
    expect_alive(&s);
    http_answer_free(&a);
    server_run_stop(&s);
}

/* ---------------------------------------------------------------- clients that go */

enum ending { GO, RESET, HALF_CLOSE, ENDINGS };

/* Goes so many bytes into the answer, or waits for all of it with its own side closed. */
static void end_after(int fd, size_t bytes, enum ending how, const char *last)
{
    char piece[512];
    struct str all = {0};
    while (bytes) {
        const size_t k = http_client_read(fd, piece, bytes < sizeof piece ? bytes : sizeof piece, NULL);
        assert_true(k > 0);
        str_add(&all, piece, k);
        bytes -= k;
    }
    if (how == RESET) {
        http_client_reset(fd);
    } else {
        if (how == HALF_CLOSE) {
            shutdown(fd, SHUT_WR);
            for (size_t k; (k = http_client_read(fd, piece, sizeof piece, NULL));) str_add(&all, piece, k);
            if (!strstr(str_c(&all), last)) fail_msg("no %s in %s", last, str_c(&all));
        }
        close(fd);
    }
    str_free(&all);
}

static void test_gone_at_each_stage(void **state)
{
    static const struct {
        const char *text, *last;
        size_t bytes;
        bool stream, ends;
    } stages[] = {
        {"[slow to read] waits in the queue, then is read", "read", 0, false, true},
        {"[slow to read] a stream", "data: [DONE]", 40, true, true},
        {"[slow to speak] says nothing yet", "said", 0, false, true},
        {"[slow to speak] a stream", "data: [DONE]", 100, true, true},
        {"[endless]", "", 1, true, false},
        {"[endless] some of it", "", 3000, true, false},
    };
    struct server_run s;
    start(&s, "--quiet --ctx 100000 --tokens 90000");
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        for (enum ending how = 0; how < ENDINGS; how++) {
            if (how == HALF_CLOSE && !stages[i].ends) continue;
            const char *body = serve_user(stages[i].text, stages[i].stream ? ",'stream':true" : "");
            end_after(server_send(&s, api_paths[API_CHAT], body), stages[i].bytes, how, stages[i].last);
            expect_alive(&s);
        }
    }
    server_run_stop(&s);
}

/* Many go at once; the next client does not wait for their answers. */
static void test_a_crowd_goes(void **state)
{
    enum { CROWD = 100 };
    struct server_run s;
    int fd[CROWD];
    start(&s, "--quiet --sessions 2 --ctx 100000 --tokens 90000");
    for (enum ending how = GO; how <= RESET; how++) {
        for (int i = 0; i < CROWD; i++)
            fd[i] = server_send(&s, api_paths[i % 2 ? API_RESPONSES : API_CHAT],
                                i % 2 ? serve_json("{'input':'[endless]','stream':true}")
                                      : serve_user("[endless]", i % 4 ? ",'stream':true" : ""));
        for (int i = 0; i < CROWD; i++) end_after(fd[i], 0, how, "");
        expect_alive(&s);
    }
    server_run_stop(&s);
}

/* ---------------------------------------------------------------- too much at once */

/* Large bodies whose requests wait are counted; small requests are served beside them, and large ones again later. */
static void test_large_bodies_wait(void **state)
{
    enum { LARGE = 5 };
    struct server_run s;
    struct http_answer a = {0};
    struct str body = {0};
    char value[20];
    int busy, fd[LARGE];
    start(&s, "--quiet --ctx 100000 --tokens 90000");
    busy = server_send(&s, api_paths[API_CHAT], serve_user("[endless]", ",'stream':true"));
    str_puts(&body, serve_user("Hi", ",'x':'"));
    body.n -= 1; /* without the last brace */
    char *fill = malloc(60 << 20);
    assert_non_null(fill);
    memset(fill, 'a', 60 << 20);
    str_add(&body, fill, 60 << 20);
    str_puts(&body, "\"}");
    free(fill);
    for (int i = 0; i < LARGE - 1; i++) {
        fd[i] = server_send(&s, api_paths[API_CHAT], body.p);
        server_post(&s, "/v1/messages/count_tokens", serve_user("Hi", ""), &a);
        server_said(&a, 200, "input_tokens");
    }
    for (double end = clock_s() + 60;;) { /* until those before have arrived */
        server_post(&s, api_paths[API_MESSAGES], body.p, &a);
        if (a.status == 503 && strstr(str_c(&a.body), "too many large requests")) break;
        assert_true(clock_s() < end);
    }
    assert_string_equal(http_answer_field(&a, "Retry-After", value, sizeof value), "5");
    http_client_reset(busy);
    for (int i = 0; i < LARGE - 1; i++) {
        http_client_answer(fd[i], "POST", &a);
        server_said(&a, 200, "quick");
        close(fd[i]);
    }
    server_post(&s, api_paths[API_CHAT], body.p, &a);
    server_said(&a, 200, "quick");
    str_free(&body);
    http_answer_free(&a);
    server_run_stop(&s);
}

/* ---------------------------------------------------------------- too slow */

/* A byte every five seconds, with the limits that the program has: the head has ten. */
static void test_a_byte_every_five_seconds(void **state)
{
    static const char *const begun[] = {"GET /he", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-"};
    enum { N = sizeof begun / sizeof *begun };
    struct server_run s;
    struct http_answer a = {0};
    struct pollfd p[N];
    start(&s, "--quiet");
    for (int i = 0; i < N; i++) {
        p[i] = (struct pollfd){.fd = http_client_at(s.port), .events = POLLIN};
        http_client_put(p[i].fd, begun[i]);
    }
    for (int second = 1; second <= 30; second++) {
        if (poll(p, N, 0) == N) break;
        expect_alive(&s);
        sleep(1);
        for (int i = 0; i < N && second % 5 == 0; i++) http_client_send(p[i].fd, "a", 1);
    }
    for (int i = 0; i < N; i++) {
        http_client_answer(p[i].fd, "GET", &a);
        assert_int_equal(a.status, 408);
        close(p[i].fd);
    }
    expect_alive(&s);
    http_answer_free(&a);
    server_run_stop(&s);
}

/* With any argument: what takes long, too. */
/* A client that reads late gets all of an answer whose 100,000 events are more than the server keeps for it (about 23
 * MB): the answer waits, and others are answered meanwhile. */
static void test_reads_late(void **state)
{
    struct server_run s;
    struct http_answer a = {0};
    struct str head = {0};
    start(&s, "--quiet --ctx 200000 --sessions 2");
    const char *body = serve_user("[long]", ",'stream':true");
    str_printf(&head,
               "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" SERVER_JSON "Content-Length: %zu\r\n\r\n",
               strlen(body));
    const int fd = http_client_at(s.port);
    http_client_put(fd, head.p);
    http_client_put(fd, body);
    for (int i = 0; i < 10; i++) {
        usleep(100 * 1000);
        expect_alive(&s);
    }
    http_client_answer(fd, "POST", &a);
    assert_int_equal(a.status, 200);
    assert_false(a.cut);
    size_t n = 0;
    for (const char *p = str_c(&a.body); (p = strstr(p, "\"content\":\"")) != NULL; p++)
        n += p[11] >= 'a' && p[11] <= 'j';
    assert_int_equal(n, 100000);
    assert_non_null(strstr(str_c(&a.body) + a.body.n - 20, "data: [DONE]"));
    close(fd);
    http_answer_free(&a);
    str_free(&head);
    server_run_stop(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),        cmocka_unit_test(test_many_tools),
        cmocka_unit_test(test_foreign_pages), cmocka_unit_test(test_gone_at_each_stage),
        cmocka_unit_test(test_a_crowd_goes),  cmocka_unit_test(test_reads_late),
    };
    const struct CMUnitTest slow[] = {cmocka_unit_test(test_large_bodies_wait),
                                      cmocka_unit_test(test_a_byte_every_five_seconds)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed || argc < 2 ? failed : cmocka_run_group_tests(slow, NULL, NULL);
}
