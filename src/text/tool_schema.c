/* Schema lines. */
#include "text/tool_schema.h"
#include <string.h>

enum field { FIELD_NAME, FIELD_DESCRIPTION, FIELD_PARAMETERS, FIELD_COUNT };

static const char *const labels[FIELD_COUNT] = {"\"name\": ", "\"description\": ", "\"parameters\": "};

static enum field field_of(struct json_text key)
{
    static const struct {
        const char *key;
        enum field field;
    } known[] = {{"name", FIELD_NAME},
                 {"description", FIELD_DESCRIPTION},
                 {"parameters", FIELD_PARAMETERS},
                 {"input_schema", FIELD_PARAMETERS}};
    struct str text = {0};
    json_text_unquote(&text, key);
    enum field found = FIELD_COUNT;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (text.n == strlen(known[i].key) && strcmp(str_c(&text), known[i].key) == 0) found = known[i].field;
    str_free(&text);
    return found;
}

/* Text of a string value that stands in a description of ours. */
static void add_string(struct str *out, struct json_text value)
{
    if (value.kind == JSON_TEXT_STRING) json_text_unquote(out, value);
}

/* The parameters of a custom tool. */
static void custom_parameters(struct str *out, struct json_text tool)
{
    const struct json_text format = json_text_member(tool, "format"),
                           definition = json_text_member(format, "definition");
    str_puts(out, "{\"type\": \"object\", \"properties\": {\"input\": {\"type\": \"string\"");
    if (definition.kind == JSON_TEXT_STRING) {
        struct str text = {0};
        str_puts(&text, "Plain text, not JSON. It follows this grammar (");
        add_string(&text, json_text_member(format, "syntax"));
        str_puts(&text, "):\n");
        add_string(&text, definition);
        str_puts(out, ", \"description\": ");
        json_text_quote(out, str_c(&text), text.n);
        str_free(&text);
    }
    str_puts(out, "}}, \"required\": [\"input\"]}");
}

static void field_begin(struct str *out, enum field f, bool written[])
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if (written[i]) {
            str_puts(out, ", ");
            break;
        }
    str_puts(out, labels[f]);
    written[f] = true;
}

void tool_schema(struct str *out, struct json_text tool, struct bpe_text name, enum tool_schema_kind kind)
{
    bool written[FIELD_COUNT] = {false};
    struct json_text key, item;
    str_puts(out, "{");
    if (name.n > 0 && json_text_member(tool, "name").kind == JSON_TEXT_NONE) {
        field_begin(out, FIELD_NAME, written);
        json_text_quote(out, name.p, name.n);
    }
    struct json_text_items it = json_text_items(tool);
    while (json_text_next(&it, &key, &item)) {
        const enum field f = field_of(key);
        if (f == FIELD_COUNT || written[f] || item.kind == JSON_TEXT_NULL) continue;
        if (f == FIELD_PARAMETERS && kind == TOOL_SCHEMA_CUSTOM) continue;
        field_begin(out, f, written);
        if (f == FIELD_NAME && name.n > 0)
            json_text_quote(out, name.p, name.n);
        else
            json_text_official(out, item);
    }
    if (!written[FIELD_PARAMETERS] && kind != TOOL_SCHEMA_FUNCTION) {
        field_begin(out, FIELD_PARAMETERS, written);
        if (kind == TOOL_SCHEMA_CUSTOM)
            custom_parameters(out, tool);
        else
            str_puts(out, "{\"type\": \"object\", \"properties\": {}}");
    }
    str_puts(out, "}");
}
