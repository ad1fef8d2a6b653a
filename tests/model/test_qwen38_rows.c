/* A row of Qwen3.8 depends on nothing but its own history: whole prompts, chunks of any size, single tokens and drafts
 * of which a part is kept give the same bits, on the judge and on cpu; cpu stays close to the judge. */
#include "../support/model_run.h"
#include "../support/synth_qwen38.h"
#include "../support/temp_files.h"
#include "base/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_IDS = 256 };

struct trial {
    struct qwen38_case c;
    char path[TEMP_PATH];
    int32_t ids[MOST_IDS], rope[3 * MOST_IDS];
    size_t bytes; /* of all logits */
    double *want, *got;
};

static void prompt_open(struct trial *p, int i, uint32_t type, uint32_t experts)
{
    struct err e = {0};
    memset(p, 0, sizeof *p);
    p->c = qwen38_case_at(i);
    if (type) p->c.shape.type = type, p->c.shape.experts = experts;
    temp_file(p->path);
    if (synth_qwen38_write(p->path, &p->c.shape, &e)) fail_msg("%s", e.msg);
    qwen38_case_ids(&p->c, p->ids);
    qwen38_case_positions(&p->c, p->rope);
    p->bytes = (size_t)p->c.n_ids * (size_t)p->c.shape.V * sizeof *p->want;
    p->want = mem_alloc(p->bytes);
    p->got = mem_alloc(p->bytes);
}

static void prompt_close(struct trial *p)
{
    mem_free(p->want);
    mem_free(p->got);
    temp_remove(p->path);
}

static void run_open(struct trial *p, struct model_run *r, const char *backend, int threads, bool rounded)
{
    model_run_open(r, p->path,
                   &(struct model_run_options){.backend = backend,
                                               .threads = threads,
                                               .kv_sim_off = !rounded,
                                               .draft = p->c.shape.draft,
                                               .rows_max = MOST_IDS});
    r->rope = p->rope;
}

static void run_chunks(struct trial *p, const char *backend, int threads, bool rounded, int chunk, double *logits)
{
    struct model_run r;
    run_open(p, &r, backend, threads, rounded);
    model_run_all(&r, p->ids, p->c.n_ids, chunk, logits);
    model_run_close(&r);
}

/* One step of n rows behind the history; the first `keep` become part of it, in two commits where there are two. */
static void step_keep(struct model_run *r, const int32_t *ids, int n, int keep, double *logits)
{
    model_run_begin(r, ids, n);
    for (int l = 0; l < r->family->n_layers(r->model); l++) model_run_layer(r, l);
    model_run_head(r, logits);
    if (keep > 1) model_run_commit(r, keep / 2);
    model_run_commit(r, keep);
}

/* Drafts: right tokens and then wrong ones, of which only the right ones are kept; now and then a bulk step is dropped.
 */
static void run_drafts(struct trial *p, const char *backend, bool rounded, double *logits)
{
    struct model_run r;
    const int V = p->c.shape.V, n_ids = p->c.n_ids;
    double *step = mem_alloc((size_t)MOST_IDS * (size_t)V * sizeof *step);
    run_open(p, &r, backend, 2, rounded);
    for (int at = 0, k = 0; at < n_ids; k++) {
        int32_t ids[16];
        const int left = n_ids - at, right = left < k % 6 + 1 ? left : k % 6 + 1, wrong = k % 4;
        for (int i = 0; i < right + wrong; i++) ids[i] = i < right ? p->ids[at + i] : (p->ids[at] + 7 * i + 1) % V;
        if (k % 9 == 4 && at + 20 < n_ids) step_keep(&r, p->ids, 20, 0, step);
        step_keep(&r, ids, right + wrong, right, step);
        memcpy(logits + (size_t)at * (size_t)V, step, (size_t)right * (size_t)V * sizeof *step);
        at += right;
    }
    model_run_close(&r);
    mem_free(step);
}

static void same(const struct trial *p, const char *what)
{
    if (!memcmp(p->want, p->got, p->bytes)) return;
    for (size_t i = 0; i < p->bytes / sizeof *p->got; i++)
        if (p->want[i] != p->got[i])
            fail_msg("%s, %s: logits of token %zu differ", p->c.name, what, i / (size_t)p->c.shape.V);
}

static void rows_are_the_same(struct trial *p, const char *backend, bool rounded)
{
    static const int chunks[] = {1, 7, 16, 33, 64};
    run_chunks(p, backend, 1, rounded, MOST_IDS, p->want);
    for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++) {
        char what[64];
        snprintf(what, sizeof what, "%s, chunks of %d", backend, chunks[k]);
        memset(p->got, 0, p->bytes);
        run_chunks(p, backend, k % 3 + 1, rounded, chunks[k], p->got);
        same(p, what);
    }
    memset(p->got, 0, p->bytes);
    run_drafts(p, backend, rounded, p->got);
    same(p, "drafts");
}

static void any_steps_give_the_same_rows_on_ref(void **state)
{
    for (int i = 0; i < qwen38_case_count(); i++) {
        struct trial p;
        prompt_open(&p, i, 0, 0);
        rows_are_the_same(&p, "ref", i % 2);
        prompt_close(&p);
    }
}

static void any_steps_give_the_same_rows_on_cpu(void **state)
{
    for (int i = 0; i < qwen38_case_count(); i++) {
        struct trial p;
        prompt_open(&p, i, 0, 0);
        rows_are_the_same(&p, "cpu", i % 2 == 0);
        prompt_close(&p);
    }
}

/* Largest |difference| over largest |logit| of a position; the worst position. */
static double distance(const struct trial *p)
{
    const int V = p->c.shape.V;
    double most = 0;
    for (int t = 0; t < p->c.n_ids; t++) {
        double diff = 0, top = 0;
        for (int i = t * V; i < (t + 1) * V; i++) {
            diff = fmax(diff, fabs(p->got[i] - p->want[i]));
            top = fmax(top, fabs(p->want[i]));
        }
        most = fmax(most, diff / top);
    }
    return most;
}

static void cpu_is_close_to_ref(void **state)
{
    for (int i = 0; i < qwen38_case_count(); i++) {
        struct trial p;
        prompt_open(&p, i, 0, 0);
        run_chunks(&p, "ref", 1, false, 50, p.want);
        run_chunks(&p, "cpu", 2, false, 50, p.got);
        const double d = distance(&p);
        print_message("%-12s max |d logit| / max |logit| = %.2e\n", p.c.name, d);
        assert_true(d <= 1e-4);
        prompt_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_steps_give_the_same_rows_on_ref),
        cmocka_unit_test(any_steps_give_the_same_rows_on_cpu),
        cmocka_unit_test(cpu_is_close_to_ref),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
