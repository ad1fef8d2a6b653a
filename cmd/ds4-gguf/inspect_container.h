/* What a set of files holds, whatever it means: metadata and tensors, on standard output. */
#ifndef INSPECT_CONTAINER_H
#define INSPECT_CONTAINER_H
#include "gguf/gguf_set.h"

/* A line per record of the merged metadata, long values cut; an empty line. */
void inspect_metadata(const struct gguf_set *set);
/* A line per tensor, under the name of its file where there are several; an empty line. */
void inspect_tensors(const struct gguf_set *set);

#endif
