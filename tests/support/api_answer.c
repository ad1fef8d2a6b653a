#include "api_answer.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "text/json_text.h"

/* ---------------------------------------------------------------- JSON */

static json_t *load(const char *p, size_t n)
{
    json_error_t e;
    json_t *v = json_loadb(p, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
    if (!v) fail_msg("%s at %d: %.*s", e.text, e.position, (int)(n < 2000 ? n : 2000), p);
    return v;
}

static json_t *member(const json_t *object, const char *name)
{
    json_t *v = json_object_get(object, name);
    if (!v) fail_msg("no \"%s\"", name);
    return v;
}

static const char *word(const json_t *object, const char *name)
{
    const char *text = json_string_value(member(object, name));
    if (!text) fail_msg("\"%s\" is no string", name);
    return text;
}

static int number(const json_t *object, const char *name)
{
    return (int)json_number_value(member(object, name));
}

static bool is(const json_t *object, const char *name, const char *want)
{
    return !strcmp(word(object, name), want);
}

/* Appends a string, or nothing for null and where there is none. */
static void add_text(struct str *out, const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);
    if (v && !json_is_null(v) && !json_is_string(v)) fail_msg("\"%s\" is no string", name);
    if (json_is_string(v)) str_add(out, json_string_value(v), json_string_length(v));
}

static void require(bool condition, const char *what)
{
    if (!condition) fail_msg("%s", what);
}

static void same(const struct str *told, const json_t *object, const char *name)
{
    struct str all = {0};
    add_text(&all, object, name);
    if (all.n != told->n || memcmp(str_c(&all), str_c(told), all.n))
        fail_msg("\"%s\" is not what was told: %s, %s", name, str_c(&all), str_c(told));
    str_free(&all);
}

/* ---------------------------------------------------------------- parts of answers */

static struct api_answer_call *call_begin(struct api_answer *a, const char *id, const char *name, bool custom)
{
    require(a->n_calls < API_ANSWER_CALLS, "too many calls");
    struct api_answer_call *c = &a->call[a->n_calls++];
    c->custom = custom;
    snprintf(c->id, sizeof c->id, "%s", id);
    str_puts(&c->name, name);
    for (int i = 0; i + 1 < a->n_calls; i++) require(strcmp(a->call[i].id, id) != 0, "two calls have the same id");
    return c;
}

static struct api_answer_call *call_open(struct api_answer *a)
{
    require(a->n_calls && !a->call[a->n_calls - 1].done, "no call is open");
    return &a->call[a->n_calls - 1];
}

static void calls_done(struct api_answer *a)
{
    for (int i = 0; i < a->n_calls; i++) a->call[i].done = true;
}

/* Where an API does not say whether the limit cut the last call, clients look whether its arguments are whole. */
static void judge_last_call(struct api_answer *a)
{
    if (!a->n_calls || !strcmp(a->finish, "calls")) return;
    struct api_answer_call *c = &a->call[a->n_calls - 1];
    c->done = json_text_read(c->arguments.p, c->arguments.n).kind == JSON_TEXT_OBJECT;
}

static void openai_usage(struct api_answer *a, const json_t *u, bool chat)
{
    a->usage.prompt = number(u, chat ? "prompt_tokens" : "input_tokens");
    a->usage.completion = number(u, chat ? "completion_tokens" : "output_tokens");
    a->usage.cached = number(member(u, chat ? "prompt_tokens_details" : "input_tokens_details"), "cached_tokens");
    require(number(u, "total_tokens") == a->usage.prompt + a->usage.completion, "total_tokens is not the sum");
}

/* ---------------------------------------------------------------- events of a stream */

struct events {
    const char *at, *end;
    char name[64]; /* "": the event has none */
    const char *data;
    size_t n;
};

/* The next event that is no comment; false at the end of the stream. */
static bool events_next(struct events *s)
{
    while (s->at < s->end) {
        const char *stop = memmem(s->at, (size_t)(s->end - s->at), "\n\n", 2), *p = s->at;
        require(stop != NULL, "the stream ends within an event");
        s->at = stop + 2;
        if (*p == ':') continue;
        s->name[0] = 0;
        if (!strncmp(p, "event: ", 7)) {
            const char *line = memchr(p, '\n', (size_t)(stop - p));
            require(line && line - p - 7 < (ptrdiff_t)sizeof s->name, "an event without data");
            snprintf(s->name, sizeof s->name, "%.*s", (int)(line - p - 7), p + 7);
            p = line + 1;
        }
        require(stop - p > 6 && !strncmp(p, "data: ", 6), "an event without data");
        s->data = p + 6;
        s->n = (size_t)(stop - s->data);
        require(!memchr(s->data, '\n', s->n), "data over two lines");
        return true;
    }
    return false;
}

/* The event's object, whose type is the event's name. */
static json_t *event_object(const struct events *s)
{
    json_t *v = load(s->data, s->n);
    if (!is(v, "type", s->name)) fail_msg("event %s is of type %s", s->name, word(v, "type"));
    return v;
}

/* ---------------------------------------------------------------- chat completions */

static const char *chat_finish(const json_t *choice)
{
    const char *reason = word(choice, "finish_reason");
    if (!strcmp(reason, "tool_calls")) return "calls";
    require(!strcmp(reason, "stop") || !strcmp(reason, "length"), "an unknown finish_reason");
    return *reason == 's' ? "stop" : "length";
}

static void chat_call(struct api_answer *a, const json_t *call)
{
    const bool custom = json_object_get(call, "custom") != NULL;
    const json_t *inner = member(call, custom ? "custom" : "function");
    if (json_object_get(call, "id")) {
        require(is(call, "type", custom ? "custom" : "function"), "a call's type is not that of its content");
        call_begin(a, word(call, "id"), word(inner, "name"), custom);
    }
    require(a->n_calls && a->call[a->n_calls - 1].custom == custom, "a piece of a call that was not begun");
    add_text(&a->call[a->n_calls - 1].arguments, inner, custom ? "input" : "arguments");
}

static void chat_delta(struct api_answer *a, const json_t *delta)
{
    add_text(&a->reasoning, delta, "reasoning_content");
    if (a->text.n) require(!json_object_get(delta, "reasoning_content"), "reasoning behind text");
    add_text(&a->text, delta, "content");
    const json_t *calls = json_object_get(delta, "tool_calls"), *call = json_array_get(calls, 0);
    if (!calls) return;
    require(json_array_size(calls) == 1, "a delta of several calls");
    chat_call(a, call);
    require(number(call, "index") == a->n_calls - 1, "a call's index is not its place");
}

static void chat_chunk(struct api_answer *a, const json_t *chunk, bool first)
{
    const json_t *choices = member(chunk, "choices"), *choice = json_array_get(choices, 0);
    require(is(chunk, "object", "chat.completion.chunk"), "no chunk");
    if (!choice) {
        require(a->finish != NULL, "usage ahead of the end");
        openai_usage(a, member(chunk, "usage"), true);
        return;
    }
    require(!a->finish, "a chunk behind the last one");
    require(first == (json_object_get(member(choice, "delta"), "role") != NULL), "the role is not told once, first");
    chat_delta(a, member(choice, "delta"));
    if (!json_is_null(member(choice, "finish_reason"))) a->finish = chat_finish(choice);
}

static void chat_stream(struct api_answer *a, struct events *s)
{
    for (bool first = true;; first = false) {
        require(events_next(s), "no [DONE]");
        if (s->n == 6 && !memcmp(s->data, "[DONE]", 6)) break;
        json_t *chunk = load(s->data, s->n);
        chat_chunk(a, chunk, first);
        json_decref(chunk);
    }
    require(!events_next(s), "something behind [DONE]");
    require(a->finish != NULL, "no finish_reason");
    calls_done(a);
    judge_last_call(a);
}

static void chat_whole(struct api_answer *a, const char *body, size_t n)
{
    json_t *answer = load(body, n), *call;
    const json_t *choice = json_array_get(member(answer, "choices"), 0), *m = member(choice, "message");
    size_t i;
    add_text(&a->reasoning, m, "reasoning_content");
    add_text(&a->text, m, "content");
    json_array_foreach(json_object_get(m, "tool_calls"), i, call) chat_call(a, call);
    calls_done(a);
    a->finish = chat_finish(choice);
    openai_usage(a, member(answer, "usage"), true);
    json_decref(answer);
}

/* ---------------------------------------------------------------- Responses */

static bool is_call_item(const json_t *item)
{
    return is(item, "type", "function_call") || is(item, "type", "custom_tool_call");
}

static struct api_answer_call *response_call(struct api_answer *a, const json_t *item)
{
    return call_begin(a, word(item, "call_id"), word(item, "name"), is(item, "type", "custom_tool_call"));
}

static void response_item(struct api_answer *a, const json_t *item)
{
    const bool complete = is(item, "status", "completed");
    if (is(item, "type", "reasoning")) {
        add_text(&a->reasoning, json_array_get(member(item, "summary"), 0), "text");
    } else if (is(item, "type", "message")) {
        add_text(&a->text, json_array_get(member(item, "content"), 0), "text");
    } else {
        require(is_call_item(item), "an item of an unknown type");
        struct api_answer_call *c = response_call(a, item);
        add_text(&c->arguments, item, c->custom ? "input" : "arguments");
        c->done = complete;
    }
}

static void response_object(struct api_answer *a, const json_t *r)
{
    json_t *item;
    size_t i;
    bool calls = false;
    json_array_foreach(member(r, "output"), i, item) response_item(a, item);
    for (int k = 0; k < a->n_calls; k++) calls |= a->call[k].done;
    const bool cut = is(r, "status", "incomplete");
    require(cut || is(r, "status", "completed"), "a response that is neither complete nor incomplete");
    require(cut == json_is_object(member(r, "incomplete_details")), "incomplete_details are not those of the status");
    a->finish = cut ? "length" : calls ? "calls" : "stop";
    openai_usage(a, member(r, "usage"), false);
}

/* What was told piece by piece against an item that is done. */
static void response_item_done(struct api_answer *a, const json_t *item)
{
    if (is(item, "type", "reasoning")) {
        same(&a->reasoning, json_array_get(member(item, "summary"), 0), "text");
    } else if (is(item, "type", "message")) {
        same(&a->text, json_array_get(member(item, "content"), 0), "text");
    } else {
        struct api_answer_call *c = call_open(a);
        same(&c->arguments, item, c->custom ? "input" : "arguments");
        require(!strcmp(c->id, word(item, "call_id")), "another call is done than was begun");
        c->done = true;
    }
}

static void response_event(struct api_answer *a, const char *type, const json_t *v)
{
    if (!strcmp(type, "response.output_item.added")) {
        if (is_call_item(member(v, "item"))) response_call(a, member(v, "item"));
    } else if (!strcmp(type, "response.reasoning_summary_text.delta")) {
        add_text(&a->reasoning, v, "delta");
    } else if (!strcmp(type, "response.output_text.delta")) {
        add_text(&a->text, v, "delta");
    } else if (!strcmp(type, "response.function_call_arguments.delta") ||
               !strcmp(type, "response.custom_tool_call_input.delta")) {
        add_text(&call_open(a)->arguments, v, "delta");
    } else if (!strcmp(type, "response.function_call_arguments.done")) {
        same(&call_open(a)->arguments, v, "arguments");
    } else if (!strcmp(type, "response.custom_tool_call_input.done")) {
        same(&call_open(a)->arguments, v, "input");
    } else if (!strcmp(type, "response.output_text.done")) {
        same(&a->text, v, "text");
    } else if (!strcmp(type, "response.reasoning_summary_text.done")) {
        same(&a->reasoning, v, "text");
    } else if (!strcmp(type, "response.output_item.done")) {
        response_item_done(a, member(v, "item"));
    } else if (strncmp(type, "response.reasoning_summary_part.", 32) && strncmp(type, "response.content_part.", 22) &&
               strcmp(type, "response.created") && strcmp(type, "response.in_progress")) {
        fail_msg("event %s", type);
    }
}

static void response_stream(struct api_answer *a, struct events *s)
{
    struct str told = {0}, all = {0};
    struct api_answer end = {0};
    for (int i = 0; !end.finish; i++) {
        require(events_next(s), "the stream ends without its last event");
        json_t *v = event_object(s);
        require(number(v, "sequence_number") == i, "a sequence_number is not the next one");
        require((i == 0) == !strcmp(s->name, "response.created"), "the first event is another one");
        if (!strcmp(s->name, "response.completed") || !strcmp(s->name, "response.incomplete"))
            response_object(&end, member(v, "response"));
        else
            response_event(a, s->name, v);
        json_decref(v);
    }
    require(!events_next(s), "something behind the last event");
    for (int i = 0; i < a->n_calls; i++) a->call[i].done &= end.call[i].done;
    a->finish = end.finish;
    a->usage = end.usage;
    api_answer_line(a, &told);
    api_answer_line(&end, &all);
    assert_string_equal(str_c(&told), str_c(&all));
    str_free(&told);
    str_free(&all);
    api_answer_free(&end);
}

static void response_whole(struct api_answer *a, const char *body, size_t n)
{
    json_t *r = load(body, n);
    response_object(a, r);
    json_decref(r);
}

/* ---------------------------------------------------------------- Messages */

static const char *message_finish(const json_t *v)
{
    const char *reason = word(v, "stop_reason");
    require(json_is_null(member(v, "stop_sequence")) == (strcmp(reason, "stop_sequence") != 0),
            "stop_sequence is not that of stop_reason");
    if (!strcmp(reason, "tool_use")) return "calls";
    if (!strcmp(reason, "max_tokens")) return "length";
    if (!strcmp(reason, "stop_sequence")) return "stop string";
    require(!strcmp(reason, "end_turn"), "an unknown stop_reason");
    return "stop";
}

static void message_usage(struct api_answer *a, const json_t *u)
{
    a->usage.cached = number(u, "cache_read_input_tokens");
    a->usage.prompt = number(u, "input_tokens") + number(u, "cache_creation_input_tokens") + a->usage.cached;
    a->usage.completion = number(u, "output_tokens");
}

/* The block that a stream is in. */
struct block {
    int index, open; /* open: 0 or 1 */
    char type[20];
};

static void block_start(struct api_answer *a, struct block *b, const json_t *v)
{
    const json_t *content = member(v, "content_block");
    require(!b->open && number(v, "index") == b->index, "a block is not the next one");
    snprintf(b->type, sizeof b->type, "%s", word(content, "type"));
    b->open = 1;
    if (!strcmp(b->type, "tool_use")) call_begin(a, word(content, "id"), word(content, "name"), false);
}

static void block_delta(struct api_answer *a, const struct block *b, const json_t *v)
{
    const json_t *delta = member(v, "delta");
    require(b->open && number(v, "index") == b->index, "a delta of a block that is not open");
    if (!strcmp(b->type, "thinking") && is(delta, "type", "thinking_delta"))
        add_text(&a->reasoning, delta, "thinking");
    else if (!strcmp(b->type, "text") && is(delta, "type", "text_delta"))
        add_text(&a->text, delta, "text");
    else if (!strcmp(b->type, "tool_use") && is(delta, "type", "input_json_delta"))
        add_text(&call_open(a)->arguments, delta, "partial_json");
    else
        require(!strcmp(b->type, "thinking") && is(delta, "type", "signature_delta"), "a delta of another block");
}

static void block_stop(struct api_answer *a, struct block *b, const json_t *v)
{
    require(b->open && number(v, "index") == b->index, "the end of a block that is not open");
    if (!strcmp(b->type, "tool_use")) call_open(a)->done = true;
    b->open = 0;
    b->index++;
}

static void message_event(struct api_answer *a, struct block *b, const char *type, const json_t *v)
{
    require(!a->finish, "an event behind the end");
    if (!strcmp(type, "content_block_start"))
        block_start(a, b, v);
    else if (!strcmp(type, "content_block_delta"))
        block_delta(a, b, v);
    else if (!strcmp(type, "content_block_stop"))
        block_stop(a, b, v);
    else if (!strcmp(type, "message_delta")) {
        require(!b->open, "the end within a block");
        a->finish = message_finish(member(v, "delta"));
        message_usage(a, member(v, "usage"));
    } else
        require(!strcmp(type, "ping") || !strcmp(type, "message_start"), "an unknown event");
}

static void message_stream(struct api_answer *a, struct events *s)
{
    struct block b = {0};
    for (bool first = true;; first = false) {
        require(events_next(s), "the stream ends without message_stop");
        json_t *v = event_object(s);
        const bool stop = !strcmp(s->name, "message_stop");
        require(first == !strcmp(s->name, "message_start"), "message_start is not first, once");
        if (!stop) message_event(a, &b, s->name, v);
        json_decref(v);
        if (stop) break;
    }
    require(a->finish != NULL && !events_next(s), "message_stop is not the end");
    judge_last_call(a);
}

static void message_whole(struct api_answer *a, const char *body, size_t n)
{
    json_t *m = load(body, n), *block;
    const struct json_text text = json_text_read(body, n);
    struct json_text_items it = json_text_items(json_text_member(text, "content"));
    struct json_text raw;
    size_t i;
    json_array_foreach(member(m, "content"), i, block)
    {
        require(json_text_next(&it, NULL, &raw), "two readers of JSON see different arrays");
        add_text(&a->reasoning, block, "thinking");
        add_text(&a->text, block, "text");
        if (!is(block, "type", "tool_use")) continue;
        const struct json_text input = json_text_member(raw, "input");
        require(json_is_object(member(block, "input")), "an input is no object");
        str_add(&call_begin(a, word(block, "id"), word(block, "name"), false)->arguments, input.p, input.n);
    }
    calls_done(a);
    a->finish = message_finish(m);
    message_usage(a, member(m, "usage"));
    json_decref(m);
}

/* ---------------------------------------------------------------- all */

void api_answer_read(enum api api, bool stream, const char *body, size_t n, struct api_answer *a)
{
    struct events s = {.at = body, .end = body + n};
    api_answer_free(a);
    if (api == API_CHAT)
        stream ? chat_stream(a, &s) : chat_whole(a, body, n);
    else if (api == API_RESPONSES)
        stream ? response_stream(a, &s) : response_whole(a, body, n);
    else
        stream ? message_stream(a, &s) : message_whole(a, body, n);
}

void api_answer_line(const struct api_answer *a, struct str *line)
{
    str_clear(line);
    const struct str *const parts[] = {&a->reasoning, &a->text};
    for (int i = 0; i < 2; i++) {
        if (!parts[i]->n) continue;
        str_puts(line, i ? "[T " : "[R ");
        str_add(line, parts[i]->p, parts[i]->n);
        str_puts(line, "]");
    }
    for (int i = 0; i < a->n_calls; i++) {
        const struct api_answer_call *c = &a->call[i];
        str_printf(line, "[C %s ", str_c(&c->name));
        str_add(line, c->arguments.p, c->arguments.n);
        str_puts(line, c->done ? "]" : "...");
    }
    str_printf(line, " %s", a->finish);
}

void api_answer_free(struct api_answer *a)
{
    str_free(&a->reasoning);
    str_free(&a->text);
    for (int i = 0; i < a->n_calls; i++) {
        str_free(&a->call[i].name);
        str_free(&a->call[i].arguments);
    }
    *a = (struct api_answer){0};
}
