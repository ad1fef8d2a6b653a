#include "api_talk.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

const char *talk_path(enum talk_api api)
{
    static const char *const paths[TALK_APIS] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                                 "/v1/messages"};
    return paths[api];
}

void talk_said_free(struct talk_said *a)
{
    str_free(&a->reasoning);
    str_free(&a->text);
    str_free(&a->wrong);
    for (int i = 0; i < TALK_CALLS; i++) {
        str_free(&a->call[i].id);
        str_free(&a->call[i].name);
        str_free(&a->call[i].arguments);
    }
    memset(a, 0, sizeof *a);
}

void talk_free(struct talk *t)
{
    for (int i = 0; i < TALK_STEPS; i++) talk_said_free(&t->step[i].answer);
    memset(t, 0, sizeof *t);
}

/* ---------------------------------------------------------------- JSON that may lack anything */

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static bool is(const json_t *o, const char *key, const char *value)
{
    return !strcmp(text_of(o, key), value);
}

static int number_of(const json_t *o, const char *key)
{
    return (int)json_integer_value(json_object_get(o, key));
}

/* ---------------------------------------------------------------- parts of answers */

static void wrong(struct talk_said *a, const char *why, const json_t *where)
{
    char *text = json_dumps(where, JSON_ENCODE_ANY | JSON_COMPACT);
    str_printf(&a->wrong, "%s: %.300s\n", why, text ? text : "");
    free(text);
}

static struct talk_call *call_at(struct talk_said *a, int i)
{
    if (i < 0 || i >= TALK_CALLS || i > a->n_calls) {
        str_printf(&a->wrong, "call %d of %d\n", i, a->n_calls);
        return &a->call[0];
    }
    if (i == a->n_calls) a->n_calls++;
    return &a->call[i];
}

static void add_call(struct talk_said *a, const char *id, const char *name, const char *arguments)
{
    struct talk_call *c = call_at(a, a->n_calls);
    str_puts(&c->id, id);
    str_puts(&c->name, name);
    str_puts(&c->arguments, arguments);
}

static void finished(struct talk_said *a, const char *reason)
{
    static const char *const words[][2] = {
        {"stop", "stop"},      {"end_turn", "stop"},    {"length", "length"},           {"max_tokens", "length"},
        {"tool_use", "calls"}, {"tool_calls", "calls"}, {"max_output_tokens", "length"}};
    if (a->finish) str_puts(&a->wrong, "two ends\n");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], reason)) a->finish = words[i][1];
    if (!a->finish) str_printf(&a->wrong, "finish reason %s\n", reason);
}

/* ---------------------------------------------------------------- chat and completions */

/* A message, or a piece of one. */
static void add_message(struct talk_said *a, const json_t *m)
{
    const json_t *c;
    size_t i;
    str_puts(&a->reasoning, text_of(m, "reasoning_content"));
    str_puts(&a->text, text_of(m, "content"));
    json_array_foreach(json_object_get(m, "tool_calls"), i, c)
    {
        const json_t *index = json_object_get(c, "index"), *f = json_object_get(c, "function");
        struct talk_call *call = call_at(a, index ? (int)json_integer_value(index) : (int)i);
        str_puts(&call->id, text_of(c, "id"));
        str_puts(&call->name, text_of(f, "name"));
        str_puts(&call->arguments, text_of(f, "arguments"));
    }
}

/* A whole answer, or an event of a stream. */
static void add_choices(struct talk_said *a, const json_t *o)
{
    const json_t *choice = json_array_get(json_object_get(o, "choices"), 0), *usage = json_object_get(o, "usage");
    add_message(a, json_object_get(choice, "message"));
    add_message(a, json_object_get(choice, "delta"));
    str_puts(&a->text, text_of(choice, "text"));
    if (*text_of(choice, "finish_reason")) finished(a, text_of(choice, "finish_reason"));
    if (json_is_object(usage)) a->tokens = number_of(usage, "completion_tokens");
}

/* ---------------------------------------------------------------- responses */

static void add_parts(struct str *to, const json_t *parts)
{
    const json_t *part;
    size_t i;
    json_array_foreach(parts, i, part) str_puts(to, text_of(part, "text"));
}

static void add_response(struct talk_said *a, const json_t *r)
{
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(r, "output"), i, item)
    {
        if (is(item, "type", "reasoning"))
            add_parts(&a->reasoning, json_object_get(item, "summary"));
        else if (is(item, "type", "message"))
            add_parts(&a->text, json_object_get(item, "content"));
        else if (is(item, "type", "function_call"))
            add_call(a, text_of(item, "call_id"), text_of(item, "name"), text_of(item, "arguments"));
        else
            wrong(a, "an item of another type", item);
    }
    a->tokens = number_of(json_object_get(r, "usage"), "output_tokens");
    if (is(r, "status", "completed"))
        finished(a, a->n_calls ? "tool_calls" : "stop");
    else
        finished(a, text_of(json_object_get(r, "incomplete_details"), "reason"));
}

/* The last event has everything again; the pieces must be the same. */
static void add_response_events(struct talk_said *a, const json_t *events)
{
    struct talk_said pieces = {0};
    const json_t *e;
    size_t i;
    int call = -1;
    json_array_foreach(events, i, e)
    {
        const char *type = text_of(e, "type"), *delta = text_of(e, "delta");
        if (!strcmp(type, "response.completed") || !strcmp(type, "response.incomplete"))
            add_response(a, json_object_get(e, "response"));
        else if (!strcmp(type, "response.failed"))
            wrong(a, "failed", e);
        else if (!strcmp(type, "response.output_text.delta"))
            str_puts(&pieces.text, delta);
        else if (!strcmp(type, "response.reasoning_summary_text.delta"))
            str_puts(&pieces.reasoning, delta);
        else if (!strcmp(type, "response.output_item.added") && is(json_object_get(e, "item"), "type", "function_call"))
            call = pieces.n_calls++;
        else if (!strcmp(type, "response.function_call_arguments.delta") && call >= 0 && call < TALK_CALLS)
            str_puts(&pieces.call[call].arguments, delta);
    }
    bool same = !strcmp(str_c(&pieces.text), str_c(&a->text)) &&
                !strcmp(str_c(&pieces.reasoning), str_c(&a->reasoning)) && pieces.n_calls == a->n_calls;
    for (int k = 0; same && k < a->n_calls; k++)
        same = !strcmp(str_c(&pieces.call[k].arguments), str_c(&a->call[k].arguments));
    if (!same) wrong(a, "the pieces are not the whole", events);
    talk_said_free(&pieces);
}

/* ---------------------------------------------------------------- messages */

static void add_blocks(struct talk_said *a, const json_t *message)
{
    const json_t *b;
    size_t i;
    json_array_foreach(json_object_get(message, "content"), i, b)
    {
        char *input = json_dumps(json_object_get(b, "input"), JSON_COMPACT);
        str_puts(&a->reasoning, text_of(b, "thinking"));
        str_puts(&a->text, text_of(b, "text"));
        if (is(b, "type", "tool_use")) add_call(a, text_of(b, "id"), text_of(b, "name"), input ? input : "");
        free(input);
    }
    if (*text_of(message, "stop_reason")) finished(a, text_of(message, "stop_reason"));
    a->tokens = number_of(json_object_get(message, "usage"), "output_tokens");
}

static void add_message_event(struct talk_said *a, const json_t *e)
{
    const json_t *block = json_object_get(e, "content_block"), *delta = json_object_get(e, "delta");
    if (is(e, "type", "error")) wrong(a, "failed", e);
    if (is(block, "type", "tool_use")) add_call(a, text_of(block, "id"), text_of(block, "name"), "");
    str_puts(&a->reasoning, text_of(delta, "thinking"));
    str_puts(&a->text, text_of(delta, "text"));
    if (is(delta, "type", "input_json_delta"))
        str_puts(&call_at(a, a->n_calls - 1)->arguments, text_of(delta, "partial_json"));
    if (!is(e, "type", "message_delta")) return;
    finished(a, text_of(delta, "stop_reason"));
    a->tokens = number_of(json_object_get(e, "usage"), "output_tokens");
}

/* ---------------------------------------------------------------- reading */

/* The data of all events; *end: the stream's own end was there. */
static json_t *events_of(const char *body, bool *end, struct talk_said *a)
{
    json_t *list = json_array();
    *end = false;
    for (const char *p = strstr(body, "data: "); p; p = strstr(p, "\ndata: ")) {
        p += strcspn(p, ":") + 2;
        const size_t n = strcspn(p, "\n");
        if (!strncmp(p, "[DONE]", n)) {
            *end = true;
            continue;
        }
        json_t *e = json_loadb(p, n, 0, NULL);
        if (!e) str_printf(&a->wrong, "an event that is no JSON: %.*s\n", (int)n, p);
        if (e && strstr("message_stop response.completed response.incomplete", text_of(e, "type")) &&
            *text_of(e, "type"))
            *end = true;
        json_array_append_new(list, e ? e : json_null());
    }
    return list;
}

static void read_stream(enum talk_api api, const char *body, struct talk_said *a)
{
    bool end;
    const json_t *e;
    size_t i;
    json_t *events = events_of(body, &end, a);
    if (api == TALK_RESPONSES) {
        add_response_events(a, events);
    } else {
        json_array_foreach(events, i, e)
        {
            if (api == TALK_MESSAGES)
                add_message_event(a, e);
            else if (json_object_get(e, "error"))
                wrong(a, "failed", e);
            else
                add_choices(a, e);
        }
    }
    if (!end) str_puts(&a->wrong, "the stream has no end\n");
    json_decref(events);
}

static void read_whole(enum talk_api api, const char *body, struct talk_said *a)
{
    json_t *o = json_loads(body, 0, NULL);
    if (!o) str_printf(&a->wrong, "no JSON: %.300s\n", body);
    if (api == TALK_RESPONSES)
        add_response(a, o);
    else if (api == TALK_MESSAGES)
        add_blocks(a, o);
    else
        add_choices(a, o);
    json_decref(o);
}

/* Arguments mean the same however their JSON is spaced and ordered. */
static void settle_arguments(struct talk_said *a)
{
    for (int i = 0; i < a->n_calls && i < TALK_CALLS; i++) {
        struct str *s = &a->call[i].arguments;
        json_t *v = json_loads(str_c(s), JSON_DECODE_ANY, NULL);
        char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        if (!text) str_printf(&a->wrong, "arguments that are no JSON: %s\n", str_c(s));
        str_clear(s);
        str_puts(s, text ? text : "");
        free(text);
        json_decref(v);
    }
}

void talk_read(enum talk_api api, bool stream, const char *body, struct talk_said *a)
{
    talk_said_free(a);
    if (stream)
        read_stream(api, body, a);
    else
        read_whole(api, body, a);
    settle_arguments(a);
    if (!a->finish) str_puts(&a->wrong, "no finish reason\n");
}

void talk_line(const struct talk_said *a, struct str *out)
{
    str_clear(out);
    if (a->reasoning.n) str_printf(out, "[R %s]", str_c(&a->reasoning));
    if (a->text.n) str_printf(out, "[T %s]", str_c(&a->text));
    for (int i = 0; i < a->n_calls; i++)
        str_printf(out, "[C %s %s]", str_c(&a->call[i].name), str_c(&a->call[i].arguments));
    str_printf(out, " %s, %d tokens", a->finish ? a->finish : "no end", a->tokens);
}

/* ---------------------------------------------------------------- asking */

static json_t *chat_answer(const struct talk_said *a)
{
    json_t *m = json_pack("{ss ss ss}", "role", "assistant", "content", str_c(&a->text), "reasoning_content",
                          str_c(&a->reasoning));
    json_t *calls = json_array();
    for (int i = 0; i < a->n_calls; i++)
        json_array_append_new(calls,
                              json_pack("{ss ss s{ss ss}}", "id", str_c(&a->call[i].id), "type", "function", "function",
                                        "name", str_c(&a->call[i].name), "arguments", str_c(&a->call[i].arguments)));
    if (a->n_calls) json_object_set(m, "tool_calls", calls);
    json_decref(calls);
    return m;
}

static void chat_step(json_t *list, const struct talk_step *s, const struct talk_said *before, bool answered)
{
    if (s->question)
        json_array_append_new(list, json_pack("{ss ss}", "role", "user", "content", s->question));
    else
        for (int i = 0; i < before->n_calls; i++)
            json_array_append_new(list, json_pack("{ss ss ss}", "role", "tool", "tool_call_id",
                                                  str_c(&before->call[i].id), "content", s->result));
    if (answered) json_array_append_new(list, chat_answer(&s->answer));
}

static void responses_step(json_t *list, const struct talk_step *s, const struct talk_said *before, bool answered)
{
    const struct talk_said *a = &s->answer;
    if (s->question)
        json_array_append_new(list, json_pack("{ss ss ss}", "type", "message", "role", "user", "content", s->question));
    else
        for (int i = 0; i < before->n_calls; i++)
            json_array_append_new(list, json_pack("{ss ss ss}", "type", "function_call_output", "call_id",
                                                  str_c(&before->call[i].id), "output", s->result));
    if (!answered) return;
    if (a->reasoning.n)
        json_array_append_new(list, json_pack("{ss s[{ss ss}]}", "type", "reasoning", "summary", "type", "summary_text",
                                              "text", str_c(&a->reasoning)));
    if (a->text.n)
        json_array_append_new(list, json_pack("{ss ss s[{ss ss}]}", "type", "message", "role", "assistant", "content",
                                              "type", "output_text", "text", str_c(&a->text)));
    for (int i = 0; i < a->n_calls; i++)
        json_array_append_new(list,
                              json_pack("{ss ss ss ss}", "type", "function_call", "call_id", str_c(&a->call[i].id),
                                        "name", str_c(&a->call[i].name), "arguments", str_c(&a->call[i].arguments)));
}

static json_t *messages_answer(const struct talk_said *a)
{
    json_t *parts = json_array();
    if (a->reasoning.n)
        json_array_append_new(
            parts, json_pack("{ss ss ss}", "type", "thinking", "thinking", str_c(&a->reasoning), "signature", "x"));
    if (a->text.n) json_array_append_new(parts, json_pack("{ss ss}", "type", "text", "text", str_c(&a->text)));
    for (int i = 0; i < a->n_calls; i++)
        json_array_append_new(parts, json_pack("{ss ss ss so}", "type", "tool_use", "id", str_c(&a->call[i].id), "name",
                                               str_c(&a->call[i].name), "input",
                                               json_loads(str_c(&a->call[i].arguments), 0, NULL)));
    return json_pack("{ss so}", "role", "assistant", "content", parts);
}

static void messages_step(json_t *list, const struct talk_step *s, const struct talk_said *before, bool answered)
{
    json_t *results = json_array();
    for (int i = 0; !s->question && i < before->n_calls; i++)
        json_array_append_new(results, json_pack("{ss ss ss}", "type", "tool_result", "tool_use_id",
                                                 str_c(&before->call[i].id), "content", s->result));
    if (s->question)
        json_array_append_new(list, json_pack("{ss ss}", "role", "user", "content", s->question));
    else
        json_array_append_new(list, json_pack("{ss sO}", "role", "user", "content", results));
    json_decref(results);
    if (answered) json_array_append_new(list, messages_answer(&s->answer));
}

/* The tools in the form of an API. */
static json_t *tools_of(const struct talk *t, enum talk_api api)
{
    json_t *list = json_array(), *all = json_loads(t->tools, 0, NULL), *f;
    size_t i;
    json_array_foreach(all, i, f)
    {
        if (api == TALK_CHAT) {
            json_array_append_new(list, json_pack("{ss sO}", "type", "function", "function", f));
        } else if (api == TALK_RESPONSES) {
            json_t *tool = json_pack("{ss}", "type", "function");
            json_object_update(tool, f);
            json_array_append_new(list, tool);
        } else {
            json_array_append_new(list, json_pack("{sO sO sO}", "name", json_object_get(f, "name"), "description",
                                                  json_object_get(f, "description"), "input_schema",
                                                  json_object_get(f, "parameters")));
        }
    }
    json_decref(all);
    return list;
}

static json_t *steps_of(const struct talk *t, enum talk_api api)
{
    json_t *list = json_array();
    if (api == TALK_CHAT) json_array_append_new(list, json_pack("{ss ss}", "role", "system", "content", t->system));
    for (int i = 0; i < t->n_steps; i++) {
        const struct talk_step *s = &t->step[i];
        const struct talk_said *before = i ? &t->step[i - 1].answer : NULL;
        const bool answered = i < t->n_steps - 1;
        if (api == TALK_CHAT)
            chat_step(list, s, before, answered);
        else if (api == TALK_RESPONSES)
            responses_step(list, s, before, answered);
        else
            messages_step(list, s, before, answered);
    }
    return list;
}

void talk_request(const struct talk *t, enum talk_api api, bool stream, int max_tokens, struct str *out)
{
    json_t *q = json_pack("{ss sb sf si}", "model", "any", "stream", stream, "temperature", 0.0,
                          api == TALK_RESPONSES ? "max_output_tokens" : "max_tokens", max_tokens);
    if (api == TALK_COMPLETIONS) {
        json_object_set_new(q, "prompt", json_string(t->step[t->n_steps - 1].question));
    } else {
        json_object_set_new(q, api == TALK_RESPONSES ? "input" : "messages", steps_of(t, api));
        if (t->tools) json_object_set_new(q, "tools", tools_of(t, api));
    }
    if (api == TALK_RESPONSES) {
        json_object_set_new(q, "instructions", json_string(t->system));
        json_object_set_new(q, "reasoning", json_pack("{ss}", "summary", "auto"));
    }
    if (api == TALK_MESSAGES) json_object_set_new(q, "system", json_string(t->system));
    if (stream && api <= TALK_COMPLETIONS)
        json_object_set_new(q, "stream_options", json_pack("{sb}", "include_usage", 1));
    char *text = json_dumps(q, JSON_COMPACT);
    str_clear(out);
    str_puts(out, text);
    free(text);
    json_decref(q);
}
