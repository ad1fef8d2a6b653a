/* Errors as values: formatting, first error wins, context in front. */
#include "base/err.h"
#include "base/str.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A cut message must not end in half a UTF-8 character. */
static void trim_partial_utf8(char *s)
{
    size_t n = strlen(s), back = 0;
    while (back < 4 && back < n && ((unsigned char)s[n - 1 - back] & 0xC0) == 0x80) back++;
    if (back == n) return;
    const unsigned char lead = (unsigned char)s[n - 1 - back];
    const size_t want = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (back < want) s[n - 1 - back] = 0;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (!e || e->code) return code;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    if (n < 0) e->msg[0] = 0;
    if (n >= (int)sizeof e->msg) trim_partial_utf8(e->msg);
    text_defuse(e->msg, strlen(e->msg));
    e->code = code;
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e || !e->code) return e ? e->code : 0;
    char old[sizeof e->msg];
    memcpy(old, e->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    const size_t at = n < 0 ? 0 : strlen(e->msg);
    const size_t left = sizeof e->msg - at;
    if ((size_t)snprintf(e->msg + at, left, ": %s", old) >= left) trim_partial_utf8(e->msg);
    text_defuse(e->msg, strlen(e->msg));
    return e->code;
}

void err_clear(struct err *e)
{
    e->code = ERR_OK;
    e->msg[0] = 0;
}
