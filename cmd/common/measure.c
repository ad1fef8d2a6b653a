/* Loops that read and multiply, and their clock. */
#include "measure.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

enum { LEAST_PASSES = 3 };

/* Seconds of a pass. */
static double time_pass(struct pool *p, void (*task)(void *arg, int task, int thread), void *arg, int n_tasks)
{
    const double start = clock_s();
    pool_run(p, task, arg, n_tasks);
    return clock_s() - start;
}

/* Seconds of the fastest pass. */
static double best_pass(struct pool *p, void (*task)(void *arg, int task, int thread), void *arg, int n_tasks,
                        double seconds)
{
    double best = 1e9;
    const double start = clock_s();
    for (int pass = 0; pass < LEAST_PASSES || clock_s() - start < seconds; pass++) {
        const double t = time_pass(p, task, arg, n_tasks);
        if (t < best) best = t;
    }
    return best;
}

/* ---------------------------------------------------------------- memory */

enum { PIECE_WORDS = 1 << 16 }; /* a task reads 512 KiB, as those of a decode step */

struct memory_work {
    enum reading_way way;
    uint64_t *words; /* to write, or NULL */
    const uint64_t *read;
    uint64_t *sum; /* [tasks] so that reading cannot be left out */
};

static void write_piece(void *arg, int task, int thread)
{
    const struct memory_work *w = arg;
    uint64_t *p = w->words + (size_t)task * PIECE_WORDS;
    for (size_t i = 0; i < PIECE_WORDS; i++) p[i] = i;
}

static void read_piece(void *arg, int task, int thread)
{
    const struct memory_work *w = arg;
    w->sum[task] = reading_sum(w->way, w->read + (size_t)task * PIECE_WORDS, PIECE_WORDS * sizeof(uint64_t));
}

int measure_reading_once(struct pool *p, enum reading_way way, const void *bytes, uint64_t n, double *bytes_per_s,
                         struct err *e)
{
    const uint64_t piece = PIECE_WORDS * sizeof(uint64_t);
    const int tasks = (int)(n / piece);
    struct memory_work w = {.way = way, .read = bytes, .sum = mem_try((size_t)(tasks + 1) * sizeof *w.sum)};
    if (!w.sum) return err_set(e, ERR_MEMORY, "too little memory is free");
    if (!tasks) {
        mem_free(w.sum);
        return err_set(e, ERR_LIMIT, "%llu bytes are too few to measure with", (unsigned long long)n);
    }
    *bytes_per_s = (double)((uint64_t)tasks * piece) / time_pass(p, read_piece, &w, tasks);
    mem_free(w.sum);
    return 0;
}

int measure_reading(struct pool *p, const void *bytes, uint64_t n, double *bytes_per_s, struct err *e)
{
    const double start = clock_s();
    int rc = 0;
    *bytes_per_s = 0;
    for (int pass = 0; !rc && (pass < LEAST_PASSES * READING_WAYS || clock_s() - start < MEASURE_S); pass++) {
        double v = 0;
        rc = measure_reading_once(p, (enum reading_way)(pass % READING_WAYS), bytes, n, &v, e);
        if (v > *bytes_per_s) *bytes_per_s = v;
    }
    return rc;
}

uint64_t measure_probe_bytes(const struct sysinfo *s)
{
    const uint64_t left = s->group_left < s->memory_free ? s->group_left : s->memory_free;
    const uint64_t most = UINT64_C(512) << 20;
    return !left || left / 4 > most ? most : left / 4;
}

int measure_memory(struct pool *p, uint64_t bytes, double *bytes_per_s, struct err *e)
{
    const uint64_t piece = PIECE_WORDS * sizeof(uint64_t);
    const int n = (int)(bytes / piece);
    struct memory_work w = {.words = mem_try_aligned((size_t)n * piece, 4096)};
    if (!n || !w.words) return err_set(e, ERR_MEMORY, "too little memory is free");
    pool_run(p, write_piece, &w, n);
    const int rc = measure_reading(p, w.words, (uint64_t)n * piece, bytes_per_s, e);
    mem_free(w.words);
    return rc;
}

/* ---------------------------------------------------------------- products */

enum { K = 4096, ROWS = 64, TILE = 32, TASKS_PER_THREAD = 8 };

struct product_work {
    quant_tile_fn *tile;
    uint8_t *w; /* [ROWS] rows, which all threads read */
    size_t w_stride;
    uint8_t *x; /* [TILE] activation rows */
    size_t x_stride;
    float (*out)[TILE * TILE]; /* [threads] */
};

static void multiply(void *arg, int task, int thread)
{
    const struct product_work *b = arg;
    for (int r = 0; r < ROWS; r += TILE)
        b->tile(K, b->w + (size_t)r * b->w_stride, b->w_stride, TILE, b->x, b->x_stride, TILE, b->out[thread], TILE);
}

/* Any values do: integer products take the same time for all. */
static void fill_products(const struct product_work *b)
{
    float v[K];
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < K; i++) v[i] = (float)((i * 37 + r * 11) % 255 - 127) / 127;
        quant_encode(QT_Q8_0, v, K, NULL, b->w + (size_t)r * b->w_stride);
        if (r < TILE) act_quantise(ACT_Q8_0, v, K, b->x + (size_t)r * b->x_stride);
    }
}

int measure_products(struct pool *p, enum quant_isa isa, double *per_s, struct err *e)
{
    struct product_work b = {.tile = quant_tile(isa, QT_Q8_0),
                             .w_stride = quant_row_bytes(QT_Q8_0, K),
                             .x_stride = act_row_bytes(ACT_Q8_0, K)};
    b.w = mem_try_aligned(ROWS * b.w_stride, 64);
    b.x = mem_try_aligned(TILE * b.x_stride, 64);
    b.out = mem_try_aligned((size_t)pool_threads(p) * sizeof *b.out, 64);
    int rc = 0;
    if (b.w && b.x && b.out) {
        const int n = TASKS_PER_THREAD * pool_threads(p);
        fill_products(&b);
        *per_s = (double)n * ROWS * TILE * K / best_pass(p, multiply, &b, n, MEASURE_S);
    } else {
        rc = err_set(e, ERR_MEMORY, "too little memory is free");
    }
    mem_free(b.w);
    mem_free(b.x);
    mem_free(b.out);
    return rc;
}

/* ---------------------------------------------------------------- peaks */

enum { PEAK_ROUNDS = 1 << 16 };

struct peak_work {
    peak_fn *loop;
    struct peak_sum {
        _Alignas(64) volatile float sink;
        int64_t products;
    } * thread; /* [threads] */
};

static void spin(void *arg, int task, int thread)
{
    const struct peak_work *w = arg;
    w->thread[thread].products = w->loop(PEAK_ROUNDS, &w->thread[thread].sink);
}

int measure_peak(struct pool *p, enum quant_isa isa, enum peak_kind kind, double seconds, double *per_s, struct err *e)
{
    const int threads = pool_threads(p), n = 4 * threads;
    struct peak_work w = {.loop = peak_loop(isa, kind),
                          .thread = mem_try_aligned((size_t)threads * sizeof *w.thread, 64)};
    if (!w.thread) return err_set(e, ERR_MEMORY, "too little memory is free");
    for (int i = 0; i < threads; i++) w.thread[i].sink = 0, w.thread[i].products = 0;
    const double t = best_pass(p, spin, &w, n, seconds);
    int64_t each = 0;
    for (int i = 0; i < threads; i++)
        if (w.thread[i].products) each = w.thread[i].products;
    *per_s = (double)(n * each) / t;
    mem_free(w.thread);
    return 0;
}

/* ---------------------------------------------------------------- disk */

enum { BLOCK = 4 << 20, PAGE = 4096, MOST_BLOCKS = 64 };
static const double disk_s = 2;

struct disk_work {
    int fd;
    uint64_t step; /* from block to block */
    double end;    /* no block is begun later */
    uint8_t **buffer;
    uint64_t *read; /* [threads] bytes */
    int *error;     /* [threads] errno, or 0 */
};

static void read_block(void *arg, int task, int thread)
{
    struct disk_work *d = arg;
    if (d->error[thread] || clock_s() > d->end) return;
    const ssize_t n = pread(d->fd, d->buffer[thread], BLOCK, (off_t)(d->step * (uint64_t)task));
    if (n < 0)
        d->error[thread] = errno;
    else
        d->read[thread] += (uint64_t)n;
}

static int read_blocks(struct pool *p, struct disk_work *d, uint64_t size, struct disk_speed *out, struct err *e)
{
    const uint64_t blocks = (size + BLOCK - 1) / BLOCK;
    const int n = blocks < MOST_BLOCKS ? (int)blocks : MOST_BLOCKS;
    d->step = blocks / (uint64_t)n * BLOCK;
    const double start = clock_s();
    d->end = start + disk_s;
    pool_run(p, read_block, d, n);
    const double t = clock_s() - start;
    out->bytes = 0;
    for (int i = 0; i < pool_threads(p); i++) {
        if (d->error[i]) return err_set(e, ERR_IO, "cannot read: %s", strerror(d->error[i]));
        out->bytes += d->read[i];
    }
    out->bytes_per_s = (double)out->bytes / t;
    return 0;
}

int measure_disk(struct pool *p, const char *path, struct disk_speed *out, struct err *e)
{
    const int threads = pool_threads(p);
    struct stat st;
    struct disk_work d = {.fd = file_open_uncached(path, &out->cached)};
    if (d.fd < 0 || fstat(d.fd, &st) || st.st_size <= 0) {
        const int rc = err_set(e, ERR_IO, "cannot read: %s", d.fd < 0 ? strerror(errno) : "no size");
        if (d.fd >= 0) close(d.fd);
        return rc;
    }
    d.buffer = mem_alloc((size_t)threads * sizeof *d.buffer);
    d.read = mem_alloc((size_t)threads * sizeof *d.read);
    d.error = mem_alloc((size_t)threads * sizeof *d.error);
    int rc = 0;
    for (int i = 0; i < threads; i++)
        if (!(d.buffer[i] = mem_try_aligned(BLOCK, PAGE))) rc = err_set(e, ERR_MEMORY, "too little memory is free");
    if (!rc) rc = read_blocks(p, &d, (uint64_t)st.st_size, out, e);
    for (int i = 0; i < threads; i++) mem_free(d.buffer[i]);
    mem_free(d.buffer);
    mem_free(d.read);
    mem_free(d.error);
    close(d.fd);
    return rc;
}
