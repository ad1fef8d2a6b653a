/* How a tool is described to the model: the function object as one line of JSON in the official style
 * (json_text_official), whichever API it came through. */
#ifndef TEXT_TOOL_SCHEMA_H
#define TEXT_TOOL_SCHEMA_H
#include "base/str.h"
#include "text/bpe.h"
#include "text/json_text.h"

enum tool_schema_kind {
    TOOL_SCHEMA_FUNCTION,      /* as declared; without parameters it has none here either */
    TOOL_SCHEMA_FUNCTION_FULL, /* the same, but none declared are written as an empty object's */
    TOOL_SCHEMA_CUSTOM         /* takes text: one string parameter `input`; a grammar becomes its description */
};

/* Appends the line for an object that holds name, description and parameters, or input_schema, which is renamed: the
 * "function" member of Chat, a tool of Messages or of Responses. Of its members only these are written, in their order;
 * null counts as absent. name: another name than the declared one (of a tool in a namespace); n 0: the declared one. */
void tool_schema(struct str *out, struct json_text tool, struct bpe_text name, enum tool_schema_kind kind);

#endif
