/* Speed of the tile kernels and activation quantisers on one core, per type and kernel set. Not a test.
 *
 * Build, in the root of the tree after "make lib":
 *
 *   cc -std=c11 -D_GNU_SOURCE -O2 -Isrc bench/bench_quant.c build/release/libds4.a -lm -pthread -o build/bench_quant
 *
 * Run: build/bench_quant [type ...]
 *
 * "GB/s" reads weights that no cache holds, 512 KiB a time as a task does, with one activation row; the other columns
 * work on a small matrix (thousand million multiply-adds per second for 1, 4, 8, 32 activation rows by tile kernels;
 * with slabs and panels for 4, 12, 24, 48 and 1,024, unpacking included, packing not). Sets take turns and the best of
 * several rounds counts, so that a busy machine hurts them alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "device/cpu/cpu_slab.h"

enum { K = 4096, TILE_ROWS = 32, SMALL_ROWS = 64, MAX_COLS = 32, ROUNDS = 5 };
static const size_t STREAM_BYTES = 96u << 20, TASK_BYTES = 512u << 10;
static const int col_counts[] = {1, 4, 8, 32};
static const int slab_counts[] = {4, 12, 24, 48, 1024};
enum { N_COUNTS = 4, N_SLAB_COUNTS = 5, MOST_SLAB = 1024 };

/* Time that this thread has computed: other programs on the machine cost it less than by the clock on the wall. */
static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *aligned(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) {
        fprintf(stderr, "bench_quant: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

static uint32_t draw(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    return *s ^= *s << 5;
}

/* Random bytes, but no scale is huge or subnormal: bit 14 of every two bytes is cleared, exponents of MXFP4 are near 1.
 */
static void fill_weights(uint32_t type, uint8_t *w, size_t bytes)
{
    uint32_t s = 1;
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        const uint32_t v = draw(&s) & 0xbfffbfff;
        memcpy(w + i, &v, 4);
    }
    for (size_t i = 0; type == QT_MXFP4 && i < bytes; i += 17) w[i] = (uint8_t)(120 + w[i] % 8);
}

struct work {
    uint32_t type;
    size_t row_bytes, x_stride;
    uint8_t *w;
    int n_rows; /* that w holds */
    char *x;
    float out[MAX_COLS * TILE_ROWS];
};

/* Seconds per multiplication of rows 0..n_rows-1, `step` at a time, with n_cols activation rows. */
static double time_tiles(struct work *b, enum quant_isa isa, int n_rows, int step, int n_cols, double at_least)
{
    quant_tile_fn *const tile = quant_tile(isa, b->type);
    const double start = cpu_s();
    double now;
    int n = 0;
    do {
        for (int r = 0; r < n_rows; r += step)
            tile(K, b->w + (size_t)r * b->row_bytes, b->row_bytes, n_rows - r < step ? n_rows - r : step, b->x,
                 b->x_stride, n_cols, b->out, (size_t)step);
        n++;
        now = cpu_s();
    } while (now - start < at_least);
    return (now - start) / n;
}

/* Seconds per multiplication of a slab's rows with rows in panels. */
static double time_slabs(const struct work *b, const struct cpu_panels *x, uint8_t *slab, float *acc, double at_least)
{
    const struct tensor_view w = {
        .type = b->type, .ne = {K, SMALL_ROWS * QUANT_SLAB, 1, 1}, .stride = {0, b->row_bytes, 0, 0}, .data = b->w};
    const double start = cpu_s();
    double now;
    int n = 0;
    struct cpu_slabs next = cpu_slabs_of(x->s, &w, NULL, 0, QUANT_SLAB, 1);
    do {
        const struct cpu_slabs here = next;
        n++;
        next.rows[0].r0 = n % SMALL_ROWS * QUANT_SLAB;
        cpu_slabs_run(&here, x, &next, slab, acc);
        now = cpu_s();
    } while (now - start < at_least);
    return (now - start) / n;
}

static void bench_slabs(const struct work *b)
{
    for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
        const struct quant_slab *const s = quant_slab((enum quant_isa)isa, b->type);
        if (!s || !quant_isa_usable((enum quant_isa)isa)) continue;
        struct cpu_panels x = {.s = s, .k = K, .p = aligned(MOST_SLAB * cpu_column_bytes(s, K) + QUANT_PANEL_BEHIND)};
        uint8_t *const slab = aligned(CPU_SLAB_MOST);
        float *const acc = aligned(MOST_SLAB * QUANT_SLAB * sizeof *acc);
        printf("%-8s %-7s    slabs |", quant_type(b->type)->name, quant_isa_name((enum quant_isa)isa));
        for (int i = 0; i < N_SLAB_COUNTS; i++) {
            x.n = slab_counts[i];
            for (int c = 0; c < x.n; c += s->panel) {
                const uint8_t *row[QUANT_PANEL_MOST];
                const int n = x.n - c < s->panel ? x.n - c : s->panel;
                for (int r = 0; r < n; r++) row[r] = (const uint8_t *)b->x + (size_t)((c + r) % MAX_COLS) * b->x_stride;
                cpu_panels_put(&x, c, row, n);
            }
            double best = 1e9;
            for (int round = 0; round < ROUNDS; round++) {
                const double t = time_slabs(b, &x, slab, acc, 0.02);
                if (t < best) best = t;
            }
            printf(" %8.2f", (double)QUANT_SLAB * K * x.n / best * 1e-9);
        }
        printf("\n");
        free(x.p);
        free(slab);
        free(acc);
    }
}

static void bench_type(uint32_t type)
{
    const enum act_format f = quant_type(type)->act;
    static struct work b;
    b.type = type;
    b.row_bytes = quant_row_bytes(type, K);
    b.n_rows = (int)(STREAM_BYTES / b.row_bytes);
    b.x_stride = act_row_bytes(f, K);
    b.w = aligned(STREAM_BYTES);
    b.x = aligned(MAX_COLS * b.x_stride);
    fill_weights(type, b.w, STREAM_BYTES);
    uint32_t s = 2;
    float x[K];
    for (int c = 0; c < MAX_COLS; c++) {
        for (int i = 0; i < K; i++) x[i] = (float)(int32_t)draw(&s) * 0x1p-31f;
        act_quantise(f, x, K, b.x + (size_t)c * b.x_stride);
    }
    const int task = (int)(TASK_BYTES / b.row_bytes);
    double stream[QUANT_ISA_COUNT], small[QUANT_ISA_COUNT][N_COUNTS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
            if (!quant_isa_usable((enum quant_isa)isa)) continue;
            const int rows = isa == QUANT_SCALAR ? b.n_rows / 16 : b.n_rows;
            const double t = time_tiles(&b, (enum quant_isa)isa, rows, task, 1, 0) / rows;
            if (!round || t < stream[isa]) stream[isa] = t;
            for (int c = 0; c < N_COUNTS; c++) {
                const double u = time_tiles(&b, (enum quant_isa)isa, SMALL_ROWS, TILE_ROWS, col_counts[c], 0.01);
                if (!round || u < small[isa][c]) small[isa][c] = u;
            }
        }
    }
    for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
        if (!quant_isa_usable((enum quant_isa)isa)) continue;
        printf("%-8s %-7s %8.2f |", quant_type(type)->name, quant_isa_name((enum quant_isa)isa),
               (double)b.row_bytes / stream[isa] * 1e-9);
        for (int c = 0; c < N_COUNTS; c++)
            printf(" %8.2f", (double)SMALL_ROWS * K * col_counts[c] / small[isa][c] * 1e-9);
        printf("\n");
    }
    bench_slabs(&b);
    free(b.w);
    free(b.x);
}

static void bench_activations(void)
{
    static const char *const names[ACT_COUNT] = {"F32", "Q8_0", "Q8_K"};
    static float x[K];
    uint32_t s = 3;
    for (int i = 0; i < K; i++) x[i] = (float)(int32_t)draw(&s) * 0x1p-31f;
    for (int f = ACT_Q8_0; f < ACT_COUNT; f++) {
        void *const row = aligned(act_row_bytes((enum act_format)f, K));
        double best = 1e9;
        for (int round = 0; round < ROUNDS; round++) {
            const double start = cpu_s();
            for (int i = 0; i < 1000; i++) act_quantise((enum act_format)f, x, K, row);
            if (cpu_s() - start < best) best = cpu_s() - start;
        }
        printf("act_quantise %s, best set: %.2f thousand million values/s\n", names[f], 1000.0 * K / best * 1e-9);
        free(row);
    }
}

int main(int argc, char **argv)
{
    printf("%-8s %-7s %8s | Gmul-add/s, C =%2d %8d %8d %8d\n", "type", "set", "GB/s", col_counts[0], col_counts[1],
           col_counts[2], col_counts[3]);
    for (uint32_t id = 0; id < QT_READINGS_END; id++) {
        if (id == QT_Q2_0 + 1) id = QT_READINGS;
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++) wanted |= quant_type_by_name(argv[i]) == (int)id;
        if (wanted && quant_tile(QUANT_SCALAR, id)) bench_type(id);
    }
    bench_activations();
    return 0;
}
