/* The judge against an independent float64 implementation of Qwen3.8: whole models, every position, stored rows as they
 * are and in F16. */
#include "../support/golden_logits.h"
#include "../support/model_run.h"
#include "../support/synth_qwen38.h"
#include "../support/temp_files.h"
#include "base/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* Logits [n_ids][V] without rounding, the same with F16 rows, then those of the draft block [n_ids - 1][V]. */
static float *golden_read(const struct qwen38_case *c)
{
    char name[64];
    const size_t rows = (size_t)(2 * c->n_ids + (c->shape.draft ? c->n_ids - 1 : 0));
    snprintf(name, sizeof name, "qwen38_%s", c->name);
    return golden_logits(name, rows * (size_t)c->shape.V);
}

static void compare(int i, bool rounded)
{
    const struct qwen38_case c = qwen38_case_at(i);
    const size_t values = (size_t)c.n_ids * (size_t)c.shape.V;
    char path[TEMP_PATH];
    struct err e = {0};
    int32_t ids[4096];
    struct model_run r;
    temp_file(path);
    if (synth_qwen38_write(path, &c.shape, &e)) fail_msg("%s", e.msg);
    qwen38_case_ids(&c, ids);
    float *want = golden_read(&c);
    double *got = mem_alloc(values * sizeof *got);
    model_run_open(&r, path, &(struct model_run_options){.backend = "ref", .kv_sim_off = !rounded});
    int32_t rope[3 * 4096];
    qwen38_case_positions(&c, rope);
    r.rope = rope;
    model_run_all(&r, ids, c.n_ids, 33, got);
    const double d = golden_distance(got, want + (rounded ? values : 0), c.n_ids, c.shape.V);
    print_message("%-12s rows %s: max |d logit| / max |logit| = %.2e\n", c.name, rounded ? "F16" : "as they are", d);
    assert_true(d <= 2e-6);
    model_run_close(&r);
    mem_free(got);
    mem_free(want);
    temp_remove(path);
}

static void ref_equals_oracle(void **state)
{
    (void)state;
    for (int i = 0; i < qwen38_case_count(); i++) compare(i, false);
}

static void ref_equals_oracle_with_f16_rows(void **state)
{
    (void)state;
    for (int i = 0; i < qwen38_case_count(); i++) compare(i, true);
}

/* Logits of the draft's guess for the token behind `next`, which follows the history. */
static void draft_logits(struct model_run *r, int32_t next, double *logits)
{
    struct err e = {0};
    const struct guess a = {.stream = r->stream, .scratch = r->scratch, .token = next, .logits = r->logits};
    if (r->family->guess(r->model, r->state, &a, &e)) fail_msg("%s", e.msg);
    r->dev->op->read_f64(r->stream, r->logits, 0, 1, logits);
}

/* Behind every chunk: what the draft block says of the true next token. */
static void draft_compare(int chunk)
{
    const struct qwen38_case c = qwen38_case_at(qwen38_case_count() - 1);
    const size_t V = (size_t)c.shape.V, behind = 2 * (size_t)c.n_ids * V;
    char path[TEMP_PATH];
    struct err e = {0};
    int32_t ids[4096];
    struct model_run r;
    double worst = 0, *got = mem_alloc(V * sizeof *got);
    temp_file(path);
    assert_true(c.shape.draft);
    if (synth_qwen38_write(path, &c.shape, &e)) fail_msg("%s", e.msg);
    qwen38_case_ids(&c, ids);
    float *want = golden_read(&c);
    model_run_open(&r, path, &(struct model_run_options){.backend = "ref", .kv_sim_off = true, .draft = true});
    assert_true(r.family->has_draft(r.model));
    for (int at = 0; at + chunk < c.n_ids; at += chunk) {
        model_run_all(&r, ids + at, chunk, chunk, NULL);
        const int row = at + chunk - 1; /* made of the streams at this position and the token behind */
        draft_logits(&r, ids[row + 1], got);
        worst = fmax(worst, golden_distance(got, want + behind + (size_t)row * V, 1, c.shape.V));
    }
    print_message("%-12s guesses, chunks of %d: max |d logit| / max |logit| = %.2e\n", c.name, chunk, worst);
    assert_true(worst <= 2e-6);
    model_run_close(&r);
    mem_free(got);
    mem_free(want);
    temp_remove(path);
}

static void draft_equals_oracle(void **state)
{
    (void)state;
    draft_compare(1);
    draft_compare(5);
    draft_compare(40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ref_equals_oracle),
        cmocka_unit_test(ref_equals_oracle_with_f16_rows),
        cmocka_unit_test(draft_equals_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
