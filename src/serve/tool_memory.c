#include "serve/tool_memory.h"
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/random.h"

/* An answer's calls; live as long as one of their ids. */
struct calls {
    struct str block, reasoning;
    int ids;
};

/* Items hang in a tree by their key and in a list by their last use. */
struct item {
    char *key; /* the request's key, a zero byte, the id */
    size_t n_key;
    struct calls *calls;
    struct item *older, *newer;
};

struct tool_memory {
    pthread_mutex_t lock;
    size_t max_ids, max_bytes, ids, bytes;
    void *tree; /* tsearch(3) */
    struct item *oldest, *newest;
};

static int compare(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    const int c = memcmp(x->key, y->key, x->n_key < y->n_key ? x->n_key : y->n_key);
    return c ? c : (x->n_key > y->n_key) - (x->n_key < y->n_key);
}

struct tool_memory *tool_memory_new(size_t max_ids, size_t max_bytes)
{
    struct tool_memory *m = mem_alloc(sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    m->max_ids = max_ids;
    m->max_bytes = max_bytes;
    return m;
}

/* ---------------------------------------------------------------- the list */

static void unlink_item(struct tool_memory *m, struct item *e)
{
    *(e->older ? &e->older->newer : &m->oldest) = e->newer;
    *(e->newer ? &e->newer->older : &m->newest) = e->older;
}

static void link_newest(struct tool_memory *m, struct item *e)
{
    e->older = m->newest;
    e->newer = NULL;
    *(m->newest ? &m->newest->newer : &m->oldest) = e;
    m->newest = e;
}

static void item_free(struct tool_memory *m, struct item *e)
{
    tdelete(e, &m->tree, compare);
    unlink_item(m, e);
    m->ids--;
    m->bytes -= e->n_key;
    if (--e->calls->ids == 0) {
        m->bytes -= e->calls->block.n + e->calls->reasoning.n;
        str_free(&e->calls->block);
        str_free(&e->calls->reasoning);
        mem_free(e->calls);
    }
    mem_free(e->key);
    mem_free(e);
}

void tool_memory_free(struct tool_memory *m)
{
    if (!m) return;
    while (m->oldest) item_free(m, m->oldest);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}

/* ---------------------------------------------------------------- ids and blocks */

void tool_memory_id(const char *prefix, char out[CALL_ID_SIZE])
{
    unsigned char random[16];
    random_fill(random, sizeof random);
    int n = snprintf(out, CALL_ID_SIZE, "%s", prefix);
    for (size_t i = 0; i < sizeof random; i++) n += snprintf(out + n, 3, "%02x", random[i]);
}

static char *key_of(const char *key, const char *id, size_t *n)
{
    const size_t a = key ? strlen(key) : 0, b = strlen(id);
    char *k = mem_alloc(a + b + 2);
    if (key) memcpy(k, key, a);
    memcpy(k + a + 1, id, b);
    *n = a + 1 + b;
    return k;
}

static void insert(struct tool_memory *m, const char *key, const char *id, struct calls *c)
{
    struct item *e = mem_alloc(sizeof *e);
    e->key = key_of(key, id, &e->n_key);
    e->calls = c;
    tsearch(e, &m->tree, compare);
    link_newest(m, e);
    c->ids++;
    m->ids++;
    m->bytes += e->n_key;
}

void tool_memory_put(struct tool_memory *m, const char *key, char (*ids)[CALL_ID_SIZE], size_t n_ids,
                     const struct str *block, const struct str *reasoning)
{
    if (!m->max_ids || !n_ids || !block->n || block->n + reasoning->n > m->max_bytes) return;
    struct calls *c = mem_alloc(sizeof *c);
    str_add(&c->block, block->p, block->n);
    str_add(&c->reasoning, reasoning->p, reasoning->n);
    pthread_mutex_lock(&m->lock);
    m->bytes += block->n + reasoning->n;
    for (size_t i = 0; i < n_ids; i++) insert(m, key, ids[i], c);
    while (m->oldest && (m->ids > m->max_ids || m->bytes > m->max_bytes)) item_free(m, m->oldest);
    pthread_mutex_unlock(&m->lock);
}

/* The item, which is now the one used last; or NULL. */
static struct item *use(struct tool_memory *m, const char *key, const char *id)
{
    struct item wanted = {0};
    wanted.key = key_of(key, id, &wanted.n_key);
    void *const *node = tfind(&wanted, &m->tree, compare);
    struct item *e = node ? *node : NULL;
    mem_free(wanted.key);
    if (!e) return NULL;
    unlink_item(m, e);
    link_newest(m, e);
    return e;
}

bool tool_memory_get(struct tool_memory *m, const char *key, const char *const *ids, size_t n_ids, struct str *block,
                     struct str *reasoning)
{
    pthread_mutex_lock(&m->lock);
    const struct calls *c = NULL;
    bool same = n_ids > 0;
    for (size_t i = 0; same && i < n_ids; i++) {
        const struct item *e = use(m, key, ids[i]);
        same = e && (!c || e->calls == c);
        if (same) c = e->calls;
    }
    if (same) {
        str_add(block, c->block.p, c->block.n);
        str_add(reasoning, c->reasoning.p, c->reasoning.n);
    }
    pthread_mutex_unlock(&m->lock);
    return same;
}
