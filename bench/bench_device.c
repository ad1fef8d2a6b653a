/* Time per operation of device cpu in one DeepSeek V4 Flash layer (ratio 4, q2 experts, Q8_0 elsewhere), at a position
 * where 250 compressed rows are visible. Not a test. Weights are random: dense ones larger than the caches, 256
 * experts. Run: build/release/bench/bench_device [T [threads [kernel set [rounds]]]] Columns: milliseconds per step
 * (best round, time of the process's processors), and GB/s of weights where it reads any. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/mem.h"
#include "device/device.h"

enum {
    D = 4096,
    H = 64,
    HEAD = 512,
    R = 64,
    RQ = 1024,
    RO = 1024,
    G = 8,
    E = 256,
    K = 6,
    F = 2048,
    W = 128,
    N = 4,
    INDEX_H = 64,
    INDEX_D = 128,
    POS = 1000
};

static struct dev *dev;
static const struct dev_ops *op;
static struct dev_stream *st;
static int T;

static void *need(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench_device: no memory\n");
    exit(1);
}

static uint32_t draw(void)
{
    static uint32_t s = 1;
    s ^= s << 13;
    s ^= s >> 17;
    return s ^= s << 5;
}

/* Random bytes whose 16-bit scales are small normal numbers. */
static struct tensor_view weights(uint32_t type, int64_t k, int64_t rows, int64_t n2)
{
    const size_t row = quant_row_bytes(type, k), bytes = row * (size_t)rows;
    uint8_t *p = need(mem_try_aligned(bytes * (size_t)n2, 64));
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        const uint32_t v = draw() & 0xa3ffa3ff;
        memcpy(p + i, &v, 4);
    }
    if (type == QT_F32)
        for (size_t i = 0; i < bytes / 4; i++) ((float *)(void *)p)[i] = (float)(int32_t)draw() * 0x1p-33f;
    for (int64_t e = 1; e < n2; e++) memcpy(p + (size_t)e * bytes, p, bytes);
    return (struct tensor_view){
        .type = type, .ne = {k, rows, n2, 1}, .stride = {0, row, bytes, 0}, .data = p, .file = -1};
}

static struct dev_mat *mat(uint32_t type, int64_t k, int64_t rows)
{
    const struct tensor_view v = weights(type, k, rows, 1);
    return need(op->mat_create(dev, &v));
}

static struct dev_buf *floats(int groups, int width)
{
    struct dev_buf *b =
        need(op->buf_create(dev, &(struct buf_desc){.kind = BUF_FLOAT, .rows = T, .groups = groups, .width = width}));
    float *x = need(mem_try((size_t)(T * groups) * (size_t)width * sizeof *x));
    for (int i = 0; i < T * groups * width; i++) x[i] = (float)(int32_t)draw() * 0x1p-31f;
    op->write_f32(st, b, 0, T, x);
    mem_free(x);
    return b;
}

static struct dev_buf *acts(int groups, int width)
{
    return need(op->buf_create(
        dev, &(struct buf_desc){.kind = BUF_ACT, .rows = T, .groups = groups, .width = width, .act = ACT_Q8_0}));
}

/* Fixed rows with their formats' bytes written over and over: the values do not matter. */
static void fill_store(struct dev_store *s, const struct row_format *f, int64_t n)
{
    double x[HEAD];
    uint8_t row[HEAD * 4];
    if (op->store_reserve(s, 0, n + T)) need(NULL);
    for (int64_t i = 0; i < n; i++) {
        for (int v = 0; v < f->width; v++) x[v] = (double)(int32_t)draw() * 0x1p-31;
        op->row_encode(dev, f, x, row);
        op->store_put(s, i, 1, row);
    }
}

static double cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { MOST_LINES = 64 };
static struct line {
    const char *name;
    double best, bytes;
} lines[MOST_LINES];
static int n_lines, at;
static double mark;

static void lap(const char *name, double bytes)
{
    const double t = cpu_time() - mark;
    if (at == n_lines) lines[n_lines++] = (struct line){name, t, bytes};
    if (t < lines[at].best) lines[at].best = t;
    at++;
    mark = cpu_time();
}

static double mat_bytes(uint32_t type, double k, double rows)
{
    return (double)quant_row_bytes(type, (int64_t)k) * rows;
}

#define OP(name, bytes, ...)                                                                                           \
    do {                                                                                                               \
        op->name(st, &(struct name##_args){__VA_ARGS__});                                                              \
        lap(#name, bytes);                                                                                             \
    } while (0)
#define MATMUL(label, type, k, rows, ...)                                                                              \
    do {                                                                                                               \
        op->matmul(st, &(struct matmul_args){__VA_ARGS__, .n = T});                                                    \
        lap("matmul " label, mat_bytes(type, k, rows));                                                                \
    } while (0)

/* The layer and what a step works on. */
static struct dev_mat *hc, *base, *scale, *norm, *q_a, *q_b, *kv, *out_a, *out_b, *c_kv, *c_gate, *ape, *index_q,
    *router, *sinks, *gate, *up, *down, *bias;
static struct dev_buf *x, *mix, *xn, *act, *qr, *qr_act, *q, *kvx, *ckv, *cgate, *iq, *iw, *o, *o_act, *low, *low_act,
    *y, *logits, *weight, *ids, *sel, *raw;
static struct experts *experts;
static struct dev_rope *rope;
static struct dev_ring *ring, *rk, *rs;
static struct dev_store *store, *index_store;
static const struct row_format row = {ROWFMT_FP8, HEAD, HEAD - R, 64}, index_row = {ROWFMT_FP4, INDEX_D, 0, 32};
static const struct row_format wide = {ROWFMT_F32, 2 * HEAD, 0, 0};

static void weights_make(void)
{
    hc = mat(QT_F16, N * D, 24);
    base = mat(QT_F32, 24, 1);
    scale = mat(QT_F32, 3, 1);
    norm = mat(QT_F32, D, 1);
    q_a = mat(QT_Q8_0, D, RQ);
    q_b = mat(QT_Q8_0, RQ, H * HEAD);
    kv = mat(QT_Q8_0, D, HEAD);
    out_a = mat(QT_Q8_0, H * HEAD / G, G * RO);
    out_b = mat(QT_Q8_0, G * RO, D);
    c_kv = mat(QT_F16, D, 2 * HEAD);
    c_gate = mat(QT_F16, D, 2 * HEAD);
    ape = mat(QT_F16, 2 * HEAD, 4);
    index_q = mat(QT_F16, RQ, INDEX_H * INDEX_D);
    router = mat(QT_F16, D, E);
    sinks = mat(QT_F32, H, 1);
    gate = mat(QT_Q8_0, D, F);
    up = mat(QT_Q8_0, D, F);
    down = mat(QT_Q8_0, F, D);
    bias = mat(QT_F32, E, 1);
    const struct expert_layer layer = {weights(QT_IQ2_XXS, D, F, E), weights(QT_IQ2_XXS, D, F, E),
                                       weights(QT_Q2_K, F, D, E)};
    if (experts_open_resident(&layer, 1, &experts, NULL)) need(NULL);
    double freq[R / 2];
    for (int i = 0; i < R / 2; i++) freq[i] = pow(10000, -2.0 * i / R);
    rope = need(op->rope_create(dev, &(struct rope_desc){.freq = freq, .pairs = R / 2}));
}

static void buffers_make(void)
{
    x = floats(N, D);
    mix = floats(1, 24);
    xn = floats(1, D);
    act = acts(1, D);
    qr = floats(1, RQ);
    qr_act = acts(1, RQ);
    q = floats(H, HEAD);
    kvx = floats(1, HEAD);
    ckv = floats(1, 2 * HEAD);
    cgate = floats(1, 2 * HEAD);
    iq = floats(INDEX_H, INDEX_D);
    iw = floats(1, INDEX_H);
    o = floats(H, HEAD);
    o_act = acts(G, H * HEAD / G);
    low = floats(1, G * RO);
    low_act = acts(1, G * RO);
    y = floats(1, D);
    logits = floats(1, E);
    weight = floats(1, K);
    ids = need(op->buf_create(dev, &(struct buf_desc){.kind = BUF_I32, .rows = T, .groups = 1, .width = K}));
    sel = need(op->buf_create(dev, &(struct buf_desc){.kind = BUF_I32, .rows = T, .groups = 1, .width = 129}));
    raw = need(
        op->buf_create(dev, &(struct buf_desc){.kind = BUF_PACKED, .rows = T, .groups = 1, .width = HEAD, .fmt = row}));
}

static void state_make(void)
{
    ring = need(op->ring_create(dev, &(struct ring_desc){row, W, 16}));
    rk = need(op->ring_create(dev, &(struct ring_desc){wide, 8, 16}));
    rs = need(op->ring_create(dev, &(struct ring_desc){wide, 8, 16}));
    store = need(op->store_create(dev, &row));
    index_store = need(op->store_create(dev, &index_row));
    fill_store(store, &row, POS / 4);
    fill_store(index_store, &index_row, POS / 4);
}

/* One segment at POS; stays valid. */
static void rows_make(void)
{
    static struct segment seg;
    static struct rows rows;
    int32_t *t = need(mem_try((size_t)T * 7 * sizeof *t));
    seg = (struct segment){.n = T, .pos0 = POS, .bulk = T > 16};
    rows = (struct rows){.n = T,
                         .token = t + 6 * T,
                         .segment = t + 6 * T,
                         .pos = t,
                         .rope_pos = t + 3 * T,
                         .raw_first = t + T,
                         .raw_last = t + 2 * T,
                         .n_segments = 1,
                         .segments = &seg};
    for (int i = 0; i < T; i++) {
        t[i] = t[2 * T + i] = POS + i;
        t[T + i] = POS + i - W + 1;
        for (int a = 0; a < 3; a++) t[3 * T + 3 * i + a] = POS + i;
    }
    op->set_rows(st, &rows);
}

static void step_hc(void)
{
    OP(hc_mix, mat_bytes(QT_F16, N * D, 24), .y = xn, .x = x, .mix = mix, .out = xn, .fn = hc, .base = base,
       .scale = scale, .weight = norm, .streams = N, .iterations = 20, .eps = 1e-6, .hc_eps = 1e-6, .n = T);
}

static void step_attention(void)
{
    OP(act_quant, 0, .x = xn, .out = act, .n = T);
    MATMUL("q_a", QT_Q8_0, D, RQ, .w = q_a, .x = act, .out = qr);
    OP(act_quant, 0, .x = qr, .out = qr_act, .n = T);
    MATMUL("q_b", QT_Q8_0, RQ, H * HEAD, .w = q_b, .x = qr_act, .out = q);
    OP(rms_norm, 0, .x = q, .out = q, .eps = 1e-6, .groups = H, .width = HEAD, .n = T);
    OP(rope, 0, .x = q, .rope = rope, .groups = H, .width = HEAD, .first = HEAD - R, .n = T);
    MATMUL("kv", QT_Q8_0, D, HEAD, .w = kv, .x = act, .out = kvx);
    OP(rope, 0, .x = kvx, .rope = rope, .groups = 1, .width = HEAD, .first = HEAD - R, .n = T);
    OP(pack, 0, .x = kvx, .out = raw, .n = T);
    MATMUL("compressor", QT_F16, D, 2 * HEAD, .w = c_kv, .x = xn, .out = ckv);
    MATMUL("compressor", QT_F16, D, 2 * HEAD, .w = c_gate, .x = xn, .out = cgate);
    OP(compress, 0, .kv = ckv, .gate = cgate, .ape = ape, .norm = norm, .eps = 1e-6, .ratio = 4, .w = HEAD,
       .overlap = true, .rope = rope, .ring_kv = &rk, .ring_score = &rs, .store = &store);
    MATMUL("index_q", QT_F16, RQ, INDEX_H * INDEX_D, .w = index_q, .x = qr, .out = iq);
    OP(hadamard, 0, .x = iq, .groups = INDEX_H, .width = INDEX_D, .n = T);
    OP(round, 0, .x = iq, .fmt = index_row, .groups = INDEX_H, .n = T);
    OP(select, 0, .q = iq, .weight = iw, .scale = 0.01, .store = &index_store, .ratio = 4, .top_k = 128, .out = sel,
       .n = T);
    OP(attention, 0, .q = q, .raw = raw, .ring = &ring, .store = &store, .ratio = 4, .sinks = sinks, .scale = 0.044,
       .out = o, .n = T);
    OP(ring_write, 0, .x = raw, .ring = &ring);
    OP(rope, 0, .x = o, .rope = rope, .groups = H, .width = HEAD, .first = HEAD - R, .inverse = true, .n = T);
    OP(act_quant, 0, .x = o, .out = o_act, .n = T);
    MATMUL("out_a", QT_Q8_0, H * HEAD / G, G * RO, .w = out_a, .x = o_act, .out = low);
    OP(act_quant, 0, .x = low, .out = low_act, .n = T);
    MATMUL("out_b", QT_Q8_0, G * RO, D, .w = out_b, .x = low_act, .out = y);
}

static void step_moe(void)
{
    const double dense = 3 * mat_bytes(QT_Q8_0, D, F), used = T * K < E ? T * K : E;
    const double expert = 2 * mat_bytes(QT_IQ2_XXS, D, F) + mat_bytes(QT_Q2_K, F, D);
    MATMUL("router", QT_F16, D, E, .w = router, .x = xn, .out = logits);
    OP(router, 0, .logits = logits, .experts = E, .bias = bias, .k = K, .scale = 1.5, .floor = 6e-5, .normalise = true,
       .ids = ids, .weight = weight, .n = T);
    for (int i = 0; i < T; i++) { /* spread over the experts, as real routing is */
        int32_t id[K];
        for (int k = 0; k < K; k++) id[k] = (int32_t)(draw() % (E / K)) + k * (E / K);
        op->write_i32(st, ids, i, 1, id);
    }
    mark = cpu_time();
    OP(moe, dense + used * expert, .x = xn, .ids = ids, .weight = weight, .k = K, .experts = experts,
       .shared_gate = gate, .shared_up = up, .shared_down = down, .clamp = 10, .shared_clamp = 10, .out = y, .n = T);
}

/* Best time on the clock of some rounds; negative: an op failed. */
static double rounds_run(int rounds)
{
    double best = 1e9;
    for (int r = 0; r < rounds; r++) {
        const double start = clock_s();
        at = 0;
        mark = cpu_time();
        step_hc();
        step_attention();
        step_hc();
        step_moe();
        const double took = clock_s() - start;
        best = took < best ? took : best;
        struct err e = {0};
        if (!dev_error(st, &e)) continue;
        fprintf(stderr, "bench_device: %s\n", e.msg);
        return -1;
    }
    return best;
}

static void report(double wall, int threads)
{
    double sum = 0, bytes = 0;
    for (int i = 0; i < n_lines; i++) {
        printf("%-20s %9.3f ms", lines[i].name, lines[i].best * 1e3);
        if (lines[i].bytes > 0) printf(" %7.2f GB/s", lines[i].bytes / lines[i].best * 1e-9);
        printf("\n");
        sum += lines[i].best;
        bytes += lines[i].bytes;
    }
    printf(
        "layer, T = %d, %d threads: %.3f ms of processor time, %.3f ms on the clock; %.1f MB of weights, %.2f GB/s\n",
        T, threads, sum * 1e3, wall * 1e3, bytes * 1e-6, bytes / wall * 1e-9);
}

int main(int argc, char **argv)
{
    T = argc > 1 ? atoi(argv[1]) : 1;
    const int threads = argc > 2 ? atoi(argv[2]) : 1, rounds = argc > 4 ? atoi(argv[4]) : 5;
    const enum quant_isa isa = argc > 3 && !strcmp(argv[3], "scalar") ? QUANT_SCALAR : quant_isa_best();
    struct err e = {0};
    struct pool *pool;
    if (T < 1 || pool_create(threads, &pool, &e) || dev_cpu_create(pool, isa, &dev, &e)) {
        fprintf(stderr, "bench_device: %s\n", e.code ? e.msg : "T must be at least 1");
        return 1;
    }
    op = dev->op;
    st = need(op->stream_create(dev));
    weights_make();
    buffers_make();
    state_make();
    rows_make();
    const double wall = rounds_run(rounds);
    if (wall < 0) return 1;
    report(wall, threads);
    return 0;
}
