/* What every family does alike with a step. Its sessions' states begin with their struct block_state. */
#ifndef MODELS_BLOCK_STEP_H
#define MODELS_BLOCK_STEP_H
#include "models/block/linear.h"
#include "models/block/scratch.h"
#include "models/family.h"

/* block_state_prepare of all segments; ERR_MEMORY. */
int block_step_prepare(const struct step *step, struct err *e);
/* Embeddings of the step's tokens -> the streams of the carry's part 0, all alike. */
void block_step_embed(const struct step *step, const struct weight *embedding, int streams);
/* Rows [row, row + n) of a step as a part of it (device.h); columns are shared. */
struct rows block_step_part(const struct rows *r, int row, int n);
/* Handles of n segments at layer l. state_of: which of the step's sessions a segment is of; NULL: in order. */
void block_step_segments(const struct step *step, int l, int n, const int *state_of);

#endif
