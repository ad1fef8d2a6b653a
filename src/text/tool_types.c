/* Types of parameters, out of the schema of a tool. */
#include "text/tool_types.h"
#include <string.h>
#include "base/mem.h"

enum { SCHEMA_DEPTH = 8 }; /* of anyOf inside anyOf; deeper ones allow everything */

static bool is(struct json_text string, const char *text)
{
    return string.kind == JSON_TEXT_STRING && string.n == strlen(text) + 2 &&
           memcmp(string.p + 1, text, string.n - 2) == 0;
}

static unsigned type_named(struct json_text name)
{
    if (is(name, "string")) return TOOL_TYPES_STRING;
    if (is(name, "integer") || is(name, "number")) return 1u << JSON_TEXT_NUMBER;
    if (is(name, "boolean")) return 1u << JSON_TEXT_BOOL;
    if (is(name, "null")) return 1u << JSON_TEXT_NULL;
    if (is(name, "array")) return 1u << JSON_TEXT_ARRAY;
    if (is(name, "object")) return 1u << JSON_TEXT_OBJECT;
    return (unsigned)TOOL_TYPES_ANY;
}

static unsigned types_of(struct json_text schema, int depth);

/* Everything that one of the items of an array allows, each read by `read` (depth < 0: as a name of a type). */
static unsigned any_of(struct json_text list, int depth)
{
    unsigned types = 0;
    struct json_text item;
    for (struct json_text_items it = json_text_items(list); json_text_next(&it, NULL, &item);)
        types |= depth < 0 ? type_named(item) : types_of(item, depth);
    return types ? types : (unsigned)TOOL_TYPES_ANY;
}

static unsigned types_of(struct json_text schema, int depth)
{
    if (schema.kind != JSON_TEXT_OBJECT || depth == SCHEMA_DEPTH) return (unsigned)TOOL_TYPES_ANY;
    const struct json_text type = json_text_member(schema, "type");
    if (type.kind == JSON_TEXT_STRING) return type_named(type);
    if (type.kind == JSON_TEXT_ARRAY) return any_of(type, -1);
    const struct json_text constant = json_text_member(schema, "const");
    if (constant.kind != JSON_TEXT_NONE) return 1u << constant.kind;
    const struct json_text values = json_text_member(schema, "enum");
    if (values.kind == JSON_TEXT_ARRAY) {
        unsigned types = 0;
        struct json_text item;
        for (struct json_text_items it = json_text_items(values); json_text_next(&it, NULL, &item);)
            types |= 1u << item.kind;
        return types ? types : (unsigned)TOOL_TYPES_ANY;
    }
    static const char *const choices[] = {"anyOf", "oneOf"};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct json_text list = json_text_member(schema, choices[i]);
        if (list.kind == JSON_TEXT_ARRAY) return any_of(list, depth + 1);
    }
    return (unsigned)TOOL_TYPES_ANY;
}

void tool_types_read(struct tool_types *t, const char *schema, size_t n)
{
    const struct json_text function = json_text_read(schema, n);
    if (function.kind != JSON_TEXT_OBJECT) return;
    struct json_text parameters = json_text_member(function, "parameters");
    if (parameters.kind != JSON_TEXT_OBJECT) parameters = json_text_member(function, "input_schema");
    if (parameters.kind != JSON_TEXT_OBJECT) return;
    const struct json_text properties = json_text_member(parameters, "properties");
    if (properties.kind != JSON_TEXT_OBJECT) return;
    struct json_text key, item;
    size_t count = 0;
    for (struct json_text_items it = json_text_items(properties); json_text_next(&it, &key, &item);) count++;
    if (count == 0) return;
    t->p = mem_alloc(count * sizeof *t->p);
    for (struct json_text_items it = json_text_items(properties); json_text_next(&it, &key, &item); t->n++) {
        json_text_unquote(&t->p[t->n].name, key);
        t->p[t->n].types = types_of(item, 0);
    }
}

void tool_types_free(struct tool_types *t)
{
    for (size_t i = 0; i < t->n; i++) str_free(&t->p[i].name);
    mem_free(t->p);
    *t = (struct tool_types){0};
}

struct tool_parameter *tool_types_find(const struct tool_types *t, const char *name, size_t n)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->p[i].name.n == n && memcmp(str_c(&t->p[i].name), name, n) == 0) return &t->p[i];
    return NULL;
}

bool tool_types_all_given(const struct tool_types *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (!t->p[i].given) return false;
    return t->n > 0;
}
