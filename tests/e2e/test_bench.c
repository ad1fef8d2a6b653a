/* ds4-bench: which lengths are measured, what a row holds, earlier runs beside it, and wrong use. Speeds are looked at
 * only for being there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/demo_model.h"
#include "../support/shell_run.h"

#define BENCH TEST_BUILD "/ds4-bench"
#define HEADER                                                                                                         \
    "ctx_tokens,prefill_tokens,prefill_tps,gen_tokens,gen_tps,gen_first_ms,gen_steady_tokens,gen_steady_tps,kvcache_"  \
    "bytes\n"

static char model[TEMP_PATH], folder[TEMP_PATH], text[TEMP_PATH + 16];

static int group_set_up(void **state)
{
    demo_shell("-c 512", model, folder);
    snprintf(text, sizeof text, "%s/text", folder);
    FILE *f = fopen(text, "w");
    assert_non_null(f);
    for (int i = 0; i < 60; i++) fprintf(f, "The fox number %d went home through the silver wood and slept.\n", i);
    fclose(f);
    return 0;
}

/* The standard output of ds4-bench on the model and the text; stderr goes to folder/err. Two threads are also measured
 * apart from the model, and for every row: only where that is looked at. */
static void bench(struct str *out, int threads, const char *options)
{
    struct str line = {0};
    str_printf(&line, BENCH " -m %s -t %d %s 2>%s/err", model, threads, options, folder);
    if (shell_run(str_c(&line), out)) fail_msg("%s\nfailed: %s", str_c(&line), str_c(out));
    str_free(&line);
}

static bool said(const char *part)
{
    struct str line = {0}, out = {0};
    str_printf(&line, "grep -qF -e '%s' %s/err", part, folder);
    const int rc = shell_run(str_c(&line), &out);
    str_free(&line);
    str_free(&out);
    return rc == 0;
}

struct row {
    int ctx, prefill;
    double prefill_tps;
    int gen;
    double gen_tps, first_ms;
    int steady;
    double steady_tps;
    long bytes;
};

/* The rows behind the header; how many. */
static int rows_of(const struct str *out, struct row *row, int most)
{
    const char *p = str_c(out);
    assert_true(!strncmp(p, HEADER, strlen(HEADER)));
    int n = 0, used;
    for (p += strlen(HEADER); *p; p += used, n++) {
        struct row *const r = &row[n];
        assert_true(n < most);
        used = 0;
        assert_int_equal(sscanf(p, "%d,%d,%lf,%d,%lf,%lf,%d,%lf,%ld\n%n", &r->ctx, &r->prefill, &r->prefill_tps,
                                &r->gen, &r->gen_tps, &r->first_ms, &r->steady, &r->steady_tps, &r->bytes, &used),
                         9);
        assert_true(used > 0 && r->prefill_tps > 0);
    }
    return n;
}

static void check_lengths(const char *options, const int *want, int n)
{
    struct str out = {0}, line = {0};
    struct row row[16];
    str_printf(&line, "--prompt-file %s -n 2 %s", text, options);
    bench(&out, 1, str_c(&line));
    assert_int_equal(rows_of(&out, row, 16), n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(row[i].ctx, want[i]);
        assert_int_equal(row[i].prefill, i ? want[i] - want[i - 1] : want[i]);
        assert_true(row[i].bytes > 0);
    }
    str_free(&out);
    str_free(&line);
}

static void test_lengths(void **state)
{
    check_lengths("--ctx-start 64 --ctx-max 150 --step-incr 64", (const int[]){64, 128, 150}, 3);
    check_lengths("--ctx-start 10 --ctx-max 25 --step-mul 1.5", (const int[]){10, 15, 23, 25}, 4);
    check_lengths("--ctx-start 1 --ctx-max 3 --step-mul 1.01", (const int[]){1, 2, 3}, 3);
    check_lengths("--ctx-start 100 --ctx-max 100", (const int[]){100}, 1);
}

static void test_row(void **state)
{
    struct str out = {0}, line = {0};
    struct row r;
    str_printf(&line, "--prompt-file %s --ctx-start 64 --ctx-max 64 -n 9 --sessions 3", text);
    bench(&out, 2, str_c(&line));
    assert_int_equal(rows_of(&out, &r, 1), 1);
    assert_int_equal(r.gen, 27);
    assert_int_equal(r.steady, 24);
    assert_true(r.gen_tps > 0 && r.steady_tps > 0 && r.first_ms > 0);
    assert_true(said("machine: 2 threads (2 decode) on") && said("two threads do ") && said("most memory used"));
    assert_true(said("speed: a token takes 0.0") && said(" attention (thousand million multiply-adds), at the peaks "));
    assert_true(said("of the memory") && said("speed: a step reads 0.0"));
    assert_true(said("these were int8 ") && said("it was read at ") && said(" looks meanwhile"));

    str_clear(&line);
    str_printf(&line, "--chat-prompt-file %s --ctx-start 64 --ctx-max 64 -n 0", text);
    bench(&out, 1, str_c(&line));
    assert_int_equal(rows_of(&out, &r, 1), 1);
    assert_true(r.gen == 0 && r.gen_tps == 0 && r.first_ms == 0 && r.steady == 0 && r.bytes > 0);

    str_clear(&line);
    str_printf(&line, "--prompt-file %s --ctx-start 64 --ctx-max 64 -n 1 --teacher-forced-decode", text);
    bench(&out, 1, str_c(&line));
    assert_int_equal(rows_of(&out, &r, 1), 1);
    assert_true(r.gen == 1 && r.steady == 0 && r.steady_tps == 0);
    str_free(&out);
    str_free(&line);
}

/* The logits are those that ds4 writes for the same tokens. */
static void test_logits(void **state)
{
    struct str out = {0}, line = {0};
    str_printf(&line, "--prompt-file %s --ctx-start 64 --ctx-max 64 -n 0 --dump-frontier-logits-dir %s", text, folder);
    bench(&out, 1, str_c(&line));
    str_clear(&line);
    str_printf(&line, "grep -c '\"source\": \"ds4-bench\"' %s/frontier_000064.logits.json", folder);
    shell_expect(str_c(&line), 0, "1");
    str_clear(&line);
    str_printf(&line, "head -c 100000 %s/frontier_000064.logits.json | grep '\"frontier_tokens\": 64'", folder);
    shell_expect(str_c(&line), 0, "64");
    str_free(&out);
    str_free(&line);
}

static void test_compare(void **state)
{
    struct str out = {0}, line = {0};
    str_printf(&line, "%s/old.csv", folder);
    FILE *f = fopen(str_c(&line), "w");
    assert_non_null(f);
    fputs("gen_tps,colour,ctx_tokens,prefill_tps\r\n1.00,red,64,0.50\r\n", f);
    fclose(f);
    str_clear(&line);
    str_printf(&line, "--prompt-file %s --ctx-start 64 --ctx-max 65 -n 2 --compare %s/old.csv --csv %s/new.csv", text,
               folder, folder);
    bench(&out, 1, str_c(&line));
    assert_int_equal(out.n, 0);
    assert_true(said("ctx 64; prefill ") && said(", was 0.50 (+") && said(", was 1.00 (+") && said("ctx 65: not in"));
    str_clear(&line);
    str_printf(&line, "python3 tools/plot_speed.py %s/new.csv -o %s/new.svg && grep -c polyline %s/new.svg", folder,
               folder, folder);
    if (shell_run("python3 -c ''", &out) == 0) shell_expect(str_c(&line), 0, "2");
    str_free(&out);
    str_free(&line);
}

static void refused(int status, const char *part, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void refused(int status, const char *part, const char *fmt, ...)
{
    struct str line = {0};
    va_list ap;
    str_puts(&line, BENCH " ");
    va_start(ap, fmt);
    str_vprintf(&line, fmt, ap);
    va_end(ap);
    str_puts(&line, " 2>&1 >/dev/null");
    shell_expect(str_c(&line), status, part);
    str_free(&line);
}

static void test_refused(void **state)
{
    refused(2, "no model", "--prompt-file %s", text);
    refused(2, "give one of --prompt-file and --chat-prompt-file", "-m %s", model);
    refused(2, "give one of --prompt-file and --chat-prompt-file", "-m %s --prompt-file a --chat-prompt-file b", model);
    refused(2, "--ctx-start 9 is above --ctx-max 8", "-m %s --prompt-file %s --ctx-start 9 --ctx-max 8", model, text);
    refused(2, "--ctx-alloc 200 must be above",
            "-m %s --prompt-file %s --ctx-start 9 --ctx-max 198 -n 2 --ctx-alloc 200", model, text);
    refused(2, "--ctx-alloc here", "-m %s --prompt-file %s -c 4096", model, text);
    refused(1, "are needed; give a longer text", "-m %s --prompt-file %s --ctx-start 9 --ctx-max 5000 -n 2", model,
            text);
    refused(1, "is no folder that exists", "-m %s --prompt-file %s --ctx-max 2048 --dump-frontier-logits-dir /nowhere",
            model, text);
    refused(1, "names no column ctx_tokens", "-m %s --prompt-file %s --compare %s", model, text, text);
    refused(1, "cannot be written", "-m %s --prompt-file %s --csv /nowhere/x.csv", model, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_row),     cmocka_unit_test(test_logits),
        cmocka_unit_test(test_compare), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, group_set_up, NULL);
}
