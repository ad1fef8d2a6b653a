/* tokenizer.json: tokens, merges, added tokens. */
#ifndef HF_TOKENIZER_H
#define HF_TOKENIZER_H
#include "vocabulary.h"

/* Reads a byte-level BPE vocabulary of at most max_tokens tokens. Ids that no token has become unused tokens up to the
 * largest id. bos, eos and pad are left at -1. The caller frees *v with vocabulary_free, also after an error. */
int hf_tokenizer_read(const char *path, int64_t max_tokens, struct vocabulary *v, struct err *e);

#endif
