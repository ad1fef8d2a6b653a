/* ds4-server as it is started: its answers over HTTP, its log, how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <signal.h>
#include <unistd.h>
#include "ds4.h"
#include "../support/engine_kit.h"
#include "../support/serve_kit.h"
#include "../support/server_run.h"

#define CHAT "/v1/chat/completions"

/* ---------------------------------------------------------------- starting */

static void test_wrong_use(void **state)
{
    char script[TEMP_PATH], command[300];
    struct server_run s;
    shell_expect(TEST_BUILD "/ds4-server 2>&1", 2, "-m FILE");
    shell_expect(TEST_BUILD "/ds4-server --scripted a -m b 2>&1", 2, "one of");
    shell_expect(TEST_BUILD "/ds4-server --scripted /does/not/exist 2>&1", 2, "/does/not/exist");
    shell_expect(TEST_BUILD "/ds4-server --scripted a --sessions 0 2>&1", 2, "--sessions");
    shell_expect(TEST_BUILD "/ds4-server -m /does/not/exist 2>&1", 1, "/does/not/exist");
    server_run_write(script, "{}\n{\"texts\": 1}\n");
    snprintf(command, sizeof command, TEST_BUILD "/ds4-server --scripted %s 2>&1", script);
    shell_expect(command, 2, "line 2");
    temp_remove(script);
    /* a port that is taken, and a journal that cannot be */
    server_run_script(&s, "{}", "");
    snprintf(command, sizeof command, TEST_BUILD "/ds4-server --scripted %s --port %d 2>&1", s.script, s.port);
    shell_expect(command, 1, "127.0.0.1");
    snprintf(command, sizeof command, TEST_BUILD "/ds4-server --scripted %s --port 0 --trace /does/not/exist 2>&1",
             s.script);
    shell_expect(command, 1, "/does/not/exist");
    server_run_stop(&s);
}

/* ---------------------------------------------------------------- answers */

static void test_every_api(void **state)
{
    static const struct {
        const char *path, *least, *whole, *streamed[2];
    } apis[] = {
        {CHAT,
         "'messages':[{'role':'user','content':'Hi'}]",
         "'content':'yes','reasoning_content':'hm'",
         {"'delta':{'content':'yes'}", "data: [DONE]\n\n"}},
        {"/v1/completions", "'prompt':'Hi'", "'text':'hm</think>yes'", {"'text':'hm</think>yes'", "data: [DONE]\n\n"}},
        {"/v1/responses",
         "'input':'Hi'",
         "'type':'output_text','text':'yes'",
         {"event: response.output_text.delta\n", "event: response.completed\n"}},
        {"/v1/messages?beta=true",
         "'max_tokens':99,'messages':[{'role':'user','content':'Hi'}]",
         "'type':'text','text':'yes'",
         {"'text_delta','text':'yes'", "event: message_stop\n"}}};
    struct server_run s;
    struct http_answer a = {0};
    char type[40];
    server_run_script(&s, serve_json("{'text':'hm</think>yes','cuts':'whole','times':0}"), "");
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        server_post(&s, apis[i].path, serve_json("{%s}", apis[i].least), &a);
        server_said(&a, 200, serve_json("%s", apis[i].whole));
        server_post(&s, apis[i].path, serve_json("{%s,'stream':true}", apis[i].least), &a);
        for (int k = 0; k < 2; k++) server_said(&a, 200, serve_json("%s", apis[i].streamed[k]));
        assert_string_equal(http_answer_field(&a, "Content-Type", type, sizeof type), "text/event-stream");
        server_post(&s, apis[i].path, "{", &a);
        server_said(&a, 400, "invalid JSON request");
    }
    http_answer_free(&a);
    server_run_stop(&s);
}

/* Counting is not limited by the context, and counts what an answer will say it used. */
static void test_count_tokens(void **state)
{
    struct server_run s;
    struct http_answer a = {0};
    char want[60];
    server_run_script(&s, serve_json("{'text':'x','times':0}"), "--ctx 512");
    server_post(&s, "/v1/messages/count_tokens", serve_json("{'messages':[{'role':'user','content':'Hello there.'}]}"),
                &a);
    server_said(&a, 200, "{\"input_tokens\":");
    const int n = atoi(str_c(&a.body) + strlen("{\"input_tokens\":"));
    server_post(&s, "/v1/messages",
                serve_json("{'max_tokens':9,'messages':[{'role':'user','content':'Hello there.'}]}"), &a);
    snprintf(want, sizeof want, "\"input_tokens\":%d,", n);
    server_said(&a, 200, want);
    struct str big = {0};
    str_printf(&big, "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"%04000d\"}]}", 0);
    server_post(&s, "/v1/messages/count_tokens", big.p, &a);
    server_said(&a, 200, "{\"input_tokens\":1004}");
    server_post(&s, "/v1/messages", big.p, &a);
    server_said(&a, 400, "Prompt has 1004 tokens, but the configured context size is 512 tokens");
    str_free(&big);
    http_answer_free(&a);
    server_run_stop(&s);
}

static void test_log_and_metrics(void **state)
{
    struct server_run s;
    struct http_answer a = {0};
    char line[400];
    server_run_script(&s, serve_json("{'text':'yes','times':0}"), "--sessions 3");
    for (int i = 0; i < 2; i++) server_post(&s, CHAT, serve_user("Hi", ""), &a);
    assert_true(
        shell_await_line(&s.child, "ds4-server: request: POST /v1/chat/completions 127.0.0.1:", line, sizeof line));
    assert_non_null(strstr(line, " #1: queued "));
    assert_non_null(strstr(line, "prompt 5 tokens, 0 cached (no history to go on from), read at "));
    assert_non_null(strstr(line, "answer 1 tokens (0 reasoning) at "));
    assert_string_equal(line + strlen(line) - 6, ", stop");
    assert_true(shell_await(&s.child, "5 cached (the prompt is a part of a history of 6 tokens)"));
    server_get(&s, "/metrics", &a);
    server_said(&a, 200, "\nds4_requests_total 2\n");
    server_said(&a, 200, "\nds4_answers_total{finish=\"stop\"} 2\n");
    server_said(&a, 200, "\nds4_prompt_tokens_total 10\n");
    server_said(&a, 200, "\nds4_cached_tokens_total 5\n");
    server_said(&a, 200, "\nds4_completion_tokens_total 2\n");
    server_said(&a, 200, "\nds4_sessions 3\n");
    server_get(&s, "/props", &a);
    server_said(&a, 200, "\"sessions\":3");
    server_said(&a, 200, "{\"version\":\"" DS4_VERSION "\",");
    server_run_stop(&s);
    server_run_script(&s, serve_json("{'text':'yes','times':0}"), "--quiet");
    server_post(&s, CHAT, serve_user("Hi", ""), &a);
    kill(s.child.pid, SIGTERM);
    assert_int_equal(shell_end(&s.child), 0);
    assert_null(strstr(str_c(&s.child.said), "request:"));
    str_free(&s.child.said);
    temp_remove(s.script);
    http_answer_free(&a);
}

/* A client that leaves gives its session to the next one. */
static void test_client_gone(void **state)
{
    struct server_run s;
    struct http_answer a = {0};
    server_run_script(
        &s,
        serve_json("{'when':'[endless]','text':'again ','repeat':1000000,'token_ms':1,'times':0}\n{'text':'quick'}"),
        "--ctx 1000000 --tokens 900000");
    for (int reset = 0; reset < 2; reset++) {
        int fd = server_send(&s, CHAT, serve_user("[endless]", ",'stream':true"));
        char piece[2000];
        for (size_t n = 0; n < 1000;) n += http_client_read(fd, piece, sizeof piece, NULL);
        if (reset)
            http_client_reset(fd);
        else
            close(fd);
        server_post(&s, CHAT, serve_user("Hi", ""), &a);
        server_said(&a, 200, "\"content\":\"quick\"");
    }
    server_get(&s, "/metrics", &a);
    server_said(&a, 200, "\nds4_cancelled_total 2\n");
    http_answer_free(&a);
    server_run_stop(&s);
}

/* Reasoning that is not told is silence for the client: it gets a sign of life. */
static void test_silent_reasoning(void **state)
{
    struct server_run s;
    struct http_answer a = {0};
    server_run_script(&s, serve_json("{'text':'hmhm</think>yes','cuts':[2,4,12,15],'token_ms':1500,'times':0}"), "");
    server_post(&s, "/v1/responses", "{\"input\":\"Hi\",\"stream\":true}", &a);
    server_said(&a, 200, "event: response.completed");
    int n = 0;
    for (const char *p = str_c(&a.body); (p = strstr(p, "event: response.in_progress")); p++) n++;
    assert_in_range(n, 2, 3); /* at the start, and within 6 seconds of nothing */
    http_answer_free(&a);
    server_run_stop(&s);
}

/* ---------------------------------------------------------------- the end */

static void test_failure(void **state)
{
    struct server_run s;
    struct http_answer a = {0};
    char value[20];
    server_run_script(&s, serve_json("{'text':'abcd','error':'device lost','error_at':1,'times':0}"), "");
    server_post(&s, CHAT, serve_user("Hi", ""), &a);
    server_said(&a, 503, "device lost");
    assert_string_equal(http_answer_field(&a, "Retry-After", value, sizeof value), "60");
    /* from now on at once, with its status, also where a stream is asked for */
    server_post(&s, CHAT, serve_user("Hi", ",'stream':true"), &a);
    server_said(&a, 503, "the model has failed: device lost");
    assert_string_equal(http_answer_field(&a, "Retry-After", value, sizeof value), "60");
    server_post(&s, "/v1/messages", serve_json("{'max_tokens':9,'messages':[{'role':'user','content':'Hi'}]}"), &a);
    server_said(&a, 503, "overloaded_error");
    server_get(&s, "/health", &a);
    server_said(&a, 503, "device lost");
    http_answer_free(&a);
    server_run_ended(&s, 3);
}

static void test_signals(void **state)
{
    static const char lines[] = "{'text':'steady ','cuts':7,'repeat':%d,'token_ms':20,'times':0}";
    struct server_run s;
    struct http_answer a = {0};
    char piece[400];
    char body[200];
    snprintf(body, sizeof body, "%s", serve_user("Hi", ",'stream':true"));
    /* one signal: what runs is finished */
    server_run_script(&s, serve_json(lines, 50), "");
    int idle = http_client_at(s.port);
    http_client_put(idle, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    http_client_answer(idle, "GET", &a);
    assert_int_equal(a.status, 200);
    int fd = server_send(&s, CHAT, body);
    assert_true(http_client_read(fd, piece, 300, NULL) > 0);
    kill(s.child.pid, SIGTERM);
    http_client_ended(idle); /* an idle connection is closed */
    struct str rest = {0};
    for (size_t n; (n = http_client_read(fd, piece, sizeof piece, NULL));) str_add(&rest, piece, n);
    assert_non_null(strstr(str_c(&rest), "\"finish_reason\":\"stop\""));
    assert_non_null(strstr(str_c(&rest), "data: [DONE]\n\n"));
    close(idle);
    close(fd);
    server_run_ended(&s, 0);
    /* two: the program ends */
    server_run_script(&s, serve_json(lines, 100000), "");
    fd = server_send(&s, CHAT, body);
    assert_true(http_client_read(fd, piece, 300, NULL) > 0);
    kill(s.child.pid, SIGINT);
    while (http_client_read(fd, piece, 1, NULL) && piece[0] != 'y') { /* it goes on */
    }
    kill(s.child.pid, SIGINT);
    server_run_ended(&s, 130);
    close(fd);
    str_free(&rest);
    http_answer_free(&a);
}

/* ---------------------------------------------------------------- a real model */

static void test_model(void **state)
{
    struct server_run s = {0};
    struct http_answer a = {0};
    char what[TEMP_PATH + 10], part[40];
    snprintf(what, sizeof what, "-m %s", kit_path(KIT_Q8));
    server_run_start(&s, what, "--ctx 1024 --sessions 2 --threads 2");
    server_post(&s, CHAT, serve_user("Hello, who are you and what can you do?", ",'max_tokens':8,'temperature':0"), &a);
    server_said(&a, 200, "\"cached_tokens\":0}");
    const char *at = strstr(str_c(&a.body), "\"prompt_tokens\":");
    assert_non_null(at);
    const int n = atoi(at + strlen("\"prompt_tokens\":"));
    server_post(&s, CHAT, serve_user("Hello, who are you and what can you do?", ",'max_tokens':8,'temperature':0"), &a);
    snprintf(part, sizeof part, "\"cached_tokens\":%d}", n);
    server_said(&a, 200, part);
    server_get(&s, "/props", &a);
    server_said(&a, 200, "\"family\":\"deepseek4\"");
    server_said(&a, 200, "\"backend\":\"cpu\"");
    server_said(&a, 200, "\"context_length\":1024");
    http_answer_free(&a);
    server_run_stop(&s);
    kit_clean();
}

/* ---------------------------------------------------------------- journal and replay */

static void test_replay(void **state)
{
    struct server_run s;
    struct http_answer a = {0};
    struct str said = {0};
    char journal[TEMP_PATH], options[TEMP_PATH + 60], command[400];
    if (shell_run("python3 --version", &said)) skip();
    temp_file(journal);
    snprintf(options, sizeof options, "--api-key sk-of-the-test --trace %s", journal);
    const char *lines = serve_json("{'when':'fail','text':'a','error':'lost'}\n{'text':'plain','times':0}");
    server_run_script(&s, lines, options);
#define KEY "Authorization: Bearer sk-of-the-test\r\n"
    http_client_ask_at(s.port, "POST", CHAT, SERVER_JSON KEY, serve_user("Hi", ""), &a);
    server_said(&a, 200, "plain");
    const size_t bytes = a.body.n;
    http_client_ask_at(s.port, "POST", "/v1/messages?beta=true", SERVER_JSON "x-api-key: sk-of-the-test\r\n",
                       serve_json("{'max_tokens':5,'messages':[{'role':'user','content':'Hi'}],'stream':true}"), &a);
    server_said(&a, 200, "message_stop");
    http_client_ask_at(s.port, "POST", "/v1/responses", SERVER_JSON KEY, "{\"input\":\"\xff\"}", &a);
    server_said(&a, 400, "invalid JSON");
    http_client_ask_at(s.port, "POST", CHAT, SERVER_JSON, serve_user("Hi", ""), &a); /* no key: not in the journal */
    assert_int_equal(a.status, 401);
    server_run_stop(&s);
    snprintf(command, sizeof command, "cat %s", journal);
    assert_int_equal(shell_run(command, &said), 0);
    assert_null(strstr(str_c(&said), "sk-of-the-test"));
    int n = 0;
    for (const char *p = str_c(&said); *p; p++) n += *p == '\n';
    assert_int_equal(n, 3);
    /* again, with another server */
    server_run_script(&s, lines, "--api-key another");
    snprintf(command, sizeof command, "tools/replay %s --base-url http://127.0.0.1:%d --api-key another", journal,
             s.port);
    assert_int_equal(shell_run(command, &said), 0);
    char want[80];
    snprintf(want, sizeof want, "1 POST " CHAT " 200 ");
    assert_non_null(strstr(str_c(&said), want));
    snprintf(want, sizeof want, ", %zu bytes (then 200, ", bytes);
    assert_non_null(strstr(str_c(&said), want));
    assert_non_null(strstr(str_c(&said), "2 POST /v1/messages 200 "));
    assert_non_null(strstr(str_c(&said), "3 POST /v1/responses 400 "));
    snprintf(command, sizeof command,
             "tools/replay %s --base-url http://127.0.0.1:%d --api-key another --speed 100 --only 2", journal, s.port);
    assert_int_equal(shell_run(command, &said), 0);
    assert_memory_equal(str_c(&said), "2 POST /v1/messages 200 ", 24);
    /* without the key it is another answer than then; a damaged line is told of */
    snprintf(command, sizeof command,
             "(cat %s; echo '{\"time\":') > %s.2; tools/replay %s.2 --base-url http://127.0.0.1:%d 2>&1; r=$?; rm "
             "%s.2; exit $r",
             journal, journal, journal, s.port, journal);
    assert_int_equal(shell_run(command, &said), 1);
    assert_non_null(strstr(str_c(&said), "line 4 is damaged"));
    assert_non_null(strstr(str_c(&said), "1 POST " CHAT " 401 "));
    server_run_stop(&s);
    /* nobody there, and wrong use */
    snprintf(command, sizeof command, "tools/replay %s --base-url http://127.0.0.1:%d 2>&1", journal, s.port);
    shell_expect(command, 1, "ConnectionRefusedError");
    snprintf(command, sizeof command, "tools/replay %s --only 9 2>&1", journal);
    shell_expect(command, 2, "no request in line 9");
    shell_expect("tools/replay /does/not/exist 2>&1", 2, "/does/not/exist");
    str_free(&said);
    http_answer_free(&a);
    temp_remove(journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_use),    cmocka_unit_test(test_every_api),
        cmocka_unit_test(test_count_tokens), cmocka_unit_test(test_log_and_metrics),
        cmocka_unit_test(test_client_gone),  cmocka_unit_test(test_silent_reasoning),
        cmocka_unit_test(test_failure),      cmocka_unit_test(test_signals),
        cmocka_unit_test(test_model),        cmocka_unit_test(test_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
