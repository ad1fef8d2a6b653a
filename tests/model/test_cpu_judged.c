/* The cpu device against the judge on whole models. Roundings off: logits. Roundings on: one last bit between two
 * devices becomes another code, and that another answer, so each layer is judged by itself (docs/numerics.md): the
 * judge gets the layer's inputs and the committed rows of cpu. A third run without roundings supplies the values before
 * rounding, against which differing codes are held. */
#include "../support/model_run.h"
#include "../support/oracle_cases.h"
#include "../support/temp_files.h"
#include "base/mem.h"
#include "models/deepseek4/deepseek4_internal.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void case_file(const struct oracle_case *c, char path[TEMP_PATH])
{
    struct err e = {0};
    temp_file(path);
    if (synth_deepseek4(path, &c->shape, &e)) fail_msg("%s", e.msg);
}

/* ---------------------------------------------------------------- roundings off: end to end */

static void logits_compare(int i)
{
    const struct oracle_case c = oracle_case_at(i);
    const size_t n = (size_t)c.n_ids * (size_t)c.shape.V;
    char path[TEMP_PATH];
    int32_t ids[4096];
    double *want = mem_alloc(n * sizeof *want), *got = mem_alloc(n * sizeof *got), worst = 0;
    case_file(&c, path);
    oracle_case_ids(&c, ids);
    struct model_run r;
    model_run_open(&r, path, &(struct model_run_options){.backend = "ref", .kv_sim_off = true});
    model_run_all(&r, ids, c.n_ids, 50, want);
    model_run_close(&r);
    model_run_open(&r, path, &(struct model_run_options){.backend = "cpu", .kv_sim_off = true, .threads = 2});
    model_run_all(&r, ids, c.n_ids, 33, got);
    model_run_close(&r);
    for (size_t t = 0; t < (size_t)c.n_ids; t++) {
        double diff = 0, top = 0;
        for (size_t k = t * (size_t)c.shape.V; k < (t + 1) * (size_t)c.shape.V; k++) {
            diff = fmax(diff, fabs(got[k] - want[k]));
            top = fmax(top, fabs(want[k]));
        }
        worst = fmax(worst, diff / top);
    }
    print_message("%-14s max |d logit| / max |logit| = %.2e\n", c.name, worst);
    assert_true(worst <= 1e-4);
    mem_free(want);
    mem_free(got);
    temp_remove(path);
}

static void cpu_equals_ref_without_roundings(void **state)
{
    (void)state;
    for (int i = 0; i < oracle_case_count(); i++) logits_compare(i);
}

/* ---------------------------------------------------------------- roundings on: layer by layer */

enum { CPU, REF, EXACT, RUNS };

struct judged {
    struct model_run run[RUNS];
    double *out[2][RUNS]; /* attention and FFN outputs of the layer at work, [T][D] */
    bool *excused;        /* [T]: a code or a selection of this row differed, rightly */
    int rows, excuses, codes, other_codes;
};

static void keep_output(void *arg, enum tap_point point, int layer, struct dev_stream *s, struct dev_buf *buf, int n)
{
    (void)layer;
    double **out = arg;
    s->dev->op->read_f64(s, buf, 0, n, out[point == TAP_FFN_OUT]);
}

/* a and b round x; they may differ only where x lies at the tie: within 1e-4 of it, or, for values that a rotation has
 * made small by cancellation, within the noise of F32 at the size of the row. */
static bool rounding_fits(double a, double b, double x, double row_size)
{
    return a == b || fabs(x - (a + b) / 2) <= fmax(1e-4 * fmax(fabs(x), fabs(a - b)), 1e-6 * row_size);
}

static bool values_fit(struct judged *j, const double *a, const double *b, const double *x, int n)
{
    bool same = true;
    double size = 0;
    for (int i = 0; i < n; i++) size = fmax(size, fabs(x[i]));
    for (int i = 0; i < n; i++) {
        j->codes++;
        if (a[i] == b[i]) continue;
        j->other_codes++;
        same = false;
        if (!rounding_fits(a[i], b[i], x[i], size))
            fail_msg("value %d: cpu %.9g, ref %.9g, before rounding %.9g", i, a[i], b[i], x[i]);
    }
    return same;
}

static struct block_scratch *scratch_of(struct judged *j, int run)
{
    return j->run[run].scratch;
}

static void read_rows(struct judged *j, int run, int id, int n, double *to)
{
    struct model_run *r = &j->run[run];
    r->dev->op->read_f64(r->stream, scratch_of(j, run)->buf[id], 0, n, to);
}

static void read_ids(struct judged *j, int run, int id, int n, int32_t *to)
{
    struct model_run *r = &j->run[run];
    r->dev->op->read_i32(r->stream, scratch_of(j, run)->buf[id], 0, n, to);
}

/* Packed raw rows of this step. */
static void judge_raw(struct judged *j, const struct deepseek4_shape *s, int l, int pos0, int n)
{
    double v[RUNS][512];
    unsigned char bytes[8192];
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < RUNS; k++) {
            struct model_run *r = &j->run[k];
            const struct deepseek4_state *st = r->state;
            const struct row_format f = k == EXACT ? (struct row_format){.kind = ROWFMT_F32, .width = s->d} : s->kv_row;
            r->dev->op->ring_get(st->base.layer[l].ring[RING_RAW], pos0 + i, 1, bytes);
            r->dev->op->row_decode(r->dev, &f, bytes, v[k]);
        }
        /* Another FP8 code shows in the outputs; another last bit of the F16 part must not. */
        if (!values_fit(j, v[CPU], v[REF], v[EXACT], s->kv_row.n_fp8)) j->excused[i] = true;
        values_fit(j, v[CPU] + s->kv_row.n_fp8, v[REF] + s->kv_row.n_fp8, v[EXACT] + s->kv_row.n_fp8,
                   s->d - s->kv_row.n_fp8);
    }
}

/* A selection differs rightly if everything chosen by only one side scores within 1e-4 of the other side's least. */
static void judge_choice(const double *score, int n_all, const int32_t *a, const int32_t *b, int k)
{
    double least = INFINITY, top = 0;
    for (int i = 0; i < k; i++) least = fmin(least, score[b[i]]);
    for (int i = 0; i < n_all; i++) top = fmax(top, fabs(score[i]));
    for (int i = 0; i < k; i++)
        if (score[a[i]] < least - 1e-4 * top)
            fail_msg("chose %d of score %.9g; the least of the judge's choice is %.9g", a[i], score[a[i]], least);
}

static void judge_experts(struct judged *j, const struct deepseek4_model *m, int l, int n)
{
    const struct deepseek4_layer_shape *y = &m->shape.layer[l];
    if (y->hashed) return;
    int32_t ids[2][64 * 64];
    double logits[64 * 64], bias[64], score[64];
    struct model_run *r = &j->run[REF];
    read_ids(j, CPU, S_IDS, n, ids[0]);
    read_ids(j, REF, S_IDS, n, ids[1]);
    read_rows(j, REF, S_ROUTER, n, logits);
    const struct tensor_view *v = canonical_tensor(r->canonical, "blk.%d.exp_probs_b.bias", l);
    for (int e = 0; e < y->E; e++) bias[e] = v ? (double)((const float *)(const void *)v->data)[e] : 0;
    for (int i = 0; i < n; i++) {
        if (!memcmp(ids[0] + i * y->K, ids[1] + i * y->K, (size_t)y->K * sizeof(int32_t))) continue;
        for (int e = 0; e < y->E; e++) score[e] = sqrt(log1p(exp(logits[i * y->E + e]))) + bias[e];
        judge_choice(score, y->E, ids[0] + i * y->K, ids[1] + i * y->K, y->K);
        j->excused[i] = true;
    }
}

/* Scores of the compressed rows that row i of the step sees, as the judge has them. */
static void index_scores(struct judged *j, const struct deepseek4_shape *s, int l, int i, int n_rows, double *score)
{
    struct model_run *r = &j->run[REF];
    const struct deepseek4_state *st = r->state;
    double *q = mem_alloc((size_t)64 * (size_t)(s->IH * s->ID) * sizeof *q), weight[64 * 16], row[512];
    unsigned char bytes[8192];
    read_rows(j, REF, S_INDEX_Q, i + 1, q);
    read_rows(j, REF, S_INDEX_W, i + 1, weight);
    for (int c = 0; c < n_rows; c++) {
        r->dev->op->store_get(st->base.layer[l].store[STORE_INDEX], c, 1, bytes);
        r->dev->op->row_decode(r->dev, &s->index_row, bytes, row);
        score[c] = 0;
        for (int h = 0; h < s->IH; h++) {
            double dot = 0;
            for (int k = 0; k < s->ID; k++) dot += q[(i * s->IH + h) * s->ID + k] * row[k];
            score[c] += weight[i * s->IH + h] / sqrt((double)s->ID * s->IH) * fmax(0, dot);
        }
    }
    mem_free(q);
}

static void judge_selection(struct judged *j, const struct deepseek4_shape *s, int l, int pos0, int n)
{
    if (!s->layer[l].indexed || (pos0 + n) / s->layer[l].ratio <= s->IK) return;
    const int w = 1 + s->IK, heads = s->IH * s->ID;
    int32_t *sel[2] = {mem_alloc((size_t)n * (size_t)w * sizeof(int32_t)),
                       mem_alloc((size_t)n * (size_t)w * sizeof(int32_t))};
    double *q[RUNS];
    for (int k = 0; k < RUNS; k++)
        read_rows(j, k, S_INDEX_Q, n, q[k] = mem_alloc((size_t)n * (size_t)heads * sizeof(double)));
    for (int k = 0; k < 2; k++) read_ids(j, k, S_SELECT, n, sel[k]);
    for (int i = 0; i < n; i++) {
        const int32_t *a = sel[CPU] + i * w, *b = sel[REF] + i * w;
        const bool same_q = values_fit(j, q[CPU] + i * heads, q[REF] + i * heads, q[EXACT] + i * heads, heads);
        assert_int_equal(a[0], b[0]);
        if (a[0] < 0 || !memcmp(a, b, (size_t)w * sizeof *a)) continue;
        double score[4096];
        const int visible = (pos0 + i + 1) / s->layer[l].ratio;
        index_scores(j, s, l, i, visible, score);
        if (same_q) judge_choice(score, visible, a + 1, b + 1, s->IK);
        j->excused[i] = true;
    }
    for (int k = 0; k < RUNS; k++) mem_free(q[k]);
    mem_free(sel[0]);
    mem_free(sel[1]);
}

static void judge_outputs(struct judged *j, int D, int l, int pos0, int n)
{
    for (int i = 0; i < n; i++) {
        j->rows++;
        if (j->excused[i]) {
            j->excuses++;
            continue;
        }
        for (int o = 0; o < 2; o++) {
            double diff = 0, size = 0;
            for (int k = i * D; k < (i + 1) * D; k++) {
                const double d = j->out[o][CPU][k] - j->out[o][REF][k];
                diff += d * d;
                size += j->out[o][REF][k] * j->out[o][REF][k];
            }
            if (sqrt(diff) > 1e-4 * sqrt(size))
                fail_msg("layer %d position %d: %s differs by %.2e (RMS)", l, pos0 + i, o ? "FFN" : "attention",
                         sqrt(diff / size));
        }
    }
}

static void store_row(struct judged *j, int run, int l, int id, int c, const struct row_format *f, double *v)
{
    struct model_run *r = &j->run[run];
    unsigned char bytes[8192];
    r->dev->op->store_get(((struct deepseek4_state *)r->state)->base.layer[l].store[id], c, 1, bytes);
    r->dev->op->row_decode(r->dev, f, bytes, v);
}

/* Format of the rows of store `id` in a run; false: the layer has no such store. */
static bool store_format(const struct deepseek4_shape *s, int l, int id, int run, struct row_format *f)
{
    *f = id == STORE_KV ? s->kv_row : s->index_row;
    if (run == EXACT) *f = (struct row_format){.kind = ROWFMT_F32, .width = f->width};
    return s->layer[l].ratio && (id == STORE_KV || s->layer[l].indexed);
}

/* Rows that this step has emitted; another code excuses the rows of the step that see it. */
static void judge_stores(struct judged *j, const struct deepseek4_shape *s, int l, int pos0, int n)
{
    const int ratio = s->layer[l].ratio;
    for (int id = 0; id < STORE_COUNT; id++) {
        struct row_format f;
        if (!store_format(s, l, id, CPU, &f)) continue;
        const int rounded = f.kind == ROWFMT_FP8 ? f.n_fp8 : f.width;
        for (int c = pos0 / ratio; c < (pos0 + n) / ratio; c++) {
            double v[RUNS][512];
            for (int k = 0; k < RUNS; k++) store_format(s, l, id, k, &f), store_row(j, k, l, id, c, &f, v[k]);
            if (!values_fit(j, v[CPU], v[REF], v[EXACT], rounded)) j->excused[ratio * (c + 1) - 1 - pos0] = true;
            values_fit(j, v[CPU] + rounded, v[REF] + rounded, v[EXACT] + rounded, f.width - rounded);
        }
    }
}

/* The committed rows of cpu become those of the others. */
static void stores_force(struct judged *j, const struct deepseek4_shape *s, int l, int from, int to)
{
    for (int id = 0; id < STORE_COUNT; id++) {
        struct row_format f;
        if (!store_format(s, l, id, CPU, &f)) continue;
        for (int c = from / s->layer[l].ratio; c < to / s->layer[l].ratio; c++) {
            double v[512];
            unsigned char bytes[8192];
            store_format(s, l, id, CPU, &f);
            store_row(j, CPU, l, id, c, &f, v);
            for (int k = REF; k < RUNS; k++) {
                struct model_run *r = &j->run[k];
                store_format(s, l, id, k, &f);
                r->dev->op->row_encode(r->dev, &f, v, bytes);
                r->dev->op->store_put(((struct deepseek4_state *)r->state)->base.layer[l].store[id], c, 1, bytes);
            }
        }
    }
}

static void rings_force(struct judged *j, const struct deepseek4_shape *s, int l, int length)
{
    const struct deepseek4_layer_shape *y = &s->layer[l];
    for (int id = 0; id < RING_COUNT; id++) {
        struct dev_ring *ring = ((struct deepseek4_state *)j->run[CPU].state)->base.layer[l].ring[id];
        if (!ring) continue;
        const int c = y->indexed ? 2 : 1, w = id == RING_INDEX_KV || id == RING_INDEX_SCORE ? s->ID : s->d;
        const struct row_format f32 = {.kind = ROWFMT_F32, .width = id == RING_RAW ? s->d : c * w},
                                f = id == RING_RAW ? s->kv_row : f32;
        const int span = id == RING_RAW ? s->W : c * y->ratio;
        for (int pos = length > span ? length - span : 0; pos < length; pos++) {
            double v[1024];
            unsigned char bytes[8192];
            j->run[CPU].dev->op->ring_get(ring, pos, 1, bytes);
            j->run[CPU].dev->op->row_decode(j->run[CPU].dev, &f, bytes, v);
            for (int k = REF; k < RUNS; k++) {
                struct model_run *r = &j->run[k];
                r->dev->op->row_encode(r->dev, k == EXACT ? &f32 : &f, v, bytes);
                r->dev->op->ring_put(((struct deepseek4_state *)r->state)->base.layer[l].ring[id], pos, 1, bytes);
            }
        }
    }
}

static void layer_force(struct judged *j, int l, int n)
{
    struct model_run *cpu = &j->run[CPU];
    struct buf_desc d;
    cpu->family->carry(cpu->model, n, &d);
    double *rows = mem_alloc((size_t)n * (size_t)(d.groups * d.width) * sizeof *rows);
    cpu->dev->op->read_f64(cpu->stream, cpu->carry[0], 0, n, rows);
    for (int k = 0; k < RUNS; k++) {
        struct model_run *r = &j->run[k];
        double *out[2] = {j->out[0][k], j->out[1][k]};
        const struct taps taps = {.wanted = 1 << TAP_ATTN_OUT | 1 << TAP_FFN_OUT, .fn = keep_output, .arg = out};
        if (k != CPU) r->dev->op->write_f64(r->stream, r->carry[0], 0, n, rows);
        r->step.taps = &taps;
        model_run_layer(r, l);
        r->step.taps = NULL;
    }
    mem_free(rows);
}

static void step_judge(struct judged *j, const int32_t *ids, int n)
{
    const struct deepseek4_model *m = j->run[CPU].model;
    const struct deepseek4_shape *s = &m->shape;
    const int pos0 = block_state_length(j->run[CPU].state);
    for (int k = 0; k < RUNS; k++) model_run_begin(&j->run[k], ids, n);
    for (int l = 0; l < s->L; l++) {
        memset(j->excused, 0, (size_t)n * sizeof *j->excused);
        layer_force(j, l, n);
        judge_raw(j, s, l, pos0, n);
        judge_stores(j, s, l, pos0, n);
        judge_selection(j, s, l, pos0, n);
        judge_experts(j, m, l, n);
        for (int i = 1; i < n; i++)
            j->excused[i] |= j->excused[i - 1]; /* later rows of the step may see an earlier one's code */
        judge_outputs(j, s->D, l, pos0, n);
    }
    for (int k = 0; k < RUNS; k++) model_run_commit(&j->run[k], n);
    for (int l = 0; l < s->L; l++) {
        stores_force(j, s, l, pos0, pos0 + n);
        rings_force(j, s, l, pos0 + n);
    }
}

static void layers_compare(int i)
{
    const struct oracle_case c = oracle_case_at(i);
    static const int sizes[] = {1, 1, 1, 4, 1, 1, 2, 1, 1, 1};
    char path[TEMP_PATH];
    int32_t ids[4096];
    struct judged j = {0};
    case_file(&c, path);
    oracle_case_ids(&c, ids);
    for (int k = 0; k < RUNS; k++) {
        model_run_open(&j.run[k], path,
                       &(struct model_run_options){.backend = k == CPU ? "cpu" : "ref", .kv_sim_off = k == EXACT});
        for (int o = 0; o < 2; o++) j.out[o][k] = mem_alloc((size_t)64 * (size_t)c.shape.D * sizeof(double));
    }
    j.excused = mem_alloc(64 * sizeof *j.excused);
    for (int at = 0, k = 0; at < c.n_ids; k++) {
        const int n = sizes[k % 10] < c.n_ids - at ? sizes[k % 10] : c.n_ids - at;
        step_judge(&j, ids + at, n);
        at += n;
    }
    print_message("%-14s %d rows x layers, %d excused; %d stored values, %d rounded the other way\n", c.name, j.rows,
                  j.excuses, j.codes, j.other_codes);
    assert_true(j.excuses * 50 <= j.rows);
    for (int k = 0; k < RUNS; k++) {
        model_run_close(&j.run[k]);
        for (int o = 0; o < 2; o++) mem_free(j.out[o][k]);
    }
    mem_free(j.excused);
    temp_remove(path);
}

static void cpu_equals_ref_layer_by_layer(void **state)
{
    (void)state;
    for (int i = 0; i < oracle_case_count(); i++) layers_compare(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_equals_ref_without_roundings),
        cmocka_unit_test(cpu_equals_ref_layer_by_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
