/* The AVX-VNNI kernel set: its slabs; few activation rows take the tile kernels of AVX2. Empty where the compiler has
 * no AVX-VNNI. */
#ifdef __AVXVNNI__
#include "quant/quant_slab_avx2.h"

const quant_slab_table quant_slabs_avxvnni = {
    [QT_Q8_0] = &slab_q8_0_avxvnni,       [QT_Q4_0] = &slab_q4_0_avxvnni,       [QT_MXFP4] = &slab_mxfp4_avxvnni,
    [QT_Q2_K] = &slab_q2_k_avxvnni,       [QT_Q4_K] = &slab_q4_k_avxvnni,       [QT_Q5_K] = &slab_q5_k_avxvnni,
    [QT_Q6_K] = &slab_q6_k_avxvnni,       [QT_IQ2_XXS] = &slab_iq2_xxs_avxvnni, [QT_Q4_1] = &slab_q4_1_avxvnni,
    [QT_Q5_0] = &slab_q5_0_avxvnni,       [QT_Q5_1] = &slab_q5_1_avxvnni,       [QT_IQ4_NL] = &slab_iq4_nl_avxvnni,
    [QT_IQ4_XS] = &slab_iq4_xs_avxvnni,   [QT_Q3_K] = &slab_q3_k_avxvnni,       [QT_TQ1_0] = &slab_tq1_0_avxvnni,
    [QT_TQ2_0] = &slab_tq2_0_avxvnni,     [QT_IQ2_XS] = &slab_iq2_xs_avxvnni,   [QT_IQ2_S] = &slab_iq2_s_avxvnni,
    [QT_IQ3_XXS] = &slab_iq3_xxs_avxvnni, [QT_IQ3_S] = &slab_iq3_s_avxvnni,     [QT_IQ1_S] = &slab_iq1_s_avxvnni,
    [QT_IQ1_M] = &slab_iq1_m_avxvnni,
};
#else
#include "quant/quant_internal.h"

const quant_slab_table quant_slabs_avxvnni = {0};
#endif
