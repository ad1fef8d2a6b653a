/* The expert layer with many rows. Experts with a few of them multiply these one by one, as they lie; the others, and
 * the shared expert, get panels and unpack each of their weight rows once (cpu_slab.h):
 *   1. activations of every expert's rows are copied, or packed, side by side;
 *   2. tasks (expert, a few QUANT_SLAB values of F): gate and up for all rows of the expert, SwiGLU, route weight ->
 * mid, quantised by whole blocks, because its floats are many more than a cache holds;
 *   3. mid is packed for the down matrix;
 *   4. tasks (a few QUANT_SLAB values of D): down for experts in ascending id, added up in sums of all rows that lie
 * together, because rows of the output are a multiple of 4 KiB apart and share few sets of a cache. */
#include <string.h>
#include "device/cpu/cpu_moe.h"
#include "device/cpu/cpu_slab.h"
#include "device/cpu/cpu_tile.h"

enum {
    MANY = 5,                 /* rows of a step */
    COLS = 10 * QUANT_PANELS, /* rows whose products lie in scratch at a time */
    UP_MOST = 256,            /* values of F that an up task takes */
    DOWN_SLABS = 4 /* most slabs of a down task: the panels of all experts, too many for a cache, pass by once */
};

/* ---------------------------------------------------------------- plan */

bool moe_many(enum quant_isa isa, const struct moe_args *a)
{
    const struct expert_layer *l = experts_layer(a->experts, a->layer);
    return l && a->n >= MANY && (quant_slab(isa, l->gate.type) || quant_slab(isa, l->down.type));
}

/* Room for n activations of a matrix, as rows or in panels. */
static struct act_rows take(struct carve *c, enum quant_isa isa, const struct tensor_view *w, int64_t n)
{
    struct act_rows r = {.stride = act_row_bytes(act_of(w), w->ne[0]), .slab = quant_slab(isa, w->type)};
    for (const struct quant_slab *s = r.slab; s; s = s->fewer)
        if (cpu_column_bytes(s, w->ne[0]) > r.stride) r.stride = round_up(cpu_column_bytes(s, w->ne[0]), 64);
    r.p = carve_take(c, (size_t)n * r.stride + QUANT_PANEL_BEHIND);
    return r;
}

/* Room for n quantised rows of mid. */
static struct act_rows take_mid(struct carve *c, const struct tensor_view *down, int64_t n)
{
    struct act_rows r = {.stride = act_row_bytes(act_of(down), down->ne[0])};
    r.p = carve_take(c, (size_t)n * r.stride);
    return r;
}

void moe_slabs_carve(struct carve *c, struct moe_job *j, enum quant_isa isa)
{
    const struct moe_args *a = j->a;
    const struct expert_layer *l = experts_layer(a->experts, a->layer);
    j->gate_x = j->up_x = take(c, isa, &l->gate, j->n_pairs);
    if (l->up.type != l->gate.type) j->up_x = take(c, isa, &l->up, j->n_pairs);
    j->mid_x = take(c, isa, &l->down, j->n_pairs);
    j->mid_rows = take_mid(c, &l->down, j->n_pairs);
    if (!a->shared_gate) return;
    j->shared_gate_x = j->shared_up_x = take(c, isa, &a->shared_gate->v, a->n);
    if (a->shared_up->v.type != a->shared_gate->v.type) j->shared_up_x = take(c, isa, &a->shared_up->v, a->n);
    j->shared_mid_x = take(c, isa, &a->shared_down->v, a->n);
    j->shared_mid_rows = take_mid(c, &a->shared_down->v, a->n);
}

/* Thread scratch: a piece of a slab, products, mid of an up task, sums of a down task's values of all rows. */
size_t moe_slabs_thread_bytes(const struct moe_job *j)
{
    const size_t sums = (CPU_SLABS * COLS + DOWN_SLABS * (size_t)j->a->n) * QUANT_SLAB;
    return CPU_SLAB_MOST + (sums + COLS * UP_MOST) * sizeof(float);
}

/* The place of n activations from the first on: in panels if they are enough. */
static struct act_rows place(const struct act_rows *all, const struct tensor_view *w, int first, int n)
{
    const struct quant_slab *const s = quant_slab_for(all->slab, n);
    return (struct act_rows){.p = all->p + (size_t)first * all->stride,
                             .stride = s ? cpu_column_bytes(s, w->ne[0]) : act_row_bytes(act_of(w), w->ne[0]),
                             .slab = s};
}

static struct act_rows place_rows(const struct act_rows *all, int first)
{
    return (struct act_rows){.p = all->p + (size_t)first * all->stride, .stride = all->stride};
}

void moe_slabs_plan(struct moe_job *j)
{
    const struct moe_args *a = j->a;
    const struct expert_layer *l = experts_layer(a->experts, a->layer);
    const int64_t slabs = (j->D + QUANT_SLAB - 1) / QUANT_SLAB, want = 4 * cpu_of(j->s)->n_threads;
    j->down_step = QUANT_SLAB * (int)max_i64(1, min_i64(DOWN_SLABS, slabs / want));
    for (int i = 0; i < j->n_batches; i++) {
        struct batch *b = &j->batch[i];
        if (b->row) {
            const int p = (int)(b->row - j->row);
            b->gate_x = place(&j->gate_x, &l->gate, p, b->n);
            b->up_x = place(&j->up_x, &l->up, p, b->n);
            b->mid_x = place(&j->mid_x, &l->down, p, b->n);
            b->mid_rows = place_rows(&j->mid_rows, p);
        } else {
            b->gate_x = place(&j->shared_gate_x, &a->shared_gate->v, 0, b->n);
            b->up_x = place(&j->shared_up_x, &a->shared_up->v, 0, b->n);
            b->mid_x = place(&j->shared_mid_x, &a->shared_down->v, 0, b->n);
            b->mid_rows = j->shared_mid_rows;
        }
    }
}

/* ---------------------------------------------------------------- activations */

/* Panels of the rows from c0 on, a multiple of COLS, that are multiplied at a time; of `all` rows. */
static struct cpu_panels panels_at(const struct act_rows *x, const struct tensor_view *w, int c0, int all)
{
    return (struct cpu_panels){
        .s = x->slab, .k = w->ne[0], .n = (int)min_i64(COLS, all - c0), .p = x->p + (size_t)c0 * x->stride};
}

/* Rows [c, c + n) of `all` of a batch, quantised at x, go where the batch has them. */
static void put_rows(const struct act_rows *to, const struct tensor_view *w, int all, int c, const uint8_t *const *x,
                     int n)
{
    if (to->slab) {
        const struct cpu_panels p = panels_at(to, w, c / COLS * COLS, all);
        cpu_panels_put(&p, c % COLS, x, n);
        return;
    }
    for (int i = 0; i < n; i++) memcpy(to->p + (size_t)(c + i) * to->stride, x[i], to->stride);
}

/* Rows that are copied at a time. */
static int panel_rows(const struct act_rows *x)
{
    return x->slab ? x->slab->panel : QUANT_PANEL_MOST;
}

/* Copies rows [c, end) of n for one matrix of a batch; row: which ones they are, or NULL. */
static void gather_panels(const struct act_rows *from, const int32_t *row, int n, const struct act_rows *to,
                          const struct tensor_view *w, int c, int end)
{
    const uint8_t *x[QUANT_PANEL_MOST];
    for (int m; c < end; c += m) {
        m = (int)min_i64(panel_rows(to), end - c);
        for (int i = 0; i < m; i++) x[i] = from->p + (size_t)(row ? row[c + i] : c + i) * from->stride;
        put_rows(to, w, n, c, x, m);
    }
}

/* Gate and up share activations. */
static bool one_input(const struct batch *b)
{
    return b->gate_x.p == b->up_x.p;
}

/* Items: QUANT_PANELS rows of all batches, in order; task0 counts them. */
struct panels_job {
    struct moe_job *j;
    bool mid;
};

static void panel_items(void *arg, int64_t from, int64_t to, int thread)
{
    const struct panels_job *p = arg;
    const struct moe_job *j = p->j;
    int i = 0;
    for (int64_t item = from; item < to; item++) {
        while (item >= j->task0[i + 1]) i++;
        const struct batch *b = &j->batch[i];
        const int c = (int)(item - j->task0[i]) * QUANT_PANELS, end = (int)min_i64(c + QUANT_PANELS, b->n);
        const struct expert *e = &b->e;
        if (p->mid) {
            gather_panels(&b->mid_rows, NULL, b->n, &b->mid_x, &e->down, c, end);
            continue;
        }
        gather_panels(&j->x[act_of(&e->gate)], b->row, b->n, &b->gate_x, &e->gate, c, end);
        if (!one_input(b)) gather_panels(&j->x[act_of(&e->up)], b->row, b->n, &b->up_x, &e->up, c, end);
    }
}

static void run_panels(struct moe_job *j, bool mid, int64_t values)
{
    struct panels_job p = {.j = j, .mid = mid};
    j->task0[0] = 0;
    for (int i = 0; i < j->n_batches; i++)
        j->task0[i + 1] = j->task0[i] + (j->batch[i].n + QUANT_PANELS - 1) / QUANT_PANELS;
    cpu_ranges(j->s, panel_items, &p, j->task0[j->n_batches], QUANT_PANELS * values);
}

/* ---------------------------------------------------------------- products */

/* acc[slab][m][QUANT_SLAB]: slabs times the m activations of a batch from c0 on, a multiple of COLS. */
static void products(const struct moe_job *j, const struct cpu_slabs *w, const struct act_rows *x, int c0, int m,
                     const struct cpu_slabs *next, uint8_t *scratch, float *acc)
{
    if (x->slab) {
        const struct cpu_panels p = panels_at(x, w->rows[0].w, c0, c0 + m);
        cpu_slabs_run(w, &p, next, scratch, acc);
        return;
    }
    for (int i = 0; i < w->n; i++, acc += m * QUANT_SLAB) {
        const struct cpu_tile q = {.tile = quant_tile(cpu_of(j->s)->isa, w->rows[i].w->type),
                                   .w = w->rows[i].w,
                                   .n_cols = m,
                                   .out = acc,
                                   .x = x->p + (size_t)c0 * x->stride,
                                   .x_stride = x->stride,
                                   .out_stride = QUANT_SLAB};
        cpu_tile_run(&q, w->rows[i].r0, w->rows[i].n);
    }
}
/* Slabs of gate, and of up, that a task takes. The shared expert's panels are too many for a cache: they pass by less
 * often then. */
static int up_slabs_of(const struct batch *b)
{
    return b->row ? 1 : CPU_SLABS / 2;
}

/* Pieces of thread scratch. */
struct sums {
    float *products, *mid, *all;
    uint8_t *slab;
};

static struct sums sums_of(const struct moe_job *j, int thread)
{
    struct sums s = {.products = cpu_scratch_of(j->s, thread)};
    s.mid = s.products + CPU_SLABS * COLS * QUANT_SLAB;
    s.all = s.mid + COLS * UP_MOST;
    s.slab = (uint8_t *)(s.all + DOWN_SLABS * (size_t)j->a->n * QUANT_SLAB);
    return s;
}

/* Values of F that an up task takes: whole blocks of the down matrix's activations. */
static int up_values(const struct batch *b)
{
    return (int)max_i64(up_slabs_of(b) * QUANT_SLAB, act_block(act_of(&b->e.down)));
}

/* Weight rows from r0 on that are multiplied at a time: all, or those of gate. */
static struct cpu_slabs up_slabs(const struct batch *b, int64_t r0)
{
    return cpu_slabs_of(b->gate_x.slab, &b->e.gate, one_input(b) ? &b->e.up : NULL, r0, b->e.gate.ne[1],
                        up_slabs_of(b));
}

/* The first ones of an up task, of batch i or a later one. */
static struct cpu_slabs first_slabs(const struct moe_job *j, int i, int task)
{
    if (task >= j->task0[j->n_batches]) return (struct cpu_slabs){0};
    while (task >= j->task0[i + 1]) i++;
    return up_slabs(&j->batch[i], (int64_t)(task - j->task0[i]) * up_values(&j->batch[i]));
}

/* Some weight rows from r0 on times rows [c0, c0 + m) -> mid, whose rows lie up_values apart. */
static void up_part(const struct moe_job *j, const struct batch *b, int64_t r0, int c0, int m,
                    const struct cpu_slabs *next, const struct sums *s, float *mid)
{
    const struct cpu_slabs gate = up_slabs(b, r0),
                           up = cpu_slabs_of(b->up_x.slab, &b->e.up, NULL, r0, b->e.gate.ne[1], up_slabs_of(b));
    const int step = one_input(b) ? 2 : 1;
    const size_t part = (size_t)m * QUANT_SLAB, second = step == 2 ? part : (size_t)up.n * part;
    products(j, &gate, &b->gate_x, c0, m, step == 2 ? next : &up, s->slab, s->products);
    if (step == 1) products(j, &up, &b->up_x, c0, m, next, s->slab, s->products + second);
    for (int c = 0; c < m; c++, mid += up_values(b))
        for (int k = 0; k < up.n; k++) {
            const float *const g = s->products + step * k * part + c * QUANT_SLAB;
            cpu_of(j->s)->k->swiglu(up.rows[k].n, g, g + second, b->clamp, b->weight ? b->weight[c0 + c] : 1,
                                    mid + k * QUANT_SLAB);
        }
}

/* Quantises mid of m rows from row c0 on: n values of a task from r0 on, zeros up to the end of the row's last block.
 */
static void put_mid(const struct batch *b, int64_t r0, int n, int c0, int m, float *mid)
{
    const int64_t padded = b->e.down.ne[0];
    const int width = up_values(b), all = (int)min_i64(width, padded - r0);
    for (int c = c0; c < c0 + m; c++, mid += width) {
        if (n < all) memset(mid + n, 0, (size_t)(all - n) * sizeof *mid);
        act_quantise_part(act_of(&b->e.down), mid, r0, all, padded, b->mid_rows.p + (size_t)c * b->mid_rows.stride);
        if (b->mid) memcpy(b->mid + c * padded + r0, mid, (size_t)all * sizeof *mid);
    }
}

static void up_task(void *arg, int task, int thread)
{
    const struct moe_job *j = arg;
    const struct sums s = sums_of(j, thread);
    int i = 0;
    while (task >= j->task0[i + 1]) i++;
    const struct batch *b = &j->batch[i];
    const int64_t r0 = (int64_t)(task - j->task0[i]) * up_values(b);
    const int n = (int)max_i64(0, min_i64(up_values(b), b->e.gate.ne[1] - r0)), step = up_slabs_of(b) * QUANT_SLAB;
    for (int c0 = 0; c0 < b->n; c0 += COLS) {
        const int m = (int)min_i64(COLS, b->n - c0);
        for (int at = 0; at < n; at += step) {
            const struct cpu_slabs next = at + step < n   ? up_slabs(b, r0 + at + step)
                                          : c0 + m < b->n ? up_slabs(b, r0)
                                                          : first_slabs(j, i, task + cpu_of(j->s)->n_threads);
            up_part(j, b, r0 + at, c0, m, &next, &s, s.mid + at);
        }
        put_mid(b, r0, n, c0, m, s.mid);
    }
}

/* Weight rows of a down task of a batch. */
static struct cpu_slabs down_slabs(const struct moe_job *j, int i, int task)
{
    if (i == j->n_batches) return (struct cpu_slabs){0};
    const struct batch *b = &j->batch[i];
    const int64_t r0 = (int64_t)task * j->down_step;
    return cpu_slabs_of(b->mid_x.slab, &b->e.down, NULL, r0, min_i64(r0 + j->down_step, j->D), DOWN_SLABS);
}

/* Where a task's products are added up: its sums of a row lie side by side. */
static float *sums_at(const struct sums *s, int row)
{
    return s->all + (size_t)row * DOWN_SLABS * QUANT_SLAB;
}

/* There are no sums of row c of a batch yet. */
static bool begins(const struct moe_job *j, const struct batch *b, int c)
{
    return b->begins ? b->begins[c] : j->a->k == 0;
}

enum { SUMS_AHEAD = 6 /* rows whose sums are asked for */ };

/* Adds a task's products of rows [c0, c0 + m) of a batch to the sums of the rows. The first expert of a row begins
 * them, at +0; with the shared one, which comes last and has all rows, they go to the output. Prompts of 2,048 tokens
 * of DeepSeek V4 Flash's shape, two cores of an AMD EPYC (Zen 5, virtual), profiles in turn: 0.64 of the time that sums
 * took which were cleared before and copied afterwards, each slab's apart. */
static void add_products(const struct moe_job *j, const struct batch *b, const struct cpu_slabs *w, int c0, int m,
                         const struct sums *s)
{
    static const float zero[QUANT_SLAB];
    const bool last = !b->row;
    for (int c = c0; c < c0 + m; c++) {
        const int row = b->row ? b->row[c] : c, next = (int)min_i64(c + SUMS_AHEAD, c0 + m - 1);
        const float *const sums = sums_at(s, row), *const ahead = sums_at(s, b->row ? b->row[next] : next);
        float *const out = last ? buf_floats(j->a->out, row) + w->rows[0].r0 : sums_at(s, row);
        for (int k = 0; k < w->n; k++) {
            for (int i = 0; i < QUANT_SLAB; i += 16) __builtin_prefetch(ahead + k * QUANT_SLAB + i, 1);
            cpu_of(j->s)->k->sum(w->rows[k].n, s->products + (k * m + c - c0) * QUANT_SLAB,
                                 begins(j, b, c) ? zero : sums + k * QUANT_SLAB, out + k * QUANT_SLAB);
        }
    }
}

static void add_down(const struct moe_job *j, int i, int task, const struct sums *s)
{
    const struct batch *b = &j->batch[i];
    const struct cpu_slabs w = down_slabs(j, i, task), next = down_slabs(j, i + 1, task);
    for (int c0 = 0; c0 < b->n; c0 += COLS) {
        const int m = (int)min_i64(COLS, b->n - c0);
        products(j, &w, &b->mid_x, c0, m, &next, s->slab, s->products);
        add_products(j, b, &w, c0, m, s);
    }
}

static void down_task(void *arg, int task, int thread)
{
    const struct moe_job *j = arg;
    const struct sums s = sums_of(j, thread);
    for (int i = 0; i < j->n_batches; i++) add_down(j, i, task, &s);
    if (j->a->shared_gate) return; /* it has written the rows of the output */
    const struct cpu_slabs w = down_slabs(j, 0, task);
    for (int c = 0; c < j->a->n; c++)
        for (int k = 0; k < w.n; k++)
            memcpy(buf_floats(j->a->out, c) + w.rows[k].r0, sums_at(&s, c) + k * QUANT_SLAB,
                   (size_t)w.rows[k].n * sizeof(float));
}

void moe_slabs_up(struct moe_job *j)
{
    run_panels(j, false, j->D);
    j->task0[0] = 0;
    for (int i = 0; i < j->n_batches; i++) {
        const int values = up_values(&j->batch[i]);
        j->task0[i + 1] = j->task0[i] + (int)((j->batch[i].e.down.ne[0] + values - 1) / values);
    }
    cpu_tasks(j->s, up_task, j, j->task0[j->n_batches]);
}

void moe_slabs_down(struct moe_job *j)
{
    run_panels(j, true, j->batch[0].e.down.ne[0]);
    cpu_tasks(j->s, down_task, j, (j->D + j->down_step - 1) / j->down_step);
}
