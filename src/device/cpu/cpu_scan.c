/* Walks over the rows of a session in order: the short convolution and the gated delta rule (spec qwen38 3.4, 3.5).
 * Columns of a delta rule's matrices do not meet: tasks own some columns of one head and walk through all rows. */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

enum { MOST_TAPS = 64, COLUMNS = CPU_DELTA_COLUMNS };

/* ---------------------------------------------------------------- convolution */

struct conv_job {
    struct dev_stream *s;
    const struct conv_args *a;
};

/* The input of a position: of this step, of an earlier one, or NULL for zeros before the first. */
static const float *conv_row(const struct conv_job *j, int seg, int64_t pos)
{
    const struct segment *g = &j->s->rows->segments[seg];
    const struct dev_ring *ring = j->a->ring[seg];
    if (pos < 0) return NULL;
    if (pos >= g->pos0) return buf_floats(j->a->x, g->row0 + (pos - g->pos0));
    return (const float *)(const void *)ring_row(ring, ring->bank, (int32_t)pos);
}

static void conv_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct conv_job *j = arg;
    const struct conv_args *a = j->a;
    const float *row[MOST_TAPS];
    for (int64_t i = from; i < to; i++) {
        const int seg = j->s->rows->segment[i];
        const int64_t pos = j->s->rows->pos[i];
        for (int k = 0; k < a->taps; k++) row[k] = conv_row(j, seg, pos - (int64_t)(a->taps - 1 - k) * a->dilation);
        cpu_of(j->s)->k->conv((int)buf_row_values(&a->out->d), a->taps, row, a->weight->f32, a->silu,
                              buf_floats(a->out, i));
    }
}

void cpu_conv(struct dev_stream *s, const struct conv_args *a)
{
    const struct rows *r = s->rows;
    if (!cpu_ready(s) || !cpu_need_f32(s, a->weight, "convolution")) return;
    if (a->taps > MOST_TAPS) {
        dev_fail(s, ERR_MODEL, "a convolution of %d taps; this device handles up to %d", a->taps, MOST_TAPS);
        return;
    }
    struct conv_job j = {.s = s, .a = a};
    cpu_ranges(s, conv_rows, &j, r->n, 2 * (int64_t)a->taps * buf_row_values(&a->out->d));
    for (int i = 0; i < r->n_segments; i++)
        if (a->ring[i] && !cpu_ring_write_segment(s, a->ring[i], &r->segments[i], a->x->data, a->x->stride)) return;
}

/* ---------------------------------------------------------------- state */

static size_t bank_values(const struct scan_desc *d)
{
    return (size_t)d->value_heads * (size_t)d->width * (size_t)d->width;
}

/* What a row brings: keys of length 1 [key_heads][width], values [value_heads][width], decay, beta [value_heads]. */
static size_t kept_values(const struct scan_desc *d)
{
    return (size_t)(d->key_heads + d->value_heads) * (size_t)d->width + 2 * (size_t)d->value_heads;
}

size_t cpu_scan_state_bytes(const struct dev *d, const struct scan_desc *desc)
{
    return bank_values(desc) * sizeof(float);
}

size_t cpu_scan_bytes(const struct dev *d, const struct scan_desc *desc)
{
    return 2 * cpu_scan_state_bytes(d, desc) + (size_t)desc->slack * kept_values(desc) * sizeof(float);
}

struct dev_scan *cpu_scan_create(struct dev *d, const struct scan_desc *desc)
{
    struct dev_scan *c = mem_try(sizeof *c);
    if (!c) return NULL;
    c->d = *desc;
    for (int b = 0; b < 2; b++) c->data[b] = mem_try_aligned(cpu_scan_state_bytes(d, desc) + 64, 64);
    c->kept = mem_try((size_t)desc->slack * kept_values(desc) * sizeof(float) + 1);
    if (c->data[0] && c->data[1] && c->kept) return c;
    cpu_scan_free(c);
    return NULL;
}

void cpu_scan_free(struct dev_scan *c)
{
    if (!c) return;
    mem_free(c->data[0]);
    mem_free(c->data[1]);
    mem_free(c->kept);
    mem_free(c);
}

void cpu_scan_flip(struct dev_scan *c)
{
    c->bank ^= 1;
}

int cpu_scan_copy(struct dev_scan *dst, const struct dev_scan *src)
{
    if (memcmp(&dst->d, &src->d, sizeof dst->d) != 0) return ERR_ARG;
    memmove(dst->data[dst->bank], src->data[src->bank], bank_values(&src->d) * sizeof(float));
    return 0;
}

void cpu_scan_get(const struct dev_scan *c, void *dst)
{
    memcpy(dst, c->data[c->bank], bank_values(&c->d) * sizeof(float));
}

void cpu_scan_put(struct dev_scan *c, const void *src)
{
    memcpy(c->data[c->bank], src, bank_values(&c->d) * sizeof(float));
}

/* ---------------------------------------------------------------- the rule */

struct scan_job {
    struct dev_stream *s;
    const struct delta_scan_args *a; /* NULL: a replay */
    struct dev_scan *one;            /* of a replay */
    int from, to;
    int heads, parts; /* tasks of a segment: value heads times parts of their columns */
    float *unit;      /* [T][2 key_heads][width]: queries of length `scale`, keys of length 1 */
};

/* y = x / sqrt(sum of squares + eps) * scale */
static void unit(const struct cpu_kernels *k, int n, const float *x, double eps, double scale, float *y)
{
    k->scale(n, x, (float)scale / sqrtf(k->dot(n, x, x) + (float)eps), y);
}

static const struct scan_desc *scan_desc(const struct scan_job *j)
{
    return j->a ? &j->a->scan[0]->d : &j->one->d;
}

/* Queries and keys of the step's rows; what each brings is kept where a part of the step can be committed. */
static void unit_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct scan_job *j = arg;
    const struct delta_scan_args *a = j->a;
    const struct scan_desc *d = scan_desc(j);
    const struct cpu_kernels *k = cpu_of(j->s)->k;
    const size_t w = (size_t)d->width, keys = (size_t)d->key_heads * w, values = (size_t)d->value_heads * w;
    for (int64_t i = from; i < to; i++) {
        const struct segment *g = &j->s->rows->segments[j->s->rows->segment[i]];
        const float *x = buf_floats(a->x, i);
        float *u = j->unit + (size_t)i * 2 * keys;
        for (size_t h = 0; h < keys; h += w) {
            unit(k, d->width, x + h, a->eps, a->scale, u + h);
            unit(k, d->width, x + keys + h, a->eps, 1, u + keys + h);
        }
        if (g->bulk) continue;
        float *kept = a->scan[j->s->rows->segment[i]]->kept + (size_t)(i - g->row0) * kept_values(d);
        memcpy(kept, u + keys, keys * sizeof *kept);
        memcpy(kept + keys, x + 2 * keys, values * sizeof *kept);
        memcpy(kept + keys + values, buf_floats(a->decay, i), (size_t)d->value_heads * sizeof *kept);
        memcpy(kept + keys + values + d->value_heads, buf_floats(a->beta, i), (size_t)d->value_heads * sizeof *kept);
    }
}

/* Columns [c0, c0 + n) of a head. */
struct strip {
    int head, c0, n;
};

static struct strip strip_of(const struct scan_job *j, int task)
{
    struct strip t = {.head = task / j->parts, .c0 = task % j->parts * COLUMNS};
    t.n = (int)min_i64(COLUMNS, scan_desc(j)->width - t.c0);
    return t;
}

static void scan_task(void *arg, int task, int thread)
{
    const struct scan_job *j = arg;
    const struct delta_scan_args *a = j->a;
    const struct scan_desc *d = scan_desc(j);
    const int tasks = j->heads * j->parts, seg = task / tasks;
    const struct segment *g = &j->s->rows->segments[seg];
    const struct strip t = strip_of(j, task % tasks);
    const struct dev_scan *c = a->scan[seg];
    const size_t w = (size_t)d->width, keys = (size_t)d->key_heads * w, at = (size_t)t.head * w * w + (size_t)t.c0;
    const float *q = j->unit + (size_t)g->row0 * 2 * keys + (size_t)(t.head % d->key_heads) * w;
    const struct cpu_delta rows = {.rows = g->n,
                                   .width = d->width,
                                   .n = t.n,
                                   .stride = w,
                                   .q = q,
                                   .k = q + keys,
                                   .v = buf_floats(a->x, g->row0) + 2 * keys + (size_t)t.head * w + t.c0,
                                   .out = buf_floats(a->out, g->row0) + (size_t)t.head * w + t.c0,
                                   .decay = buf_floats(a->decay, g->row0) + t.head,
                                   .beta = buf_floats(a->beta, g->row0) + t.head,
                                   .key_step = 2 * keys,
                                   .v_step = a->x->stride / sizeof(float),
                                   .out_step = a->out->stride / sizeof(float),
                                   .decay_step = a->decay->stride / sizeof(float),
                                   .beta_step = a->beta->stride / sizeof(float),
                                   .strip = cpu_scratch_of(j->s, thread)};
    cpu_of(j->s)->k->delta_rows(&rows, c->data[c->bank] + at, c->data[!c->bank] + at);
}

static size_t strip_bytes(int width)
{
    return (size_t)width * COLUMNS * sizeof(float);
}

static void plan_parts(struct scan_job *j)
{
    const struct scan_desc *d = scan_desc(j);
    j->heads = d->value_heads;
    j->parts = (d->width + COLUMNS - 1) / COLUMNS;
}

static bool scan_check(struct dev_stream *s, const struct delta_scan_args *a)
{
    for (int i = 0; i < s->rows->n_segments; i++) {
        const struct segment *g = &s->rows->segments[i];
        if (g->bulk || g->n <= a->scan[i]->d.slack) continue;
        dev_fail(s, ERR_ARG, "a step of %d rows where %d can be kept", g->n, a->scan[i]->d.slack);
        return false;
    }
    return s->rows->n_segments > 0;
}

void cpu_delta_scan(struct dev_stream *s, const struct delta_scan_args *a)
{
    struct scan_job j = {.s = s, .a = a};
    if (!cpu_ready(s) || !scan_check(s, a)) return;
    const struct scan_desc *d = scan_desc(&j);
    plan_parts(&j);
    j.unit = cpu_shared_scratch(s, 2 * (size_t)s->rows->n * (size_t)d->key_heads * (size_t)d->width * sizeof(float));
    if (!j.unit || !cpu_thread_scratch(s, strip_bytes(d->width))) return;
    cpu_ranges(s, unit_rows, &j, s->rows->n, 4 * (int64_t)d->key_heads * d->width);
    cpu_tasks(s, scan_task, &j, (int64_t)s->rows->n_segments * j.heads * j.parts);
}

static void replay_strips(void *arg, int64_t from, int64_t to, int thread)
{
    const struct scan_job *j = arg;
    const struct scan_desc *d = scan_desc(j);
    const size_t w = (size_t)d->width, keys = (size_t)d->key_heads * w, values = (size_t)d->value_heads * w;
    for (int64_t task = from; task < to; task++) {
        const struct strip t = strip_of(j, (int)task);
        float *S = j->one->data[j->one->bank] + (size_t)t.head * w * w + (size_t)t.c0;
        const float *kept = j->one->kept + (size_t)j->from * kept_values(d), *decay = kept + keys + values;
        const struct cpu_delta rows = {.rows = j->to - j->from,
                                       .width = d->width,
                                       .n = t.n,
                                       .stride = w,
                                       .k = kept + (size_t)(t.head % d->key_heads) * w,
                                       .v = kept + keys + (size_t)t.head * w + t.c0,
                                       .decay = decay + t.head,
                                       .beta = decay + d->value_heads + t.head,
                                       .key_step = kept_values(d),
                                       .v_step = kept_values(d),
                                       .decay_step = kept_values(d),
                                       .beta_step = kept_values(d),
                                       .strip = cpu_scratch_of(j->s, thread)};
        cpu_of(j->s)->k->delta_rows(&rows, S, S);
    }
}

void cpu_scan_replay(struct dev_stream *s, struct dev_scan *c, int from, int to)
{
    if (!cpu_ready(s) || from >= to || !cpu_thread_scratch(s, strip_bytes(c->d.width))) return;
    struct scan_job j = {.s = s, .one = c, .from = from, .to = to};
    plan_parts(&j);
    cpu_ranges(s, replay_strips, &j, (int64_t)j.heads * j.parts, (int64_t)(to - from) * c->d.width * COLUMNS * 4);
}

void cpu_scan_work(const struct work_desc *a, struct cpu_work *w)
{
    if (a->scan_width)
        cpu_work_raise(w, (size_t)a->rows * (size_t)a->values * sizeof(float), strip_bytes(a->scan_width));
}
