/* AVX2 slab kernels of the types with blocks of 32. */
#ifdef __AVX2__
#include "quant/quant_slab32_avx2.inc"
#endif
