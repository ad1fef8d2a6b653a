/* The kernel set for any processor. */
#define CPU_KERNELS      cpu_kernels_scalar
#define CPU_KERNELS_NAME "scalar"
#include "device/cpu/cpu_kernels.inc"
