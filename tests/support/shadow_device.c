#include "shadow_device.h"
#include "base/mem.h"
#include <math.h>
#include <stdlib.h>

enum { CPU, REF, DEVICES };

struct shadow;

/* Every object has its twin on both devices, and knows its own. */
struct dev_buf {
    const struct shadow *owner;
    struct buf_desc d;
    struct dev_buf *of[DEVICES];
};
struct dev_mat {
    const struct shadow *owner;
    struct tensor_view view;
    struct dev_mat *of[DEVICES];
};
struct dev_rope {
    const struct shadow *owner;
    struct dev_rope *of[DEVICES];
};
struct dev_ring {
    const struct shadow *owner;
    struct ring_desc d;
    struct dev_ring *of[DEVICES];
};
struct dev_store {
    const struct shadow *owner;
    struct row_format fmt;
    struct dev_store *of[DEVICES];
};

struct dev_scan {
    const struct shadow *owner;
    struct scan_desc d;
    struct dev_scan *of[DEVICES];
};

struct shadow {
    struct dev base;
    struct dev *of[DEVICES];
    struct shadow_stats stats[SHADOW_COUNT];
};

struct shadow_stream {
    struct dev_stream base;
    struct dev_stream *of[DEVICES];
};

static struct shadow *shadow_of(const struct dev *d)
{
    return (struct shadow *)(uintptr_t)d;
}

static struct dev_stream *stream_of(struct dev_stream *s, int i)
{
    return ((struct shadow_stream *)s)->of[i];
}

static const struct dev_ops *ops_of(struct dev_stream *s, int i)
{
    return shadow_of(s->dev)->of[i]->op;
}

const char *dev_shadow_name(enum shadow_op op)
{
    static const char *const names[] = {
        "embed", "rms_norm", "matmul",     "rope",        "hadamard",    "select", "attention",      "router",
        "moe",   "compress", "hc_gates",   "hc_reduce",   "hc_expand",   "hc_mix", "gather",         "element",
        "decay", "conv",     "delta_scan", "memory_gate", "store_write", "pool",   "attention_heads"};
    return names[op];
}

const struct shadow_stats *dev_shadow_stats(const struct dev *d, enum shadow_op op)
{
    return &shadow_of(d)->stats[op];
}

/* ---------------------------------------------------------------- inputs and outputs */

/* ref gets cpu's values. Quantised and packed rows were made from equal floats already. */
static void pull(struct dev_stream *s, const struct dev_buf *b, int n)
{
    if (!b) return;
    const size_t count = (size_t)n * (size_t)(b->d.groups * b->d.width);
    if (b->d.kind == BUF_FLOAT) {
        double *v = mem_alloc(count * sizeof *v);
        ops_of(s, CPU)->read_f64(stream_of(s, CPU), b->of[CPU], 0, n, v);
        ops_of(s, REF)->write_f64(stream_of(s, REF), b->of[REF], 0, n, v);
        mem_free(v);
    } else if (b->d.kind == BUF_I32) {
        int32_t *v = mem_alloc(count * sizeof *v);
        ops_of(s, CPU)->read_i32(stream_of(s, CPU), b->of[CPU], 0, n, v);
        ops_of(s, REF)->write_i32(stream_of(s, REF), b->of[REF], 0, n, v);
        mem_free(v);
    }
}

/* Largest |difference| over the largest |value|, which counts as at least `size`. */
static double row_error(const double *a, const double *b, int n, double size)
{
    double diff = 0, top = size;
    for (int i = 0; i < n; i++) {
        diff = fmax(diff, fabs(a[i] - b[i]));
        top = fmax(top, fabs(b[i]));
    }
    return top > 0 ? diff / top : diff;
}

/* Rows 0..n-1, their leading `used` values (0: all), as one row each. size: of the values of each row, or NULL. */
static void compare(struct dev_stream *s, enum shadow_op op, const struct dev_buf *b, int n, int used,
                    const double *size)
{
    struct shadow_stats *t = &shadow_of(s->dev)->stats[op];
    const int width = b->d.groups * b->d.width;
    double *v[DEVICES];
    for (int i = 0; i < DEVICES; i++) {
        v[i] = mem_alloc((size_t)n * (size_t)width * sizeof *v[i]);
        ops_of(s, i)->read_f64(stream_of(s, i), b->of[i], 0, n, v[i]);
    }
    for (int i = 0; i < n; i++) {
        const double e = row_error(v[CPU] + i * width, v[REF] + i * width, used ? used : width, size ? size[i] : 0);
        t->rows++;
        if (op == SHADOW_MOE && e > 1e-6) {
            t->flips++;
            t->worst_flip = fmax(t->worst_flip, e);
        } else if (!(e <= t->worst)) {
            t->worst = e;
        }
    }
    mem_free(v[CPU]);
    mem_free(v[REF]);
}

static void compare_ids(struct dev_stream *s, enum shadow_op op, const struct dev_buf *b, int n, int used)
{
    struct shadow_stats *t = &shadow_of(s->dev)->stats[op];
    const int width = b->d.groups * b->d.width;
    int32_t *v[DEVICES];
    for (int i = 0; i < DEVICES; i++) {
        v[i] = mem_alloc((size_t)n * (size_t)width * sizeof *v[i]);
        ops_of(s, i)->read_i32(stream_of(s, i), b->of[i], 0, n, v[i]);
    }
    for (int i = 0; i < n; i++, t->rows++)
        for (int k = 0; k < used && (op != SHADOW_SELECT || k <= v[REF][i * width]); k++)
            if (v[CPU][i * width + k] != v[REF][i * width + k]) t->worst = INFINITY;
    mem_free(v[CPU]);
    mem_free(v[REF]);
}

/* Rings and stores have row formats without rounding: rows are compared where an operation computes them, then ref gets
 * cpu's. */
static void ring_settle(struct dev_stream *s, struct dev_ring *const *ring, enum shadow_op op)
{
    struct shadow *sh = shadow_of(s->dev);
    double v[DEVICES][8192];
    unsigned char bytes[8192 * sizeof(double)];
    for (int g = 0; g < s->rows->n_segments; g++) {
        const struct segment *seg = &s->rows->segments[g];
        if (seg->bulk) dev_fail(s, ERR_ARG, "shadow: bulk segments are not supported");
        for (int i = 0; i < seg->n; i++) {
            for (int k = 0; k < DEVICES; k++) {
                ops_of(s, k)->ring_get(ring[g]->of[k], seg->pos0 + i, 1, bytes);
                ops_of(s, k)->row_decode(sh->of[k], &ring[g]->d.fmt, bytes, v[k]);
            }
            if (op != SHADOW_COUNT)
                sh->stats[op].worst = fmax(sh->stats[op].worst, row_error(v[CPU], v[REF], ring[g]->d.fmt.width, 0));
            ops_of(s, REF)->row_encode(sh->of[REF], &ring[g]->d.fmt, v[CPU], bytes);
            ops_of(s, REF)->ring_put(ring[g]->of[REF], seg->pos0 + i, 1, bytes);
        }
    }
}

static void store_settle(struct dev_stream *s, struct dev_store *const *store, int ratio, enum shadow_op op)
{
    struct shadow *sh = shadow_of(s->dev);
    double v[DEVICES][8192];
    unsigned char bytes[8192 * sizeof(double)];
    for (int g = 0; g < s->rows->n_segments; g++) {
        const struct segment *seg = &s->rows->segments[g];
        for (int c = seg->pos0 / ratio; c < (seg->pos0 + seg->n) / ratio; c++) {
            for (int k = 0; k < DEVICES; k++) {
                ops_of(s, k)->store_get(store[g]->of[k], c, 1, bytes);
                ops_of(s, k)->row_decode(sh->of[k], &store[g]->fmt, bytes, v[k]);
            }
            sh->stats[op].rows++;
            sh->stats[op].worst = fmax(sh->stats[op].worst, row_error(v[CPU], v[REF], store[g]->fmt.width, 0));
            ops_of(s, REF)->row_encode(sh->of[REF], &store[g]->fmt, v[CPU], bytes);
            ops_of(s, REF)->store_put(store[g]->of[REF], c, 1, bytes);
        }
    }
}

static void finish(struct dev_stream *s)
{
    struct err e = {0};
    for (int i = 0; i < DEVICES; i++)
        if (dev_error(stream_of(s, i), &e)) dev_fail(s, e.code, "%s: %s", i ? "ref" : "cpu", e.msg);
}

/* Runs an operation on both devices with the arguments of each in `x`; the block translates handles for device k. */
#define BOTH(type, op_name, translate)                                                                                 \
    for (int k = 0; k < DEVICES; k++) {                                                                                \
        struct type x = *a;                                                                                            \
        translate;                                                                                                     \
        ops_of(s, k)->op_name(stream_of(s, k), &x);                                                                    \
    }                                                                                                                  \
    finish(s)
#define PART(field) (x.field = x.field ? x.field->of[k] : NULL)

/* The handles of device k of a list, one per segment. */
#define LIST(type, name, list)                                                                                         \
    struct type *name[64];                                                                                             \
    for (int g = 0; (list) && g < s->rows->n_segments; g++) name[g] = (list)[g]->of[k]

/* ---------------------------------------------------------------- operations */

static void sh_embed(struct dev_stream *s, const struct embed_args *a)
{
    BOTH(embed_args, embed, (PART(table), PART(out)));
    compare(s, SHADOW_EMBED, a->out, a->n, 0, NULL);
}

static void sh_rms_norm(struct dev_stream *s, const struct rms_norm_args *a)
{
    pull(s, a->x, a->n);
    BOTH(rms_norm_args, rms_norm, (PART(x), PART(out), PART(weight)));
    compare(s, SHADOW_RMS_NORM, a->out, a->n, a->groups * a->width, NULL);
}

static void sh_act_quant(struct dev_stream *s, const struct act_quant_args *a)
{
    pull(s, a->x, a->n);
    BOTH(act_quant_args, act_quant, (PART(x), PART(out)));
}

/* What one output's sum amounts to, sqrt(sum (w x)^2) with the first weight row: the noise of F32 is a part of that,
 * even where all outputs cancel to little. */
static void sum_sizes(struct dev_stream *s, const struct matmul_args *a, double *size)
{
    const int width = a->x->d.groups * a->x->d.width;
    const int64_t k = a->w->view.ne[0];
    float *w = mem_alloc((size_t)k * sizeof *w);
    double *x = mem_alloc((size_t)a->n * (size_t)width * sizeof *x);
    quant_type(a->w->view.type)->decode(a->w->view.data, w, k);
    ops_of(s, CPU)->read_f64(stream_of(s, CPU), a->x->of[CPU], 0, a->n, x);
    for (int i = 0; i < a->n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < k; j++) sum += (double)w[j] * w[j] * x[i * width + j] * x[i * width + j];
        size[i] = sqrt(sum);
    }
    mem_free(x);
    mem_free(w);
}

static void sh_matmul(struct dev_stream *s, const struct matmul_args *a)
{
    pull(s, a->x, a->n);
    double *size = mem_alloc((size_t)a->n * sizeof *size);
    if (a->x->d.kind == BUF_FLOAT) sum_sizes(s, a, size);
    BOTH(matmul_args, matmul, (PART(w), PART(x), PART(out)));
    const int groups = a->each ? (int)(a->x->d.groups * a->x->d.width / a->w->view.ne[0]) : 1;
    compare(s, SHADOW_MATMUL, a->out, a->n, groups * (int)(a->w->view.ne[1] * a->w->view.ne[2]), size);
    mem_free(size);
}

static void sh_rope(struct dev_stream *s, const struct rope_args *a)
{
    pull(s, a->x, a->n);
    BOTH(rope_args, rope, (PART(x), PART(rope)));
    compare(s, SHADOW_ROPE, a->x, a->n, 0, NULL);
}

static void sh_hadamard(struct dev_stream *s, const struct hadamard_args *a)
{
    pull(s, a->x, a->n);
    BOTH(hadamard_args, hadamard, PART(x));
    compare(s, SHADOW_HADAMARD, a->x, a->n, 0, NULL);
}

static void sh_round(struct dev_stream *s, const struct round_args *a)
{
    pull(s, a->x, a->n);
    BOTH(round_args, round, PART(x));
}

static void sh_pack(struct dev_stream *s, const struct pack_args *a)
{
    pull(s, a->x, a->n);
    BOTH(pack_args, pack, (PART(x), PART(out)));
}

static void sh_ring_write(struct dev_stream *s, const struct ring_write_args *a)
{
    for (int k = 0; k < DEVICES; k++) {
        LIST(dev_ring, ring, a->ring);
        ops_of(s, k)->ring_write(stream_of(s, k), &(struct ring_write_args){.x = a->x->of[k], .ring = ring});
    }
    finish(s);
    ring_settle(s, a->ring, SHADOW_COUNT);
}

static void sh_compress(struct dev_stream *s, const struct compress_args *a)
{
    pull(s, a->kv, s->rows->n);
    pull(s, a->gate, s->rows->n);
    for (int k = 0; k < DEVICES; k++) {
        struct compress_args x = *a;
        LIST(dev_ring, kv, a->ring_kv);
        LIST(dev_ring, score, a->ring_score);
        LIST(dev_store, store, a->store);
        PART(kv), PART(gate), PART(ape), PART(norm), PART(rope);
        x.ring_kv = kv, x.ring_score = score, x.store = store;
        ops_of(s, k)->compress(stream_of(s, k), &x);
    }
    finish(s);
    ring_settle(s, a->ring_kv, SHADOW_COMPRESS);
    ring_settle(s, a->ring_score, SHADOW_COMPRESS);
    store_settle(s, a->store, a->ratio, SHADOW_COMPRESS);
}

static void sh_select(struct dev_stream *s, const struct select_args *a)
{
    pull(s, a->q, a->n);
    pull(s, a->weight, a->n);
    for (int k = 0; k < DEVICES; k++) {
        struct select_args x = *a;
        LIST(dev_store, store, a->store);
        PART(q), PART(weight), PART(out);
        x.store = store;
        ops_of(s, k)->select(stream_of(s, k), &x);
    }
    finish(s);
    compare_ids(s, SHADOW_SELECT, a->out, a->n, 1 + a->top_k);
}

static void sh_attention(struct dev_stream *s, const struct attention_args *wanted)
{
    struct attention_args with_out = *wanted, *const a = &with_out;
    if (!a->out) a->out = a->q;
    pull(s, a->q, a->n);
    pull(s, a->selected, a->n);
    for (int k = 0; k < DEVICES; k++) {
        struct attention_args x = *a;
        LIST(dev_ring, ring, a->ring);
        LIST(dev_store, store, a->store);
        PART(q), PART(rope), PART(raw), PART(selected), PART(sinks), PART(out);
        x.ring = ring, x.store = a->store ? store : NULL;
        x.act = NULL;
        ops_of(s, k)->attention(stream_of(s, k), &x);
    }
    finish(s);
    compare(s, SHADOW_ATTENTION, a->out, a->n, 0, NULL);
    if (a->act) sh_act_quant(s, &(struct act_quant_args){.x = a->out, .out = a->act, .n = a->n}); /* of equal floats */
}

static void sh_router(struct dev_stream *s, const struct router_args *a)
{
    pull(s, a->logits, a->n);
    BOTH(router_args, router, (PART(logits), PART(bias), PART(table), PART(ids), PART(weight)));
    compare_ids(s, SHADOW_ROUTER, a->ids, a->n, a->k);
    compare(s, SHADOW_ROUTER, a->weight, a->n, a->k, NULL);
}

static void sh_moe(struct dev_stream *s, const struct moe_args *a)
{
    pull(s, a->x, a->n);
    pull(s, a->ids, a->n);
    pull(s, a->weight, a->n);
    pull(s, a->shared_weight, a->n);
    BOTH(moe_args, moe,
         (PART(x), PART(ids), PART(weight), PART(shared_gate), PART(shared_up), PART(shared_down), PART(shared_weight),
          PART(out), PART(mid)));
    compare(s, SHADOW_MOE, a->out, a->n, 0, NULL);
}

static void sh_hc_gates(struct dev_stream *s, const struct hc_gates_args *a)
{
    const int m = a->streams;
    pull(s, a->mix, a->n);
    BOTH(hc_gates_args, hc_gates, (PART(mix), PART(base), PART(scale)));
    compare(s, SHADOW_HC_GATES, a->mix, a->n, a->head ? m : 2 * m + m * m, NULL);
}

static void sh_hc_reduce(struct dev_stream *s, const struct hc_reduce_args *a)
{
    pull(s, a->x, a->n);
    pull(s, a->gates, a->n);
    BOTH(hc_reduce_args, hc_reduce, (PART(x), PART(gates), PART(out)));
    compare(s, SHADOW_HC_REDUCE, a->out, a->n, 0, NULL);
}

static void sh_hc_expand(struct dev_stream *s, const struct hc_expand_args *a)
{
    pull(s, a->x, a->n);
    pull(s, a->y, a->n);
    pull(s, a->gates, a->n);
    BOTH(hc_expand_args, hc_expand, (PART(y), PART(gates), PART(x)));
    compare(s, SHADOW_HC_EXPAND, a->x, a->n, 0, NULL);
}

static void sh_hc_mix(struct dev_stream *s, const struct hc_mix_args *a)
{
    const int m = a->streams;
    pull(s, a->x, a->n);
    pull(s, a->y, a->n);
    if (a->y) pull(s, a->mix, a->n);
    BOTH(hc_mix_args, hc_mix,
         (PART(y), PART(x), PART(mix), PART(out), PART(fn), PART(base), PART(scale), PART(weight)));
    compare(s, SHADOW_HC_MIX, a->x, a->n, 0, NULL);
    compare(s, SHADOW_HC_MIX, a->mix, a->n, a->head ? m : 2 * m + m * m, NULL);
    compare(s, SHADOW_HC_MIX, a->out, a->n, 0, NULL);
}

static void sh_gather(struct dev_stream *s, const struct gather_args *a)
{
    pull(s, a->x, s->rows->n);
    BOTH(gather_args, gather, (PART(x), PART(out)));
    compare(s, SHADOW_GATHER, a->out, a->n, 0, NULL);
}

/* ---------------------------------------------------------------- operations of recurrent families */

static void sh_element(struct dev_stream *s, const struct element_args *a)
{
    pull(s, a->x, a->n);
    pull(s, a->y, a->n);
    BOTH(element_args, element, (PART(x), PART(y), PART(out)));
    compare(s, SHADOW_ELEMENT, a->out, a->n, 0, NULL);
}

static void sh_decay(struct dev_stream *s, const struct decay_args *a)
{
    pull(s, a->x, a->n);
    BOTH(decay_args, decay, (PART(x), PART(out), PART(a), PART(bias)));
    compare(s, SHADOW_DECAY, a->out, a->n, 0, NULL);
}

static void sh_conv(struct dev_stream *s, const struct conv_args *a)
{
    pull(s, a->x, s->rows->n);
    for (int k = 0; k < DEVICES; k++) {
        struct conv_args x = *a;
        LIST(dev_ring, ring, a->ring);
        PART(x), PART(out), PART(weight);
        x.ring = a->ring ? ring : NULL;
        ops_of(s, k)->conv(stream_of(s, k), &x);
    }
    finish(s);
    if (a->ring) ring_settle(s, a->ring, SHADOW_COUNT);
    compare(s, SHADOW_CONV, a->out, s->rows->n, 0, NULL);
}

static void sh_delta_scan(struct dev_stream *s, const struct delta_scan_args *a)
{
    pull(s, a->x, s->rows->n);
    pull(s, a->decay, s->rows->n);
    pull(s, a->beta, s->rows->n);
    for (int k = 0; k < DEVICES; k++) {
        struct delta_scan_args x = *a;
        LIST(dev_scan, scan, a->scan);
        PART(x), PART(decay), PART(beta), PART(out);
        x.scan = scan;
        ops_of(s, k)->delta_scan(stream_of(s, k), &x);
    }
    finish(s);
    compare(s, SHADOW_DELTA_SCAN, a->out, s->rows->n, 0, NULL);
}

static void sh_memory_gate(struct dev_stream *s, const struct memory_gate_args *a)
{
    pull(s, a->key, a->n);
    pull(s, a->query, a->n);
    pull(s, a->value, a->n);
    BOTH(memory_gate_args, memory_gate, (PART(key), PART(query), PART(value), PART(out)));
    compare(s, SHADOW_MEMORY_GATE, a->out, a->n, 0, NULL);
}

static void sh_store_write(struct dev_stream *s, const struct store_write_args *a)
{
    pull(s, a->x, s->rows->n);
    pull(s, a->y, s->rows->n);
    for (int k = 0; k < DEVICES; k++) {
        struct store_write_args x = *a;
        LIST(dev_store, store, a->store);
        PART(x), PART(y);
        x.store = store;
        ops_of(s, k)->store_write(stream_of(s, k), &x);
    }
    finish(s);
    store_settle(s, a->store, 1, SHADOW_STORE_WRITE);
}

static void sh_pool(struct dev_stream *s, const struct pool_args *a)
{
    pull(s, a->x, s->rows->n);
    for (int k = 0; k < DEVICES; k++) {
        struct pool_args x = *a;
        LIST(dev_ring, ring, a->ring);
        LIST(dev_store, store, a->store);
        PART(x), PART(norm), PART(rope);
        x.ring = ring, x.store = store;
        ops_of(s, k)->pool(stream_of(s, k), &x);
    }
    finish(s);
    ring_settle(s, a->ring, SHADOW_POOL);
    store_settle(s, a->store, a->ratio, SHADOW_POOL);
}

static void sh_attention_heads(struct dev_stream *s, const struct attention_heads_args *a)
{
    pull(s, a->q, a->n);
    pull(s, a->selected, a->n);
    for (int k = 0; k < DEVICES; k++) {
        struct attention_heads_args x = *a;
        LIST(dev_store, store, a->store);
        PART(q), PART(selected), PART(out);
        x.store = store;
        ops_of(s, k)->attention_heads(stream_of(s, k), &x);
    }
    finish(s);
    compare(s, SHADOW_ATTENTION_HEADS, a->out, a->n, 0, NULL);
}

/* ref's matrices become cpu's. */
static void scan_settle(struct dev_scan *c)
{
    struct dev *const cpu = c->owner->of[CPU], *const ref = c->owner->of[REF];
    const size_t n = cpu->op->scan_state_bytes(cpu, &c->d) / sizeof(float);
    float *x = mem_alloc(n * sizeof *x);
    double *y = mem_alloc(n * sizeof *y);
    if (ref->op->scan_state_bytes(ref, &c->d) != n * sizeof *y) abort();
    cpu->op->scan_get(c->of[CPU], x);
    for (size_t i = 0; i < n; i++) y[i] = x[i];
    ref->op->scan_put(c->of[REF], y);
    mem_free(x);
    mem_free(y);
}

static void sh_set_rows(struct dev_stream *s, const struct rows *rows)
{
    s->rows = rows;
    for (int k = 0; k < DEVICES; k++) ops_of(s, k)->set_rows(stream_of(s, k), rows);
}

/* ---------------------------------------------------------------- objects: two of everything */

#define TWIN(type, make, ...)                                                                                          \
    struct type *t = mem_alloc(sizeof *t);                                                                             \
    t->owner = shadow_of(d);                                                                                           \
    for (int k = 0; k < DEVICES; k++)                                                                                  \
        if (!(t->of[k] = shadow_of(d)->of[k]->op->make(shadow_of(d)->of[k], __VA_ARGS__))) abort()

static struct dev_buf *sh_buf_create(struct dev *d, const struct buf_desc *desc)
{
    TWIN(dev_buf, buf_create, desc);
    t->d = *desc;
    return t;
}

static struct dev_buf *sh_view_create(struct dev *d)
{
    struct dev_buf *b = mem_alloc(sizeof *b);
    b->owner = shadow_of(d);
    for (int k = 0; k < DEVICES; k++)
        if (!(b->of[k] = shadow_of(d)->of[k]->op->view_create(shadow_of(d)->of[k]))) abort();
    return b;
}

static void sh_view_set(struct dev_buf *view, const struct dev_buf *of, int row)
{
    view->d = of->d;
    for (int k = 0; k < DEVICES; k++) view->owner->of[k]->op->view_set(view->of[k], of->of[k], row);
}

static struct dev_mat *sh_mat_create(struct dev *d, const struct tensor_view *view)
{
    TWIN(dev_mat, mat_create, view);
    t->view = *view;
    return t;
}

static struct dev_rope *sh_rope_create(struct dev *d, const struct rope_desc *desc)
{
    TWIN(dev_rope, rope_create, desc);
    return t;
}

static struct dev_ring *sh_ring_create(struct dev *d, const struct ring_desc *desc)
{
    TWIN(dev_ring, ring_create, desc);
    t->d = *desc;
    return t;
}

static struct dev_store *sh_store_create(struct dev *d, const struct row_format *fmt)
{
    TWIN(dev_store, store_create, fmt);
    t->fmt = *fmt;
    return t;
}

static struct dev_scan *sh_scan_create(struct dev *d, const struct scan_desc *desc)
{
    TWIN(dev_scan, scan_create, desc);
    t->d = *desc;
    return t;
}

/* Calls a function of both devices on an object's twins */
#define EACH(object, call)                                                                                             \
    for (int k = 0; k < DEVICES; k++) (object)->owner->of[k]->op->call

static void sh_buf_free(struct dev_buf *b)
{
    EACH(b, buf_free(b->of[k]));
    mem_free(b);
}

static void sh_mat_free(struct dev_mat *m)
{
    EACH(m, mat_free(m->of[k]));
    mem_free(m);
}

static void sh_rope_free(struct dev_rope *r)
{
    EACH(r, rope_free(r->of[k]));
    mem_free(r);
}

static void sh_ring_free(struct dev_ring *r)
{
    EACH(r, ring_free(r->of[k]));
    mem_free(r);
}

static void sh_scan_free(struct dev_scan *c)
{
    EACH(c, scan_free(c->of[k]));
    mem_free(c);
}

static void sh_scan_flip(struct dev_scan *c)
{
    EACH(c, scan_flip(c->of[k]));
    scan_settle(c);
}

static void sh_scan_replay(struct dev_stream *s, struct dev_scan *c, int from, int to)
{
    for (int k = 0; k < DEVICES; k++) ops_of(s, k)->scan_replay(stream_of(s, k), c->of[k], from, to);
    finish(s);
    scan_settle(c);
}

static void sh_store_free(struct dev_store *s)
{
    EACH(s, store_free(s->of[k]));
    mem_free(s);
}

static int sh_store_reserve(struct dev_store *s, int64_t from, int64_t to)
{
    int rc = 0;
    for (int k = 0; k < DEVICES && !rc; k++) rc = s->owner->of[k]->op->store_reserve(s->of[k], from, to);
    return rc;
}

static void sh_read_f64(struct dev_stream *s, const struct dev_buf *b, int row, int n, double *values)
{
    ops_of(s, CPU)->read_f64(stream_of(s, CPU), b->of[CPU], row, n, values);
}

static void sh_write_f32(struct dev_stream *s, struct dev_buf *b, int row, int n, const float *values)
{
    for (int k = 0; k < DEVICES; k++) ops_of(s, k)->write_f32(stream_of(s, k), b->of[k], row, n, values);
}

static void sh_stream_free(struct dev_stream *s)
{
    for (int k = 0; k < DEVICES; k++) ops_of(s, k)->stream_free(stream_of(s, k));
    mem_free(s);
}

static struct dev_stream *sh_stream_create(struct dev *d)
{
    struct shadow_stream *s = mem_alloc(sizeof *s);
    s->base.dev = d;
    for (int k = 0; k < DEVICES; k++) s->of[k] = shadow_of(d)->of[k]->op->stream_create(shadow_of(d)->of[k]);
    return &s->base;
}

static void sh_free(struct dev *d)
{
    for (int k = 0; k < DEVICES; k++) shadow_of(d)->of[k]->op->free(shadow_of(d)->of[k]);
    mem_free(d);
}

static const struct dev_ops shadow_ops = {
    .name = "shadow",
    .free = sh_free,
    .stream_create = sh_stream_create,
    .stream_free = sh_stream_free,
    .buf_create = sh_buf_create,
    .buf_free = sh_buf_free,
    .view_create = sh_view_create,
    .view_set = sh_view_set,
    .mat_create = sh_mat_create,
    .mat_free = sh_mat_free,
    .rope_create = sh_rope_create,
    .rope_free = sh_rope_free,
    .ring_create = sh_ring_create,
    .ring_free = sh_ring_free,
    .store_create = sh_store_create,
    .store_free = sh_store_free,
    .store_reserve = sh_store_reserve,
    .scan_create = sh_scan_create,
    .scan_free = sh_scan_free,
    .scan_flip = sh_scan_flip,
    .scan_replay = sh_scan_replay,
    .read_f64 = sh_read_f64,
    .write_f32 = sh_write_f32,
    .set_rows = sh_set_rows,
    .embed = sh_embed,
    .rms_norm = sh_rms_norm,
    .act_quant = sh_act_quant,
    .matmul = sh_matmul,
    .rope = sh_rope,
    .hadamard = sh_hadamard,
    .round = sh_round,
    .pack = sh_pack,
    .ring_write = sh_ring_write,
    .compress = sh_compress,
    .select = sh_select,
    .attention = sh_attention,
    .router = sh_router,
    .moe = sh_moe,
    .hc_gates = sh_hc_gates,
    .hc_reduce = sh_hc_reduce,
    .hc_expand = sh_hc_expand,
    .hc_mix = sh_hc_mix,
    .gather = sh_gather,
    .element = sh_element,
    .decay = sh_decay,
    .conv = sh_conv,
    .delta_scan = sh_delta_scan,
    .memory_gate = sh_memory_gate,
    .store_write = sh_store_write,
    .pool = sh_pool,
    .attention_heads = sh_attention_heads,
};

int dev_shadow_create(struct pool *pool, struct dev **out, struct err *e)
{
    struct shadow *s = mem_alloc(sizeof *s);
    s->base.op = &shadow_ops;
    *out = &s->base;
    const int rc = dev_cpu_create(pool, quant_isa_best(), &s->of[CPU], e);
    return rc ? rc : dev_ref_create(&s->of[REF], e);
}
