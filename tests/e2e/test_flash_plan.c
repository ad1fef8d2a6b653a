/* What DeepSeek V4 Flash costs and needs, by hand: the file is the beginning of one that ds4-gguf makes, and behind it
 * a hole instead of the weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../support/shell_run.h"
#include "../support/temp_files.h"
#include "ds4.h"

static char folder[TEMP_PATH];

static int group_set_up(void **state)
{
    temp_folder(folder);
    return 0;
}

static int group_tear_down(void **state)
{
    return temp_remove(folder);
}

static void no_log(void *arg, int level, const char *subject, const char *text)
{
}

static ds4_engine *open_header(const char *options, int ctx)
{
    struct str line = {0}, out = {0};
    char path[TEMP_PATH + 16];
    struct ds4_error e = {0};
    ds4_engine *g;
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    str_printf(&line,
               TEST_BUILD "/ds4-gguf synth %s -t 1 -o /dev/stdout 2>/dev/null | head -c 16000000 >%s; truncate -s 250G "
                          "%s",
               options, path, path);
    if (shell_run(str_c(&line), &out)) fail_msg("%s\nfailed: %s", str_c(&line), str_c(&out));
    str_free(&line);
    str_free(&out);
    const char *paths[] = {path};
    const struct ds4_options o = {.model_paths = paths,
                                  .n_model_paths = 1,
                                  .ctx = ctx,
                                  .threads = 1,
                                  .report_only = true,
                                  .headers_only = true,
                                  .log = no_log};
    if (ds4_engine_open(&o, &g, &e)) fail_msg("%s", e.message);
    return g;
}

/* Flash (spec deepseek-v4 1): width 4096, 64 heads of 512, query rank 1024, 8 groups of rank 1024, 256 experts of width
 * 2048 of which 6 and a shared one, 4 streams. Of six layers two are plain, two have a compressor of ratio 4 with an
 * index, two one of ratio 128. */
enum {
    D = 4096,
    HEADS = 64 * 512,
    PROJECTIONS = D * 1024 + 1024 * HEADS + D * 512 + HEADS * 1024 + 8192 * D,
    EXPERTS = 7 * 3 * D * 2048,
    EVERY_F32 = 2 * 4 * D * 24 + D * 256, /* gates of the streams, router */
    INDEXED_F32 = 2 * D * 1024 + 2 * D * 256,
    COMPRESSED_F32 = 2 * D * 512,
    INDEX_QUERY = 1024 * 64 * 128, /* F16 in the file, as its weights */
    INDEX_WEIGHTS = D * 64
};

static void close_to(double got, double want)
{
    if (fabs(got / want - 1) > 1e-9) fail_msg("%.9g is not %.9g", got, want);
}

/* Rows that the positions [from, to) see on average, in the raw window and compressed by ratio (0: none). */
static double seen(int from, int to, int ratio, int most)
{
    double sum = 0;
    for (int pos = from; pos < to; pos++) {
        const int compressed = ratio ? (pos + 1) / ratio : 0;
        sum += (pos + 1 < 128 ? pos + 1 : 128) + (compressed < most ? compressed : most);
    }
    return sum / (to - from);
}

static double attention(int from, int to)
{
    const double rows = 2 * seen(from, to, 0, 0) + 2 * seen(from, to, 4, 512) + 2 * seen(from, to, 128, 1 << 30);
    return 2.0 * HEADS * rows;
}

static void costs_of_flash(void **state)
{
    ds4_engine *g = open_header("--preset flash --layers 6 --quant q2", 8192);
    struct ds4_cost c, longer;
    ds4_engine_cost(g, 0, 2048, &c);
    close_to(c.int8, 6.0 * PROJECTIONS + 6.0 * EXPERTS);
    close_to(c.f32, 6.0 * EVERY_F32 + 2.0 * INDEXED_F32 + 2.0 * COMPRESSED_F32);
    close_to(c.attention, attention(0, 2048));
    assert_true(fabs(c.int8 - 1.699e9) < 1e6 && fabs(c.f32 - 0.040e9) < 1e6 && fabs(c.attention - 0.083e9) < 1e6);

    /* The index chooses 512 of 513 windows from the 2,052nd token on: its query is then computed and scored. */
    ds4_engine_cost(g, 2050, 2051, &c);
    ds4_engine_cost(g, 2051, 2052, &longer);
    assert_true(c.weights < 1765000000 && c.weights > 1740000000);
    assert_true(longer.weights - c.weights == 2 * (2ull * INDEX_QUERY + 2ull * INDEX_WEIGHTS));
    close_to(longer.f32 - c.f32, 2.0 * INDEX_QUERY + 2.0 * INDEX_WEIGHTS);
    close_to(longer.attention, attention(2051, 2052) + 2.0 * 64 * 128 * 513);
    ds4_engine_close(g);
}

/* A context of 2^20 tokens: rows of 43 layers as the model rounds them, the raw windows, logits and rewind points. */
static void the_longest_context_fits_into_4_gib(void **state)
{
    ds4_engine *g = open_header("--preset flash --quant q2", 1 << 20);
    struct ds4_memory_plan p;
    ds4_engine_plan(g, &p);
    assert_int_equal(p.ctx, 1 << 20);
    const uint64_t rows = (uint64_t)21 * (1 << 18) * (583 + 68) + (uint64_t)20 * (1 << 13) * 583;
    assert_true(p.session > rows && p.anchors == (uint64_t)256 << 20);
    if (p.session + p.anchors >= (uint64_t)4 << 30) fail_msg("%.3f GiB", (double)(p.session + p.anchors) / (1 << 30));
    ds4_engine_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_of_flash),
        cmocka_unit_test(the_longest_context_fits_into_4_gib),
    };
    return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
