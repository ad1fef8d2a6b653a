/* A made-up vocabulary: byte tokens, some merges of letters, the family's special tokens. */
#ifndef SYNTH_VOCABULARY_H
#define SYNTH_VOCABULARY_H
#include "vocabulary.h"

enum { SYNTH_VOCABULARY_LEAST = 273 };

/* Exactly n_tokens tokens, at least SYNTH_VOCABULARY_LEAST (bytes, special tokens, one pair). Ids of special tokens are
 * those of the published models where n_tokens is theirs, else the last ones. The caller frees *v with vocabulary_free.
 */
int synth_vocabulary(int64_t n_tokens, struct vocabulary *v, struct err *e);

#endif
