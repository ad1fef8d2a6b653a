/* Errors as values: formatting, first error wins, context in front. */
#include "base/err.h"
#include "base/mem.h"
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

/* Beginning and end of a text of n bytes that does not fit. */
static void shorten(char msg[ERR_TEXT], const char *whole, size_t n)
{
    static const char gap[] = " ... ";
    const size_t head = ERR_TEXT / 2;
    size_t tail = ERR_TEXT - head - sizeof gap;
    memcpy(msg, whole, head);
    msg[head] = 0;
    trim_partial_utf8(msg);
    while (tail && ((unsigned char)whole[n - tail] & 0xC0) == 0x80) tail--;
    strcat(msg, gap);
    strncat(msg, whole + n - tail, tail);
}

static void set_text(char msg[ERR_TEXT], const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const int n = vsnprintf(msg, ERR_TEXT, fmt, ap);
    char *whole = n >= ERR_TEXT ? mem_try((size_t)n + 1) : NULL;
    if (n < 0) msg[0] = 0;
    if (whole) {
        vsnprintf(whole, (size_t)n + 1, fmt, again);
        shorten(msg, whole, (size_t)n);
    } else if (n >= ERR_TEXT) {
        trim_partial_utf8(msg);
    }
    mem_free(whole);
    va_end(again);
}

int err_vset(struct err *e, int code, const char *fmt, va_list ap)
{
    if (!e || e->code) return code;
    set_text(e->msg, fmt, ap);
    text_defuse(e->msg, strlen(e->msg));
    return e->code = code;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(e, code, fmt, ap);
    va_end(ap);
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e || !e->code) return e ? e->code : 0;
    char context[ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    set_text(context, fmt, ap);
    va_end(ap);
    const struct err inner = *e;
    err_clear(e);
    return err_set(e, inner.code, "%s: %s", context, inner.msg);
}

void err_clear(struct err *e)
{
    e->code = ERR_OK;
    e->msg[0] = 0;
}
