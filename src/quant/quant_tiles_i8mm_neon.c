/* The kernel set of ARM processors with 8-bit matrix products (Armv8.2 I8MM) besides dot products. */
#define NEON_TABLE quant_tiles_neon_i8mm
#ifdef __ARM_FEATURE_MATMUL_INT8
#define NEON_COMPILED 1
#endif
#include "quant/quant_neon.inc"
