/* The kernel set of every 64-bit ARM processor. */
#define NEON_TABLE quant_tiles_neon
#ifdef __aarch64__
#define NEON_COMPILED 1
#endif
#include "quant/quant_neon.inc"
