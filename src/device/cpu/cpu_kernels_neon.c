/* The kernel set for 64-bit ARM; 8-bit products matter to the tiles of quant/ only. */
#ifdef __aarch64__
#define CPU_VEC_NEON
#define CPU_KERNELS      cpu_kernels_neon
#define CPU_KERNELS_NAME "neon"
#include "device/cpu/cpu_kernels.inc"
#else
typedef int cpu_kernels_neon_not_built;
#endif
