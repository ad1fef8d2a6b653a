/* One model in the forms of all makers and in all types: ds4-gguf synth makes it up, the forms are written apart from
 * the loader's tables, and ds4 gives the same logits, bit for bit, wherever the same values are stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../support/dialect_forms.h"
#include "../support/shell_run.h"
#include "../support/split_files.h"
#include "../support/temp_files.h"
#include "base/file.h"
#include "base/mem.h"
#include "quant/quant.h"

enum { N_IDS = 24, PATH_BYTES = TEMP_PATH + 40, SEEDS = 3 };

/* Rows of the table have 160 values, as the published ones. */
#define QWEN "--arch qwen4exp --set embedding_length=320 --set ple.heads_per_ngram=1 --set ngram_vocab_size_base=300 "

static char folder[TEMP_PATH], base[PATH_BYTES], form[PATH_BYTES], table[PATH_BYTES], out[PATH_BYTES], ids[N_IDS * 5];

static int set_up(void **state)
{
    size_t n = 0;
    temp_folder(folder);
    snprintf(base, sizeof base, "%s/base.gguf", folder);
    snprintf(form, sizeof form, "%s/form.gguf", folder);
    snprintf(table, sizeof table, "%s/table.gguf", folder);
    snprintf(out, sizeof out, "%s/logits", folder);
    for (int i = 0; i < N_IDS; i++) n += (size_t)sprintf(ids + n, "%s%d", i ? "," : "", (i * 37 + i * i) % 1000);
    return 0;
}

static int tear_down(void **state)
{
    return temp_remove(folder);
}

static void synth(const char *options, const char *types, int seed)
{
    struct str command = {0};
    str_printf(&command,
               TEST_BUILD
               "/ds4-gguf synth --preset tiny --quant q8 %s --types '%s' --seed %d -t 1 --overwrite -o %s 2>&1",
               options, types, seed, base);
    struct str said = {0};
    if (shell_run(str_c(&command), &said)) fail_msg("%s\n%s", str_c(&command), str_c(&said));
    str_free(&said);
    str_free(&command);
}

/* Of the files together; the caller frees them. */
static char *logits(const char *models, size_t *n)
{
    struct str command = {0}, said = {0};
    struct err e = {0};
    char *data;
    str_printf(&command, TEST_BUILD "/ds4 %s --token-ids %s --logits-out %s -c 64 -t 1 2>&1", models, ids, out);
    if (shell_run(str_c(&command), &said)) fail_msg("%s\n%s", str_c(&command), str_c(&said));
    if (file_read(out, 1 << 24, &data, n, &e)) fail_msg("%s", e.msg);
    assert_int_equal(*n % (N_IDS * sizeof(float)), 0);
    str_free(&said);
    str_free(&command);
    return data;
}

static char *logits_of(const char *path, size_t *n)
{
    char models[PATH_BYTES + 8];
    snprintf(models, sizeof models, "-m %s", path);
    return logits(models, n);
}

static void same_logits(const char *what, const char *models, const char *want, size_t n_want)
{
    size_t n;
    char *got = logits(models, &n);
    if (n != n_want || memcmp(got, want, n) != 0) fail_msg("%s: other logits", what);
    mem_free(got);
}

static void same_as_form(enum dialect_form f, const char *types, const char *want, size_t n_want)
{
    char what[200], models[2 * PATH_BYTES + 16];
    struct err e = {0};
    snprintf(what, sizeof what, "%s in %s", dialect_form_name(f), types);
    if (dialect_form_write(base, form, f, WIDTHS_KEPT, &e)) fail_msg("%s: %s", what, e.msg);
    snprintf(models, sizeof models, "-m %s", form);
    if (f == FORM_QWEN_REST) {
        if (dialect_form_write(base, table, FORM_QWEN_TABLE, WIDTHS_KEPT, &e)) fail_msg("%s: %s", what, e.msg);
        snprintf(models, sizeof models, "-m %s -m %s", form, table);
    }
    same_logits(what, models, want, n_want);
}

/* ---------------------------------------------------------------- every type, every form */

static bool is_for_weights(uint32_t type)
{
    const struct quant_type *q = quant_type(type);
    return q && q->decode && type != QT_I32 && type != QT_Q8_1 && type != QT_Q8_K;
}

/* Each type in one form, in turn; then types at random, gate and up alike so that they can be one tensor, in all. */
static void run_family(const char *options, enum dialect_form first, enum dialect_form last)
{
    int turn = 0;
    size_t n;
    for (uint32_t type = 0; type < 64; type++) {
        char types[64];
        if (!is_for_weights(type)) continue;
        snprintf(types, sizeof types, ".=%s", quant_type(type)->name);
        synth(options, types, 1);
        char *want = logits_of(base, &n);
        same_as_form((enum dialect_form)(first + turn++ % (last - first + 1)), types, want, n);
        mem_free(want);
    }
    assert_true(turn >= 25);
    for (int seed = 1; seed <= SEEDS; seed++) {
        static const char *const types[SEEDS] = {"ffn_(gate|up)_exps=iq3_s,.=random",
                                                 "ffn_(gate|up)_exps=q4_0,.=random",
                                                 "ffn_(gate|up)_exps=iq1_m,.=random"};
        synth(options, types[seed - 1], seed);
        char *want = logits_of(base, &n);
        for (int f = (int)first; f <= (int)last; f++) same_as_form((enum dialect_form)f, types[seed - 1], want, n);
        mem_free(want);
    }
}

static void deepseek4(void **state)
{
    run_family("", FORM_LC, FORM_MERGED);
}

static void qwen38(void **state)
{
    run_family("--arch qwen4exp --set ple.heads_per_ngram=4", FORM_QWEN_LC, FORM_QWEN_REST);
}

/* ---------------------------------------------------------------- row tables */

/* In the file, in any shard, in a file of its own beside a file or shards; and as F32 with the same values. */
static void tables_of_every_type(void **state)
{
    static const struct split_form split = {.n = 5};
    struct err e = {0};
    char stem[PATH_BYTES], rest[PATH_BYTES], path[256], models[300 + PATH_BYTES];
    int n_types = 0, n_shards;
    snprintf(stem, sizeof stem, "%s/set", folder);
    snprintf(rest, sizeof rest, "%s/rest", folder);
    for (uint32_t type = 0; type < 64; type++) {
        const struct form_edit values = {EDIT_VALUES, "per_layer_token_embd.weight"};
        char types[80];
        size_t n;
        if (!is_for_weights(type) || 160 % quant_type(type)->block != 0) continue;
        snprintf(types, sizeof types, "per_layer_token_embd=%s", quant_type(type)->name);
        synth(QWEN, types, 1);
        char *want = logits_of(base, &n);
        same_as_form(FORM_QWEN_REST, types, want, n);
        if (split_write(form, rest, &split, &n_shards, &e)) fail_msg("%s", e.msg);
        snprintf(models, sizeof models, "-m %s -m %s", split_path(path, rest, &split, 4, n_shards), table);
        same_logits(types, models, want, n);
        if (dialect_form_edit(base, form, &values, 1, &e)) fail_msg("%s", e.msg);
        snprintf(models, sizeof models, "-m %s", form);
        same_logits(types, models, want, n);
        if (split_write(base, stem, &split, &n_shards, &e)) fail_msg("%s", e.msg);
        snprintf(models, sizeof models, "-m %s", split_path(path, stem, &split, 2, n_shards));
        same_logits(types, models, want, n);
        mem_free(want);
        n_types++;
    }
    assert_true(n_types >= 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepseek4),
        cmocka_unit_test(qwen38),
        cmocka_unit_test(tables_of_every_type),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
