/* Weight rows times many activation rows: slabs and panels (quant.h), cut to the caches. Used by matmul and by the
 * experts. */
#ifndef CPU_SLAB_H
#define CPU_SLAB_H
#include "device/cpu/cpu_internal.h"

/* Activation rows packed for weights of one type. Rows lie column_bytes apart on average: those from a multiple of
 * a panel's rows on begin at that many times column_bytes. */
struct cpu_panels {
    const uint8_t *p;
    size_t column_bytes;
};

/* Bytes per activation row of k values. */
size_t cpu_column_bytes(const struct quant_slab *s, int64_t k);

/* A slab stays in a second-level cache, beside a panel and the outputs. */
enum { CPU_SLAB_MOST = 320 << 10 };
/* Bytes of a slab for rows of k values: of whole rows, or of pieces of long ones. */
size_t cpu_slab_bytes(const struct quant_slab *s, int64_t k);

/* Weight rows that the thread will probably want next, n of them from r0 on; w NULL: none. */
struct cpu_ahead {
    const struct tensor_view *w;
    int64_t r0, n;
};

/* acc[c*QUANT_SLAB + i] = row r0 + i of the view (3-D: counted through all its matrices) times row c of n_cols packed
 * ones, for i < n <= QUANT_SLAB; the other values of acc are undefined. What is ahead is fetched meanwhile. slab:
 * scratch. */
void cpu_slab_run(const struct quant_slab *s, const struct tensor_view *w, int64_t r0, int n, struct cpu_panels x,
                  int n_cols, struct cpu_ahead ahead, uint8_t *slab, float *acc);

#endif
