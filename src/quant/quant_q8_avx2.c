/* AVX2 tiles of Q8_0, Q4_0 and MXFP4 (spec gguf-and-quants 2.3, 2.4, 2.10). */
#ifdef __AVX2__
#include "quant/quant_codes32_tile_avx2.h"

QUANT_TILE(tile_q8_0_avx2, tile, QT_Q8_0)
QUANT_TILE(tile_q4_0_avx2, tile, QT_Q4_0)
QUANT_TILE(tile_mxfp4_avx2, tile, QT_MXFP4)
#endif
