/* Where the bytes of a model are: sizes of its tensors by what they are for, as their names tell. */
#ifndef INSPECT_GROUPS_H
#define INSPECT_GROUPS_H
#include "gguf/gguf_set.h"

/* Prints a line per group that has tensors, and one for all. n_layers: blocks of the trunk, those behind it are a
 * draft's; 0: unknown. */
void inspect_groups(const struct gguf_set *set, int n_layers);

#endif
