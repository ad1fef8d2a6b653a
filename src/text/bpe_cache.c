/* A table in which every piece has one place. */
#include "text/bpe_cache.h"
#include <string.h>
#include "base/mem.h"

enum { LOG2_SLOTS = 14 }; /* 640 kB, of which a short text touches little */

struct piece_cache {
    struct piece_slot slot[1 << LOG2_SLOTS];
};

struct piece_cache *piece_cache_new(void)
{
    return mem_try(sizeof(struct piece_cache));
}

void piece_cache_free(struct piece_cache *c)
{
    mem_free(c);
}

struct piece_slot *piece_cache_find(struct piece_cache *c, const char *piece, size_t n)
{
    uint64_t text[2] = {0};
    memcpy(text, piece, n);
    const uint64_t mixed = (text[0] ^ (text[1] + n) * 0xc2b2ae3d27d4eb4fu) * 0x9e3779b97f4a7c15u;
    struct piece_slot *const s = &c->slot[mixed >> (64 - LOG2_SLOTS)];
    if (s->n_bytes == n && s->text[0] == text[0] && s->text[1] == text[1]) return s;
    memcpy(s->text, text, sizeof text);
    s->n_bytes = (uint8_t)n;
    s->n_ids = 0;
    return s;
}
