/* ds4-gguf synth as a program: the same bytes on any number of threads, values of the right size, models that are
 * recognised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/temp_files.h"
#include "base/file.h"
#include "base/mem.h"
#include "dialect/canonical.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

static char folder[TEMP_PATH];

static int set_up(void **state)
{
    temp_folder(folder);
    return 0;
}

static int tear_down(void **state)
{
    return temp_remove(folder);
}

/* Writes FOLDER/name and puts its path into path. */
static void synth(const char *name, const char *options, char path[128])
{
    char command[512];
    snprintf(path, 128, "%s/%s.gguf", folder, name);
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf synth --preset tiny %s -o %s 2>/dev/null", options, path);
    assert_int_equal(system(command), 0);
}

static bool same_files(const char *a, const char *b)
{
    char *x, *y;
    size_t n, m;
    struct err e = {0};
    assert_int_equal(file_read(a, 1 << 26, &x, &n, &e), 0);
    assert_int_equal(file_read(b, 1 << 26, &y, &m, &e), 0);
    const bool same = n == m && memcmp(x, y, n) == 0;
    mem_free(x);
    mem_free(y);
    return same;
}

static void same_bytes_on_any_threads(void **state)
{
    char one[128], three[128], other[128];
    synth("one", "--quant q2 --threads 1", one);
    synth("three", "--quant q2 --threads 3", three);
    synth("other", "--quant q2 --seed 2", other);
    assert_true(same_files(one, three));
    assert_false(same_files(one, other));
}

/* Mean and mean square of a tensor's values, all finite; and no row is like the one before. */
static void statistics(const struct gguf *g, const char *name, double *mean, double *square)
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name, strlen(name));
    if (!t) fail_msg("no tensor %s", name);
    const size_t row_bytes = quant_row_bytes(t->type, (int64_t)t->ne[0]), n_rows = (size_t)(t->ne[1] * t->ne[2]);
    const uint8_t *row = gguf_data(g) + t->offset;
    float *x = malloc(t->ne[0] * sizeof *x);
    assert_non_null(x);
    *mean = *square = 0;
    for (size_t r = 0; r < n_rows; r++, row += row_bytes) {
        if (r > 0) assert_memory_not_equal(row, row - row_bytes, row_bytes);
        quant_type(t->type)->decode(row, x, (int64_t)t->ne[0]);
        for (uint64_t i = 0; i < t->ne[0]; i++) {
            assert_true(isfinite(x[i]));
            *mean += x[i];
            *square += (double)x[i] * x[i];
        }
    }
    *mean /= (double)n_rows * (double)t->ne[0];
    *square /= (double)n_rows * (double)t->ne[0];
    free(x);
}

/* Matrices: mean 0 and variance 1 / row length, so that a product keeps the size of its input. */
static void values_keep_the_size(void **state)
{
    static const char *const quants[] = {"q2", "q4", "q8", "f16"};
    static const struct {
        const char *name;
        double k;
    } matrices[] = {{"output.weight", 256},
                    {"blk.1.attn_q_b.weight", 64},
                    {"blk.0.attn_output_a.weight", 160},
                    {"blk.2.ffn_gate_exps.weight", 256},
                    {"blk.3.ffn_down_exps.weight", 256},
                    {"blk.1.ffn_up_shexp.weight", 256},
                    {"blk.1.ffn_gate_inp.weight", 256}};
    for (size_t q = 0; q < sizeof quants / sizeof quants[0]; q++) {
        char option[32], path[128];
        double mean, square;
        struct gguf *g;
        struct err e = {0};
        snprintf(option, sizeof option, "--quant %s", quants[q]);
        synth(quants[q], option, path);
        assert_int_equal(gguf_open(path, &g, &e), 0);
        for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
            statistics(g, matrices[i].name, &mean, &square);
            const double ratio = square * matrices[i].k;
            if (ratio < 0.9 || ratio > 1.1 || fabs(mean) * sqrt(matrices[i].k) > 0.05)
                fail_msg("%s %s: variance %g of what it should be, mean %g", quants[q], matrices[i].name, ratio, mean);
        }
        statistics(g, "blk.2.attn_norm.weight", &mean, &square);
        assert_true(fabs(mean - 1) < 0.05);
        gguf_close(g);
    }
}

static void experts_of_a_token_differ(void **state)
{
    char path[128];
    struct gguf *g;
    struct err e = {0};
    synth("ids", "--quant q2", path);
    assert_int_equal(gguf_open(path, &g, &e), 0);
    const struct gguf_tensor *t = gguf_tensor_find(g, "blk.0.ffn_gate_tid2eid.weight", 29);
    assert_non_null(t);
    int seen[8] = {0};
    for (uint64_t row = 0; row < t->ne[1]; row++) {
        int32_t id[2];
        memcpy(id, gguf_data(g) + t->offset + row * sizeof id, sizeof id);
        assert_true(id[0] != id[1] && id[0] >= 0 && id[0] < 8 && id[1] >= 0 && id[1] < 8);
        seen[id[0]]++;
    }
    for (int i = 0; i < 8; i++) assert_true(seen[i] > 0);
    gguf_close(g);
}

static void is_recognised(void **state)
{
    char path[128];
    const char *paths[] = {path};
    struct canonical *c;
    struct err e = {0};
    synth("model", "--quant q2 --layers 6", path);
    if (canonical_open(paths, 1, NULL, &c, &e)) fail_msg("%s", e.msg);
    assert_int_equal(canonical_n_layers(c), 6);
    assert_int_equal(canonical_int_at(c, "attention.compress_ratios", 5), 4);
    canonical_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_on_any_threads),
        cmocka_unit_test(values_keep_the_size),
        cmocka_unit_test(experts_of_a_token_differ),
        cmocka_unit_test(is_recognised),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
