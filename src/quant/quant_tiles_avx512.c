/* The AVX-512 kernel set. Empty where the compiler has no AVX-512. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab_avx512.h"

/* With few activation rows the AVX2 kernels are as fast as the memory. */
const quant_tile_table quant_tiles_avx512 = {
    [QT_F32] = tile_f32_avx512, [QT_F16] = tile_f16_avx512,         [QT_BF16] = tile_bf16_avx512,
    [QT_Q8_0] = tile_q8_0_avx2, [QT_Q4_0] = tile_q4_0_avx2,         [QT_MXFP4] = tile_mxfp4_avx2,
    [QT_Q2_K] = tile_q2_k_avx2, [QT_Q4_K] = tile_q4_k_avx2,         [QT_Q5_K] = tile_q5_k_avx2,
    [QT_Q6_K] = tile_q6_k_avx2, [QT_IQ2_XXS] = tile_iq2_xxs_avx512,
};

const quant_slab_table quant_slabs_avx512 = {
    [QT_Q8_0] = &slab_q8_0_avx512, [QT_Q4_0] = &slab_q4_0_avx512,       [QT_MXFP4] = &slab_mxfp4_avx512,
    [QT_Q2_K] = &slab_q2_k_avx512, [QT_Q4_K] = &slab_q4_k_avx512,       [QT_Q5_K] = &slab_q5_k_avx512,
    [QT_Q6_K] = &slab_q6_k_avx512, [QT_IQ2_XXS] = &slab_iq2_xxs_avx512,
};
#else
#include "quant/quant_internal.h"

const quant_tile_table quant_tiles_avx512 = {0};
const quant_slab_table quant_slabs_avx512 = {0};
#endif
