/* Batches of about 8 MB, cut into tasks of about 256 kB. */
#include "tensor_stream.h"
#include "base/mem.h"

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

int tensor_stream(struct gguf_writer *w, struct pool *pool, int64_t n_rows, uint64_t row_bytes, tensor_rows_fn *fn,
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
        rc = run_batch(&b, pool, e);
        if (!rc) gguf_write(w, b.out, (uint64_t)b.n * row_bytes);
    }
    mem_free(b.out);
    return rc;
}
