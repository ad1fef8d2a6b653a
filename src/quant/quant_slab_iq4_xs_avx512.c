/* AVX-512 slab kernel of IQ4_XS, whose blocks of 256 are eight steps of 32 codes (activations ACT_Q8_K). Slabs hold the
 * codes 128 too high. Spec more-quants 2.2.
 *
 * Floor: per step of 32 codes, 32 rows and a column 16 products and 8 float operations share two pipes: 0.67 of the
 * int8 peak, 0.8 where additions and conversions have pipes of their own. One of two cores of an Intel
 * Xeon (Ice Lake, virtual), slabs and panels in the first-level cache, share of the peak in alternation with it: 0.62.
 * Before slabs had 64 rows, one of two cores of an AMD EPYC (Zen 5,
 * virtual), slabs and panels of eight in the caches, share of the peak in alternation with it: 0.74, all columns at
 * once 0.57. Measured before that, one core of an Intel Xeon (Emerald Rapids), 10^9 multiply-adds per second with 4,
 * 12, 48 and 1,024 activation rows, rows unpacked one by one: 45, 73, 163, 183; unpacking 256 values of 32 rows 224 to
 * 248 ns, one by one 514 to 529. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab_iq4_xs_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

INLINE void fill_part(const uint8_t *const row[SLAB_ROWS], size_t at, uint8_t raised, struct part_xs *s)
{
    const __m128i levels = _mm_loadu_si128((const __m128i *)iq4_levels);
    const __m512i table = _mm512_broadcast_i32x4(_mm_xor_si128(levels, _mm_set1_epi8((char)raised)));
    __m512i head[4]; /* d and the upper bits of the scales, lower bits */
    for (int i = 0; i < 8; i++) nibbles_of_rows(row, at + IQ4_XS_QS + 16 * (size_t)i, table, s->code + 8 * i);
    quads_of_rows(row, at, head);
    UNROLL for (unsigned i = 0; i < 8; i++)
    {
        const __m512i low = _mm512_srli_epi32(head[1], 4 * i), high = _mm512_srli_epi32(head[0], 12 + 2 * i);
        const __m512i scale = _mm512_and_si512(choose512(_mm512_set1_epi32(15), low, high), _mm512_set1_epi32(63));
        _mm512_store_ps(s->scale[i], _mm512_cvtepi32_ps(_mm512_sub_epi32(scale, _mm512_set1_epi32(32))));
    }
    _mm512_store_ps(s->d, f16_of_lanes(head[0]));
}

void fill32_iq4_xs(const struct filling32 *f)
{
    struct part_xs *const to = (struct part_xs *)(void *)f->slab;
    for (int h = 0; h < f->parts; h++)
        for (int b = 0; b < f->n_blocks; b++)
            fill_part(f->row + SLAB_ROWS * h, (size_t)(f->first + b) * IQ4_XS_BYTES, f->raised, to + f->parts * b + h);
}

static void fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)
{
    fill32_iq4_xs(&(struct filling32){row, first, n_blocks, PARTS, 128, slab});
}

/* Columns [c0, c0 + n) of C. */
INLINE void pass(enum qtype t, int C, int c0, int n, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    (void)t;
    const struct part_xs *s = (const struct part_xs *)(const void *)slab;
    struct chains512 k = chains_load(n, acc);
    for (int b = 0; b < n_blocks; b++, s += PARTS, x += 4 * 73 * C) {
        const struct codes512 codes = {{s[0].code, s[1].code, s[2].code, s[3].code}};
        _Alignas(64) float d[PASS * QUANT_SLAB]; /* the blocks' scales times those of the columns */
        struct chains512 scaled;
        UNROLL for (int c = 0; c < n; c++) UNROLL for (int h = 0; h < PARTS; h++) scaled.v[c][h] =
            _mm512_mul_ps(_mm512_load_ps(s[h].d), spread_float(x + 4 * (72 * C + c0 + c)));
        chains_store(n, &scaled, d);
        for (int i = 0; i < 8; i++) {
            __m512i sum[PASS][PARTS];
            start512(n, x + 4 * ((64 + i) * C + c0), sum);
            groups512(C, c0, n, &codes, x, 8 * i, 8, sum);
            UNROLL for (int c = 0; c < n; c++) UNROLL for (int h = 0; h < PARTS; h++)
            {
                const __m512 scale =
                    _mm512_mul_ps(_mm512_load_ps(d + QUANT_SLAB * c + SLAB_ROWS * h), _mm512_load_ps(s[h].scale[i]));
                k.v[c][h] = _mm512_add_ps(k.v[c][h], _mm512_mul_ps(scale, _mm512_cvtepi32_ps(sum[c][h])));
            }
        }
    }
    chains_store(n, &k, acc);
}

static QUANT_MULTIPLY(multiply, pass, QT_IQ4_XS)

    const struct quant_slab slab_iq4_xs_avx512 = {.block = 256,
                                                  .rows = QUANT_SLAB,
                                                  .panel = PANEL,
                                                  .from = SLAB_FROM_256(QT_IQ4_XS),
                                                  .slab_block = PARTS * sizeof(struct part_xs),
                                                  .panel_block = 4 * 73,
                                                  .pack = quant_pack_iq4_xs,
                                                  .fill = fill,
                                                  .multiply = multiply};
#endif
