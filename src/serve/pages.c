#include "serve/pages.h"
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "ds4.h"
#include "serve/page_files.h"
#include "text/json_text.h"

static void put(struct str *out, const char *text)
{
    json_text_quote(out, text, strlen(text));
}

/* ---------------------------------------------------------------- models */

/* What a model of the family may be called; the first is what it is. */
static const char *const *aliases(const struct server *s)
{
    static const char *const deepseek[] = {"deepseek-v4-flash", "deepseek-v4-pro", NULL}, *const qwen[] = {
                                                                                              "qwen3.8-flash-next",
                                                                                              NULL};
    return strcmp(s->info.family, "qwen38") ? deepseek : qwen;
}

static void put_model(const struct server *s, const char *id, struct str *out)
{
    enum { CREATED = 1767225600 };
    const int most = s->o.max_tokens < s->o.ctx ? s->o.max_tokens : s->o.ctx;
    str_puts(out, "{\"id\":");
    put(out, id);
    str_printf(out, ",\"object\":\"model\",\"created\":%d,\"owned_by\":\"ds4\",\"name\":", CREATED);
    put(out, s->info.name);
    str_printf(out,
               ",\"context_length\":%d,\"top_provider\":{\"context_length\":%d,\"max_completion_tokens\":%d,\"is_"
               "moderated\":false},\"supported_parameters\":[\"tools\",\"tool_choice\",\"max_tokens\",\"temperature\","
               "\"top_p\",\"top_k\",\"min_p\",\"stop\",\"seed\",\"stream\",\"reasoning_effort\",\"logprobs\"]}",
               s->o.ctx, s->o.ctx, most);
}

static void models(const struct server *s, struct str *out)
{
    str_puts(out, "{\"object\":\"list\",\"data\":[");
    for (const char *const *id = aliases(s); *id; id++) {
        if (id != aliases(s)) str_puts(out, ",");
        put_model(s, *id, out);
    }
    str_puts(out, "]}\n");
}

static int one_model(const struct server *s, const char *id, struct str *out)
{
    for (const char *const *known = aliases(s); *known; known++)
        if (!strcmp(id, *known)) {
            put_model(s, id, out);
            str_puts(out, "\n");
            return 200;
        }
    struct api_error why = {
        .status = 404, .type = "invalid_request_error", .param = "model", .code = "model_not_found"};
    snprintf(why.message, sizeof why.message, "there is no model named \"%.200s\"", id);
    text_defuse(why.message, strlen(why.message));
    api_error_body("/v1/models", &why, out);
    return 404;
}

/* ---------------------------------------------------------------- the server */

static int health(const struct server *s, struct str *out)
{
    char reason[1000];
    if (!scheduler_failed(s->scheduler, reason, sizeof reason)) {
        str_puts(out, "{\"status\":\"ok\"}\n");
        return 200;
    }
    str_puts(out, "{\"status\":\"error\",\"reason\":");
    put(out, reason);
    str_puts(out, "}\n");
    return 503;
}

static void props(const struct server *s, struct str *out)
{
    str_puts(out, "{\"version\":\"" DS4_VERSION "\",\"model\":");
    put(out, s->info.id);
    str_puts(out, ",\"name\":");
    put(out, s->info.name);
    str_puts(out, ",\"family\":");
    put(out, s->info.family);
    str_puts(out, ",\"backend\":");
    put(out, s->o.backend);
    str_printf(out, ",\"context_length\":%d,\"max_tokens\":%d,\"sessions\":%d}\n", s->o.ctx, s->o.max_tokens,
               s->o.sessions);
}

static void metric(struct str *out, const char *name, const char *type, const char *help, double value)
{
    str_printf(out, "# HELP ds4_%s %s\n# TYPE ds4_%s %s\nds4_%s %.17g\n", name, help, name, type, name, value);
}

static void metrics(const struct server *s, struct str *out)
{
    const struct scheduler_counts c = scheduler_counts(s->scheduler);
    const struct http_counts h = http_counts(s->http);
    metric(out, "requests_total", "counter", "Requests for an answer.", (double)c.requests);
    str_puts(out, "# HELP ds4_answers_total Answers by how they ended.\n# TYPE ds4_answers_total counter\n");
    static const char *const finishes[] = {"stop", "length", "tool_calls", "stop_sequence"};
    for (int i = 0; i < 4; i++)
        str_printf(out, "ds4_answers_total{finish=\"%s\"} %llu\n", finishes[i], (unsigned long long)c.finished[i]);
    metric(out, "failed_total", "counter", "Requests that ended with an error.", (double)c.failed);
    metric(out, "cancelled_total", "counter", "Requests whose client went away.", (double)c.cancelled);
    metric(out, "prompt_tokens_total", "counter", "Tokens of prompts.", (double)c.prompt_tokens);
    metric(out, "cached_tokens_total", "counter", "Of these, tokens that were not read again.",
           (double)c.cached_tokens);
    metric(out, "completion_tokens_total", "counter", "Tokens of answers.", (double)c.completion_tokens);
    metric(out, "prefill_seconds_total", "counter", "Time that prompts took.", c.prefill_s);
    metric(out, "decode_seconds_total", "counter", "Time that answers took.", c.decode_s);
    metric(out, "active_answers", "gauge", "Answers that are being written.", c.active);
    metric(out, "queued_requests", "gauge", "Requests that wait.", c.queued);
    metric(out, "sessions", "gauge", "Answers that can be written at a time.", c.sessions);
    metric(out, "http_requests_total", "counter", "HTTP requests.", (double)h.requests);
    metric(out, "http_refused_total", "counter", "HTTP requests refused before they were read.", (double)h.refused);
    metric(out, "http_connections", "gauge", "Open connections.", (double)h.open);
}

/* The web page: nothing from elsewhere runs or is loaded in it, and it is shown in no frame. */
void pages_get_file(struct http_reply *reply, const struct http_request *q)
{
    static const char extra[] =
        "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Cache-Control: no-cache\r\n";
    for (int i = 0; i < n_page_files; i++)
        if (!strcmp(q->path, page_files[i].path))
            http_reply_send(reply, 200, page_files[i].type, page_files[i].bytes, page_files[i].n, extra);
}

void pages_get(struct server *s, struct http_reply *reply, const struct http_request *q)
{
    struct str out = {0};
    const char *type = "application/json";
    int status = 200;
    if (!strcmp(q->path, "/health"))
        status = health(s, &out);
    else if (!strcmp(q->path, "/v1/models"))
        models(s, &out);
    else if (!strncmp(q->path, "/v1/models/", 11))
        status = one_model(s, q->rest, &out);
    else if (!strcmp(q->path, "/props"))
        props(s, &out);
    else if (!strcmp(q->path, "/metrics")) {
        metrics(s, &out);
        type = "text/plain; version=0.0.4; charset=utf-8";
    }
    http_reply_send(reply, status, type, out.p, out.n, NULL);
    str_free(&out);
}
