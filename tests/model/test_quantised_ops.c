/* Files with quantised weights: a whole model on cpu, every operation judged by ref on the same inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "../support/model_run.h"
#include "../support/shadow_device.h"
#include "../support/synth_model.h"
#include "../support/synth_qwen38.h"
#include "../support/temp_files.h"
#include "quant/quant.h"

enum { N_IDS = 150, STEP = 7 };

/* A mix of types as files have them: dense, gate, up, down. */
struct mix {
    const char *name;
    uint32_t dense, gate, up, down;
};
static const struct mix mixes[] = {
    {"f16", QT_F16, QT_F16, QT_F16, QT_F16},        {"q8", QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_Q8_0},
    {"q4", QT_Q8_0, QT_Q4_K, QT_Q4_K, QT_Q4_K},     {"q2", QT_Q8_0, QT_IQ2_XXS, QT_IQ2_XXS, QT_Q2_K},
    {"mixed", QT_Q4_0, QT_Q2_K, QT_Q5_K, QT_MXFP4},
};

/* Operations that a family uses. */
static const enum shadow_op common[] = {SHADOW_EMBED,  SHADOW_RMS_NORM, SHADOW_MATMUL,    SHADOW_ROPE,  SHADOW_SELECT,
                                        SHADOW_ROUTER, SHADOW_MOE,      SHADOW_HC_EXPAND, SHADOW_GATHER};
static const enum shadow_op of_deepseek4[] = {SHADOW_HADAMARD, SHADOW_ATTENTION, SHADOW_COMPRESS, SHADOW_HC_MIX};
static const enum shadow_op of_qwen38[] = {SHADOW_ELEMENT,    SHADOW_DECAY,           SHADOW_CONV,
                                           SHADOW_DELTA_SCAN, SHADOW_MEMORY_GATE,     SHADOW_STORE_WRITE,
                                           SHADOW_POOL,       SHADOW_ATTENTION_HEADS, SHADOW_HC_REDUCE};

static void report(const struct model_run *r, const char *name, const enum shadow_op *ops, int n)
{
    for (int i = 0; i < n; i++) {
        const enum shadow_op op = ops[i];
        const struct shadow_stats *t = dev_shadow_stats(r->dev, op);
        print_message("%-6s %-15s %6ld rows, worst %.1e", name, dev_shadow_name(op), t->rows, t->worst);
        print_message(t->flips ? ", %ld with a tie inside, up to %.1e\n" : "\n", t->flips, t->worst_flip);
        assert_true(t->rows > 0);
        assert_true(t->worst <= 1e-6);
        assert_true(t->flips * 20 <= t->rows && t->worst_flip <= 2e-2);
    }
}
#define REPORT(r, name, ops) report(r, name, ops, (int)(sizeof(ops) / sizeof *(ops)))

static void run(struct model_run *r, const char *path, int vocabulary)
{
    int32_t ids[N_IDS];
    double *logits = test_malloc((size_t)N_IDS * (size_t)vocabulary * sizeof *logits);
    for (int i = 0; i < N_IDS; i++) ids[i] = (i * 31 + i * i) % vocabulary;
    model_run_open(
        r, path, &(struct model_run_options){.backend = "shadow", .kv_sim_off = true, .rows_max = STEP, .draft = true});
    model_run_all(r, ids, N_IDS, STEP, logits);
    test_free(logits);
}

static void judge_qwen38(const struct mix *x)
{
    struct synth_qwen38 s = synth_qwen38_tiny();
    struct err e = {0};
    char path[TEMP_PATH];
    struct model_run r;
    s.type = x->dense, s.experts = x->down, s.draft = true;
    s.E = 128, s.rho = 32, s.F = s.Fs = 32; /* rows of whole blocks */
    temp_file(path);
    if (synth_qwen38_write(path, &s, &e)) fail_msg("%s", e.msg);
    run(&r, path, s.V);
    REPORT(&r, x->name, common);
    REPORT(&r, x->name, of_qwen38);
    model_run_close(&r);
    temp_remove(path);
}

static void judge(const struct mix *x)
{
    struct synth_shape s = synth_wide();
    struct err e = {0};
    char path[TEMP_PATH];
    struct model_run r;
    s.dense = x->dense, s.gate = x->gate, s.up = x->up, s.down = x->down;
    s.embed = s.rest = QT_F16;
    temp_file(path);
    if (synth_deepseek4(path, &s, &e)) fail_msg("%s", e.msg);
    run(&r, path, s.V);
    REPORT(&r, x->name, common);
    REPORT(&r, x->name, of_deepseek4);
    model_run_close(&r);
    temp_remove(path);
}

static void quantised_files_operation_by_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++) judge(&mixes[i]);
}

static void quantised_qwen38_operation_by_operation(void **state)
{
    static const struct mix mixes_qwen[] = {
        {"f16", QT_F16, .down = QT_F16}, {"q8", QT_Q8_0, .down = QT_Q8_0}, {"q4", QT_Q4_0, .down = QT_MXFP4}};
    (void)state;
    for (size_t i = 0; i < sizeof mixes_qwen / sizeof *mixes_qwen; i++) judge_qwen38(&mixes_qwen[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(quantised_files_operation_by_operation),
                                       cmocka_unit_test(quantised_qwen38_operation_by_operation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
