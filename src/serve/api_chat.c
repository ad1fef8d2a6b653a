/* POST /v1/chat/completions and the old /v1/completions: what is asked. */
#include <string.h>
#include "serve/api_internal.h"

/* ---------------------------------------------------------------- tools */

/* One element of "tools": {"type": "function" or "custom", that: {"name": ...}}. */
static void read_tool(struct reading *g, json_t *tool, struct json_text text)
{
    const struct fields f = {tool, "tools[].", g->f.why};
    const char *type = field_string(&f, "type", "function");
    const bool custom = !strcmp(type, "custom");
    if (!custom && strcmp(type, "function")) {
        field_wrong(&f, "type", "\"%.40s\" is not function or custom", type);
        return;
    }
    const struct fields inner = {field_object(&f, type), custom ? "tools[].custom." : "tools[].function.", g->f.why};
    if (!inner.object) {
        field_wrong(&f, custom ? "custom" : "function", "must be an object with a name");
        return;
    }
    const char *name = read_tool_name(&inner);
    if (!name) return;
    const struct request_tool form = {custom ? TOOL_CUSTOM : TOOL_FUNCTION, name, name, NULL};
    add_tool(g, form, json_text_member(text, type));
}

/* ---------------------------------------------------------------- messages */

static void read_call(struct reading *g, json_t *call, struct json_text text)
{
    const char *type = json_string_value(json_object_get(call, "type"));
    const bool custom = type && !strcmp(type, "custom");
    const json_t *inner = json_object_get(call, custom ? "custom" : "function");
    const char *name = json_string_value(json_object_get(inner, "name"));
    const json_t *arguments = json_object_get(inner, "arguments");
    const struct json_text inner_text = json_text_member(text, custom ? "custom" : "function");
    const json_t *id = json_object_get(call, "id");
    if (!name) {
        field_wrong(&g->f, "messages", "a tool call has no function name");
        return;
    }
    struct chat_call *c = request_call(g->r);
    c->name = text_of(name);
    if (json_is_string(id)) c->id = text_of_json(id);
    if (custom)
        c->arguments = custom_arguments(g, inner_text);
    else if (json_is_string(arguments))
        c->arguments = json_string_length(arguments) ? text_of_json(arguments) : text_of("{}");
    else
        c->arguments = raw_member(inner_text, "arguments", "{}");
}

static void read_assistant(struct reading *g, const struct fields *f, struct json_text text_of_message)
{
    struct json_text_items it = json_text_items(json_text_member(text_of_message, "tool_calls"));
    struct json_text one;

    json_t *calls = field_array(f, "tool_calls"), *call;
    size_t i;
    const struct bpe_text text = read_content(g, f, "content", CONTENT_ASSISTANT, "");
    const struct bpe_text reasoning = read_content(g, f, "reasoning_content", CONTENT_ASSISTANT, "");
    refuse_field(f, "audio", NULL);
    refuse_field(f, "function_call", NULL);
    struct chat_message *m = request_message(g->r, CHAT_ASSISTANT);
    m->text = text;
    if (!text.n) m->text = text_of(field_string(f, "refusal", ""));
    m->reasoning = reasoning;
    json_array_foreach(calls, i, call)
    {
        if (json_text_next(&it, NULL, &one)) read_call(g, call, one);
    }
}

static void read_message(struct reading *g, json_t *message, struct json_text message_text)
{
    const struct fields f = {message, "messages[].", g->f.why};
    const char *role = field_string(&f, "role", "user");
    if (!fields_good(&f)) return;
    if (!strcmp(role, "system") || !strcmp(role, "developer"))
        add_system(g, read_content(g, &f, "content", CONTENT_SYSTEM, ""));
    else if (!strcmp(role, "user")) {
        const struct bpe_text text = read_content(g, &f, "content", CONTENT_USER, "");
        request_message(g->r, CHAT_USER)->text = text;
        g->asked = true;
    } else if (!strcmp(role, "assistant"))
        read_assistant(g, &f, message_text);
    else if (!strcmp(role, "tool") || !strcmp(role, "function")) {
        const struct bpe_text text = read_content(g, &f, "content", CONTENT_RESULT, "\n\n");
        struct chat_message *m = request_message(g->r, CHAT_TOOL);
        m->text = text;
        m->call_id = text_of(field_string(&f, "tool_call_id", ""));
    } else
        field_wrong(&f, "role", "\"%.40s\" is not system, developer, user, assistant or tool", role);
}

/* ---------------------------------------------------------------- the other fields */

/* Which of the two names stands later in the object wins. */
static void read_limits(struct reading *g)
{
    const char *key;
    json_t *value;
    json_object_foreach(g->r->body, key, value)
    {
        if (!strcmp(key, "max_tokens") || !strcmp(key, "max_completion_tokens"))
            read_max_tokens(g, !strcmp(key, "max_tokens") ? "max_tokens" : "max_completion_tokens");
    }
}

static void read_logprobs(struct reading *g)
{
    g->r->logprobs = field_bool(&g->f, "logprobs", false);
    g->r->top_logprobs = (int)field_integer(&g->f, "top_logprobs", 0, 1000, 0);
    if (g->r->top_logprobs > 20) field_wrong(&g->f, "top_logprobs", "must be a whole number from 0 to 20");
    if (g->r->top_logprobs && !g->r->logprobs) field_wrong(&g->f, "top_logprobs", "needs logprobs: true");
}

static void refuse_one(struct reading *g, const char *name)
{
    const json_t *v = field(&g->f, name);
    if (v && (!json_is_number(v) || json_number_value(v) != 1)) field_wrong(&g->f, name, "only 1 is supported");
}

static void refuse_modalities(struct reading *g)
{
    json_t *list = field_array(&g->f, "modalities"), *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        if (!json_is_string(v) || strcmp(json_string_value(v), "text"))
            field_wrong(&g->f, "modalities", "only [\"text\"] is supported by this server");
    }
}

static void refuse_unsupported(struct reading *g)
{
    static const char *const others[] = {
        "frequency_penalty", "presence_penalty", "logit_bias",    "functions",      "audio",
        "moderation",        "ignore_eos",       "min_tokens",    "grammar",        "json_schema",
        "guided_json",       "guided_regex",     "guided_choice", "guided_grammar", "structured_outputs"};
    const char *call = json_string_value(field(&g->f, "function_call"));
    refuse_one(g, "n");
    refuse_one(g, "repetition_penalty");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) refuse_field(&g->f, others[i], NULL);
    if (!call || strcmp(call, "auto")) refuse_field(&g->f, "function_call", "none"); /* there are no functions */
    refuse_given(&g->f, "web_search_options");
    refuse_format(&g->f, "response_format");
    refuse_modalities(g);
}

void read_chat(struct reading *g)
{
    read_model(g);
    read_thinking(g);
    read_sampling(g);
    read_limits(g);
    read_stops(g, "stop", false);
    read_stream(g);
    read_logprobs(g);
    g->r->one_call = !field_bool(&g->f, "parallel_tool_calls", true);
    refuse_unsupported(g);
    read_elements(g, &g->f, "tools", g->text, read_tool);
    read_openai_choice(g, true);
    read_message_list(g, read_message);
}

/* ---------------------------------------------------------------- /v1/completions */

static void read_prompt(struct reading *g)
{
    const json_t *v = field(&g->f, "prompt");
    if (json_is_array(v) && json_array_size(v) == 1) v = json_array_get(v, 0);
    if (!json_is_string(v)) {
        field_wrong(&g->f, "prompt", "must be a string, or an array of one string");
        return;
    }
    request_message(g->r, CHAT_SYSTEM)->text = text_of("You are a helpful assistant");
    request_message(g->r, CHAT_USER)->text = text_of_json(v);
}

void read_completions(struct reading *g)
{
    g->r->thinking = CHAT_THINK_OFF; /* there is no place for reasoning in the answer */
    read_model(g);
    read_thinking(g);
    read_sampling(g);
    read_max_tokens(g, "max_tokens");
    read_stops(g, "stop", false);
    read_stream(g);
    refuse_unsupported(g);
    refuse_one(g, "best_of");
    refuse_field(&g->f, "suffix", "");
    refuse_field(&g->f, "echo", NULL);
    if (field(&g->f, "logprobs")) field_wrong(&g->f, "logprobs", "is not supported here; chat completions has it");
    read_prompt(g);
}
