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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_type), cmocka_unit_test(sound_file)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
