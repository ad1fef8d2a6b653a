/* The demo model behind ds4-server: asked something that needs a tool it makes the call, the test runs the command and
 * sends what it printed, the model answers from that. Over three APIs, streamed and whole, with and without thinking;
 * the second request must find what the first one left: at least 95 % of the first prompt and its answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include "base/mem.h"
#include "../support/api_answer.h"
#include "../support/demo_model.h"
#include "../support/http_kit.h"
#include "../support/server_run.h"

/* What is asked, the only command that is run for it, and what the answer must say. No two are the same: what is
 * cached can only be from the same conversation. */
#define WORDS(file, content, answer)                                                                                   \
    {                                                                                                                  \
        "Count the words in " file ".", "wc -w " file, file, content, answer                                           \
    }
#define WHERE(word, file, content, answer)                                                                             \
    {                                                                                                                  \
        "Where is the word " word " in " file "?", "grep -n " word " " file, file, content, answer                     \
    }
static const struct task {
    const char *question, *command, *file, *content, *answer;
} tasks[] = {
    WORDS("data.txt", "one two three four five six seven\n", " 7 words"),
    WHERE("lamp", "report.c", "a\nb\nthe lamp is old\n", "line 3"),
    WORDS("names.log", "Ida Tina\nMia\nNils Ann\n", " 5 words"),
    WHERE("river", "notes.txt", "a\nb\nc\nd\nthe river is here\n", "line 5"),
    WORDS("notes.md", "a b c d e f g h i j k l\n", " 12 words"),
    WHERE("king", "config.txt", "x\nthe king is old\n", "line 2"),
    WORDS("report.txt", "a b c d e f\n", " 6 words"),
    WHERE("port", "table.txt", "x\ny\nz\nthe port is old\n", "line 4"),
    WORDS("plan.txt", "a b c d e f g h\n", " 8 words"),
    WHERE("king", "notes.log", "a\nb\nthe king is old\n", "line 3"),
    WORDS("index.c", "a b c d\n", " 4 words"),
    WHERE("lamp", "index.md", "a\nb\nc\nd\ne\nf\nthe lamp is here\n", "line 7"),
};
enum { N_TASKS = sizeof tasks / sizeof *tasks };

struct conversation {
    const struct server_run *server;
    enum api api;
    bool stream, thinking;
    json_t *history;
    struct api_answer answer; /* the last one */
};

/* ---------------------------------------------------------------- requests */

static const char *const paths[] = {
    [API_CHAT] = "/v1/chat/completions", [API_RESPONSES] = "/v1/responses", [API_MESSAGES] = "/v1/messages"};

/* The tool that the model knows, in the API's words. */
static json_t *tools_of(enum api api)
{
    json_t *schema = json_pack("{s:s,s:{s:{s:s}},s:[s]}", "type", "object", "properties", "command", "type", "string",
                               "required", "command");
    static const char about[] = "Run a shell command and return its output.";
    if (api == API_CHAT)
        return json_pack("[{s:s,s:{s:s,s:s,s:o}}]", "type", "function", "function", "name", "bash", "description",
                         about, "parameters", schema);
    if (api == API_RESPONSES)
        return json_pack("[{s:s,s:s,s:s,s:o}]", "type", "function", "name", "bash", "description", about, "parameters",
                         schema);
    return json_pack("[{s:s,s:s,s:o}]", "name", "bash", "description", about, "input_schema", schema);
}

static char *body_of(const struct conversation *c)
{
    json_t *b = json_pack("{s:f,s:b,s:o}", "temperature", 0.0, "stream", c->stream, "tools", tools_of(c->api));
    json_object_set(b, c->api == API_RESPONSES ? "input" : "messages", c->history);
    json_object_set_new(b, c->api == API_RESPONSES ? "max_output_tokens" : "max_tokens", json_integer(200));
    if (c->api == API_RESPONSES)
        json_object_set_new(b, "reasoning",
                            json_pack("{s:s,s:s}", "effort", c->thinking ? "high" : "none", "summary", "auto"));
    else
        json_object_set_new(b, "thinking", json_pack("{s:s}", "type", c->thinking ? "enabled" : "disabled"));
    if (c->api == API_CHAT && c->stream)
        json_object_set_new(b, "stream_options", json_pack("{s:b}", "include_usage", 1));
    char *text = json_dumps(b, 0);
    json_decref(b);
    return text;
}

static void ask(struct conversation *c)
{
    struct http_answer a = {0};
    char *body = body_of(c);
    http_client_ask_at(c->server->port, "POST", paths[c->api], "Content-Type: application/json\r\n", body, &a);
    if (a.status != 200) fail_msg("%d: %s", a.status, str_c(&a.body));
    api_answer_read(c->api, c->stream, a.body.p, a.body.n, &c->answer);
    http_answer_free(&a);
    mem_free(body);
}

/* ---------------------------------------------------------------- histories, as clients keep them */

static void add(struct conversation *c, json_t *item)
{
    assert_non_null(item);
    json_array_append_new(c->history, item);
}

static void add_chat(struct conversation *c, const struct api_answer_call *call, const char *result)
{
    json_t *m =
        json_pack("{s:s,s:n,s:[{s:s,s:s,s:{s:s,s:s}}]}", "role", "assistant", "content", "tool_calls", "id", call->id,
                  "type", "function", "function", "name", str_c(&call->name), "arguments", str_c(&call->arguments));
    if (c->answer.reasoning.n) json_object_set_new(m, "reasoning_content", json_string(c->answer.reasoning.p));
    add(c, m);
    add(c, json_pack("{s:s,s:s,s:s}", "role", "tool", "tool_call_id", call->id, "content", result));
}

static void add_responses(struct conversation *c, const struct api_answer_call *call, const char *result)
{
    if (c->answer.reasoning.n)
        add(c, json_pack("{s:s,s:[{s:s,s:s}]}", "type", "reasoning", "summary", "type", "summary_text", "text",
                         c->answer.reasoning.p));
    add(c, json_pack("{s:s,s:s,s:s,s:s}", "type", "function_call", "call_id", call->id, "name", str_c(&call->name),
                     "arguments", str_c(&call->arguments)));
    add(c, json_pack("{s:s,s:s,s:s}", "type", "function_call_output", "call_id", call->id, "output", result));
}

static void add_messages(struct conversation *c, const struct api_answer_call *call, const char *result)
{
    json_t *blocks = json_array();
    if (c->answer.reasoning.n)
        json_array_append_new(blocks, json_pack("{s:s,s:s,s:s}", "type", "thinking", "thinking", c->answer.reasoning.p,
                                                "signature", "x"));
    json_array_append_new(blocks, json_pack("{s:s,s:s,s:s,s:o}", "type", "tool_use", "id", call->id, "name",
                                            str_c(&call->name), "input", json_loads(str_c(&call->arguments), 0, NULL)));
    add(c, json_pack("{s:s,s:o}", "role", "assistant", "content", blocks));
    add(c, json_pack("{s:s,s:[{s:s,s:s,s:s}]}", "role", "user", "content", "type", "tool_result", "tool_use_id",
                     call->id, "content", result));
}

/* ---------------------------------------------------------------- the tool */

/* Runs the command that the model wrote, if it is the one that is expected, where its file is. */
static void run_tool(const struct task *t, const struct api_answer_call *call, struct str *said)
{
    char folder[TEMP_PATH], shell[256];
    json_t *arguments = json_loads(str_c(&call->arguments), 0, NULL);
    assert_string_equal(str_c(&call->name), "bash");
    const char *command = json_string_value(json_object_get(arguments, "command"));
    assert_non_null(command);
    assert_string_equal(command, t->command);
    temp_folder(folder);
    snprintf(shell, sizeof shell, "%s/%s", folder, t->file);
    FILE *f = fopen(shell, "w");
    assert_non_null(f);
    fputs(t->content, f);
    fclose(f);
    snprintf(shell, sizeof shell, "cd %s && %s", folder, command);
    assert_int_equal(shell_run(shell, said), 0);
    while (said->n && said->p[said->n - 1] == '\n') said->p[--said->n] = 0;
    temp_remove(folder);
    json_decref(arguments);
}

/* ---------------------------------------------------------------- conversations */

static void converse(struct conversation *c, const struct task *t)
{
    static void (*const add_turn[])(struct conversation *, const struct api_answer_call *, const char *) = {
        [API_CHAT] = add_chat, [API_RESPONSES] = add_responses, [API_MESSAGES] = add_messages};
    struct str said = {0};
    c->history = json_pack("[{s:s,s:s}]", "role", "user", "content", t->question);
    ask(c);
    const struct usage first = c->answer.usage;
    assert_string_equal(c->answer.finish, "calls");
    assert_int_equal(c->answer.n_calls, 1);
    assert_int_equal(c->answer.reasoning.n > 0, c->thinking);
    run_tool(t, &c->answer.call[0], &said);
    add_turn[c->api](c, &c->answer.call[0], str_c(&said));
    ask(c);
    const struct usage second = c->answer.usage;
    print_message("%s%s%s: \"%s\" -> \"%s\" -> \"%s\" -> \"%s\"; %d + %d tokens, then %d of %d cached\n", paths[c->api],
                  c->stream ? ", streamed" : "", c->thinking ? ", thinking" : "", t->question, t->command, str_c(&said),
                  str_c(&c->answer.text), first.prompt, first.completion, second.cached, second.prompt);
    assert_string_equal(c->answer.finish, "stop");
    if (!strstr(str_c(&c->answer.text), t->answer)) fail_msg("no \"%s\" in \"%s\"", t->answer, str_c(&c->answer.text));
    assert_true(100 * second.cached >= 95 * (first.prompt + first.completion));
    json_decref(c->history);
    api_answer_free(&c->answer);
    str_free(&said);
}

static void test_tools(void **state)
{
    static const enum api apis[] = {API_CHAT, API_RESPONSES, API_MESSAGES};
    char model[TEMP_PATH], what[TEMP_PATH + 10];
    struct server_run s;
    demo_model_convert("", model);
    snprintf(what, sizeof what, "-m %s", model);
    server_run_start(&s, what, "--ctx 4096 --threads 2");
    for (size_t i = 0; i < N_TASKS; i++) {
        struct conversation c = {.server = &s, .api = apis[i / 4], .stream = i % 4 >= 2, .thinking = i % 2 == 1};
        converse(&c, &tasks[i]);
    }
    server_run_stop(&s);
    temp_remove(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tools)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
