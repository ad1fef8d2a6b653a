/* Offered tools and earlier calls. */
#include "models/deepseek4/deepseek4_tools.h"
#include <string.h>
#include "models/deepseek4/deepseek4_prompt.h"
#include "models/deepseek4/deepseek4_tool_text.h"
#include "text/closing.h"
#include "text/json_text.h"

#define DSML    "｜DSML｜"
#define CLOSING "</" DSML "parameter>"

void deepseek4_tools_offer(struct prompt *p, const struct chat_tool *tools, size_t n)
{
    prompt_marked(p, deepseek4_tool_text_before, strlen(deepseek4_tool_text_before), &deepseek4_prompt);
    for (size_t i = 0; i < n; i++) {
        prompt_text(p, tools[i].schema.p, tools[i].schema.n);
        prompt_puts(p, "\n");
    }
    prompt_puts(p, deepseek4_tool_text_after);
}

/* ------------------------------------------------------------------------------------------------ calls */

/* "<" or "</", the special token, the rest of the tag. */
static void tag(struct prompt *p, const char *open, const char *rest)
{
    prompt_puts(p, open);
    prompt_special(p, DSML);
    prompt_puts(p, rest);
}

static void put(struct prompt *p, const struct str *text)
{
    prompt_text(p, str_c(text), text->n);
}

static void put_name(struct prompt *p, struct bpe_text name)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    size_t from = 0;
    for (size_t i = 0; i < name.n; i++)
        for (size_t k = 0; k < sizeof entities / sizeof *entities; k++) {
            if (name.p[i] != entities[k].c) continue;
            prompt_text(p, name.p + from, i - from);
            prompt_puts(p, entities[k].entity);
            from = i + 1;
        }
    prompt_text(p, name.p + from, name.n - from);
}

static void put_parameter(struct prompt *p, struct bpe_text name, bool string, struct bpe_text value)
{
    struct str guarded = {0};
    closing_replace(&guarded, value, CLOSING, string ? "&lt;" : "\\u003c");
    tag(p, "<", "parameter name=\"");
    put_name(p, name);
    prompt_puts(p, string ? "\" string=\"true\">" : "\" string=\"false\">");
    put(p, &guarded);
    tag(p, "</", "parameter>\n");
    str_free(&guarded);
}

static void put_member(struct prompt *p, struct json_text key, struct json_text item)
{
    struct str name = {0}, value = {0};
    json_text_unquote(&name, key);
    const bool string = item.kind == JSON_TEXT_STRING;
    if (string)
        json_text_unquote(&value, item);
    else
        json_text_official(&value, item);
    put_parameter(p, (struct bpe_text){str_c(&name), name.n}, string, (struct bpe_text){str_c(&value), value.n});
    str_free(&name);
    str_free(&value);
}

static void put_arguments(struct prompt *p, struct bpe_text arguments)
{
    static const struct bpe_text whole = {"arguments", 9};
    const struct json_text object = json_text_read(arguments.p, arguments.n);
    if (object.kind != JSON_TEXT_OBJECT && arguments.n > 0) {
        put_parameter(p, whole, true, arguments);
        return;
    }
    bool any = false;
    struct json_text key, item;
    struct json_text_items it = json_text_items(object);
    for (; json_text_next(&it, &key, &item); any = true) put_member(p, key, item);
    if (!any) prompt_puts(p, "\n");
}

void deepseek4_tools_calls(struct prompt *p, const struct chat_message *m)
{
    if (m->n_calls == 0) return;
    if (m->block.n > 0) {
        prompt_marked(p, m->block.p, m->block.n, &deepseek4_prompt);
        return;
    }
    prompt_puts(p, "\n\n");
    tag(p, "<", "tool_calls>\n");
    for (size_t i = 0; i < m->n_calls; i++) {
        tag(p, "<", "invoke name=\"");
        put_name(p, m->calls[i].name);
        prompt_puts(p, "\">\n");
        put_arguments(p, m->calls[i].arguments);
        tag(p, "</", "invoke>\n");
    }
    tag(p, "</", "tool_calls>");
}
