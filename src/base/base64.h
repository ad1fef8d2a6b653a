/* Base64 with the standard alphabet (RFC 4648, section 4), padded, without line breaks. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

/* Appends the bytes that text stands for; false, with nothing appended, if it is not base64. */
bool base64_decode(const char *text, size_t n, struct str *out);
/* Appends the text of n bytes. */
void base64_encode(struct str *out, const void *bytes, size_t n);

#endif
