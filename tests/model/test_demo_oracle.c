/* The judge on the demo model, at the prompts and positions of tests/golden/demo_logits.txt: against float64 logits of
 * an independent implementation (demo_oracle.bin, laid out as tests/oracle/demo_goldens.py says), and against the
 * float32 run that the model was made with, which gives its own distance from a float64 run at every position. */
#include "../support/demo_model.h"
#include "../support/golden_logits.h"
#include "../support/model_run.h"
#include "base/file.h"
#include "base/mem.h"
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_PROMPTS = 8, MAX_IDS = 2048, MAX_AT = 8, TOP = 20, V = 2048, CHUNK = 64 };
enum setting { SIM_OFF, SIM_ON, SETTINGS }; /* as in the binary file; on: rows of the cache are rounded to F16 too */

struct expected {
    double check;
    int id[TOP];
    double logit[TOP];
};

struct golden_prompt {
    char name[32];
    int n, n_at;
    int32_t id[MAX_IDS];
    int at[MAX_AT];
    struct expected top[SETTINGS][MAX_AT];
    const float *oracle; /* [SETTINGS][n_at][V] */
};

struct goldens {
    struct golden_prompt *prompt;
    int n;
    char *bytes, model[TEMP_PATH];
    bool all; /* prompts of any length */
};
static struct goldens goldens;

/* ---------------------------------------------------------------- the files */

static void prompt_read(FILE *f, struct golden_prompt *p)
{
    if (fscanf(f, "%31s %d", p->name, &p->n) != 2 || p->n < 1 || p->n > MAX_IDS) fail_msg("damaged prompt line");
    for (int i = 0; i < p->n; i++) assert_int_equal(fscanf(f, "%d", &p->id[i]), 1);
}

/* A position with its best logits; those of the setting sim_on are left out. */
static void position_read(FILE *f, struct golden_prompt *p, int setting, int k)
{
    struct expected e = {0};
    int at;
    assert_int_equal(fscanf(f, "%d %lf", &at, &e.check), 2);
    for (int i = 0; i < TOP; i++) assert_int_equal(fscanf(f, "%d %lf", &e.id[i], &e.logit[i]), 2);
    assert_true(k < MAX_AT && at >= 0 && at < p->n);
    if (setting == SETTINGS) return;
    p->at[k] = at;
    p->n_at = k + 1;
    p->top[setting][k] = e;
}

static void logits_read(struct goldens *g)
{
    FILE *f = demo_text_open("tests/golden/demo_logits.txt");
    char word[32];
    int setting = SETTINGS, k = 0;
    while (fscanf(f, "%31s", word) == 1) {
        if (!strcmp(word, "#")) {
            while (fgetc(f) != '\n' && !feof(f)) {
            }
        } else if (!strcmp(word, "prompt")) {
            assert_true(g->n < MAX_PROMPTS);
            prompt_read(f, &g->prompt[g->n++]);
        } else if (!strcmp(word, "setting")) {
            assert_int_equal(fscanf(f, "%31s", word), 1);
            setting = !strcmp(word, "sim_off") ? SIM_OFF : !strcmp(word, "sim_on_f16") ? SIM_ON : SETTINGS;
            k = 0;
        } else {
            assert_string_equal(word, "at");
            position_read(f, &g->prompt[g->n - 1], setting, k++);
        }
    }
    fclose(f);
}

static int goldens_open(void **state)
{
    struct goldens *g = &goldens;
    struct err e = {0};
    size_t n, used = 0;
    g->prompt = mem_alloc(MAX_PROMPTS * sizeof *g->prompt);
    memset(g->prompt, 0, MAX_PROMPTS * sizeof *g->prompt);
    logits_read(g);
    if (file_read("tests/golden/demo_oracle.bin", 1 << 24, &g->bytes, &n, &e)) fail_msg("%s", e.msg);
    for (int i = 0; i < g->n; i++) {
        g->prompt[i].oracle = (const float *)(const void *)g->bytes + used;
        used += (size_t)SETTINGS * (size_t)g->prompt[i].n_at * V;
    }
    assert_int_equal(n, used * sizeof(float));
    demo_model_convert("", g->model);
    *state = g;
    return 0;
}

static int goldens_close(void **state)
{
    struct goldens *g = *state;
    if (!g) return 0;
    temp_remove(g->model);
    mem_free(g->bytes);
    mem_free(g->prompt);
    return 0;
}

/* ---------------------------------------------------------------- the judge */

/* Logits at the positions of the prompt, [n_at][V]. */
static void judge(const struct goldens *g, const struct golden_prompt *p, int setting, double *got)
{
    struct model_run r;
    double *step = mem_alloc((size_t)CHUNK * V * sizeof *step);
    model_run_open(&r, g->model,
                   &(struct model_run_options){.backend = "ref", .threads = 2, .kv_sim_off = setting == SIM_OFF});
    assert_int_equal(r.n_vocab, V);
    for (int from = 0, k = 0; from < p->n; from += CHUNK) {
        const int n = p->n - from < CHUNK ? p->n - from : CHUNK;
        const bool wanted = k < p->n_at && p->at[k] < from + n;
        model_run_all(&r, p->id + from, n, n, wanted ? step : NULL);
        for (; k < p->n_at && p->at[k] < from + n; k++)
            memcpy(got + (size_t)k * V, step + (size_t)(p->at[k] - from) * V, V * sizeof *got);
    }
    model_run_close(&r);
    mem_free(step);
}

/* How far the best logits of a position are beyond the float32 run's own distance from float64, which is given with
 * three digits. */
static double made_distance(const double *got, const struct expected *want)
{
    double diff = 0;
    for (int i = 0; i < TOP; i++) diff = fmax(diff, fabs(got[want->id[i]] - want->logit[i]));
    return diff - want->check * 1.005;
}

static void prompt_compare(const struct goldens *g, const struct golden_prompt *p, int setting)
{
    double got[MAX_AT * V], worst = 0, made = -1;
    judge(g, p, setting, got);
    for (int k = 0; k < p->n_at; k++) {
        const float *want = p->oracle + ((size_t)setting * (size_t)p->n_at + (size_t)k) * V;
        worst = fmax(worst, golden_distance(got + (size_t)k * V, want, 1, V));
        made = fmax(made, made_distance(got + (size_t)k * V, &p->top[setting][k]));
    }
    print_message("%-16s %4d tokens, roundings %-3s max |d logit| / max |logit| = %.2e\n", p->name, p->n,
                  setting == SIM_ON ? "on" : "off", worst);
    assert_true(worst <= 2e-6);
    assert_true(made <= 2e-6);
}

static void prompts_compare(const struct goldens *g, int setting, int most, int least)
{
    int n = 0;
    for (int i = 0; i < g->n; i++) {
        const int length = g->prompt[i].n;
        if (!g->all && length > most && length < least) continue;
        prompt_compare(g, &g->prompt[i], setting);
        n++;
    }
    assert_true(n >= 4);
}

static void ref_equals_oracle_without_roundings(void **state)
{
    prompts_compare(*state, SIM_OFF, 500, INT_MAX);
}

static void ref_equals_oracle_with_roundings(void **state)
{
    prompts_compare(*state, SIM_ON, 500, 1000);
}

/* With a word behind its name the program takes all prompts in both settings (45 s of processor time, else 20). */
int main(int argc, char **argv)
{
    (void)argv;
    goldens.all = argc > 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ref_equals_oracle_without_roundings),
        cmocka_unit_test(ref_equals_oracle_with_roundings),
    };
    return cmocka_run_group_tests(tests, goldens_open, goldens_close);
}
