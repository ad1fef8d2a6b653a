/* What the files of the cpu device share: its objects, scratch memory and the parallel loop.
 * A stream is used by one thread at a time; its scratch belongs to the op that runs and is planned before the op's
 * tasks start, so tasks never allocate. */
#ifndef CPU_INTERNAL_H
#define CPU_INTERNAL_H
#include <stdatomic.h>
#include "base/mem.h"
#include "device/cpu/cpu_kernels.h"
#include "device/device_internal.h"

struct cpu_dev {
    struct dev base;
    struct pool *pool;
    enum quant_isa isa;
    const struct cpu_kernels *k;
    int n_threads;
    struct dev_buf *bufs; /* all that have data of their own */
};

struct scratch {
    void *p;
    size_t bytes;
};

struct cpu_stream {
    struct dev_stream base;
    struct scratch shared;  /* of the running op, written by its tasks or its plan */
    struct scratch *thread; /* [n_threads] */
};

/* A buffer of rows, stride bytes apart and on 64-byte borders. */
struct dev_buf {
    struct buf_desc d;
    size_t stride;
    uint8_t *data;
    bool view;                    /* data is another buffer's */
    struct dev_buf *next, **link; /* in cpu_dev.bufs; link: what points to this one */
};

struct dev_mat {
    struct tensor_view v;
    const struct quant_type *type;
    const float *f32; /* the values if they are few or floats in place; else NULL */
    float *own;       /* widened copy behind f32, or NULL */
};

struct dev_ring {
    struct ring_desc d;
    size_t row_bytes;
    int bank;         /* the current one */
    uint8_t *data[2]; /* [capacity] rows each */
};

struct dev_scan {
    struct scan_desc d;
    int bank;       /* the current one */
    float *data[2]; /* [value_heads][width][width] each */
    float *kept;    /* [slack] rows, as cpu_scan.c lays them out */
};

struct store_segment {
    atomic_int owners; /* stores that hold it; more than one: read only */
    uint8_t rows[];
};

struct dev_store {
    struct row_format fmt;
    size_t row_bytes;
    int64_t n_segments;
    struct store_segment **segment; /* [n_segments], NULL where nothing was reserved */
};

static inline const struct cpu_dev *cpu_of(const struct dev_stream *s)
{
    return (const struct cpu_dev *)s->dev;
}

static inline void *buf_row(const struct dev_buf *b, int64_t i)
{
    return b->data + (size_t)i * b->stride;
}

static inline float *buf_floats(const struct dev_buf *b, int64_t i)
{
    return buf_row(b, i);
}

static inline int32_t *buf_ints(const struct dev_buf *b, int64_t i)
{
    return buf_row(b, i);
}

/* Values as they are in memory; only for weights with f32 (cpu_need_f32). */
static inline const float *mat_floats(const struct dev_mat *m, int64_t row)
{
    return m->f32 + row * m->v.ne[0];
}

static inline uint8_t *ring_row(const struct dev_ring *r, int bank, int32_t pos)
{
    return r->data[bank] + (size_t)ring_slot(&r->d, pos) * r->row_bytes;
}

static inline uint8_t *store_row(const struct dev_store *s, int64_t row)
{
    return s->segment[row / STORE_SEGMENT]->rows + (size_t)(row % STORE_SEGMENT) * s->row_bytes;
}

/* Rows [from, to) were reserved (to > from). */
static inline bool store_has(const struct dev_store *s, int64_t from, int64_t to)
{
    if (to > s->n_segments * STORE_SEGMENT) return false;
    for (int64_t i = from / STORE_SEGMENT; i < store_segments(to); i++)
        if (!s->segment[i]) return false;
    return true;
}

static inline size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Bytes of one row of a buffer, before padding, and of one stored row. */
size_t cpu_row_bytes(const struct row_format *f);

/* False, with the stream's error set, if the op cannot run: an earlier error, or weights that are not plain floats. */
bool cpu_ready(const struct dev_stream *s);
bool cpu_need_f32(struct dev_stream *s, const struct dev_mat *m, const char *what); /* NULL m is fine */

/* Makes sure of scratch memory: for each thread, and the shared one (NULL if there is none: the error is set).
 * Contents are undefined, addresses on 64-byte borders. */
bool cpu_thread_scratch(struct dev_stream *s, size_t bytes);
void *cpu_shared_scratch(struct dev_stream *s, size_t bytes);
static inline void *cpu_scratch_of(const struct dev_stream *s, int thread)
{
    return ((const struct cpu_stream *)s)->thread[thread].p;
}

/* Pieces of a block of scratch: base NULL only counts. */
struct carve {
    uint8_t *base;
    size_t used;
};
static inline void *carve_take(struct carve *c, size_t bytes)
{
    void *p = c->base ? c->base + c->used : NULL;
    c->used += round_up(bytes, 64);
    return p;
}

/* n rows of width floats as rows of padded ones: as they lie if nothing has to be added, else copied to `to`. */
const float *cpu_pad_rows(const float *x, int n, int width, int padded, float *to);

/* Calls fn on ranges that cover [0, n); cost: of one item, about the floats it touches. Little work is done in place.
 */
typedef void cpu_range_fn(void *arg, int64_t from, int64_t to, int thread);
void cpu_ranges(struct dev_stream *s, cpu_range_fn *fn, void *arg, int64_t n, int64_t cost);
void cpu_tasks(struct dev_stream *s, void (*fn)(void *arg, int task, int thread), void *arg, int64_t n);

/* Group g of a row of act_quant; x: the row. */
void cpu_act_quant_group(const float *x, const struct dev_buf *out, int64_t row, int64_t g);

/* Cosines and sines of one position in the form of the kernels' rotations: [4 * pairs]; and the rotation. */
void cpu_rope_turn(const struct dev_rope *rope, const int32_t pos[3], bool inverse, float *turn);
void cpu_rotate(const struct cpu_kernels *k, const struct dev_rope *rope, const float *turn, float *x);

/* Most scratch that ops ask for, in all and of each thread: raised beside each op's plan, for the memory plan. */
struct cpu_work {
    size_t shared, thread;
};
static inline void cpu_work_raise(struct cpu_work *w, size_t shared, size_t thread)
{
    if (shared > w->shared) w->shared = shared;
    if (thread > w->thread) w->thread = thread;
}
/* Compressed rows of a session of the largest context. */
static inline int64_t work_visible(const struct work_desc *a)
{
    return a->ratio ? a->ctx / a->ratio : 0;
}
void cpu_matmul_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w);
void cpu_attention_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w);
void cpu_select_work(const struct work_desc *a, struct cpu_work *w);
void cpu_compress_work(const struct work_desc *a, struct cpu_work *w);
void cpu_heads_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w);
void cpu_scan_work(const struct work_desc *a, struct cpu_work *w);
void cpu_hc_work(const struct work_desc *a, struct cpu_work *w);
void cpu_moe_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w);

/* ops, by file */
void cpu_embed(struct dev_stream *s, const struct embed_args *a);
void cpu_rms_norm(struct dev_stream *s, const struct rms_norm_args *a);
void cpu_act_quant(struct dev_stream *s, const struct act_quant_args *a);
void cpu_rope(struct dev_stream *s, const struct rope_args *a);
void cpu_hadamard(struct dev_stream *s, const struct hadamard_args *a);
void cpu_round(struct dev_stream *s, const struct round_args *a);
void cpu_pack(struct dev_stream *s, const struct pack_args *a);
void cpu_gather(struct dev_stream *s, const struct gather_args *a);
void cpu_matmul(struct dev_stream *s, const struct matmul_args *a);
void cpu_ring_write(struct dev_stream *s, const struct ring_write_args *a);
void cpu_compress(struct dev_stream *s, const struct compress_args *a);
void cpu_select(struct dev_stream *s, const struct select_args *a);
void cpu_attention(struct dev_stream *s, const struct attention_args *a);
void cpu_router(struct dev_stream *s, const struct router_args *a);
void cpu_moe(struct dev_stream *s, const struct moe_args *a);
void cpu_hc_gates(struct dev_stream *s, const struct hc_gates_args *a);
void cpu_hc_reduce(struct dev_stream *s, const struct hc_reduce_args *a);
void cpu_hc_expand(struct dev_stream *s, const struct hc_expand_args *a);
void cpu_hc_mix(struct dev_stream *s, const struct hc_mix_args *a);
void cpu_element(struct dev_stream *s, const struct element_args *a);
void cpu_decay(struct dev_stream *s, const struct decay_args *a);
void cpu_memory_gate(struct dev_stream *s, const struct memory_gate_args *a);
void cpu_conv(struct dev_stream *s, const struct conv_args *a);
void cpu_delta_scan(struct dev_stream *s, const struct delta_scan_args *a);
void cpu_store_write(struct dev_stream *s, const struct store_write_args *a);
void cpu_pool(struct dev_stream *s, const struct pool_args *a);
void cpu_attention_heads(struct dev_stream *s, const struct attention_heads_args *a);

/* state of a delta rule: cpu_scan.c */
struct dev_scan *cpu_scan_create(struct dev *d, const struct scan_desc *desc);
void cpu_scan_free(struct dev_scan *c);
size_t cpu_scan_bytes(const struct dev *d, const struct scan_desc *desc);
size_t cpu_scan_state_bytes(const struct dev *d, const struct scan_desc *desc);
void cpu_scan_flip(struct dev_scan *c);
void cpu_scan_replay(struct dev_stream *s, struct dev_scan *c, int from, int to);
int cpu_scan_copy(struct dev_scan *dst, const struct dev_scan *src);
void cpu_scan_get(const struct dev_scan *c, void *dst);
void cpu_scan_put(struct dev_scan *c, const void *src);

/* In double; the same code in every kernel set. */
double cpu_softplus(double x);

/* session state: cpu_state.c */
struct dev_ring *cpu_ring_create(struct dev *d, const struct ring_desc *desc);
void cpu_ring_free(struct dev_ring *r);
size_t cpu_ring_bytes(const struct dev *d, const struct ring_desc *desc);
void cpu_ring_flip(struct dev_ring *r);
int cpu_ring_copy(struct dev_ring *dst, const struct dev_ring *src);
void cpu_ring_get(const struct dev_ring *r, int32_t pos, int n, void *dst);
void cpu_ring_put(struct dev_ring *r, int32_t pos, int n, const void *src);
struct dev_store *cpu_store_create(struct dev *d, const struct row_format *fmt);
void cpu_store_free(struct dev_store *s);
size_t cpu_store_bytes(const struct dev *d, const struct row_format *fmt, int64_t n_rows);
int cpu_store_reserve(struct dev_store *s, int64_t from, int64_t to);
int cpu_store_share(struct dev_store *dst, const struct dev_store *src, int64_t n);
void cpu_store_get(const struct dev_store *s, int64_t row, int64_t n, void *dst);
void cpu_store_put(struct dev_store *s, int64_t row, int64_t n, const void *src);
/* Writes rows of the step (row i of the step: base + i*stride) into the ring as ring_plan_segment says. */
bool cpu_ring_write_segment(struct dev_stream *s, struct dev_ring *r, const struct segment *g, const uint8_t *base,
                            size_t stride);

#endif
