/* Requests of the four APIs, field by field: what is understood, what is refused and named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include "base/mem.h"
#include "serve/api.h"
#include "text/answer.h"
#include "../support/serve_kit.h"

/* ---------------------------------------------------------------- requests in one line */

static void put(struct str *s, struct bpe_text t)
{
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i])
            str_add(s, &t.p[i], 1);
        else
            str_puts(s, "\\0");
    }
}

/* "S text|U text|A text{reasoning}(id name arguments)|T id: text" */
static void put_messages(struct str *s, const struct request *r)
{
    for (size_t i = 0; i < r->n_messages; i++) {
        const struct chat_message *m = &r->message[i];
        str_printf(s, i ? "|%c " : "%c ", "SUAT"[m->role]);
        if (m->role == CHAT_TOOL) {
            put(s, m->call_id);
            str_puts(s, ": ");
        }
        put(s, m->text);
        if (m->reasoning.n) {
            str_puts(s, "{");
            put(s, m->reasoning);
            str_puts(s, "}");
        }
        for (size_t k = 0; k < m->n_calls; k++) {
            str_puts(s, "(");
            put(s, m->calls[k].id);
            str_puts(s, " ");
            put(s, m->calls[k].name);
            str_puts(s, " ");
            put(s, m->calls[k].arguments);
            str_puts(s, ")");
        }
    }
}

/* "form wire_name/namespace schema|..." */
static void put_tools(struct str *s, const struct request *r)
{
    static const char *const forms[] = {"function", "custom", "search", "shell"};
    for (size_t i = 0; i < r->n_tools; i++) {
        const struct request_tool *t = &r->tool_form[i];
        str_printf(s, "%s%s %s", i ? "|" : "", forms[t->form], t->wire_name);
        if (t->namespace_) str_printf(s, "/%s", t->namespace_);
        str_puts(s, " ");
        put(s, r->tool[i].schema);
        assert_int_equal(r->tool[i].name.n, strlen(t->name));
        assert_memory_equal(r->tool[i].name.p, t->name, strlen(t->name));
        assert_int_equal(r->tool[i].custom, t->form == TOOL_CUSTOM);
    }
}

static struct request *read_it(enum api api, const char *json)
{
    struct request *r = NULL;
    struct api_error why = {0};
    if (api_read(api, mem_strdup(json), strlen(json), &r, &why)) fail_msg("%s\n%s", json, why.message);
    return r;
}

static void messages(enum api api, const char *json, const char *line)
{
    struct request *r = read_it(api, json);
    struct str s = {0};
    put_messages(&s, r);
    if (strcmp(str_c(&s), line)) fail_msg("%s\n  got    %s\n  wanted %s", json, str_c(&s), line);
    str_free(&s);
    request_free(r);
}

static void tools(enum api api, const char *json, const char *line)
{
    struct request *r = read_it(api, json);
    struct str s = {0};
    put_tools(&s, r);
    if (strcmp(str_c(&s), line)) fail_msg("%s\n  got    %s\n  wanted %s", json, str_c(&s), line);
    str_free(&s);
    request_free(r);
}

static void refused(enum api api, const char *json, const char *param, const char *part)
{
    struct request *r = NULL;
    struct api_error why = {0};
    const int rc = api_read(api, mem_strdup(json), strlen(json), &r, &why);
    if (rc >= 0 || r || why.status != 400 || strcmp(why.type, "invalid_request_error") || strcmp(why.param, param) ||
        !strstr(why.message, part))
        fail_msg("%s\n%d, status %d, param %s, \"%s\" instead of %s, \"%s\"", json, rc, why.status, why.param,
                 why.message, param, part);
    request_free(r);
}

/* The smallest request of an API, with more members. */
static const char *with(enum api api, const char *more)
{
    static const char *const least[] = {[API_CHAT] = "'messages':[{'role':'user','content':'Hi'}]",
                                        [API_COMPLETIONS] = "'prompt':'Hi'",
                                        [API_RESPONSES] = "'input':'Hi'",
                                        [API_MESSAGES] = "'messages':[{'role':'user','content':'Hi'}]"};
    return serve_json("{%s%s%s}", least[api], *more ? "," : "", more);
}

enum { ALL = 4 };
static const enum api apis[ALL] = {API_CHAT, API_COMPLETIONS, API_RESPONSES, API_MESSAGES};

static void accepted(enum api api, const char *more)
{
    request_free(read_it(api, with(api, more)));
}

static void refused_with(enum api api, const char *more, const char *param, const char *part)
{
    refused(api, with(api, more), param, part);
}

/* ---------------------------------------------------------------- bodies */

static void test_bodies(void **state)
{
    static const char *const broken[] = {"",
                                         "{",
                                         "[1]",
                                         "\"x\"",
                                         "null",
                                         "nul",
                                         "{\"a\"}",
                                         "{\"a\":1,}",
                                         "{a:1}",
                                         "{\"a\":NaN}",
                                         "{}{}",
                                         "{\"a\":01}",
                                         "{\"a\":.5}",
                                         "{\"a\":\"\x01\"}",
                                         "{\"a\":\"\xff\"}",
                                         "{\"a\":\"\\x\"}"};
    struct request *r = NULL;
    struct api_error why;
    for (int i = 0; i < ALL; i++)
        for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) refused(apis[i], broken[k], "", "invalid JSON");
    assert_true(api_read(API_CHAT, NULL, 0, &r, &why) < 0);
    assert_int_equal(why.status, 400);
    assert_null(r);
    messages(API_CHAT, with(API_CHAT, ""), "U Hi");
    messages(API_COMPLETIONS, with(API_COMPLETIONS, ""), "S You are a helpful assistant|U Hi");
    messages(API_RESPONSES, with(API_RESPONSES, ""), "U Hi");
    messages(API_MESSAGES, with(API_MESSAGES, ""), "U Hi");
    /* keys that occur twice: the last one counts; unknown ones do not */
    messages(API_CHAT,
             serve_json("{'messages':[{'role':'user','content':'a'}],'x':{'y':[1,null]},"
                        "'messages':[{'role':'user','content':'a','content':'b'}]}"),
             "U b");
}

static void test_strings(void **state)
{
#define USER(text) "{\"messages\":[{\"role\":\"user\",\"content\":\"" text "\"}]}"
    messages(API_CHAT, USER("a\\u0000b"), "U a\\0b");
    messages(API_CHAT, USER("\\ud83d\\ude00"), "U \xf0\x9f\x98\x80");
    messages(API_CHAT, USER("<\\ud83d>"), "U <\xef\xbf\xbd>");
    messages(API_CHAT, USER("<\\ud83d\\u0041>"),
             "U <\xef\xbf\xbd"
             "A>");
    messages(API_CHAT, USER("\\ud83d\\ud83d\\ude00"), "U \xef\xbf\xbd\xf0\x9f\x98\x80");
    messages(API_CHAT, USER("\\ude00\\ud83d"), "U \xef\xbf\xbd\xef\xbf\xbd");
    messages(API_CHAT, USER("\\\\ud83d"), "U \\ud83d"); /* a backslash and letters */
    messages(API_CHAT, USER("\\\\\\ud83d"), "U \\\xef\xbf\xbd");
    messages(API_CHAT, USER("\\uD83D\\\\ude00"), "U \xef\xbf\xbd\\ude00");
    messages(API_CHAT, USER("\\ud83d"), "U \xef\xbf\xbd");
}

static void nested(int depth, bool good)
{
    struct str s = {0};
    struct request *r = NULL;
    struct api_error why = {0};
    str_puts(&s, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"x\":");
    for (int i = 0; i < depth; i++) str_puts(&s, "[");
    for (int i = 0; i < depth; i++) str_puts(&s, "]");
    str_puts(&s, "}");
    char *body = mem_strdup(s.p);
    assert_int_equal(api_read(API_CHAT, body, s.n, &r, &why) == 0, good);
    if (!good) assert_non_null(strstr(why.message, "invalid JSON"));
    request_free(r);
    str_free(&s);
}

static void test_depth(void **state)
{
    nested(256, true);
    nested(1000, true);
    nested(1100, false);
    nested(100000, false);
}

/* An array of so many numbers, or a string that has as many commas, braces and quotes. */
static void many(int values, bool string, bool good)
{
    struct str s = {0};
    struct request *r = NULL;
    struct api_error why = {0};
    str_puts(&s, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"x\":");
    str_puts(&s, string ? "\"" : "[0");
    for (int i = 1; i < values; i++) str_puts(&s, string ? "\\\",{" : ",0");
    str_puts(&s, string ? "\"}" : "]}");
    char *body = mem_strdup(s.p);
    assert_int_equal(api_read(API_CHAT, body, s.n, &r, &why) == 0, good);
    if (!good) assert_non_null(strstr(why.message, "a million values"));
    request_free(r);
    str_free(&s);
}

static void test_many_values(void **state)
{
    const int others = 6; /* in the rest of the body, commas and openers */
    many(API_MAX_VALUES - others, false, true);
    many(API_MAX_VALUES + 1, false, false);
    many(API_MAX_VALUES, true, true);
}

/* ---------------------------------------------------------------- fields of all */

static void test_null_is_absent(void **state)
{
    static const char *const names[] = {"model",
                                        "temperature",
                                        "top_p",
                                        "top_k",
                                        "min_p",
                                        "seed",
                                        "stream",
                                        "stream_options",
                                        "max_tokens",
                                        "stop",
                                        "stop_sequences",
                                        "tools",
                                        "tool_choice",
                                        "thinking",
                                        "think",
                                        "reasoning_effort",
                                        "reasoning",
                                        "n",
                                        "logprobs",
                                        "top_logprobs",
                                        "response_format",
                                        "modalities",
                                        "instructions",
                                        "previous_response_id",
                                        "conversation",
                                        "background",
                                        "truncation",
                                        "text",
                                        "system",
                                        "output_config",
                                        "container",
                                        "mcp_servers",
                                        "context_management",
                                        "parallel_tool_calls",
                                        "suffix",
                                        "echo",
                                        "best_of",
                                        "logit_bias",
                                        "audio",
                                        "max_completion_tokens",
                                        "max_output_tokens",
                                        "chat_template_kwargs"};
    char more[80];
    for (int i = 0; i < ALL; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            snprintf(more, sizeof more, "'%s':null", names[k]);
            accepted(apis[i], more);
        }
}

static void test_sampling(void **state)
{
    for (int i = 0; i < ALL; i++) {
        struct request *r = read_it(apis[i], with(apis[i], "")), *other = read_it(apis[i], with(apis[i], ""));
        assert_true(r->sampling.temperature == 1 && r->sampling.top_p == 1);
        assert_true(r->sampling.min_p == 0.05f && r->sampling.top_k == 0);
        assert_true(r->sampling.seed != other->sampling.seed);
        assert_int_equal(r->max_tokens, -1);
        assert_false(r->stream);
        assert_null(r->model);
        request_free(r);
        request_free(other);
        r = read_it(apis[i],
                    with(apis[i], "'temperature':0.5,'top_p':0.25,'min_p':0,'top_k':40.0,'seed':7,'stream':true,"
                                  "'model':'a/B:c','max_tokens':12"));
        assert_true(r->sampling.temperature == 0.5f && r->sampling.top_p == 0.25f);
        assert_true(r->sampling.min_p == 0 && r->sampling.top_k == 40);
        assert_int_equal(r->sampling.seed, 7);
        assert_int_equal(r->max_tokens, 12);
        assert_true(r->stream);
        assert_string_equal(r->model, "a/B:c");
        request_free(r);
        refused_with(apis[i], "'temperature':'hot'", "temperature", "number");
        refused_with(apis[i], "'temperature':-0.1", "temperature", "number");
        refused_with(apis[i], "'temperature':1e9", "temperature", "number");
        refused_with(apis[i], "'top_p':1.5", "top_p", "number");
        refused_with(apis[i], "'top_k':-1", "top_k", "whole number");
        refused_with(apis[i], "'top_k':1.5", "top_k", "whole number");
        refused_with(apis[i], "'min_p':2", "min_p", "number");
        refused_with(apis[i], "'seed':'x'", "seed", "whole number");
        refused_with(apis[i], "'stream':1", "stream", "true or false");
        refused_with(apis[i], "'stream':'yes'", "stream", "true or false");
        refused_with(apis[i], "'stream_options':5", "stream_options", "object");
        refused_with(apis[i], "'model':5", "model", "string");
        refused_with(apis[i], "'max_tokens':-1", "max_tokens", "whole number");
        refused_with(apis[i], "'max_tokens':1.5", "max_tokens", "whole number");
        refused_with(apis[i], "'max_tokens':'ten'", "max_tokens", "whole number");
    }
}

static int limit(enum api api, const char *more)
{
    struct request *r = read_it(api, with(api, more));
    const int n = r->max_tokens;
    request_free(r);
    return n;
}

static void test_limits(void **state)
{
    assert_int_equal(limit(API_CHAT, "'max_tokens':0"), 0);
    assert_int_equal(limit(API_CHAT, "'max_tokens':1000000000000"), INT32_MAX);
    assert_int_equal(limit(API_CHAT, "'max_tokens':1e30"), INT32_MAX);
    assert_int_equal(limit(API_CHAT, "'max_tokens':5,'max_completion_tokens':6"), 6); /* the later one */
    assert_int_equal(limit(API_CHAT, "'max_completion_tokens':6,'max_tokens':5"), 5);
    assert_int_equal(limit(API_CHAT, "'max_completion_tokens':6,'max_tokens':null"), 6);
    assert_int_equal(limit(API_RESPONSES, "'max_output_tokens':9"), 9);
    assert_int_equal(limit(API_RESPONSES, "'max_output_tokens':9,'max_tokens':8"), 9);
    assert_int_equal(limit(API_MESSAGES, "'max_tokens':9"), 9);
    refused_with(API_RESPONSES, "'max_output_tokens':-1", "max_output_tokens", "whole number");
    refused_with(API_CHAT, "'max_completion_tokens':[5]", "max_completion_tokens", "whole number");
}

/* Stop strings, '/' between them. */
static void stops(enum api api, const char *more, const char *list)
{
    struct request *r = read_it(api, with(api, more));
    struct str s = {0};
    for (size_t i = 0; i < r->n_stops; i++) str_printf(&s, i ? "/%s" : "%s", r->stop[i]);
    assert_string_equal(str_c(&s), list);
    str_free(&s);
    request_free(r);
}

static void test_stops(void **state)
{
    const enum api both[] = {API_CHAT, API_COMPLETIONS};
    for (int i = 0; i < 2; i++) {
        stops(both[i], "'stop':'END'", "END");
        stops(both[i], "'stop':['a','','b']", "a/b");
        stops(both[i], "'stop':[]", "");
        stops(both[i], "'stop':''", "");
        refused_with(both[i], "'stop':5", "stop", "string");
        refused_with(both[i], "'stop':['a',5]", "stop", "string");
        refused_with(both[i], "'stop':{'a':1}", "stop", "string");
    }
    stops(API_MESSAGES, "'stop_sequences':['x','y']", "x/y");
    refused_with(API_MESSAGES, "'stop_sequences':'x'", "stop_sequences", "array");
    refused_with(API_MESSAGES, "'stop_sequences':[1]", "stop_sequences", "array");
    stops(API_RESPONSES, "'stop':['x']", ""); /* is not a field there */
}

static void thinks(enum api api, const char *more, enum chat_thinking thinking, int budget)
{
    struct request *r = read_it(api, with(api, more));
    if (r->thinking != thinking || r->thinking_budget != budget)
        fail_msg("%s: %d %d instead of %d %d", more, r->thinking, r->thinking_budget, thinking, budget);
    request_free(r);
}

static void test_thinking(void **state)
{
    thinks(API_CHAT, "", CHAT_THINK_DEFAULT, 0);
    thinks(API_RESPONSES, "", CHAT_THINK_DEFAULT, 0);
    thinks(API_MESSAGES, "", CHAT_THINK_DEFAULT, 0);
    thinks(API_COMPLETIONS, "", CHAT_THINK_OFF, 0);
    thinks(API_COMPLETIONS, "'thinking':true", CHAT_THINK_DEFAULT, 0);
    thinks(API_COMPLETIONS, "'reasoning_effort':'low'", CHAT_THINK_LOW, 0);
    const struct {
        const char *name;
        enum chat_thinking thinking;
    } efforts[] = {{"none", CHAT_THINK_OFF},      {"minimal", CHAT_THINK_LOW}, {"low", CHAT_THINK_LOW},
                   {"medium", CHAT_THINK_MEDIUM}, {"high", CHAT_THINK_HIGH},   {"xhigh", CHAT_THINK_HIGH},
                   {"max", CHAT_THINK_MAX}};
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
        char more[80];
        snprintf(more, sizeof more, "'reasoning_effort':'%s'", efforts[i].name);
        thinks(API_CHAT, more, efforts[i].thinking, 0);
        thinks(API_MESSAGES, more, efforts[i].thinking, 0);
        snprintf(more, sizeof more, "'reasoning':{'effort':'%s'}", efforts[i].name);
        thinks(API_RESPONSES, more, efforts[i].thinking, 0);
        snprintf(more, sizeof more, "'output_config':{'effort':'%s'}", efforts[i].name);
        thinks(API_MESSAGES, more, efforts[i].thinking, 0);
    }
    thinks(API_CHAT, "'thinking':{'type':'disabled'}", CHAT_THINK_OFF, 0);
    thinks(API_CHAT, "'thinking':{'type':'disabled'},'reasoning_effort':'high'", CHAT_THINK_OFF, 0);
    thinks(API_CHAT, "'thinking':{'type':'enabled'},'reasoning_effort':'none'", CHAT_THINK_DEFAULT, 0);
    thinks(API_CHAT, "'thinking':{'type':'enabled'},'reasoning_effort':'max'", CHAT_THINK_MAX, 0);
    thinks(API_CHAT, "'think':false", CHAT_THINK_OFF, 0);
    thinks(API_CHAT, "'thinking':false", CHAT_THINK_OFF, 0);
    thinks(API_CHAT, "'model':'deepseek-chat'", CHAT_THINK_OFF, 0);
    thinks(API_CHAT, "'model':'deepseek-chat','thinking':true", CHAT_THINK_DEFAULT, 0);
    thinks(API_CHAT, "'model':'deepseek-reasoner'", CHAT_THINK_DEFAULT, 0);
    thinks(API_MESSAGES, "'model':'qwen3.8-flash-next-no-think'", CHAT_THINK_OFF, 0);
    thinks(API_CHAT, "'chat_template_kwargs':{'enable_thinking':false}", CHAT_THINK_OFF, 0);
    thinks(API_CHAT, "'chat_template_kwargs':{'enable_thinking':true}", CHAT_THINK_DEFAULT, 0);
    /* all ways are known to all APIs */
    static const char *const off[] = {"'reasoning_effort':'none'",
                                      "'reasoning':{'effort':'none'}",
                                      "'chat_template_kwargs':{'enable_thinking':false}",
                                      "'chat_template_kwargs':{'reasoning_effort':'none'}",
                                      "'think':false",
                                      "'thinking':false",
                                      "'thinking':{'type':'disabled'}",
                                      "'model':'deepseek-chat'",
                                      "'model':'x-nothink'"};
    for (int i = 0; i < ALL; i++)
        for (size_t k = 0; k < sizeof off / sizeof *off; k++) thinks(apis[i], off[k], CHAT_THINK_OFF, 0);
    thinks(API_MESSAGES, "'thinking':{'type':'enabled','budget_tokens':2048}", CHAT_THINK_DEFAULT, 2048);
    thinks(API_MESSAGES, "'thinking':{'type':'enabled','budget_tokens':1}", CHAT_THINK_DEFAULT, 1);
    thinks(API_MESSAGES, "'thinking':{'type':'disabled','budget_tokens':100}", CHAT_THINK_OFF, 0);
    thinks(API_MESSAGES, "'thinking':{'type':'adaptive','display':'omitted'}", CHAT_THINK_DEFAULT, 0);
    refused_with(API_CHAT, "'thinking':'on'", "thinking", "object");
    refused_with(API_CHAT, "'thinking':{'type':'maybe'}", "type", "thinking.type");
    refused_with(API_CHAT, "'thinking':{}", "type", "thinking.type");
    refused_with(API_CHAT, "'think':1", "think", "true or false");
    refused_with(API_CHAT, "'reasoning_effort':'gigantic'", "reasoning_effort", "gigantic");
    refused_with(API_CHAT, "'reasoning_effort':{}", "reasoning_effort", "string");
    refused_with(API_RESPONSES, "'reasoning':'high'", "reasoning", "object");
    refused_with(API_RESPONSES, "'reasoning':{'effort':5}", "effort", "reasoning.effort");
    refused_with(API_MESSAGES, "'thinking':{'type':'enabled','budget_tokens':0}", "budget_tokens", "from 1");
    refused_with(API_MESSAGES, "'thinking':{'type':'enabled','budget_tokens':'many'}", "budget_tokens", "whole");
}

/* "model" is said again with every event of a stream. */
static void test_long_model(void **state)
{
    char name[API_MODEL_BYTES + 2] = "", more[API_MODEL_BYTES + 20];
    for (int i = 0; i < ALL; i++) {
        memset(name, 'm', API_MODEL_BYTES + 1);
        snprintf(more, sizeof more, "'model':'%s'", name);
        refused_with(apis[i], more, "model", "longer than");
        snprintf(more, sizeof more, "'model':'%s'", name + 1);
        accepted(apis[i], more);
    }
}

static void test_other_fields(void **state)
{
    struct request *r = read_it(API_CHAT, with(API_CHAT, "'stream_options':{'include_usage':true},'logprobs':true,"
                                                         "'top_logprobs':3,'parallel_tool_calls':false"));
    assert_true(r->include_usage && r->logprobs && r->one_call);
    assert_int_equal(r->top_logprobs, 3);
    request_free(r);
    r = read_it(API_RESPONSES, with(API_RESPONSES, "'reasoning':{'summary':'auto'},'parallel_tool_calls':false"));
    assert_true(r->summaries && r->one_call);
    request_free(r);
    r = read_it(API_RESPONSES, with(API_RESPONSES, "'reasoning':{'summary':'never'}"));
    assert_false(r->summaries || r->one_call);
    request_free(r);
    static const char *const cached[] = {
        "'cache_control':{'type':'ephemeral'}", "'system':[{'type':'text','text':'x','cache_control':{}}]",
        "'messages':[{'role':'user','content':[{'type':'text','text':'x','cache_control':{}}]}]"};
    for (size_t i = 0; i < 3; i++) {
        r = read_it(API_MESSAGES, with(API_MESSAGES, cached[i]));
        assert_true(r->cache_control);
        request_free(r);
    }
    r = read_it(API_MESSAGES, with(API_MESSAGES, ""));
    assert_false(r->cache_control);
    request_free(r);
    refused_with(API_CHAT, "'top_logprobs':3", "top_logprobs", "logprobs");
    refused_with(API_CHAT, "'logprobs':true,'top_logprobs':21", "top_logprobs", "20");
    refused_with(API_CHAT, "'logprobs':'yes'", "logprobs", "true or false");
    refused_with(API_CHAT, "'parallel_tool_calls':'no'", "parallel_tool_calls", "true or false");
}

/* A member "a", or "a.b" of an object; returns its own name. */
static const char *put_field(char *more, size_t n, const char *path, const char *value)
{
    const char *dot = strchr(path, '.');
    if (!dot)
        snprintf(more, n, "'%s':%s", path, value);
    else
        snprintf(more, n, "'%.*s':{'%s':%s}", (int)(dot - path), path, dot + 1, value);
    return dot ? dot + 1 : path;
}

/* All fields of the official types (openai 7.59, @anthropic-ai/sdk 1.14), and what others send. With a bad value: the
 * field has a meaning here, or another value than the good one would change the answer and is not supported. Without:
 * it cannot change the answer, whatever it is. */
static void test_every_field(void **state)
{
    static const struct {
        enum api api;
        const char *field, *good, *bad;
    } rows[] = {
        {API_CHAT, "messages", "[{'role':'user','content':'a'}]", "'a'"},
        {API_CHAT, "model", "'m'", "5"},
        {API_CHAT, "audio", "{}", "{'voice':'a','format':'wav'}"},
        {API_CHAT, "frequency_penalty", "0", "0.5"},
        {API_CHAT, "function_call", "'auto'", "{'name':'f'}"},
        {API_CHAT, "function_call", "'none'", "'f'"},
        {API_CHAT, "functions", "[]", "[{'name':'f'}]"},
        {API_CHAT, "logit_bias", "{}", "{'5':-100}"},
        {API_CHAT, "logprobs", "true", "1"},
        {API_CHAT, "max_completion_tokens", "5", "-1"},
        {API_CHAT, "max_tokens", "5", "-1"},
        {API_CHAT, "metadata"},
        {API_CHAT, "modalities", "['text']", "['text','audio']"},
        {API_CHAT, "moderation", "null", "{'model':'m'}"},
        {API_CHAT, "n", "1", "2"},
        {API_CHAT, "n", "1.0", "0"},
        {API_CHAT, "parallel_tool_calls", "false", "'no'"},
        {API_CHAT, "prediction"},
        {API_CHAT, "presence_penalty", "0.0", "-1"},
        {API_CHAT, "prompt_cache_key"},
        {API_CHAT, "prompt_cache_options"},
        {API_CHAT, "prompt_cache_retention"},
        {API_CHAT, "reasoning_effort", "'low'", "'much'"},
        {API_CHAT, "response_format", "{'type':'text'}", "{'type':'json_object'}"},
        {API_CHAT, "response_format", "{'type':'text'}",
         "{'type':'json_schema','json_schema':{'name':'n','schema':{}}}"},
        {API_CHAT, "response_format", "{'type':'text'}", "'json'"},
        {API_CHAT, "safety_identifier"},
        {API_CHAT, "seed", "5", "'x'"},
        {API_CHAT, "service_tier"},
        {API_CHAT, "stop", "['a']", "[5]"},
        {API_CHAT, "store"},
        {API_CHAT, "stream", "true", "1"},
        {API_CHAT, "stream_options.include_usage", "true", "1"},
        {API_CHAT, "stream_options.include_obfuscation"},
        {API_CHAT, "temperature", "0.5", "'hot'"},
        {API_CHAT, "tool_choice", "'auto'", "'perhaps'"},
        {API_CHAT, "tools", "[]", "{}"},
        {API_CHAT, "top_logprobs", "0", "21"},
        {API_CHAT, "top_p", "0.5", "2"},
        {API_CHAT, "user"},
        {API_CHAT, "verbosity"},
        {API_CHAT, "web_search_options", "null", "{}"},
        {API_CHAT, "web_search_options", "null", "{'search_context_size':'low'}"},
        {API_CHAT, "ignore_eos", "false", "true"},
        {API_CHAT, "min_tokens", "0", "5"},
        {API_CHAT, "repetition_penalty", "1.0", "1.2"},
        {API_CHAT, "guided_json", "null", "{'type':'object'}"},
        {API_CHAT, "reasoning.effort", "'none'", "'much'"},
        {API_CHAT, "chat_template_kwargs.enable_thinking", "false", "'no'"},
        {API_COMPLETIONS, "model", "'m'", "5"},
        {API_COMPLETIONS, "prompt", "'a'", "['a','b']"},
        {API_COMPLETIONS, "best_of", "1", "3"},
        {API_COMPLETIONS, "echo", "false", "true"},
        {API_COMPLETIONS, "frequency_penalty", "0", "0.5"},
        {API_COMPLETIONS, "logit_bias", "{}", "{'5':1}"},
        {API_COMPLETIONS, "logprobs", "null", "1"},
        {API_COMPLETIONS, "max_tokens", "5", "-1"},
        {API_COMPLETIONS, "n", "1", "2"},
        {API_COMPLETIONS, "presence_penalty", "0", "1"},
        {API_COMPLETIONS, "seed", "5", "'x'"},
        {API_COMPLETIONS, "stop", "'a'", "5"},
        {API_COMPLETIONS, "stream", "true", "1"},
        {API_COMPLETIONS, "stream_options.include_usage", "true", "1"},
        {API_COMPLETIONS, "suffix", "''", "'end'"},
        {API_COMPLETIONS, "temperature", "0.5", "'hot'"},
        {API_COMPLETIONS, "top_p", "0.5", "2"},
        {API_COMPLETIONS, "user"},
        {API_COMPLETIONS, "response_format", "{'type':'text'}", "{'type':'json_object'}"},
        {API_RESPONSES, "access_programs"},
        {API_RESPONSES, "background", "false", "true"},
        {API_RESPONSES, "background_options"},
        {API_RESPONSES, "context_management", "[]", "[{'type':'compaction'}]"},
        {API_RESPONSES, "conversation", "null", "'c'"},
        {API_RESPONSES, "conversation", "null", "{'id':'c'}"},
        {API_RESPONSES, "image"},
        {API_RESPONSES, "include", "['reasoning.encrypted_content']", "['message.output_text.logprobs']"},
        {API_RESPONSES, "input", "'a'", "5"},
        {API_RESPONSES, "instructions", "'a'", "5"},
        {API_RESPONSES, "max_output_tokens", "5", "-1"},
        {API_RESPONSES, "max_tool_calls", "null", "5"},
        {API_RESPONSES, "metadata"},
        {API_RESPONSES, "model", "'m'", "5"},
        {API_RESPONSES, "moderation", "null", "{'model':'m'}"},
        {API_RESPONSES, "parallel_tool_calls", "false", "'no'"},
        {API_RESPONSES, "previous_response_id", "null", "'resp_1'"},
        {API_RESPONSES, "prompt", "null", "{'id':'p'}"},
        {API_RESPONSES, "prompt_cache_key"},
        {API_RESPONSES, "prompt_cache_options"},
        {API_RESPONSES, "prompt_cache_retention"},
        {API_RESPONSES, "reasoning", "{}", "'high'"},
        {API_RESPONSES, "reasoning.effort", "'low'", "'much'"},
        {API_RESPONSES, "reasoning.summary", "'auto'", "5"},
        {API_RESPONSES, "reasoning.generate_summary", "'auto'", "5"},
        {API_RESPONSES, "reasoning.mode", "'standard'", "'pro'"},
        {API_RESPONSES, "reasoning.context", "'auto'", "'all_turns'"},
        {API_RESPONSES, "safety_identifier"},
        {API_RESPONSES, "service_tier"},
        {API_RESPONSES, "store"},
        {API_RESPONSES, "stream", "true", "1"},
        {API_RESPONSES, "stream_options.include_obfuscation"},
        {API_RESPONSES, "temperature", "0.5", "'hot'"},
        {API_RESPONSES, "text", "{}", "'x'"},
        {API_RESPONSES, "text.format", "{'type':'text'}", "{'type':'json_object'}"},
        {API_RESPONSES, "text.format", "{'type':'text'}", "{'type':'json_schema','name':'n','schema':{}}"},
        {API_RESPONSES, "text.verbosity"},
        {API_RESPONSES, "tool_choice", "'auto'", "'perhaps'"},
        {API_RESPONSES, "tools", "[]", "{}"},
        {API_RESPONSES, "top_logprobs", "0", "3"},
        {API_RESPONSES, "top_p", "0.5", "2"},
        {API_RESPONSES, "truncation", "'disabled'", "'auto'"},
        {API_RESPONSES, "user"},
        {API_RESPONSES, "client_metadata"},
        {API_MESSAGES, "max_tokens", "5", "-1"},
        {API_MESSAGES, "messages", "[{'role':'user','content':'a'}]", "'a'"},
        {API_MESSAGES, "model", "'m'", "5"},
        {API_MESSAGES, "betas"},
        {API_MESSAGES, "billing_policy"},
        {API_MESSAGES, "cache_control"},
        {API_MESSAGES, "compaction", "null", "{}"},
        {API_MESSAGES, "container", "null", "'c'"},
        {API_MESSAGES, "context_management", "{'edits':[{'type':'clear_thinking_20251015','keep':'all'}]}",
         "{'edits':[{'type':'clear_tool_uses_20250919'}]}"},
        {API_MESSAGES, "context_management", "{'edits':[]}", "{'edits':[{'type':'clear_thinking_20251015','keep':1}]}"},
        {API_MESSAGES, "diagnostics"},
        {API_MESSAGES, "fallback_credit_token"},
        {API_MESSAGES, "fallbacks"},
        {API_MESSAGES, "inference_geo"},
        {API_MESSAGES, "mcp_servers", "[]", "[{'type':'url'}]"},
        {API_MESSAGES, "metadata"},
        {API_MESSAGES, "output_config.effort", "'low'", "'much'"},
        {API_MESSAGES, "output_config.format", "null", "{'type':'json_schema','schema':{}}"},
        {API_MESSAGES, "output_config.task_budget", "null", "{'type':'tokens','total':9}"},
        {API_MESSAGES, "output_format", "null", "{'type':'json_schema','schema':{}}"},
        {API_MESSAGES, "service_tier"},
        {API_MESSAGES, "speed"},
        {API_MESSAGES, "stop_sequences", "['a']", "'a'"},
        {API_MESSAGES, "stream", "true", "1"},
        {API_MESSAGES, "system", "'a'", "5"},
        {API_MESSAGES, "temperature", "0.5", "'hot'"},
        {API_MESSAGES, "thinking", "{'type':'adaptive'}", "'on'"},
        {API_MESSAGES, "thinking.type", "'adaptive'", "'maybe'"},
        {API_MESSAGES, "thread", "null", "{'type':'create'}"},
        {API_MESSAGES, "tool_choice", "{'type':'auto'}", "'auto'"},
        {API_MESSAGES, "tools", "[]", "{}"},
        {API_MESSAGES, "top_k", "5", "-1"},
        {API_MESSAGES, "top_p", "0.5", "2"},
        {API_MESSAGES, "user_profile_id"},
        {API_MESSAGES, "workspace_id"},
    };
    static const char *const any[] = {"true", "0", "5.5", "'x'", "[]", "['x']", "{}", "{'a':1}"};
    char more[300];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const enum api api = rows[i].api;
        put_field(more, sizeof more, rows[i].field, "null");
        const bool needed = strstr(with(api, ""), rows[i].field) != NULL;
        if (!needed && !strchr(rows[i].field, '.')) accepted(api, more);
        for (size_t k = 0; !rows[i].bad && k < sizeof any / sizeof *any; k++) {
            put_field(more, sizeof more, rows[i].field, any[k]);
            accepted(api, more);
        }
        if (!rows[i].bad) continue;
        put_field(more, sizeof more, rows[i].field, rows[i].good);
        accepted(api, more);
        const char *name = put_field(more, sizeof more, rows[i].field, rows[i].bad);
        refused_with(api, more, name, rows[i].field);
    }
    /* what agents send with every request */
    accepted(API_CHAT, "'store':false,'metadata':{'a':'b'},'user':'u','service_tier':'auto','prompt_cache_key':'k',"
                       "'verbosity':'low','safety_identifier':'s'");
    accepted(API_RESPONSES, "'store':false,'include':['reasoning.encrypted_content'],'client_metadata':{'a':'b'},"
                            "'prompt_cache_key':'k','text':{'verbosity':'low'},'metadata':{}");
    accepted(API_MESSAGES, "'metadata':{'user_id':'u'},'service_tier':'auto','anthropic_beta':['x']");
}

/* A refusal says what is right, and nothing that is not. */
static void test_sentences(void **state)
{
    refused_with(API_CHAT, "'repetition_penalty':1.2", "repetition_penalty", "repetition_penalty: only 1 is supported");
    refused_with(API_CHAT, "'n':1.5", "n", "n: only 1 is supported");
    refused_with(API_CHAT, "'n':'1'", "n", "n: only 1 is supported");
    refused_with(API_CHAT, "'top_k':-1", "top_k", "top_k: must be a whole number from 0");
    for (int i = 0; i < ALL; i++) {
        struct request *r = NULL;
        struct api_error why = {0};
        const char *body = with(apis[i], "'seed':1.5");
        assert_true(api_read(apis[i], mem_strdup(body), strlen(body), &r, &why) < 0);
        assert_string_equal(why.message, "seed: must be a whole number");
    }
}

/* ---------------------------------------------------------------- conversations */

static void test_chat_messages(void **state)
{
    const enum api c = API_CHAT;
    messages(c,
             serve_json("{'messages':[{'role':'system','content':'S'},{'role':'developer','content':'D'},"
                        "{'content':'U'},{'role':'assistant','content':'A','reasoning_content':'R'},"
                        "{'role':'user','content':[{'type':'text','text':'a'},{'type':'text','text':'b'},'c']}]}"),
             "S S|S D|U U|A A{R}|U abc");
    /* what comes late stays where it is */
    messages(c, serve_json("{'messages':[{'role':'user','content':'a'},{'role':'system','content':'b'}]}"), "U a|U b");
    messages(c,
             serve_json("{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'x'},"
                        "{'role':'developer','content':'b'},{'role':'user','content':'c'}]}"),
             "U a|A x|U b|U c");
    messages(c, serve_json("{'messages':[{'role':'system','content':'only'}]}"), "S only|U ");
    messages(c, serve_json("{'messages':[{'role':'user','content':null},{'role':'user'}]}"), "U |U ");
    /* calls */
    messages(c,
             serve_json("{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':null,'tool_calls':["
                        "{'id':'i1','type':'function','function':{'name':'f','arguments':'{\\'x\\': 1.50}'}},"
                        "{'id':'i2','function':{'name':'g','arguments':''}},{'function':{'name':'h'}},"
                        "{'id':'i4','type':'custom','custom':{'name':'p','input':'a \\'b\\''}}]},"
                        "{'role':'tool','tool_call_id':'i1','content':'one'},"
                        "{'role':'function','tool_call_id':'i2','content':[{'type':'text','text':'a'},"
                        "{'type':'text','text':'b'}]}]}"),
             serve_json("U a|A (i1 f {'x': 1.50})(i2 g {})( h {})(i4 p {'input':'a \\'b\\''})|T i1: one|T i2: a\n\nb"));
    /* arguments that are no string keep their spelling */
    messages(c,
             serve_json("{'messages':[{'role':'assistant','tool_calls':[{'id':'i','function':{'name':'f','arguments':"
                        "{'x': 0.10, 'big':123456789012345678901234567890}}}]},{'content':'go'}]}"),
             serve_json("A (i f {'x': 0.10, 'big':123456789012345678901234567890})|U go"));
    refused(c, "{}", "messages", "at least one");
    refused_with(c, "'messages':[]", "messages", "at least one");
    refused_with(c, "'messages':'hi'", "messages", "array");
    refused_with(c, "'messages':[5]", "messages", "objects");
    refused_with(c, "'messages':[{'role':5}]", "role", "string");
    refused_with(c, "'messages':[{'role':'robot','content':'x'}]", "role", "robot");
    refused_with(c, "'messages':[{'content':5}]", "content", "string or an array");
    refused_with(c, "'messages':[{'content':[5]}]", "content", "objects");
    refused_with(c, "'messages':[{'content':[{'type':'nonsense'}]}]", "content", "nonsense");
    refused_with(c, "'messages':[{'content':[{'type':'image_url','image_url':{'url':'data:'}}]}]", "content", "image");
    refused_with(c, "'messages':[{'content':[{'type':'input_audio','input_audio':{}}]}]", "content", "input_audio");
    refused_with(c, "'messages':[{'role':'assistant','tool_calls':[{'id':'i'}]}]", "messages", "name");
    refused_with(c, "'messages':[{'role':'assistant','tool_calls':{}}]", "tool_calls", "array");
    refused_with(c, "'messages':[{'role':'assistant','function_call':{'name':'f','arguments':''}}]", "function_call",
                 "messages[].function_call");
    refused_with(c, "'messages':[{'role':'assistant','audio':{'id':'a'}}]", "audio", "messages[].audio");
    messages(c,
             serve_json("{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':null,'refusal':'no',"
                        "'audio':null,'function_call':null},{'role':'user','content':'b'}]}"),
             "U a|A no|U b");
    /* there must be something to answer */
    refused_with(c, "'messages':[{'content':'a'},{'role':'assistant','content':'b'}]", "messages", "last message");
    /* a picture in a result leaves a stand-in */
    messages(c,
             serve_json("{'messages':[{'role':'tool','tool_call_id':'i','content':[{'type':'text','text':'see'},"
                        "{'type':'image_url','image_url':{'url':'data:'}}]}]}"),
             "T i: see\n\n[image left out: this model runs without vision]");
    refused(API_COMPLETIONS, "{}", "prompt", "string");
    refused(API_COMPLETIONS, "{\"prompt\":[\"a\",\"b\"]}", "prompt", "one string");
    refused(API_COMPLETIONS, "{\"prompt\":[1,2]}", "prompt", "string");
    messages(API_COMPLETIONS, "{\"prompt\":[\"a\"]}", "S You are a helpful assistant|U a");
}

static void test_anthropic_messages(void **state)
{
    const enum api m = API_MESSAGES;
    messages(m, serve_json("{'system':'S','messages':[{'role':'user','content':'U'}]}"), "S S|U U");
    messages(m,
             serve_json("{'system':[{'type':'text','text':'x-anthropic-billing-header: a'},{'type':'text','text':'a'},"
                        "'b',{'text':'c\\n'},{'type':'text','text':'d'}],'messages':[{'role':'user','content':'U'}]}"),
             "S a\nb\nc\nd|U U");
    messages(m, serve_json("{'system':[],'messages':[{'role':'user','content':'U'}]}"), "U U");
    messages(m, serve_json("{'messages':[{'role':'user','content':'U'},{'role':'system','content':'late'}]}"),
             "U U|U late");
    messages(m, serve_json("{'messages':[{'role':'system','content':'early'},{'role':'user','content':'U'}]}"),
             "S early|U U");
    messages(
        m,
        serve_json(
            "{'messages':[{'content':[{'type':'text','text':'a'},{'type':'text','text':'b'}],'role':'user'},"
            "{'role':'assistant','content':[{'type':'thinking','thinking':'R','signature':'s'},"
            "{'type':'redacted_thinking','data':'x'},{'type':'text','text':'A'},{'type':'tool_use','id':'t1',"
            "'name':'f','input':{'x': 0.10, 'y':[1, 2]}},{'type':'tool_use','id':'t2','name':'g'}]},"
            "{'role':'user','content':[{'type':'tool_result','tool_use_id':'t1','content':'one','is_error':true},"
            "{'type':'tool_result','tool_use_id':'t2','content':[{'type':'text','text':'two'},"
            "{'type':'image','source':{}}]},{'type':'text','text':'go'},{'type':'text','text':' on'},"
            "{'type':'tool_result','tool_use_id':'t3'},{'type':'text','text':'end'}]}]}"),
        serve_json("U ab|A A{R}(t1 f {'x': 0.10, 'y':[1, 2]})(t2 g {})|T t1: one|T t2: two\n\n[image left out: this "
                   "model runs without vision]|U go on|T t3: |U end"));
    messages(m, serve_json("{'messages':[{'role':'user','content':[]},{'role':'user'}]}"), "U |U ");
    refused(m, "{}", "messages", "at least one");
    refused_with(m, "'messages':'hi'", "messages", "array");
    refused_with(m, "'messages':[5]", "messages", "objects");
    refused_with(m, "'messages':[{'role':'tool','content':'x'}]", "role", "tool");
    refused_with(m, "'messages':[{'content':'x'}]", "role", "role");
    refused_with(m, "'messages':[{'role':'user','content':5}]", "content", "string or an array");
    refused_with(m, "'messages':[{'role':'user','content':['a']}]", "messages", "type");
    refused_with(m, "'messages':[{'role':'user','content':[{'type':'image','source':{}}]}]", "type", "vision");
    refused_with(m, "'messages':[{'role':'user','content':[{'type':'document'}]}]", "type", "document");
    refused_with(m, "'messages':[{'role':'assistant','content':[{'type':'server_tool_use'}]}]", "type",
                 "server_tool_use");
    refused_with(m, "'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'x'}]}]", "name", "tool_use");
    refused_with(m, "'system':5", "system", "string or an array");
    refused_with(m, "'system':[5]", "system", "objects");
    refused_with(m, "'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'{'}]", "messages",
                 "last message");
}

static void test_responses_input(void **state)
{
    const enum api r = API_RESPONSES;
    messages(r, serve_json("{'instructions':'I','input':'U'}"), "S I|U U");
    messages(r, serve_json("{'instructions':'','input':''}"), "U ");
    messages(r, serve_json("{'input':[]}"), "U ");
    messages(
        r,
        serve_json("{'input':[{'role':'developer','content':'D'},{'content':'U'},{'role':'developer','content':'L'}]}"),
        "S D|U U|U L");
    messages(
        r,
        serve_json("{'input':[{'type':'message','role':'user','content':[{'type':'input_text','text':'a'},"
                   "{'type':'input_text','text':'b'}]},{'type':'reasoning','summary':[{'type':'summary_text','text':"
                   "'R1'}],'content':[{'type':'reasoning_text','text':'R2'}],'encrypted_content':'x'},"
                   "{'type':'message','role':'assistant','status':'completed','content':[{'type':'output_text','text':"
                   "'A','annotations':[]}]},{'type':'function_call','id':'fc','call_id':'c1','name':'f','arguments':"
                   "'{\\'x\\':1}','status':'incomplete'},{'type':'function_call','id':'fc2','namespace':'ns__','name':"
                   "'g','arguments':''},{'type':'function_call_output','call_id':'c1','output':'one'},"
                   "{'type':'function_call_output','call_id':'fc2','output':[{'type':'input_text','text':'a'},"
                   "{'type':'input_image','image_url':'data:'}]}]}"),
        serve_json("U ab|A A{R1\nR2}(c1 f {'x':1})(fc2 ns__g {})|T c1: one|T fc2: a\n\n[image left out: this model "
                   "runs without vision]"));
    /* reasoning in front of a call, and in front of what is no answer */
    messages(r,
             serve_json("{'input':[{'content':'U'},{'type':'reasoning','summary':[{'type':'summary_text','text':'R'}]},"
                        "{'type':'function_call','call_id':'c','name':'f','arguments':'{}'},"
                        "{'type':'function_call_output','call_id':'c','output':'o'}]}"),
             "U U|A {R}(c f {})|T c: o");
    messages(r,
             serve_json("{'input':[{'content':'U'},{'type':'reasoning','summary':[{'type':'summary_text','text':'R'}]},"
                        "{'type':'compaction','x':1},{'content':'V'}]}"),
             "U U|A {R}|U V");
    messages(
        r,
        serve_json("{'input':[{'content':'U'},{'type':'reasoning','summary':[{'type':'summary_text','text':'R'}]}]}"),
        "U U");
    /* calls of every kind */
    messages(
        r,
        serve_json("{'input':[{'content':'U'},{'type':'custom_tool_call','call_id':'c1','name':'p','input':'a\\u0000b"
                   "\\n'},{'type':'local_shell_call','call_id':'c2','action':{'type':'exec','command':['ls']}},"
                   "{'type':'tool_search_call','call_id':'c3','arguments':{'query': 'q'}},{'type':'web_search_call',"
                   "'id':'w1','action':{'q':1.0}},{'type':'custom_tool_call_output','call_id':'c1','output':'o1'},"
                   "{'type':'local_shell_call_output','call_id':'c2','output':'o2'},{'type':'web_search_call_output',"
                   "'id':'w1','result':{'a': 1}}]}"),
        serve_json("U U|A (c1 p {'input':'a\\u0000b\\n'})(c2 local_shell {'type':'exec','command':['ls']})(c3 "
                   "tool_search {'query': 'q'})(w1 web_search_call {'q':1.0})|T c1: o1|T c2: o2|T w1: {'a': 1}"));
    refused(r, "{}", "input", "string or an array");
    refused_with(r, "'input':5", "input", "string or an array");
    refused_with(r, "'input':[5]", "input", "objects");
    refused_with(r, "'input':[{'type':'item_reference','id':'x'}]", "input", "item_reference");
    refused_with(r, "'input':[{'type':'nonsense'}]", "input", "nonsense");
    refused_with(r, "'input':[{'content':5}]", "content", "string or an array");
    refused_with(r, "'input':[{'role':'robot','content':'x'}]", "role", "robot");
    refused_with(r, "'input':[{'content':[{'type':'input_image','image_url':'data:'}]}]", "content", "image");
    refused_with(r, "'input':[{'content':[{'type':'input_file'}]}]", "content", "input_file");
    refused_with(r, "'input':[{'type':'function_call','call_id':'c'}]", "name", "name");
    refused_with(r, "'input':[{'type':'function_call','call_id':'c','name':'f','status':'in_progress'}]", "status",
                 "in_progress");
    refused_with(r, "'instructions':5", "instructions", "string");
    refused_with(r, "'input':[{'content':'U'},{'role':'assistant','content':'A'}]", "input", "last message");
}

/* ---------------------------------------------------------------- tools */

#define F      "{'type':'object','properties':{'x':{'type':'integer','maximum':18446744073709551615}}}"
#define F_LINE "{'type': 'object', 'properties': {'x': {'type': 'integer', 'maximum': 18446744073709551615}}}"

static void test_tools(void **state)
{
    tools(
        API_CHAT,
        with(API_CHAT, "'tools':[{'type':'function','function':{'name':'f','description':'d','parameters':" F
                       ",'strict':true}},{'type':'custom','custom':{'name':'p','description':'e'}}]"),
        serve_json("function f {'name': 'f', 'description': 'd', 'parameters': " F_LINE "}|custom p {'name': 'p', "
                   "'description': 'e', 'parameters': {'type': 'object', 'properties': {'input': {'type': 'string'}}, "
                   "'required': ['input']}}"));
    tools(API_MESSAGES,
          with(API_MESSAGES, "'tools':[{'name':'f','description':'d','input_schema':" F ",'cache_control':"
                             "{'type':'ephemeral'},'eager_input_streaming':true},{'type':"
                             "'web_search_20250305','name':'web_search'},{'type':'custom','name':'g',"
                             "'input_schema':{}}]"),
          serve_json("function f {'name': 'f', 'description': 'd', 'parameters': " F_LINE "}|function g {'name': 'g', "
                     "'parameters': {}}"));
    tools(API_RESPONSES,
          with(API_RESPONSES,
               "'tools':[{'type':'function','name':'f','description':'d','parameters':" F ",'strict':false},"
               "{'type':'web_search'},{'type':'namespace','name':'ns__','tools':[{'type':'function','name':"
               "'g','parameters':{}}]},{'type':'custom','name':'p','format':{'type':'grammar'}}]"),
          serve_json("function f {'name': 'f', 'description': 'd', 'parameters': " F_LINE "}|function g/ns__ {'name': "
                     "'ns__g', 'parameters': {}}|custom p {'name': 'p', 'parameters': {'type': 'object', 'properties': "
                     "{'input': {'type': 'string'}}, 'required': ['input']}}"));
    /* without parameters: functions have none, in a namespace and of a search they are those of an empty object */
    tools(API_RESPONSES,
          with(API_RESPONSES, "'tools':[{'type':'function','name':'f'},{'type':'namespace','name':'ns__','tools':[{"
                              "'type':'function','name':'g','description':'d'}]},{'type':'tool_search','description':"
                              "'find'}]"),
          serve_json("function f {'name': 'f'}|function g/ns__ {'name': 'ns__g', 'description': 'd', 'parameters': "
                     "{'type': 'object', 'properties': {}}}|search tool_search {'name': 'tool_search', "
                     "'description': 'find', 'parameters': {'type': 'object', 'properties': {}}}"));
    /* what the client runs without describing it */
    struct request *r =
        read_it(API_RESPONSES, with(API_RESPONSES, "'tools':[{'type':'tool_search'},{'type':'local_shell'}]"));
    assert_int_equal(r->n_tools, 2);
    assert_int_equal(r->tool_form[0].form, TOOL_SEARCH);
    assert_int_equal(r->tool_form[1].form, TOOL_LOCAL_SHELL);
    request_free(r);
    /* tools that a search found are added */
    r = read_it(API_RESPONSES,
                serve_json("{'tools':[{'type':'tool_search'}],'input':[{'content':'U'},{'type':"
                           "'tool_search_call','call_id':'c','arguments':{}},{'type':'tool_search_output',"
                           "'call_id':'c','tools':[{'type':'function','name':'found'}]}]}"));
    assert_int_equal(r->n_tools, 2);
    assert_string_equal(r->tool_form[1].wire_name, "found");
    request_free(r);
    for (int i = 0; i < ALL; i++)
        if (apis[i] != API_COMPLETIONS) {
            refused_with(apis[i], "'tools':{}", "tools", "array");
            refused_with(apis[i], "'tools':[5]", "tools", "objects");
        }
    refused_with(API_CHAT, "'tools':[{'type':'function'}]", "function", "name");
    refused_with(API_CHAT, "'tools':[{'type':'function','function':{'name':5}}]", "name", "string");
    refused_with(API_CHAT, "'tools':[{'type':'retrieval'}]", "type", "retrieval");
    refused_with(API_RESPONSES, "'tools':[{'type':'function'}]", "name", "missing");
    refused_with(API_RESPONSES, "'tools':[{'type':'namespace','name':'n','tools':[{}]}]", "name", "missing");
    refused_with(API_MESSAGES, "'tools':[{'input_schema':{}}]", "name", "missing");
}

/* ---------------------------------------------------------------- names of tools */

static const struct call_form {
    const struct answer_syntax *syntax;
    const char *open, *named, *close; /* of a call without arguments */
} call_forms[] = {{&answer_dsml, "<tool_calls><invoke name=\"", "\">", "</invoke></tool_calls>"},
                  {&answer_xml, "<tool_call>\n<function=", ">\n", "</function>\n</tool_call>"}};

static void put_name(void *arg, enum answer_kind kind, const char *bytes, size_t n)
{
    if (kind == ANSWER_CALL_BEGIN) str_add(arg, bytes, n);
}

/* The model writes the name as it is. */
static bool is_understood(const struct request *r, const struct call_form *f)
{
    const struct bpe_text name = r->tool[0].name;
    const struct answer_options o = {.syntax = f->syntax, .tools = r->tool, .n_tools = r->n_tools};
    struct str told = {0};
    struct answer *a = answer_create(&o, put_name, &told);
    answer_feed(a, f->open, strlen(f->open));
    answer_feed(a, name.p, name.n);
    answer_feed(a, f->named, strlen(f->named));
    answer_feed(a, f->close, strlen(f->close));
    const bool called = answer_finish(a, CAUSE_STOP) == END_CALLS;
    const bool same = called && told.n == name.n && !memcmp(told.p, name.p, name.n);
    answer_free(a);
    str_free(&told);
    return same;
}

/* Returns whether such a tool is taken; if so, it can be called in every family's syntax. */
static bool is_taken(const char *name, size_t n)
{
    struct request *r = NULL;
    struct api_error why = {0};
    json_t *q = json_pack("{s[{ss ss}] s[{ss s{ss%}}] ss}", "messages", "role", "user", "content", "Hi", "tools",
                          "type", "function", "function", "name", name, n, "tool_choice", "required");
    char *text = json_dumps(q, JSON_COMPACT);
    const int rc = api_read(API_CHAT, mem_strdup(text), strlen(text), &r, &why);
    if (rc && (why.status != 400 || strcmp(why.param, "name") || !strstr(why.message, "tools[].function.name: ")))
        fail_msg("%s: %d, %s", text, why.status, why.message);
    for (int i = 0; !rc && i < 2; i++)
        if (!is_understood(r, &call_forms[i])) fail_msg("%s is taken and cannot be called", text);
    request_free(r);
    json_decref(q);
    free(text);
    return rc == 0;
}

static void test_names_of_tools(void **state)
{
    static const char *const good[] = {"f", "a_b-c.d/e:f", "with space", "R(D)'s", "\xc3\xa9\xe6\xbc\xa2", "a\\b"};
    static const char *const bad[] = {"",       " f",       "f ",       "a\"b",         "<b>",
                                      "a&lt;b", "a\nb",     "a\x7f",    "\xe2\x80\x9c", "x\xe2\x80\x9fy",
                                      "</f>",   "a\" b=\"", "a&amp;gt;"};
    char name[403];
    for (int c = 0; c < 128; c++) { /* whatever is taken can be called */
        const char in[] = {'a', (char)c, 'b'};
        const bool taken = is_taken(in, 3);
        if (c >= '0' && c <= '9') assert_true(taken);
        if (c < ' ') assert_false(taken);
        is_taken(in, 2);
        is_taken(in + 1, 2);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(is_taken(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(is_taken(bad[i], strlen(bad[i])));
    memset(name, 'n', sizeof name);
    assert_true(is_taken(name, 200));
    assert_false(is_taken(name, 201));
    refused_with(API_CHAT, "'tools':[{'type':'custom','custom':{'name':'a<'}}]", "name",
                 "tools[].custom.name: no call");
    refused_with(API_MESSAGES, "'tools':[{'name':'a<','input_schema':{}}]", "name", "tools[].name: no call");
    refused_with(API_RESPONSES, "'tools':[{'type':'function','name':'a<'}]", "name", "tools[].name: no call");
    refused_with(API_RESPONSES, "'tools':[{'type':'namespace','name':'a<','tools':[]}]", "name",
                 "tools[].name: no call");
    refused_with(API_RESPONSES, "'tools':[{'type':'namespace','name':'a','tools':[{'name':'<'}]}]", "name",
                 "tools[].tools[].name: no call");
    /* the longest name of all */
    memset(name, 'n', 200);
    name[200] = 0;
    char more[1000];
    snprintf(more, sizeof more, "'tools':[{'type':'namespace','name':'%s','tools':[{'name':'%s'}]}]", name, name);
    struct request *r = read_it(API_RESPONSES, with(API_RESPONSES, more));
    for (int i = 0; i < 2; i++) assert_true(is_understood(r, &call_forms[i]));
    request_free(r);
}

static void choice(enum api api, const char *given, enum tool_choice wanted, int chosen)
{
    static const char *const list[] = {
        [API_CHAT] = "'tools':[{'type':'function','function':{'name':'f'}},{'type':'custom','custom':{'name':'p'}}]",
        [API_RESPONSES] = "'tools':[{'type':'function','name':'f'},{'type':'custom','name':'p'}]",
        [API_MESSAGES] = "'tools':[{'name':'f','input_schema':{}},{'name':'p','input_schema':{}}]"};
    char more[400];
    snprintf(more, sizeof more, "%s,'tool_choice':%s", list[api], given);
    if (chosen < -1) {
        refused_with(api, more, "tool_choice", "");
        return;
    }
    struct request *r = read_it(api, with(api, more));
    assert_int_equal(r->choice, wanted);
    if (wanted == CHOICE_NAMED) assert_int_equal(r->chosen, chosen);
    request_free(r);
}

/* A request is taken, or refused with an error that can be told when the request is gone. */
static void judged(enum api api, const json_t *root)
{
    struct request *r = NULL;
    struct api_error why = {0};
    struct str told = {0};
    char *text = json_dumps(root, JSON_COMPACT);
    const int rc = api_read(api, mem_strdup(text), strlen(text), &r, &why);
    request_free(r);
    if (rc) {
        api_error_body("/v1/x", &why, &told);
        json_t *error = json_loadb(told.p, told.n, 0, NULL);
        if (why.status != 400 || !why.message[0] || !error) fail_msg("%s\n%d: %s", text, why.status, str_c(&told));
        json_decref(error);
    }
    str_free(&told);
    free(text);
}

static void put_child(json_t *parent, const char *key, size_t i, json_t *value)
{
    if (key)
        json_object_set(parent, key, value);
    else
        json_array_set(parent, i, value);
}

/* Each value within `at` becomes each of `wrong`, one at a time. */
static int spoil(enum api api, const json_t *root, json_t *at, const json_t *wrong)
{
    int n = 0;
    const size_t members = json_is_object(at) ? json_object_size(at) : json_array_size(at);
    void *member = json_object_iter(at);
    for (size_t i = 0; i < members; i++) {
        const char *key = member ? json_object_iter_key(member) : NULL;
        json_t *kept = json_incref(key ? json_object_get(at, key) : json_array_get(at, i)), *value;
        size_t k;
        json_array_foreach(wrong, k, value)
        {
            put_child(at, key, i, value);
            judged(api, root);
            n++;
        }
        put_child(at, key, i, kept);
        n += spoil(api, root, kept, wrong);
        json_decref(kept);
        if (key) member = json_object_iter_next(at, json_object_iter_at(at, key));
    }
    return n;
}

static void test_every_value_of_every_wrong_type(void **state)
{
    static const char *const requests[ALL] = {
        "{'messages':[{'role':'user','content':[{'type':'text','text':'Hi'}]},{'role':'assistant','content':null,"
        "'tool_calls':[{'id':'a','type':'function','function':{'name':'t','arguments':'{}'}}]},{'role':'tool',"
        "'tool_call_id':'a','content':'r'}],'tools':[{'type':'function','function':{'name':'t','description':'d',"
        "'parameters':{'type':'object','properties':{'a':{'type':'string'}}}}},{'type':'custom','custom':{'name':'u'}}]"
        ","
        "'tool_choice':{'type':'function','function':{'name':'t'}},'stop':['z'],'max_tokens':5,'stream_options':{"
        "'include_usage':true},'reasoning_effort':'low','temperature':1,'seed':1,'logprobs':true,'top_logprobs':2}",
        "{'prompt':'Hi','max_tokens':5,'stop':'z','stream':true}",
        "{'input':[{'type':'message','role':'user','content':[{'type':'input_text','text':'Hi'}]},{'type':'reasoning',"
        "'summary':[{'type':'summary_text','text':'x'}]},{'type':'function_call','call_id':'c','name':'t','arguments':"
        "'{}'},{'type':'function_call_output','call_id':'c','output':'r'}],'tools':[{'type':'function','name':'t',"
        "'parameters':{'type':'object'}},{'type':'custom','name':'u'},{'type':'namespace','name':'n','tools':[{'type':"
        "'function','name':'v'}]}],'reasoning':{'effort':'low','summary':'auto'},'text':{'format':{'type':'text'}},"
        "'max_output_tokens':5,'instructions':'i'}",
        "{'max_tokens':5,'system':[{'type':'text','text':'s','cache_control':{'type':'ephemeral'}}],'messages':[{'role'"
        ":"
        "'user','content':[{'type':'text','text':'Hi'}]},{'role':'assistant','content':[{'type':'thinking','thinking':"
        "'t','signature':'s'},{'type':'tool_use','id':'a','name':'t','input':{'a':1}}]},{'role':'user','content':[{"
        "'type':'tool_result','tool_use_id':'a','content':[{'type':'text','text':'r'}]}]}],'tools':[{'name':'t',"
        "'input_schema':{'type':'object'}}],'tool_choice':{'type':'auto'},'thinking':{'type':'enabled','budget_tokens':"
        "1}}"};
    json_t *wrong = json_loads(serve_json("[null,true,0,-1,1e300,'','x',[],[[]],[null],{},{'a':null},[{'type':null}],"
                                          "[{'type':'text'}],[{'type':'function'}],{'type':'function'}]"),
                               0, NULL);
    for (int i = 0; i < ALL; i++) {
        json_t *root = json_loads(serve_json("%s", requests[i]), 0, NULL);
        request_free(read_it(apis[i], serve_json("%s", requests[i])));
        assert_true(spoil(apis[i], root, root, wrong) >= 16 * 4);
        json_decref(root);
    }
    json_decref(wrong);
    /* the name of this field is a string of the request */
    refused_with(API_CHAT, "'tools':[{'type':'function','function':5}]", "function", "must be an object");
    refused_with(API_CHAT, "'tools':[{'type':'custom','custom':[]}]", "custom", "must be an object");
}

static void test_tool_choice(void **state)
{
    enum { REFUSED = -2 };
    for (int i = 0; i < 2; i++) {
        const enum api api = i ? API_RESPONSES : API_CHAT;
        choice(api, "'auto'", CHOICE_AUTO, -1);
        choice(api, "null", CHOICE_AUTO, -1);
        choice(api, "'none'", CHOICE_NONE, -1);
        choice(api, "'required'", CHOICE_REQUIRED, -1);
        choice(api, "'perhaps'", CHOICE_AUTO, REFUSED);
        choice(api, "5", CHOICE_AUTO, REFUSED);
        choice(api, "{'type':'allowed_tools'}", CHOICE_AUTO, REFUSED);
        choice(api, "{'type':'function'}", CHOICE_AUTO, REFUSED);
    }
    choice(API_CHAT, "{'type':'function','function':{'name':'f'}}", CHOICE_NAMED, 0);
    choice(API_CHAT, "{'type':'custom','custom':{'name':'p'}}", CHOICE_NAMED, 1);
    choice(API_CHAT, "{'type':'function','function':{'name':'p'}}", CHOICE_NAMED, REFUSED);
    choice(API_CHAT, "{'type':'function','function':{'name':'nowhere'}}", CHOICE_NAMED, REFUSED);
    choice(API_RESPONSES, "{'type':'function','name':'f'}", CHOICE_NAMED, 0);
    choice(API_RESPONSES, "{'type':'custom','name':'p'}", CHOICE_NAMED, 1);
    choice(API_RESPONSES, "{'type':'custom','name':'f'}", CHOICE_NAMED, REFUSED);
    choice(API_MESSAGES, "{'type':'auto'}", CHOICE_AUTO, -1);
    choice(API_MESSAGES, "{'type':'none'}", CHOICE_NONE, -1);
    choice(API_MESSAGES, "{'type':'any'}", CHOICE_REQUIRED, -1);
    choice(API_MESSAGES, "{'type':'tool','name':'p'}", CHOICE_NAMED, 1);
    choice(API_MESSAGES, "{'type':'tool','name':'x'}", CHOICE_NAMED, REFUSED);
    choice(API_MESSAGES, "{'type':'tool'}", CHOICE_NAMED, REFUSED);
    choice(API_MESSAGES, "{'type':'perhaps'}", CHOICE_AUTO, REFUSED);
    choice(API_MESSAGES, "'auto'", CHOICE_AUTO, REFUSED);
    struct request *r =
        read_it(API_MESSAGES, with(API_MESSAGES, "'tools':[{'name':'f','input_schema':{}}],'tool_choice':"
                                                 "{'type':'auto','disable_parallel_tool_use':true}"));
    assert_true(r->one_call);
    request_free(r);
    refused_with(API_CHAT, "'tool_choice':'required'", "tool_choice", "no tools");
    refused_with(API_RESPONSES, "'tool_choice':'required'", "tool_choice", "no tools");
    refused_with(API_MESSAGES, "'tool_choice':{'type':'any'}", "tool_choice", "no tools");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_many_values),
        cmocka_unit_test(test_null_is_absent),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_thinking),
        cmocka_unit_test(test_long_model),
        cmocka_unit_test(test_other_fields),
        cmocka_unit_test(test_every_field),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_chat_messages),
        cmocka_unit_test(test_anthropic_messages),
        cmocka_unit_test(test_responses_input),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_names_of_tools),
        cmocka_unit_test(test_tool_choice),
        cmocka_unit_test(test_every_value_of_every_wrong_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
