/* Names, keys and shapes as other makers write them (spec dialects 6, 10), for models that are made up. */
#ifndef SYNTH_DIALECT_H
#define SYNTH_DIALECT_H
#include "gguf/gguf.h"
#include "layout.h"

struct synth_dialect;

/* NULL: the family has none of that name; names then gets those it has, "ds4, llama.cpp". */
const struct synth_dialect *synth_dialect_find(const char *arch, const char *name, char names[200]);
/* Changes name, shape and place of a tensor, not its data. width: of a stream; groups: of the output projection. */
void synth_dialect_tensor(const struct synth_dialect *d, struct layout_tensor *t, uint64_t width, uint64_t groups);
/* general.architecture. */
const char *synth_dialect_arch(const struct synth_dialect *d);
/* Before any record is put; d stays in use until the writer is done. */
void synth_dialect_keys(const struct synth_dialect *d, struct gguf_writer *w);

#endif
