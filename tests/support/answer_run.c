/* Runs of the answer parser. */
#include "answer_run.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "text/utf8.h"

#define TEXT(s)                                                                                                        \
    {                                                                                                                  \
        s, sizeof(s) - 1                                                                                               \
    }
#define TOOL(name, properties)                                                                                         \
    {                                                                                                                  \
        TEXT(name),                                                                                                    \
            TEXT("{\"name\": \"" name "\", \"parameters\": {\"type\": \"object\", \"properties\": {" properties        \
                 "}}}"),                                                                                               \
            false                                                                                                      \
    }
#define STRING "{\"type\": \"string\"}"

const struct chat_tool answer_tools[] = {
    TOOL("weather", "\"city\": " STRING ", \"days\": {\"type\": \"integer\"}"),
    TOOL("note", "\"path\": " STRING ", \"text\": " STRING),
    TOOL("shell", "\"command\": " STRING ", \"seconds\": {\"type\": \"number\"}"),
    TOOL("look", "\"what\": {}"),
    TOOL("list", ""),
    TOOL("pick", "\"flag\": {\"type\": [\"boolean\", \"null\"]}, \"count\": {\"anyOf\": [{\"type\": \"integer\"}, "
                 "{\"type\": \"null\"}]}, \"label\": {\"type\": [\"string\", \"integer\"]}, \"list\": {\"type\": "
                 "\"array\"}, \"place\": {\"type\": \"object\"}"),
    {TEXT("patch"),
     TEXT("{\"name\": \"patch\", \"parameters\": {\"type\": \"object\", \"properties\": {\"input\": " STRING "}}}"),
     true},
};
const size_t answer_n_tools = sizeof answer_tools / sizeof *answer_tools;

static void require(bool condition, const char *what, const char *bytes, size_t n)
{
    if (condition) return;
    fprintf(stderr, "%s: %.*s\n", what, (int)n, bytes);
    abort();
}

struct gather {
    struct answer_run *run;
    int last; /* kind of the event before, -1: none */
    const struct chat_tool *tool;
    struct str arguments;
};

static void close_bracket(struct gather *g)
{
    if (g->last == ANSWER_REASONING || g->last == ANSWER_TEXT) str_puts(&g->run->line, "]");
    g->last = -1;
}

static void check_arguments(const struct gather *g)
{
    if (!g->tool || g->tool->custom) return;
    json_error_t e;
    json_t *const j = json_loadb(str_c(&g->arguments), g->arguments.n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
    /* what a library of C cannot hold is JSON nevertheless */
    const enum json_error_code code = j ? json_error_unknown : json_error_code(&e);
    const bool limit = code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
                       code == json_error_null_character || code == json_error_stack_overflow;
    require(j ? json_is_object(j) : limit, "arguments are no JSON object", str_c(&g->arguments), g->arguments.n);
    json_decref(j);
}

static void sink(void *arg, enum answer_kind kind, const char *bytes, size_t n)
{
    struct gather *const g = arg;
    struct str *const line = &g->run->line;
    require((n > 0) == (kind != ANSWER_CALL_END), "an event is empty or should be", "", 0);
    require(utf8_valid_run(bytes, n) == n, "an event is not UTF-8", bytes, n);
    if ((int)kind != g->last) {
        close_bracket(g);
        if (kind == ANSWER_REASONING) str_puts(line, "[R ");
        if (kind == ANSWER_TEXT) str_puts(line, "[T ");
    }
    if (kind == ANSWER_CALL_BEGIN) {
        str_puts(line, "[C ");
        g->tool = NULL;
        for (size_t i = 0; i < answer_n_tools; i++)
            if (answer_tools[i].name.n == n && memcmp(answer_tools[i].name.p, bytes, n) == 0)
                g->tool = &answer_tools[i];
        require(g->tool != NULL, "a call of an undeclared tool", bytes, n);
        str_clear(&g->arguments);
    }
    str_add(line, bytes, n);
    if (kind == ANSWER_CALL_BEGIN) str_puts(line, " ");
    if (kind == ANSWER_CALL_ARGUMENTS) str_add(&g->arguments, bytes, n);
    if (kind == ANSWER_CALL_END) {
        str_puts(line, "]");
        check_arguments(g);
        g->tool = NULL;
        g->run->n_calls++;
    }
    g->last = kind;
}

void answer_run(struct answer_run *r, const struct answer_options *o, const char *text, const size_t *ends,
                size_t n_ends, enum answer_cause cause)
{
    answer_run_free(r);
    struct gather g = {.run = r, .last = -1};
    struct answer *const a = answer_create(o, sink, &g);
    bool over = false;
    size_t from = 0;
    for (size_t i = 0; i < n_ends && !over; i++) {
        over = answer_feed(a, text + from, ends[i] - from);
        from = ends[i];
    }
    const enum answer_end end = answer_finish(a, over ? CAUSE_STOP : cause);
    close_bracket(&g);
    if (g.tool) str_puts(&r->line, "...");
    require(!g.tool || end == END_LENGTH || cause == CAUSE_STOP_STRING, "a call is left unfinished", "", 0);
    require(end != END_CALLS || r->n_calls, "calls without a call", "", 0);
    str_puts(&r->line, over ? " over" : "");
    str_puts(&r->line, end == END_STOP ? " stop" : end == END_LENGTH ? " length" : " calls");
    size_t n;
    const char *const block = answer_block(a, &n);
    require((block != NULL) == (r->n_calls > 0), "the block is missing or should be", "", 0);
    str_add(&r->block, block, n);
    if (answer_note(a)) str_puts(&r->note, answer_note(a));
    answer_free(a);
    str_free(&g.arguments);
}

void answer_run_whole(struct answer_run *r, const struct answer_options *o, const char *text, size_t n,
                      enum answer_cause cause)
{
    answer_run(r, o, text, &n, 1, cause);
}

void answer_run_bytes(struct answer_run *r, const struct answer_options *o, const char *text, size_t n,
                      enum answer_cause cause)
{
    size_t *const ends = mem_alloc((n + 1) * sizeof *ends);
    for (size_t i = 0; i < n; i++) ends[i] = i + 1;
    answer_run(r, o, text, ends, n, cause);
    mem_free(ends);
}

void answer_run_free(struct answer_run *r)
{
    str_free(&r->line);
    str_free(&r->block);
    str_free(&r->note);
    *r = (struct answer_run){0};
}
