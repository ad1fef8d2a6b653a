/* Weight rows times many activation rows: slabs and panels (quant.h), cut to the caches. Used by matmul and by the
 * experts.
 *
 * Weight rows are unpacked a piece at a time, so long that its slab stays in a first-level cache while the panels pass
 * by. The panels lie in the order in which they are read: those of the first piece, those of the second ... */
#ifndef CPU_SLAB_H
#define CPU_SLAB_H
#include "device/cpu/cpu_internal.h"

/* n activation rows of k values, packed for weights of one type: n * cpu_column_bytes bytes. */
struct cpu_panels {
    const struct quant_slab *s;
    int64_t k;
    int n;
    uint8_t *p;
};

/* Bytes per activation row of k values. Behind panels QUANT_PANEL_BEHIND bytes are read. */
size_t cpu_column_bytes(const struct quant_slab *s, int64_t k);

/* Packs rows [c, c + n), quantised in the weights' activation format; c: a multiple of a panel's rows, n: at most as
 * many, fewer only at the end. */
void cpu_panels_put(const struct cpu_panels *to, int c, const uint8_t *const *x, int n);

/* Bytes of a slab, of one or several blocks; slabs that are multiplied with the same panels. */
enum { CPU_SLAB_MOST = 24 << 10, CPU_SLABS = 4 };

struct cpu_slabs {
    const struct quant_slab *s; /* NULL: the rows are not unpacked */
    int n;
    struct cpu_rows {
        const struct tensor_view *w; /* all of one type and length */
        int64_t r0;                  /* 3-D: counted through all matrices */
        int n;                       /* 1..QUANT_SLAB */
    } rows[CPU_SLABS];
};

/* At most n slabs of a matrix's rows r0.. below end; with `second`, each is followed by one of the same rows of that.
 */
struct cpu_slabs cpu_slabs_of(const struct quant_slab *s, const struct tensor_view *w, const struct tensor_view *second,
                              int64_t r0, int64_t end, int n);

/* acc[(i*x->n + c)*QUANT_SLAB + r] = weight row r of slab i times activation row c; values of rows that a slab does not
 * have are undefined. Meanwhile the first weights of what is probably next are fetched. scratch: CPU_SLAB_MOST bytes,
 * on a 64-byte border. */
void cpu_slabs_run(const struct cpu_slabs *w, const struct cpu_panels *x, const struct cpu_slabs *next,
                   uint8_t *scratch, float *acc);

#endif
