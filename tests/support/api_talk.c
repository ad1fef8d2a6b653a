#include "api_talk.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char *const api_paths[API_COUNT] = {[API_CHAT] = "/v1/chat/completions",
                                          [API_COMPLETIONS] = "/v1/completions",
                                          [API_RESPONSES] = "/v1/responses",
                                          [API_MESSAGES] = "/v1/messages"};

void talk_free(struct talk *t)
{
    for (int i = 0; i < TALK_STEPS; i++) api_answer_free(&t->step[i].answer);
    memset(t, 0, sizeof *t);
}

static json_t *chat_answer(const struct api_answer *a)
{
    json_t *m = json_pack("{ss ss ss}", "role", "assistant", "content", str_c(&a->text), "reasoning_content",
                          str_c(&a->reasoning));
    json_t *calls = json_array();
    for (int i = 0; i < a->n_calls; i++)
        json_array_append_new(calls,
                              json_pack("{ss ss s{ss ss}}", "id", a->call[i].id, "type", "function", "function", "name",
                                        str_c(&a->call[i].name), "arguments", str_c(&a->call[i].arguments)));
    if (a->n_calls) json_object_set(m, "tool_calls", calls);
    json_decref(calls);
    return m;
}

static void chat_step(json_t *list, const struct talk_step *s, const struct api_answer *before, bool answered)
{
    if (s->question)
        json_array_append_new(list, json_pack("{ss ss}", "role", "user", "content", s->question));
    else
        for (int i = 0; i < before->n_calls; i++)
            json_array_append_new(list, json_pack("{ss ss ss}", "role", "tool", "tool_call_id", before->call[i].id,
                                                  "content", s->result));
    if (answered) json_array_append_new(list, chat_answer(&s->answer));
}

static void responses_step(json_t *list, const struct talk_step *s, const struct api_answer *before, bool answered)
{
    const struct api_answer *a = &s->answer;
    if (s->question)
        json_array_append_new(list, json_pack("{ss ss ss}", "type", "message", "role", "user", "content", s->question));
    else
        for (int i = 0; i < before->n_calls; i++)
            json_array_append_new(list, json_pack("{ss ss ss}", "type", "function_call_output", "call_id",
                                                  before->call[i].id, "output", s->result));
    if (!answered) return;
    if (a->reasoning.n)
        json_array_append_new(list, json_pack("{ss s[{ss ss}]}", "type", "reasoning", "summary", "type", "summary_text",
                                              "text", str_c(&a->reasoning)));
    if (a->text.n)
        json_array_append_new(list, json_pack("{ss ss s[{ss ss}]}", "type", "message", "role", "assistant", "content",
                                              "type", "output_text", "text", str_c(&a->text)));
    for (int i = 0; i < a->n_calls; i++)
        json_array_append_new(list,
                              json_pack("{ss ss ss ss}", "type", "function_call", "call_id", a->call[i].id, "name",
                                        str_c(&a->call[i].name), "arguments", str_c(&a->call[i].arguments)));
}

static json_t *messages_answer(const struct api_answer *a)
{
    json_t *parts = json_array();
    if (a->reasoning.n)
        json_array_append_new(
            parts, json_pack("{ss ss ss}", "type", "thinking", "thinking", str_c(&a->reasoning), "signature", "x"));
    if (a->text.n) json_array_append_new(parts, json_pack("{ss ss}", "type", "text", "text", str_c(&a->text)));
    for (int i = 0; i < a->n_calls; i++)
        json_array_append_new(parts, json_pack("{ss ss ss so}", "type", "tool_use", "id", a->call[i].id, "name",
                                               str_c(&a->call[i].name), "input",
                                               json_loads(str_c(&a->call[i].arguments), 0, NULL)));
    return json_pack("{ss so}", "role", "assistant", "content", parts);
}

static void messages_step(json_t *list, const struct talk_step *s, const struct api_answer *before, bool answered)
{
    json_t *results = json_array();
    for (int i = 0; !s->question && i < before->n_calls; i++)
        json_array_append_new(results, json_pack("{ss ss ss}", "type", "tool_result", "tool_use_id", before->call[i].id,
                                                 "content", s->result));
    if (s->question)
        json_array_append_new(list, json_pack("{ss ss}", "role", "user", "content", s->question));
    else
        json_array_append_new(list, json_pack("{ss sO}", "role", "user", "content", results));
    json_decref(results);
    if (answered) json_array_append_new(list, messages_answer(&s->answer));
}

/* The tools in the form of an API. */
static json_t *tools_of(const struct talk *t, enum api api)
{
    json_t *list = json_array(), *all = json_loads(t->tools, 0, NULL), *f;
    size_t i;
    json_array_foreach(all, i, f)
    {
        if (api == API_CHAT) {
            json_array_append_new(list, json_pack("{ss sO}", "type", "function", "function", f));
        } else if (api == API_RESPONSES) {
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

static json_t *steps_of(const struct talk *t, enum api api)
{
    json_t *list = json_array();
    if (api == API_CHAT && t->system)
        json_array_append_new(list, json_pack("{ss ss}", "role", "system", "content", t->system));
    for (int i = 0; i < t->n_steps; i++) {
        const struct talk_step *s = &t->step[i];
        const struct api_answer *before = i ? &t->step[i - 1].answer : NULL;
        const bool answered = i < t->n_steps - 1;
        if (api == API_CHAT)
            chat_step(list, s, before, answered);
        else if (api == API_RESPONSES)
            responses_step(list, s, before, answered);
        else
            messages_step(list, s, before, answered);
    }
    return list;
}

static void put_thinking(json_t *q, enum talk_thinking thinking, enum api api)
{
    const bool on = thinking == TALK_THINKING;
    if (api == API_RESPONSES) {
        json_t *r = json_pack("{ss}", "summary", "auto");
        if (thinking) json_object_set_new(r, "effort", json_string(on ? "high" : "none"));
        json_object_set_new(q, "reasoning", r);
    } else if (thinking) {
        json_object_set_new(q, "thinking", json_pack("{ss}", "type", on ? "enabled" : "disabled"));
    }
}

void talk_request(const struct talk *t, enum api api, bool stream, int max_tokens, struct str *out)
{
    json_t *q = json_pack("{ss sb sf si}", "model", "any", "stream", stream, "temperature", 0.0,
                          api == API_RESPONSES ? "max_output_tokens" : "max_tokens", max_tokens);
    if (api == API_COMPLETIONS) {
        json_object_set_new(q, "prompt", json_string(t->step[t->n_steps - 1].question));
    } else {
        json_object_set_new(q, api == API_RESPONSES ? "input" : "messages", steps_of(t, api));
        if (t->tools) json_object_set_new(q, "tools", tools_of(t, api));
        put_thinking(q, t->thinking, api);
    }
    if (t->system && api == API_RESPONSES) json_object_set_new(q, "instructions", json_string(t->system));
    if (t->system && api == API_MESSAGES) json_object_set_new(q, "system", json_string(t->system));
    if (stream && api <= API_COMPLETIONS)
        json_object_set_new(q, "stream_options", json_pack("{sb}", "include_usage", 1));
    char *text = json_dumps(q, JSON_COMPACT);
    str_clear(out);
    str_puts(out, text);
    free(text);
    json_decref(q);
}
