/* What rows of a table on disk cost. Not a test.
 *
 *   build/release/bench/bench_rowtable FILE [megabytes]
 *
 * Writes FILE, a table of rows of 160 BF16 values as Qwen3.8's (1024 MB if not said), and gathers random rows of it: 16
 * as for a token that is decoded, 4096 as for a chunk of a prompt. Times are of whole gathers, and of the wait alone
 * where other work of a millisecond lies between start and wait. "from disk": the system was told to forget the file
 * just before. FILE is removed at the end. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/mem.h"
#include "rowtable/rowtable_internal.h"

enum { WIDTH = 160, MOST = 4096 };

static uint64_t state = 1;
static uint32_t ids[MOST];
static float out[MOST * WIDTH];

static uint64_t next(void)
{
    return (state = state * 6364136223846793005u + 1442695040888963407u) >> 24;
}

static int failed(const struct err *e)
{
    fprintf(stderr, "bench_rowtable: %s\n", e->msg);
    return 1;
}

static int write_file(const char *path, int64_t rows)
{
    FILE *const f = fopen(path, "wb");
    uint64_t row[WIDTH / 4];
    if (!f) return perror(path), 1;
    for (int64_t r = 0; r < rows; r++) {
        for (int i = 0; i < WIDTH / 4; i++) row[i] = next() & 0x3fff3fff3fff3fff;
        fwrite(row, sizeof row, 1, f);
    }
    fflush(f);
    fsync(fileno(f));
    return fclose(f) ? perror(path), 1 : 0;
}

static void forget(const char *path)
{
#ifdef POSIX_FADV_DONTNEED
    const int fd = open(path, O_RDONLY);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
#endif
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Medians and the worst of many gathers, in microseconds. */
static int measure(struct rowtable *t, const char *path, int n, bool from_disk)
{
    enum { RUNS = 300 };
    static uint64_t whole[RUNS], wait[RUNS];
    const int runs = n > 1000 ? 20 : RUNS;
    struct err e = {0};
    for (int r = 0; r < 2 * runs; r++) {
        struct rowtable_gather *g;
        const bool other_work = r >= runs;
        for (int i = 0; i < n; i++) ids[i] = (uint32_t)(next() % rowtable_rows(t));
        if (from_disk) forget(path);
        const uint64_t start = clock_ns();
        if (rowtable_start(t, ids, (size_t)n, out, &g, &e)) return failed(&e);
        while (other_work && clock_ns() - start < 1000000) {
        }
        const uint64_t began = clock_ns();
        if (rowtable_wait(g, &e)) return failed(&e);
        const uint64_t now = clock_ns();
        if (other_work)
            wait[r - runs] = now - began;
        else
            whole[r] = now - start;
    }
    qsort(whole, (size_t)runs, sizeof *whole, by_value);
    qsort(wait, (size_t)runs, sizeof *wait, by_value);
    printf("%-9s %4d rows %-10s  whole %8.1f us (worst %8.1f)   wait behind 1 ms of work %8.1f us\n", rowtable_way(t),
           n, from_disk ? "from disk" : "in memory", 1e-3 * (double)whole[runs / 2], 1e-3 * (double)whole[runs - 1],
           1e-3 * (double)wait[runs / 2]);
    return 0;
}

static int measure_all(const char *path, enum rowtable_means means, int64_t rows)
{
    const struct tensor_view v = {.type = QT_BF16, .ne = {WIDTH, rows, 1, 1}, .stride = {0, 2 * WIDTH}};
    struct err e = {0};
    struct file_map *map;
    struct rowtable *t = NULL;
    if (file_map_open(path, &map, &e)) return failed(&e);
    int rc = rowtable_open_by(means, map, "table", &v, &t, &e) ? failed(&e) : 0;
    for (int disk = 0; disk < 2 && !rc; disk++) {
        rc = measure(t, path, 16, disk);
        if (!rc) rc = measure(t, path, MOST, disk);
    }
    rowtable_close(t);
    file_map_close(map);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: bench_rowtable FILE [megabytes]\n"), 2;
    const int64_t rows = (argc > 2 ? atoi(argv[2]) : 1024) * INT64_C(1000000) / (2 * WIDTH);
    int rc = rows > 0 ? write_file(argv[1], rows) : 2;
    if (!rc) rc = measure_all(argv[1], ROWTABLE_BEST, rows);
    if (!rc) rc = measure_all(argv[1], ROWTABLE_THREADS, rows);
    unlink(argv[1]);
    return rc;
}
