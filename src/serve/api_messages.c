/* POST /v1/messages and its count_tokens: what is asked. */
#include <limits.h>
#include <string.h>
#include "serve/api_internal.h"

/* ---------------------------------------------------------------- tools */

/* A tool of the client's; a tool that Anthropic would run (web search and the like) has no schema and is left out. */
static void read_tool(struct reading *g, json_t *tool, struct json_text text)
{
    const struct fields f = {tool, "tools[].", g->f.why};
    const char *type = field_string(&f, "type", "custom"), *name = read_tool_name(&f);
    if (name && (field_object(&f, "input_schema") || !strcmp(type, "custom")))
        add_tool(g, (struct request_tool){TOOL_FUNCTION, name, name, NULL}, text);
}

static void read_choice(struct reading *g)
{
    const struct fields f = {field_object(&g->f, "tool_choice"), "tool_choice.", g->f.why};
    if (!f.object) return;
    const char *type = field_string(&f, "type", "");
    g->r->one_call = field_bool(&f, "disable_parallel_tool_use", false);
    if (!strcmp(type, "none"))
        g->r->choice = CHOICE_NONE;
    else if (!strcmp(type, "any"))
        choose_any(g, "tool_choice");
    else if (!strcmp(type, "tool"))
        choose_tool(g, "tool_choice", field_string(&f, "name", NULL), false);
    else if (strcmp(type, "auto"))
        field_wrong(&g->f, "tool_choice", "its type must be auto, any, tool or none");
}

/* ---------------------------------------------------------------- messages */

/* Parts that begin so are the client's own and change with every request. */
static bool is_billing(const json_t *part)
{
    const char *text = json_string_value(json_object_get(part, "text"));
    return text && !strncmp(text, "x-anthropic-", strlen("x-anthropic-"));
}

static void read_system(struct reading *g)
{
    json_t *v = field(&g->f, "system"), *part;
    size_t i;
    if (!v) return;
    if (json_is_array(v)) {
        for (i = json_array_size(v); i-- > 0;)
            if (is_billing(json_array_get(v, i))) json_array_remove(v, i);
        json_array_foreach(v, i, part)
        {
            if (!json_is_object(part) && !json_is_string(part))
                field_wrong(&g->f, "system", "its parts must be objects");
            if (json_object_get(part, "cache_control")) g->r->cache_control = true;
        }
    }
    const struct bpe_text text = read_content(g, &g->f, "system", CONTENT_SYSTEM, "\n");
    if (text.n) add_system(g, text);
}

static void add_text(struct reading *g, struct bpe_text *to, struct bpe_text more)
{
    struct str both = {0};
    str_add(&both, to->p, to->n);
    str_add(&both, more.p, more.n);
    *to = to->n ? (struct bpe_text){request_text(g->r, both.p, both.n), both.n} : more;
    str_free(&both);
}

static void read_result(struct reading *g, json_t *block)
{
    const struct fields f = {block, "messages[].content[].", g->f.why};
    const struct bpe_text text = read_content(g, &f, "content", CONTENT_RESULT, "\n\n");
    struct chat_message *m = request_message(g->r, CHAT_TOOL);
    m->text = text;
    m->call_id = text_of(field_string(&f, "tool_use_id", ""));
}

static void read_use(struct reading *g, json_t *block, struct json_text block_spelled)
{
    const struct fields f = {block, "messages[].content[].", g->f.why};
    const char *name = field_string(&f, "name", NULL), *id = field_string(&f, "id", "");
    if (!name) {
        field_wrong(&f, "name", "a tool_use block needs one");
        return;
    }
    last_assistant(g);
    struct chat_call *c = request_call(g->r);
    c->id = text_of(id);
    c->name = text_of(name);
    c->arguments = raw_member(block_spelled, "input", "{}");
}

static struct bpe_text block_text(const json_t *block, const char *member)
{
    const json_t *v = json_object_get(block, member);
    return json_is_string(v) ? text_of_json(v) : (struct bpe_text){"", 0};
}

static void read_user_block(struct reading *g, json_t *block, const char *type, bool *open)
{
    const struct fields f = {block, "messages[].content[].", g->f.why};
    if (!strcmp(type, "tool_result")) {
        read_result(g, block);
        *open = false;
    } else if (!strcmp(type, "text")) {
        if (!*open) request_message(g->r, CHAT_USER);
        add_text(g, &g->r->message[g->r->n_messages - 1].text, block_text(block, "text"));
        *open = true;
    } else
        field_wrong(&f, "type", "a block of type %.60s is not supported%s", type,
                    !strcmp(type, "image") ? ": this model runs without vision" : "");
}

static void read_assistant_block(struct reading *g, json_t *block, struct json_text text, const char *type)
{
    const struct fields f = {block, "messages[].content[].", g->f.why};
    if (!strcmp(type, "text"))
        add_text(g, &last_assistant(g)->text, block_text(block, "text"));
    else if (!strcmp(type, "thinking"))
        add_text(g, &last_assistant(g)->reasoning, block_text(block, "thinking"));
    else if (!strcmp(type, "tool_use"))
        read_use(g, block, text);
    else if (strcmp(type, "redacted_thinking"))
        field_wrong(&f, "type", "a block of type %.60s is not supported", type);
}

static void read_blocks(struct reading *g, json_t *list, struct json_text list_text, bool assistant)
{
    json_t *block;
    struct json_text_items it = json_text_items(list_text);
    struct json_text text;
    size_t i;
    bool open = false; /* the last message is this turn's text */
    if (assistant) request_message(g->r, CHAT_ASSISTANT);
    json_array_foreach(list, i, block)
    {
        const char *type = json_string_value(json_object_get(block, "type"));
        if (!json_text_next(&it, NULL, &text)) break;
        if (json_object_get(block, "cache_control")) g->r->cache_control = true;
        if (!type)
            field_wrong(&g->f, "messages", "its content must be made of objects with a type");
        else if (assistant)
            read_assistant_block(g, block, text, type);
        else
            read_user_block(g, block, type, &open);
    }
    if (!assistant && !json_array_size(list)) request_message(g->r, CHAT_USER);
}

static void read_message(struct reading *g, json_t *message, struct json_text text)
{
    const struct fields f = {message, "messages[].", g->f.why};
    const char *role = field_string(&f, "role", "");
    if (!fields_good(&f)) return;
    json_t *content = field(&f, "content");
    const bool user = !strcmp(role, "user"), assistant = !strcmp(role, "assistant");
    if (!strcmp(role, "system"))
        add_system(g, read_content(g, &f, "content", CONTENT_SYSTEM, "\n"));
    else if (!user && !assistant)
        field_wrong(&f, "role", "\"%.40s\" is not user, assistant or system", role);
    else if (json_is_array(content))
        read_blocks(g, content, json_text_member(text, "content"), assistant);
    else {
        const struct bpe_text said = read_content(g, &f, "content", user ? CONTENT_USER : CONTENT_ASSISTANT, "");
        request_message(g->r, user ? CHAT_USER : CHAT_ASSISTANT)->text = said;
    }
    g->asked |= user;
}

/* ---------------------------------------------------------------- the other fields */

static void read_output_config(struct reading *g)
{
    const struct fields o = {field_object(&g->f, "output_config"), "output_config.", g->f.why};
    refuse_given(&o, "format");
    refuse_given(&o, "task_budget");
    read_effort(g, &o, "effort");
}

static void refuse_unsupported(struct reading *g)
{
    static const char *const given[] = {"container", "compaction", "thread", "output_format"};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) refuse_given(&g->f, given[i]);
    refuse_field(&g->f, "mcp_servers", NULL);
    const json_t *edits = json_object_get(field_object(&g->f, "context_management"), "edits"), *edit;
    size_t i;
    json_array_foreach(edits, i, edit)
    {
        const char *type = json_string_value(json_object_get(edit, "type"));
        const json_t *keep = json_object_get(edit, "keep");
        const bool all = json_is_string(keep) && !strcmp(json_string_value(keep), "all");
        if (!type || strncmp(type, "clear_thinking_", strlen("clear_thinking_")) || !all)
            field_wrong(&g->f, "context_management", "only clear_thinking with keep: \"all\" is supported");
    }
}

void read_messages(struct reading *g)
{
    read_model(g);
    read_output_config(g);
    read_thinking(g);
    read_sampling(g);
    read_max_tokens(g, "max_tokens");
    read_stops(g, "stop_sequences", true);
    read_stream(g);
    refuse_unsupported(g);
    if (field(&g->f, "cache_control")) g->r->cache_control = true;
    read_system(g);
    read_elements(g, &g->f, "tools", g->text, read_tool);
    read_choice(g);
    read_message_list(g, read_message);
}
