/* Loops that do nothing but multiply and add in registers: what a core can do at most with a kernel set. */
#ifndef PEAK_H
#define PEAK_H
#include <stdint.h>
#include "quant/quant.h"

/* Products of vectors; those of tiles, which one kernel set has. */
enum peak_kind { PEAK_INT8, PEAK_F32, PEAK_TILES, PEAK_KINDS };

/* Does so many rounds; returns the multiply-adds of all of them. *sink takes what comes out. */
typedef int64_t peak_fn(int rounds, volatile float *sink);
/* The loop for a kernel set; sets without one of their own have that of portable C. NULL: the set has no tiles. */
peak_fn *peak_loop(enum quant_isa isa, enum peak_kind kind);

#endif
