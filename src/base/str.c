/* Growable byte string. */
#include "base/str.h"
#include "base/mem.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Room for n more bytes and the zero. A sum that overflows is passed on as SIZE_MAX, which no allocator grants. */
static void reserve(struct str *s, size_t n)
{
    const size_t want = n < SIZE_MAX - s->n ? s->n + n + 1 : SIZE_MAX;
    if (want <= s->cap) return;
    size_t cap = s->cap < SIZE_MAX / 2 ? s->cap * 2 : SIZE_MAX;
    if (cap < 32) cap = 32;
    if (cap < want) cap = want;
    s->p = mem_grow(s->p, cap);
    s->cap = cap;
}

void str_add(struct str *s, const void *bytes, size_t n)
{
    reserve(s, n);
    if (n) memcpy(s->p + s->n, bytes, n);
    s->n += n;
    s->p[s->n] = 0;
}

void str_puts(struct str *s, const char *text)
{
    str_add(s, text, strlen(text));
}

void str_vprintf(struct str *s, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0) {
        reserve(s, (size_t)n);
        vsnprintf(s->p + s->n, (size_t)n + 1, fmt, again);
        s->n += (size_t)n;
    }
    va_end(again);
}

void str_printf(struct str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(s, fmt, ap);
    va_end(ap);
}

void str_clear(struct str *s)
{
    s->n = 0;
    if (s->p) s->p[0] = 0;
}

void str_free(struct str *s)
{
    mem_free(s->p);
    *s = (struct str){0};
}

const char *str_c(const struct str *s)
{
    return s->p ? s->p : "";
}

/* Length of the character that starts at p, 1 to 4; 0 if it is not UTF-8. Overlong forms that would hide a control
 * character begin with bytes that are refused here. */
static size_t character_at(const unsigned char *p, size_t n)
{
    const size_t len = *p < 0x80                 ? 1
                       : *p >= 0xC2 && *p < 0xE0 ? 2
                       : *p >= 0xE0 && *p < 0xF0 ? 3
                       : *p >= 0xF0 && *p < 0xF5 ? 4
                                                 : 0;
    if (len > n || (*p == 0xE0 && len > 1 && p[1] < 0xA0) || (*p == 0xF0 && len > 1 && p[1] < 0x90)) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return len;
}

void text_defuse(char *text, size_t n)
{
    unsigned char *p = (unsigned char *)text;
    for (size_t i = 0; i < n;) {
        const size_t len = character_at(p + i, n - i);
        const bool control = p[i] < 0x20 || p[i] == 0x7F || (p[i] == 0xC2 && len == 2 && p[i + 1] < 0xA0);
        if (len == 0 || control) memset(p + i, '?', len ? len : 1);
        i += len ? len : 1;
    }
}
