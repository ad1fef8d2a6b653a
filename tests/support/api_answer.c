#include "api_answer.h"
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "text/json_text.h"

/* The first breach counts; what follows from it is not looked at. */
static void wrong(struct api_answer *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void wrong(struct api_answer *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!a->wrong.n) str_vprintf(&a->wrong, fmt, ap);
    va_end(ap);
}

/* ---------------------------------------------------------------- JSON */

static json_t *load(struct api_answer *a, const char *p, size_t n)
{
    json_error_t e;
    json_t *v = json_loadb(p, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
    if (!v) wrong(a, "%s at %d: %.*s", e.text, e.position, (int)(n < 2000 ? n : 2000), p);
    return v;
}

static json_t *member(struct api_answer *a, const json_t *object, const char *name)
{
    json_t *v = json_object_get(object, name);
    if (!v) wrong(a, "no \"%s\"", name);
    return v;
}

static const char *word(struct api_answer *a, const json_t *object, const char *name)
{
    const char *text = json_string_value(member(a, object, name));
    if (!text) wrong(a, "\"%s\" is no string", name);
    return text ? text : "";
}

static int number(struct api_answer *a, const json_t *object, const char *name)
{
    return (int)json_number_value(member(a, object, name));
}

static bool is(struct api_answer *a, const json_t *object, const char *name, const char *want)
{
    return !strcmp(word(a, object, name), want);
}

/* Appends a string, or nothing for null and where there is none. */
static void add_text(struct api_answer *a, struct str *out, const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);
    if (v && !json_is_null(v) && !json_is_string(v)) wrong(a, "\"%s\" is no string", name);
    if (json_is_string(v)) str_add(out, json_string_value(v), json_string_length(v));
}

static void require(struct api_answer *a, bool condition, const char *what)
{
    if (!condition) wrong(a, "%s", what);
}

static void same(struct api_answer *a, const struct str *told, const json_t *object, const char *name)
{
    struct str all = {0};
    add_text(a, &all, object, name);
    if (all.n != told->n || memcmp(str_c(&all), str_c(told), all.n))
        wrong(a, "\"%s\" is not what was told: %s, %s", name, str_c(&all), str_c(told));
    str_free(&all);
}

/* ---------------------------------------------------------------- parts of answers */

static struct api_answer_call *call_begin(struct api_answer *a, const char *id, const char *name, bool custom)
{
    require(a, a->n_calls < API_ANSWER_CALLS, "too many calls");
    struct api_answer_call *c = &a->call[a->n_calls < API_ANSWER_CALLS ? a->n_calls++ : API_ANSWER_CALLS - 1];
    c->custom = custom;
    snprintf(c->id, sizeof c->id, "%s", id);
    str_puts(&c->name, name);
    for (int i = 0; i + 1 < a->n_calls; i++) require(a, strcmp(a->call[i].id, id) != 0, "two calls have the same id");
    return c;
}

/* The call that was begun last. */
static struct api_answer_call *call_open(struct api_answer *a)
{
    struct api_answer_call *c = &a->call[a->n_calls ? a->n_calls - 1 : 0];
    require(a, a->n_calls && !c->done, "no call is open");
    return c;
}

static void calls_done(struct api_answer *a)
{
    for (int i = 0; i < a->n_calls; i++) a->call[i].done = true;
}

/* Where an API does not say whether the limit cut the last call, clients look whether its arguments are whole. */
static void judge_last_call(struct api_answer *a)
{
    if (!a->n_calls || !a->finish || !strcmp(a->finish, "calls")) return;
    struct api_answer_call *c = &a->call[a->n_calls - 1];
    c->done = json_text_read(c->arguments.p, c->arguments.n).kind == JSON_TEXT_OBJECT;
}

static void openai_usage(struct api_answer *a, const json_t *u, bool chat)
{
    a->usage.prompt = number(a, u, chat ? "prompt_tokens" : "input_tokens");
    a->usage.completion = number(a, u, chat ? "completion_tokens" : "output_tokens");
    a->usage.cached = number(a, member(a, u, chat ? "prompt_tokens_details" : "input_tokens_details"), "cached_tokens");
    require(a, number(a, u, "total_tokens") == a->usage.prompt + a->usage.completion, "total_tokens is not the sum");
}

/* ---------------------------------------------------------------- events of a stream */

struct events {
    const char *at, *end;
    char name[64]; /* "": the event has none */
    const char *data;
    size_t n;
};

/* The next event that is no comment; false at the end of the stream. */
static bool events_next(struct api_answer *a, struct events *s)
{
    while (s->at < s->end) {
        const char *stop = memmem(s->at, (size_t)(s->end - s->at), "\n\n", 2), *p = s->at;
        require(a, stop != NULL, "the stream ends within an event");
        if (!stop) return false;
        s->at = stop + 2;
        if (*p == ':') continue;
        s->name[0] = 0;
        if (!strncmp(p, "event: ", 7)) {
            const char *line = memchr(p, '\n', (size_t)(stop - p));
            require(a, line && line - p - 7 < (ptrdiff_t)sizeof s->name, "an event without data");
            if (!line) return false;
            snprintf(s->name, sizeof s->name, "%.*s", (int)(line - p - 7), p + 7);
            p = line + 1;
        }
        const bool data = stop - p > 6 && !strncmp(p, "data: ", 6);
        require(a, data, "an event without data");
        if (!data) return false;
        s->data = p + 6;
        s->n = (size_t)(stop - s->data);
        require(a, !memchr(s->data, '\n', s->n), "data over two lines");
        return true;
    }
    return false;
}

/* The event's object, whose type is the event's name. */
static json_t *event_object(struct api_answer *a, const struct events *s)
{
    json_t *v = load(a, s->data, s->n);
    if (!is(a, v, "type", s->name)) wrong(a, "event %s is of type %s", s->name, word(a, v, "type"));
    return v;
}

/* ---------------------------------------------------------------- chat completions */

static const char *chat_finish(struct api_answer *a, const json_t *choice)
{
    const char *reason = word(a, choice, "finish_reason");
    if (!strcmp(reason, "tool_calls")) return "calls";
    require(a, !strcmp(reason, "stop") || !strcmp(reason, "length"), "an unknown finish_reason");
    return *reason == 's' ? "stop" : "length";
}

static void chat_call(struct api_answer *a, const json_t *call)
{
    const bool custom = json_object_get(call, "custom") != NULL;
    const json_t *inner = member(a, call, custom ? "custom" : "function");
    if (json_object_get(call, "id")) {
        require(a, is(a, call, "type", custom ? "custom" : "function"), "a call's type is not that of its content");
        call_begin(a, word(a, call, "id"), word(a, inner, "name"), custom);
    }
    struct api_answer_call *c = call_open(a);
    require(a, c->custom == custom, "a piece of a call that was not begun");
    add_text(a, &c->arguments, inner, custom ? "input" : "arguments");
}

static void chat_delta(struct api_answer *a, const json_t *delta)
{
    add_text(a, &a->reasoning, delta, "reasoning_content");
    if (a->text.n) require(a, !json_object_get(delta, "reasoning_content"), "reasoning behind text");
    add_text(a, &a->text, delta, "content");
    const json_t *calls = json_object_get(delta, "tool_calls"), *call = json_array_get(calls, 0);
    if (!calls) return;
    require(a, json_array_size(calls) == 1, "a delta of several calls");
    chat_call(a, call);
    require(a, number(a, call, "index") == a->n_calls - 1, "a call's index is not its place");
}

static void chat_chunk(struct api_answer *a, enum api api, const json_t *chunk, bool first)
{
    const bool chat = api == API_CHAT;
    const json_t *choice = json_array_get(member(a, chunk, "choices"), 0);
    require(a, is(a, chunk, "object", chat ? "chat.completion.chunk" : "text_completion"), "no chunk");
    if (!choice) {
        require(a, a->finish != NULL, "usage ahead of the end");
        openai_usage(a, member(a, chunk, "usage"), true);
        return;
    }
    require(a, !a->finish, "a chunk behind the last one");
    if (chat) {
        const json_t *delta = member(a, choice, "delta");
        require(a, first == (json_object_get(delta, "role") != NULL), "the role is not told once, first");
        chat_delta(a, delta);
    } else {
        add_text(a, &a->text, choice, "text");
    }
    if (!json_is_null(member(a, choice, "finish_reason"))) a->finish = chat_finish(a, choice);
}

static void chat_stream(struct api_answer *a, enum api api, struct events *s)
{
    bool next, first = true;
    for (; (next = events_next(a, s)) && (s->n != 6 || memcmp(s->data, "[DONE]", 6)); first = false) {
        json_t *chunk = load(a, s->data, s->n);
        chat_chunk(a, api, chunk, first);
        json_decref(chunk);
    }
    require(a, next, "no [DONE]");
    require(a, !events_next(a, s), "something behind [DONE]");
    require(a, a->finish != NULL, "no finish_reason");
    calls_done(a);
    judge_last_call(a);
}

static void chat_whole(struct api_answer *a, enum api api, const char *body, size_t n)
{
    json_t *answer = load(a, body, n), *call;
    const json_t *choice = json_array_get(member(a, answer, "choices"), 0);
    const json_t *m = api == API_CHAT ? member(a, choice, "message") : NULL;
    size_t i;
    require(a, is(a, answer, "object", api == API_CHAT ? "chat.completion" : "text_completion"), "another object");
    add_text(a, &a->reasoning, m, "reasoning_content");
    add_text(a, &a->text, m ? m : choice, m ? "content" : "text");
    json_array_foreach(json_object_get(m, "tool_calls"), i, call) chat_call(a, call);
    calls_done(a);
    a->finish = chat_finish(a, choice);
    openai_usage(a, member(a, answer, "usage"), true);
    json_decref(answer);
}

/* ---------------------------------------------------------------- Responses */

static bool is_call_item(struct api_answer *a, const json_t *item)
{
    return is(a, item, "type", "function_call") || is(a, item, "type", "custom_tool_call");
}

static struct api_answer_call *response_call(struct api_answer *a, const json_t *item)
{
    return call_begin(a, word(a, item, "call_id"), word(a, item, "name"), is(a, item, "type", "custom_tool_call"));
}

static void response_item(struct api_answer *a, const json_t *item)
{
    const bool complete = is(a, item, "status", "completed");
    if (is(a, item, "type", "reasoning")) {
        add_text(a, &a->reasoning, json_array_get(member(a, item, "summary"), 0), "text");
    } else if (is(a, item, "type", "message")) {
        add_text(a, &a->text, json_array_get(member(a, item, "content"), 0), "text");
    } else {
        require(a, is_call_item(a, item), "an item of an unknown type");
        struct api_answer_call *c = response_call(a, item);
        add_text(a, &c->arguments, item, c->custom ? "input" : "arguments");
        c->done = complete;
    }
}

static void response_object(struct api_answer *a, const json_t *r)
{
    json_t *item;
    size_t i;
    bool calls = false;
    json_array_foreach(member(a, r, "output"), i, item) response_item(a, item);
    for (int k = 0; k < a->n_calls; k++) calls |= a->call[k].done;
    const bool cut = is(a, r, "status", "incomplete");
    require(a, cut || is(a, r, "status", "completed"), "a response that is neither complete nor incomplete");
    require(a, cut == json_is_object(member(a, r, "incomplete_details")),
            "incomplete_details are not those of the status");
    a->finish = cut ? "length" : calls ? "calls" : "stop";
    openai_usage(a, member(a, r, "usage"), false);
}

/* What was told piece by piece against an item that is done. */
static void response_item_done(struct api_answer *a, const json_t *item)
{
    if (is(a, item, "type", "reasoning")) {
        same(a, &a->reasoning, json_array_get(member(a, item, "summary"), 0), "text");
    } else if (is(a, item, "type", "message")) {
        same(a, &a->text, json_array_get(member(a, item, "content"), 0), "text");
    } else {
        struct api_answer_call *c = call_open(a);
        same(a, &c->arguments, item, c->custom ? "input" : "arguments");
        require(a, !strcmp(c->id, word(a, item, "call_id")), "another call is done than was begun");
        c->done = true;
    }
}

static void response_event(struct api_answer *a, const char *type, const json_t *v)
{
    if (!strcmp(type, "response.output_item.added")) {
        if (is_call_item(a, member(a, v, "item"))) response_call(a, member(a, v, "item"));
    } else if (!strcmp(type, "response.reasoning_summary_text.delta")) {
        add_text(a, &a->reasoning, v, "delta");
    } else if (!strcmp(type, "response.output_text.delta")) {
        add_text(a, &a->text, v, "delta");
    } else if (!strcmp(type, "response.function_call_arguments.delta") ||
               !strcmp(type, "response.custom_tool_call_input.delta")) {
        add_text(a, &call_open(a)->arguments, v, "delta");
    } else if (!strcmp(type, "response.function_call_arguments.done")) {
        same(a, &call_open(a)->arguments, v, "arguments");
    } else if (!strcmp(type, "response.custom_tool_call_input.done")) {
        same(a, &call_open(a)->arguments, v, "input");
    } else if (!strcmp(type, "response.output_text.done")) {
        same(a, &a->text, v, "text");
    } else if (!strcmp(type, "response.reasoning_summary_text.done")) {
        same(a, &a->reasoning, v, "text");
    } else if (!strcmp(type, "response.output_item.done")) {
        response_item_done(a, member(a, v, "item"));
    } else if (strncmp(type, "response.reasoning_summary_part.", 32) && strncmp(type, "response.content_part.", 22) &&
               strcmp(type, "response.created") && strcmp(type, "response.in_progress")) {
        wrong(a, "event %s", type);
    }
}

/* What was told piece by piece against all of it, which the last event has. */
static void response_end(struct api_answer *a, const struct api_answer *end)
{
    struct str told = {0}, all = {0};
    for (int i = 0; i < a->n_calls; i++) a->call[i].done &= end->call[i].done;
    a->finish = end->finish;
    a->usage = end->usage;
    require(a, !end->wrong.n, str_c(&end->wrong));
    api_answer_line(a, &told);
    api_answer_line(end, &all);
    if (told.n != all.n || memcmp(str_c(&told), str_c(&all), all.n))
        wrong(a, "told %s, and at the end %s", str_c(&told), str_c(&all));
    str_free(&told);
    str_free(&all);
}

static void response_stream(struct api_answer *a, struct events *s)
{
    struct api_answer end = {0};
    for (int i = 0; !end.finish && events_next(a, s); i++) {
        json_t *v = event_object(a, s);
        require(a, number(a, v, "sequence_number") == i, "a sequence_number is not the next one");
        require(a, (i == 0) == !strcmp(s->name, "response.created"), "the first event is another one");
        if (!strcmp(s->name, "response.completed") || !strcmp(s->name, "response.incomplete"))
            response_object(&end, member(a, v, "response"));
        else
            response_event(a, s->name, v);
        json_decref(v);
    }
    require(a, end.finish != NULL, "the stream ends without its last event");
    require(a, !events_next(a, s), "something behind the last event");
    response_end(a, &end);
    api_answer_free(&end);
}

static void response_whole(struct api_answer *a, const char *body, size_t n)
{
    json_t *r = load(a, body, n);
    response_object(a, r);
    json_decref(r);
}

/* ---------------------------------------------------------------- Messages */

static const char *message_finish(struct api_answer *a, const json_t *v)
{
    const char *reason = word(a, v, "stop_reason");
    require(a, json_is_null(member(a, v, "stop_sequence")) == (strcmp(reason, "stop_sequence") != 0),
            "stop_sequence is not that of stop_reason");
    if (!strcmp(reason, "tool_use")) return "calls";
    if (!strcmp(reason, "max_tokens")) return "length";
    if (!strcmp(reason, "stop_sequence")) return "stop string";
    require(a, !strcmp(reason, "end_turn"), "an unknown stop_reason");
    return "stop";
}

static void message_usage(struct api_answer *a, const json_t *u)
{
    a->usage.cached = number(a, u, "cache_read_input_tokens");
    a->usage.prompt = number(a, u, "input_tokens") + number(a, u, "cache_creation_input_tokens") + a->usage.cached;
    a->usage.completion = number(a, u, "output_tokens");
}

/* The block that a stream is in. */
struct block {
    int index, open; /* open: 0 or 1 */
    char type[20];
};

static void block_start(struct api_answer *a, struct block *b, const json_t *v)
{
    const json_t *content = member(a, v, "content_block");
    require(a, !b->open && number(a, v, "index") == b->index, "a block is not the next one");
    snprintf(b->type, sizeof b->type, "%s", word(a, content, "type"));
    b->open = 1;
    if (!strcmp(b->type, "tool_use")) call_begin(a, word(a, content, "id"), word(a, content, "name"), false);
}

static void block_delta(struct api_answer *a, const struct block *b, const json_t *v)
{
    const json_t *delta = member(a, v, "delta");
    require(a, b->open && number(a, v, "index") == b->index, "a delta of a block that is not open");
    if (!strcmp(b->type, "thinking") && is(a, delta, "type", "thinking_delta"))
        add_text(a, &a->reasoning, delta, "thinking");
    else if (!strcmp(b->type, "text") && is(a, delta, "type", "text_delta"))
        add_text(a, &a->text, delta, "text");
    else if (!strcmp(b->type, "tool_use") && is(a, delta, "type", "input_json_delta"))
        add_text(a, &call_open(a)->arguments, delta, "partial_json");
    else
        require(a, !strcmp(b->type, "thinking") && is(a, delta, "type", "signature_delta"), "a delta of another block");
}

static void block_stop(struct api_answer *a, struct block *b, const json_t *v)
{
    require(a, b->open && number(a, v, "index") == b->index, "the end of a block that is not open");
    if (!strcmp(b->type, "tool_use")) call_open(a)->done = true;
    b->open = 0;
    b->index++;
}

static void message_event(struct api_answer *a, struct block *b, const char *type, const json_t *v)
{
    require(a, !a->finish, "an event behind the end");
    if (!strcmp(type, "content_block_start"))
        block_start(a, b, v);
    else if (!strcmp(type, "content_block_delta"))
        block_delta(a, b, v);
    else if (!strcmp(type, "content_block_stop"))
        block_stop(a, b, v);
    else if (!strcmp(type, "message_delta")) {
        require(a, !b->open, "the end within a block");
        a->finish = message_finish(a, member(a, v, "delta"));
        message_usage(a, member(a, v, "usage"));
    } else
        require(a, !strcmp(type, "ping") || !strcmp(type, "message_start"), "an unknown event");
}

static void message_stream(struct api_answer *a, struct events *s)
{
    struct block b = {0};
    bool stop = false;
    for (bool first = true; !stop && events_next(a, s); first = false) {
        json_t *v = event_object(a, s);
        stop = !strcmp(s->name, "message_stop");
        require(a, first == !strcmp(s->name, "message_start"), "message_start is not first, once");
        if (!stop) message_event(a, &b, s->name, v);
        json_decref(v);
    }
    require(a, stop && a->finish, "the stream ends without message_stop");
    require(a, !events_next(a, s), "something behind message_stop");
    judge_last_call(a);
}

static void message_whole(struct api_answer *a, const char *body, size_t n)
{
    json_t *m = load(a, body, n), *block;
    const struct json_text text = json_text_read(body, n);
    struct json_text_items it = json_text_items(json_text_member(text, "content"));
    struct json_text raw;
    size_t i;
    json_array_foreach(member(a, m, "content"), i, block)
    {
        require(a, json_text_next(&it, NULL, &raw), "two readers of JSON see different arrays");
        add_text(a, &a->reasoning, block, "thinking");
        add_text(a, &a->text, block, "text");
        if (!is(a, block, "type", "tool_use")) continue;
        const struct json_text input = json_text_member(raw, "input");
        require(a, json_is_object(member(a, block, "input")), "an input is no object");
        str_add(&call_begin(a, word(a, block, "id"), word(a, block, "name"), false)->arguments, input.p, input.n);
    }
    calls_done(a);
    a->finish = message_finish(a, m);
    message_usage(a, member(a, m, "usage"));
    json_decref(m);
}

/* ---------------------------------------------------------------- all */

void api_answer_read(enum api api, bool stream, const char *body, size_t n, struct api_answer *a)
{
    struct events s = {.at = body, .end = body + n};
    api_answer_free(a);
    if (api == API_CHAT || api == API_COMPLETIONS)
        stream ? chat_stream(a, api, &s) : chat_whole(a, api, body, n);
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
    str_printf(line, " %s", a->finish ? a->finish : "no end");
}

void api_answer_free(struct api_answer *a)
{
    str_free(&a->reasoning);
    str_free(&a->text);
    str_free(&a->wrong);
    for (int i = 0; i < API_ANSWER_CALLS; i++) {
        str_free(&a->call[i].name);
        str_free(&a->call[i].arguments);
    }
    *a = (struct api_answer){0};
}
