/* Offered tools and earlier calls. */
#include "models/qwen38/qwen38_tools.h"
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/strmap.h"
#include "models/qwen38/qwen38_prompt.h"
#include "models/qwen38/qwen38_text.h"
#include "text/closing.h"
#include "text/json_text.h"

#define CLOSING "</parameter>"

static void put(struct prompt *p, const struct str *text)
{
    prompt_text(p, str_c(text), text->n);
}

/* ------------------------------------------------------------------------------------------------ offered tools */

static bool is_deferred(struct json_text schema)
{
    const struct json_text v = json_text_member(schema, "defer_loading");
    return v.kind == JSON_TEXT_BOOL && *v.p == 't';
}

static bool is_dropped(struct json_text key)
{
    struct str name = {0};
    json_text_unquote(&name, key);
    const bool dropped = strcmp(str_c(&name), "strict") == 0 || strcmp(str_c(&name), "defer_loading") == 0;
    str_free(&name);
    return dropped;
}

static void put_schema(struct prompt *p, struct json_text schema)
{
    struct str line = {0};
    struct json_text key, item;
    struct json_text_items it = json_text_items(schema);
    while (json_text_next(&it, &key, &item)) {
        if (key.kind != JSON_TEXT_STRING || is_dropped(key)) continue;
        str_puts(&line, line.n > 0 ? ", " : "");
        json_text_official(&line, key);
        str_puts(&line, ": ");
        json_text_minified(&line, item);
    }
    prompt_puts(p, "\n{\"type\": \"function\", \"function\": {");
    put(p, &line);
    prompt_puts(p, "}}");
    str_free(&line);
}

bool qwen38_tools_offer(struct prompt *p, const struct chat_tool *tools, size_t n, const char *before)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const struct json_text schema = json_text_read(tools[i].schema.p, tools[i].schema.n);
        if (is_deferred(schema)) continue;
        if (!any) {
            prompt_puts(p, before);
            prompt_puts(p, qwen38_tools_before);
        }
        put_schema(p, schema);
        any = true;
    }
    if (any) prompt_marked(p, qwen38_tools_after, strlen(qwen38_tools_after), &qwen38_prompt);
    return any;
}

/* ------------------------------------------------------------------------------------------------ calls */

struct argument {
    size_t rank; /* place of its key in the schema */
    size_t index;
    struct json_text key, item;
};

static int compare_arguments(const void *a, const void *b)
{
    const struct argument *const x = a, *const y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Keys of an object, read: key i is text.p[at[i] .. at[i + 1]). */
struct keys {
    struct str text;
    size_t *at;
    size_t n;
};

static size_t count_members(struct json_text object)
{
    size_t n = 0;
    struct json_text key, item;
    for (struct json_text_items it = json_text_items(object); json_text_next(&it, &key, &item);) n++;
    return n;
}

static int keys_read(struct json_text object, struct keys *k)
{
    k->at = mem_try((count_members(object) + 1) * sizeof *k->at);
    if (!k->at) return ERR_MEMORY;
    struct json_text key, item;
    for (struct json_text_items it = json_text_items(object); json_text_next(&it, &key, &item);) {
        json_text_unquote(&k->text, key);
        k->at[++k->n] = k->text.n;
    }
    return 0;
}

static struct bpe_text key_of(const struct keys *k, size_t i)
{
    return (struct bpe_text){str_c(&k->text) + k->at[i], k->at[i + 1] - k->at[i]};
}

static void keys_free(struct keys *k)
{
    str_free(&k->text);
    mem_free(k->at);
}

/* Keys of a schema's properties and their places. */
struct qwen38_order {
    bool read;
    struct keys declared;
    struct strmap *places; /* of keys, which lie in declared */
};

void qwen38_orders_init(struct qwen38_orders *s, const struct chat_tool *tools, size_t n)
{
    *s = (struct qwen38_orders){.tools = tools, .n = n};
    s->of = n > 0 ? mem_alloc(n * sizeof *s->of) : NULL;
}

void qwen38_orders_free(struct qwen38_orders *s)
{
    for (size_t i = 0; i < s->n; i++) {
        strmap_free(s->of[i].places);
        keys_free(&s->of[i].declared);
    }
    mem_free(s->of);
    *s = (struct qwen38_orders){0};
}

static int order_read(struct qwen38_order *order, const struct chat_tool *t)
{
    const struct json_text schema = json_text_read(t->schema.p, t->schema.n);
    int rc = keys_read(json_text_member(json_text_member(schema, "parameters"), "properties"), &order->declared);
    if (rc == 0 && !(order->places = strmap_new(order->declared.n))) rc = ERR_MEMORY;
    for (size_t i = 0; rc >= 0 && i < order->declared.n; i++)
        rc = strmap_put(order->places, key_of(&order->declared, i).p, key_of(&order->declared, i).n, i);
    order->read = rc >= 0;
    return rc < 0 ? rc : 0;
}

/* The order of the tool of that name; *out NULL: it is not offered. */
static int order_of(struct qwen38_orders *s, struct bpe_text name, const struct qwen38_order **out)
{
    *out = NULL;
    for (size_t i = 0; i < s->n && !*out; i++) {
        const struct chat_tool *const t = &s->tools[i];
        if (t->name.n != name.n || memcmp(t->name.p, name.p, name.n) != 0) continue;
        const int rc = s->of[i].read ? 0 : order_read(&s->of[i], t);
        if (rc != 0) return rc;
        *out = &s->of[i];
    }
    return 0;
}

static size_t rank_of(const struct qwen38_order *order, struct bpe_text key)
{
    uint64_t place;
    if (!order) return 0;
    return strmap_get(order->places, key.p, key.n, &place) ? (size_t)place : order->declared.n;
}

static void put_parameter(struct prompt *p, struct bpe_text key, const struct str *value)
{
    struct str name = {0};
    closing_escape(&name, key, ">", false);
    prompt_puts(p, "<parameter=");
    put(p, &name);
    prompt_puts(p, ">\n");
    put(p, value);
    prompt_puts(p, "\n" CLOSING "\n");
    str_free(&name);
}

static void put_argument(struct prompt *p, struct bpe_text key, struct json_text item)
{
    struct str plain = {0}, value = {0};
    if (item.kind == JSON_TEXT_STRING)
        json_text_unquote(&plain, item);
    else
        json_text_minified(&plain, item);
    closing_escape(&value, (struct bpe_text){str_c(&plain), plain.n}, CLOSING, item.kind != JSON_TEXT_STRING);
    put_parameter(p, key, &value);
    str_free(&plain);
    str_free(&value);
}

static int put_object(struct prompt *p, struct json_text object, const struct qwen38_order *order)
{
    struct keys keys = {0};
    int rc = keys_read(object, &keys);
    struct argument *const list = rc == 0 ? mem_try(keys.n * sizeof *list) : NULL;
    if (!list) rc = ERR_MEMORY;
    if (rc == 0) {
        struct json_text_items it = json_text_items(object);
        for (size_t i = 0; json_text_next(&it, NULL, &list[i].item); i++) {
            list[i].rank = rank_of(order, key_of(&keys, i));
            list[i].index = i;
        }
        qsort(list, keys.n, sizeof *list, compare_arguments);
        for (size_t i = 0; i < keys.n; i++) put_argument(p, key_of(&keys, list[i].index), list[i].item);
    }
    mem_free(list);
    keys_free(&keys);
    return rc;
}

static int put_arguments(struct prompt *p, const struct chat_call *call, struct qwen38_orders *orders)
{
    static const struct bpe_text whole = {"arguments", 9};
    const struct json_text object = json_text_read(call->arguments.p, call->arguments.n);
    const struct qwen38_order *order;
    if (object.kind == JSON_TEXT_OBJECT) {
        const int rc = order_of(orders, call->name, &order);
        return rc != 0 ? rc : put_object(p, object, order);
    }
    if (call->arguments.n > 0) {
        struct str value = {0};
        closing_escape(&value, call->arguments, CLOSING, false);
        put_parameter(p, whole, &value);
        str_free(&value);
    }
    return 0;
}

int qwen38_tools_calls(struct prompt *p, const struct chat_message *m, size_t n_text, struct qwen38_orders *orders,
                       struct err *e)
{
    if (m->n_calls > 0 && m->block.n > 0) {
        prompt_marked(p, m->block.p, m->block.n, &qwen38_prompt);
        return 0;
    }
    for (size_t i = 0; i < m->n_calls; i++) {
        prompt_puts(p, i > 0 ? "\n" : n_text > 0 ? "\n\n" : "");
        prompt_special(p, QWEN38_TOOL_CALL);
        prompt_puts(p, "\n<function=");
        prompt_text(p, m->calls[i].name.p, m->calls[i].name.n);
        prompt_puts(p, ">\n");
        if (put_arguments(p, &m->calls[i], orders) != 0)
            return err_set(e, ERR_MEMORY, "no memory for the calls of an answer");
        prompt_puts(p, "</function>\n");
        prompt_special(p, QWEN38_TOOL_CALL_END);
    }
    return 0;
}
