/* Tiles of products (AMX) in portable C, in the place of the instructions: kernels that are compiled after this header
 * can be tested where the processor has none, and sanitizers see what tiles load and store. Their names change, so that
 * both can be linked. Include it before a kernel file. */
#ifndef TILES_MODEL_H
#define TILES_MODEL_H
#if defined(__AMX_INT8__) || defined(__AMXINT8__) /* gcc; clang up to 14 */
#include <assert.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

extern _Thread_local struct tiles_model {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
    uint8_t tile[8][16][64];
} tiles_model; /* tiles_model_slabs_amx.c */

static inline void tiles_model_config(const void *shape)
{
    memcpy(&tiles_model, shape, 64);
    assert(tiles_model.palette == 1);
}

static inline void tiles_model_load(int t, const void *from, long stride)
{
    assert(tiles_model.rows[t] && tiles_model.row_bytes[t]);
    memset(tiles_model.tile[t], 0, sizeof tiles_model.tile[t]);
    for (int r = 0; r < tiles_model.rows[t]; r++)
        memcpy(tiles_model.tile[t][r], (const uint8_t *)from + r * stride, tiles_model.row_bytes[t]);
}

static inline void tiles_model_store(int t, void *to, long stride)
{
    for (int r = 0; r < tiles_model.rows[t]; r++)
        memcpy((uint8_t *)to + r * stride, tiles_model.tile[t][r], tiles_model.row_bytes[t]);
}

/* c += a times b, whose codes have a sign or not. */
static inline void tiles_model_multiply(int c, int a, int b, int b_signed)
{
    assert(tiles_model.rows[c] == tiles_model.rows[a] && tiles_model.row_bytes[c] == tiles_model.row_bytes[b] &&
           tiles_model.row_bytes[a] == 4 * tiles_model.rows[b]);
    for (int m = 0; m < tiles_model.rows[c]; m++) {
        int32_t sum[16];
        memcpy(sum, tiles_model.tile[c][m], sizeof sum);
        for (int g = 0; g < tiles_model.rows[b]; g++)
            for (int i = 0; i < 64; i++) {
                const uint8_t w = tiles_model.tile[b][g][i];
                sum[i / 4] += (int8_t)tiles_model.tile[a][m][4 * g + i % 4] * (b_signed ? (int8_t)w : w);
            }
        memcpy(tiles_model.tile[c][m], sum, sizeof sum);
    }
}

static inline float tiles_model_bf16(const uint8_t *p)
{
    const uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* c += a times b of BF16 in pairs; such numbers that no sum is rounded. */
static inline void tiles_model_multiply_bf16(int c, int a, int b)
{
    assert(tiles_model.rows[c] == tiles_model.rows[a] && tiles_model.row_bytes[c] == tiles_model.row_bytes[b] &&
           tiles_model.row_bytes[a] == 4 * tiles_model.rows[b]);
    for (int m = 0; m < tiles_model.rows[c]; m++) {
        float sum[16];
        memcpy(sum, tiles_model.tile[c][m], sizeof sum);
        for (int g = 0; g < tiles_model.rows[b]; g++)
            for (int i = 0; i < 32; i++)
                sum[i / 2] += tiles_model_bf16(&tiles_model.tile[a][m][4 * g + i % 2 * 2]) *
                              tiles_model_bf16(&tiles_model.tile[b][g][2 * i]);
        memcpy(tiles_model.tile[c][m], sum, sizeof sum);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbf16ps
#define _tile_loadconfig             tiles_model_config
#define _tile_release()              memset(&tiles_model, 0, sizeof tiles_model)
#define _tile_loadd(t, from, stride) tiles_model_load(t, from, stride)
#define _tile_stored(t, to, stride)  tiles_model_store(t, to, stride)
#define _tile_dpbssd(c, a, b)        tiles_model_multiply(c, a, b, 1)
#define _tile_dpbsud(c, a, b)        tiles_model_multiply(c, a, b, 0)
#define _tile_dpbf16ps(c, a, b)      tiles_model_multiply_bf16(c, a, b)

#define tiles_begin_32   model_tiles_begin_32
#define tiles_begin_64   model_tiles_begin_64
#define tiles_end        model_tiles_end
#define slab_q8_0_amx    model_slab_q8_0
#define slab_q4_0_amx    model_slab_q4_0
#define slab_q4_1_amx    model_slab_q4_1
#define slab_q5_0_amx    model_slab_q5_0
#define slab_q5_1_amx    model_slab_q5_1
#define slab_iq4_nl_amx  model_slab_iq4_nl
#define slab_mxfp4_amx   model_slab_mxfp4
#define slab_q2_k_amx    model_slab_q2_k
#define slab_q3_k_amx    model_slab_q3_k
#define slab_q4_k_amx    model_slab_q4_k
#define slab_q5_k_amx    model_slab_q5_k
#define slab_q6_k_amx    model_slab_q6_k
#define slab_tq1_0_amx   model_slab_tq1_0
#define slab_tq2_0_amx   model_slab_tq2_0
#define slab_iq2_xxs_amx model_slab_iq2_xxs
#define slab_iq2_xs_amx  model_slab_iq2_xs
#define slab_iq2_s_amx   model_slab_iq2_s
#define slab_iq3_xxs_amx model_slab_iq3_xxs
#define slab_iq3_s_amx   model_slab_iq3_s
#define slab_iq1_s_amx   model_slab_iq1_s
#define slab_iq1_m_amx   model_slab_iq1_m
#define slab_iq4_xs_amx  model_slab_iq4_xs
#endif
#define quant_slabs_amx tiles_model_slabs

#endif
