/* Hash map with open addressing and linear probing. Keys come from files, so the hash is SipHash-1-3 with a key of its
 * own per map: nobody can prepare a file whose keys all collide; and slots lie in pieces, so that many keys need much
 * memory but no large block of it. */
#include "base/strmap.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

struct slot {
    const char *key;
    size_t n;
    uint64_t value;
    uint64_t hash; /* 0 = free */
};

enum { PIECE = 1024 }; /* slots of a piece, but of the only one of a small map */

struct strmap {
    struct slot **piece;
    size_t cap, count; /* cap a power of two, count <= 3/4 cap */
    uint64_t seed[2];
};

static struct slot *slot_at(const struct strmap *m, size_t i)
{
    return &m->piece[i / PIECE][i % PIECE];
}

static uint64_t rotl(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

static uint64_t load_le(const uint8_t *p, size_t n)
{
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++) w |= (uint64_t)p[i] << (8 * i);
    return w;
}

static uint64_t hash_of(const struct strmap *m, const char *key, size_t n)
{
    uint64_t v[4] = {m->seed[0] ^ 0x736f6d6570736575, m->seed[1] ^ 0x646f72616e646f6d, m->seed[0] ^ 0x6c7967656e657261,
                     m->seed[1] ^ 0x7465646279746573};
    const uint8_t *p = (const uint8_t *)key;
    for (size_t left = n;; left -= 8, p += 8) {
        const uint64_t w = left < 8 ? load_le(p, left) | (uint64_t)n << 56 : load_le(p, 8);
        v[3] ^= w;
        sip_round(v);
        v[0] ^= w;
        if (left < 8) break;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    const uint64_t h = v[0] ^ v[1] ^ v[2] ^ v[3];
    return h ? h : 1;
}

/* The key's slot, or the free slot where it belongs. */
static struct slot *find(const struct strmap *m, uint64_t hash, const char *key, size_t n)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct slot *s = slot_at(m, i);
        if (!s->hash || (s->hash == hash && s->n == n && (!n || !memcmp(s->key, key, n)))) return s;
    }
}

static void pieces_free(struct slot **piece, size_t cap)
{
    for (size_t i = 0; piece && i < cap; i += PIECE) mem_free(piece[i / PIECE]);
    mem_free(piece);
}

static struct slot **pieces_new(size_t cap)
{
    struct slot **piece = mem_try((cap / PIECE + 1) * sizeof *piece);
    for (size_t i = 0; piece && i < cap; i += PIECE) {
        piece[i / PIECE] = mem_try((cap < PIECE ? cap : PIECE) * sizeof **piece);
        if (piece[i / PIECE]) continue;
        pieces_free(piece, cap);
        return NULL;
    }
    return piece;
}

struct strmap *strmap_new(size_t n_expected)
{
    struct strmap *m = mem_try(sizeof *m);
    if (!m) return NULL;
    m->cap = 16;
    while (m->cap - m->cap / 4 < n_expected && m->cap <= SIZE_MAX / 4) m->cap *= 2;
    m->piece = pieces_new(m->cap);
    m->seed[0] = clock_ns();
    m->seed[1] = (uintptr_t)m->piece;
    if (m->piece) return m;
    mem_free(m);
    return NULL;
}

void strmap_free(struct strmap *m)
{
    if (!m) return;
    pieces_free(m->piece, m->cap);
    mem_free(m);
}

static int grow(struct strmap *m)
{
    const struct strmap old = *m;
    struct slot **const wider = old.cap <= SIZE_MAX / 2 ? pieces_new(old.cap * 2) : NULL;
    if (!wider) return ERR_MEMORY;
    m->piece = wider;
    m->cap = old.cap * 2;
    for (size_t i = 0; i < old.cap; i++) {
        const struct slot *s = slot_at(&old, i);
        if (s->hash) *find(m, s->hash, s->key, s->n) = *s;
    }
    pieces_free(old.piece, old.cap);
    return 0;
}

int strmap_put(struct strmap *m, const char *key, size_t n, uint64_t value)
{
    const uint64_t hash = hash_of(m, key, n);
    struct slot *s = find(m, hash, key, n);
    if (s->hash) return 0;
    if (m->count + 1 > m->cap - m->cap / 4) {
        if (grow(m)) return ERR_MEMORY;
        s = find(m, hash, key, n);
    }
    *s = (struct slot){key, n, value, hash};
    m->count++;
    return 1;
}

bool strmap_get(const struct strmap *m, const char *key, size_t n, uint64_t *value)
{
    const struct slot *s = find(m, hash_of(m, key, n), key, n);
    if (!s->hash) return false;
    if (value) *value = s->value;
    return true;
}

size_t strmap_count(const struct strmap *m)
{
    return m->count;
}
