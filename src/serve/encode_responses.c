/* Answers of the Responses API. */
#include <string.h>
#include "base/mem.h"
#include "serve/encoder_internal.h"

/* ---------------------------------------------------------------- the response object */

static void put_echo(const struct encoder *e, const char *name, const char *absent, struct str *out)
{
    const json_t *v = json_object_get(e->r->body, name);
    char *text = v && !json_is_null(v) ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    str_printf(out, ",\"%s\":%s", name, text ? text : absent);
    mem_free(text);
}

/* The tools as they were given, with what a function must have. */
static void put_tools(const struct encoder *e, struct str *out)
{
    const json_t *given = json_object_get(e->r->body, "tools"), *tool;
    size_t i;
    str_puts(out, ",\"tools\":[");
    json_array_foreach(given, i, tool)
    {
        json_t *t = json_copy((json_t *)tool);
        const char *type = json_string_value(json_object_get(t, "type"));
        if (!type || !strcmp(type, "function")) {
            if (!json_object_get(t, "parameters")) json_object_set_new(t, "parameters", json_null());
            if (!json_object_get(t, "strict")) json_object_set_new(t, "strict", json_null());
        }
        char *text = json_dumps(t, JSON_COMPACT);
        str_printf(out, i ? ",%s" : "%s", text);
        mem_free(text);
        json_decref(t);
    }
    str_puts(out, "]");
}

/* What was asked, as the service says it back. */
static void put_echoes(const struct encoder *e, struct str *out)
{
    static const char *const echoes[][2] = {{"instructions", "null"},
                                            {"max_output_tokens", "null"},
                                            {"metadata", "{}"},
                                            {"parallel_tool_calls", "true"},
                                            {"previous_response_id", "null"},
                                            {"store", "false"},
                                            {"temperature", "1"},
                                            {"tool_choice", "\"auto\""},
                                            {"top_p", "1"},
                                            {"user", "null"},
                                            {"prompt_cache_key", "null"}};
    for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++) put_echo(e, echoes[i][0], echoes[i][1], out);
    put_tools(e, out);
    const json_t *reasoning = json_object_get(e->r->body, "reasoning"), *text = json_object_get(e->r->body, "text");
    const char *effort = json_string_value(json_object_get(reasoning, "effort")),
               *summary = json_string_value(json_object_get(reasoning, "summary")),
               *verbosity = json_string_value(json_object_get(text, "verbosity"));
    str_puts(out, ",\"reasoning\":{\"effort\":");
    effort ? put_c(out, effort) : str_puts(out, "null");
    str_puts(out, ",\"summary\":");
    summary ? put_c(out, summary) : str_puts(out, "null");
    str_puts(out, "},\"text\":{\"format\":{\"type\":\"text\"}");
    if (verbosity) {
        str_puts(out, ",\"verbosity\":");
        put_c(out, verbosity);
    }
    str_puts(
        out,
        "},\"truncation\":\"disabled\",\"background\":false,\"service_tier\":\"default\",\"access_programs\":null");
}

static void put_usage_object(const struct encoder *e, struct str *out)
{
    const struct usage *u = &e->usage;
    str_printf(out,
               "{\"input_tokens\":%d,\"input_tokens_details\":{\"cached_tokens\":%d,\"cache_write_tokens\":%d},"
               "\"output_tokens\":%d,\"output_tokens_details\":{\"reasoning_tokens\":%d},\"total_tokens\":%d}",
               u->prompt, u->cached, u->prompt - u->cached, u->completion, u->reasoning, u->prompt + u->completion);
}

/* why: of a failed one. */
static void put_response(const struct encoder *e, const char *status, const struct api_error *why, struct str *out)
{
    const bool running = !strcmp(status, "in_progress");
    str_puts(out, "{\"id\":");
    put_c(out, e->id);
    str_printf(out,
               ",\"object\":\"response\",\"created_at\":%lld,\"status\":\"%s\",\"model\":", (long long)e->r->created,
               status);
    put_c(out, e->model);
    str_puts(out, ",\"error\":");
    if (why) {
        str_puts(out, "{\"code\":\"server_error\",\"message\":");
        put_c(out, why->message);
        str_puts(out, "}");
    } else {
        str_puts(out, "null");
    }
    str_puts(out, ",\"incomplete_details\":");
    str_puts(out, strcmp(status, "incomplete") ? "null" : "{\"reason\":\"max_output_tokens\"}");
    str_puts(out, ",\"output\":[");
    if (!running) str_add(out, e->items.p, e->items.n);
    str_puts(out, "]");
    put_echoes(e, out);
    str_puts(out, ",\"usage\":");
    if (running || why)
        str_puts(out, "null");
    else
        put_usage_object(e, out);
    str_puts(out, "}");
}

/* ---------------------------------------------------------------- items */

static void put_item_head(const struct encoder *e, const char *type, const char *status, struct str *out)
{
    str_puts(out, "{\"id\":");
    put_c(out, e->item);
    str_printf(out, ",\"type\":\"%s\",\"status\":\"%s\"", type, status);
}

static void put_part(const char *type, const struct str *text, struct str *out)
{
    str_printf(out, "{\"type\":\"%s\",\"text\":", type);
    put_str(out, text);
    str_puts(out, strcmp(type, "output_text") ? "}" : ",\"annotations\":[],\"logprobs\":[]}");
}

static void put_reasoning(const struct encoder *e, const char *status, bool begun, struct str *out)
{
    put_item_head(e, "reasoning", status, out);
    str_puts(out, ",\"summary\":[");
    if (begun) put_part("summary_text", &e->reasoning, out);
    str_puts(out, "]}");
}

static void put_message(const struct encoder *e, const char *status, bool begun, struct str *out)
{
    put_item_head(e, "message", status, out);
    str_puts(out, ",\"role\":\"assistant\",\"content\":[");
    if (begun) put_part("output_text", &e->text, out);
    str_puts(out, "]}");
}

/* The object that a hosted tool's call holds; {} until it is complete. */
static void put_object(const struct told_call *c, struct str *out)
{
    if (c->done)
        str_add(out, c->arguments.p, c->arguments.n);
    else
        str_puts(out, "{}");
}

static void put_call(const struct encoder *e, const struct told_call *c, const char *status, bool begun,
                     struct str *out)
{
    static const char *const types[] = {[TOOL_FUNCTION] = "function_call",
                                        [TOOL_CUSTOM] = "custom_tool_call",
                                        [TOOL_SEARCH] = "tool_search_call",
                                        [TOOL_LOCAL_SHELL] = "local_shell_call"};
    const struct request_tool *t = tool_of(e, c);
    put_item_head(e, types[t->form], status, out);
    str_puts(out, ",\"call_id\":");
    put_c(out, c->id);
    if (t->form == TOOL_SEARCH) {
        str_puts(out, ",\"execution\":\"client\",\"arguments\":");
        put_object(c, out);
    } else if (t->form == TOOL_LOCAL_SHELL) {
        str_puts(out, ",\"action\":{\"type\":\"exec\",\"env\":{},\"command\":");
        const struct json_text object = json_text_read(c->arguments.p, c->arguments.n);
        const struct json_text command = c->done ? json_text_member(object, "command") : (struct json_text){0};
        str_add(out, command.n ? command.p : "[]", command.n ? command.n : 2);
        str_puts(out, "}");
    } else {
        str_puts(out, ",\"name\":");
        put_c(out, t->wire_name);
        if (t->namespace_) {
            str_puts(out, ",\"namespace\":");
            put_c(out, t->namespace_);
        }
        str_puts(out, t->form == TOOL_CUSTOM ? ",\"input\":" : ",\"arguments\":");
        put_quoted(out, c->arguments.p, begun ? c->arguments.n : 0);
    }
    str_puts(out, "}");
}

/* The open item. begun: with what it holds; else as it is announced. */
static void put_item(struct encoder *e, const char *status, bool begun, struct str *out)
{
    if (e->open == OPEN_REASONING)
        put_reasoning(e, status, begun, out);
    else if (e->open == OPEN_TEXT)
        put_message(e, status, begun, out);
    else
        put_call(e, open_call(e), status, begun, out);
}

static void add_item(struct encoder *e, const char *status)
{
    if (e->items.n) str_puts(&e->items, ",");
    put_item(e, status, true, &e->items);
}

/* ---------------------------------------------------------------- events */

static void event_begin(struct encoder *e, const char *type, struct str *out)
{
    str_printf(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%lld", type, type, (long long)e->sequence++);
}

static void event_end(struct str *out)
{
    str_puts(out, "}\n\n");
}

static void response_event(struct encoder *e, const char *type, const char *status, const struct api_error *why,
                           struct str *out)
{
    event_begin(e, type, out);
    str_puts(out, ",\"response\":");
    put_response(e, status, why, out);
    event_end(out);
}

static void begin(struct encoder *e, struct str *out)
{
    if (e->begun) return;
    e->begun = true;
    response_event(e, "response.created", "in_progress", NULL, out);
    response_event(e, "response.in_progress", "in_progress", NULL, out);
}

static void alive(struct encoder *e, struct str *out)
{
    if (e->begun)
        response_event(e, "response.in_progress", "in_progress", NULL, out);
    else
        begin(e, out);
}

/* An event about the open item; part_index: "summary_index" or "content_index", or NULL. */
static void item_event(struct encoder *e, const char *type, const char *part_index, struct str *out)
{
    event_begin(e, type, out);
    str_puts(out, ",\"item_id\":");
    put_c(out, e->item);
    str_printf(out, ",\"output_index\":%d", e->index);
    if (part_index) str_printf(out, ",\"%s\":0", part_index);
}

static void part_event(struct encoder *e, const char *type, bool begun, struct str *out)
{
    static const struct str nothing;
    const bool text = e->open == OPEN_TEXT;
    item_event(e, type, text ? "content_index" : "summary_index", out);
    str_puts(out, ",\"part\":");
    put_part(text ? "output_text" : "summary_text", !begun ? &nothing : text ? &e->text : &e->reasoning, out);
    event_end(out);
}

static void whole_event(struct encoder *e, const char *type, const char *part_index, const char *member,
                        const struct str *text, struct str *out)
{
    item_event(e, type, part_index, out);
    str_printf(out, ",\"%s\":", member);
    put_str(out, text);
    if (e->open == OPEN_TEXT) str_puts(out, ",\"logprobs\":[]");
    if (e->open == OPEN_CALL && !strcmp(member, "arguments")) {
        str_puts(out, ",\"name\":");
        put_c(out, tool_of(e, open_call(e))->wire_name);
    }
    event_end(out);
}

static bool has_arguments_events(struct encoder *e)
{
    const enum tool_form form = tool_of(e, open_call(e))->form;
    return form == TOOL_FUNCTION || form == TOOL_CUSTOM;
}

static void close_parts(struct encoder *e, struct str *out)
{
    if (e->open == OPEN_REASONING) {
        whole_event(e, "response.reasoning_summary_text.done", "summary_index", "text", &e->reasoning, out);
        part_event(e, "response.reasoning_summary_part.done", true, out);
    } else if (e->open == OPEN_TEXT) {
        whole_event(e, "response.output_text.done", "content_index", "text", &e->text, out);
        part_event(e, "response.content_part.done", true, out);
    } else if (has_arguments_events(e)) {
        const bool custom = tool_of(e, open_call(e))->form == TOOL_CUSTOM;
        whole_event(e, custom ? "response.custom_tool_call_input.done" : "response.function_call_arguments.done", NULL,
                    custom ? "input" : "arguments", &open_call(e)->arguments, out);
    }
}

static void close_item(struct encoder *e, const char *status, struct str *out)
{
    if (e->open == OPEN_NONE) return;
    if (e->r->stream) {
        close_parts(e, out);
        event_begin(e, "response.output_item.done", out);
        str_printf(out, ",\"output_index\":%d,\"item\":", e->index);
        put_item(e, status, true, out);
        event_end(out);
    }
    add_item(e, status);
    e->index++;
    e->open = OPEN_NONE;
}

static const char *item_prefix(struct encoder *e, enum open_part part)
{
    static const char *const calls[] = {
        [TOOL_FUNCTION] = "fc_", [TOOL_CUSTOM] = "ctc_", [TOOL_SEARCH] = "tsc_", [TOOL_LOCAL_SHELL] = "lsh_"};
    if (part == OPEN_CALL) return calls[tool_of(e, open_call(e))->form];
    return part == OPEN_TEXT ? "msg_" : "rs_";
}

static void open_item(struct encoder *e, enum open_part part, struct str *out)
{
    if (e->open == part && part != OPEN_CALL) return;
    close_item(e, "completed", out);
    e->open = part;
    tool_memory_id(item_prefix(e, part), e->item);
    if (!e->r->stream) return;
    event_begin(e, "response.output_item.added", out);
    str_printf(out, ",\"output_index\":%d,\"item\":", e->index);
    put_item(e, "in_progress", false, out);
    event_end(out);
    if (part == OPEN_TEXT) part_event(e, "response.content_part.added", false, out);
    if (part == OPEN_REASONING) part_event(e, "response.reasoning_summary_part.added", false, out);
}

static void delta_event(struct encoder *e, const char *type, const char *part_index, const struct event *v,
                        struct str *out)
{
    if (!e->r->stream) return;
    item_event(e, type, part_index, out);
    str_puts(out, ",\"delta\":");
    put_quoted(out, v->bytes, v->n);
    if (e->open == OPEN_TEXT) str_puts(out, ",\"logprobs\":[]");
    event_end(out);
}

/* Also without a stream: the items are made the same way. */
static void event(struct encoder *e, const struct event *v, struct str *out)
{
    switch (v->kind) {
    case EVENT_REASONING:
        if (!e->r->summaries) break;
        open_item(e, OPEN_REASONING, out);
        delta_event(e, "response.reasoning_summary_text.delta", "summary_index", v, out);
        break;
    case EVENT_TEXT:
        open_item(e, OPEN_TEXT, out);
        delta_event(e, "response.output_text.delta", "content_index", v, out);
        break;
    case EVENT_CALL_BEGIN:
        open_item(e, OPEN_CALL, out);
        break;
    case EVENT_CALL_ARGUMENTS:
        if (has_arguments_events(e))
            delta_event(e,
                        tool_of(e, open_call(e))->form == TOOL_CUSTOM ? "response.custom_tool_call_input.delta"
                                                                      : "response.function_call_arguments.delta",
                        NULL, v, out);
        break;
    case EVENT_CALL_END:
        close_item(e, "completed", out);
        break;
    case EVENT_LOGPROBS:
        break;
    }
}

static const char *status_of(const struct answer_result *result)
{
    return result->finish == FINISH_LENGTH ? "incomplete" : "completed";
}

/* What is open at the end was cut, unless the answer just ended there. */
static void close_last(struct encoder *e, const struct answer_result *result, struct str *out)
{
    const bool cut = result->finish == FINISH_LENGTH || (e->open == OPEN_REASONING && !result->thinking_closed);
    if (e->open == OPEN_CALL && !e->r->stream)
        e->open = OPEN_NONE; /* its arguments cannot be used, and nobody has seen it */
    close_item(e, cut ? "incomplete" : "completed", out);
}

static void end(struct encoder *e, const struct answer_result *result, struct str *out)
{
    const char *status = status_of(result);
    close_last(e, result, out);
    response_event(e, strcmp(status, "completed") ? "response.incomplete" : "response.completed", status, NULL, out);
}

static void whole(struct encoder *e, const struct answer_result *result, struct str *out)
{
    close_last(e, result, out);
    put_response(e, status_of(result), NULL, out);
    str_puts(out, "\n");
}

static void error(struct encoder *e, const struct api_error *why, struct str *out)
{
    begin(e, out);
    close_item(e, "incomplete", out);
    response_event(e, "response.failed", "failed", why, out);
}

const struct encoder_ops encoder_responses = {"resp_", begin, alive, event, end, error, whole};
