/* The loops of the kernel sets. */
#ifndef PEAK_INTERNAL_H
#define PEAK_INTERNAL_H
#include "peak.h"

/* Independent sums, so that none waits for another one. All loops over them are unrolled, or the compiler keeps the
 * sums in memory. */
enum { PEAK_CHAINS = 12 };
peak_fn peak_int8_avx2, peak_f32_avx2, peak_int8_avxvnni, peak_int8_avx512, peak_f32_avx512, peak_tiles_amx;

#endif
