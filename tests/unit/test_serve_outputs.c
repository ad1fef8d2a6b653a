/* What models say, through the server to a client: every text of answer_cases.h and some more, cut into tokens in every
 * way, over three APIs, streamed and whole. A client must always see the same: what is written down for the text.
 *
 * Plainly run, the program takes a few of the cuts; with a word behind its name all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/api.h"
#include "serve/asking.h"
#include "serve/scripted.h"
#include "text/json_text.h"
#include "../support/answer_cases.h"
#include "../support/answer_cuts.h"
#include "../support/answer_run.h"
#include "../support/api_answer.h"
#include "../support/serve_kit.h"

enum { WAYS = 6, SCRIPT_BYTES = 1 << 23 };

static const struct answer_cut_counts a_few = {.bytes = 4096, .some_splits = 4, .multi_splits = 4};
static const struct answer_cut_counts *counts = &a_few;

/* Streamed or not, which API. */
static const struct way {
    enum api api;
    bool stream;
    const char *name;
} ways[WAYS] = {{API_CHAT, false, "chat"},           {API_CHAT, true, "chat, streamed"},
                {API_RESPONSES, false, "responses"}, {API_RESPONSES, true, "responses, streamed"},
                {API_MESSAGES, false, "messages"},   {API_MESSAGES, true, "messages, streamed"}};

/* A text and what it is said to. */
struct output {
    struct answer_case c; /* text and want are not looked at */
    const char *text;
    size_t n;
    const char *want; /* NULL: only the same for every cut */
    const char *stop; /* NULL: no stop string */
};

/* One scheduler over a script with a line for every cut; each line is said WAYS times. */
struct asker {
    const struct output *o;
    struct str script;
    int *pieces; /* of each line */
    int n_lines;
    char *body[WAYS];      /* of requests, without the limit and the end */
    struct str want[WAYS]; /* set by the first answer where nothing is written down */
    /* running */
    struct served model;
    struct tool_memory *memory;
    struct scheduler *scheduler;
    int ctx, asked; /* of n_lines * WAYS */
    struct encoder *encoder;
    struct str told;
    struct api_answer answer;
    struct str line;
};

static long n_answers, n_lines_all;

/* ---------------------------------------------------------------- requests */

static void add_tool(struct str *body, enum api api, const struct chat_tool *t)
{
    const struct json_text schema = json_text_read(t->schema.p, t->schema.n);
    const struct json_text parameters = json_text_member(schema, "parameters");
    if (t->custom && api == API_CHAT)
        str_printf(body, "{\"type\":\"custom\",\"custom\":{\"name\":\"%.*s\"}}", (int)t->name.n, t->name.p);
    else if (t->custom && api == API_RESPONSES)
        str_printf(body, "{\"type\":\"custom\",\"name\":\"%.*s\"}", (int)t->name.n, t->name.p);
    else if (api == API_CHAT)
        str_printf(body, "{\"type\":\"function\",\"function\":%.*s}", (int)schema.n, schema.p);
    else
        str_printf(body, "{\"type\":\"%s\",\"name\":\"%.*s\",\"%s\":%.*s}", api == API_MESSAGES ? "custom" : "function",
                   (int)t->name.n, t->name.p, api == API_MESSAGES ? "input_schema" : "parameters", (int)parameters.n,
                   parameters.p);
}

static void add_tools(struct str *body, enum api api, bool one_call)
{
    str_puts(body, ",\"tools\":[");
    for (size_t i = 0; i < answer_n_tools; i++) {
        if (i) str_puts(body, ",");
        add_tool(body, api, &answer_tools[i]);
    }
    str_puts(body, "]");
    if (one_call && api == API_MESSAGES)
        str_puts(body, ",\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":true}");
    else if (one_call)
        str_puts(body, ",\"parallel_tool_calls\":false");
}

static char *body_of(const struct output *o, const struct way *w)
{
    struct str body = {0};
    const bool thinking = o->c.thinking;
    str_puts(&body,
             w->api == API_RESPONSES ? "{\"input\":\"Hi\"" : "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]");
    if (w->api == API_RESPONSES)
        str_printf(&body, ",\"reasoning\":{\"summary\":\"auto\",\"effort\":\"%s\"}", thinking ? "high" : "none");
    else
        str_printf(&body, ",\"thinking\":{\"type\":\"%s\"}", thinking ? "enabled" : "disabled");
    if (w->stream) str_puts(&body, ",\"stream\":true");
    if (w->stream && w->api == API_CHAT) str_puts(&body, ",\"stream_options\":{\"include_usage\":true}");
    if (o->stop) str_printf(&body, ",\"%s\":[\"%s\"]", w->api == API_CHAT ? "stop" : "stop_sequences", o->stop);
    if (!o->c.no_tools) add_tools(&body, w->api, o->c.one_call);
    str_printf(&body, ",\"%s\":", w->api == API_RESPONSES ? "max_output_tokens" : "max_tokens");
    return body.p;
}

/* The Responses API has no stop strings. */
static bool asked_this_way(const struct output *o, const struct way *w)
{
    return !o->stop || w->api != API_RESPONSES;
}

/* What is written down is told by streams as it is; a whole answer leaves out a call that was cut; custom tools are
 * ordinary ones in the Messages API. */
static void want_for(const struct output *o, const struct way *w, struct str *want)
{
    static const char cut[] = "... length";
    str_clear(want);
    if (!o->want || (w->api == API_MESSAGES && memmem(o->text, o->n, "patch", 5))) return;
    const char *over = strstr(o->want, " over ");
    size_t n = over ? (size_t)(over - o->want) : strlen(o->want);
    if (!w->stream && n > sizeof cut && !strcmp(o->want + n - strlen(cut), cut)) {
        n -= strlen(cut);
        while (memcmp(o->want + n, "[C ", 3)) n--;
        str_add(want, o->want, n);
        str_puts(want, " length");
        return;
    }
    str_add(want, o->want, n);
    if (over) str_puts(want, over + strlen(" over"));
    if (o->stop && w->api == API_MESSAGES) str_puts(want, " string");
}

/* ---------------------------------------------------------------- one answer after the other */

static void on_started(void *arg, const struct usage *u)
{
    struct asker *a = arg;
    encoder_started(a->encoder, u, &a->told);
}

static void on_alive(void *arg)
{
}

static void on_event(void *arg, const struct event *e)
{
    struct asker *a = arg;
    encoder_event(a->encoder, e, &a->told);
}

static const struct way *way_of(int asked)
{
    return &ways[asked % WAYS];
}

static void judge(struct asker *a)
{
    const int way = a->asked % WAYS, line = a->asked / WAYS;
    const struct way *w = &ways[way];
    struct str *want = &a->want[way];
    api_answer_read(w->api, w->stream, a->told.p, a->told.n, &a->answer);
    if (a->answer.wrong.n)
        fail_msg("%s, %s, cut %d: %s:\n%.3000s", a->o->c.name, w->name, line, a->answer.wrong.p, str_c(&a->told));
    api_answer_line(&a->answer, &a->line);
    if (!want->n) str_add(want, a->line.p, a->line.n);
    if (a->line.n == want->n && !memcmp(a->line.p, want->p, want->n)) return;
    fail_msg("%s, %s, cut %d of %d in %d pieces:\n  got    %.2000s\n  wanted %.2000s\n%.3000s", a->o->c.name, w->name,
             line, a->n_lines, a->pieces[line], str_c(&a->line), str_c(want), str_c(&a->told));
}

static void on_end(void *arg, const struct answer_result *r)
{
    struct asker *a = arg;
    encoder_end(a->encoder, r, &a->told);
    judge(a);
}

static void on_error(void *arg, const struct api_error *why)
{
    fail_msg("%s: %s", ((struct asker *)arg)->o->c.name, why->message);
}

static void ask(struct asker *a);

static void on_drop(void *arg)
{
    struct asker *a = arg;
    encoder_free(a->encoder);
    a->asked++;
    n_answers++;
    ask(a);
}

static const struct client client = {on_started, on_alive, on_event, on_end, on_error, on_drop};

/* The next request, or the end of all. */
static void ask(struct asker *a)
{
    struct request *r;
    struct ask it;
    struct api_error why = {0};
    while (a->asked < a->n_lines * WAYS && !asked_this_way(a->o, way_of(a->asked))) a->asked++;
    if (a->asked == a->n_lines * WAYS) {
        scheduler_stop(a->scheduler);
        return;
    }
    const struct way *w = way_of(a->asked);
    struct str body = {0};
    str_printf(&body, "%s%d}", a->body[a->asked % WAYS],
               a->o->c.cause == CAUSE_LENGTH ? a->pieces[a->asked / WAYS] : a->ctx);
    if (api_read(w->api, body.p, body.n, &r, &why) ||
        asking_prepare(&a->model, a->memory, a->ctx, r, "test", &it, &why))
        fail_msg("%s", why.message);
    str_clear(&a->told);
    a->encoder = encoder_new(r, "m");
    assert_true(scheduler_add(a->scheduler, &it, &client, a, &why) != 0);
}

/* All that the script says. */
static void run(struct asker *a)
{
    struct err e = {0};
    if (!a->n_lines) return;
    a->ctx = (int)a->o->n + 4096;
    a->asked = 0;
    serve_script(a->script.p, a->ctx, 0, &a->model);
    a->memory = tool_memory_new(100, 1 << 20);
    const struct scheduler_options o = {
        .model = a->model, .memory = a->memory, .sessions = 1, .ctx = a->ctx, .max_tokens = a->ctx};
    if (scheduler_create(&o, &a->scheduler, &e)) fail_msg("%s", e.msg);
    ask(a);
    scheduler_run(a->scheduler);
    assert_int_equal(a->asked, a->n_lines * WAYS);
    scheduler_free(a->scheduler);
    tool_memory_free(a->memory);
    scripted_close(&a->model);
    n_lines_all += a->n_lines;
    str_clear(&a->script);
    a->n_lines = 0;
}

/* ---------------------------------------------------------------- scripts */

static void add_line(void *arg, const size_t *ends, size_t n_ends)
{
    struct asker *a = arg;
    str_printf(&a->script, "{\"times\":%d,\"family\":\"%s\",\"base64\":\"",
               asked_this_way(a->o, &ways[2]) ? WAYS : WAYS - 2,
               a->o->c.syntax == &answer_xml ? "qwen38" : "deepseek4");
    base64_encode(&a->script, a->o->text, a->o->n);
    str_puts(&a->script, "\",\"cuts\":[");
    for (size_t i = 0; i < n_ends && ends[i]; i++) str_printf(&a->script, i ? ",%zu" : "%zu", ends[i]);
    str_puts(&a->script, "]}\n");
    a->pieces = mem_grow(a->pieces, ((size_t)a->n_lines + 1) * sizeof *a->pieces);
    a->pieces[a->n_lines++] = (int)n_ends;
    if (a->script.n > SCRIPT_BYTES) run(a);
}

static void say_in_every_way(const struct output *o)
{
    struct asker a = {.o = o};
    for (int i = 0; i < WAYS; i++) {
        a.body[i] = body_of(o, &ways[i]);
        want_for(o, &ways[i], &a.want[i]);
    }
    answer_cuts(o->text, o->n, counts, add_line, &a);
    run(&a);
    for (int i = 0; i < WAYS; i++) {
        mem_free(a.body[i]);
        str_free(&a.want[i]);
    }
    api_answer_free(&a.answer);
    str_free(&a.line);
    str_free(&a.told);
    str_free(&a.script);
    mem_free(a.pieces);
}

/* ---------------------------------------------------------------- texts */

static void test_cases(void **state)
{
    for (size_t i = 0; i < answer_n_cases; i++) {
        const struct answer_case *c = &answer_cases[i];
        if (c->cause == CAUSE_STOP_STRING) continue; /* test_stop_strings */
        say_in_every_way(&(struct output){.c = *c, .text = c->text, .n = strlen(c->text), .want = c->want});
    }
    print_message("%zu texts, %ld cuts, %ld answers\n", answer_n_cases - 1, n_lines_all, n_answers);
}

static void test_stop_strings(void **state)
{
    static const struct {
        const char *name, *text, *stop, *want;
        bool thinking;
    } texts[] = {
        {"a stop string", "one two STOP three", "STOP", "[T one two ] stop", false},
        {"nearly a stop string, then one", "a STO STSTOP b", "STOP", "[T a STO ST] stop", false},
        {"a stop string of several bytes a character", "\xf0\x9f\x9a\x80 \xe2\x9c\x8b\xf0\x9f\x9b\x91 x",
         "\xe2\x9c\x8b\xf0\x9f\x9b\x91", "[T \xf0\x9f\x9a\x80 ] stop", false},
        {"a stop string in reasoning is none", "STOP?</think>go STOP", "STOP", "[R STOP?][T go ] stop", true},
        {"a stop string in arguments is none",
         "a\n\n<tool_calls><invoke name=\"look\"><parameter name=\"what\" string=\"true\">STOP</parameter></invoke>"
         "</tool_calls>",
         "STOP", "[T a][C look {\"what\":\"STOP\"}] calls", false},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct output o = {.c = {.name = texts[i].name, .syntax = &answer_dsml, .thinking = texts[i].thinking},
                           .text = texts[i].text,
                           .n = strlen(texts[i].text),
                           .want = texts[i].want,
                           .stop = texts[i].stop};
        if (strstr(o.want, " calls")) o.want = NULL;
        say_in_every_way(&o);
    }
}

static void test_zero_bytes(void **state)
{
    static const char text[] = "a\0b</think>c\0\n\n<tool_calls><invoke name=\"look\"><parameter name=\"what\" "
                               "string=\"true\">d\0e</parameter></invoke></tool_calls>";
    say_in_every_way(&(struct output){
        .c = {.name = "zero bytes", .syntax = &answer_dsml, .thinking = true}, .text = text, .n = sizeof text - 1});
}

/* Arguments of 200 KB with much that must be escaped and some that looks like markup. */
static void long_arguments(const struct answer_syntax *syntax, const char *head, const char *tail)
{
    struct str text = {0}, value = {0}, want = {0};
    for (int i = 0; value.n < 200 * 1024; i++)
        str_printf(&value, "%d: \"plain\" words\t& \\n \\u00e9 to the end of the line%s\n", i,
                   i % 1024 ? "" : " <b>1 < 2</b> </ </\xef\xbd\x9c \xe6\xbc\xa2\xf0\x9f\x9a\x80");
    str_printf(&text, "I write it.%s%s%s", head, value.p, tail);
    str_puts(&want, "[T I write it.][C note {\"path\":\"a\",\"text\":");
    json_text_quote(&want, value.p, value.n);
    str_puts(&want, "}] calls");
    say_in_every_way(&(struct output){
        .c = {.name = "200 KB of arguments", .syntax = syntax}, .text = text.p, .n = text.n, .want = want.p});
    str_free(&text);
    str_free(&value);
    str_free(&want);
}

static void test_long_arguments(void **state)
{
#define M                                                                                                              \
    "\xef\xbd\x9c"                                                                                                     \
    "DSML\xef\xbd\x9c"
    long_arguments(&answer_dsml,
                   "\n\n<" M "tool_calls>\n<" M "invoke name=\"note\">\n<" M
                   "parameter name=\"path\" string=\"true\">a</" M "parameter>\n<" M
                   "parameter name=\"text\" string=\"true\">",
                   "</" M "parameter>\n</" M "invoke>\n</" M "tool_calls>");
    long_arguments(&answer_xml,
                   "\n\n<tool_call>\n<function=note>\n<parameter=path>\na\n</parameter>\n<parameter=text>\n",
                   "\n</parameter>\n</function>\n</tool_call>");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_stop_strings),
                                       cmocka_unit_test(test_zero_bytes), cmocka_unit_test(test_long_arguments)};
    if (argc > 1) counts = &answer_cuts_full;
    log_to(NULL, NULL, LOG_WARN);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    print_message("%ld cuts, %ld answers in all\n", n_lines_all, n_answers);
    return failed;
}
