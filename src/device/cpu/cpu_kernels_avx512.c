/* The kernel set for x86-64 with AVX-512: that for AVX2, with wider sums of products. */
#ifdef __AVX512VNNI__
#define CPU_KERNELS      cpu_kernels_avx512
#define CPU_KERNELS_NAME "avx512"
#define CPU_VEC_512
#include "device/cpu/cpu_kernels.inc"
#else
#include "device/cpu/cpu_kernels.h"
const struct cpu_kernels cpu_kernels_avx512 = {.name = "avx512"}; /* never chosen */
#endif
