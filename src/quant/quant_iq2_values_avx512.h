/* Values of IQ2_XXS, IQ2_XS and IQ2_S by their packed codes and signs (spec more-quants 2.3, 8.3). Included by
 * *_avx512.c only. */
#ifndef QUANT_QUANT_IQ2_VALUES_AVX512_H
#define QUANT_QUANT_IQ2_VALUES_AVX512_H
#include "quant/quant_avx512.h"
#include "quant/quant_iq2_table.h"

/* Of value i of four: its code's first bit in an index, and its sign's. */
#define CODE_AT(i) ((i) == 3 ? 0 : 2 * (i))
#define SIGN_AT(i) ((i) == 0 ? 2 : (i) == 3 ? 3 : (i)-1)
static const _Alignas(64) uint8_t iq2_value_table[4][64] = {
    IQ2_TABLE(CODE_AT(0), SIGN_AT(0)), IQ2_TABLE(CODE_AT(1), SIGN_AT(1)), IQ2_TABLE(CODE_AT(2), SIGN_AT(2)),
    IQ2_TABLE(CODE_AT(3), SIGN_AT(3))};

/* Matrices over bits that put at SIGN_AT(i) of each half the sign of its value i: of eight signs; of seven, the eighth
 * being their parity; of seven in the upper bits. */
#define IQ2_SIGNS       0x0204010820401080
#define IQ2_SIGNS_SEVEN 0x020401082040107f
#define IQ2_SIGNS_UPPER 0x04080210408020fe

/* Value i of four of each group, IQ2_OFFSET too high. code: of these four; sign: in the lower four bits, as the
 * matrices put it. */
INLINE __m512i iq2_values(__m512i code, __m512i sign, int i)
{
    const __m512i here = _mm512_set1_epi8((char)(3 << CODE_AT(i)));
    const __m512i at = i == 3 ? _mm512_srli_epi16(code, 6) : code;
    return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(here, at, sign, 0xca), load512(iq2_value_table[i]));
}

#endif
