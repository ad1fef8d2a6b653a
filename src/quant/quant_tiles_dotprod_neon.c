/* The kernel set of ARM processors with 8-bit dot products (Armv8.2 DotProd). */
#define NEON_TABLE quant_tiles_neon_dotprod
#ifdef __ARM_FEATURE_DOTPROD
#define NEON_COMPILED 1
#endif
#include "quant/quant_neon.inc"
