/* AVX-512 tiles of the types whose steps cover 32 codes for few activation rows (ACT_Q8_0; IQ4_XS: ACT_Q8_K). Codes
 * are made unsigned; the activations say what that adds to a block's sum. Two steps share a vector.
 *
 * Floor: memory; 544 bytes of Q8_0 (eight rows, two blocks) take about 80 vector instructions, two a cycle. Measured
 * (Zen 4, 2 cores, 3.7 GHz): from the cache 38 GB/s per thread, from memory 29 to 34 GB/s with two threads where plain
 * reading gives 26 to 33. Four activation rows: 66 thousand million multiply-adds/s per thread. Zen 5 (2 cores,
 * virtual): from the cache 52 to 56 and 13 to 15 GB/s per thread with one and with eight activation rows, from memory
 * with two threads as plain reading, 53 to 64. */
#ifdef __AVX512VNNI__
#include "quant/quant_codes32_avx2.h"
#include "quant/quant_direct_avx512.h"

/* How much too high the codes are. */
INLINE int height(enum qtype t)
{
    return t == QT_Q8_0 || t == QT_IQ4_NL || t == QT_IQ4_XS ? 128
           : t == QT_Q5_0                                   ? 16
           : t == QT_MXFP4                                  ? 12
           : t == QT_Q4_0                                   ? 8
                                                            : 0;
}

/* Unsigned values of the nibbles. */
INLINE __m512i levels(enum qtype t, __m512i nibble)
{
    const __m128i doubled = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    const __m128i iq4 = _mm_xor_si128(_mm_loadu_si128((const __m128i *)iq4_levels), _mm_set1_epi8((char)0x80));
    if (t != QT_MXFP4 && t != QT_IQ4_NL && t != QT_IQ4_XS) return nibble;
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(t == QT_MXFP4 ? doubled : iq4), nibble);
}

/* Codes of step b of the block at p and of the next one of the block at q. */
INLINE __m512i unsigned_codes(enum qtype t, const uint8_t *p, const uint8_t *q, int b)
{
    if (t == QT_Q8_0)
        return _mm512_xor_si512(join256(load256(p + Q8_0_QS), load256(q + Q8_0_QS)), _mm512_set1_epi8((char)0x80));
    const uint8_t *const first = p + nibbles_at(t, b), *const second = q + nibbles_at(t, b + 1);
    const __m128i lo = _mm_loadu_si128((const __m128i *)first), hi = _mm_loadu_si128((const __m128i *)second);
    const __m512i twice = join256(_mm256_broadcastsi128_si256(lo), _mm256_broadcastsi128_si256(hi));
    const __m512i shift = _mm512_broadcast_i64x4(_mm256_set_m128i(_mm_set1_epi16(4), _mm_setzero_si128()));
    const __m512i nibble = _mm512_and_si512(_mm512_srlv_epi16(twice, shift), _mm512_set1_epi8(15));
    if (t != QT_Q5_0 && t != QT_Q5_1) return levels(t, nibble);
    const size_t high = t == QT_Q5_0 ? Q5_0_QH : Q5_1_QH;
    const __mmask64 fifth = (uint64_t)load_u32(q + high) << 32 | load_u32(p + high);
    return _mm512_or_si512(nibble, _mm512_maskz_mov_epi8(fifth, _mm512_set1_epi8(16)));
}

/* What the surplus of the codes adds to a step's sum, negated; x: the activation row. */
INLINE __m256i surplus(enum qtype t, const uint8_t *x, int k, int b)
{
    if (height(t) == 0) return _mm256_setzero_si256();
    if (t == QT_IQ4_XS) return _mm256_set1_epi32(-height(t) * (row_bsums(x, k)[2 * b] + row_bsums(x, k)[2 * b + 1]));
    const int32_t offset = row_offset(x, k)[b];
    return _mm256_set1_epi32(height(t) == 128 ? offset : offset / 128 * height(t));
}

/* Scales of a step of eight rows. sub: those of the steps of a block of IQ4_XS. */
struct scales {
    __m256 d, second;
};

INLINE struct scales scales_of_rows(enum qtype t, const uint8_t *const row[ROWS], size_t at, const __m256 *sub, int b)
{
    struct scales s = {.second = _mm256_setzero_ps()};
    if (t == QT_MXFP4) {
        s.d = scales(t, row, at);
    } else {
        __m256 after;
        f16_pairs_of_rows(row, at, &s.d, &after);
        if (has_second(t)) s.second = t == QT_IQ4_XS ? sub[b % 8] : after;
    }
    return s;
}

INLINE __m256 add_step(enum qtype t, __m256 acc, __m256i sum, struct scales s, const uint8_t *x, int k, int b)
{
    return step(t, acc, _mm256_add_epi32(sum, surplus(t, x, k, b)), s.d, s.second, _mm256_set1_ps(step_d(t, x, k, b)),
                has_min(t) ? row_sum(x, k)[b] : 0);
}

/* Step b and, if there are two, the next one. */
INLINE void steps_direct(enum qtype t, enum asking ask, int C, bool two, int k, int b, const uint8_t *const row[ROWS],
                         const uint8_t *const col[DIRECT_COLS], __m256 sub[8], __m256 acc[DIRECT_COLS])
{
    const size_t at = block_at(t, b), next = two && t != QT_IQ4_XS ? block_bytes(t) : 0;
    const size_t bytes = t == QT_Q8_0 || t == QT_IQ4_XS ? 64 : 2 * block_bytes(t);
    const uint8_t *here[ROWS];
    __m512i w[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        here[r] = row[r] + at;
        __asm__("" : "+r"(here[r])); /* all of a row from one register: there are few */
    }
    /* 68 bytes later, every sixteenth time, a line lies in between */
    const bool line_between = t == QT_Q8_0 && (uintptr_t)here[0] % 64 >= 60;
    if (t == QT_IQ4_XS && b % 8 == 0) iq4_xs_scales(row, at, sub);
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        ask_ahead(ask, here[r], t == QT_IQ4_XS ? (size_t)(16 * (b % 8)) : 0, bytes);
        if (line_between) ask_ahead(ask, here[r], 64, 64);
        w[r] = unsigned_codes(t, here[r], here[r] + next, b);
    }
    const struct scales d0 = scales_of_rows(t, here, 0, sub, b), d1 = scales_of_rows(t, here, next, sub, b + 1);
    UNROLL for (int c = 0; c < C; c++)
    {
        const __m512i a = load512(col[c] + 32 * b); /* of a single last block: and what follows */
        __m512i v[ROWS];
        __m256i s0, s1;
        UNROLL for (int r = 0; r < ROWS; r++) v[r] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), w[r], a);
        half_sums(v, &s0, &s1);
        acc[c] = add_step(t, acc[c], s0, d0, col[c], k, b);
        if (two) acc[c] = add_step(t, acc[c], s1, d1, col[c], k, b + 1);
    }
}

INLINE void rows_direct(enum qtype t, enum asking ask, int C, int k, const uint8_t *const row[ROWS], const uint8_t *x,
                        size_t x_stride, __m256 acc[DIRECT_COLS])
{
    const uint8_t *col[DIRECT_COLS];
    __m256 sub[8];
    const int n = k / 32;
    row_pointers(x, x_stride, 0, C, C, col);
    UNROLL for (int c = 0; c < C; c++) acc[c] = _mm256_setzero_ps();
    for (int b = 0; b + 1 < n; b += 2) steps_direct(t, ask, C, true, k, b, row, col, sub, acc);
    if (n % 2) steps_direct(t, ask, C, false, k, n - 1, row, col, sub, acc);
}

QUANT_TILE_DIRECT(tile_q8_0_lying_avx512, QT_Q8_0)
QUANT_TILE_DIRECT(tile_q4_0_avx512, QT_Q4_0)
QUANT_TILE_DIRECT(tile_mxfp4_avx512, QT_MXFP4)
QUANT_TILE_DIRECT(tile_q4_1_avx512, QT_Q4_1)
QUANT_TILE_DIRECT(tile_q5_0_avx512, QT_Q5_0)
QUANT_TILE_DIRECT(tile_q5_1_avx512, QT_Q5_1)
QUANT_TILE_DIRECT(tile_iq4_nl_avx512, QT_IQ4_NL)
QUANT_TILE_DIRECT(tile_iq4_xs_avx512, QT_IQ4_XS)
#endif
