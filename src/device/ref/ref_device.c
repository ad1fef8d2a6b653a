/* Creation of everything the judge hands out, row access, and its table. */
#include "device/ref/ref_internal.h"
#include <string.h>
#include "base/mem.h"

/* ---------------------------------------------------------------- streams */

bool ref_begin(struct dev_stream *s)
{
    ((struct ref_stream *)s)->n_taken = 0;
    return !s->error.code;
}

double *ref_take(struct dev_stream *s, size_t n)
{
    struct ref_stream *r = (struct ref_stream *)s;
    const int i = r->n_taken;
    if (i == REF_SCRATCH_BLOCKS) {
        dev_fail(s, ERR_DEVICE, "ref: an operation wants more than %d scratch blocks", REF_SCRATCH_BLOCKS);
        return NULL;
    }
    if (!r->block[i].p || r->block[i].n < n) {
        mem_free(r->block[i].p);
        r->block[i].n = 0;
        r->block[i].p = mem_try((n + 1) * sizeof(double));
        if (!r->block[i].p) {
            dev_fail(s, ERR_MEMORY, "ref: no memory for %zu values of scratch", n);
            return NULL;
        }
        r->block[i].n = n;
    }
    r->n_taken++;
    return r->block[i].p;
}

float *ref_narrow(struct dev_stream *s, size_t n)
{
    struct ref_stream *r = (struct ref_stream *)s;
    if (r->narrow && r->n_narrow >= n) return r->narrow;
    mem_free(r->narrow);
    r->narrow = mem_try((n + 1) * sizeof(float));
    r->n_narrow = r->narrow ? n : 0;
    if (!r->narrow) dev_fail(s, ERR_MEMORY, "ref: no memory for %zu values of scratch", n);
    return r->narrow;
}

/* Blocks grow to the most that any op takes them for: together at most the sum of all ops. */
static void ref_work(const struct dev *dev, const struct work_desc *a, struct work_space *most)
{
    (void)dev;
    const struct expert_layer *l = experts_layer(a->moe->experts, a->moe->layer);
    const size_t rows = (size_t)a->rows, values = (size_t)a->values, wide = (size_t)a->wide, ratio = (size_t)a->ratio;
    const size_t seen = (size_t)a->window + (ratio ? (size_t)a->ctx / ratio : 0);
    const size_t expert = 5 * (size_t)(l->gate.ne[0] + l->gate.ne[1]) + (size_t)l->gate.ne[2];
    const size_t heads = a->kv_heads ? 2 * (size_t)a->ctx : 0, scan = 4 * values + 2 * (size_t)a->scan_width;
    const size_t n =
        rows * (values + wide) + (ratio + 2) * wide + 4 * ratio + 3 * seen + 4 * values + expert + heads + scan;
    const size_t bytes = n * sizeof(double) + (values + expert) * sizeof(float);
    if (bytes > most->shared) most->shared = bytes;
}

static struct dev_stream *ref_stream_create(struct dev *d)
{
    struct ref_stream *r = mem_try(sizeof *r);
    if (!r) return NULL;
    r->base.dev = d;
    return &r->base;
}

static void ref_stream_free(struct dev_stream *s)
{
    struct ref_stream *r = (struct ref_stream *)s;
    if (!r) return;
    for (int i = 0; i < REF_SCRATCH_BLOCKS; i++) mem_free(r->block[i].p);
    mem_free(r->narrow);
    mem_free(r);
}

static void ref_set_rows(struct dev_stream *s, const struct rows *rows)
{
    s->rows = rows;
}

/* ---------------------------------------------------------------- buffers */

static size_t buf_row_bytes(const struct buf_desc *d)
{
    switch (d->kind) {
    case BUF_I32:
        return (size_t)buf_row_values(d) * sizeof(int32_t);
    case BUF_ACT:
        return (size_t)d->groups * act_row_bytes(d->act, d->width);
    case BUF_PACKED:
        return (size_t)d->fmt.width * sizeof(double);
    case BUF_FLOAT:
        break;
    }
    return (size_t)buf_row_values(d) * sizeof(double);
}

static size_t ref_buf_bytes(const struct dev *d, const struct buf_desc *desc)
{
    (void)d;
    return (size_t)desc->rows * buf_row_bytes(desc);
}

static struct dev_buf *ref_buf_create(struct dev *d, const struct buf_desc *desc)
{
    struct dev_buf *b = mem_try(sizeof *b);
    if (!b) return NULL;
    b->desc = *desc;
    b->row_bytes = buf_row_bytes(desc);
    b->data = mem_try_aligned(ref_buf_bytes(d, desc) + 64, 64);
    if (b->data) return b;
    mem_free(b);
    return NULL;
}

static void ref_buf_free(struct dev_buf *b)
{
    if (!b) return;
    if (!b->view) mem_free(b->data);
    mem_free(b);
}

static struct dev_buf *ref_view_create(struct dev *d)
{
    (void)d;
    struct dev_buf *b = mem_try(sizeof *b);
    if (b) b->view = true;
    return b;
}

static void ref_view_set(struct dev_buf *view, const struct dev_buf *of, int row)
{
    *view = *of;
    view->view = true;
    view->desc.rows -= row;
    view->data = of->data + (size_t)row * of->row_bytes;
}

/* True if rows [row, row+n) of a buffer of that kind can be copied; sets the error otherwise. */
static bool access_ok(struct dev_stream *s, const struct dev_buf *b, int row, int n, enum buf_kind kind)
{
    if (s->error.code) return false;
    if (b->desc.kind == kind && row >= 0 && n >= 0 && n <= b->desc.rows - row) return true;
    dev_fail(s, ERR_ARG, "ref: rows %d to %d of a buffer of %d rows (kind %d) read or written as kind %d", row,
             row + n - 1, b->desc.rows, (int)b->desc.kind, (int)kind);
    return false;
}

static void ref_read_f64(struct dev_stream *s, const struct dev_buf *b, int row, int n, double *values)
{
    if (access_ok(s, b, row, n, BUF_FLOAT)) memcpy(values, ref_row(b, row), (size_t)n * b->row_bytes);
}

static void ref_read_f32(struct dev_stream *s, const struct dev_buf *b, int row, int n, float *values)
{
    if (!access_ok(s, b, row, n, BUF_FLOAT)) return;
    const double *x = ref_row(b, row);
    for (int64_t i = 0; i < n * buf_row_values(&b->desc); i++) values[i] = (float)x[i];
}

static void ref_read_i32(struct dev_stream *s, const struct dev_buf *b, int row, int n, int32_t *values)
{
    if (access_ok(s, b, row, n, BUF_I32)) memcpy(values, ref_row_i32(b, row), (size_t)n * b->row_bytes);
}

static void ref_write_f64(struct dev_stream *s, struct dev_buf *b, int row, int n, const double *values)
{
    if (access_ok(s, b, row, n, BUF_FLOAT)) memcpy(ref_row(b, row), values, (size_t)n * b->row_bytes);
}

static void ref_write_f32(struct dev_stream *s, struct dev_buf *b, int row, int n, const float *values)
{
    if (!access_ok(s, b, row, n, BUF_FLOAT)) return;
    double *x = ref_row(b, row);
    for (int64_t i = 0; i < n * buf_row_values(&b->desc); i++) x[i] = values[i];
}

static void ref_write_i32(struct dev_stream *s, struct dev_buf *b, int row, int n, const int32_t *values)
{
    if (access_ok(s, b, row, n, BUF_I32)) memcpy(ref_row_i32(b, row), values, (size_t)n * b->row_bytes);
}

/* ---------------------------------------------------------------- weights */

/* Weights are decoded where they are used. */
static size_t ref_mat_bytes(const struct dev *d, const struct tensor_view *view)
{
    (void)d, (void)view;
    return 0;
}

static struct dev_mat *ref_mat_create(struct dev *d, const struct tensor_view *view)
{
    (void)d;
    struct dev_mat *m = mem_try(sizeof *m);
    if (m) m->view = *view;
    return m;
}

static void ref_mat_free(struct dev_mat *m)
{
    mem_free(m);
}

/* ---------------------------------------------------------------- stored rows as bytes */

static size_t ref_row_bytes(const struct dev *d, const struct row_format *fmt)
{
    (void)d;
    return (size_t)fmt->width * sizeof(double);
}

static void ref_row_decode(const struct dev *d, const struct row_format *fmt, const void *src, double *values)
{
    memcpy(values, src, ref_row_bytes(d, fmt));
}

static void ref_row_encode(const struct dev *d, const struct row_format *fmt, const double *values, void *dst)
{
    double *row = dst;
    memcpy(row, values, ref_row_bytes(d, fmt));
    ref_round_row(fmt, row);
}

/* ---------------------------------------------------------------- the table */

static void ref_free(struct dev *d)
{
    mem_free(d);
}

static const struct dev_ops ref_ops = {
    .name = "ref",
    .free = ref_free,
    .stream_create = ref_stream_create,
    .stream_free = ref_stream_free,
    .buf_create = ref_buf_create,
    .buf_free = ref_buf_free,
    .view_create = ref_view_create,
    .view_set = ref_view_set,
    .buf_bytes = ref_buf_bytes,
    .work = ref_work,
    .mat_create = ref_mat_create,
    .mat_free = ref_mat_free,
    .mat_bytes = ref_mat_bytes,
    .rope_create = host_rope_create,
    .rope_free = host_rope_free,
    .ring_create = ref_ring_create,
    .ring_free = ref_ring_free,
    .ring_bytes = ref_ring_bytes,
    .ring_flip = ref_ring_flip,
    .ring_copy = ref_ring_copy,
    .store_create = ref_store_create,
    .store_free = ref_store_free,
    .store_bytes = ref_store_bytes,
    .store_reserve = ref_store_reserve,
    .store_share = ref_store_share,
    .row_bytes = ref_row_bytes,
    .ring_get = ref_ring_get,
    .ring_put = ref_ring_put,
    .store_get = ref_store_get,
    .store_put = ref_store_put,
    .row_decode = ref_row_decode,
    .row_encode = ref_row_encode,
    .read_f64 = ref_read_f64,
    .read_f32 = ref_read_f32,
    .read_i32 = ref_read_i32,
    .write_f64 = ref_write_f64,
    .write_f32 = ref_write_f32,
    .write_i32 = ref_write_i32,
    .set_rows = ref_set_rows,
    .embed = ref_embed,
    .rms_norm = ref_rms_norm,
    .act_quant = ref_act_quant,
    .matmul = ref_matmul,
    .rope = ref_rope,
    .hadamard = ref_hadamard,
    .round = ref_round,
    .pack = ref_pack,
    .ring_write = ref_ring_write,
    .compress = ref_compress,
    .select = ref_select,
    .attention = ref_attention,
    .router = ref_router,
    .moe = ref_moe,
    .hc_gates = ref_hc_gates,
    .hc_reduce = ref_hc_reduce,
    .hc_expand = ref_hc_expand,
    .hc_mix = ref_hc_mix,
    .gather = ref_gather,
    .scan_create = ref_scan_create,
    .scan_free = ref_scan_free,
    .scan_bytes = ref_scan_bytes,
    .scan_state_bytes = ref_scan_state_bytes,
    .scan_flip = ref_scan_flip,
    .scan_replay = ref_scan_replay,
    .scan_copy = ref_scan_copy,
    .scan_get = ref_scan_get,
    .scan_put = ref_scan_put,
    .element = ref_element,
    .decay = ref_decay,
    .conv = ref_conv,
    .delta_scan = ref_delta_scan,
    .memory_gate = ref_memory_gate,
    .store_write = ref_store_write,
    .pool = ref_pool,
    .attention_heads = ref_attention_heads,
};

int dev_ref_create(struct dev **out, struct err *e)
{
    *out = mem_try(sizeof **out);
    if (!*out) return err_set(e, ERR_MEMORY, "no memory for device ref");
    (*out)->op = &ref_ops;
    return 0;
}
