/* Shapes as the family's table writes them, and which shapes of a file are the same bytes (spec dialects 4 T2). */
#include "dialect/dialect_internal.h"
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t dim_value(const struct canonical *c, const char *name, size_t n, int layer)
{
    for (int i = 0; i < c->family->n_dims; i++) {
        const struct tensor_dim *d = &c->family->dims[i];
        if (strlen(d->name) != n || memcmp(d->name, name, n) != 0) continue;
        if (d->value) return d->value(c, layer);
        return layer < 0 ? canonical_int(c, d->key) : canonical_int_at(c, d->key, layer);
    }
    assert(!"a dimension that the table lacks");
    return 0;
}

/* "H*d/G", from the left. Values of keys are below 2^24 and a shape has few factors: no overflow. */
static int64_t product(const struct canonical *c, const char **p, int layer)
{
    int64_t v = 1;
    char op = '*';
    for (;;) {
        const char *start = *p;
        while (isalnum((unsigned char)**p)) ++*p;
        const int64_t x =
            isdigit((unsigned char)*start) ? atoi(start) : dim_value(c, start, (size_t)(*p - start), layer);
        v = op == '*' ? v * x : v / x;
        if (**p != '*' && **p != '/') return v;
        op = *(*p)++;
    }
}

int dialect_shape(const struct canonical *c, const struct tensor_row *row, int layer, int64_t ne[4])
{
    int n = 0;
    for (const char *p = row->shape; *p; p += *p == ' ') ne[n++] = product(c, &p, layer);
    for (int i = n; i < 4; i++) ne[i] = 1;
    return n;
}

int dialect_shape_experts(const struct canonical *c, const struct tensor_row *row)
{
    const char *last = strrchr(row->shape, ' ');
    int at = 0;
    last = last ? last + 1 : row->shape;
    for (const char *p = row->shape; p < last; p++) at += *p == ' ';
    for (int i = 0; i < c->family->n_dims; i++) {
        const struct tensor_dim *d = &c->family->dims[i];
        if (d->key && strcmp(d->key, c->family->experts) == 0 && strcmp(d->name, last) == 0) return at;
    }
    return -1;
}

static int dims_of(const int64_t ne[4])
{
    int n = 4;
    while (n > 1 && ne[n - 1] == 1) n--;
    return n;
}

/* A vector may have ones anywhere: [n], [n, 1], [1, n]. */
static bool is_vector_of(const int64_t ne[4], int64_t n)
{
    int others = 0;
    for (int i = 0; i < 4; i++) others += ne[i] != 1;
    return others == 0 ? n == 1 : others == 1 && (ne[0] == n || ne[1] == n || ne[2] == n || ne[3] == n);
}

void dialect_shape_parts(const struct canonical *c, const struct source *s, const int64_t want[4], int64_t *before,
                         int64_t *all)
{
    *before = 0, *all = want[1];
    if (s->part < 0) return;
    *all = 0;
    for (int i = 0; i < 3 && s->split->part[i]; i++) {
        int64_t ne[4];
        dialect_shape(c, &c->family->tensors[dialect_row(c->family, s->split->part[i])], s->layer, ne);
        if (i < s->part) *before += ne[1];
        *all += ne[1];
    }
}

bool dialect_shape_fits(const struct canonical *c, const struct source *s, const int64_t want[4], int flags)
{
    int64_t ne[4], before, all;
    for (int i = 0; i < 4; i++) ne[i] = (int64_t)s->t->ne[i];
    dialect_shape_parts(c, s, want, &before, &all);
    if (s->part >= 0) {
        if (ne[1] != all) return false;
        ne[1] = want[1];
    }
    const int have_dims = dims_of(ne), want_dims = dims_of(want);
    if (want_dims == 1 && (flags & TENSOR_FOLDED))
        return (uint64_t)want[0] == s->t->ne[0] * s->t->ne[1] * s->t->ne[2] * s->t->ne[3];
    if (want_dims == 1) return is_vector_of(ne, want[0]);
    if ((flags & TENSOR_WIDER) ? ne[0] < want[0] : ne[0] != want[0]) return false;
    if (have_dims == want_dims) return memcmp(ne + 1, want + 1, 3 * sizeof *ne) == 0;
    /* The same rows, counted in two dimensions or in one; a split tensor needs its own. */
    if (s->part >= 0 || want_dims > 3 || have_dims > 3) return false;
    const int64_t *flat = have_dims == 2 ? ne : want, *deep = have_dims == 2 ? want : ne;
    return flat[2] == 1 && deep[1] > 0 && flat[1] % deep[1] == 0 && flat[1] / deep[1] == deep[2];
}

void dialect_shape_text(char text[96], const int64_t ne[4])
{
    size_t k = 0;
    const int n = dims_of(ne);
    for (int i = 0; i < n; i++)
        k += (size_t)snprintf(text + k, 96 - k, "%s%lld", i == 0 ? "[" : ", ", (long long)ne[i]);
    snprintf(text + k, 96 - k, "]");
}
