/* AVX2 tiles of the K types, Q2_K to Q6_K, and of TQ1_0 and TQ2_0 (spec gguf-and-quants 2.5 to 2.8, more-quants 2.6).
 */
#ifdef __AVX2__
#include "quant/quant_k_tile_avx2.h"

QUANT_TILE(tile_q2_k_avx2, tile, QT_Q2_K)
QUANT_TILE(tile_q3_k_avx2, tile, QT_Q3_K)
QUANT_TILE(tile_q4_k_avx2, tile, QT_Q4_K)
QUANT_TILE(tile_q5_k_avx2, tile, QT_Q5_K)
QUANT_TILE(tile_q6_k_avx2, tile, QT_Q6_K)
QUANT_TILE(tile_tq1_0_avx2, tile, QT_TQ1_0)
QUANT_TILE(tile_tq2_0_avx2, tile, QT_TQ2_0)
#endif
