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

static void judge(const struct mix *x)
{
    struct synth_shape s = synth_wide();
    struct err e = {0};
    char path[TEMP_PATH];
    int32_t ids[N_IDS];
    struct model_run r;
    s.dense = x->dense, s.gate = x->gate, s.up = x->up, s.down = x->down;
    s.embed = s.rest = QT_F16;
    temp_file(path);
    if (synth_deepseek4(path, &s, &e)) fail_msg("%s", e.msg);
    for (int i = 0; i < N_IDS; i++) ids[i] = (i * 31 + i * i) % s.V;
    double *logits = test_malloc((size_t)N_IDS * (size_t)s.V * sizeof *logits);
    model_run_open(&r, path, &(struct model_run_options){.backend = "shadow", .kv_sim_off = true, .rows_max = STEP});
    model_run_all(&r, ids, N_IDS, STEP, logits);
    for (int op = 0; op < SHADOW_COUNT; op++) {
        const struct shadow_stats *t = dev_shadow_stats(r.dev, (enum shadow_op)op);
        print_message("%-6s %-10s %6ld rows, worst %.1e", x->name, dev_shadow_name((enum shadow_op)op), t->rows,
                      t->worst);
        print_message(t->flips ? ", %ld with a tie inside, up to %.1e\n" : "\n", t->flips, t->worst_flip);
        assert_true(t->rows > 0);
        assert_true(t->worst <= 1e-6);
        assert_true(t->flips * 20 <= t->rows && t->worst_flip <= 2e-2);
    }
    model_run_close(&r);
    test_free(logits);
    temp_remove(path);
}

static void quantised_files_operation_by_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++) judge(&mixes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(quantised_files_operation_by_operation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
