/* Eight clients at once, over all APIs, streamed and whole, with tool calls, a common beginning, and some that leave in
 * the middle: every answer is the one that a client alone gets, nobody waits for ever, and the server ends well (with
 * sanitizers: without a report, and nothing is leaked). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/clock.h"
#include "../support/demo_model.h"
#include "../support/engine_kit.h"
#include "../support/serve_kit.h"
#include "../support/server_run.h"
#include "../support/api_talk.h"

enum { VISITORS = 8, TALKS = 8, TURNS = 3, PATIENCE_S = 600, QUIET_MS = 200, MAX_TOKENS = 160 };

static double seconds = 1; /* of each of both models */

/* A question that the model answers with a call, what the call gives, and another question. */
struct subject {
    const char *question, *result, *next;
};

struct material {
    const char *system, *tools;
    int max_tokens;
    struct subject subject[TALKS];
};

/* What a client alone is told, by subject. Completions have a first question only. */
struct truth {
    struct str line[TALKS][TURNS], completion[TALKS];
};

struct visitor {
    const struct material *material;
    const struct truth *truth; /* NULL: whatever comes is right */
    int port, id, fd;          /* fd -1: not connected */
    double until;
    uint64_t rng;
    int answers, left, calls;
    double slowest; /* s */
    struct str body, line, wrong;
    struct http_answer http;
    struct api_answer said;
};

static void visitor_free(struct visitor *c)
{
    if (c->fd >= 0) close(c->fd);
    http_answer_free(&c->http);
    api_answer_free(&c->said);
    str_free(&c->body);
    str_free(&c->line);
    str_free(&c->wrong);
}

/* ---------------------------------------------------------------- one request */

/* Sends it on a connection of its own, or on the one of the request before. */
static void send_request(struct visitor *c, const char *path, const char *body)
{
    const struct timeval patience = {PATIENCE_S, 0};
    if (c->fd < 0) {
        c->fd = http_client_at(c->port);
        setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    http_client_request(c->fd, c->port, "POST", path,
                        kit_below(&c->rng, 2) ? SERVER_JSON "Connection: close\r\n" : SERVER_JSON, body);
}

static void read_answer(struct visitor *c)
{
    char value[40];
    http_client_answer(c->fd, "POST", &c->http);
    const bool last =
        c->http.cut || (http_answer_field(&c->http, "Connection", value, sizeof value) && !strcmp(value, "close"));
    if (!last) return;
    close(c->fd);
    c->fd = -1;
}

static void ask(struct visitor *c, const struct talk *t, enum api api)
{
    const bool stream = kit_below(&c->rng, 2);
    const double begun = clock_s();
    talk_request(t, api, stream, c->material->max_tokens, &c->body);
    send_request(c, api_paths[api], c->body.p);
    read_answer(c);
    if (clock_s() - begun > c->slowest) c->slowest = clock_s() - begun;
    if (c->http.status != 200 || c->http.cut) {
        str_printf(&c->wrong, "%s: status %d%s: %s\n", api_paths[api], c->http.status, c->http.cut ? ", cut" : "",
                   str_c(&c->http.body));
        return;
    }
    api_answer_read(api, stream, c->http.body.p, c->http.body.n, &c->said);
    if (c->said.wrong.n) str_printf(&c->wrong, "%s: %s:\n%s\n", api_paths[api], c->said.wrong.p, str_c(&c->http.body));
    api_answer_line(&c->said, &c->line);
    str_printf(&c->line, ", %d tokens", c->said.usage.completion);
    c->answers++;
    c->calls += c->said.n_calls;
}

/* Asks, reads a little, and goes. */
static void leave(struct visitor *c, const struct talk *t, enum api api)
{
    char bytes[4000];
    const int most = kit_below(&c->rng, 3) ? kit_below(&c->rng, (int)sizeof bytes) : 0;
    talk_request(t, api, kit_below(&c->rng, 4) > 0, c->material->max_tokens, &c->body);
    send_request(c, api_paths[api], c->body.p);
    struct pollfd more = {.fd = c->fd, .events = POLLIN}; /* an answer may be shorter, and the connection stays open */
    for (int n = 0, k = 1; n < most && k > 0 && poll(&more, 1, QUIET_MS) > 0; n += k)
        k = (int)http_client_read(c->fd, bytes, (size_t)(most - n), NULL);
    if (kit_below(&c->rng, 2))
        http_client_reset(c->fd);
    else
        close(c->fd);
    c->fd = -1;
    c->left++;
}

/* ---------------------------------------------------------------- a conversation */

static void compare(struct visitor *c, const struct str *want)
{
    if (strcmp(str_c(want), str_c(&c->line)))
        str_printf(&c->wrong, "told      %s\nand alone %s\n", str_c(&c->line), str_c(want));
}

/* The next step of a conversation; false: there is none. */
static bool next_step(struct talk *t, const struct subject *s)
{
    struct talk_step *step = &t->step[t->n_steps];
    if (t->n_steps == 0)
        step->question = s->question;
    else if (step[-1].answer.n_calls && t->n_steps < TURNS)
        step->result = s->result;
    else if (step[-1].answer.n_calls || step[-1].question == s->next)
        return false;
    else
        step->question = s->next;
    t->n_steps++;
    return true;
}

/* lines: NULL, or where what is told is written down. */
static void converse(struct visitor *c, int subject, enum api api, struct str *lines)
{
    struct talk t = {.system = c->material->system, .tools = c->material->tools};
    for (int turn = 0; turn < TURNS && !c->wrong.n && next_step(&t, &c->material->subject[subject]); turn++) {
        if (!lines && !kit_below(&c->rng, 12)) {
            leave(c, &t, api);
            break;
        }
        ask(c, &t, api);
        if (lines) str_puts(&lines[turn], str_c(&c->line));
        if (!lines && !c->wrong.n) compare(c, &c->truth->line[subject][turn]);
        t.step[turn].answer = c->said;
        c->said = (struct api_answer){0};
    }
    talk_free(&t);
}

static void complete(struct visitor *c, int subject, struct str *line)
{
    struct talk t = {.step = {{.question = c->material->subject[subject].question}}, .n_steps = 1};
    ask(c, &t, API_COMPLETIONS);
    if (line) str_puts(line, str_c(&c->line));
    if (!line && !c->wrong.n) compare(c, &c->truth->completion[subject]);
}

static void *visitor_run(void *arg)
{
    struct visitor *c = arg;
    for (int i = c->id; clock_s() < c->until && !c->wrong.n; i = kit_below(&c->rng, TALKS)) {
        const enum api api = (enum api)((unsigned)c->answers + (unsigned)c->id) % API_COUNT;
        if (api == API_COMPLETIONS)
            complete(c, i, NULL);
        else
            converse(c, i, api, NULL);
        if (c->wrong.n) str_printf(&c->wrong, "(subject %d over %s)", i, api_paths[api]);
    }
    return NULL;
}

/* ---------------------------------------------------------------- alone, then together */

/* The same over all APIs. */
static void alone(const struct material *m, int port, struct truth *truth)
{
    struct visitor c = {.material = m, .port = port, .fd = -1, .rng = 77};
    for (int i = 0; i < TALKS; i++) {
        converse(&c, i, API_CHAT, truth->line[i]);
        complete(&c, i, &truth->completion[i]);
        if (c.wrong.n) fail_msg("%s", c.wrong.p);
    }
    assert_true(c.calls >= TALKS / 2);
    visitor_free(&c);
}

static void together(const struct material *m, int port, const struct truth *truth)
{
    struct visitor visitor[VISITORS];
    pthread_t thread[VISITORS];
    int answers = 0, left = 0, calls = 0;
    double slowest = 0;
    for (int i = 0; i < VISITORS; i++) {
        visitor[i] = (struct visitor){.material = m,
                                      .truth = truth,
                                      .port = port,
                                      .id = i,
                                      .fd = -1,
                                      .until = clock_s() + seconds,
                                      .rng = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1)};
        assert_int_equal(pthread_create(&thread[i], NULL, visitor_run, &visitor[i]), 0);
    }
    for (int i = 0; i < VISITORS; i++) {
        pthread_join(thread[i], NULL);
        answers += visitor[i].answers;
        left += visitor[i].left;
        calls += visitor[i].calls;
        if (visitor[i].slowest > slowest) slowest = visitor[i].slowest;
    }
    print_message("%d answers, %d calls, %d clients that left, in %g s; the slowest answer took %.2f s\n", answers,
                  calls, left, seconds, slowest);
    for (int i = 0; i < VISITORS; i++)
        if (visitor[i].wrong.n) fail_msg("visitor %d: %s", i, visitor[i].wrong.p);
    for (int i = 0; i < VISITORS; i++) visitor_free(&visitor[i]);
    assert_true(answers >= VISITORS);
}

/* Whoever left has been let go. */
static void at_rest(const struct server_run *s)
{
    struct http_answer a = {0};
    const double end = clock_s() + PATIENCE_S;
    do {
        usleep(50 * 1000);
        http_client_ask_at(s->port, "GET", "/metrics", "", NULL, &a);
        assert_true(clock_s() < end);
    } while (!strstr(str_c(&a.body), "\nds4_active_answers 0\n") ||
             !strstr(str_c(&a.body), "\nds4_queued_requests 0\n"));
    http_answer_free(&a);
}

static void soak(const struct material *m, const char *model, const char *options)
{
    struct server_run s = {0};
    struct truth truth = {0};
    char all[200];
    server_run_start(&s, model, options);
    alone(m, s.port, &truth);
    server_run_stop(&s);
    snprintf(all, sizeof all, "%s --sessions %d", options, VISITORS);
    server_run_start(&s, model, all);
    together(m, s.port, &truth);
    at_rest(&s);
    server_run_stop(&s);
    for (int i = 0; i < TALKS; i++) {
        for (int k = 0; k < TURNS; k++) str_free(&truth.line[i][k]);
        str_free(&truth.completion[i]);
    }
}

/* ---------------------------------------------------------------- both models */

static void test_scripted(void **state)
{
    static char question[TALKS][40], next[TALKS][40];
    struct material m = {
        .system = "Several clients have this beginning. It is long enough to be worth a copy, so it goes on for a "
                  "while: one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, and so on.",
        .tools = "[{\"name\":\"run\",\"description\":\"Run it.\",\"parameters\":{\"type\":\"object\",\"properties\":"
                 "{\"cmd\":{\"type\":\"string\"}},\"required\":[\"cmd\"]}}]",
        .max_tokens = 4000};
    struct str lines = {0};
    char path[TEMP_PATH], model[TEMP_PATH + 20];
    for (int i = 0; i < TALKS; i++) {
        snprintf(question[i], sizeof question[i], "[topic %d] What is there?", i);
        snprintf(next[i], sizeof next[i], "[topic %d][again] Say it.", i);
        m.subject[i] = (struct subject){question[i], "a \\xe4 <b>&amp;\n", next[i]};
        str_printf(&lines,
                   "{'when':'[topic %d][again]','text':'Once more.</think>word %d, ','cuts':3,'repeat':%d,'times':0}\n"
                   "{'when':['[topic %d]','<tool_result>'],'text':'There is %d.</think>I was asked: ','echo':true,"
                   "'times':0}\n"
                   "{'when':'[topic %d]','text':'I look at %d \xe2\x82\xac.</think>Let me see.",
                   i, i, 20 + 10 * i, i, i, i, i);
        str_printf(&lines, SERVE_RUN("cat topic%d && \xc3\xa4") "','cuts':%s,'times':0}\n", i, i % 2 ? "'bytes'" : "7");
    }
    server_run_write(path, serve_json("%s", lines.p));
    snprintf(model, sizeof model, "--scripted %s", path);
    soak(&m, model, "--quiet --ctx 8192");
    temp_remove(path);
    str_free(&lines);
}

static void test_demo_model(void **state)
{
    static const struct material m = {
        .system = "You are a small demo model.",
        .tools =
            "[{\"name\":\"bash\",\"description\":\"Run a shell command and return its output.\",\"parameters\":{"
            "\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\"}},\"required\":[\"command\"]}},"
            "{\"name\":\"get_weather\",\"description\":\"Return the current weather of a city.\",\"parameters\":{"
            "\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"description\":\"Name of the "
            "city.\"},\"days\":{\"type\":\"number\",\"description\":\"Days from today.\"}},\"required\":[\"city\"]}}]",
        .max_tokens = MAX_TOKENS,
        .subject = {{"Count the words in data.txt.", "69 data.txt", "Hello!"},
                    {"What is the weather in Paris?", "rain, 12 degrees", "Who are you?"},
                    {"Count the lines in notes.txt.", "7 notes.txt", "What is 12 + 30?"},
                    {"What is the weather in Rome?", "sun, 25 degrees", "What can you do?"},
                    {"Show the files here.", "a.txt b.txt", "Tell me a story about a fox who lost a lamp."},
                    {"What will the weather be in Oslo tomorrow?", "snow, -3 degrees", "What is 7 * 8?"},
                    {"Count the words in log.txt.", "12 log.txt", "Hello!"},
                    {"What is the weather in Berlin?", "fog, 5 degrees", "What is the capital of France?"}}};
    char path[TEMP_PATH], model[TEMP_PATH + 10];
    demo_model_convert("", path);
    snprintf(model, sizeof model, "-m %s", path);
    soak(&m, model, "--quiet --ctx 1536 --threads 2 --prefill-chunk 64");
    temp_remove(path);
}

/* With a number: so many seconds with each of both models. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scripted), cmocka_unit_test(test_demo_model)};
    if (argc > 1) seconds = atof(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
