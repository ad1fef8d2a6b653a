/* JSON as text: looked at and written again without making a tree of it, so that nothing is changed that should stay:
 * keys keep their order and numbers their spelling. No memory is needed to look; all work is linear in the text. */
#ifndef TEXT_JSON_TEXT_H
#define TEXT_JSON_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

enum json_text_kind {
    JSON_TEXT_NONE, /* not JSON, or nested deeper than JSON_TEXT_DEPTH */
    JSON_TEXT_NULL,
    JSON_TEXT_BOOL,
    JSON_TEXT_NUMBER,
    JSON_TEXT_STRING,
    JSON_TEXT_ARRAY,
    JSON_TEXT_OBJECT
};
enum { JSON_TEXT_DEPTH = 1024 };

/* One valid value: its own characters, nothing around them. Borrowed from the text it was found in. */
struct json_text {
    enum json_text_kind kind;
    const char *p;
    size_t n;
};

/* The one value that text is; white space around it is skipped. kind JSON_TEXT_NONE (p and n are then those of text) if
 * it is not valid JSON (RFC 8259; strings may hold any bytes from 0x20 on). */
struct json_text json_text_read(const char *text, size_t n);

/* Iterates over a valid array or object: next is false at the end. key may be NULL; in an array it is of kind
 * JSON_TEXT_NONE. Keys that occur twice come twice. */
struct json_text_items {
    const char *p, *end;
};
struct json_text_items json_text_items(struct json_text value);
bool json_text_next(struct json_text_items *it, struct json_text *key, struct json_text *item);
/* The last member of that name; kind JSON_TEXT_NONE: there is none. */
struct json_text json_text_member(struct json_text object, const char *name);

/* Appends any bytes as a string with its quotes, the way Python's json.dumps(ensure_ascii=False) does: only '"', '\'
 * and control characters below 0x20 are escaped. Bytes that are not UTF-8 become U+FFFD. */
void json_text_quote(struct str *out, const char *bytes, size_t n);
/* Appends what a valid string means, zero bytes included; half a surrogate pair is U+FFFD. Nothing of other values. */
void json_text_unquote(struct str *out, struct json_text string);
/* Appends a valid value on one line, strings as json_text_quote writes them. Official: ", " and ": " between parts, as
 * Python's json.dumps; minified: nothing. Left as they are: keys that occur twice (Python drops all but the last), and
 * the spelling of numbers (Python would write 1e3 as 1000.0, 1.50 as 1.5 and -0 as 0). */
void json_text_official(struct str *out, struct json_text value);
void json_text_minified(struct str *out, struct json_text value);

#endif
