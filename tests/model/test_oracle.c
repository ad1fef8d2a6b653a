/* The judge against an independent float64 implementation, whole models, every position, roundings off and on. */
#include "../support/golden_logits.h"
#include "../support/model_run.h"
#include "../support/oracle_cases.h"
#include "../support/temp_files.h"
#include "base/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static float *golden_read(const struct oracle_case *c)
{
    char name[64];
    snprintf(name, sizeof name, "oracle_%s", c->name);
    return golden_logits(name, (size_t)2 * (size_t)c->n_ids * (size_t)c->shape.V);
}

static void compare(int i, bool sim)
{
    const struct oracle_case c = oracle_case_at(i);
    const int V = c.shape.V;
    char path[TEMP_PATH];
    struct err e = {0};
    temp_file(path);
    if (synth_deepseek4(path, &c.shape, &e)) fail_msg("%s", e.msg);
    int32_t ids[4096];
    oracle_case_ids(&c, ids);
    float *want = golden_read(&c);
    double *got = mem_alloc((size_t)c.n_ids * (size_t)V * sizeof *got);
    struct model_run r;
    model_run_open(&r, path, &(struct model_run_options){.backend = "ref", .kv_sim_off = !sim});
    model_run_all(&r, ids, c.n_ids, 33, got);
    const double d = golden_distance(got, want + (sim ? (size_t)c.n_ids * (size_t)V : 0), c.n_ids, V);
    print_message("%-14s roundings %-3s max |d logit| / max |logit| = %.2e\n", c.name, sim ? "on" : "off", d);
    assert_true(d <= 2e-6);
    model_run_close(&r);
    mem_free(got);
    mem_free(want);
    temp_remove(path);
}

static void ref_equals_oracle_without_roundings(void **state)
{
    (void)state;
    for (int i = 0; i < oracle_case_count(); i++) compare(i, false);
}

static void ref_equals_oracle_with_roundings(void **state)
{
    (void)state;
    for (int i = 0; i < oracle_case_count(); i++) compare(i, true);
}

/* What is no number is as far away as can be, at any place. */
static void no_number_is_far_away(void **state)
{
    (void)state;
    const float want[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++) {
        double got[4] = {1, 2, 3, 4};
        assert_true(golden_distance(got, want, 2, 2) == 0);
        got[i] = NAN;
        assert_true(golden_distance(got, want, 2, 2) > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_number_is_far_away),
        cmocka_unit_test(ref_equals_oracle_without_roundings),
        cmocka_unit_test(ref_equals_oracle_with_roundings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
