/* Pieces of JSON, appended to a text. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H
#include "base/str.h"

/* Any bytes as a string with its quotes. UTF-8 stays as it is; a byte that is not part of a valid character becomes
 * \u00XX with its own value (spec cli-and-tools 4). */
void json_string(struct str *out, const char *bytes, size_t n);
/* Nine digits, which give a float back exactly; null if it is not finite, which JSON cannot say. */
void json_float(struct str *out, double v);
/* Many of them, eight a line, without brackets. */
void json_floats(struct str *out, const float *v, int n);

#endif
