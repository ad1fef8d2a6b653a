/* Growable byte string, always zero-terminated behind its length; zero-initialised = empty. */
#ifndef BASE_STR_H
#define BASE_STR_H
#include <stdarg.h>
#include <stddef.h>

struct str {
    char *p; /* owned; NULL while empty */
    size_t n, cap;
};

void str_add(struct str *s, const void *bytes, size_t n);
void str_puts(struct str *s, const char *text);
void str_printf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_vprintf(struct str *s, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void str_clear(struct str *s);          /* length 0, memory kept */
void str_free(struct str *s);           /* back to zero-initialised */
const char *str_c(const struct str *s); /* never NULL */

/* Makes text from outside safe to print on one line of a terminal: each byte of a control character (C0, DEL, C1, zero)
 * and each byte that is not UTF-8 becomes '?'. The length stays. */
void text_defuse(char *p, size_t n);

#endif
