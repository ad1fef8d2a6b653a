/* Writes the rows of a tensor that several threads make, batch by batch: memory stays bounded, and the bytes do not
 * depend on the number of threads. */
#ifndef TENSOR_STREAM_H
#define TENSOR_STREAM_H
#include <stdint.h>
#include "base/err.h"
#include "base/pool.h"
#include "gguf/gguf.h"

/* Makes rows [row, row + n) into out. thread: as in pool_run. */
typedef int tensor_rows_fn(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e);

/* Appends n_rows rows of row_bytes bytes to the tensor that is being written. An error of fn (that of the lowest row in
 * a batch) ends it. */
int tensor_stream(struct gguf_writer *w, struct pool *pool, int64_t n_rows, uint64_t row_bytes, tensor_rows_fn *fn,
                  void *arg, struct err *e);

#endif
