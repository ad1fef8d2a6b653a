/* The kernel set of tiles of products: what AVX-512 has, but slabs of most types. Empty where the compiler has no AMX.
 */
#if defined(__AMX_INT8__) || defined(__AMXINT8__) /* gcc; clang up to 14 */
#include "quant/quant_amx.h"

/* Prepares tiles whose rows have `codes` codes. */
static void begin(int codes)
{
    _Alignas(64) struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    _Static_assert(sizeof shape == 64, "what the processor loads");
    for (int i = 0; i < TILES; i++) {
        shape.rows[i] = (uint8_t)(i == WEIGHTS ? codes / 4 : TILE_ROWS);
        shape.row_bytes[i] = (uint16_t)(i == CODES ? codes : 64);
    }
    __asm__ volatile("" : : "m"(shape)); /* compilers do not know that all of it is read */
    _tile_loadconfig(&shape);
}

void tiles_begin_32(void)
{
    begin(32);
}

void tiles_begin_64(void)
{
    begin(64);
}

void tiles_end(void)
{
    _tile_release();
}

extern const struct quant_slab slab_q8_0_amx, slab_iq4_xs_amx, slab_q4_0_amx, slab_mxfp4_amx, slab_q2_k_amx,
    slab_q3_k_amx, slab_q4_k_amx, slab_q5_k_amx, slab_q6_k_amx, slab_iq2_xxs_amx, slab_iq2_xs_amx, slab_iq2_s_amx,
    slab_q4_1_amx, slab_q5_0_amx, slab_q5_1_amx, slab_iq4_nl_amx, slab_iq3_xxs_amx, slab_iq3_s_amx, slab_iq1_s_amx,
    slab_iq1_m_amx, slab_tq1_0_amx, slab_tq2_0_amx;

const quant_slab_table quant_slabs_amx = {
    [QT_Q8_0] = &slab_q8_0_amx,       [QT_Q4_0] = &slab_q4_0_amx,
    [QT_MXFP4] = &slab_mxfp4_amx,     [QT_Q2_K] = &slab_q2_k_amx,
    [QT_Q3_K] = &slab_q3_k_amx,       [QT_Q4_K] = &slab_q4_k_amx,
    [QT_Q5_K] = &slab_q5_k_amx,       [QT_Q6_K] = &slab_q6_k_amx,
    [QT_IQ2_XXS] = &slab_iq2_xxs_amx, [QT_IQ2_XS] = &slab_iq2_xs_amx,
    [QT_IQ2_S] = &slab_iq2_s_amx,     [QT_Q4_1] = &slab_q4_1_amx,
    [QT_Q5_0] = &slab_q5_0_amx,       [QT_Q5_1] = &slab_q5_1_amx,
    [QT_IQ4_NL] = &slab_iq4_nl_amx,   [QT_IQ3_XXS] = &slab_iq3_xxs_amx,
    [QT_IQ3_S] = &slab_iq3_s_amx,     [QT_IQ1_S] = &slab_iq1_s_amx,
    [QT_IQ1_M] = &slab_iq1_m_amx,     [QT_TQ1_0] = &slab_tq1_0_amx,
    [QT_TQ2_0] = &slab_tq2_0_amx,     [QT_IQ4_XS] = &slab_iq4_xs_amx,
    [QT_Q1_0] = &slab_q1_0_avx512,    [QT_Q2_0] = &slab_q2_0_avx512,
    [QT_NVFP4] = &slab_nvfp4_avx512,  [SLOT_Q2_0_128] = &slab_q2_0_128_avx512,
};
#else
#include "quant/quant_internal.h"

const quant_slab_table quant_slabs_amx = {0};
#endif
