/* AVX-VNNI slab kernels of the types with blocks of 256. */
#ifdef __AVXVNNI__
#include "quant/quant_slab256_avx2.inc"
#endif
