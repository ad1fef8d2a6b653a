/* The AVX-512 kernel set. Empty where the compiler has no AVX-512. */
#ifdef __AVX512VNNI__
#include "quant/quant_blocks.h"
#include "quant/quant_decoded.h"
#include "quant/quant_slab_avx512.h"

static quant_tile_fn tile_q8_1, tile_q8_k, tile_mxfp8, tile_mxfp8_sf;
QUANT_TILE_DECODED(tile_q8_1, quant_decode_q8_1, tile_f32_avx512, 32, Q8_1_BYTES)
QUANT_TILE_DECODED(tile_q8_k, quant_decode_q8_k, tile_f32_avx512, 256, Q8_K_BYTES)
QUANT_TILE_DECODED(tile_mxfp8, quant_decode_mxfp8, tile_f32_avx512, 256, MXFP8_BYTES)
QUANT_TILE_DECODED(tile_mxfp8_sf, quant_decode_mxfp8_sf, tile_f32_avx512, 256, MXFP8_BYTES)

const quant_tile_table quant_tiles_avx512 = {
    [QT_F32] = tile_f32_avx512,
    [QT_F16] = tile_f16_avx512,
    [QT_BF16] = tile_bf16_avx512,
    [QT_Q8_0] = tile_q8_0_avx512,
    [QT_Q4_0] = tile_q4_0_avx512,
    [QT_MXFP4] = tile_mxfp4_avx512,
    [QT_Q2_K] = tile_q2_k_avx512,
    [QT_Q4_K] = tile_q4_k_avx512,
    [QT_Q5_K] = tile_q5_k_avx512,
    [QT_Q6_K] = tile_q6_k_avx512,
    [QT_IQ2_XXS] = tile_iq2_xxs_avx512,
    [QT_Q4_1] = tile_q4_1_avx512,
    [QT_Q5_0] = tile_q5_0_avx512,
    [QT_Q5_1] = tile_q5_1_avx512,
    [QT_IQ4_NL] = tile_iq4_nl_avx512,
    [QT_IQ4_XS] = tile_iq4_xs_avx512,
    [QT_Q3_K] = tile_q3_k_avx512,
    [QT_TQ1_0] = tile_tq1_0_avx512,
    [QT_TQ2_0] = tile_tq2_0_avx512,
    [QT_IQ2_XS] = tile_iq2_xs_avx512,
    [QT_IQ2_S] = tile_iq2_s_avx512,
    [QT_IQ3_XXS] = tile_iq3_xxs_avx512,
    [QT_IQ3_S] = tile_iq3_s_avx512,
    [QT_IQ1_S] = tile_iq1_s_avx512,
    [QT_IQ1_M] = tile_iq1_m_avx512,
    [QT_NVFP4] = tile_nvfp4_avx512,
    [QT_Q1_0] = tile_q1_0_avx512,
    [QT_Q2_0] = tile_q2_0_avx512,
    [SLOT_Q2_0_128] = tile_q2_0_128_avx512,
    [QT_Q8_1] = tile_q8_1,
    [QT_Q8_K] = tile_q8_k,
    [SLOT_MXFP8] = tile_mxfp8,
    [SLOT_MXFP8_SF] = tile_mxfp8_sf,
};

const quant_slab_table quant_slabs_avx512 = {
    [QT_Q8_0] = &slab_q8_0_avx512,           [QT_Q4_0] = &slab_q4_0_avx512,       [QT_MXFP4] = &slab_mxfp4_avx512,
    [QT_Q2_K] = &slab_q2_k_avx512,           [QT_Q4_K] = &slab_q4_k_avx512,       [QT_Q5_K] = &slab_q5_k_avx512,
    [QT_Q6_K] = &slab_q6_k_avx512,           [QT_IQ2_XXS] = &slab_iq2_xxs_avx512, [QT_Q4_1] = &slab_q4_1_avx512,
    [QT_Q5_0] = &slab_q5_0_avx512,           [QT_Q5_1] = &slab_q5_1_avx512,       [QT_IQ4_NL] = &slab_iq4_nl_avx512,
    [QT_IQ4_XS] = &slab_iq4_xs_avx512,       [QT_Q3_K] = &slab_q3_k_avx512,       [QT_TQ1_0] = &slab_tq1_0_avx512,
    [QT_TQ2_0] = &slab_tq2_0_avx512,         [QT_IQ2_XS] = &slab_iq2_xs_avx512,   [QT_IQ2_S] = &slab_iq2_s_avx512,
    [QT_IQ3_XXS] = &slab_iq3_xxs_avx512,     [QT_IQ3_S] = &slab_iq3_s_avx512,     [QT_IQ1_S] = &slab_iq1_s_avx512,
    [QT_IQ1_M] = &slab_iq1_m_avx512,         [QT_Q1_0] = &slab_q1_0_avx512,       [QT_Q2_0] = &slab_q2_0_avx512,
    [SLOT_Q2_0_128] = &slab_q2_0_128_avx512, [QT_NVFP4] = &slab_nvfp4_avx512,
};
#else
#include "quant/quant_internal.h"

const quant_tile_table quant_tiles_avx512 = {0};
const quant_slab_table quant_slabs_avx512 = {0};
#endif
