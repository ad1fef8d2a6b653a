/* Slabs cut to the second-level cache: see cpu_slab.h. */
#include "device/cpu/cpu_slab.h"

size_t cpu_column_bytes(const struct quant_slab *s, int64_t k)
{
    return (size_t)(k / s->block) * s->panel_block;
}

/* Blocks of a piece. */
static int piece_blocks(const struct quant_slab *s, int64_t k)
{
    return (int)min_i64(k / s->block, max_i64(1, (int64_t)(CPU_SLAB_MOST / s->slab_block)));
}

size_t cpu_slab_bytes(const struct quant_slab *s, int64_t k)
{
    return (size_t)piece_blocks(s, k) * s->slab_block;
}

/* Asks for piece i of `of` equal ones of what is ahead. */
static void fetch_ahead(const struct cpu_ahead *a, int i, int of)
{
    if (!a->w) return;
    const size_t bytes = (size_t)a->n * a->w->stride[1], from = bytes * (size_t)i / (size_t)of;
    const uint8_t *const p = view_row(a->w, a->r0);
    for (size_t at = from & ~(size_t)63; at < bytes * (size_t)(i + 1) / (size_t)of; at += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + at), 0, 2);
}

void cpu_slab_run(const struct quant_slab *s, const struct tensor_view *w, int64_t r0, int n, struct cpu_panels x,
                  int n_cols, struct cpu_ahead ahead, uint8_t *slab, float *acc)
{
    const int blocks = (int)(w->ne[0] / s->block), each = piece_blocks(s, w->ne[0]);
    const uint8_t *row[QUANT_SLAB];
    for (int i = 0; i < QUANT_SLAB; i++) row[i] = view_row(w, r0 + min_i64(i, n - 1));
    for (int b = 0; b < blocks; b += each) {
        const int m = (int)min_i64(each, blocks - b);
        const int piece = (b == 0 ? SLAB_FIRST : 0) | (b + m == blocks ? SLAB_LAST : 0);
        s->fill(row, b, m, slab);
        if (b > 0) ahead.w = NULL;
        for (int c = 0; c < n_cols; c += s->panel) {
            const int cols = (int)min_i64(s->panel, n_cols - c);
            const uint8_t *const panel = x.p + (size_t)c * x.column_bytes + (size_t)(b * cols) * s->panel_block;
            fetch_ahead(&ahead, c / s->panel, (n_cols + s->panel - 1) / s->panel);
            s->multiply(m, slab, panel, cols, piece, acc + (size_t)c * QUANT_SLAB);
        }
    }
}
