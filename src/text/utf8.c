/* UTF-8, character by character. */
#include "text/utf8.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Bytes of the character that a lead byte announces (0: not a lead byte), and the range of its second byte: it is
 * narrower after E0, ED, F0 and F4, which is what keeps out overlong forms, surrogates and too large numbers. */
static int lead_length(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    if (lead < 0xe0) return 2;
    if (lead == 0xe0) *low = 0xa0;
    if (lead == 0xed) *high = 0x9f;
    if (lead < 0xf0) return 3;
    if (lead == 0xf0) *low = 0x90;
    if (lead == 0xf4) *high = 0x8f;
    return 4;
}

int utf8_at(const char *p, size_t n)
{
    const unsigned char *const c = (const unsigned char *)p;
    unsigned char low, high;
    const int len = lead_length(c[0], &low, &high);
    if (len == 0) return -1;
    for (int i = 1; i < len; i++) {
        if ((size_t)i == n) return 0;
        if (c[i] < low || c[i] > high) return -i;
        low = 0x80;
        high = 0xbf;
    }
    return len;
}

size_t utf8_valid_run(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t eight;
        if (n - i >= sizeof eight) {
            memcpy(&eight, p + i, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                i += sizeof eight;
                continue;
            }
        }
        const int len = utf8_at(p + i, n - i);
        if (len <= 0) break;
        i += (size_t)len;
    }
    return i;
}

/* One byte more for the held beginning. False if it does not belong there: then the beginning was broken and the byte
 * is still to be read. */
static bool held_add(struct utf8_stream *u, char byte, struct str *out)
{
    u->held[u->n_held] = (unsigned char)byte;
    const int len = utf8_at((const char *)u->held, (size_t)u->n_held + 1);
    if (len < 0) {
        str_puts(out, replacement);
        u->n_held = 0;
        return false;
    }
    u->n_held++;
    if (len > 0) {
        str_add(out, u->held, (size_t)len);
        u->n_held = 0;
    }
    return true;
}

void utf8_feed(struct utf8_stream *u, const char *bytes, size_t n, struct str *out)
{
    size_t i = 0;
    while (i < n) {
        if (u->n_held > 0) {
            if (held_add(u, bytes[i], out)) i++;
            continue;
        }
        const size_t run = utf8_valid_run(bytes + i, n - i);
        str_add(out, bytes + i, run);
        i += run;
        if (i == n) return;
        const int len = utf8_at(bytes + i, n - i);
        if (len == 0) {
            u->n_held = (int)(n - i);
            memcpy(u->held, bytes + i, n - i);
            return;
        }
        str_puts(out, replacement);
        i += (size_t)-len;
    }
}

void utf8_end(struct utf8_stream *u, struct str *out)
{
    if (u->n_held > 0) str_puts(out, replacement);
    u->n_held = 0;
}
