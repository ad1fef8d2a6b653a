/* The scan of a file set: every damaged tensor is found with the first of its rows, in whichever file, type and block
 * it is, by any number of threads; what cannot be damaged is not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../support/temp_files.h"
#include "base/file.h"
#include "base/mem.h"
#include "gguf/gguf_scan.h"
#include "quant/quant.h"
#include "quant/quant_sound.h"

enum { ROW = 512, ROWS = 40, MOST = 64 };

static char folder[TEMP_PATH], path[TEMP_PATH + 16];

static int set_up(void **state)
{
    temp_folder(folder);
    snprintf(path, sizeof path, "%s/scan.gguf", folder);
    return 0;
}

static int tear_down(void **state)
{
    return temp_remove(folder);
}

static bool can_be_written(uint32_t type)
{
    return quant_type(type) && type != QT_I64 && type != QT_F64;
}

/* A tensor of zeros of every type, "t0" and so on by number. */
static void write_all_types(void)
{
    const uint64_t ne[] = {ROW, ROWS};
    struct gguf_writer *w;
    struct err e = {0};
    char name[16];
    if (gguf_writer_open(path, &w, &e)) fail_msg("%s", e.msg);
    for (uint32_t type = 0; type < MOST; type++) {
        snprintf(name, sizeof name, "t%u", (unsigned)type);
        if (can_be_written(type)) gguf_declare(w, name, type, 2, ne);
    }
    for (uint32_t type = 0; type < MOST; type++) {
        const size_t bytes = can_be_written(type) ? ROWS * quant_row_bytes(type, ROW) : 0;
        void *zeros = mem_alloc(bytes + 1);
        gguf_write(w, zeros, bytes);
        mem_free(zeros);
    }
    if (gguf_writer_finish(w, &e)) fail_msg("%s", e.msg);
}

static struct gguf_set *opened(void)
{
    struct gguf_set *s;
    struct err e = {0};
    const char *p = path;
    if (gguf_set_open(&p, 1, &s, &e)) fail_msg("%s", e.msg);
    return s;
}

/* Bytes of one value over a whole block: a NaN as a scale of any kind. */
static void damage(const struct gguf_tensor *t, int row)
{
    const uint8_t v = t->type == QT_NVFP4 ? 0x7F : 0xFF;
    const size_t n = quant_type(t->type)->block_bytes, bytes = quant_row_bytes(t->type, ROW);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)(t->offset + (uint64_t)(row + 1) * bytes - n), SEEK_SET), 0);
    for (size_t i = 0; i < n; i++) fputc(v, f);
    assert_int_equal(fclose(f), 0);
}

static uint64_t told;

static void tell(void *arg, const struct gguf_tensor *t, uint64_t n)
{
    assert_ptr_equal(arg, folder);
    assert_non_null(t);
    told += n;
}

static void every_type(void **state)
{
    struct gguf_scan scan;
    struct err e = {0};
    write_all_types();
    struct gguf_set *s = opened();
    const struct gguf *g = gguf_set_file(s, 0);
    uint64_t scanned = 0;
    int n = 0;
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        damage(t, (int)t->type % (ROWS - 1));
        damage(t, ROWS - 1); /* the first one is told */
        if (!quant_can_be_unsound(t->type)) continue;
        n++;
        scanned += t->bytes;
    }
    assert_true(n >= 28);
    assert_int_equal(gguf_scan_bytes(s), scanned);
    for (int threads = 1; threads <= 4; threads += 3) {
        struct pool *p;
        if (pool_create(threads, &p, &e)) fail_msg("%s", e.msg);
        told = 0;
        if (gguf_set_scan(s, p, tell, folder, &scan, &e)) fail_msg("%s", e.msg);
        assert_int_equal(scan.n_flaws, n);
        assert_int_equal(scan.bytes, scanned);
        assert_int_equal(told, scanned);
        for (int i = 0; i < scan.n_flaws; i++)
            if (scan.flaws[i].row != scan.flaws[i].tensor->type % (ROWS - 1))
                fail_msg("type %u: row %lld", (unsigned)scan.flaws[i].tensor->type, (long long)scan.flaws[i].row);
        gguf_scan_free(&scan);
        pool_free(p);
    }
    gguf_set_close(s);
}

static void sound_file(void **state)
{
    struct gguf_scan scan;
    struct pool *p;
    struct err e = {0};
    write_all_types();
    struct gguf_set *s = opened();
    if (pool_create(2, &p, &e) || gguf_set_scan(s, p, NULL, NULL, &scan, &e)) fail_msg("%s", e.msg);
    assert_int_equal(scan.n_flaws, 0);
    gguf_scan_free(&scan);
    /* A file that became shorter since is named with the place. */
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(gguf_set_scan(s, p, NULL, NULL, &scan, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "scan.gguf: cannot read byte 5000: the file ends before"));
    gguf_scan_free(&scan);
    pool_free(p);
    gguf_set_close(s);
}

/* ---------------------------------------------------------------- zeros */

enum { KB = 1 << 10, MB = 1 << 20, TENSORS = 6, A = 0, NORM, B, EXPERTS, SMALL, WORDS };

static const struct {
    const char *name;
    uint32_t type;
    uint64_t ne[3];
} shapes[TENSORS] = {
    [A] = {"a.weight", QT_F16, {1024, 3 * KB, 1}},
    [NORM] = {"a_norm.weight", QT_F32, {64, 1, 1}},
    [B] = {"b.weight", QT_F16, {1024, 3 * KB, 1}},
    [EXPERTS] = {"exps.weight", QT_F16, {512, 256, 16}}, /* of 256 KiB */
    [SMALL] = {"small.weight", QT_Q4_0, {64, 8, 1}},
    [WORDS] = {"token_embd.weight", QT_F16, {512, 66 * KB, 1}},
};

static uint64_t bytes_of(int i)
{
    return quant_row_bytes(shapes[i].type, (int64_t)shapes[i].ne[0]) * shapes[i].ne[1] * shapes[i].ne[2];
}

static void write_filled(void)
{
    struct gguf_writer *w;
    struct err e = {0};
    if (gguf_writer_open(path, &w, &e)) fail_msg("%s", e.msg);
    for (int i = 0; i < TENSORS; i++) gguf_declare(w, shapes[i].name, shapes[i].type, 3, shapes[i].ne);
    for (int i = 0; i < TENSORS; i++) {
        uint8_t *data = mem_alloc(bytes_of(i));
        memset(data, 0x11, bytes_of(i));
        gguf_write(w, data, bytes_of(i));
        mem_free(data);
    }
    if (gguf_writer_finish(w, &e)) fail_msg("%s", e.msg);
}

static uint64_t place(const struct gguf *g, int tensor)
{
    return gguf_tensor_find(g, shapes[tensor].name, strlen(shapes[tensor].name))->offset;
}

static void fill(uint64_t from, uint64_t to, int byte)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)from, SEEK_SET), 0);
    for (uint64_t i = from; i < to; i++) fputc(byte, f);
    assert_int_equal(fclose(f), 0);
}

/* Zeros from a byte of one tensor to a byte of another, and what is found of them. */
static const struct {
    int first;
    uint64_t from;
    int last;
    uint64_t to;
    int places;
} runs[] = {
    {A, 40 * KB, A, MB + 40 * KB, 1},
    {A, 40 * KB, A, MB + 36 * KB, 0},       /* too short to tell */
    {A, 0, A, 6 * MB, 1},                   /* all of it */
    {A, 3 * MB, A, 5 * MB, 1},              /* through two pieces */
    {A, 5 * MB + 512 * KB, B, 768 * KB, 1}, /* through tensors */
    {NORM, 0, NORM, 256, 1},                /* gains */
    {NORM, 0, NORM, 252, 0},
    {SMALL, 0, SMALL, 288, 1},                          /* scales */
    {EXPERTS, 4 * 256 * KB, EXPERTS, 10 * 256 * KB, 0}, /* were cut away */
    {EXPERTS, 4 * 256 * KB + 8 * KB, EXPERTS, 10 * 256 * KB, 1},
    {EXPERTS, 0, EXPERTS, 4 * MB, 1},
    {WORDS, 65 * MB, WORDS, 66 * MB, 0}, /* padding of a vocabulary */
    {WORDS, 64 * MB, WORDS, 66 * MB, 1},
};

static void zeros(void **state)
{
    write_filled();
    struct gguf_set *s = opened();
    const struct gguf *g = gguf_set_file(s, 0);
    struct err e = {0};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const uint64_t from = place(g, runs[i].first) + runs[i].from, to = place(g, runs[i].last) + runs[i].to;
        fill(from, to, 0);
        for (int threads = 1; threads <= 3; threads += 2) {
            struct gguf_scan scan;
            struct pool *p;
            if (pool_create(threads, &p, &e) || gguf_set_scan(s, p, NULL, NULL, &scan, &e)) fail_msg("%s", e.msg);
            const struct gguf_zeros *z = &scan.zeros;
            if (z->places != runs[i].places) fail_msg("run %d: %d places", (int)i, z->places);
            if (z->places && (z->at != from || z->bytes > to - from || z->bytes + 4 * KB <= to - from))
                fail_msg("run %d: %llu bytes at %llu", (int)i, (unsigned long long)z->bytes, (unsigned long long)z->at);
            if (z->places) assert_int_equal(z->tensor->offset, place(g, runs[i].first));
            gguf_scan_free(&scan);
            pool_free(p);
        }
        fill(from, to, 0x11);
    }
    /* Two places are added up. */
    struct gguf_scan scan;
    struct pool *p;
    fill(place(g, A) + 4 * KB, place(g, A) + 4 * KB + MB, 0);
    fill(place(g, B), place(g, B) + 2 * MB, 0);
    if (pool_create(2, &p, &e) || gguf_set_scan(s, p, NULL, NULL, &scan, &e)) fail_msg("%s", e.msg);
    assert_int_equal(scan.zeros.places, 2);
    assert_int_equal(scan.zeros.bytes, 3 * MB);
    assert_int_equal(scan.zeros.at, place(g, A) + 4 * KB);
    gguf_scan_free(&scan);
    pool_free(p);
    gguf_set_close(s);
}

/* Never more threads than there is work for at a time, however many cores there are. */
static void threads(void **state)
{
    assert_int_equal(gguf_scan_threads(1), 3);
    assert_int_equal(gguf_scan_threads(9), 27);
    for (int cores = 10; cores <= 4096; cores++) assert_int_equal(gguf_scan_threads(cores), 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_type), cmocka_unit_test(sound_file),
                                       cmocka_unit_test(zeros), cmocka_unit_test(threads)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
