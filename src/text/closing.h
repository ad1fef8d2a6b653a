/* Text between two tags must not contain its own closing tag. Two ways to write one inside: once replaced (what stands
 * there for a replaced tag is then read as the tag too), or reversibly. Both leave every other text as it is. */
#ifndef TEXT_CLOSING_H
#define TEXT_CLOSING_H
#include <stdbool.h>
#include "base/str.h"
#include "text/bpe.h"

/* Appends text; of every closing tag in it the first byte is written as `first`. */
void closing_replace(struct str *out, struct bpe_text text, const char *closing, const char *first);

/* The reversible way, for closing texts that start with '<' or '>': that byte becomes its entity, and where the text
 * already looks like it ("&lt;/tag>", "&amp;lt;/tag>", ...) its '&' becomes "&amp;". In the text of JSON values they
 * become \u003c or \u003e and \u0026, so that nothing looks escaped. */
void closing_escape(struct str *out, struct bpe_text text, const char *closing, bool json);

#endif
