/* One model in the forms of every maker: the same logits, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "../support/dialect_forms.h"
#include "../support/model_run.h"
#include "../support/split_files.h"
#include "../support/synth_model.h"
#include "../support/temp_files.h"
#include "base/mem.h"

enum { N_IDS = 150, CHUNK = 33 };

static double *logits_of(const char *path, int vocabulary)
{
    int32_t ids[N_IDS];
    struct model_run r;
    double *logits = mem_alloc((size_t)N_IDS * (size_t)vocabulary * sizeof *logits);
    for (int i = 0; i < N_IDS; i++) ids[i] = (i * 37 + i * i) % vocabulary;
    model_run_open(&r, path, &(struct model_run_options){.backend = "cpu"});
    model_run_all(&r, ids, N_IDS, CHUNK, logits);
    model_run_close(&r);
    return logits;
}

static void every_form_gives_the_same_logits(void **state)
{
    (void)state;
    struct synth_shape s = synth_tiny();
    struct err e = {0};
    char from[TEMP_PATH], to[TEMP_PATH];
    s.rest = s.embed = QT_F16;
    s.dense = QT_Q8_0;
    s.gate = QT_Q4_0, s.up = QT_Q8_0, s.down = QT_MXFP4;
    temp_file(from);
    temp_file(to);
    if (synth_deepseek4(from, &s, &e)) fail_msg("%s", e.msg);
    double *want = logits_of(from, s.V);
    for (int form = FORM_LC; form < FORM_HOLE; form++)
        for (int widths = WIDTHS_KEPT; widths <= WIDTHS_SIGNED; widths++) {
            /* One type for both where gate and up become one tensor. */
            if (form == FORM_FUSED) continue;
            if (dialect_form_write(from, to, (enum dialect_form)form, (enum form_widths)widths, &e))
                fail_msg("%s", e.msg);
            double *got = logits_of(to, s.V);
            if (memcmp(got, want, (size_t)N_IDS * (size_t)s.V * sizeof *got))
                fail_msg("form %s has other logits", dialect_form_name((enum dialect_form)form));
            mem_free(got);
        }
    mem_free(want);
    temp_remove(from);
    temp_remove(to);
}

/* Named by a shard in the middle. */
static void shards_give_the_same_logits(void **state)
{
    static const struct split_form forms[] = {{.n = 3, .align = 4096}, {.meta_first = true, .link_last = true}};
    struct synth_shape s = synth_tiny();
    struct err e = {0};
    char from[TEMP_PATH], folder[TEMP_PATH], stem[TEMP_PATH + 8], path[256];
    s.dense = QT_Q8_0;
    s.gate = QT_Q4_0, s.up = QT_Q8_0, s.down = QT_MXFP4;
    temp_file(from);
    if (synth_deepseek4(from, &s, &e)) fail_msg("%s", e.msg);
    double *want = logits_of(from, s.V);
    for (int i = 0; i < 2; i++) {
        int n;
        temp_folder(folder);
        snprintf(stem, sizeof stem, "%s/cut", folder);
        if (split_write(from, stem, &forms[i], &n, &e)) fail_msg("%s", e.msg);
        double *got = logits_of(split_path(path, stem, &forms[i], n / 2 + 1, n), s.V);
        assert_memory_equal(got, want, (size_t)N_IDS * (size_t)s.V * sizeof *got);
        mem_free(got);
        temp_remove(folder);
    }
    mem_free(want);
    temp_remove(from);
}

static void fused_experts_give_the_same_logits(void **state)
{
    (void)state;
    struct synth_shape s = synth_wide();
    struct err e = {0};
    char from[TEMP_PATH], to[TEMP_PATH];
    s.gate = s.up = QT_IQ2_XXS, s.down = QT_Q2_K, s.dense = QT_Q8_0;
    temp_file(from);
    temp_file(to);
    if (synth_deepseek4(from, &s, &e) || dialect_form_write(from, to, FORM_FUSED, WIDTHS_KEPT, &e))
        fail_msg("%s", e.msg);
    double *want = logits_of(from, s.V), *got = logits_of(to, s.V);
    assert_memory_equal(got, want, (size_t)N_IDS * (size_t)s.V * sizeof *got);
    mem_free(got);
    mem_free(want);
    temp_remove(from);
    temp_remove(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_gives_the_same_logits),
        cmocka_unit_test(shards_give_the_same_logits),
        cmocka_unit_test(fused_experts_give_the_same_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
