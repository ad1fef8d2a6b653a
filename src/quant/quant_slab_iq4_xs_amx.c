/* Slab kernel of IQ4_XS by tiles of products, whose blocks of 256 are eight steps of 32 codes (activations ACT_Q8_K).
 * See quant_amx.h.
 *
 * Floor of a step of sixteen rows times sixteen: that of a block of Q8_0 (quant_slab32_amx.c). 16,384 rows of 4,096
 * values from memory times 16, 24, 48 and 1,056 activations, with unpacking, thousand million multiply-adds a second:
 * 238, 274, 361 and 412 (AVX-512 200, 223, 255 and 264). */
#if defined(__AMX_INT8__) || defined(__AMXINT8__) /* gcc; clang up to 14 */
#include "quant/quant_amx.h"
#include "quant/quant_slab_iq4_xs_avx512.h"

enum { COLUMN = 256 + 4 /* codes, in pieces of 32; scale */ };

INLINE void pass(enum qtype t, int R, int n, int n_blocks, const uint8_t *slab, const uint8_t *panel, float *acc)
{
    (void)t;
    const struct part_xs *const parts = (const struct part_xs *)(const void *)slab;
    const size_t block = COLUMN * (size_t)n, piece = 32 * (size_t)n;
    _Alignas(64) tile_sums sums;
    _Alignas(64) float d[TILE_ROWS][SLAB_ROWS]; /* the blocks' scales times those of the activations */
    _Alignas(64) float rest[TILE_ROWS];
    tiles_load(parts->code[0], panel);
    sums_start();
    for (int h = 0; h < HALF; h++) {
        __m512 k[TILE_ROWS];
        rows_load(R, n, acc + SLAB_ROWS * h, k);
        for (int b = 0; b < n_blocks; b++) {
            const struct part_xs *const s = parts + HALF * b + h;
            const uint8_t *const x = panel + block * (size_t)b;
            const float *const yd = row_floats(n, x + 8 * piece, rest);
            UNROLL_16 for (int r = 0; r < R; r++)
                _mm512_store_ps(d[r], _mm512_mul_ps(_mm512_load_ps(s->d), _mm512_set1_ps(yd[r])));
            for (int i = 0; i < 8; i++) {
                if (i < 7)
                    tiles_load(s->code[8 * (i + 1)], x + piece * (size_t)(i + 1));
                else if (b + 1 < n_blocks)
                    tiles_load(s[HALF].code[0], x + block);
                else if (h + 1 < HALF)
                    tiles_load(parts[h + 1].code[0], panel);
                _tile_stored(0, sums, 64);
                sums_start();
                const __m512 scale = _mm512_load_ps(s->scale[i]);
                UNROLL_16 for (int r = 0; r < R; r++) k[r] =
                    _mm512_add_ps(k[r], _mm512_mul_ps(_mm512_mul_ps(_mm512_load_ps(d[r]), scale), sums_row(sums, r)));
            }
        }
        rows_store(R, n, k, acc + SLAB_ROWS * h);
    }
}

AMX_MULTIPLY(multiply, pass, QT_IQ4_XS)

static void fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)
{
    fill32_iq4_xs(&(struct filling32){row, first, n_blocks, HALF, 0, slab});
}

const struct quant_slab slab_iq4_xs_amx = {.block = 256,
                                           .rows = HALF * SLAB_ROWS,
                                           .panel = TILE_ROWS,
                                           .from = 16,
                                           .fewer = &slab_iq4_xs_avx512,
                                           .slab_block = HALF * sizeof(struct part_xs),
                                           .panel_block = COLUMN,
                                           .begin = tiles_begin_32,
                                           .end = tiles_end,
                                           .pack = quant_pack_rows_steps,
                                           .fill = fill,
                                           .multiply = multiply};
#endif
