/* What panels of activation rows for vectors and for tiles share. */
#ifndef QUANT_QUANT_PANEL_H
#define QUANT_QUANT_PANEL_H
#include <string.h>
#include "quant/quant_internal.h"

/* 4 bytes of n rows, each at its place, side by side; returns what follows. */
static inline uint8_t *put(const uint8_t *const *x, size_t at, int n, uint8_t *to)
{
    for (int c = 0; c < n; c++, to += 4) memcpy(to, x[c] + at, 4);
    return to;
}

/* What the values of a quad are: neighbours, or every fourth of 16, every eighth of 32. */
enum order { NEIGHBOURS, FOURTHS, EIGHTHS };

#endif
