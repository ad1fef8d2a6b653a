/* Lists of whole numbers that a family's table names: hash constants and the like (spec dialects 3). */
#include <assert.h>
#include <string.h>
#include "base/mem.h"
#include "dialect/dialect_internal.h"

enum { MOST_ENTRIES = 65536 };

static int read_one(struct canonical *c, const struct array_row *row, struct array *a, struct err *e)
{
    char kind[32];
    a->kv = dialect_key(c, row->name);
    if (!a->kv && row->optional) dialect_note(c, NOTE_DEFAULT, "%s none", row->name);
    if (!a->kv && (row->optional || row->sum_of)) return 0;
    if (!a->kv)
        return err_set(e, ERR_MODEL, "%s.%s is missing and cannot be derived%s", c->family->short_name, row->name,
                       dialect_lacks_table(c)
                           ? ", and so is the n-gram table: both are published in a file of its own; "
                             "get that from the same place and give it second: -m MODEL -m TABLE"
                           : "");
    if (a->kv->type != GGUF_ARRAY || a->kv->elem == GGUF_STRING || a->kv->count < 1 || a->kv->count > MOST_ENTRIES)
        return err_set(e, ERR_MODEL, "%.*s is %s of %llu; an array of 1 to %d numbers is needed", (int)a->kv->key.n,
                       a->kv->key.p, gguf_kind(a->kv, kind), (unsigned long long)a->kv->count, MOST_ENTRIES);
    a->n = (int)a->kv->count;
    a->v = mem_alloc((size_t)a->n * sizeof *a->v);
    int rc = 0;
    for (int i = 0; i < a->n && rc == 0; i++) rc = gguf_u64(a->kv, (uint64_t)i, &a->v[i], e);
    return rc;
}

/* Entries of a file may be any number: sums wrap, and whoever uses them looks at them as at those of a file. */
static void add_up(struct canonical *c, const struct array_row *row, struct array *a)
{
    const uint64_t *part = canonical_array(c, row->sum_of, &a->n);
    a->v = mem_alloc((size_t)(a->n + 1) * sizeof *a->v);
    for (int i = 0; i + 1 < a->n; i++) a->v[i + 1] = a->v[i] + part[i];
    dialect_note(c, NOTE_DERIVED, "%s (sums of %s)", row->name, row->sum_of);
}

int dialect_read_arrays(struct canonical *c, struct err *e)
{
    int rc = 0;
    c->arrays = mem_alloc((size_t)(c->family->n_arrays + 1) * sizeof *c->arrays);
    for (int i = 0; i < c->family->n_arrays && rc == 0; i++)
        rc = dialect_refused(c, read_one(c, &c->family->arrays[i], &c->arrays[i], e), e);
    for (int i = 0; i < c->family->n_arrays && rc == 0; i++)
        if (!c->arrays[i].kv && c->family->arrays[i].sum_of) add_up(c, &c->family->arrays[i], &c->arrays[i]);
    return rc;
}

void dialect_free_arrays(struct canonical *c)
{
    for (int i = 0; c->arrays && i < c->family->n_arrays; i++) mem_free(c->arrays[i].v);
    mem_free(c->arrays);
}

const uint64_t *canonical_array(const struct canonical *c, const char *key, int *n)
{
    int i = 0;
    while (i < c->family->n_arrays && strcmp(c->family->arrays[i].name, key) != 0) i++;
    assert(i < c->family->n_arrays); /* a list that the family's table has */
    *n = c->arrays ? c->arrays[i].n : 0;
    return c->arrays ? c->arrays[i].v : NULL;
}

uint64_t dialect_digest_arrays(const struct canonical *c, uint64_t h)
{
    for (int i = 0; i < c->family->n_arrays; i++) {
        h = dialect_digest(h, c->family->arrays[i].name, strlen(c->family->arrays[i].name));
        if (c->arrays && c->arrays[i].n)
            h = dialect_digest(h, c->arrays[i].v, (size_t)c->arrays[i].n * sizeof *c->arrays[i].v);
    }
    return h;
}
