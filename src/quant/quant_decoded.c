/* Rows are decoded in the chunks of lanes16, whose sums are then added up in order. */
#include "quant/quant_decoded.h"
#include <string.h>

enum { CHUNK = 1024, DECODED_ROWS = 8, DECODED_COLS = 16 };

/* The chunk at `first` of n_rows weight rows times n_cols activation rows, added to out. */
static void add_chunk(const struct quant_decoded *t, int n, const uint8_t *w, size_t w_stride, int n_rows,
                      const uint8_t *x, size_t x_stride, int n_cols, float *out, size_t out_stride)
{
    _Alignas(64) float row[DECODED_ROWS][CHUNK];
    float part[DECODED_COLS][DECODED_ROWS];
    for (int r = 0; r < n_rows; r++) t->decode(w + (size_t)r * w_stride, row[r], n);
    for (int c = 0; c < n_cols; c += DECODED_COLS) {
        const int n_part = n_cols - c < DECODED_COLS ? n_cols - c : DECODED_COLS;
        t->tile_f32(n, row, sizeof row[0], n_rows, x + (size_t)c * x_stride, x_stride, n_part, part[0], DECODED_ROWS);
        for (int i = 0; i < n_part; i++)
            for (int r = 0; r < n_rows; r++) out[(size_t)(c + i) * out_stride + (size_t)r] += part[i][r];
    }
}

void quant_tile_decoded(struct quant_decoded t, int k, const void *w, size_t w_stride, int n_rows, const void *x,
                        size_t x_stride, int n_cols, float *out, size_t out_stride)
{
    for (int c = 0; c < n_cols; c++) memset(out + (size_t)c * out_stride, 0, (size_t)n_rows * sizeof *out);
    for (int r = 0; r < n_rows; r += DECODED_ROWS) {
        const uint8_t *const rows = (const uint8_t *)w + (size_t)r * w_stride;
        for (int first = 0; first < k; first += CHUNK)
            add_chunk(&t, k - first < CHUNK ? k - first : CHUNK, rows + (size_t)(first / t.block) * t.block_bytes,
                      w_stride, n_rows - r < DECODED_ROWS ? n_rows - r : DECODED_ROWS,
                      (const uint8_t *)x + 4 * (size_t)first, x_stride, n_cols, out + r, out_stride);
    }
}
