/* A model file that a command makes: where to, by how many threads, what is said meanwhile. The rows of a tensor are
 * made by several threads, batch by batch: memory stays bounded, and the bytes do not depend on the number of threads.
 */
#ifndef MODEL_OUTPUT_H
#define MODEL_OUTPUT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/pool.h"
#include "common/option.h"
#include "gguf/gguf.h"
#include "layout.h"
#include "common/work_progress.h"

struct model_output_options {
    const char *path;
    bool overwrite;
    int threads; /* 0: one per core */
    bool part;   /* one file of several, of which whoever writes them tells */
};

/* Rows of a command's options (option.h) for such a field of the type. */
#define MODEL_OUTPUT_ROWS(type, field)                                                                                 \
    {"-o", "--out", "FILE", "the file to write", OPTION_OUT(type, field.path)},                                        \
        {"--overwrite", NULL, NULL, "replace it if it exists", OPTION_SET(type, field.overwrite, true)},               \
    {                                                                                                                  \
        "-t", "--threads", "N", "threads (default: one per core)", OPTION_INT(type, field.threads, 1, 1024)            \
    }
/* A mistake if no file was named. */
void model_output_require(struct args *a, const struct model_output_options *o);

struct model_output {
    const struct model_output_options *options;
    struct gguf_writer *w;
    struct pool *pool;
    struct work_progress progress;
    uint64_t n_tensors, bytes; /* declared */
};

/* Refuses a file that exists. What is no file (a pipe) is written to. */
int model_output_check(const struct model_output_options *o, struct err *e);
/* Starts the threads and opens the file. model_output_close follows in any case. */
int model_output_open(struct model_output *m, const struct model_output_options *o, struct err *e);
/* The records that every model begins with. */
void model_output_general(struct model_output *m, const char *architecture, const char *name, uint64_t n_name);
/* A table (ROLE_TABLE) comes last. */
void model_output_declare(struct model_output *m, const struct layout_tensor *t, uint32_t type);
/* Behind the last declaration. quiet: no line of progress. Returns what was wrong with the records, if anything. */
int model_output_start(struct model_output *m, bool quiet, struct err *e);

/* Makes rows [row, row + n) into out. thread: as in pool_run. */
typedef int tensor_rows_fn(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e);
/* Appends n_rows rows of row_bytes bytes to the tensor that is being written. An error of fn (that of the lowest row in
 * a batch) ends it. */
int model_output_rows(struct model_output *m, const char *name, int64_t n_rows, uint64_t row_bytes, tensor_rows_fn *fn,
                      void *arg, struct err *e);

/* Ends the threads; rc 0: puts the file in its place and says so, else nothing is left of it. Returns the first error.
 */
int model_output_close(struct model_output *m, int rc, struct err *e);

#endif
