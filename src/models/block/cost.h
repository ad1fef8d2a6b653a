/* What a tensor adds to the cost of a row. */
#ifndef MODELS_BLOCK_COST_H
#define MODELS_BLOCK_COST_H
#include <stdbool.h>
#include "models/family.h"

/* A row uses `used` of `of` equal parts of the tensor: of experts those it is sent to, of a table by token one row.
 * multiplied: it is a matrix that rows are multiplied with, here and not only in the head. */
void cost_tensor(struct family_cost *c, const struct tensor_view *v, int64_t used, int64_t of, bool multiplied);

#endif
