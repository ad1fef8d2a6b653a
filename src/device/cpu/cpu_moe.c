/* The expert layer (spec deepseek-v4 3.9). Pairs (row, selected expert) are sorted by expert, so that every expert's
 * weights are read once per step:
 *   1. activations of the rows are quantised, and copied to where their experts expect them side by side;
 *   2. tasks (expert, range of F): gate and up for all rows of the expert, SwiGLU, route weight -> mid [pair][F];
 *   3. mid is quantised to the down matrix's format;
 *   4. tasks (range of D): for experts in ascending id, down for the expert's rows, added to out. A value of out has
 * one owner and one order of summation. The shared expert is the last one and takes all rows. */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_moe.h"
#include "device/cpu/cpu_tile.h"

enum {
    COLS = 64,      /* rows that a task multiplies at a time */
    DOWN_ROWS = 256 /* most rows of down that a task takes, of all experts: the last tasks are waited for */
};

/* ---------------------------------------------------------------- plan */

static bool can_multiply(struct dev_stream *s, const struct tensor_view *v, int64_t k, int64_t rows)
{
    if (v->ne[0] != k || v->ne[1] != rows) {
        dev_fail(s, ERR_MODEL, "expert matrix is %lld x %lld, wanted %lld x %lld", (long long)v->ne[0],
                 (long long)v->ne[1], (long long)k, (long long)rows);
        return false;
    }
    if (quant_tile(cpu_of(s)->isa, v->type)) return true;
    dev_fail(s, ERR_MODEL, "expert matrices of type %u cannot be multiplied by this build", v->type);
    return false;
}

static bool expert_check(struct dev_stream *s, const struct tensor_view *gate, const struct tensor_view *up,
                         const struct tensor_view *down, int64_t D)
{
    const int64_t F = gate->ne[1], padded = down->ne[0] > F ? down->ne[0] : F; /* rows padded to whole blocks */
    return can_multiply(s, gate, D, F) && can_multiply(s, up, D, F) && can_multiply(s, down, padded, D);
}

static bool moe_check(struct dev_stream *s, const struct moe_args *a, int64_t D)
{
    const struct expert_layer *l = experts_layer(a->experts, a->layer);
    if (!l) {
        dev_fail(s, ERR_ARG, "there is no expert layer %d", a->layer);
        return false;
    }
    if (!expert_check(s, &l->gate, &l->up, &l->down, D)) return false;
    if ((int64_t)a->n * a->k > INT32_MAX) {
        dev_fail(s, ERR_LIMIT, "%d rows with %d experts each are too many for one step; use smaller steps", a->n, a->k);
        return false;
    }
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < a->k; k++) {
            const int32_t id = buf_ints(a->ids, i)[k];
            if (id >= 0 && id < experts_count(a->experts, a->layer)) continue;
            dev_fail(s, ERR_MODEL, "layer %d: expert %d was selected, but the layer has %d experts", a->layer, id,
                     experts_count(a->experts, a->layer));
            return false;
        }
    return !a->shared_gate || expert_check(s, &a->shared_gate->v, &a->shared_up->v, &a->shared_down->v, D);
}

static struct act_rows act_take(struct carve *c, bool needed, enum act_format f, int64_t n, int64_t width)
{
    if (!needed) return (struct act_rows){0};
    const size_t bytes = act_row_bytes(f, width);
    return (struct act_rows){.p = carve_take(c, (size_t)n * bytes), .stride = bytes};
}

static void carve_inputs(struct carve *c, struct moe_job *j)
{
    const struct moe_args *a = j->a;
    const struct expert_layer *l = experts_layer(a->experts, a->layer);
    bool by_row[ACT_COUNT] = {0}, by_pair[ACT_COUNT] = {0};
    by_row[act_of(&l->gate)] = by_row[act_of(&l->up)] = true;
    if (a->n > 1 && !j->many) by_pair[act_of(&l->gate)] = by_pair[act_of(&l->up)] = true;
    if (a->shared_gate) by_row[act_of(&a->shared_gate->v)] = by_row[act_of(&a->shared_up->v)] = true;
    for (int f = 0; f < ACT_COUNT; f++) {
        j->x[f] = act_take(c, by_row[f], (enum act_format)f, a->n, j->D);
        j->pair_x[f] = act_take(c, by_pair[f], (enum act_format)f, j->n_pairs, j->D);
    }
}

/* Everything that lies in the shared scratch; base NULL only counts. */
static void moe_carve(struct carve *c, struct moe_job *j, enum quant_isa isa)
{
    const struct moe_args *a = j->a;
    const struct expert_layer *l = experts_layer(a->experts, a->layer);
    const size_t pairs = (size_t)j->n_pairs, ints = sizeof(int32_t);
    const size_t most = (size_t)min_i64(j->n_experts, j->n_pairs) + 1;
    const int64_t F = l->down.ne[0], shared_F = a->shared_gate ? a->shared_down->v.ne[0] : 0;
    j->batch = carve_take(c, most * sizeof *j->batch);
    j->task0 = carve_take(c, (most + 1) * sizeof *j->task0);
    j->start = carve_take(c, ((size_t)j->n_experts + 1) * ints);
    j->row = carve_take(c, pairs * ints);
    j->used = carve_take(c, pairs * ints);
    j->place = carve_take(c, pairs * ints);
    j->shared_weight = carve_take(c, (size_t)a->n * sizeof *j->shared_weight);
    j->weight = carve_take(c, pairs * sizeof *j->weight);
    j->begins = carve_take(c, pairs * sizeof *j->begins);
    if (!j->many || a->mid) j->mid = carve_take(c, pairs * (size_t)F * sizeof(float));
    if (!j->many) j->shared_mid = carve_take(c, (size_t)a->n * (size_t)shared_F * sizeof(float));
    carve_inputs(c, j);
    if (j->many) {
        moe_slabs_carve(c, j, isa);
        return;
    }
    j->mid_x = act_take(c, true, act_of(&l->down), j->n_pairs, F);
    j->shared_mid_x = (struct act_rows){0};
    if (a->shared_gate) j->shared_mid_x = act_take(c, true, act_of(&a->shared_down->v), a->n, shared_F);
}

/* Sorts the pairs by expert, then row, then slot. */
static void sort_pairs(struct moe_job *j)
{
    const struct moe_args *a = j->a;
    memset(j->start, 0, ((size_t)j->n_experts + 1) * sizeof *j->start);
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < a->k; k++) j->start[buf_ints(a->ids, i)[k] + 1]++;
    for (int e = 0; e < j->n_experts; e++) j->start[e + 1] += j->start[e];
    for (int i = 0; i < a->n; i++) {
        int first = j->n_pairs;
        for (int k = 0; k < a->k; k++) {
            const int p = j->start[buf_ints(a->ids, i)[k]]++; /* start[e] ends as the start of e + 1 */
            j->row[p] = i;
            j->weight[p] = buf_floats(a->weight, i)[k];
            j->begins[p] = false;
            j->place[i * a->k + k] = p;
            if (p < first) first = p;
        }
        if (a->k > 0) j->begins[first] = true;
    }
    for (int e = j->n_experts; e > 0; e--) j->start[e] = j->start[e - 1];
    j->start[0] = 0;
}

static float clamp_of(double clamp)
{
    return clamp > 1e-6 ? (float)clamp : INFINITY;
}

/* Activations of pairs p, p+1, ... in format f. A single row serves all its pairs. */
static struct act_rows pair_rows(const struct moe_job *j, enum act_format f, int p)
{
    if (j->a->n == 1 || j->many) return (struct act_rows){.p = j->x[f].p};
    return (struct act_rows){.p = j->pair_x[f].p + (size_t)p * j->pair_x[f].stride, .stride = j->pair_x[f].stride};
}

static void batch_routed(struct moe_job *j, int32_t id)
{
    const struct expert_layer *l = experts_layer(j->a->experts, j->a->layer);
    const int p = j->start[id];
    j->batch[j->n_batches++] = (struct batch){
        .gate_x = pair_rows(j, act_of(&l->gate), p),
        .up_x = pair_rows(j, act_of(&l->up), p),
        .mid_x = {.p = j->mid_x.p + (size_t)p * j->mid_x.stride, .stride = j->mid_x.stride},
        .mid = j->mid ? j->mid + (size_t)p * (size_t)l->down.ne[0] : NULL,
        .row = j->row + p,
        .weight = j->weight + p,
        .begins = j->begins + p,
        .n = j->start[id + 1] - p,
        .clamp = clamp_of(j->a->clamp),
    };
}

static void batch_shared(struct moe_job *j)
{
    const struct moe_args *a = j->a;
    for (int i = 0; a->shared_weight && i < a->n; i++) j->shared_weight[i] = buf_floats(a->shared_weight, i)[0];
    j->batch[j->n_batches++] = (struct batch){
        .e = {.gate = a->shared_gate->v, .up = a->shared_up->v, .down = a->shared_down->v},
        .gate_x = j->x[act_of(&a->shared_gate->v)],
        .up_x = j->x[act_of(&a->shared_up->v)],
        .mid_x = j->shared_mid_x,
        .mid = j->shared_mid,
        .weight = a->shared_weight ? j->shared_weight : NULL,
        .n = a->n,
        .clamp = clamp_of(a->shared_clamp),
    };
}

/* Rows of gate and up that a task of n batches takes. */
static int up_rows(const struct tensor_view *gate, const struct tensor_view *up, int n_threads, int n)
{
    const size_t bytes = quant_row_bytes(gate->type, gate->ne[0]) + quant_row_bytes(up->type, up->ne[0]);
    return cpu_tile_rows(gate->ne[1], bytes, 4 * n_threads / max_i64(1, n) + 1, 1);
}

/* Rows of down that a task takes. */
static int down_rows(const struct tensor_view *down, int64_t D, int n_threads)
{
    const int rows = cpu_tile_rows(D, quant_row_bytes(down->type, down->ne[0]), 4 * (int64_t)n_threads, n_threads);
    return (int)min_i64(rows, DOWN_ROWS);
}

static void moe_plan(struct moe_job *j)
{
    const int n_threads = cpu_of(j->s)->n_threads;
    sort_pairs(j);
    j->n_batches = 0;
    for (int32_t e = 0; e < j->n_experts; e++)
        if (j->start[e + 1] > j->start[e]) batch_routed(j, e);
    if (j->a->shared_gate) batch_shared(j);
    const struct expert_layer *l = experts_layer(j->a->experts, j->a->layer);
    if (j->many) {
        moe_slabs_plan(j);
        return;
    }
    j->up_step = up_rows(&l->gate, &l->up, n_threads, j->n_batches);
    if (j->a->shared_gate)
        j->shared_up_step = up_rows(&j->a->shared_gate->v, &j->a->shared_up->v, n_threads, j->n_batches);
    j->down_step = down_rows(&l->down, j->D, n_threads);
}

/* Where the experts' bytes are; waits for them. */
static bool experts_fetch(struct moe_job *j, struct experts_ticket **ticket)
{
    struct err e = {0};
    int n = 0;
    for (int32_t id = 0; id < j->n_experts; id++)
        if (j->start[id + 1] > j->start[id]) j->used[n++] = id;
    int rc = experts_want(j->a->experts, j->a->layer, j->used, n, ticket, &e);
    for (int i = 0; i < n && !rc; i++) rc = experts_get(*ticket, j->used[i], &j->batch[i].e, &e);
    if (rc) dev_fail(j->s, rc, "%s", e.msg);
    return !rc;
}

static int up_step_of(const struct moe_job *j, const struct batch *b)
{
    return b->row ? j->up_step : j->shared_up_step;
}

/* First task of every batch; the number of up tasks comes last. */
static void count_tasks(struct moe_job *j)
{
    j->task0[0] = 0;
    for (int i = 0; i < j->n_batches; i++) {
        const int step = up_step_of(j, &j->batch[i]);
        j->task0[i + 1] = j->task0[i] + (int)((j->batch[i].e.gate.ne[1] + step - 1) / step);
    }
}

/* ---------------------------------------------------------------- phases */

static void quantise_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct moe_job *j = arg;
    for (int64_t i = from; i < to; i++)
        for (int f = 0; f < ACT_COUNT; f++) {
            const struct act_rows *x = &j->x[f], *pair = &j->pair_x[f];
            if (!x->p) continue;
            uint8_t *row = x->p + (size_t)i * x->stride;
            act_quantise((enum act_format)f, buf_floats(j->a->x, i), j->D, row);
            for (int k = 0; pair->p && k < j->a->k; k++)
                memcpy(pair->p + (size_t)j->place[i * j->a->k + k] * pair->stride, row, x->stride);
        }
}

/* Rows [r0, r0+n) of a matrix times m activation rows from c0 on -> out [m][n]. */
static void multiply(const struct moe_job *j, const struct tensor_view *w, const struct act_rows *x, int c0, int m,
                     int r0, int n, float *out)
{
    const struct cpu_tile q = {.tile = quant_tile(cpu_of(j->s)->isa, w->type),
                               .w = w,
                               .n_cols = m,
                               .out = out,
                               .x = x->p + (size_t)c0 * x->stride,
                               .x_stride = x->stride,
                               .out_stride = (size_t)n};
    cpu_tile_run(&q, r0, n);
}

struct up_place {
    int batch, task; /* the task-th of the batch's tasks */
};

/* Each memory node has an equal part of the tasks (pool_create_on) and of every expert's rows (ds4_options.load), so on
 * several nodes the first rows of all experts come first. */
static struct up_place up_place(const struct moe_job *j, int task)
{
    const int n_nodes = pool_nodes(cpu_of(j->s)->pool);
    struct up_place p = {0};
    for (int k = 0; k < n_nodes; k++)
        for (p.batch = 0; p.batch < j->n_batches; p.batch++) {
            const int all = j->task0[p.batch + 1] - j->task0[p.batch];
            const int from = all * k / n_nodes, n = all * (k + 1) / n_nodes - from;
            p.task = from + task;
            if (task < n) return p;
            task -= n;
        }
    return p;
}

static void up_task(void *arg, int task, int thread)
{
    const struct moe_job *j = arg;
    const struct up_place at = up_place(j, task);
    const struct batch *b = &j->batch[at.batch];
    const int step = up_step_of(j, b), F = (int)b->e.gate.ne[1];
    const int r0 = at.task * step, n = (int)min_i64(step, F - r0);
    const int64_t padded = b->e.down.ne[0];
    float *gate = cpu_scratch_of(j->s, thread), *up = gate + COLS * n;
    for (int c = 0; c < b->n && r0 == 0 && padded > F; c++)
        memset(b->mid + (size_t)c * (size_t)padded + F, 0, (size_t)(padded - F) * sizeof(float));
    for (int c0 = 0; c0 < b->n; c0 += COLS) {
        const int m = (int)min_i64(COLS, b->n - c0);
        multiply(j, &b->e.gate, &b->gate_x, c0, m, r0, n, gate);
        multiply(j, &b->e.up, &b->up_x, c0, m, r0, n, up);
        for (int c = 0; c < m; c++)
            cpu_of(j->s)->k->swiglu(n, gate + c * n, up + c * n, b->clamp, b->weight ? b->weight[c0 + c] : 1,
                                    b->mid + (size_t)(c0 + c) * (size_t)padded + r0);
    }
}

/* Items: the pairs, then the rows of the shared expert. */
static void quantise_mid(void *arg, int64_t from, int64_t to, int thread)
{
    const struct moe_job *j = arg;
    const struct expert_layer *l = experts_layer(j->a->experts, j->a->layer);
    for (int64_t i = from; i < to; i++) {
        const bool shared = i >= j->n_pairs;
        const int64_t at = shared ? i - j->n_pairs : i;
        const struct tensor_view *down = shared ? &j->a->shared_down->v : &l->down;
        const struct act_rows *x = shared ? &j->shared_mid_x : &j->mid_x;
        act_quantise(act_of(down), (shared ? j->shared_mid : j->mid) + at * down->ne[0], down->ne[0],
                     x->p + (size_t)at * x->stride);
    }
}

static void down_task(void *arg, int task, int thread)
{
    const struct moe_job *j = arg;
    const int r0 = task * j->down_step, n = (int)min_i64(j->down_step, j->D - r0);
    float *part = cpu_scratch_of(j->s, thread);
    for (int i = 0; i < j->a->n; i++) memset(buf_floats(j->a->out, i) + r0, 0, (size_t)n * sizeof(float));
    for (int i = 0; i < j->n_batches; i++) {
        const struct batch *b = &j->batch[i];
        for (int c0 = 0; c0 < b->n; c0 += COLS) {
            const int m = (int)min_i64(COLS, b->n - c0);
            multiply(j, &b->e.down, &b->mid_x, c0, m, r0, n, part);
            for (int c = 0; c < m; c++)
                cpu_of(j->s)->k->add(n, part + c * n, buf_floats(j->a->out, b->row ? b->row[c0 + c] : c0 + c) + r0);
        }
    }
}

static void copy_mid(const struct moe_job *j, int64_t F, int64_t padded)
{
    for (int i = 0; j->a->mid && i < j->a->n; i++)
        for (int k = 0; k < j->a->k; k++)
            memcpy(buf_floats(j->a->mid, i) + k * F, j->mid + j->place[i * j->a->k + k] * padded,
                   (size_t)F * sizeof(float));
}

static void moe_run(struct moe_job *j)
{
    const struct moe_args *a = j->a;
    const int64_t F = experts_layer(a->experts, a->layer)->gate.ne[1];
    const int64_t items = j->n_pairs + (a->shared_gate ? a->n : 0);
    cpu_ranges(j->s, quantise_rows, j, a->n, 4 * (int64_t)j->D);
    if (j->many) {
        moe_slabs_up(j);
        copy_mid(j, F, experts_layer(a->experts, a->layer)->down.ne[0]);
        moe_slabs_down(j);
        return;
    }
    count_tasks(j);
    cpu_tasks(j->s, up_task, j, j->task0[j->n_batches]);
    copy_mid(j, F, experts_layer(a->experts, a->layer)->down.ne[0]);
    cpu_ranges(j->s, quantise_mid, j, items, 4 * F);
    cpu_tasks(j->s, down_task, j, (j->D + j->down_step - 1) / j->down_step);
}

void cpu_moe(struct dev_stream *s, const struct moe_args *a)
{
    const int64_t D = buf_row_values(&a->x->d);
    if (!cpu_ready(s) || a->n <= 0 || !moe_check(s, a, D)) return;
    const enum quant_isa isa = cpu_of(s)->isa;
    struct moe_job j = {.s = s, .a = a, .D = (int)D, .n_pairs = a->n * a->k, .many = moe_many(isa, a)};
    j.n_experts = experts_count(a->experts, a->layer);
    struct carve c = {0};
    moe_carve(&c, &j, isa);
    c = (struct carve){.base = cpu_shared_scratch(s, c.used)};
    if (!c.base) return;
    moe_carve(&c, &j, isa);
    moe_plan(&j);
    const size_t wide = (size_t)max_i64(2 * max_i64(j.up_step, j.shared_up_step), j.down_step);
    const size_t own = j.many ? moe_slabs_thread_bytes(&j) : COLS * wide * sizeof(float);
    struct experts_ticket *ticket = NULL;
    if (cpu_thread_scratch(s, own) && experts_fetch(&j, &ticket)) moe_run(&j);
    if (ticket) experts_done(ticket);
}

void cpu_moe_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w)
{
    struct moe_args args = *a->moe;
    args.n = a->rows;
    const struct expert_layer *l = experts_layer(args.experts, args.layer);
    const int64_t D = l->gate.ne[0];
    struct moe_job j = {.a = &args, .D = (int)D, .n_pairs = args.n * args.k, .many = moe_many(d->isa, &args)};
    j.n_experts = experts_count(args.experts, args.layer);
    struct carve c = {0};
    moe_carve(&c, &j, d->isa);
    if (j.many) {
        cpu_work_raise(w, c.used, moe_slabs_thread_bytes(&j));
        return;
    }
    const int routed = up_rows(&l->gate, &l->up, 0, 1);
    const int up =
        args.shared_gate ? (int)max_i64(routed, up_rows(&args.shared_gate->v, &args.shared_up->v, 0, 1)) : routed;
    const int down = down_rows(&l->down, D, d->n_threads);
    cpu_work_raise(w, c.used, COLS * (size_t)max_i64(2 * up, down) * sizeof(float));
}
