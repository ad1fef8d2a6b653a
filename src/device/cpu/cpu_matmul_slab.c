/* Matrix times many rows. Rows are taken in blocks that a third-level cache holds; they are packed into panels, then
 * every task unpacks QUANT_SLAB weight rows and multiplies them with all panels of the block. A matrix with too few
 * rows to feed the threads is also cut by panels. */
#include <string.h>
#include "device/cpu/cpu_matmul.h"
#include "device/cpu/cpu_slab.h"

enum { BLOCK = 43 * QUANT_PANELS /* most rows */ };

struct slab_job {
    struct dev_stream *s;
    const struct matmul_args *a;
    const struct quant_slab *slab;
    int64_t K, groups, group_rows, row_tasks; /* slabs of a group */
    int row0, n, block;                       /* rows of the block, of a whole one */
    int col_tasks, col_step;
    size_t column_bytes;
    uint8_t *panels; /* [groups][n] columns */
};

static uint8_t *panel_at(const struct slab_job *j, int64_t group, int col)
{
    return j->panels + (size_t)(group * j->n + col) * j->column_bytes;
}

static int panels_of(const struct slab_job *j)
{
    return (j->n + j->slab->panel - 1) / j->slab->panel;
}

/* Items: panels of the groups. */
static void pack_panels(void *arg, int64_t from, int64_t to, int thread)
{
    const struct slab_job *j = arg;
    const int64_t per_group = panels_of(j);
    const size_t group_bytes = act_row_bytes(j->a->x->d.act, j->a->x->d.width);
    for (int64_t i = from; i < to; i++) {
        const int64_t group = i / per_group;
        const int col = (int)(i % per_group) * j->slab->panel, n = (int)min_i64(j->slab->panel, j->n - col);
        const uint8_t *x[QUANT_PANEL_MOST];
        for (int c = 0; c < n; c++)
            x[c] = (const uint8_t *)buf_row(j->a->x, j->row0 + col + c) + (size_t)group * group_bytes;
        j->slab->pack((int)j->K, x, n, panel_at(j, group, col));
    }
}

static void multiply_task(void *arg, int task, int thread)
{
    const struct slab_job *j = arg;
    const int64_t t = task / j->col_tasks, group = t / j->row_tasks, first = t % j->row_tasks * QUANT_SLAB;
    const int64_t out0 = group * j->group_rows + first;
    const int col = task % j->col_tasks * j->col_step, n_cols = (int)min_i64(j->col_step, j->n - col);
    const int n = (int)min_i64(QUANT_SLAB, j->group_rows - first);
    uint8_t *const slab = cpu_scratch_of(j->s, thread);
    float *const acc = (float *)(void *)(slab + cpu_slab_bytes(j->slab, j->K));
    const struct cpu_panels x = {.p = panel_at(j, group, col), .column_bytes = j->column_bytes};
    const struct tensor_view *const w = &j->a->w->v;
    const int64_t r0 = j->a->each ? first : out0, next = r0 + QUANT_SLAB * (int64_t)cpu_of(j->s)->n_threads;
    const struct cpu_ahead ahead = {
        .w = next < view_rows(w) ? w : NULL, .r0 = next, .n = min_i64(QUANT_SLAB, view_rows(w) - next)};
    cpu_slab_run(j->slab, w, r0, n, x, n_cols, ahead, slab, acc);
    for (int c = 0; c < n_cols; c++)
        memcpy(buf_floats(j->a->out, j->row0 + col + c) + out0, acc + (size_t)c * QUANT_SLAB,
               (size_t)n * sizeof(float));
}

static void plan_tasks(struct slab_job *j, int n_threads)
{
    const int64_t tasks = j->groups * j->row_tasks, want = (4 * n_threads + tasks - 1) / tasks;
    const int64_t each = (panels_of(j) + want - 1) / want;
    j->col_step = (int)max_i64(QUANT_PANELS, each * j->slab->panel);
    j->col_tasks = (j->n + j->col_step - 1) / j->col_step;
}

/* Rows are cut into equal blocks. */
static int block_rows(int n)
{
    const int blocks = (n + BLOCK - 1) / BLOCK, each = (n + blocks - 1) / blocks;
    return (int)min_i64(n, (int64_t)(each + QUANT_PANELS - 1) / QUANT_PANELS * QUANT_PANELS);
}

void cpu_matmul_slabs(struct dev_stream *s, const struct matmul_args *a, const struct quant_slab *slab)
{
    struct slab_job j = {.s = s, .a = a, .slab = slab, .K = a->w->v.ne[0]};
    j.groups = matmul_groups(&a->w->v, &a->x->d);
    j.group_rows = a->each ? view_rows(&a->w->v) : view_rows(&a->w->v) / j.groups;
    j.row_tasks = (j.group_rows + QUANT_SLAB - 1) / QUANT_SLAB;
    j.block = block_rows(a->n);
    j.column_bytes = cpu_column_bytes(slab, j.K);
    j.panels = cpu_shared_scratch(s, (size_t)(j.groups * j.block) * j.column_bytes);
    const size_t acc = (size_t)j.block * QUANT_SLAB * sizeof(float);
    if (!j.panels || !cpu_thread_scratch(s, cpu_slab_bytes(slab, j.K) + acc)) return;
    for (; j.row0 < a->n; j.row0 += j.block) {
        j.n = (int)min_i64(j.block, a->n - j.row0);
        plan_tasks(&j, cpu_of(s)->n_threads);
        cpu_ranges(s, pack_panels, &j, j.groups * panels_of(&j), slab->panel * j.K);
        cpu_tasks(s, multiply_task, &j, j.groups * j.row_tasks * j.col_tasks);
    }
}

/* Of any type; the largest slab is one of a single block or is cut. */
void cpu_matmul_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w)
{
    const size_t n = (size_t)min_i64(BLOCK, a->rows);
    size_t column = 0;
    for (uint32_t type = 0; type <= QT_Q2_0; type++) {
        const struct quant_slab *const s = quant_slab(d->isa, type);
        if (s && cpu_column_bytes(s, a->values) > column) column = cpu_column_bytes(s, a->values);
    }
    cpu_work_raise(w, n * column, CPU_SLAB_MOST + n * QUANT_SLAB * sizeof(float));
}
