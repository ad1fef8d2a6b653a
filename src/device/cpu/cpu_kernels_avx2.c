/* The kernel set for x86-64 with AVX2 and FMA. */
#ifdef __AVX2__
#define CPU_KERNELS      cpu_kernels_avx2
#define CPU_KERNELS_NAME "avx2"
#include "device/cpu/cpu_kernels.inc"
#else
typedef int cpu_kernels_avx2_not_built;
#endif
