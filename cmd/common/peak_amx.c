/* The loop with tiles of products (AMX). Four sums, as a tile's product takes longer than the next one waits. */
#include "peak_internal.h"
#if defined(__AMX_INT8__) || defined(__AMXINT8__) /* gcc; clang up to 14 */
#include <immintrin.h>

int64_t peak_tiles_amx(int rounds, volatile float *sink)
{
    enum { ROWS = 16, BYTES = 64, PRODUCTS = 4 };
    _Alignas(64) struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    _Alignas(64) int8_t codes[ROWS][BYTES];
    _Alignas(64) int32_t sums[ROWS][BYTES / 4];
    for (int i = 0; i < 8; i++) shape.rows[i] = ROWS, shape.row_bytes[i] = BYTES;
    for (int i = 0; i < ROWS * BYTES; i++) codes[i / BYTES][i % BYTES] = (int8_t)(i + (int)*sink);
    __asm__ volatile("" : : "m"(shape), "m"(codes)); /* compilers do not know that all of it is read */
    _tile_loadconfig(&shape);
    _tile_loadd(4, codes, BYTES);
    _tile_loadd(5, codes, BYTES);
    rounds /= 8; /* of vectors a round has 12 * 64 multiply-adds */
    for (int n = 0; n < rounds; n++) {
        _tile_dpbssd(0, 4, 5);
        _tile_dpbssd(1, 4, 5);
        _tile_dpbssd(2, 4, 5);
        _tile_dpbssd(3, 4, 5);
    }
    _tile_stored(0, sums, BYTES);
    _tile_release();
    *sink = (float)(sums[0][0] & 1);
    return (int64_t)rounds * PRODUCTS * ROWS * ROWS * BYTES;
}
#else
typedef int peak_amx_not_built;
#endif
