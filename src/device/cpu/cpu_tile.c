/* Cutting of tiles: see cpu_tile.h. */
#include "device/cpu/cpu_tile.h"

/* Activation bytes that stay in a second-level cache beside the weights that stream through it; rows that kernels
 * multiply with one unpacking of the weights; weights of a task: long streams are read faster (decode of Flash-shaped
 * layers with 128, 256, 512, 1024 KiB: 14.3, 15.0, 15.6, 15.2 tokens/s, Zen 4, 2 cores). */
enum { BLOCK_BYTES = 640 << 10, BLOCK_ROWS = 64, TASK_BYTES = 512 << 10 };

void cpu_tile_run(const struct cpu_tile *q, int64_t r0, int n)
{
    const bool floats = quant_type(q->w->type)->act == ACT_F32; /* these kernels cut by themselves */
    const int64_t fit = q->x_stride ? (int64_t)(BLOCK_BYTES / q->x_stride) / 8 * 8 : BLOCK_ROWS;
    const int step = floats ? q->n_cols : (int)min_i64(BLOCK_ROWS, max_i64(8, fit));
    float *out = q->out;
    while (n > 0) {
        const int m = (int)min_i64(n, q->w->ne[1] - r0 % q->w->ne[1]); /* up to the end of this matrix */
        for (int c = 0; c < q->n_cols; c += step)
            q->tile((int)q->w->ne[0], view_row(q->w, r0), q->w->stride[1], m, q->x + (size_t)c * q->x_stride,
                    q->x_stride, (int)min_i64(step, q->n_cols - c), out + (size_t)c * q->out_stride, q->out_stride);
        out += m, r0 += m, n -= m;
    }
}

int cpu_tile_rows(int64_t n_rows, size_t row_bytes, int64_t tasks, int threads)
{
    int64_t step = (n_rows + tasks - 1) / tasks;
    step = min_i64(step, max_i64(8, (int64_t)(TASK_BYTES / (row_bytes + 1))));
    const int64_t vector = step >= 16 ? 16 : step >= 8 ? 8 : 1; /* rows that kernels take at a time */
    step = max_i64(1, step / vector * vector);
    const int64_t count = (n_rows + step - 1) / step, even = max_i64(1, (count + threads - 1) / threads * threads);
    const int64_t each = ((n_rows + even - 1) / even + vector - 1) / vector * vector;
    return (int)min_i64(step, each);
}
