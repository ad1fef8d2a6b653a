#include "serve/scripted_vocabulary.h"
#include <pthread.h>
#include <string.h>
#include "base/mem.h"
#include "base/strmap.h"

/* The first byte of a key says whether it is a control token. */
struct scripted_vocabulary {
    pthread_mutex_t lock;
    struct strmap *ids;
    struct entry {
        char *key;
        size_t n; /* of the key */
    } * entry;
    size_t n, cap;
};

struct scripted_vocabulary *scripted_vocabulary_new(void)
{
    struct scripted_vocabulary *v = mem_alloc(sizeof *v);
    pthread_mutex_init(&v->lock, NULL);
    v->ids = strmap_new(1024);
    return v;
}

void scripted_vocabulary_free(struct scripted_vocabulary *v)
{
    if (!v) return;
    for (size_t i = 0; i < v->n; i++) mem_free(v->entry[i].key);
    strmap_free(v->ids);
    mem_free(v->entry);
    pthread_mutex_destroy(&v->lock);
    mem_free(v);
}

static int32_t add(struct scripted_vocabulary *v, char *key, size_t n)
{
    if (v->n == v->cap) v->entry = mem_grow(v->entry, (v->cap = 2 * v->cap + 256) * sizeof *v->entry);
    v->entry[v->n] = (struct entry){key, n};
    strmap_put(v->ids, key, n, v->n);
    return (int32_t)v->n++;
}

int32_t scripted_vocabulary_id(struct scripted_vocabulary *v, bool control, const char *bytes, size_t n)
{
    char small[256], *key = n < sizeof small ? small : mem_alloc(n + 1);
    uint64_t found;
    key[0] = control ? 'c' : 't';
    memcpy(key + 1, bytes, n);
    pthread_mutex_lock(&v->lock);
    const bool known = strmap_get(v->ids, key, n + 1, &found);
    if (!known) {
        char *const kept = mem_alloc(n + 2);
        memcpy(kept, key, n + 1);
        found = (uint64_t)add(v, kept, n + 1);
    }
    pthread_mutex_unlock(&v->lock);
    if (key != small) mem_free(key);
    return (int32_t)found;
}

size_t scripted_vocabulary_bytes(struct scripted_vocabulary *v, int32_t id, bool *control, const char **bytes)
{
    pthread_mutex_lock(&v->lock);
    const struct entry entry = v->entry[id];
    pthread_mutex_unlock(&v->lock);
    if (control) *control = entry.key[0] == 'c';
    *bytes = entry.key + 1;
    return entry.n - 1;
}
