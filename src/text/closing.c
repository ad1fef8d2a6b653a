/* Closing tags inside of what they close. */
#include "text/closing.h"
#include <string.h>

void closing_replace(struct str *out, struct bpe_text text, const char *closing, const char *first)
{
    while (text.n > 0) {
        const char *const tag = memmem(text.p, text.n, closing, strlen(closing));
        const size_t n = tag ? (size_t)(tag - text.p) : text.n, read = tag ? n + 1 : n;
        str_add(out, text.p, n);
        if (tag) str_puts(out, first);
        text.p += read;
        text.n -= read;
    }
}

static bool starts(const char *p, size_t n, const char *with)
{
    return strlen(with) <= n && memcmp(p, with, strlen(with)) == 0;
}

/* At a '&': whether this is an escaped closing text: any number of "amp;", the entity of its first byte, the rest. */
static bool escaped_at(const char *p, size_t n, const char *closing)
{
    size_t at = 1;
    while (starts(p + at, n - at, "amp;")) at += 4;
    if (!starts(p + at, n - at, *closing == '>' ? "gt;" : "lt;")) return false;
    at += strlen("lt;");
    return starts(p + at, n - at, closing + 1);
}

/* Bytes up to the next one that may need a look. */
static size_t run_to(struct bpe_text text, const char *either)
{
    size_t i = 0;
    while (i < text.n && text.p[i] != either[0] && text.p[i] != either[1]) i++;
    return i;
}

void closing_escape(struct str *out, struct bpe_text text, const char *closing, bool json)
{
    const char look[] = {'&', *closing};
    const char *const amp = json ? "\\u0026" : "&amp;";
    const char *const first = *closing == '>' ? json ? "\\u003e" : "&gt;" : json ? "\\u003c" : "&lt;";
    while (text.n > 0) {
        size_t n = run_to(text, look);
        str_add(out, text.p, n);
        if (n < text.n) {
            const char *const p = text.p + n;
            if (*p == '&' && escaped_at(p, text.n - n, closing))
                str_puts(out, amp);
            else if (starts(p, text.n - n, closing))
                str_puts(out, first);
            else
                str_add(out, p, 1);
            n++;
        }
        text.p += n;
        text.n -= n;
    }
}
