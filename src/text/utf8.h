/* Incremental UTF-8: tokens end anywhere, terminals and JSON want whole characters. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H
#include <stddef.h>
#include "base/str.h"

struct utf8_stream { unsigned char held[4]; int n_held; }; /* zero = fresh */

/* Feeds n bytes; appends to out what is complete. Invalid bytes become U+FFFD, one for each maximal broken part. */
void utf8_feed(struct utf8_stream *u, const char *bytes, size_t n, struct str *out);
/* End of stream: a held incomplete character becomes U+FFFD. */
void utf8_end(struct utf8_stream *u, struct str *out);

#endif
