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
#include "../support/api_talk.h"
#include "../support/demo_model.h"
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

/* The tool that the model knows. */
static const char tools[] =
    "[{\"name\":\"bash\",\"description\":\"Run a shell command and return its output.\",\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"command\":{\"type\":\"string\"}},\"required\":[\"command\"]}}]";

struct conversation {
    const struct server_run *server;
    enum api api;
    bool stream;
    struct talk talk;
};

/* The answer to the last step, which the next one then has before it. */
static const struct api_answer *ask(struct conversation *c)
{
    struct http_answer a = {0};
    struct str body = {0};
    struct api_answer *answer = &c->talk.step[c->talk.n_steps - 1].answer;
    talk_request(&c->talk, c->api, c->stream, 200, &body);
    server_post(c->server, api_paths[c->api], body.p, &a);
    server_said(&a, 200, "");
    api_answer_read(c->api, c->stream, a.body.p, a.body.n, answer);
    if (answer->wrong.n) fail_msg("%s: %s:\n%s", api_paths[c->api], answer->wrong.p, str_c(&a.body));
    http_answer_free(&a);
    str_free(&body);
    return answer;
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
    const bool thinking = c->talk.thinking == TALK_THINKING;
    struct str said = {0};
    c->talk.step[c->talk.n_steps++].question = t->question;
    const struct api_answer *call = ask(c);
    const struct usage first = call->usage;
    assert_string_equal(call->finish, "calls");
    assert_int_equal(call->n_calls, 1);
    assert_int_equal(call->reasoning.n > 0, thinking);
    run_tool(t, &call->call[0], &said);
    c->talk.step[c->talk.n_steps++].result = str_c(&said);
    const struct api_answer *last = ask(c);
    const struct usage second = last->usage;
    print_message("%s%s%s: \"%s\" -> \"%s\" -> \"%s\" -> \"%s\"; %d + %d tokens, then %d of %d cached\n",
                  api_paths[c->api], c->stream ? ", streamed" : "", thinking ? ", thinking" : "", t->question,
                  t->command, str_c(&said), str_c(&last->text), first.prompt, first.completion, second.cached,
                  second.prompt);
    assert_string_equal(last->finish, "stop");
    if (!strstr(str_c(&last->text), t->answer)) fail_msg("no \"%s\" in \"%s\"", t->answer, str_c(&last->text));
    assert_true(100 * second.cached >= 95 * (first.prompt + first.completion));
    talk_free(&c->talk);
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
        struct conversation c = {.server = &s, .api = apis[i / 4], .stream = i % 4 >= 2};
        c.talk.tools = tools;
        c.talk.thinking = i % 2 ? TALK_THINKING : TALK_NO_THINKING;
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
