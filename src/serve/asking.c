#include "serve/asking.h"
#include <stdio.h>
#include <string.h>
#include "base/mem.h"

/* Some clients send no reasoning back, others by mistake only the last piece of a stream; one that sends something else
 * means it. */
static bool is_tail(struct bpe_text of_client, const struct str *reasoning)
{
    return of_client.n <= reasoning->n &&
           !memcmp(of_client.n ? of_client.p : "", reasoning->n ? reasoning->p + reasoning->n - of_client.n : "",
                   of_client.n);
}

/* Gives assistant messages whose calls this server remembers the bytes that the model wrote. */
static void replay_calls(struct tool_memory *memory, struct request *r)
{
    for (size_t i = 0; i < r->n_messages; i++) {
        struct chat_message *m = &r->message[i];
        if (!m->n_calls) continue;
        struct str block = {0}, reasoning = {0};
        const char **ids = mem_alloc(m->n_calls * sizeof *ids);
        for (size_t k = 0; k < m->n_calls; k++) ids[k] = request_text(r, m->calls[k].id.p, m->calls[k].id.n);
        if (tool_memory_get(memory, r->key, ids, m->n_calls, &block, &reasoning)) {
            m->block = (struct bpe_text){request_text(r, block.p, block.n), block.n};
            if (is_tail(m->reasoning, &reasoning))
                m->reasoning = (struct bpe_text){request_text(r, reasoning.p, reasoning.n), reasoning.n};
        }
        mem_free(ids);
        str_free(&block);
        str_free(&reasoning);
    }
}

static void set_turns(struct ask *a, const size_t *at)
{
    a->turn = mem_alloc((a->prompt.n + 1) * sizeof *a->turn);
    for (size_t i = 0; i < a->prompt.n; i++)
        if (a->prompt.part[i].turn) a->turn[a->n_turns++] = (int)at[i];
}

static int encode(const struct served *m, struct ask *a, struct api_error *why)
{
    struct ds4_error e = {0};
    size_t *at = mem_alloc((a->prompt.n + 1) * sizeof *at);
    const int rc = m->ops->encode(m->model, &a->prompt, &a->tokens, at, &e);
    if (rc == 0)
        set_turns(a, at);
    else {
        *why = (struct api_error){.status = 500, .type = "server_error"}; /* any conversation can be encoded */
        snprintf(why->message, sizeof why->message, "%s", e.message);
    }
    mem_free(at);
    return rc;
}

int asking_prepare(const struct served *m, struct tool_memory *memory, int ctx, struct request *request,
                   const char *who, struct ask *out, struct api_error *why)
{
    struct served_info info;
    struct err e = {0};
    *out = (struct ask){.request = request, .who = mem_strdup(who)};
    *why = (struct api_error){.status = 400, .type = "invalid_request_error"};
    m->ops->info(m->model, &info);
    const struct chat_options o = {.thinking = request->thinking,
                                   .ctx = ctx,
                                   .efforts = info.efforts,
                                   .tools = request->tool,
                                   .n_tools = request->choice == CHOICE_NONE ? 0 : request->n_tools};
    replay_calls(memory, request);
    int rc = info.codec->render(request->message, request->n_messages, &o, &out->prompt, &e);
    if (rc)
        snprintf(why->message, sizeof why->message, "%s", e.msg);
    else
        rc = encode(m, out, why);
    if (rc) ask_free(out);
    return rc;
}

static const char *content_field(enum api api)
{
    return api == API_RESPONSES ? "input" : api == API_COMPLETIONS ? "prompt" : "messages";
}

int asking_check_fits(const struct ask *a, int ctx, struct api_error *why)
{
    if (a->tokens.n < (size_t)ctx) return 0;
    *why = (struct api_error){.status = 400,
                              .type = "invalid_request_error",
                              .code = "context_length_exceeded",
                              .n_prompt = (int)a->tokens.n,
                              .n_ctx = ctx};
    snprintf(why->param, sizeof why->param, "%s", content_field(a->request->api));
    snprintf(why->message, sizeof why->message, "Prompt has %zu tokens, but the configured context size is %d tokens",
             a->tokens.n, ctx);
    return DS4_E_LIMIT;
}
