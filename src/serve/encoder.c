/* Answers to bytes: what the writers of the APIs share. */
#include <string.h>
#include "base/mem.h"
#include "serve/encoder_internal.h"

struct encoder *encoder_new(const struct request *r, const char *model)
{
    static const struct encoder_ops *const ops[] = {[API_CHAT] = &encoder_chat,
                                                    [API_COMPLETIONS] = &encoder_completions,
                                                    [API_RESPONSES] = &encoder_responses,
                                                    [API_MESSAGES] = &encoder_messages};
    struct encoder *e = mem_alloc(sizeof *e);
    e->ops = ops[r->api];
    e->r = r;
    e->model = r->model ? r->model : model;
    tool_memory_id(e->ops->id_prefix, e->id);
    return e;
}

void encoder_free(struct encoder *e)
{
    if (!e) return;
    for (size_t i = 0; i < e->n_calls; i++) str_free(&e->call[i].arguments);
    mem_free(e->call);
    str_free(&e->reasoning);
    str_free(&e->text);
    str_free(&e->logprobs);
    str_free(&e->items);
    mem_free(e);
}

/* ---------------------------------------------------------------- JSON */

void put_quoted(struct str *out, const char *text, size_t n)
{
    json_text_quote(out, text, n);
}

void put_c(struct str *out, const char *text)
{
    json_text_quote(out, text, strlen(text));
}

void put_str(struct str *out, const struct str *text)
{
    json_text_quote(out, text->p, text->n);
}

void put_usage(struct str *out, const struct usage *u)
{
    str_printf(out,
               "{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,\"prompt_tokens_details\":{\"cached_"
               "tokens\":%d},\"completion_tokens_details\":{\"reasoning_tokens\":%d}}",
               u->prompt, u->completion, u->prompt + u->completion, u->cached, u->reasoning);
}

static void put_or_null(struct str *out, const char *text)
{
    if (text)
        put_c(out, text);
    else
        str_puts(out, "null");
}

void put_openai_error(struct str *out, const struct api_error *why)
{
    str_puts(out, "{\"message\":");
    put_c(out, why->message);
    str_puts(out, ",\"type\":");
    put_c(out, why->type ? why->type : "server_error");
    str_puts(out, ",\"param\":");
    put_or_null(out, *why->param ? why->param : NULL);
    str_puts(out, ",\"code\":");
    put_or_null(out, why->code);
    if (why->n_ctx) str_printf(out, ",\"n_prompt_tokens\":%d,\"n_ctx\":%d", why->n_prompt, why->n_ctx);
    str_puts(out, "}");
}

static const char *anthropic_type(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 413:
        return "request_too_large";
    case 429:
        return "rate_limit_error";
    case 500:
        return "api_error";
    case 503:
    case 529:
        return "overloaded_error";
    default:
        return status > 500 ? "api_error" : "invalid_request_error";
    }
}

void put_anthropic_error(struct str *out, const struct api_error *why)
{
    str_puts(out, "{\"type\":\"error\",\"error\":{\"type\":");
    put_c(out, anthropic_type(why->status));
    str_puts(out, ",\"message\":");
    put_c(out, why->message);
    if (why->n_ctx) str_printf(out, ",\"n_prompt_tokens\":%d,\"n_ctx\":%d", why->n_prompt, why->n_ctx);
    str_puts(out, "}}");
}

void api_error_body(const char *path, const struct api_error *why, struct str *out)
{
    if (!strncmp(path, "/v1/messages", strlen("/v1/messages"))) {
        put_anthropic_error(out, why);
    } else {
        str_puts(out, "{\"error\":");
        put_openai_error(out, why);
        str_puts(out, "}");
    }
    str_puts(out, "\n");
}

/* ---------------------------------------------------------------- what was said */

struct told_call *open_call(struct encoder *e)
{
    return &e->call[e->n_calls - 1];
}

const struct request_tool *tool_of(const struct encoder *e, const struct told_call *c)
{
    return &e->r->tool_form[c->tool];
}

static void put_bytes(struct str *out, const char *bytes, size_t n)
{
    str_puts(out, "[");
    for (size_t i = 0; i < n; i++) str_printf(out, i ? ",%d" : "%d", (unsigned char)bytes[i]);
    str_puts(out, "]");
}

static void put_logprob(struct str *out, const struct event_logprob *p)
{
    str_puts(out, "{\"token\":");
    put_quoted(out, p->bytes, p->n);
    str_printf(out, ",\"logprob\":%.9g,\"bytes\":", (double)(p->logprob > -9999 ? p->logprob : -9999));
    put_bytes(out, p->bytes, p->n);
}

static void add_logprobs(struct encoder *e, const struct event *v)
{
    if (e->logprobs.n) str_puts(&e->logprobs, ",");
    put_logprob(&e->logprobs, &v->token);
    str_puts(&e->logprobs, ",\"top_logprobs\":[");
    for (int i = 0; i < v->n_alternatives; i++) {
        if (i) str_puts(&e->logprobs, ",");
        put_logprob(&e->logprobs, &v->alternative[i]);
        str_puts(&e->logprobs, "}");
    }
    str_puts(&e->logprobs, "]}");
}

static void add_call(struct encoder *e, const struct event *v)
{
    e->call = mem_grow(e->call, (e->n_calls + 1) * sizeof *e->call);
    struct told_call *c = &e->call[e->n_calls++];
    *c = (struct told_call){.tool = v->tool};
    strncpy(c->id, v->id, sizeof c->id - 1);
}

static void add(struct encoder *e, const struct event *v)
{
    switch (v->kind) {
    case EVENT_REASONING:
        str_add(&e->reasoning, v->bytes, v->n);
        break;
    case EVENT_TEXT:
        str_add(&e->text, v->bytes, v->n);
        break;
    case EVENT_CALL_BEGIN:
        add_call(e, v);
        break;
    case EVENT_CALL_ARGUMENTS:
        str_add(&open_call(e)->arguments, v->bytes, v->n);
        break;
    case EVENT_CALL_END:
        open_call(e)->done = true;
        break;
    case EVENT_LOGPROBS:
        add_logprobs(e, v);
        break;
    }
}

void encoder_started(struct encoder *e, const struct usage *usage, struct str *out)
{
    e->usage = *usage;
    if (e->r->stream) e->ops->started(e, out);
}

void encoder_alive(struct encoder *e, struct str *out)
{
    if (e->r->stream) e->ops->alive(e, out);
}

void encoder_event(struct encoder *e, const struct event *event, struct str *out)
{
    add(e, event);
    if (e->r->stream || e->r->api == API_RESPONSES) e->ops->event(e, event, out);
}

void encoder_end(struct encoder *e, const struct answer_result *result, struct str *out)
{
    e->usage = result->usage;
    if (e->r->stream)
        e->ops->end(e, result, out);
    else
        e->ops->whole(e, result, out);
}

void encoder_error(struct encoder *e, const struct api_error *why, struct str *out)
{
    e->ops->error(e, why, out);
}
