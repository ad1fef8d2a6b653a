/* Answers of the Messages API. */
#include "serve/encoder_internal.h"

/* The counts of so many tokens of the answer. How many of them are thinking is left open: a message that begins does
 * not know, and clients take the rest of its usage from there. */
static void put_usage_members(const struct encoder *e, int output, struct str *out)
{
    const struct usage *u = &e->usage;
    const int fresh = u->prompt - u->cached;
    const bool writes = e->r->cache_control; /* then what was read anew counts as written to the cache */
    str_printf(
        out,
        "\"input_tokens\":%d,\"cache_creation_input_tokens\":%d,\"cache_read_input_tokens\":%d,\"output_tokens\":%d,"
        "\"output_tokens_details\":null,\"server_tool_use\":null",
        writes ? 0 : fresh, writes ? fresh : 0, u->cached, output);
}

/* The usage of a whole message, which has members more. */
static void put_message_usage(const struct encoder *e, int output, struct str *out)
{
    str_puts(out, "\"usage\":{");
    put_usage_members(e, output, out);
    str_puts(out, ",\"cache_creation\":null,\"inference_geo\":null,\"service_tier\":\"standard\",\"speed\":null}");
}

static const char *stop_reason(enum finish f)
{
    return f == FINISH_CALLS    ? "tool_use"
           : f == FINISH_LENGTH ? "max_tokens"
           : f == FINISH_STOP   ? "end_turn"
                                : "stop_sequence";
}

/* result: NULL while the answer is being written. */
static void put_stop(const struct answer_result *result, struct str *out)
{
    str_puts(out, "\"container\":null,\"stop_details\":null,\"stop_reason\":");
    result ? put_c(out, stop_reason(result->finish)) : str_puts(out, "null");
    str_puts(out, ",\"stop_sequence\":");
    if (result && result->finish == FINISH_STOP_STRING)
        put_c(out, result->stop_string);
    else
        str_puts(out, "null");
}

static void put_message_head(const struct encoder *e, struct str *out)
{
    str_puts(out, "\"id\":");
    put_c(out, e->id);
    str_puts(out, ",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    put_c(out, e->model);
    str_puts(out, ",\"diagnostics\":null");
}

static void put_use(const struct encoder *e, const struct told_call *c, const char *input, size_t n, struct str *out)
{
    str_puts(out, "{\"type\":\"tool_use\",\"id\":");
    put_c(out, c->id);
    str_puts(out, ",\"name\":");
    put_c(out, tool_of(e, c)->wire_name);
    str_puts(out, ",\"input\":");
    str_add(out, input, n);
    str_puts(out, ",\"caller\":{\"type\":\"direct\"}}");
}

/* ---------------------------------------------------------------- streamed */

static void event_begin(const char *type, struct str *out)
{
    str_printf(out, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void event_end(struct str *out)
{
    str_puts(out, "}\n\n");
}

static void ping(struct encoder *e, struct str *out)
{
    event_begin("ping", out);
    event_end(out);
}

static void started(struct encoder *e, struct str *out)
{
    event_begin("message_start", out);
    str_puts(out, ",\"message\":{");
    put_message_head(e, out);
    str_puts(out, ",\"content\":[],");
    put_stop(NULL, out);
    str_puts(out, ",");
    put_message_usage(e, 0, out);
    str_puts(out, "}");
    event_end(out);
    ping(e, out);
}

static void close_block(struct encoder *e, struct str *out)
{
    if (e->open == OPEN_NONE) return;
    if (e->open == OPEN_REASONING) {
        event_begin("content_block_delta", out);
        str_printf(out, ",\"index\":%d,\"delta\":{\"type\":\"signature_delta\",\"signature\":", e->index);
        put_c(out, e->id);
        str_puts(out, "}");
        event_end(out);
    }
    event_begin("content_block_stop", out);
    str_printf(out, ",\"index\":%d", e->index++);
    event_end(out);
    e->open = OPEN_NONE;
}

static void open_block(struct encoder *e, enum open_part part, struct str *out)
{
    if (e->open == part && part != OPEN_CALL) return;
    close_block(e, out);
    e->open = part;
    event_begin("content_block_start", out);
    str_printf(out, ",\"index\":%d,\"content_block\":", e->index);
    if (part == OPEN_REASONING)
        str_puts(out, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
    else if (part == OPEN_TEXT)
        str_puts(out, "{\"type\":\"text\",\"text\":\"\"}");
    else
        put_use(e, open_call(e), "{}", 2, out);
    event_end(out);
}

static void put_delta(const struct encoder *e, const char *type, const char *member, const struct event *v,
                      struct str *out)
{
    event_begin("content_block_delta", out);
    str_printf(out, ",\"index\":%d,\"delta\":{\"type\":\"%s\",\"%s\":", e->index, type, member);
    put_quoted(out, v->bytes, v->n);
    str_puts(out, "}");
    event_end(out);
}

static void event(struct encoder *e, const struct event *v, struct str *out)
{
    switch (v->kind) {
    case EVENT_REASONING:
        open_block(e, OPEN_REASONING, out);
        put_delta(e, "thinking_delta", "thinking", v, out);
        break;
    case EVENT_TEXT:
        open_block(e, OPEN_TEXT, out);
        put_delta(e, "text_delta", "text", v, out);
        break;
    case EVENT_CALL_BEGIN:
        open_block(e, OPEN_CALL, out);
        break;
    case EVENT_CALL_ARGUMENTS:
        put_delta(e, "input_json_delta", "partial_json", v, out);
        break;
    case EVENT_CALL_END:
        close_block(e, out);
        break;
    case EVENT_LOGPROBS:
        break;
    }
}

/* Some clients cannot do without a text or a call. */
static bool wants_empty_text(const struct encoder *e)
{
    const bool told = e->n_calls && (e->r->stream || e->call[0].done);
    return !e->text.n && !told;
}

static void end(struct encoder *e, const struct answer_result *result, struct str *out)
{
    if (wants_empty_text(e)) open_block(e, OPEN_TEXT, out);
    close_block(e, out);
    event_begin("message_delta", out);
    str_puts(out, ",\"delta\":{");
    put_stop(result, out);
    str_puts(out, "},\"usage\":{");
    put_usage_members(e, e->usage.completion, out);
    str_puts(out, "}");
    event_end(out);
    event_begin("message_stop", out);
    event_end(out);
}

static void error(struct encoder *e, const struct api_error *why, struct str *out)
{
    str_puts(out, "event: error\ndata: ");
    put_anthropic_error(out, why);
    str_puts(out, "\n\n");
}

/* ---------------------------------------------------------------- whole */

static void put_content(const struct encoder *e, struct str *out)
{
    const char *comma = "";
    if (e->reasoning.n) {
        str_puts(out, "{\"type\":\"thinking\",\"thinking\":");
        put_str(out, &e->reasoning);
        str_puts(out, ",\"signature\":");
        put_c(out, e->id);
        str_puts(out, "}");
        comma = ",";
    }
    if (e->text.n || wants_empty_text(e)) {
        str_printf(out, "%s{\"type\":\"text\",\"text\":", comma);
        put_str(out, &e->text);
        str_puts(out, "}");
        comma = ",";
    }
    for (size_t i = 0; i < e->n_calls; i++) {
        if (!e->call[i].done) continue;
        str_puts(out, comma);
        put_use(e, &e->call[i], e->call[i].arguments.p, e->call[i].arguments.n, out);
        comma = ",";
    }
}

static void whole(struct encoder *e, const struct answer_result *result, struct str *out)
{
    str_puts(out, "{");
    put_message_head(e, out);
    str_puts(out, ",\"content\":[");
    put_content(e, out);
    str_puts(out, "],");
    put_stop(result, out);
    str_puts(out, ",");
    put_message_usage(e, e->usage.completion, out);
    str_puts(out, "}\n");
}

const struct encoder_ops encoder_messages = {"msg_", started, ping, event, end, error, whole};
