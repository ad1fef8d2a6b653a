/* Stop strings: a filter behind the answer parser for the text of an answer. Reasoning and calls do not go through it:
 * they are no part of the text that a client names its stop strings for, and markup and think blocks would end in their
 * middle. The string that starts first ends the text; of two that start at the same place the shorter one. What may be
 * the start of one is held back, and nothing else; the result does not depend on where the feeds are cut. */
#ifndef TEXT_STOP_STRINGS_H
#define TEXT_STOP_STRINGS_H
#include <stddef.h>
#include "base/str.h"

struct stop_strings;

/* Copies strings[n] (zero-terminated; empty ones are ignored). */
struct stop_strings *stop_strings_create(const char *const *strings, size_t n);
void stop_strings_free(struct stop_strings *s); /* NULL is fine */
/* Feeds n bytes; appends to out what is certain to stand before any stop string. Index of the string that was met, or
 * -1. After a hit nothing more is appended and the same index is returned. */
int stop_strings_feed(struct stop_strings *s, const char *bytes, size_t n, struct str *out);
/* No more text: appends what was held back. Index of a string that was met, or -1. */
int stop_strings_end(struct stop_strings *s, struct str *out);

#endif
