/* AVX-512 slab kernel of NVFP4, whose blocks of 64 are four steps of 16 codes with scales of their own (activations
 * ACT_Q8_0). Slabs hold the codes 12 too high. Spec more-quants 2.7.
 *
 * Floor: per step, 32 rows and a column 8 products and 8 float operations share two pipes: half of the int8 peak.
 * One of two cores of an Intel Xeon (Ice Lake, virtual), slabs and panels in the first-level cache, share of the peak
 * in alternation with it: 0.49 to 0.50. Before slabs had 64 rows, one core of an Intel Xeon (Emerald Rapids, its clock
 * low), bench_quant, 10^9 multiply-adds per second with 4, 12, 48 and 1,024 activation rows: 44, 68, 98, 109, where the
 * kernel for few rows gave 36 with 4 and with 32. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab_avx512.h"
#include "quant/quant_slab_rows_avx512.h"
#include "quant/quant_wide_avx2.h"

enum { STEPS = 4, GROUPS = 4 /* of four codes, of a step */ };

/* One block of sixteen rows. */
struct part_nvfp4 {
    uint8_t code[STEPS * GROUPS][64]; /* [group of four][row][4] */
    float scale[STEPS][SLAB_ROWS];
};

/* Half the values of byte i of lanes as E4M3: see nvfp4_scales. */
INLINE __m512 scales_of_lanes(__m512i v, unsigned i)
{
    const __m512i b = _mm512_and_si512(_mm512_srli_epi32(v, 8 * i), _mm512_set1_epi32(255));
    const __mmask16 valid = _mm512_cmpneq_epi32_mask(b, _mm512_set1_epi32(0x7f));
    const __m512i half = _mm512_maskz_and_epi32(valid, _mm512_slli_epi32(b, 7), _mm512_set1_epi32(0x3f80));
    return _mm512_mul_ps(f16_of_lanes(half), _mm512_set1_ps(0x1p7f));
}

INLINE void fill_part(const uint8_t *const row[SLAB_ROWS], size_t at, struct part_nvfp4 *s)
{
    const __m512i table = _mm512_broadcast_i32x4(nvfp4_levels());
    __m512i head[4], v[8];
    quads_of_rows(row, at, head);
    octets_of_rows(row, at + NVFP4_QS, v);
    UNROLL for (int i = 0; i < STEPS; i++)
    {
        UNROLL for (int j = 0; j < 2; j++)
        {
            store512(s->code[GROUPS * i + j], look_up64(table, v[2 * i + j]));
            store512(s->code[GROUPS * i + 2 + j], look_up64(table, _mm512_srli_epi16(v[2 * i + j], 4)));
        }
        _mm512_store_ps(s->scale[i], scales_of_lanes(head[0], (unsigned)i));
    }
}

static void fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)
{
    struct part_nvfp4 *const s = (struct part_nvfp4 *)(void *)slab;
    for (int h = 0; h < PARTS; h++)
        for (int b = 0; b < n_blocks; b++) {
            const size_t at = (size_t)(first + b) * NVFP4_BYTES;
            fill_part(row + SLAB_ROWS * h, at, s + PARTS * b + h);
        }
}

/* Columns [c0, c0 + n) of C. */
INLINE void pass(enum qtype t, int C, int c0, int n, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    (void)t;
    const struct part_nvfp4 *s = (const struct part_nvfp4 *)(const void *)slab;
    struct chains512 k = chains_load(n, acc);
    for (int b = 0; b < n_blocks; b++, s += PARTS, x += 4 * (STEPS * (GROUPS + 1) + 2) * C) {
        const struct codes512 codes = {{s[0].code, s[1].code, s[2].code, s[3].code}};
        for (int i = 0; i < STEPS; i++) {
            __m512i sum[PASS][PARTS];
            start512(n, x + 4 * ((STEPS * GROUPS + i) * C + c0), sum);
            groups512(C, c0, n, &codes, x, GROUPS * i, GROUPS, sum);
            UNROLL for (int c = 0; c < n; c++)
            {
                const __m512 da = spread_float(x + 4 * ((STEPS * (GROUPS + 1) + i / 2) * C + c0 + c));
                UNROLL for (int h = 0; h < PARTS; h++)
                {
                    const __m512 d = _mm512_mul_ps(da, _mm512_load_ps(s[h].scale[i]));
                    k.v[c][h] = _mm512_add_ps(k.v[c][h], _mm512_mul_ps(d, _mm512_cvtepi32_ps(sum[c][h])));
                }
            }
        }
    }
    chains_store(n, &k, acc);
}

static QUANT_MULTIPLY(multiply, pass, QT_NVFP4)

    const struct quant_slab slab_nvfp4_avx512 = {.block = 64,
                                                 .rows = QUANT_SLAB,
                                                 .panel = PANEL,
                                                 .from = SLAB_FROM_32(QT_NVFP4),
                                                 .slab_block = PARTS * sizeof(struct part_nvfp4),
                                                 .panel_block = 4 * (STEPS * (GROUPS + 1) + 2),
                                                 .pack = quant_pack_nvfp4,
                                                 .fill = fill,
                                                 .multiply = multiply};
#endif
