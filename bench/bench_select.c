/* Time of the selection of blocks (op select of device cpu) by the length of the context: bench_select [HEADS [WIDTH
 * [TOP_K [RATIO [ROWS [THREADS]]]]]], by default as in Qwen3.8 (4 heads of 128, 512 of the blocks of 4). Not a test.
 * Columns: tokens, microseconds of processor time a row (least of the rounds). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/mem.h"
#include "device/device.h"

enum { CTX = 262144, ROUNDS = 40 };

static void *need(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench_select: no memory\n");
    exit(1);
}

static double draw(void)
{
    static uint32_t s = 1;
    s ^= s << 13, s ^= s >> 17, s ^= s << 5;
    return s / 4294967296.0 - 0.5;
}

static double processor_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static struct dev_store *index_rows(struct dev *d, int width, int64_t n)
{
    const struct row_format f = {.kind = ROWFMT_F16, .width = width};
    struct dev_store *store = need(d->op->store_create(d, &f));
    double *x = need(malloc((size_t)width * sizeof *x));
    void *row = need(malloc(d->op->row_bytes(d, &f)));
    if (d->op->store_reserve(store, 0, n)) need(NULL);
    for (int64_t r = 0; r < n; r++) {
        for (int i = 0; i < width; i++) x[i] = draw();
        d->op->row_encode(d, &f, x, row);
        d->op->store_put(store, r, 1, row);
    }
    free(row);
    free(x);
    return store;
}

/* Rows of one session that end at pos. */
static void rows_at(struct rows *r, struct segment *g, int32_t *pos, int n, int last)
{
    for (int i = 0; i < n; i++) pos[i] = last - n + 1 + i;
    *g = (struct segment){.n = n, .pos0 = pos[0], .bulk = n > 8};
    r->n = n;
}

int main(int argc, char **argv)
{
    int o[6] = {4, 128, 512, 4, 1, 1};
    struct err e = {0};
    struct dev *d;
    for (int i = 1; i < argc && i <= 6; i++) o[i - 1] = atoi(argv[i]);
    const int heads = o[0], width = o[1], k = o[2], ratio = o[3], n = o[4];
    struct pool *pool;
    if (pool_create(o[5], &pool, &e) || dev_cpu_create(pool, quant_isa_best(), &d, &e))
        return fprintf(stderr, "%s\n", e.msg), 1;
    struct dev_stream *st = need(d->op->stream_create(d));
    struct dev_store *store = index_rows(d, width, CTX / ratio);
    struct dev_buf *q = need(d->op->buf_create(d, &(struct buf_desc){BUF_FLOAT, n, heads, width, 0, {0}}));
    struct dev_buf *out = need(d->op->buf_create(d, &(struct buf_desc){BUF_I32, n, 1, 1 + k, 0, {0}}));
    double *x = need(malloc((size_t)(n * heads * width) * sizeof *x));
    int32_t *pos = need(malloc((size_t)n * sizeof *pos)), *segment = need(calloc((size_t)n, sizeof *segment));
    struct segment g;
    struct rows rows = {.segment = segment, .pos = pos, .n_segments = 1, .segments = &g};
    for (int i = 0; i < n * heads * width; i++) x[i] = draw();
    d->op->write_f64(st, q, 0, n, x);
    for (int ctx = 1024; ctx <= CTX; ctx *= 2) {
        double least = 1e30;
        rows_at(&rows, &g, pos, n, ctx - 1);
        d->op->set_rows(st, &rows);
        for (int i = 0; i < ROUNDS; i++) {
            const double begun = processor_us();
            d->op->select(st, &(struct select_args){
                                  .q = q, .scale = 1, .store = &store, .ratio = ratio, .top_k = k, .out = out, .n = n});
            const double us = processor_us() - begun;
            if (us < least) least = us;
        }
        if (dev_error(st, &e)) return fprintf(stderr, "%s\n", e.msg), 1;
        printf("%7d %9.2f\n", ctx, least / n);
    }
    return 0;
}
