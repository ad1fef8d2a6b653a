#include "base/base64.h"
#include <stdint.h>
#include <string.h>

/* 0..63, or -1. */
static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t n, struct str *out)
{
    const size_t before = out->n;
    size_t padding = 0;
    while (padding < 2 && padding < n && text[n - 1 - padding] == '=') padding++;
    bool good = n % 4 == 0;
    for (size_t i = 0; good && i < n; i += 4) {
        uint32_t bits = 0;
        const size_t pad = i + 4 == n ? padding : 0;
        for (size_t k = 0; k < 4; k++) {
            const int d = k >= 4 - pad ? 0 : digit(text[i + k]);
            good &= d >= 0;
            bits = bits << 6 | (uint32_t)(d & 63);
        }
        good &= (bits & ((1u << 8 * pad) - 1)) == 0; /* bits behind the last byte */
        const char bytes[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        if (good) str_add(out, bytes, 3 - pad);
    }
    if (!good) out->n = before;
    return good;
}

void base64_encode(struct str *out, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        const size_t here = n - i < 3 ? n - i : 3;
        const uint32_t bits =
            (uint32_t)p[i] << 16 | (here > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (here > 2 ? p[i + 2] : 0);
        char text[4] = "====";
        for (size_t k = 0; k <= here; k++) text[k] = digits[bits >> (18 - 6 * k) & 63];
        str_add(out, text, 4);
    }
}
