/* Matrix times many rows. Rows are taken in blocks that a third-level cache holds; they are packed into panels, then
 * every task multiplies a few slabs of weight rows with the panels of its rows (cpu_slab.h). A matrix with too few
 * weight rows to feed the threads is cut into more tasks by panels. */
#include "device/cpu/cpu_matmul.h"
#include "device/cpu/cpu_slab.h"

/* Most rows of a block, and of a task: their pieces and products stay in a second-level cache. */
enum { BLOCK = 22 * QUANT_PANELS, COLS = 11 * QUANT_PANELS };
/* Bytes of an output from which on it goes past the caches: it is more than a second-level one holds, and its lines are
 * not fetched before they are written. Prompts of 2,048 tokens of DeepSeek V4 Flash's shape, two cores of an AMD EPYC
 * (Zen 5, virtual), profiles in turn: writing outputs of 4 to 32 MiB takes 0.58 as much time as through the caches,
 * 0.77 where only those of 32 go past them; reading them takes no longer. */
enum { PAST_CACHES = 4 << 20 };

struct slab_job {
    struct dev_stream *s;
    const struct matmul_args *a;
    const struct quant_slab *slab;
    int64_t K, groups, group_rows, row_tasks; /* tasks of a group's rows */
    int slabs;                                /* of a task */
    int row0, n, block;                       /* rows of the block, of a whole one */
    int col_tasks, col_step;
    bool past;       /* the output is larger than caches: it goes past them */
    uint8_t *panels; /* [groups][n] rows */
};

/* Panels of a group for the tasks that take rows col.. of the block. */
static struct cpu_panels panels_at(const struct slab_job *j, int64_t group, int col)
{
    return (struct cpu_panels){.s = j->slab,
                               .k = j->K,
                               .n = (int)min_i64(j->col_step, j->n - col),
                               .p = j->panels + (size_t)(group * j->n + col) * cpu_column_bytes(j->slab, j->K)};
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
        const struct cpu_panels p = panels_at(j, group, col / j->col_step * j->col_step);
        cpu_panels_put(&p, col % j->col_step, x, n);
    }
}

/* Weight rows of a task; none behind the last. */
static struct cpu_slabs slabs_of(const struct slab_job *j, int64_t task)
{
    const int64_t t = task / j->col_tasks, group = t / j->row_tasks;
    if (group >= j->groups) return (struct cpu_slabs){0};
    const int64_t from = j->a->each ? 0 : group * j->group_rows;
    return cpu_slabs_of(j->slab, &j->a->w->v, NULL, from + t % j->row_tasks * j->slabs * QUANT_SLAB,
                        from + j->group_rows, j->slabs);
}

_Static_assert(CPU_PART == (int)QUANT_SLAB, "put_rows takes a slab's products");

static void multiply_task(void *arg, int task, int thread)
{
    const struct slab_job *j = arg;
    const int64_t t = task / j->col_tasks, group = t / j->row_tasks;
    const int64_t out0 = group * j->group_rows + t % j->row_tasks * j->slabs * QUANT_SLAB;
    const int col = task % j->col_tasks * j->col_step;
    uint8_t *const scratch = cpu_scratch_of(j->s, thread);
    float *const acc = (float *)(void *)(scratch + CPU_SLAB_MOST);
    const struct cpu_panels x = panels_at(j, group, col);
    const struct cpu_slabs w = slabs_of(j, task), next = slabs_of(j, task + (int64_t)cpu_of(j->s)->n_threads);
    cpu_slabs_run(&w, &x, &next, scratch, acc);
    cpu_of(j->s)->k->put_rows(x.n, w.n, w.rows[w.n - 1].n, acc, j->past, buf_floats(j->a->out, j->row0 + col) + out0,
                              j->a->out->stride / sizeof *acc);
}

static void plan_tasks(struct slab_job *j, int n_threads)
{
    const int64_t slabs = (j->group_rows + QUANT_SLAB - 1) / QUANT_SLAB, most = 4 * n_threads;
    const int halves = (j->n + COLS - 1) / COLS;
    j->slabs = CPU_SLABS;
    while (j->slabs > 1 && j->groups * slabs / j->slabs * halves < most) j->slabs /= 2;
    j->row_tasks = (slabs + j->slabs - 1) / j->slabs;
    const int64_t tasks = j->groups * j->row_tasks, want = max_i64(halves, (most + tasks - 1) / tasks);
    const int64_t each = (panels_of(j) + want - 1) / want;
    j->col_step = (int)max_i64(QUANT_PANELS, each * j->slab->panel);
    j->col_tasks = (j->n + j->col_step - 1) / j->col_step;
}

/* A piece of a slab and the products of a task. */
static size_t thread_bytes(int n)
{
    return CPU_SLAB_MOST + CPU_SLABS * (size_t)min_i64(COLS, n) * QUANT_SLAB * sizeof(float);
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
    j.block = block_rows(a->n);
    j.past = (size_t)a->n * a->out->stride >= PAST_CACHES;
    j.panels = cpu_shared_scratch(s, (size_t)(j.groups * j.block) * cpu_column_bytes(slab, j.K) + QUANT_PANEL_BEHIND);
    if (!j.panels || !cpu_thread_scratch(s, thread_bytes(a->n))) return;
    for (; j.row0 < a->n; j.row0 += j.block) {
        j.n = (int)min_i64(j.block, a->n - j.row0);
        plan_tasks(&j, cpu_of(s)->n_threads);
        cpu_ranges(s, pack_panels, &j, j.groups * panels_of(&j), slab->panel * j.K);
        cpu_tasks(s, multiply_task, &j, j.groups * j.row_tasks * j.col_tasks);
    }
}

/* Of any type: readings of a number (quant.h) have no wider columns than the numbers. */
void cpu_matmul_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w)
{
    size_t column = 0;
    for (uint32_t type = 0; type <= QT_Q2_0; type++) {
        for (const struct quant_slab *s = quant_slab(d->isa, type); s; s = s->fewer)
            if (cpu_column_bytes(s, a->values) > column) column = cpu_column_bytes(s, a->values);
    }
    cpu_work_raise(w, (size_t)min_i64(BLOCK, a->rows) * column + QUANT_PANEL_BEHIND, thread_bytes(a->rows));
}
