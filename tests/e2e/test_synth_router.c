/* ds4-gguf synth --router: how often the experts of a model that runs are used. What is chosen is computed here, from
 * the inputs of the FFN and the file's routers (spec deepseek-v4 3.9): the experts with the highest
 * sqrt(softplus(logit)) + bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../support/model_run.h"
#include "../support/temp_files.h"
#include "quant/quant.h"

enum { E = 64, K = 4, D = 256, V = 1024, LAYERS = 4, HASHED = 1, STEP = 64, TOKENS = 512 };

struct counts {
    struct model_run run;
    struct gguf *file;
    const int32_t *tokens; /* of the step at work */
    long use[LAYERS][E];
};

static const struct gguf_tensor *tensor(const struct counts *c, int layer, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", layer, part);
    const struct gguf_tensor *t = gguf_tensor_find(c->file, name, strlen(name));
    if (!t) fail_msg("no %s", name);
    return t;
}

static void count_table(struct counts *c, int layer, int n)
{
    const struct gguf_tensor *t = tensor(c, layer, "ffn_gate_tid2eid.weight");
    for (int i = 0; i < n; i++) {
        int32_t ids[K];
        memcpy(ids, gguf_data(c->file) + t->offset + (size_t)c->tokens[i] * sizeof ids, sizeof ids);
        for (int k = 0; k < K; k++) c->use[layer][ids[k]]++;
    }
}

static void count_row(struct counts *c, int layer, const double *x, const float *router, const float *bias)
{
    double score[E];
    for (int e = 0; e < E; e++) {
        double logit = 0;
        for (int i = 0; i < D; i++) logit += x[i] * router[e * D + i];
        score[e] = sqrt(log1p(exp(logit))) + bias[e];
    }
    for (int k = 0; k < K; k++) {
        int best = 0;
        for (int e = 1; e < E; e++)
            if (score[e] > score[best]) best = e;
        score[best] = -1;
        c->use[layer][best]++;
    }
}

static void count_step(void *arg, enum tap_point point, int layer, struct dev_stream *s, struct dev_buf *buf, int n)
{
    static double x[STEP * D];
    static float router[E * D], bias[E];
    struct counts *c = arg;
    if (layer < HASHED) {
        count_table(c, layer, n);
        return;
    }
    const struct gguf_tensor *t = tensor(c, layer, "ffn_gate_inp.weight"), *b = tensor(c, layer, "exp_probs_b.bias");
    s->dev->op->read_f64(s, buf, 0, n, x);
    for (int e = 0; e < E; e++)
        quant_type(t->type)->decode(gguf_data(c->file) + t->offset + (size_t)e * quant_row_bytes(t->type, D),
                                    router + e * D, D);
    memcpy(bias, gguf_data(c->file) + b->offset, sizeof bias);
    for (int i = 0; i < n; i++) count_row(c, layer, x + i * D, router, bias);
}

static int falling(const void *a, const void *b)
{
    const long x = *(const long *)a, y = *(const long *)b;
    return (x < y) - (x > y);
}

/* Runs tokens that are all equally frequent; then use[layer] falls. */
static void count(struct counts *c, const char *router)
{
    char path[TEMP_PATH], command[300];
    int32_t tokens[TOKENS];
    const struct taps taps = {.wanted = 1u << TAP_FFN_IN, .fn = count_step, .arg = c};
    struct err e = {0};
    memset(c, 0, sizeof *c);
    temp_file(path);
    snprintf(command, sizeof command,
             TEST_BUILD "/ds4-gguf synth --overwrite --preset tiny --quant q8 --router %s --set expert_count=%d "
                        "--set expert_used_count=%d -o %s 2>/dev/null",
             router, E, K, path);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < TOKENS; i++) tokens[i] = i * 629 % V;
    model_run_open(&c->run, path, &(struct model_run_options){.backend = "cpu", .threads = 2, .rows_max = STEP});
    assert_int_equal(gguf_open(path, &c->file, &e), 0);
    for (int at = 0; at < TOKENS; at += STEP) {
        c->tokens = tokens + at;
        model_run_begin(&c->run, tokens + at, STEP);
        c->run.step.taps = &taps;
        for (int l = 0; l < LAYERS; l++) model_run_layer(&c->run, l);
        model_run_commit(&c->run, STEP);
    }
    gguf_close(c->file);
    model_run_close(&c->run);
    temp_remove(path);
    for (int l = 0; l < LAYERS; l++) qsort(c->use[l], E, sizeof(long), falling);
}

/* Share of all uses that the n most used experts have. */
static double top_share(const struct counts *c, int layer, int n)
{
    long sum = 0;
    for (int i = 0; i < n; i++) sum += c->use[layer][i];
    return (double)sum / (TOKENS * K);
}

/* Zipf's law: of the first n of E, the sum of 1/r up to n over that up to E. */
static double law(int n)
{
    double part = 0, all = 0;
    for (int r = 1; r <= E; r++) {
        all += 1.0 / r;
        if (r <= n) part += 1.0 / r;
    }
    return part / all;
}

static void zipf_is_skewed_as_said(void **state)
{
    static struct counts even, zipf;
    count(&even, "uniform");
    count(&zipf, "zipf");
    for (int l = 0; l < LAYERS; l++) {
        print_message("layer %d: the 8 most used of %d have %.3f (uniform), %.3f (zipf, law %.3f)\n", l, E,
                      top_share(&even, l, 8), top_share(&zipf, l, 8), law(8));
        assert_true(top_share(&zipf, l, 8) > 2 * top_share(&even, l, 8));
        for (int n = 1; n <= 32; n *= 2) assert_true(fabs(top_share(&zipf, l, n) - law(n)) < 0.05);
        assert_true(zipf.use[l][E / 2] > 0); /* others are used too */
    }
}

/* Layers have their own popular experts: the same one in all would make a cache look better than it is. */
static void popular_experts_differ(void **state)
{
    char path[TEMP_PATH], command[300];
    struct gguf *g;
    struct err e = {0};
    int most[3];
    temp_file(path);
    snprintf(command, sizeof command,
             TEST_BUILD
             "/ds4-gguf synth --overwrite --preset tiny --quant q8 --router zipf --set expert_count=%d -o %s "
             "2>/dev/null",
             E, path);
    assert_int_equal(system(command), 0);
    assert_int_equal(gguf_open(path, &g, &e), 0);
    for (int l = 1; l < LAYERS; l++) {
        const struct counts c = {.file = g};
        const struct gguf_tensor *b = tensor(&c, l, "exp_probs_b.bias");
        float bias[E];
        memcpy(bias, gguf_data(g) + b->offset, sizeof bias);
        most[l - 1] = 0;
        for (int i = 1; i < E; i++)
            if (bias[i] > bias[most[l - 1]]) most[l - 1] = i;
    }
    gguf_close(g);
    assert_false(most[0] == most[1] && most[1] == most[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zipf_is_skewed_as_said),
        cmocka_unit_test(popular_experts_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
