/* Rings and stores: where the stored rows of a session lie. Segments of a store are counted, so that sessions share
 * them. */
#include "device/ref/ref_internal.h"
#include <assert.h>
#include <string.h>
#include "base/mem.h"

/* ---------------------------------------------------------------- rings */

static size_t bank_bytes(const struct ring_desc *d)
{
    return (size_t)ring_capacity(d) * (size_t)d->fmt.width * sizeof(double);
}

size_t ref_ring_bytes(const struct dev *d, const struct ring_desc *desc)
{
    (void)d;
    return 2 * bank_bytes(desc);
}

struct dev_ring *ref_ring_create(struct dev *d, const struct ring_desc *desc)
{
    (void)d;
    struct dev_ring *r = mem_try(sizeof *r);
    if (!r) return NULL;
    r->desc = *desc;
    for (int b = 0; b < 2; b++) r->bank[b] = mem_try(bank_bytes(desc) + 1);
    if (r->bank[0] && r->bank[1]) return r;
    ref_ring_free(r);
    return NULL;
}

void ref_ring_free(struct dev_ring *r)
{
    if (!r) return;
    mem_free(r->bank[0]);
    mem_free(r->bank[1]);
    mem_free(r);
}

void ref_ring_flip(struct dev_ring *r)
{
    r->current ^= 1;
}

int ref_ring_copy(struct dev_ring *dst, const struct dev_ring *src)
{
    if (!ring_same(&dst->desc, &src->desc)) return ERR_ARG;
    memmove(dst->bank[dst->current], src->bank[src->current], bank_bytes(&src->desc));
    return 0;
}

static double *bank_row(const struct dev_ring *r, int bank, int32_t pos)
{
    return r->bank[bank] + (size_t)ring_slot(&r->desc, pos) * (size_t)r->desc.fmt.width;
}

const double *ref_ring_row(const struct dev_ring *r, int32_t pos)
{
    return bank_row(r, r->current, pos);
}

static void row_copy(double *dst, const double *src, int width)
{
    memmove(dst, src, (size_t)width * sizeof *dst);
}

void ref_ring_get(const struct dev_ring *r, int32_t pos, int n, void *dst)
{
    const int width = r->desc.fmt.width;
    for (int i = 0; i < n; i++) row_copy((double *)dst + (size_t)i * width, ref_ring_row(r, pos + i), width);
}

void ref_ring_put(struct dev_ring *r, int32_t pos, int n, const void *src)
{
    const int width = r->desc.fmt.width;
    for (int i = 0; i < n; i++)
        row_copy(bank_row(r, r->current, pos + i), (const double *)src + (size_t)i * width, width);
}

void ref_ring_write_segment(struct dev_stream *s, struct dev_ring *r, const struct segment *g, const double *x0,
                            size_t x_stride)
{
    if (!ring_fits(&r->desc, g)) {
        dev_fail(s, ERR_ARG, "ref: %d rows written in place into a ring with a slack of %d", g->n, r->desc.slack);
        return;
    }
    const struct ring_plan plan = ring_plan_segment(&r->desc, g);
    const int bank = plan.other ? !r->current : r->current;
    for (int32_t p = plan.carry; p < plan.first; p++)
        row_copy(bank_row(r, bank, p), ref_ring_row(r, p), r->desc.fmt.width);
    for (int32_t p = plan.first; p < plan.end; p++)
        row_copy(bank_row(r, bank, p), x0 + (size_t)(p - g->pos0) * x_stride, r->desc.fmt.width);
}

void ref_ring_write(struct dev_stream *s, const struct ring_write_args *a)
{
    if (!ref_begin(s)) return;
    for (int i = 0; i < s->rows->n_segments; i++) {
        const struct segment *g = &s->rows->segments[i];
        ref_ring_write_segment(s, a->ring[i], g, ref_row(a->x, g->row0), a->x->row_bytes / sizeof(double));
    }
}

/* ---------------------------------------------------------------- stores */

size_t ref_store_bytes(const struct dev *d, const struct row_format *fmt, int64_t n_rows)
{
    (void)d;
    return (size_t)store_segments(n_rows) * STORE_SEGMENT * (size_t)fmt->width * sizeof(double);
}

struct dev_store *ref_store_create(struct dev *d, const struct row_format *fmt)
{
    (void)d;
    struct dev_store *st = mem_try(sizeof *st);
    if (st) st->fmt = *fmt;
    return st;
}

static struct ref_segment *segment_new(const struct row_format *fmt)
{
    struct ref_segment *g = mem_try(sizeof *g);
    if (!g) return NULL;
    g->users = 1;
    g->rows = mem_try((size_t)STORE_SEGMENT * (size_t)fmt->width * sizeof(double));
    if (g->rows) return g;
    mem_free(g);
    return NULL;
}

static void segment_release(struct ref_segment *g)
{
    if (!g || --g->users) return;
    mem_free(g->rows);
    mem_free(g);
}

static void store_empty(struct dev_store *st)
{
    for (int64_t i = 0; i < st->n_segments; i++) segment_release(st->segment[i]);
    mem_free(st->segment);
    st->segment = NULL;
    st->n_segments = 0;
}

void ref_store_free(struct dev_store *st)
{
    if (!st) return;
    store_empty(st);
    mem_free(st);
}

/* Room for n segment pointers. */
static bool store_widen(struct dev_store *st, int64_t n)
{
    if (n <= st->n_segments) return true;
    struct ref_segment **wider = mem_try((size_t)n * sizeof *wider);
    if (!wider) return false;
    if (st->n_segments) memcpy(wider, st->segment, (size_t)st->n_segments * sizeof *wider);
    mem_free(st->segment);
    st->segment = wider;
    st->n_segments = n;
    return true;
}

/* Makes segment i this store's own. */
static bool segment_own(struct dev_store *st, int64_t i)
{
    struct ref_segment *old = st->segment[i];
    if (old && old->users == 1) return true;
    struct ref_segment *own = segment_new(&st->fmt);
    if (!own) return false;
    if (old) memcpy(own->rows, old->rows, (size_t)STORE_SEGMENT * (size_t)st->fmt.width * sizeof(double));
    segment_release(old);
    st->segment[i] = own;
    return true;
}

int ref_store_reserve(struct dev_store *st, int64_t from, int64_t to)
{
    if (to <= from) return 0;
    if (!store_widen(st, store_segments(to))) return ERR_MEMORY;
    for (int64_t i = from / STORE_SEGMENT; i < store_segments(to); i++)
        if (!segment_own(st, i)) return ERR_MEMORY;
    return 0;
}

int ref_store_share(struct dev_store *dst, const struct dev_store *src, int64_t n)
{
    const int64_t full = n / STORE_SEGMENT, tail = n % STORE_SEGMENT;
    if (dst == src || !row_format_same(&dst->fmt, &src->fmt) || store_segments(n) > src->n_segments) return ERR_ARG;
    store_empty(dst);
    if (!store_widen(dst, store_segments(n))) return ERR_MEMORY;
    for (int64_t i = 0; i < full; i++) {
        dst->segment[i] = src->segment[i];
        dst->segment[i]->users++;
    }
    if (!tail) return 0;
    if (!segment_own(dst, full)) {
        store_empty(dst);
        return ERR_MEMORY;
    }
    memcpy(dst->segment[full]->rows, src->segment[full]->rows, (size_t)tail * (size_t)src->fmt.width * sizeof(double));
    return 0;
}

double *ref_store_row(const struct dev_store *st, int64_t row)
{
    const int64_t i = row / STORE_SEGMENT;
    if (i >= st->n_segments || !st->segment[i]) return NULL;
    return st->segment[i]->rows + (size_t)(row % STORE_SEGMENT) * (size_t)st->fmt.width;
}

void ref_store_get(const struct dev_store *st, int64_t row, int64_t n, void *dst)
{
    for (int64_t i = 0; i < n; i++) {
        const double *from = ref_store_row(st, row + i);
        assert(from);
        row_copy((double *)dst + (size_t)i * (size_t)st->fmt.width, from, st->fmt.width);
    }
}

void ref_store_put(struct dev_store *st, int64_t row, int64_t n, const void *src)
{
    for (int64_t i = 0; i < n; i++) {
        double *to = ref_store_row(st, row + i);
        assert(to && st->segment[(row + i) / STORE_SEGMENT]->users == 1);
        row_copy(to, (const double *)src + (size_t)i * (size_t)st->fmt.width, st->fmt.width);
    }
}
