/* Matrix times rows. A task owns a range of weight rows, so weights are read once; activations pass by in blocks that
 * stay in the second-level cache. A matrix with too few rows to feed the threads is also cut by activation rows. */
#include "device/cpu/cpu_matmul.h"
#include "device/cpu/cpu_tile.h"

enum { SEVERAL = 5, MANY = 64, LARGER = 4 };
/* Activation rows of a task with float weights, at least and at most, and weight rows at least: kernels widen so many
 * weights at a time, once for all these activations. */
enum { FLOAT_COLS = 48, FLOAT_COLS_MOST = 128, FLOAT_ROWS = 32 };

struct matmul_job {
    const struct matmul_args *a;
    quant_tile_fn *tile;
    size_t group_bytes; /* from one group's activation row to the next */
    int64_t group_rows; /* weight rows of a group */
    int64_t groups;
    int64_t row_tasks; /* per group */
    int row_step;
    int col_tasks, col_step;
};

static void matmul_task(void *arg, int task, int thread)
{
    const struct matmul_job *j = arg;
    const struct matmul_args *a = j->a;
    const int64_t t = task / j->col_tasks, group = t / j->row_tasks;
    const int col0 = task % j->col_tasks * j->col_step;
    const int64_t first = t % j->row_tasks * j->row_step, out0 = group * j->group_rows + first;
    const uint8_t *x = (const uint8_t *)buf_row(a->x, col0) + (size_t)group * j->group_bytes;
    const struct cpu_tile q = {.tile = j->tile,
                               .w = &a->w->v,
                               .x = x,
                               .x_stride = a->x->stride,
                               .n_cols = (int)min_i64(j->col_step, a->n - col0),
                               .out = buf_floats(a->out, col0) + out0,
                               .out_stride = a->out->stride / sizeof(float)};
    cpu_tile_run(&q, a->each ? first : out0, (int)min_i64(j->row_step, j->group_rows - first));
}

static bool matmul_check(struct dev_stream *s, const struct matmul_args *a, quant_tile_fn *tile)
{
    const struct tensor_view *w = &a->w->v;
    const enum act_format have = a->x->d.kind == BUF_ACT ? a->x->d.act : ACT_F32;
    if (!tile || a->w->type->act != have) {
        dev_fail(s, ERR_MODEL, "matmul: weights of type %u cannot be multiplied with activations of format %d", w->type,
                 (int)have);
        return false;
    }
    const bool whole = a->x->d.kind == BUF_ACT ? a->x->d.width == w->ne[0] : buf_row_values(&a->x->d) % w->ne[0] == 0;
    const int64_t groups = whole ? matmul_groups(w, &a->x->d) : 1, each = a->each ? groups : 1;
    if (whole && buf_row_values(&a->out->d) >= each * view_rows(w) && (a->each || view_rows(w) % groups == 0))
        return true;
    dev_fail(s, ERR_ARG, "matmul: %lld weight rows of %lld values do not fit rows of %lld values in, %lld out",
             (long long)view_rows(w), (long long)w->ne[0], (long long)buf_row_values(&a->x->d),
             (long long)buf_row_values(&a->out->d));
    return false;
}

/* Many rows and float weights: activations are the larger part, so a task has some of them and all weight rows, unless
 * that makes too few tasks. All threads get as many, if these are not too small. */
static void float_plan(struct matmul_job *j, int n_threads)
{
    const int64_t n = j->a->n, tasks = 4 * (int64_t)n_threads;
    const int64_t step = min_i64(FLOAT_COLS_MOST, max_i64(FLOAT_COLS, (n + tasks - 1) / tasks));
    const int64_t few = (n + step - 1) / step, even = (few + n_threads - 1) / n_threads * n_threads;
    const int64_t cols = even * FLOAT_COLS / 2 <= n ? even : few;
    j->col_step = (int)((n + cols - 1) / cols);
    j->col_tasks = (int)((n + j->col_step - 1) / j->col_step);
    const int64_t have = j->groups * j->col_tasks, panels = (j->group_rows + FLOAT_ROWS - 1) / FLOAT_ROWS;
    const int64_t parts = max_i64(1, min_i64((tasks + have - 1) / have, panels));
    j->row_step = (int)((panels + parts - 1) / parts * FLOAT_ROWS);
    j->row_tasks = (j->group_rows + j->row_step - 1) / j->row_step;
}

static void matmul_plan(struct matmul_job *j, int n_threads)
{
    const struct matmul_args *a = j->a;
    const int64_t groups = j->groups = matmul_groups(&a->w->v, &a->x->d);
    j->group_bytes =
        a->x->d.kind == BUF_ACT ? act_row_bytes(a->x->d.act, a->x->d.width) : (size_t)a->w->v.ne[0] * sizeof(float);
    j->group_rows = a->each ? view_rows(&a->w->v) : view_rows(&a->w->v) / groups;
    if (j->a->n >= MANY && a->w->type->act == ACT_F32) {
        float_plan(j, n_threads);
        return;
    }
    /* Several rows of activations: larger tasks, as in each the first weights come late, which nobody has asked for. */
    const size_t row_bytes = quant_row_bytes(a->w->v.type, a->w->v.ne[0]) / (a->n >= SEVERAL ? LARGER : 1);
    j->row_step =
        cpu_tile_rows(j->group_rows, row_bytes, max_i64(1, 4 * n_threads / groups), groups == 1 ? n_threads : 1);
    j->row_tasks = (j->group_rows + j->row_step - 1) / j->row_step;
    const int64_t tasks = groups * j->row_tasks, want = (4 * n_threads + tasks - 1) / tasks;
    j->col_tasks = (int)max_i64(1, min_i64(want, a->n / 8));
    j->col_step = (a->n + j->col_tasks - 1) / j->col_tasks;
    j->col_tasks = (a->n + j->col_step - 1) / j->col_step;
}

void cpu_matmul(struct dev_stream *s, const struct matmul_args *a)
{
    if (!cpu_ready(s) || a->n <= 0) return;
    struct matmul_job j = {.a = a, .tile = quant_tile(cpu_of(s)->isa, a->w->v.type)};
    if (!matmul_check(s, a, j.tile)) return;
    const struct quant_slab *slab = quant_slab_for(quant_slab(cpu_of(s)->isa, a->w->v.type), a->n);
    if (slab) {
        cpu_matmul_slabs(s, a, slab);
        return;
    }
    matmul_plan(&j, cpu_of(s)->n_threads);
    cpu_tasks(s, matmul_task, &j, j.groups * j.row_tasks * j.col_tasks);
}
