/* Products of one row after the other (cpu_matmul.c) and of many rows (cpu_matmul_slab.c). */
#ifndef CPU_MATMUL_H
#define CPU_MATMUL_H
#include "device/cpu/cpu_internal.h"

/* Arguments have been checked; slab: kernels of the weights' type. */
void cpu_matmul_slabs(struct dev_stream *s, const struct matmul_args *a, const struct quant_slab *slab);

#endif
