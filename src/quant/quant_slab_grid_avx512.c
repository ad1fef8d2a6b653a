/* AVX-512 slab kernels of Q3_K, TQ1_0 and TQ2_0. Rows are unpacked one by one as the AVX2 kernels do it, and
 * transposed. Spec more-quants 2.6.
 *
 * Floor: with many columns that of quant_slab256_avx512.h; unpacking costs as much as the products of 8 (TQ2_0) to
 * 25 (TQ1_0) columns.
 * Measured, one thread, 10^9 multiply-adds per second: 1,024 columns 170 to 195 (Zen 4); 12, 48 and 1,024 columns of
 * panels of four rows: Q3_K 92, 152, 170; TQ1_0 67, 140, 199; TQ2_0 127, 190, 207 (Intel Xeon, Emerald Rapids, whose
 * clock moved by a fifth meanwhile). */
#ifdef __AVX512VNNI__
#include "quant/quant_k_codes_avx2.h"
#include "quant/quant_slab256_avx512.h"

INLINE __m512i codes64(enum qtype t, const uint8_t *b, const struct prep *p, int i)
{
    return join256(codes(t, b, p, 2 * i), codes(t, b, p, 2 * i + 1));
}

INLINE void fill_half(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at, struct half256 *s)
{
    (void)book;
    fill_by_rows(codes64, t, row, at, s);
}

INLINE void fill_blocks(enum qtype t, const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)
{
    fill256(fill_half, t, NULL, row, first, n_blocks, slab);
}

SLAB256(q3_k, QT_Q3_K, quant_pack_q3_k, 16)
SLAB256(tq1_0, QT_TQ1_0, quant_pack_tq, 8)
SLAB256(tq2_0, QT_TQ2_0, quant_pack_tq, 8)
#endif
