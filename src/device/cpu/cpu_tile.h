/* Weight rows times activation rows, cut to the caches. Used by matmul and by the experts. */
#ifndef CPU_TILE_H
#define CPU_TILE_H
#include "device/cpu/cpu_internal.h"

struct cpu_tile {
    quant_tile_fn *tile;
    const struct tensor_view *w;
    const uint8_t *x; /* n_cols activation rows, x_stride bytes apart */
    size_t x_stride;
    int n_cols;
    float *out; /* out[c*out_stride + i]: weight row r0 + i */
    size_t out_stride;
};

/* Rows [r0, r0+n) of the view (3-D: counted through all its matrices). */
void cpu_tile_run(const struct cpu_tile *q, int64_t r0, int n);

/* Rows per task: at least `tasks` tasks if there are so many rows, pieces of a size that amortises a task's start but
 * balances the threads, and a multiple of 8 where possible; as many for every one of `threads`, where that can be. */
int cpu_tile_rows(int64_t n_rows, size_t row_bytes, int64_t tasks, int threads);

#endif
