/* Two canonical models, tensor by tensor. */
#ifndef CANONICAL_SAME_H
#define CANONICAL_SAME_H
#include "dialect/canonical.h"

/* Fail the running cmocka test. A view is the same with type, shape and values; b may be NULL, which is a failure. */
void canonical_same_view(const char *name, const struct tensor_view *a, const struct tensor_view *b);
/* All tensors of a by name, and b has no more: names, types, shapes, values. */
void canonical_same_tensors(const struct canonical *a, const struct canonical *b);

#endif
