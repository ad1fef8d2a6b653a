/* JSON's strings and numbers. */
#include "json_text.h"
#include <math.h>
#include <string.h>
#include "text/utf8.h"

static void put_ascii(struct str *out, unsigned char c)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = c ? strchr(named, c) : NULL;
    if (at)
        str_printf(out, "\\%c", letters[at - named]);
    else if (c < 32 || c == 127)
        str_printf(out, "\\u%04x", c);
    else
        str_add(out, &c, 1);
}

void json_string(struct str *out, const char *bytes, size_t n)
{
    str_puts(out, "\"");
    for (size_t i = 0; i < n;) {
        const unsigned char c = (unsigned char)bytes[i];
        const int length = utf8_at(bytes + i, n - i);
        if (length > 1)
            str_add(out, bytes + i, (size_t)length);
        else if (length == 1)
            put_ascii(out, c);
        else
            str_printf(out, "\\u%04x", c);
        i += length > 1 ? (size_t)length : 1;
    }
    str_puts(out, "\"");
}

void json_float(struct str *out, double v)
{
    if (isfinite(v))
        str_printf(out, "%.9g", v);
    else
        str_puts(out, "null");
}

void json_floats(struct str *out, const float *v, int n)
{
    for (int i = 0; i < n; i++) {
        str_puts(out, !i ? "\n    " : i % 8 ? ", " : ",\n    ");
        json_float(out, (double)v[i]);
    }
    str_puts(out, "\n  ");
}
