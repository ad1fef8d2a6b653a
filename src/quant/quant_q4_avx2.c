/* AVX2 tiles of Q4_1, Q5_0, Q5_1, IQ4_NL and IQ4_XS (spec more-quants 2.1, 2.2). */
#ifdef __AVX2__
#include "quant/quant_codes32_tile_avx2.h"

QUANT_TILE(tile_q4_1_avx2, tile, QT_Q4_1)
QUANT_TILE(tile_q5_0_avx2, tile, QT_Q5_0)
QUANT_TILE(tile_q5_1_avx2, tile, QT_Q5_1)
QUANT_TILE(tile_iq4_nl_avx2, tile, QT_IQ4_NL)
QUANT_TILE(tile_iq4_xs_avx2, tile, QT_IQ4_XS)
#endif
