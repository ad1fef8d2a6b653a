/* h = (h ^ word ^ start) * odd, h ^= h >> 32 over little endian words, the last one padded with zeros, then the number
 * of bytes: every step is invertible, so one changed word is never lost. */
#include "base/checksum.h"
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word ^ UINT64_C(0xcbf29ce484222325)) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

static uint64_t word_at(const unsigned char *p)
{
    uint64_t w = 0;
    for (int i = 7; i >= 0; i--) w = w << 8 | p[i];
    return w;
}

void checksum_add(struct checksum *c, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t h = c->h;
    size_t k = c->n % 8;
    c->n += n;
    for (; k && k < 8 && n; n--) c->part[k++] = *p++;
    if (k && k < 8) return;
    if (k) h = mix(h, word_at(c->part));
    for (; n >= 8; p += 8, n -= 8) h = mix(h, word_at(p));
    if (n) memcpy(c->part, p, n);
    c->h = h;
}

uint64_t checksum_value(const struct checksum *c)
{
    const size_t k = c->n % 8;
    unsigned char last[8] = {0};
    memcpy(last, c->part, k);
    return mix(mix(k ? mix(c->h, word_at(last)) : c->h, c->n), 0);
}
