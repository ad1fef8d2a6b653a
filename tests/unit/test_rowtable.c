/* rowtable/: rows gathered from a file are those that are read and decoded directly, by every means; what fails is told
 * and spoils nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#define READ_FAULT_INSIDE
#include "../preload/read_fault.c"
#include "../support/temp_files.h"
#include "base/mem.h"
#include "rowtable/rowtable_internal.h"
#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

enum { WIDTH = 160, ROWS = 3000, OFFSET = 4096 + 96 };

static char folder[TEMP_PATH], path[200];
static uint8_t *bytes; /* of the rows of the file */
static const enum rowtable_means means[] = {ROWTABLE_BEST, ROWTABLE_THREADS};

static int make_folder(void **state)
{
    temp_folder(folder);
    snprintf(path, sizeof path, "%s/table", folder);
    return 0;
}

static int remove_folder(void **state)
{
    mem_free(bytes);
    return temp_remove(folder);
}

static uint32_t below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 33) % n);
}

/* A file of random bytes with a table of a type in it, and its view. */
static struct tensor_view write_table(uint32_t type, int64_t rows)
{
    const size_t row_bytes = quant_row_bytes(type, WIDTH), n = (size_t)rows * row_bytes;
    uint64_t seed = type + 1;
    mem_free(bytes);
    bytes = mem_alloc(n);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)below(&seed, 256);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < OFFSET; i++) fputc('x', f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    return (struct tensor_view){
        .type = type, .ne = {WIDTH, rows, 1, 1}, .stride = {0, row_bytes, n, n}, .offset = OFFSET};
}

static struct rowtable *open_table(enum rowtable_means by, const struct tensor_view *v, struct file_map **map)
{
    struct err e = {0};
    struct rowtable *t;
    assert_int_equal(file_map_open(path, map, &e), 0);
    assert_int_equal(rowtable_open_by(by, *map, "table.weight", v, &t, &e), 0);
    assert_int_equal(rowtable_width(t), WIDTH);
    assert_int_equal(rowtable_rows(t), v->ne[1]);
    return t;
}

static void close_table(struct rowtable *t, struct file_map *map)
{
    rowtable_close(t);
    file_map_close(map);
}

static bool is_row(const struct tensor_view *v, uint32_t id, const float *got)
{
    float want[WIDTH];
    quant_type(v->type)->decode(bytes + id * v->stride[1], want, WIDTH);
    return memcmp(want, got, sizeof want) == 0;
}

/* n random rows, some of them more than once. */
static void gather(struct rowtable *t, const struct tensor_view *v, uint64_t *seed, size_t n)
{
    struct err e = {0};
    struct rowtable_gather *g;
    uint32_t *ids = mem_alloc((n + 1) * sizeof *ids);
    float *out = mem_alloc((n + 1) * WIDTH * sizeof *out);
    for (size_t i = 0; i < n; i++) ids[i] = i > 0 && below(seed, 4) == 0 ? ids[i - 1] : below(seed, (uint32_t)v->ne[1]);
    assert_int_equal(rowtable_start(t, ids, n, out, &g, &e), 0);
    assert_int_equal(rowtable_wait(g, &e), 0);
    for (size_t i = 0; i < n; i++)
        if (!is_row(v, ids[i], out + i * WIDTH))
            fail_msg("row %u, place %zu of %zu, is not what is stored", ids[i], i, n);
    mem_free(ids);
    mem_free(out);
}

static void every_type_gives_the_rows_as_stored(void **state)
{
    int types = 0;
    for (uint32_t type = 0; type < 64; type++) {
        const struct quant_type *const q = quant_type(type);
        if (!q || !q->decode || WIDTH % q->block) continue;
        types++;
        const struct tensor_view v = write_table(type, ROWS);
        for (size_t m = 0; m < 2; m++) {
            uint64_t seed = m;
            struct file_map *map;
            struct rowtable *t = open_table(means[m], &v, &map);
            gather(t, &v, &seed, 0);
            for (int i = 0; i < 20; i++) gather(t, &v, &seed, 16);
            gather(t, &v, &seed, 5000);
            close_table(t, map);
        }
    }
    assert_true(types >= 5);
}

static void a_thousand_gathers_of_any_size(void **state)
{
    const struct tensor_view v = write_table(QT_BF16, ROWS);
    for (size_t m = 0; m < 2; m++) {
        uint64_t seed = 7 + m;
        struct file_map *map;
        struct rowtable *t = open_table(means[m], &v, &map);
        for (int i = 0; i < 1000; i++) gather(t, &v, &seed, i % 10 ? below(&seed, 40) : below(&seed, 600));
        close_table(t, map);
    }
}

/* The second half of every row belongs to another tensor. */
static void rows_may_be_wider_apart_than_they_are(void **state)
{
    struct tensor_view v = write_table(QT_F16, ROWS);
    uint64_t seed = 3;
    struct file_map *map;
    v.ne[1] = ROWS / 2;
    v.stride[1] *= 2;
    struct rowtable *t = open_table(ROWTABLE_BEST, &v, &map);
    gather(t, &v, &seed, 300);
    close_table(t, map);
}

/* ------------------------------------------------------------------------------------------------ threads */

struct work {
    struct rowtable *t;
    const struct tensor_view *v;
    uint64_t seed;
};

static void *gather_often(void *arg)
{
    struct work *const w = arg;
    for (int i = 0; i < 50; i++) gather(w->t, w->v, &w->seed, below(&w->seed, 200));
    return NULL;
}

static void several_threads_use_one_table(void **state)
{
    const struct tensor_view v = write_table(QT_Q8_0, ROWS);
    for (size_t m = 0; m < 2; m++) {
        struct file_map *map;
        struct rowtable *t = open_table(means[m], &v, &map);
        pthread_t thread[6];
        struct work work[6];
        for (int i = 0; i < 6; i++) {
            work[i] = (struct work){t, &v, (uint64_t)i};
            assert_int_equal(pthread_create(&thread[i], NULL, gather_often, &work[i]), 0);
        }
        for (int i = 0; i < 6; i++) pthread_join(thread[i], NULL);
        close_table(t, map);
    }
}

static void a_cancelled_gather_writes_no_more(void **state)
{
    enum { N = 2000 };
    const struct tensor_view v = write_table(QT_BF16, ROWS);
    static uint32_t ids[N];
    static float out[N * WIDTH], before[N * WIDTH];
    for (uint32_t i = 0; i < N; i++) ids[i] = i;
    for (size_t m = 0; m < 2; m++) {
        uint64_t seed = 1;
        struct err e = {0};
        struct rowtable_gather *g;
        struct file_map *map;
        struct rowtable *t = open_table(means[m], &v, &map);
        atomic_store(&read_fault_to, INT64_MAX);
        atomic_store(&read_fault_reads, 0);
        atomic_store(&read_fault_kind, READ_FAULT_SLOW);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(rowtable_start(t, ids, N, out, &g, &e), 0);
            rowtable_cancel(g);
            memcpy(before, out, sizeof out);
        }
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        assert_memory_equal(before, out, sizeof out);
        assert_true(atomic_load(&read_fault_reads) < 20 * N);
        atomic_store(&read_fault_kind, READ_FAULT_NONE);
        gather(t, &v, &seed, 100);
        close_table(t, map);
    }
    rowtable_cancel(NULL);
}

/* 0 where it is not known. */
static uint64_t heap_bytes(void)
{
#ifdef __GLIBC__
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

/* What a table holds does not grow with what is asked for. */
static void memory_is_bounded(void **state)
{
    enum { N = 200000 };
    const struct tensor_view v = write_table(QT_BF16, ROWS);
    struct err e = {0};
    struct rowtable_gather *g;
    struct file_map *map;
    struct rowtable *t = open_table(ROWTABLE_BEST, &v, &map);
    uint32_t *ids = mem_alloc(N * sizeof *ids);
    float *out = mem_alloc((size_t)N * WIDTH * sizeof *out);
    const uint64_t before = heap_bytes();
    assert_int_equal(rowtable_start(t, ids, N, out, &g, &e), 0);
    const uint64_t after = heap_bytes();
    assert_int_equal(rowtable_wait(g, &e), 0);
    assert_true(after < before + ROWTABLE_MEMORY);
    assert_true(is_row(&v, 0, out + (size_t)(N - 1) * WIDTH));
    mem_free(ids);
    mem_free(out);
    close_table(t, map);
}

/* ------------------------------------------------------------------------------------------------ failures */

static int gather_rc(struct rowtable *t, const uint32_t *ids, size_t n, struct err *e)
{
    static float out[SLICE_MOST * WIDTH];
    struct rowtable_gather *g;
    const int rc = rowtable_start(t, ids, n, out, &g, e);
    return rc ? rc : rowtable_wait(g, e);
}

static void ids_are_checked(void **state)
{
    const struct tensor_view v = write_table(QT_BF16, ROWS);
    struct err e = {0};
    struct file_map *map;
    struct rowtable *t = open_table(ROWTABLE_BEST, &v, &map);
    const uint32_t last = ROWS - 1, ids[] = {0, ROWS}, most = UINT32_MAX;
    assert_int_equal(gather_rc(t, &last, 1, &e), 0);
    assert_int_equal(gather_rc(t, ids, 2, &e), ERR_MODEL);
    assert_non_null(strstr(e.msg, "table.weight: row 3000 is asked for, there are 3000"));
    assert_int_equal(gather_rc(t, &most, 1, NULL), ERR_MODEL);
    close_table(t, map);
}

static void a_failing_disk_ends_the_gather(void **state)
{
    static const struct {
        int kind;
        const char *told;
    } cases[] = {{READ_FAULT_EIO, "Input/output error"}, {READ_FAULT_END, "the file is shorter than when"}};
    const struct tensor_view v = write_table(QT_BF16, ROWS);
    struct file_map *map;
    struct rowtable *t = open_table(ROWTABLE_THREADS, &v, &map);
    uint32_t ids[100];
    for (uint32_t i = 0; i < 100; i++) ids[i] = i * 20;
    for (size_t c = 0; c < 2; c++) {
        struct err e = {0};
        uint64_t seed = c;
        atomic_store(&read_fault_from, OFFSET + 40 * WIDTH * 2);
        atomic_store(&read_fault_to, OFFSET + 41 * WIDTH * 2);
        atomic_store(&read_fault_kind, cases[c].kind);
        assert_int_equal(gather_rc(t, ids, 100, &e), ERR_IO);
        assert_non_null(strstr(e.msg, "table.weight: cannot read row 40, 320 bytes at offset 16992"));
        assert_non_null(strstr(e.msg, cases[c].told));
        assert_int_equal(gather_rc(t, ids, 2, NULL), 0);
        assert_int_equal(gather_rc(t, ids + 2, 1, NULL), ERR_IO);
        atomic_store(&read_fault_kind, READ_FAULT_NONE);
        gather(t, &v, &seed, 500);
    }
    close_table(t, map);
}

static void short_reads_are_continued(void **state)
{
    const struct tensor_view v = write_table(QT_F32, 50);
    uint64_t seed = 5;
    struct file_map *map;
    struct rowtable *t = open_table(ROWTABLE_THREADS, &v, &map);
    atomic_store(&read_fault_from, 0);
    atomic_store(&read_fault_to, INT64_MAX);
    atomic_store(&read_fault_kind, READ_FAULT_SHORT);
    gather(t, &v, &seed, 200);
    atomic_store(&read_fault_kind, READ_FAULT_NONE);
    close_table(t, map);
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
    for (size_t m = 0; m < 2; m++) {
        const struct tensor_view v = write_table(QT_BF16, ROWS);
        struct err e = {0};
        struct file_map *map;
        struct rowtable *t = open_table(means[m], &v, &map);
        const uint32_t ids[] = {5, 2000, 3, 2999}, there[] = {1999, 0};
        assert_int_equal(truncate(path, OFFSET + 2000 * WIDTH * 2 + 7), 0);
        assert_int_equal(gather_rc(t, ids, 4, &e), ERR_IO);
        assert_non_null(strstr(e.msg, "the file is shorter than when it was opened"));
        assert_int_equal(gather_rc(t, there, 2, NULL), 0);
        close_table(t, map);
    }
}

/* What a ring reads: rows of BF16. */
static struct row_file ring_file(int fd)
{
    return (struct row_file){.fd = fd,
                             .path = (char *)"file",
                             .name = (char *)"table.weight",
                             .decode = quant_type(QT_BF16)->decode,
                             .width = WIDTH,
                             .rows = 10,
                             .stride = 2 * WIDTH,
                             .row_bytes = 2 * WIDTH};
}

/* A failure that a ring reports: of a descriptor that cannot be read. */
static void a_ring_tells_why(void **state)
{
    const struct row_file f = ring_file(open("/dev/null", O_WRONLY));
    struct err e = {0};
    static float out[3 * WIDTH];
    const struct row_slice s = {.n = 3, .id = {1, 4, 4}, .place = {0, 1, 2}, .out = out};
    struct row_ring *r = row_ring_create(&f);
    if (r) {
        assert_int_equal(rows_ring(r, &f, &s, &e), ERR_IO);
        assert_non_null(strstr(e.msg, "Bad file descriptor"));
    }
    row_ring_free(r);
    close(f.fd);
}

#ifdef HAVE_LIBURING
/* Waits of a ring that end as when the process is stopped and goes on: so many more, with the number of requests and
 * without an answer. Then a row is written to the pipe that is read, if there is one. */
static int waits, waits_cut_short, wait_failure, late_row = -1;
static uint8_t late_bytes[2 * WIDTH];

int io_uring_submit_and_wait(struct io_uring *ring, unsigned n)
{
    struct io_uring_cqe *c;
    waits++;
    if (wait_failure) return wait_failure;
    const int sent = io_uring_submit(ring);
    if (waits_cut_short > 0) return waits_cut_short--, sent;
    if (late_row >= 0) assert_int_equal(write(late_row, late_bytes, sizeof late_bytes), sizeof late_bytes);
    const int rc = io_uring_wait_cqe_nr(ring, &c, n);
    return rc < 0 ? rc : sent;
}

/* The row comes, and with the next slice comes the next slice's row. */
static void a_wait_that_is_cut_short_goes_on(void **state)
{
    int ends[2];
    struct err e = {0};
    static float out[WIDTH], want[WIDTH];
    const struct row_slice s = {.n = 1, .id = {4}, .out = out};
    assert_int_equal(pipe(ends), 0);
    const struct row_file f = ring_file(ends[0]);
    struct row_ring *r = row_ring_create(&f);
    late_row = ends[1];
    for (int i = 0; i < 4 && r; i++) {
        memset(late_bytes, 0x30 + i, sizeof late_bytes);
        f.decode(late_bytes, want, WIDTH);
        waits_cut_short = i;
        if (rows_ring(r, &f, &s, &e)) fail_msg("%s", e.msg);
        assert_memory_equal(out, want, sizeof want);
        assert_int_equal(waits_cut_short, 0);
    }
    late_row = -1;
    row_ring_free(r);
    close(ends[0]);
    close(ends[1]);
}

/* Requests of a ring that fails stay unanswered: the slices behind are read without it. */
static void behind_a_ring_that_fails_rows_are_right(void **state)
{
    static struct row_ring *r; /* its buffer is given up, not lost */
    struct err e = {0};
    static float out[3 * WIDTH], want[WIDTH];
    const struct row_slice s = {.n = 3, .id = {1, 4, 4}, .place = {0, 2, 1}, .out = out};
    (void)write_table(QT_BF16, 10);
    struct row_file f = ring_file(open(path, O_RDONLY));
    f.offset = OFFSET;
    r = row_ring_create(&f);
    if (r) {
        wait_failure = -ENOMEM;
        assert_int_equal(rows_ring(r, &f, &s, &e), ERR_IO);
        assert_non_null(strstr(e.msg, "Cannot allocate memory"));
        wait_failure = waits = 0;
        if (rows_ring(r, &f, &s, &e)) fail_msg("%s", e.msg);
        for (int i = 0; i < s.n; i++) {
            f.decode(bytes + s.id[i] * f.row_bytes, want, WIDTH);
            assert_memory_equal(out + s.place[i] * WIDTH, want, sizeof want);
        }
        assert_int_equal(waits, 0);
    }
    close(f.fd);
}
#endif

/* ------------------------------------------------------------------------------------------------ opening */

static void refused(const struct tensor_view *v, int code, const char *told)
{
    struct err e = {0};
    struct rowtable *t;
    struct file_map *map;
    assert_int_equal(file_map_open(path, &map, NULL), 0);
    assert_int_equal(rowtable_open(map, "table.weight", v, &t, &e), code);
    if (!strstr(e.msg, told)) fail_msg("'%s' does not say '%s'", e.msg, told);
    assert_null(t);
    file_map_close(map);
}

static void tables_that_cannot_be_read_are_refused(void **state)
{
    const struct tensor_view good = write_table(QT_BF16, ROWS);
    struct tensor_view v = good;
    v.type = 199;
    refused(&v, ERR_MODEL, "cannot be decoded");
    v = good, v.type = QT_Q4_K;
    refused(&v, ERR_MODEL, "rows of 160 values of type Q4_K cannot be read");
    v = good, v.ne[0] = 16384;
    refused(&v, ERR_MODEL, "at most 16384 bytes");
    v = good, v.ne[1] = (int64_t)UINT32_MAX + 1;
    refused(&v, ERR_MODEL, "4294967296 rows");
    v = good, v.ne[1] = 0;
    refused(&v, ERR_MODEL, "0 rows");
    v = good, v.stride[1] = 319;
    refused(&v, ERR_MODEL, "319 bytes apart");
    v = good, v.ne[1]++;
    refused(&v, ERR_IO, "the file ends before its last row");
    v = good, v.stride[1] = UINT64_MAX / 2;
    refused(&v, ERR_IO, "the file ends before its last row");
}

static void another_file_under_the_name_is_refused(void **state)
{
    const struct tensor_view v = write_table(QT_BF16, ROWS);
    char old[300];
    struct err e = {0};
    struct rowtable *t;
    struct file_map *map;
    snprintf(old, sizeof old, "%s.old", path);
    assert_int_equal(file_map_open(path, &map, NULL), 0);
    assert_int_equal(rename(path, old), 0);
    assert_int_equal(rowtable_open(map, "table.weight", &v, &t, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "cannot open again"));
    write_table(QT_BF16, ROWS);
    err_clear(&e);
    assert_int_equal(rowtable_open(map, "table.weight", &v, &t, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "replaced or changed"));
    file_map_close(map);
    unlink(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_gives_the_rows_as_stored),
        cmocka_unit_test(a_thousand_gathers_of_any_size),
        cmocka_unit_test(rows_may_be_wider_apart_than_they_are),
        cmocka_unit_test(several_threads_use_one_table),
        cmocka_unit_test(a_cancelled_gather_writes_no_more),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(a_failing_disk_ends_the_gather),
        cmocka_unit_test(short_reads_are_continued),
        cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
        cmocka_unit_test(a_ring_tells_why),
#ifdef HAVE_LIBURING
        cmocka_unit_test(a_wait_that_is_cut_short_goes_on),
        cmocka_unit_test(behind_a_ring_that_fails_rows_are_right),
#endif
        cmocka_unit_test(tables_that_cannot_be_read_are_refused),
        cmocka_unit_test(another_file_under_the_name_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
