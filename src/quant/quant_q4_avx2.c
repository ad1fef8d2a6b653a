/* AVX2 tiles of Q4_1, Q5_0, Q5_1, IQ4_NL and IQ4_XS (spec more-quants 2.1, 2.2).
 *
 * Floor: 12 (Q4_1) to 16 (Q5_0) vector instructions for 32 values and one activation row, three a cycle: 18 to 24 *
 * 10^9 weights per second at 3 GHz, 10 to 13 GB/s. Measured, one core of an Intel Xeon (Emerald Rapids), 1 and 32
 * activation rows, 10^9 weights per second, and GB/s from memory, where Q8_0 gets 14: Q4_1 21, 78, 12.3; Q5_0 14,
 * 56, 7.6; Q5_1 15, 68, 9.5; IQ4_NL 18, 45, 9.9; IQ4_XS 16, 46, 8.2. */
#ifdef __AVX2__
#include "quant/quant_codes32_tile_avx2.h"

QUANT_TILE(tile_q4_1_avx2, tile, QT_Q4_1)
QUANT_TILE(tile_q5_0_avx2, tile, QT_Q5_0)
QUANT_TILE(tile_q5_1_avx2, tile, QT_Q5_1)
QUANT_TILE(tile_iq4_nl_avx2, tile, QT_IQ4_NL)
QUANT_TILE(tile_iq4_xs_avx2, tile, QT_IQ4_XS)
#endif
