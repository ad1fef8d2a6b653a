/* AVX2 tiles of the types with code books (spec gguf-and-quants 2.9, more-quants 2.3 to 2.5). Table loads, one per
 * group of eight or four values, are what they cost: more than the bytes from memory do. Measured, 10^9 weights per
 * second of one thread with 1 and 32 activation rows, and GB/s from memory (Zen 4): IQ2_XXS 17, 77, 4.6; IQ2_XS 18,
 * 76, 5.2; IQ2_S 19, 75, 6.2; IQ3_XXS 12, 73, 4.7; IQ3_S 13, 81, 5.7; IQ1_S 19, 90, 3.7; IQ1_M 17, 84, 3.9. */
#ifdef __AVX2__
#include "quant/quant_k_tile_avx2.h"

QUANT_TILE(tile_iq2_xxs_avx2, tile, QT_IQ2_XXS)
QUANT_TILE(tile_iq2_xs_avx2, tile, QT_IQ2_XS)
QUANT_TILE(tile_iq2_s_avx2, tile, QT_IQ2_S)
QUANT_TILE(tile_iq3_xxs_avx2, tile, QT_IQ3_XXS)
QUANT_TILE(tile_iq3_s_avx2, tile, QT_IQ3_S)
QUANT_TILE(tile_iq1_s_avx2, tile, QT_IQ1_S)
QUANT_TILE(tile_iq1_m_avx2, tile, QT_IQ1_M)
#endif
