/* AVX-512 slab kernels of IQ3_XXS and IQ3_S. Indices and signs are transposed before they are looked up
 * (quant_slab_rows_avx512.h). Byte t of a lane has value j of group of four number t of sixteen values, in vector j:
 * look-ups come in this order, and the panels have it too (quant_pack_iq3_xxs_fourths). Spec more-quants 2.4, 8.3.
 *
 * Floor of 32 values of sixteen rows, in cycles of the one pipe for shuffles, of which a look-up in two registers takes
 * two, as two of one register: 16 for indices (IQ3_S 32), 8 for values, 3 for signs, 6 to transpose (IQ3_S 8 with bit
 * 8): 33 and 51, 1,060 and 1,630 for 256 values of 64 rows. Measured from the second-level cache, in alternation,
 * medians of 201, one of two cores of an Intel Xeon (Ice Lake, virtual): IQ3_XXS 1,390 cycles, IQ3_S 2,120 to 2,160
 * (with look-ups in two registers 1,430, 2,330 to 2,350). One of two cores of an AMD EPYC (Zen 5, virtual), medians of
 * 15: 790 to 880 and 1,220 to 1,250 (with planes that each call made and look-ups in single registers 890 to 1,010 and
 * 1,490). Before that, one core of an Intel Xeon (Emerald Rapids), 256 values of 32 rows from the second-level cache,
 * in alternation: IQ3_XXS 230 to 242 ns, IQ3_S 359 to 367, row by row with single loads from the code books 1,145 and
 * 1,162. */
#ifdef __AVX512VNNI__
#include "quant/quant_grid_book_avx512.h"
#include "quant/quant_slab256_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

enum { FOURS = 4 /* values of an index */ };

/* Code and sign of value j of an index: 64 of a byte's bits, its code from bit CODE_AT(j) on, its sign at SIGN_AT(j),
 * look up the value, `offset` too high; other bits do not matter. */
#define CODE_AT(j)        (3 * ((j) % 2))
#define SIGN_AT(j)        ((j) == 0 ? 3 : (j) == 1 ? 1 : (j) == 2 ? 4 : 2)
#define CODE(j, x)        ((x) >> CODE_AT(j) & 7)
#define SIGN(j, x)        ((x) >> SIGN_AT(j) & 1 ? -1 : 1)
#define XXS(j, x)         IQ3_XXS_OFFSET + SIGN(j, x) * (CODE(j, x) == 7 ? 62 : 8 * CODE(j, x) + 4)
#define S(j, x)           IQ3_S_OFFSET + SIGN(j, x) * (2 * CODE(j, x) + 1)
#define FOUR(value, j, x) value(j, x), value(j, (x) + 1), value(j, (x) + 2), value(j, (x) + 3)
#define SIXTEEN(value, j, x)                                                                                           \
    FOUR(value, j, x), FOUR(value, j, (x) + 4), FOUR(value, j, (x) + 8), FOUR(value, j, (x) + 12)
#define VALUES(value, j)                                                                                               \
    {                                                                                                                  \
        SIXTEEN(value, j, 0), SIXTEEN(value, j, 16), SIXTEEN(value, j, 32), SIXTEEN(value, j, 48)                      \
    }
static const _Alignas(64) uint8_t values_xxs[FOURS][64] = {VALUES(XXS, 0), VALUES(XXS, 1), VALUES(XXS, 2),
                                                           VALUES(XXS, 3)},
                                  values_s[FOURS][64] = {VALUES(S, 0), VALUES(S, 1), VALUES(S, 2), VALUES(S, 3)};

/* Matrices over bits that put the signs of four values where nibbles moved up by one bit have them at SIGN_AT; of seven
 * signs the eighth is their parity. */
#define SIGNS       0x0208010420801040
#define SIGNS_SEVEN 0x02080104207f1040

/* Sixteen values of sixteen rows. signs: of 32 values, of which `second` are the later ones. */
INLINE void sixteen(enum qtype t, const struct book *k, __m512i index, const struct high *high, __m512i signs,
                    bool second, uint8_t code[FOURS][64])
{
    const uint8_t(*const values)[64] = t == QT_IQ3_XXS ? values_xxs : values_s;
    const __m512i sign = bytes_from(signs, second ? 15 : -1, 4);
    UNROLL for (int j = 0; j < FOURS; j += 2)
    {
        const __m512i pair = look_up(t, k, j / 2, index, high);
        UNROLL for (int i = j; i < j + 2; i++)
            store512(code[i], _mm512_permutexvar_epi8(choose512(_mm512_set1_epi8((char)(7 << CODE_AT(i))), pair, sign),
                                                      load512(values[i])));
    }
}

INLINE void fill_iq3_xxs(const struct book *k, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    UNROLL for (int h = 0; h < 2; h++)
    {
        __m512i word[4], index[8];
        quads_of_rows(row, at + IQ3_XXS_WORDS + 16 * (size_t)h, word);
        UNROLL for (int i = 0; i < 8; i += 4)
            quads_of_rows(row, at + IQ3_XXS_INDEX + 32 * (size_t)h + 4 * (size_t)i, index + i);
        UNROLL for (int g = 0; g < 4; g++)
        {
            const __m512i signs =
                _mm512_gf2p8affine_epi64_epi8(bytes_from(word[g], 0, 7), _mm512_set1_epi64(SIGNS_SEVEN), 0);
            UNROLL for (int i = 0; i < 2; i++)
                sixteen(QT_IQ3_XXS, k, index[2 * g + i], NULL, signs, i, s->code + 32 * h + 8 * g + 4 * i);
            put_scale(QT_IQ3_XXS, s, 4 * h + g, odd_of_lanes(_mm512_srli_epi32(word[g], 27), 0x1e));
        }
    }
    _mm512_store_ps(s->d, f16_first(row, at));
}

INLINE void fill_iq3_s(const struct book *k, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    __m512i high[4], signs[8], last[4]; /* bits 8 and signs; signs; signs and scales */
    quads_of_rows(row, at + IQ3_S_HIGH, high);
    quads_of_rows(row, at + IQ3_S_SIGNS + 8, signs + 2);
    quads_of_rows(row, at + IQ3_S_SIGNS + 20, last);
    signs[0] = high[2];
    signs[1] = high[3];
    signs[6] = last[1];
    signs[7] = last[2];
    UNROLL for (int h = 0; h < 4; h++)
    {
        __m512i index[4];
        quads_of_rows(row, at + IQ3_S_LOW + 16 * (size_t)h, index);
        UNROLL for (int i = 0; i < 4; i++)
        {
            const int g = 2 * h + i / 2;
            const __m512i sign = _mm512_gf2p8affine_epi64_epi8(signs[g], _mm512_set1_epi64((long long)SIGNS), 0);
            const struct high bit8 = {{_mm512_movepi8_mask(bytes_from(high[h / 2], 16 * (h % 2) + 4 * i - 7, 1))}};
            sixteen(QT_IQ3_S, k, index[i], &bit8, sign, i % 2, s->code + 16 * h + 4 * i);
        }
    }
    put_nibble_scales(QT_IQ3_S, last[3], s, 0);
    _mm512_store_ps(s->d, f16_first(row, at));
}

INLINE void fill_part(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    if (t == QT_IQ3_XXS)
        fill_iq3_xxs(book, row, at, s);
    else
        fill_iq3_s(book, row, at, s);
}

INLINE void fill_blocks(enum qtype t, const struct filling *f)
{
    const struct book two = book_of(t, true), one = book_of(t, false);
    if (looks_up_two())
        fill256(fill_part, t, &two, f);
    else
        fill256(fill_part, t, &one, f);
}

SLAB256(iq3_xxs, QT_IQ3_XXS, quant_pack_iq3_xxs_fourths, 8)
SLAB256(iq3_s, QT_IQ3_S, quant_pack_iq3_s_fourths, 8)
#endif
