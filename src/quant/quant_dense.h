/* Shape of the dense tiles, for the files that define the sums and the body that walks over them (quant_dense.inc). */
#ifndef QUANT_QUANT_DENSE_H
#define QUANT_QUANT_DENSE_H
#include <string.h>
#include "quant/quant_walk.h"

/* Weight rows and activation rows of the largest step: as many sums as fit the registers; and those of a step over a
 * panel. A file for other registers says so before it includes this. */
#ifndef DENSE_COLS
#define DENSE_ROWS 2
#define DENSE_COLS 3
#define STEP_ROWS  DENSE_ROWS
#define STEP_COLS  DENSE_COLS
#define STEP_ASKS  true /* for lines of the panel */
#endif
#ifndef FEW_STEP
#define FEW_STEP DENSE_ROWS /* weight rows of a step over a panel of these */
#endif
enum { CHUNK = 1024, LANES = 16, MAX_ROWS = STEP_ROWS > 4 ? STEP_ROWS : 4, MAX_COLS = DENSE_COLS };
/* Activation rows from which on panels pay, and how many of these share a panel: it stays in a second-level cache. */
enum { PANEL_FROM = 12, PANEL_COLS = 128 };
/* Fewer weight rows are the panel themselves: copying activations would not pay. A multiple of a step's. */
enum { FEW_ROWS = 32 };
/* How many sixteens of each row of a step lie between what is asked for and what is multiplied. */
enum { PANEL_AHEAD = 12 };

INLINE size_t value_bytes(enum qtype t)
{
    return t == QT_F32 ? 4 : 2;
}

/* Where the totals of a panel wait: of its first weight row and activation row. */
struct totals {
    float *out;
    size_t stride;
    int rows;   /* of a step that count */
    bool begin; /* they start at zero */
};

#endif
