/* A small tokenizer for tests: ids 0-255 are the single bytes, 256 + i is what merges[i] ("left right", in the byte
 * alphabet) joins, then follow the special tokens. */
#ifndef TESTS_BYTE_VOCABULARY_H
#define TESTS_BYTE_VOCABULARY_H
#include "text/bpe.h"

struct byte_vocabulary;

/* The strings are copied. Ends the program if the tokenizer cannot be made. */
struct byte_vocabulary *byte_vocabulary_new(const char *const *merges, size_t n_merges, const char *const *specials,
                                            size_t n_specials);
/* The same with another pre-tokenizer than JOYAI. */
struct byte_vocabulary *byte_vocabulary_split(enum pretokenizer pre, const char *const *merges, size_t n_merges,
                                              const char *const *specials, size_t n_specials);
void byte_vocabulary_free(struct byte_vocabulary *v);
const struct bpe *byte_vocabulary_bpe(const struct byte_vocabulary *v);

#endif
