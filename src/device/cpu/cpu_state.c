/* Session state of the cpu device: rings by position, append-only stores of shared segments, and writing into rings. */
#include <string.h>
#include "device/cpu/cpu_internal.h"

/* ---------------------------------------------------------------- rings */

size_t cpu_ring_bytes(const struct dev *d, const struct ring_desc *desc)
{
    return 2 * (size_t)ring_capacity(desc) * cpu_row_bytes(&desc->fmt);
}

void cpu_ring_free(struct dev_ring *r)
{
    if (!r) return;
    mem_free(r->data[0]);
    mem_free(r);
}

struct dev_ring *cpu_ring_create(struct dev *d, const struct ring_desc *desc)
{
    struct dev_ring *r = mem_try(sizeof *r);
    if (!r) return NULL;
    *r = (struct dev_ring){.d = *desc, .row_bytes = cpu_row_bytes(&desc->fmt)};
    r->data[0] = mem_try_aligned(cpu_ring_bytes(d, desc) + 64, 64);
    if (!r->data[0]) {
        cpu_ring_free(r);
        return NULL;
    }
    r->data[1] = r->data[0] + cpu_ring_bytes(d, desc) / 2;
    return r;
}

void cpu_ring_flip(struct dev_ring *r)
{
    r->bank ^= 1;
}

int cpu_ring_copy(struct dev_ring *dst, const struct dev_ring *src)
{
    if (!ring_same(&dst->d, &src->d)) return ERR_ARG;
    memmove(dst->data[dst->bank], src->data[src->bank], (size_t)ring_capacity(&src->d) * src->row_bytes);
    return 0;
}

void cpu_ring_get(const struct dev_ring *r, int32_t pos, int n, void *dst)
{
    for (int i = 0; i < n; i++)
        memcpy((uint8_t *)dst + (size_t)i * r->row_bytes, ring_row(r, r->bank, pos + i), r->row_bytes);
}

void cpu_ring_put(struct dev_ring *r, int32_t pos, int n, const void *src)
{
    for (int i = 0; i < n; i++)
        memcpy(ring_row(r, r->bank, pos + i), (const uint8_t *)src + (size_t)i * r->row_bytes, r->row_bytes);
}

bool cpu_ring_write_segment(struct dev_stream *s, struct dev_ring *r, const struct segment *g, const uint8_t *base,
                            size_t stride)
{
    if (!ring_fits(&r->d, g)) {
        dev_fail(s, ERR_ARG, "a step of %d rows does not fit in a ring's slack of %d rows", g->n, r->d.slack);
        return false;
    }
    const struct ring_plan p = ring_plan_segment(&r->d, g);
    const int to = p.other ? !r->bank : r->bank;
    for (int32_t pos = p.carry; pos < p.first; pos++)
        memcpy(ring_row(r, to, pos), ring_row(r, r->bank, pos), r->row_bytes);
    for (int32_t pos = p.first; pos < p.end; pos++)
        memcpy(ring_row(r, to, pos), base + (size_t)(g->row0 + (pos - g->pos0)) * stride, r->row_bytes);
    return true;
}

void cpu_ring_write(struct dev_stream *s, const struct ring_write_args *a)
{
    if (!cpu_ready(s)) return;
    for (int i = 0; i < s->rows->n_segments; i++)
        if (!cpu_ring_write_segment(s, a->ring[i], &s->rows->segments[i], a->x->data, a->x->stride)) return;
}

/* ---------------------------------------------------------------- stores */

size_t cpu_store_bytes(const struct dev *d, const struct row_format *fmt, int64_t n_rows)
{
    return (size_t)store_segments(n_rows) * (STORE_SEGMENT * cpu_row_bytes(fmt) + sizeof(struct store_segment));
}

static void segment_drop(struct store_segment *g)
{
    if (g && atomic_fetch_sub(&g->owners, 1) == 1) mem_free(g);
}

/* Leaves the first n segments. */
static void store_cut(struct dev_store *s, int64_t n)
{
    for (int64_t i = n; i < s->n_segments; i++) {
        segment_drop(s->segment[i]);
        s->segment[i] = NULL;
    }
}

void cpu_store_free(struct dev_store *s)
{
    if (!s) return;
    store_cut(s, 0);
    mem_free(s->segment);
    mem_free(s);
}

struct dev_store *cpu_store_create(struct dev *d, const struct row_format *fmt)
{
    struct dev_store *s = mem_try(sizeof *s);
    if (s) *s = (struct dev_store){.fmt = *fmt, .row_bytes = cpu_row_bytes(fmt)};
    return s;
}

static int store_table(struct dev_store *s, int64_t n)
{
    if (n <= s->n_segments) return 0;
    const int64_t want = max_i64(n, 2 * s->n_segments);
    struct store_segment **t = mem_try((size_t)want * sizeof(*t));
    if (!t) return ERR_MEMORY;
    if (s->n_segments) memcpy(t, s->segment, (size_t)s->n_segments * sizeof(*t));
    mem_free(s->segment);
    s->segment = t;
    s->n_segments = want;
    return 0;
}

/* A segment that only this store holds: a new one, with the old one's rows if there was one. */
static int segment_own(struct dev_store *s, int64_t i)
{
    struct store_segment *old = s->segment[i];
    if (old && atomic_load(&old->owners) == 1) return 0;
    const size_t bytes = STORE_SEGMENT * s->row_bytes;
    struct store_segment *g = mem_try(sizeof *g + bytes + 64);
    if (!g) return ERR_MEMORY;
    atomic_init(&g->owners, 1);
    if (old) memcpy(g->rows, old->rows, bytes);
    segment_drop(old);
    s->segment[i] = g;
    return 0;
}

int cpu_store_reserve(struct dev_store *s, int64_t from, int64_t to)
{
    if (to <= from) return 0;
    int rc = store_table(s, store_segments(to));
    for (int64_t i = from / STORE_SEGMENT; !rc && i < store_segments(to); i++) rc = segment_own(s, i);
    return rc;
}

int cpu_store_share(struct dev_store *dst, const struct dev_store *src, int64_t n)
{
    const int64_t full = n / STORE_SEGMENT, rest = n % STORE_SEGMENT;
    if (dst == src || !row_format_same(&dst->fmt, &src->fmt) || (n && !store_has(src, 0, n))) return ERR_ARG;
    store_cut(dst, 0);
    const int rc = store_table(dst, store_segments(n));
    if (rc) return rc;
    for (int64_t i = 0; i < full; i++) {
        dst->segment[i] = src->segment[i];
        atomic_fetch_add(&src->segment[i]->owners, 1);
    }
    if (!rest) return 0;
    const int bad = segment_own(dst, full);
    if (!bad) memcpy(dst->segment[full]->rows, src->segment[full]->rows, (size_t)rest * src->row_bytes);
    return bad;
}

void cpu_store_get(const struct dev_store *s, int64_t row, int64_t n, void *dst)
{
    for (int64_t i = 0; i < n; i++)
        memcpy((uint8_t *)dst + (size_t)i * s->row_bytes, store_row(s, row + i), s->row_bytes);
}

void cpu_store_put(struct dev_store *s, int64_t row, int64_t n, const void *src)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(store_row(s, row + i), (const uint8_t *)src + (size_t)i * s->row_bytes, s->row_bytes);
}
