/* The cpu device: creation, buffers, weights, scratch, the parallel loop, and the table of ops. */
#include <stdatomic.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

/* ---------------------------------------------------------------- scratch and tasks */

bool cpu_ready(const struct dev_stream *s)
{
    return !s->error.code;
}

bool cpu_need_f32(struct dev_stream *s, const struct dev_mat *m, const char *what)
{
    if (!m || m->f32) return true;
    dev_fail(s, ERR_MODEL, "%s: weights of type %u with %lld values cannot be used as plain numbers", what, m->v.type,
             (long long)(m->v.ne[0] * view_rows(&m->v)));
    return false;
}

/* A quarter more than asked for, but little of much, so that scratch that follows the context's length seldom moves. */
static size_t grown(size_t bytes)
{
    enum { MORE_MOST = 16 << 20 };
    return round_up(bytes + (size_t)min_i64((int64_t)bytes / 4, MORE_MOST), 4096);
}

static bool scratch_grow(struct dev_stream *s, struct scratch *at, size_t bytes)
{
    if (bytes <= at->bytes) return true;
    const size_t want = grown(bytes);
    mem_free(at->p);
    *at = (struct scratch){.p = mem_try_scratch(want)};
    if (at->p)
        at->bytes = want;
    else
        dev_fail(s, ERR_MEMORY, "no memory for %zu bytes of working space; use smaller steps", want);
    return at->p;
}

bool cpu_thread_scratch(struct dev_stream *s, size_t bytes)
{
    struct cpu_stream *c = (struct cpu_stream *)s;
    for (int i = 0; i < cpu_of(s)->n_threads; i++)
        if (!scratch_grow(s, &c->thread[i], bytes + 64)) return false;
    return true;
}

void *cpu_shared_scratch(struct dev_stream *s, size_t bytes)
{
    struct cpu_stream *c = (struct cpu_stream *)s;
    return scratch_grow(s, &c->shared, bytes + 64) ? c->shared.p : NULL;
}

static struct cpu_work work_of(const struct cpu_dev *d, const struct work_desc *a)
{
    const size_t turn = 8 * (size_t)max_i64(a->width, a->index_width) * sizeof(float);
    const size_t route = (size_t)experts_count(a->moe->experts, a->moe->layer) * (2 * sizeof(float) + 1);
    struct cpu_work w = {.thread = turn > route ? turn : route};
    cpu_matmul_work(d, a, &w);
    if (a->wide) cpu_compress_work(a, &w);
    cpu_select_work(a, &w);
    if (a->window) cpu_attention_work(d, a, &w);
    cpu_heads_work(d, a, &w);
    cpu_scan_work(a, &w);
    cpu_hc_work(a, &w);
    cpu_moe_work(d, a, &w);
    return w;
}

static void work(const struct dev *dev, const struct work_desc *a, struct work_space *most)
{
    const struct cpu_dev *d = (const struct cpu_dev *)dev;
    const struct cpu_work w = work_of(d, a);
    const size_t shared = grown(w.shared + 64), thread = grown(w.thread + 64);
    most->threads = d->n_threads;
    if (shared > most->shared) most->shared = shared;
    if (thread > most->thread) most->thread = thread;
}

const float *cpu_pad_rows(const float *x, int n, int width, int padded, float *to)
{
    if (width == padded) return x;
    for (int i = 0; i < n; i++, x += width) {
        float *row = to + (size_t)i * (size_t)padded;
        memcpy(row, x, (size_t)width * sizeof *row);
        for (int v = width; v < padded; v++) row[v] = 0;
    }
    return to;
}

struct range_job {
    cpu_range_fn *fn;
    void *arg;
    int64_t n, step;
};

static void range_task(void *arg, int task, int thread)
{
    const struct range_job *j = arg;
    const int64_t from = task * j->step;
    j->fn(j->arg, from, min_i64(from + j->step, j->n), thread);
}

struct watched_job {
    const struct dev_stream *s;
    void (*fn)(void *arg, int task, int thread);
    void *arg;
    atomic_bool stopped;
};

static void watched_task(void *arg, int task, int thread)
{
    struct watched_job *j = arg;
    if (atomic_load_explicit(&j->stopped, memory_order_relaxed)) return;
    if (j->s->unwanted(j->s->unwanted_arg))
        atomic_store(&j->stopped, true);
    else
        j->fn(j->arg, task, thread);
}

/* Runs tasks on the pool, unless the work has become unwanted. */
static void run_tasks(struct dev_stream *s, void (*fn)(void *arg, int task, int thread), void *arg, int n)
{
    struct pool *const pool = cpu_of(s)->pool;
    if (!s->unwanted) {
        pool_run(pool, fn, arg, n);
        return;
    }
    struct watched_job j = {.s = s, .fn = fn, .arg = arg};
    pool_run(pool, watched_task, &j, n);
    if (atomic_load(&j.stopped)) dev_fail(s, ERR_CANCELLED, "cancelled");
}

/* Below this many touched floats waking the other threads costs more than it saves. */
enum { SERIAL_COST = 16384, TASKS_PER_THREAD = 4 };

void cpu_ranges(struct dev_stream *s, cpu_range_fn *fn, void *arg, int64_t n, int64_t cost)
{
    const struct cpu_dev *d = cpu_of(s);
    if (n <= 0 || !cpu_ready(s)) return;
    const int64_t most = (int64_t)d->n_threads * TASKS_PER_THREAD, useful = n * max_i64(cost, 1) / (SERIAL_COST / 2);
    const int64_t tasks = n * cost <= SERIAL_COST ? 1 : min_i64(n, min_i64(most, useful));
    struct range_job j = {.fn = fn, .arg = arg, .n = n, .step = (n + tasks - 1) / tasks};
    run_tasks(s, range_task, &j, (int)((n + j.step - 1) / j.step));
}

void cpu_tasks(struct dev_stream *s, void (*fn)(void *arg, int task, int thread), void *arg, int64_t n)
{
    if (n > 0 && cpu_ready(s)) run_tasks(s, fn, arg, (int)n);
}

/* ---------------------------------------------------------------- objects */

static struct dev_stream *stream_create(struct dev *d)
{
    const struct cpu_dev *c = (const struct cpu_dev *)d;
    struct cpu_stream *s = mem_try(sizeof *s);
    if (!s) return NULL;
    s->base.dev = d;
    s->thread = mem_try((size_t)c->n_threads * sizeof *s->thread);
    if (s->thread) return &s->base;
    mem_free(s);
    return NULL;
}

static void stream_free(struct dev_stream *base)
{
    if (!base) return;
    struct cpu_stream *s = (struct cpu_stream *)base;
    for (int i = 0; i < cpu_of(base)->n_threads; i++) mem_free(s->thread[i].p);
    mem_free(s->thread);
    mem_free(s->shared.p);
    mem_free(s);
}

size_t cpu_row_bytes(const struct row_format *f)
{
    if (f->kind == ROWFMT_FP8) return round_up((size_t)(f->n_fp8 + f->n_fp8 / f->block + 2 * (f->width - f->n_fp8)), 4);
    if (f->kind == ROWFMT_FP4) return round_up((size_t)(f->width / 2 + f->width / f->block), 4);
    if (f->kind == ROWFMT_F16) return round_up(2 * (size_t)f->width, 4);
    return (size_t)f->width * sizeof(float);
}

static size_t row_bytes(const struct dev *d, const struct row_format *fmt)
{
    return cpu_row_bytes(fmt);
}

static size_t buf_stride(const struct buf_desc *d)
{
    size_t bytes = (size_t)buf_row_values(d) * 4;
    if (d->kind == BUF_ACT) bytes = (size_t)d->groups * act_row_bytes(d->act, d->width);
    if (d->kind == BUF_PACKED) bytes = cpu_row_bytes(&d->fmt);
    return round_up(bytes, 64);
}

static size_t buf_bytes(const struct dev *d, const struct buf_desc *desc)
{
    return (size_t)desc->rows * buf_stride(desc);
}

static void buf_free(struct dev_buf *b)
{
    if (!b) return;
    if (b->next) b->next->link = b->link;
    if (b->link) *b->link = b->next;
    if (!b->view) mem_free(b->data);
    mem_free(b);
}

static struct dev_buf *view_create(struct dev *d)
{
    struct dev_buf *b = mem_try(sizeof *b);
    if (b) b->view = true;
    return b;
}

static void view_set(struct dev_buf *view, const struct dev_buf *of, int row)
{
    *view = *of;
    view->view = true;
    view->d.rows -= row;
    view->data = buf_row(of, row);
}

static struct dev_buf *buf_create(struct dev *d, const struct buf_desc *desc)
{
    struct dev_buf *b = mem_try(sizeof *b);
    if (!b) return NULL;
    *b = (struct dev_buf){.d = *desc, .stride = buf_stride(desc)};
    b->data = mem_try_scratch(buf_bytes(d, desc) + 64);
    if (!b->data) {
        buf_free(b);
        return NULL;
    }
    struct dev_buf **const first = &((struct cpu_dev *)d)->bufs;
    b->next = *first;
    b->link = first;
    if (b->next) b->next->link = &b->next;
    return *first = b;
}

/* ---------------------------------------------------------------- warming */

enum { PAGE = 4096, WARM_PIECE = 4 << 20 };

struct warm_job {
    uint8_t *p;
    size_t bytes;
};

static void warm_piece(void *arg, int task, int thread)
{
    const struct warm_job *j = arg;
    const size_t from = (size_t)task * WARM_PIECE, end = from + WARM_PIECE < j->bytes ? from + WARM_PIECE : j->bytes;
    for (size_t i = from; i < end; i += PAGE) {
        volatile uint8_t *const at = j->p + i;
        *at = *at;
    }
}

static void warm_bytes(struct dev_stream *s, void *p, size_t bytes)
{
    struct warm_job j = {.p = p, .bytes = bytes};
    if (p) cpu_tasks(s, warm_piece, &j, (int64_t)((bytes + WARM_PIECE - 1) / WARM_PIECE));
}

static void warm(struct dev_stream *s, const struct work_desc *w)
{
    const struct cpu_dev *d = cpu_of(s);
    const struct cpu_stream *c = (const struct cpu_stream *)s;
    if (w) {
        const struct cpu_work need = work_of(d, w);
        if (cpu_shared_scratch(s, need.shared)) cpu_thread_scratch(s, need.thread);
        return;
    }
    warm_bytes(s, c->shared.p, c->shared.bytes);
    for (int i = 0; i < d->n_threads; i++) warm_bytes(s, c->thread[i].p, c->thread[i].bytes);
    for (const struct dev_buf *b = d->bufs; b; b = b->next) warm_bytes(s, b->data, buf_bytes(s->dev, &b->d));
}

static void mat_free(struct dev_mat *m)
{
    if (!m) return;
    mem_free(m->own);
    mem_free(m);
}

/* Values up to which a weight is widened: norms, biases, sinks, position biases of compressors. */
enum { WIDEN_VALUES = 1 << 17 };

static bool plain_floats(const struct tensor_view *v)
{
    return v->type == QT_F32 && (uintptr_t)v->data % sizeof(float) == 0 && v->ne[2] == 1 &&
           (v->ne[1] == 1 || v->stride[1] == (uint64_t)v->ne[0] * sizeof(float));
}

/* Bytes of the widened copy; 0: there is none. */
static size_t mat_bytes(const struct dev *d, const struct tensor_view *v)
{
    const struct quant_type *type = quant_type(v->type);
    const int64_t rows = view_rows(v), n = v->ne[0];
    if (plain_floats(v) || !type || !type->decode || rows > WIDEN_VALUES || n > WIDEN_VALUES / rows) return 0;
    return (size_t)(rows * n) * sizeof(float);
}

static bool mat_widen(struct dev *d, struct dev_mat *m)
{
    const int64_t rows = view_rows(&m->v), n = m->v.ne[0];
    const size_t bytes = mat_bytes(d, &m->v);
    if (plain_floats(&m->v)) m->f32 = (const float *)(const void *)m->v.data;
    if (!bytes || !m->v.data) return true;
    m->own = mem_try(bytes);
    if (!m->own) return false;
    for (int64_t r = 0; r < rows; r++) m->type->decode(view_row(&m->v, r), m->own + r * n, n);
    m->f32 = m->own;
    return true;
}

static struct dev_mat *mat_create(struct dev *d, const struct tensor_view *view)
{
    struct dev_mat *m = mem_try(sizeof *m);
    if (!m) return NULL;
    *m = (struct dev_mat){.v = *view, .type = quant_type(view->type)};
    if (mat_widen(d, m)) return m;
    mat_free(m);
    return NULL;
}

/* ---------------------------------------------------------------- reading and writing */

static void row_decode(const struct dev *d, const struct row_format *fmt, const void *src, double *values)
{
    float *t = mem_alloc((size_t)fmt->width * sizeof *t);
    ((const struct cpu_dev *)d)->k->decode(fmt, src, t);
    for (int i = 0; i < fmt->width; i++) values[i] = t[i];
    mem_free(t);
}

static void row_encode(const struct dev *d, const struct row_format *fmt, const double *values, void *dst)
{
    float *t = mem_alloc((size_t)fmt->width * sizeof *t);
    for (int i = 0; i < fmt->width; i++) t[i] = (float)values[i];
    memset(dst, 0, cpu_row_bytes(fmt));
    ((const struct cpu_dev *)d)->k->encode(fmt, t, dst);
    mem_free(t);
}

/* Row by row between a buffer of floats or integers and packed values of another type. */
#define CPU_READ(name, type)                                                                                           \
    static void name(struct dev_stream *s, const struct dev_buf *b, int row, int n, type *values)                      \
    {                                                                                                                  \
        const int64_t width = buf_row_values(&b->d);                                                                   \
        for (int r = row; r < row + n; r++)                                                                            \
            for (int64_t i = 0; i < width; i++)                                                                        \
                *values++ = b->d.kind == BUF_I32 ? (type)buf_ints(b, r)[i] : (type)buf_floats(b, r)[i];                \
    }
#define CPU_WRITE(name, type)                                                                                          \
    static void name(struct dev_stream *s, struct dev_buf *b, int row, int n, const type *values)                      \
    {                                                                                                                  \
        const int64_t width = buf_row_values(&b->d);                                                                   \
        for (int r = row; r < row + n; r++)                                                                            \
            for (int64_t i = 0; i < width; i++, values++) {                                                            \
                if (b->d.kind == BUF_I32)                                                                              \
                    buf_ints(b, r)[i] = (int32_t)*values;                                                              \
                else                                                                                                   \
                    buf_floats(b, r)[i] = (float)*values;                                                              \
            }                                                                                                          \
    }
CPU_READ(read_f64, double)
CPU_READ(read_f32, float)
CPU_READ(read_i32, int32_t)
CPU_WRITE(write_f64, double)
CPU_WRITE(write_f32, float)
CPU_WRITE(write_i32, int32_t)

static void set_rows(struct dev_stream *s, const struct rows *rows)
{
    s->rows = rows;
}

/* ---------------------------------------------------------------- the device */

static void cpu_free(struct dev *d)
{
    mem_free(d);
}

static const struct dev_ops cpu_ops = {
    .name = "cpu",
    .free = cpu_free,
    .stream_create = stream_create,
    .stream_free = stream_free,
    .buf_create = buf_create,
    .buf_free = buf_free,
    .view_create = view_create,
    .view_set = view_set,
    .buf_bytes = buf_bytes,
    .work = work,
    .warm = warm,
    .mat_create = mat_create,
    .mat_free = mat_free,
    .mat_bytes = mat_bytes,
    .rope_create = host_rope_create,
    .rope_free = host_rope_free,
    .ring_create = cpu_ring_create,
    .ring_free = cpu_ring_free,
    .ring_bytes = cpu_ring_bytes,
    .ring_flip = cpu_ring_flip,
    .ring_copy = cpu_ring_copy,
    .store_create = cpu_store_create,
    .store_free = cpu_store_free,
    .store_bytes = cpu_store_bytes,
    .store_reserve = cpu_store_reserve,
    .store_share = cpu_store_share,
    .row_bytes = row_bytes,
    .ring_get = cpu_ring_get,
    .ring_put = cpu_ring_put,
    .store_get = cpu_store_get,
    .store_put = cpu_store_put,
    .row_decode = row_decode,
    .row_encode = row_encode,
    .read_f64 = read_f64,
    .read_f32 = read_f32,
    .read_i32 = read_i32,
    .write_f64 = write_f64,
    .write_f32 = write_f32,
    .write_i32 = write_i32,
    .set_rows = set_rows,
    .embed = cpu_embed,
    .rms_norm = cpu_rms_norm,
    .act_quant = cpu_act_quant,
    .matmul = cpu_matmul,
    .rope = cpu_rope,
    .hadamard = cpu_hadamard,
    .round = cpu_round,
    .pack = cpu_pack,
    .ring_write = cpu_ring_write,
    .compress = cpu_compress,
    .select = cpu_select,
    .attention = cpu_attention,
    .router = cpu_router,
    .moe = cpu_moe,
    .hc_gates = cpu_hc_gates,
    .hc_reduce = cpu_hc_reduce,
    .hc_expand = cpu_hc_expand,
    .hc_mix = cpu_hc_mix,
    .gather = cpu_gather,
    .scan_create = cpu_scan_create,
    .scan_free = cpu_scan_free,
    .scan_bytes = cpu_scan_bytes,
    .scan_state_bytes = cpu_scan_state_bytes,
    .scan_flip = cpu_scan_flip,
    .scan_replay = cpu_scan_replay,
    .scan_copy = cpu_scan_copy,
    .scan_get = cpu_scan_get,
    .scan_put = cpu_scan_put,
    .element = cpu_element,
    .decay = cpu_decay,
    .memory_gate = cpu_memory_gate,
    .conv = cpu_conv,
    .delta_scan = cpu_delta_scan,
    .store_write = cpu_store_write,
    .pool = cpu_pool,
    .attention_heads = cpu_attention_heads,
};

static const struct cpu_kernels *kernels_for(enum quant_isa isa)
{
#if defined(__x86_64__)
    if (isa == QUANT_AVX512 || isa == QUANT_AMX) return &cpu_kernels_avx512;
    if (isa != QUANT_SCALAR) return &cpu_kernels_avx2;
#elif defined(__aarch64__)
    if (isa != QUANT_SCALAR) return &cpu_kernels_neon;
#endif
    return &cpu_kernels_scalar;
}

int dev_cpu_create(struct pool *pool, enum quant_isa isa, struct dev **out, struct err *e)
{
    *out = NULL;
    if (!quant_isa_usable(isa))
        return err_set(e, ERR_ARG, "this build or processor has no kernel set \"%s\"", quant_isa_name(isa));
    struct cpu_dev *d = mem_try(sizeof *d);
    if (!d) return err_set(e, ERR_MEMORY, "no memory for the cpu device");
    *d = (struct cpu_dev){
        .base.op = &cpu_ops, .pool = pool, .isa = isa, .k = kernels_for(isa), .n_threads = pool_threads(pool)};
    *out = &d->base;
    return 0;
}
