/* What the AVX-512 kernels for few activation rows share: blocks are multiplied as they lie in memory, eight weight
 * rows at a time, each a stream of its own (quant_walk.h), and all activation rows of a pass use what was unpacked.
 * Included by *_avx512.c only.
 *
 * Lines are asked for a while before they are used; into which cache, depends on the processor (asking()).
 *
 * Zen 4: into the second level; asked for into the first, they would take its few places for misses from the loads.
 * Eight streams of Q8_0 (4096 columns, tasks of 64 rows), GB/s with one and with two threads: nothing asked for 22 and
 * 34, into the first level 19 and 31, into the second 27 and 34; plain reading of the same memory: 27 and 33 (2 cores,
 * 4-KiB pages).
 *
 * Intel: into the second level, and again into the first: loads that find their lines in the second hold up the work.
 * The same streams in tasks of 120 rows, with one thread and with two: into the second level 2 KiB ahead 10.7 and 20.4
 * to 22.9, into the first 512 bytes ahead 12.1 and 22.4 to 26.2, into the second 1 KiB and the first 512 bytes
 * ahead 12.6 and 23.2 to 27.0; plain reading 12.6 and 23.9 to 27.2. Two threads, in this order:
 * IQ2_XXS 14.2, 14.9, 14.7, Q2_K 18.9, 19.5, 19.4 (Emerald Rapids, virtual, 2 cores, 4-KiB pages, medians of 13 to 31
 * rounds in turn).
 *
 * Zen 5: as Intel. The same streams in tasks of 112 rows, two threads (2 cores, virtual, huge pages, medians of 9
 * rounds in turn): into the second level 2 KiB ahead 41 to 46, and into the first too 44 to 55, with every line asked
 * for (of Q8_0, whose two blocks are four bytes more than a line, one in seventeen was not) 53 to 64; plain reading 45
 * to 60. Three and four activation rows 37 to 41 in place of 32 to 41. */
#ifndef QUANT_QUANT_DIRECT_AVX512_H
#define QUANT_QUANT_DIRECT_AVX512_H
#include "quant/quant_avx512.h"

enum { DIRECT_COLS = 4 /* activation rows that share a pass over the weights */ };

INLINE void ask_ahead(enum asking ask, const uint8_t *row, size_t at, size_t bytes)
{
    const size_t later = ask == ASK_BOTH ? 1024 : 2048; /* bytes from the place of work in the stream */
    for (size_t i = 0; i < bytes; i += 64) {
        const uintptr_t line = (uintptr_t)row + at + i;
        _mm_prefetch((const char *)(const void *)(line + later), _MM_HINT_T1);
        if (ask == ASK_BOTH) _mm_prefetch((const char *)(const void *)(line + 512), _MM_HINT_T0);
    }
}

/* Keeps a vector in a register from here on, and the order of what is around. */
#define KEEP512(v) __asm__ volatile("" : "+v"(v))

/* Sums of the four lanes of each quarter of eight vectors: rows 0 to 3 side by side in every quarter, rows 4 to 7. */
INLINE void lanes_of_four_rows(const __m512i v[ROWS], __m512i sum[2])
{
    __m512i a[4];
    UNROLL for (int i = 0; i < 4; i++) a[i] =
        _mm512_add_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    UNROLL for (int i = 0; i < 2; i++) sum[i] =
        _mm512_add_epi32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]), _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
}

/* Sums over the eight lanes of the first and of the second half of eight vectors. */
INLINE void half_sums(const __m512i v[ROWS], __m256i *first, __m256i *second)
{
    __m512i b[2];
    lanes_of_four_rows(v, b);
    const __m512i s = _mm512_add_epi32(_mm512_shuffle_i32x4(b[0], b[1], 0x88), _mm512_shuffle_i32x4(b[0], b[1], 0xdd));
    const __m512i sorted = _mm512_shuffle_i32x4(s, s, 0xd8);
    *first = _mm512_castsi512_si256(sorted);
    *second = _mm512_extracti64x4_epi64(sorted, 1);
}

/* Two f16 side by side at the same offset of eight rows. */
INLINE void f16_pairs_of_rows(const uint8_t *const row[ROWS], size_t at, __m256 *first, __m256 *second)
{
    __m128i v[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++) v[r] = _mm_cvtsi32_si128((int)load_u32(row[r] + at));
    UNROLL for (int r = 0; r < ROWS; r += 2) v[r] = _mm_unpacklo_epi16(v[r], v[r + 1]);
    UNROLL for (int r = 0; r < ROWS; r += 4) v[r] = _mm_unpacklo_epi32(v[r], v[r + 2]);
    *first = _mm256_cvtph_ps(_mm_unpacklo_epi64(v[0], v[4]));
    *second = _mm256_cvtph_ps(_mm_unpackhi_epi64(v[0], v[4]));
}

/* Eight weight rows times C activation rows: acc[c] has one lane per weight row. */
typedef void direct512_fn(enum qtype t, enum asking ask, int C, int k, const uint8_t *const row[ROWS], const uint8_t *x,
                          size_t x_stride, __m256 acc[DIRECT_COLS]);

/* Walks over a tile. */
INLINE void direct_walk(direct512_fn *direct, enum qtype t, enum asking ask, int k, const void *w, size_t w_stride,
                        int n_rows, const uint8_t *x, size_t x_stride, int n_cols, float *out, size_t out_stride)
{
    for (int j = 0; j < stream_steps(n_rows, ROWS); j++) {
        const uint8_t *row[ROWS];
        stream_pointers(w, w_stride, j, n_rows, ROWS, row);
        for (int c = 0; c < n_cols; c += DIRECT_COLS) {
            const int n = n_cols - c < DIRECT_COLS ? n_cols - c : DIRECT_COLS;
            __m256 acc[DIRECT_COLS];
            UNROLL for (int C = 1; C <= DIRECT_COLS; C++) if (n == C)
                direct(t, ask, C, k, row, x + (size_t)c * x_stride, x_stride, acc);
            for (int i = 0; i < n; i++) store_rows(out + (size_t)(c + i) * out_stride, acc[i], j, n_rows);
        }
    }
}

/* A tile kernel by direct_walk. */
#define QUANT_TILE_DIRECT(name, type)                                                                                  \
    void name(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride, int n_cols,           \
              float *out, size_t out_stride)                                                                           \
    {                                                                                                                  \
        if (asking() == ASK_BOTH)                                                                                      \
            direct_walk(rows_direct, type, ASK_BOTH, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);    \
        else                                                                                                           \
            direct_walk(rows_direct, type, ASK_SECOND, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);  \
    }

#endif
