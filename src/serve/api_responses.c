/* POST /v1/responses: what is asked. */
#include <stdio.h>
#include <string.h>
#include "serve/api_internal.h"

/* ---------------------------------------------------------------- tools */

static const char *joined(struct reading *g, const char *a, const char *b)
{
    struct str s = {0};
    str_printf(&s, "%s%s", a, b);
    const char *text = request_text(g->r, s.p, s.n);
    str_free(&s);
    return text;
}

static void read_namespace(struct reading *g, const struct fields *f, struct json_text text)
{
    json_t *list = field_array(f, "tools"), *tool;
    const char *space = read_tool_name(f);
    struct json_text_items it = json_text_items(json_text_member(text, "tools"));
    struct json_text inner;
    size_t i;
    json_array_foreach(list, i, tool)
    {
        const struct fields t = {tool, "tools[].tools[].", g->f.why};
        const char *name = read_tool_name(&t);
        if (!fields_good(f) || !json_text_next(&it, NULL, &inner)) return;
        add_tool(g, (struct request_tool){TOOL_FUNCTION, joined(g, space, name), name, space}, inner);
    }
}

/* What the client runs without having described it. */
static void add_known(struct reading *g, enum tool_form form, const char *name, const char *schema)
{
    add_tool(g, (struct request_tool){form, name, name, NULL}, json_text_read(schema, strlen(schema)));
}

static void read_search(struct reading *g, const struct fields *f, struct json_text text)
{
    static const char plain[] = "{\"name\": \"tool_search\", \"description\": \"Search available tools.\", "
                                "\"parameters\": {\"type\": \"object\", "
                                "\"properties\": {\"query\": {\"type\": \"string\"}}, \"required\": [\"query\"]}}";
    if (field_object(f, "parameters") || field_string(f, "description", NULL))
        add_tool(g, (struct request_tool){TOOL_SEARCH, "tool_search", "tool_search", NULL}, text);
    else
        add_known(g, TOOL_SEARCH, "tool_search", plain);
}

static void read_tool(struct reading *g, json_t *tool, struct json_text text)
{
    static const char shell[] = "{\"name\": \"local_shell\", \"description\": \"Run a command on the user's "
                                "machine.\", \"parameters\": {\"type\": "
                                "\"object\", \"properties\": {\"command\": {\"type\": \"array\", \"items\": {\"type\": "
                                "\"string\"}}}, \"required\": "
                                "[\"command\"]}}";
    const struct fields f = {tool, "tools[].", g->f.why};
    const char *type = field_string(&f, "type", "function");
    const bool custom = !strcmp(type, "custom"), own = custom || !strcmp(type, "function");
    const char *name = own ? read_tool_name(&f) : NULL;
    if (name)
        add_tool(g, (struct request_tool){custom ? TOOL_CUSTOM : TOOL_FUNCTION, name, name, NULL}, text);
    else if (!strcmp(type, "namespace"))
        read_namespace(g, &f, text);
    else if (!strcmp(type, "tool_search"))
        read_search(g, &f, text);
    else if (!strcmp(type, "local_shell"))
        add_known(g, TOOL_LOCAL_SHELL, "local_shell", shell);
    /* others would be run by the service itself: they are not offered to the model */
}

/* ---------------------------------------------------------------- items */

/* An item being read, and the reasoning that waits for the message it belongs to. */
struct items {
    struct reading *g;
    struct fields f;
    struct json_text text;
    struct bpe_text reasoning;
};

static void give_reasoning(struct items *it, struct chat_message *m)
{
    if (!m->reasoning.n) m->reasoning = it->reasoning;
    it->reasoning = (struct bpe_text){"", 0};
}

/* Reasoning that no answer followed is an answer of its own. */
static void flush_reasoning(struct items *it)
{
    if (it->reasoning.n) give_reasoning(it, request_message(it->g->r, CHAT_ASSISTANT));
}

static void item_message(struct items *it)
{
    struct reading *g = it->g;
    const char *role = field_string(&it->f, "role", "user");
    if (!fields_good(&it->f)) return;
    if (!strcmp(role, "assistant")) {
        const struct bpe_text text = read_content(g, &it->f, "content", CONTENT_ASSISTANT, "");
        struct chat_message *m = request_message(g->r, CHAT_ASSISTANT);
        m->text = text;
        give_reasoning(it, m);
        return;
    }
    flush_reasoning(it);
    if (!strcmp(role, "system") || !strcmp(role, "developer")) {
        add_system(g, read_content(g, &it->f, "content", CONTENT_SYSTEM, ""));
    } else if (!strcmp(role, "user")) {
        const struct bpe_text text = read_content(g, &it->f, "content", CONTENT_USER, "");
        request_message(g->r, CHAT_USER)->text = text;
        g->asked = true;
    } else {
        field_wrong(&it->f, "role", "\"%.40s\" is not system, developer, user or assistant", role);
    }
}

static void item_reasoning(struct items *it)
{
    struct str both = {0};
    const struct bpe_text summary = read_content(it->g, &it->f, "summary", CONTENT_ASSISTANT, "\n");
    const struct bpe_text content = read_content(it->g, &it->f, "content", CONTENT_ASSISTANT, "\n");
    str_add(&both, summary.p, summary.n);
    if (summary.n && content.n) str_puts(&both, "\n");
    str_add(&both, content.p, content.n);
    it->reasoning = (struct bpe_text){request_text(it->g->r, both.p, both.n), both.n};
    str_free(&both);
}

/* A call of an earlier answer. */
static void item_call(struct items *it, const char *name, struct bpe_text arguments)
{
    struct reading *g = it->g;
    const char *id = field_string(&it->f, "call_id", NULL), *space = field_string(&it->f, "namespace", NULL);
    if (!id) id = field_string(&it->f, "id", "");
    if (!name) {
        field_wrong(&it->f, "name", "a call needs one");
        return;
    }
    give_reasoning(it, last_assistant(g));
    struct chat_call *c = request_call(g->r);
    c->id = text_of(id);
    c->name = text_of(space ? joined(g, space, name) : name);
    c->arguments = arguments.n ? arguments : text_of("{}");
}

/* Text of a result: a string, parts, or any JSON as it stands. */
static struct bpe_text result_text(struct items *it, const char *member)
{
    json_t *v = field(&it->f, member);
    if (!v || json_is_string(v)) return v ? text_of_json(v) : (struct bpe_text){"", 0};
    if (json_is_array(v) && json_object_get(json_array_get(v, 0), "type") && strcmp(member, "tools"))
        return read_content(it->g, &it->f, member, CONTENT_RESULT, "\n\n");
    const struct json_text raw = json_text_member(it->text, member);
    return (struct bpe_text){raw.p, raw.n};
}

static void item_result(struct items *it)
{
    struct reading *g = it->g;
    const char *id = field_string(&it->f, "call_id", NULL);
    if (!id) id = field_string(&it->f, "id", "");
    flush_reasoning(it);
    struct bpe_text text = result_text(it, "output");
    if (!field(&it->f, "output")) text = result_text(it, "result");
    if (!field(&it->f, "output") && !field(&it->f, "result")) text = result_text(it, "tools");
    struct chat_message *m = request_message(g->r, CHAT_TOOL);
    m->text = text;
    m->call_id = text_of(id);
}

/* Tools that a search has found can be called from now on. */
static void item_search_result(struct items *it)
{
    json_t *tools = field_array(&it->f, "tools");
    if (tools) read_elements(it->g, &it->f, "tools", it->text, read_tool);
    item_result(it);
}

static bool check_status(struct items *it)
{
    const char *status = field_string(&it->f, "status", "completed");
    if (!*status || !strcmp(status, "completed") || !strcmp(status, "incomplete")) return true;
    return field_wrong(&it->f, "status", "\"%.40s\": only finished items can be part of the input", status);
}

static bool is_result_type(const char *type)
{
    static const char *const types[] = {"function_call_output",    "custom_tool_call_output",
                                        "local_shell_call_output", "web_search_call_output",
                                        "tool_search_call_output", "image_generation_call_output"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i])) return true;
    return false;
}

/* What a call was given: JSON as a string, or as it stands. */
static struct bpe_text call_arguments(const struct items *it)
{
    const char *member = field(&it->f, "action") ? "action" : field(&it->f, "arguments") ? "arguments" : "input";
    const json_t *v = field(&it->f, member);
    return json_is_string(v) ? text_of_json(v) : raw_member(it->text, member, "{}");
}

static void read_item(struct items *it)
{
    const char *type = field_string(&it->f, "type", "message");
    if (!fields_good(&it->f) || !check_status(it)) return;
    if (!strcmp(type, "message"))
        item_message(it);
    else if (!strcmp(type, "reasoning"))
        item_reasoning(it);
    else if (!strcmp(type, "function_call"))
        item_call(it, field_string(&it->f, "name", NULL), call_arguments(it));
    else if (!strcmp(type, "custom_tool_call"))
        item_call(it, field_string(&it->f, "name", NULL), custom_arguments(it->g, it->text));
    else if (!strcmp(type, "local_shell_call"))
        item_call(it, "local_shell", call_arguments(it));
    else if (!strcmp(type, "tool_search_call"))
        item_call(it, "tool_search", call_arguments(it));
    else if (!strcmp(type, "web_search_call") || !strcmp(type, "image_generation_call"))
        item_call(it, type, call_arguments(it));
    else if (!strcmp(type, "tool_search_output"))
        item_search_result(it);
    else if (is_result_type(type))
        item_result(it);
    else if (strcmp(type, "compaction") && strcmp(type, "context_compaction"))
        field_wrong(&it->g->f, "input", "an item of type %.60s is not supported", type);
}

static void read_input(struct reading *g)
{
    json_t *v = field(&g->f, "input"), *item;
    size_t i;
    struct items it = {.g = g, .reasoning = {"", 0}};
    struct json_text_items texts = json_text_items(json_text_member(g->text, "input"));
    if (json_is_string(v))
        request_message(g->r, CHAT_USER)->text = text_of_json(v);
    else if (!json_is_array(v))
        field_wrong(&g->f, "input", "must be a string or an array of items");
    if (!json_is_array(v)) return;
    json_array_foreach(v, i, item)
    {
        if (!json_is_object(item)) field_wrong(&g->f, "input", "its elements must be objects");
        if (!fields_good(&g->f) || !json_text_next(&texts, NULL, &it.text)) return;
        it.f = (struct fields){item, "input[].", g->f.why};
        read_item(&it);
    }
    /* what was thought of an answer that never came is dropped */
}

/* ---------------------------------------------------------------- the other fields */

static void read_summary(struct reading *g)
{
    const struct fields f = {field_object(&g->f, "reasoning"), "reasoning.", g->f.why};
    const char *old = field_string(&f, "generate_summary", NULL), *summary = field_string(&f, "summary", old);
    g->r->summaries =
        summary && (!strcmp(summary, "auto") || !strcmp(summary, "concise") || !strcmp(summary, "detailed"));
    refuse_field(&f, "mode", "standard");
    refuse_field(&f, "context", "auto");
}

/* What an answer may tell beside its text; all but this is of tools that the service would run. */
static void refuse_logprobs(struct reading *g)
{
    json_t *list = field_array(&g->f, "include"), *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        if (json_is_string(v) && !strcmp(json_string_value(v), "message.output_text.logprobs"))
            field_wrong(&g->f, "include", "message.output_text.logprobs is not supported; chat completions has them");
    }
}

static void refuse_unsupported(struct reading *g)
{
    static const char *const replay[] = {"previous_response_id", "conversation"};
    static const char *const others[] = {"background",         "prompt",    "top_logprobs", "max_tool_calls",
                                         "context_management", "moderation"};
    for (size_t i = 0; i < sizeof replay / sizeof *replay; i++)
        if (field(&g->f, replay[i])) field_wrong(&g->f, replay[i], "is not supported; send the whole input instead");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) refuse_field(&g->f, others[i], NULL);
    refuse_field(&g->f, "truncation", "disabled");
    const struct fields text = {field_object(&g->f, "text"), "text.", g->f.why};
    refuse_format(&text, "format");
    refuse_logprobs(g);
}

void read_responses(struct reading *g)
{
    read_model(g);
    read_thinking(g);
    read_summary(g);
    read_sampling(g);
    read_max_tokens(g, "max_tokens");
    read_max_tokens(g, "max_output_tokens");
    read_stream(g);
    g->r->one_call = !field_bool(&g->f, "parallel_tool_calls", true);
    refuse_unsupported(g);
    const char *instructions = field_string(&g->f, "instructions", NULL);
    if (instructions && *instructions) add_system(g, text_of(instructions));
    read_elements(g, &g->f, "tools", g->text, read_tool);
    read_input(g);
    read_openai_choice(g, false);
}
