/* What the JSON Schema of a tool says about the types of its parameters: enough to read values that a model writes
 * without saying their type. */
#ifndef TEXT_TOOL_TYPES_H
#define TEXT_TOOL_TYPES_H
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"
#include "text/json_text.h"

/* A set of types: bit 1 << kind of each JSON_TEXT_* that is allowed. */
enum { TOOL_TYPES_ANY = ~0, TOOL_TYPES_STRING = 1 << JSON_TEXT_STRING };

struct tool_parameter {
    struct str name;
    unsigned types;
    bool given; /* for the reader of a call */
};

struct tool_types {
    struct tool_parameter *p;
    size_t n;
}; /* zero = nothing declared */

/* schema: the function object, with `parameters` (or `input_schema`). Whatever is not understood allows any type. */
void tool_types_read(struct tool_types *t, const char *schema, size_t n);
void tool_types_free(struct tool_types *t); /* back to zero */
/* NULL: not declared */
struct tool_parameter *tool_types_find(const struct tool_types *t, const char *name, size_t n);
/* All declared parameters are given, and there are some. */
bool tool_types_all_given(const struct tool_types *t);

#endif
