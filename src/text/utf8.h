/* UTF-8: what is whole, what is broken, and streams whose parts end anywhere (tokens do; terminals and JSON want whole
 * characters). Valid is what Unicode calls well-formed: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H
#include <stddef.h>
#include "base/str.h"

/* Looks at the character that starts at p; n >= 1 bytes are there. Returns its length 1..4 if it is whole and valid,
 * -k if the first k bytes are a maximal broken part, 0 if all n bytes are the beginning of a valid character. */
int utf8_at(const char *p, size_t n);
/* Length of the longest valid beginning of p[0..n). */
size_t utf8_valid_run(const char *p, size_t n);

struct utf8_stream {
    unsigned char held[4];
    int n_held;
}; /* zero = fresh */

/* Feeds n bytes; appends to out what is complete. Invalid bytes become U+FFFD, one for each maximal broken part. */
void utf8_feed(struct utf8_stream *u, const char *bytes, size_t n, struct str *out);
/* End of stream: a held incomplete character becomes U+FFFD. */
void utf8_end(struct utf8_stream *u, struct str *out);

#endif
