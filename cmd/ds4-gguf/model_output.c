/* Batches of about 8 MB, cut into tasks of about 256 kB. */
#include "model_output.h"
#include <string.h>
#include <sys/stat.h>
#include "base/mem.h"
#include "base/program.h"
#include "quant/quant.h"

#define BATCH_BYTES (8u << 20)
enum { TASKS_PER_BATCH = 32 };

struct batch {
    tensor_rows_fn *fn;
    void *arg;
    int64_t first, n, rows_per_task; /* rows of this batch */
    uint64_t row_bytes;
    uint8_t *out;
    struct err errors[TASKS_PER_BATCH];
};

static void run_task(void *arg, int task, int thread)
{
    struct batch *b = arg;
    const int64_t at = task * b->rows_per_task;
    const int64_t n = b->n - at < b->rows_per_task ? b->n - at : b->rows_per_task;
    b->fn(b->arg, b->first + at, n, b->out + (uint64_t)at * b->row_bytes, thread, &b->errors[task]);
}

static int run_batch(struct batch *b, struct pool *pool, struct err *e)
{
    const int n_tasks = (int)((b->n + b->rows_per_task - 1) / b->rows_per_task);
    pool_run(pool, run_task, b, n_tasks);
    for (int i = 0; i < n_tasks; i++)
        if (b->errors[i].code) return err_set(e, b->errors[i].code, "%s", b->errors[i].msg);
    return 0;
}

int model_output_rows(struct model_output *m, const char *name, int64_t n_rows, uint64_t row_bytes, tensor_rows_fn *fn,
                      void *arg, struct err *e)
{
    int64_t rows = (int64_t)(BATCH_BYTES / row_bytes);
    if (rows < 1) rows = 1;
    if (rows > n_rows) rows = n_rows;
    struct batch b = {.fn = fn, .arg = arg, .row_bytes = row_bytes};
    b.rows_per_task = (rows + TASKS_PER_BATCH - 1) / TASKS_PER_BATCH;
    b.out = mem_try((size_t)rows * row_bytes);
    if (!b.out)
        return err_set(e, ERR_MEMORY, "not enough memory for rows of %llu bytes", (unsigned long long)row_bytes);
    int rc = 0;
    for (b.first = 0; b.first < n_rows && !rc; b.first += b.n) {
        b.n = n_rows - b.first < rows ? n_rows - b.first : rows;
        rc = run_batch(&b, m->pool, e);
        if (!rc) gguf_write(m->w, b.out, (uint64_t)b.n * row_bytes);
        if (!rc) rc = gguf_writer_error(m->w, e);
        work_progress_add(&m->progress, name, (uint64_t)b.n * row_bytes);
    }
    mem_free(b.out);
    return rc;
}

/* ---- options */

void model_output_require(struct args *a, const struct model_output_options *o)
{
    if (!a->bad && !o->path) args_mistake(a, "no output file given (-o FILE)");
}

/* ---- the file */

int model_output_check(const struct model_output_options *o, struct err *e)
{
    struct stat st;
    if (stat(o->path, &st)) return 0;
    if (S_ISDIR(st.st_mode)) return err_set(e, ERR_IO, "%s: is a folder, not a file to write", o->path);
    if (o->overwrite || !S_ISREG(st.st_mode)) return 0;
    return err_set(e, ERR_IO, "%s exists; --overwrite replaces it", o->path);
}

int model_output_open(struct model_output *m, const struct model_output_options *o, struct err *e)
{
    *m = (struct model_output){.options = o};
    int rc = pool_create(o->threads, &m->pool, e);
    if (!rc) rc = gguf_writer_open(o->path, &m->w, e);
    return rc;
}

void model_output_general(struct model_output *m, const char *architecture, const char *name, uint64_t n_name)
{
    gguf_put_str(m->w, "general.architecture", architecture, strlen(architecture));
    gguf_put_str(m->w, "general.type", "model", 5);
    gguf_put_str(m->w, "general.name", name, n_name);
    gguf_put_u32(m->w, "general.quantization_version", 2);
}

void model_output_declare(struct model_output *m, const struct layout_tensor *t, uint32_t type)
{
    uint64_t bytes = quant_row_bytes(type, (int64_t)t->ne[0]);
    for (int d = 1; d < t->n_dims; d++) bytes *= t->ne[d];
    m->bytes += bytes;
    m->n_tensors++;
    if (t->role == ROLE_TABLE)
        gguf_declare_tail(m->w, t->name, type, t->n_dims, t->ne, LAYOUT_TABLE_BORDER);
    else
        gguf_declare(m->w, t->name, type, t->n_dims, t->ne);
}

int model_output_start(struct model_output *m, bool quiet, struct err *e)
{
    work_progress_begin(&m->progress, quiet ? 0 : m->bytes);
    return gguf_writer_error(m->w, e);
}

int model_output_close(struct model_output *m, int rc, struct err *e)
{
    if (rc)
        gguf_writer_abort(m->w);
    else
        rc = gguf_writer_finish(m->w, e);
    work_progress_end(&m->progress);
    if (m->pool) pool_free(m->pool);
    if (!rc && !m->options->part)
        program_say("ds4-gguf", "wrote %s, %llu tensors", m->options->path, (unsigned long long)m->n_tensors);
    return rc;
}
