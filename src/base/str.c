/* Growable byte string. */
#include "base/str.h"
#include "base/mem.h"
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
