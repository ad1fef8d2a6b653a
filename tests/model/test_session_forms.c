/* A session on file belongs to the weights, not to who wrote them down: what was saved with a model in one form goes on
 * with it in the forms of all other makers, with and without the keys that change nothing, in any order of tensors and
 * cut into shards. Of other weights it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "../support/dialect_forms.h"
#include "../support/engine_kit.h"
#include "../support/split_files.h"
#include "../support/synth_model.h"
#include "../support/synth_qwen38.h"
#include "../support/temp_files.h"
#include "base/err.h"
#include "quant/quant.h"

enum { N_TOKENS = 40 };

static char base[TEMP_PATH], form[TEMP_PATH], table[TEMP_PATH], file[TEMP_PATH];

static int set_up(void **state)
{
    temp_file(base), temp_file(form), temp_file(table), temp_file(file);
    return 0;
}

static ds4_engine *engine_on(const char *const *paths, int n, bool draft)
{
    struct ds4_options o = kit_options(KIT_Q8);
    o.model_paths = paths;
    o.n_model_paths = n;
    o.draft = draft;
    return kit_open(&o);
}

static void save(const char *path, bool draft)
{
    struct ds4_error e = {0};
    ds4_engine *g = engine_on(&path, 1, draft);
    ds4_session *s = kit_session(g);
    kit_eval(s, kit_tokens(), N_TOKENS);
    if (ds4_session_save(s, file, &e)) fail_msg("%s", e.message);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* says NULL: it is taken. */
static void load(const char *what, const char *const *paths, int n, bool draft, const char *says)
{
    struct ds4_error e = {0};
    ds4_engine *g = engine_on(paths, n, draft);
    ds4_session *s = kit_session(g);
    const int rc = ds4_session_load(s, file, &e);
    if (!says && rc) fail_msg("%s: %s", what, e.message);
    if (!says) assert_int_equal(ds4_session_length(s), N_TOKENS);
    if (says && (!rc || !strstr(e.message, says))) fail_msg("%s: %s", what, rc ? e.message : "taken");
    ds4_session_free(s);
    ds4_engine_close(g);
}

static void write_form(enum dialect_form f, const char *to)
{
    struct err e = {0};
    if (dialect_form_write(base, to, f, WIDTHS_KEPT, &e)) fail_msg("%s: %s", dialect_form_name(f), e.msg);
}

static void edit(const struct form_edit *change)
{
    struct err e = {0};
    if (dialect_form_edit(base, form, change, 1, &e)) fail_msg("%s", e.msg);
}

static void forms_of_deepseek4(void **state)
{
    static const struct form_edit same[] = {{EDIT_DROP, "deepseek4.nextn_predict_layers"},
                                            {EDIT_U32, "deepseek4.nextn_predict_layers", 3},
                                            {EDIT_U32, "deepseek4.context_length", 5000}};
    static const struct form_edit other[] = {{EDIT_F32, "deepseek4.rope.freq_base", .real = 20000},
                                             {EDIT_POKE, "blk.1.attn_q_b.weight", 77, .index = 3}};
    struct synth_shape s = synth_wide();
    const char *path = form;
    struct err e = {0};
    s.V = KIT_VOCAB, s.dense = QT_Q8_0, s.gate = s.up = QT_Q4_0, s.down = QT_MXFP4;
    if (synth_deepseek4(base, &s, &e)) fail_msg("%s", e.msg);
    save(base, false);
    for (int f = FORM_DS4; f < FORM_HOLE; f++) {
        write_form((enum dialect_form)f, form);
        load(dialect_form_name((enum dialect_form)f), &path, 1, false, NULL);
    }
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) edit(&same[i]), load(same[i].name, &path, 1, false, NULL);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        edit(&other[i]), load(other[i].name, &path, 1, false, "another model file");
}

static void forms_of_qwen38(void **state)
{
    struct synth_qwen38 s = synth_qwen38_tiny();
    const char *const paths[] = {form, table}, *whole = base;
    struct err e = {0};
    s.V = KIT_VOCAB, s.experts = QT_Q8_0, s.draft = true;
    if (synth_qwen38_write(base, &s, &e)) fail_msg("%s", e.msg);
    save(base, false);
    write_form(FORM_QWEN_TABLE, table);
    for (int f = FORM_QWEN_LC; f <= FORM_QWEN_REST; f++) {
        write_form((enum dialect_form)f, form);
        load(dialect_form_name((enum dialect_form)f), paths, f == FORM_QWEN_REST ? 2 : 1, false, NULL);
    }
    load("with a draft", &whole, 1, true, "without --draft");
    save(base, true);
    for (int f = FORM_QWEN_LC; f <= FORM_QWEN_FIRST; f++) {
        write_form((enum dialect_form)f, form);
        load(dialect_form_name((enum dialect_form)f), paths, 1, true, NULL);
    }
    load("without a draft", &whole, 1, false, "with --draft");
}

/* The draft that a file brings along is no part of the trunk. */
static void files_without_a_draft(void **state)
{
    struct synth_qwen38 s = synth_qwen38_tiny();
    const char *path = form;
    struct err e = {0};
    s.V = KIT_VOCAB, s.draft = true;
    if (synth_qwen38_write(base, &s, &e)) fail_msg("%s", e.msg);
    s.draft = false;
    if (synth_qwen38_write(form, &s, &e)) fail_msg("%s", e.msg);
    save(base, false);
    load("without a draft block", &path, 1, false, NULL);
}

static void shards(void **state)
{
    static const struct split_form cut = {.n = 3, .align = 4096};
    struct synth_shape s = synth_tiny();
    struct err e = {0};
    char folder[TEMP_PATH], stem[TEMP_PATH + 8], path[256];
    const char *shard = path;
    int n;
    s.V = KIT_VOCAB;
    if (synth_deepseek4(base, &s, &e)) fail_msg("%s", e.msg);
    save(base, false);
    temp_folder(folder);
    snprintf(stem, sizeof stem, "%s/cut", folder);
    if (split_write(base, stem, &cut, &n, &e)) fail_msg("%s", e.msg);
    split_path(path, stem, &cut, 2, n);
    load("shards", &shard, 1, false, NULL);
    temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_deepseek4),
        cmocka_unit_test(forms_of_qwen38),
        cmocka_unit_test(files_without_a_draft),
        cmocka_unit_test(shards),
    };
    return cmocka_run_group_tests(tests, set_up, kit_teardown);
}
