/* Answers of chat completions, and of the old completions. */
#include "serve/encoder_internal.h"

static const char *finish_name(const struct encoder *e, enum finish f)
{
    if (f == FINISH_CALLS && e->r->api == API_CHAT) return "tool_calls";
    return f == FINISH_LENGTH ? "length" : "stop";
}

static void put_head(const struct encoder *e, const char *object, struct str *out)
{
    str_puts(out, "{\"id\":");
    put_c(out, e->id);
    str_printf(out, ",\"object\":\"%s\",\"created\":%lld,\"model\":", object, (long long)e->r->created);
    put_c(out, e->model);
    str_puts(out, ",\"choices\":[");
}

/* Log-probabilities of tokens not told yet, or null. */
static void put_logprobs(struct encoder *e, struct str *out)
{
    if (!e->logprobs.n) {
        str_puts(out, "null");
        return;
    }
    str_puts(out, "{\"content\":[");
    str_add(out, e->logprobs.p, e->logprobs.n);
    str_puts(out, "],\"refusal\":null}");
    str_clear(&e->logprobs);
}

/* ---------------------------------------------------------------- chat, streamed */

static void chunk_begin(const struct encoder *e, struct str *out)
{
    str_puts(out, "data: ");
    put_head(e, "chat.completion.chunk", out);
    str_puts(out, "{\"index\":0,\"delta\":{");
}

static void chunk_end(struct encoder *e, const char *finish, struct str *out)
{
    str_puts(out, "},");
    if (e->logprobs.n) {
        str_puts(out, "\"logprobs\":");
        put_logprobs(e, out);
        str_puts(out, ",");
    }
    str_puts(out, "\"finish_reason\":");
    if (finish)
        put_c(out, finish);
    else
        str_puts(out, "null");
    str_puts(out, e->r->include_usage ? "}],\"usage\":null}\n\n" : "}]}\n\n");
}

static void chat_started(struct encoder *e, struct str *out)
{
    if (e->begun) return;
    e->begun = true;
    chunk_begin(e, out);
    str_puts(out, "\"role\":\"assistant\",\"content\":\"\"");
    chunk_end(e, NULL, out);
}

static void chat_alive(struct encoder *e, struct str *out)
{
    if (!e->begun) {
        chat_started(e, out);
        return;
    }
    chunk_begin(e, out);
    chunk_end(e, NULL, out);
}

/* A call as "function" with arguments, or as "custom" with input. */
static void put_call(const struct encoder *e, const struct told_call *c, const struct str *arguments, struct str *out)
{
    const struct request_tool *t = tool_of(e, c);
    const bool custom = t->form == TOOL_CUSTOM;
    str_puts(out, "\"id\":");
    put_c(out, c->id);
    str_puts(out,
             custom ? ",\"type\":\"custom\",\"custom\":{\"name\":" : ",\"type\":\"function\",\"function\":{\"name\":");
    put_c(out, t->wire_name);
    str_puts(out, custom ? ",\"input\":" : ",\"arguments\":");
    put_str(out, arguments);
    str_puts(out, "}");
}

static void chat_event(struct encoder *e, const struct event *v, struct str *out)
{
    static const struct str nothing;
    const bool custom = v->kind == EVENT_CALL_ARGUMENTS && tool_of(e, open_call(e))->form == TOOL_CUSTOM;
    if (v->kind == EVENT_LOGPROBS || v->kind == EVENT_CALL_END) return;
    chunk_begin(e, out);
    switch (v->kind) {
    case EVENT_REASONING:
    case EVENT_TEXT:
        str_puts(out, v->kind == EVENT_TEXT ? "\"content\":" : "\"reasoning_content\":");
        put_quoted(out, v->bytes, v->n);
        break;
    case EVENT_CALL_BEGIN:
        str_printf(out, "\"tool_calls\":[{\"index\":%zu,", e->n_calls - 1);
        put_call(e, open_call(e), &nothing, out);
        str_puts(out, "}]");
        break;
    default:
        str_printf(out, "\"tool_calls\":[{\"index\":%zu,\"%s\":{\"%s\":", e->n_calls - 1,
                   custom ? "custom" : "function", custom ? "input" : "arguments");
        put_quoted(out, v->bytes, v->n);
        str_puts(out, "}}]");
        break;
    }
    chunk_end(e, NULL, out);
}

static void put_usage_chunk(const struct encoder *e, const char *object, struct str *out)
{
    str_puts(out, "data: ");
    put_head(e, object, out);
    str_puts(out, "],\"usage\":");
    put_usage(out, &e->usage);
    str_puts(out, "}\n\n");
}

static void chat_end(struct encoder *e, const struct answer_result *result, struct str *out)
{
    chunk_begin(e, out);
    chunk_end(e, finish_name(e, result->finish), out);
    if (e->r->include_usage) put_usage_chunk(e, "chat.completion.chunk", out);
    str_puts(out, "data: [DONE]\n\n");
}

static void openai_error(struct encoder *e, const struct api_error *why, struct str *out)
{
    str_puts(out, "data: {\"error\":");
    put_openai_error(out, why);
    str_puts(out, "}\n\ndata: [DONE]\n\n");
}

/* ---------------------------------------------------------------- chat, whole */

/* A call that was cut has no arguments that could be used. */
static size_t n_whole_calls(const struct encoder *e)
{
    return e->n_calls && !e->call[e->n_calls - 1].done ? e->n_calls - 1 : e->n_calls;
}

static void put_message(const struct encoder *e, struct str *out)
{
    const size_t n = n_whole_calls(e);
    str_puts(out, "{\"role\":\"assistant\",\"content\":");
    if (n && !e->text.n)
        str_puts(out, "null");
    else
        put_str(out, &e->text);
    if (e->reasoning.n) {
        str_puts(out, ",\"reasoning_content\":");
        put_str(out, &e->reasoning);
    }
    str_puts(out, ",\"refusal\":null");
    for (size_t i = 0; i < n; i++) {
        str_puts(out, i ? ",{" : ",\"tool_calls\":[{");
        put_call(e, &e->call[i], &e->call[i].arguments, out);
        str_puts(out, "}");
    }
    str_puts(out, n ? "]}" : "}");
}

static void chat_whole(struct encoder *e, const struct answer_result *result, struct str *out)
{
    put_head(e, "chat.completion", out);
    str_puts(out, "{\"index\":0,\"message\":");
    put_message(e, out);
    str_puts(out, ",\"logprobs\":");
    put_logprobs(e, out);
    str_puts(out, ",\"finish_reason\":");
    put_c(out, finish_name(e, result->finish));
    str_puts(out, "}],\"usage\":");
    put_usage(out, &e->usage);
    str_puts(out, "}\n");
}

const struct encoder_ops encoder_chat = {"chatcmpl-", chat_started, chat_alive, chat_event,
                                         chat_end,    openai_error, chat_whole};

/* ---------------------------------------------------------------- completions */

static void put_choice(const char *text, size_t n, const char *finish, struct str *out)
{
    str_puts(out, "{\"text\":");
    put_quoted(out, text, n);
    str_puts(out, ",\"index\":0,\"logprobs\":null,\"finish_reason\":");
    if (finish)
        put_c(out, finish);
    else
        str_puts(out, "null");
    str_puts(out, "}]");
}

static void put_text_chunk(const struct encoder *e, const char *text, size_t n, const char *finish, struct str *out)
{
    str_puts(out, "data: ");
    put_head(e, "text_completion", out);
    put_choice(text, n, finish, out);
    str_puts(out, e->r->include_usage ? ",\"usage\":null}\n\n" : "}\n\n");
}

static void completions_started(struct encoder *e, struct str *out)
{
}

static void completions_alive(struct encoder *e, struct str *out)
{
    put_text_chunk(e, "", 0, NULL, out);
}

static void completions_event(struct encoder *e, const struct event *v, struct str *out)
{
    if (v->kind == EVENT_TEXT) put_text_chunk(e, v->bytes, v->n, NULL, out);
}

static void completions_end(struct encoder *e, const struct answer_result *result, struct str *out)
{
    put_text_chunk(e, "", 0, finish_name(e, result->finish), out);
    if (e->r->include_usage) put_usage_chunk(e, "text_completion", out);
    str_puts(out, "data: [DONE]\n\n");
}

static void completions_whole(struct encoder *e, const struct answer_result *result, struct str *out)
{
    put_head(e, "text_completion", out);
    put_choice(e->text.p, e->text.n, finish_name(e, result->finish), out);
    str_puts(out, ",\"usage\":");
    put_usage(out, &e->usage);
    str_puts(out, "}\n");
}

const struct encoder_ops encoder_completions = {"cmpl-",           completions_started, completions_alive,
                                                completions_event, completions_end,     openai_error,
                                                completions_whole};
