/* Byte-level BPE (GPT-2 byte alphabet): lowest merge rank first, leftmost on ties. Special tokens are known by their
 * text. Vocabulary strings are borrowed from the caller (they live in the mapped model file).
 * A tokenizer is immutable after creation and may be used by several threads at once. */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "text/presplit.h"

struct bpe;
struct bpe_text {
    const char *p;
    size_t n;
};

/* tokens[n_tokens]: texts in the byte alphabet; merges[n_merges]: "left right"; specials: texts of the family's special
 * tokens (those that the vocabulary lacks are ignored here; bpe_special says which exist). Of two tokens with the same
 * text the first counts. Merges whose parts or result the vocabulary lacks are ignored. check: asked once special
 * tokens are known, before anything is made for merges; NULL: nothing is asked. 0, ERR_MODEL (a merge that is none),
 * ERR_MEMORY, or what check returns. */
int bpe_create(const struct bpe_text *tokens, size_t n_tokens, const struct bpe_text *merges, size_t n_merges,
               const char *const *specials, size_t n_specials, enum pretokenizer pre,
               int (*check)(const struct bpe *b, struct err *e), struct bpe **out, struct err *e);
/* True for "left right": two texts with a space between. */
bool bpe_is_merge(const char *text, size_t n);
void bpe_free(struct bpe *b);

struct bpe_ids {
    int32_t *p;
    size_t n, cap;
}; /* growable list of ids; owned by the caller; zero = empty */
void bpe_ids_add(struct bpe_ids *ids, int32_t id);
void bpe_ids_free(struct bpe_ids *ids);

/* Appends the ids of text. Untrusted text: no byte sequence ever becomes a special token. Bytes that are not UTF-8 are
 * kept (byte tokens). 0 or ERR_MEMORY / ERR_MODEL (a byte without a token) / ERR_LIMIT (a word of 2^30 bytes); after an
 * error ids is as it was. */
int bpe_encode(const struct bpe *b, const char *text, size_t n, struct bpe_ids *ids, struct err *e);
/* The same for rendered chat: wherever a special token occurs literally (the longest one that does) it becomes its id,
 * and the spans in between are encoded each on its own. */
int bpe_encode_rendered(const struct bpe *b, const char *text, size_t n, struct bpe_ids *ids, struct err *e);
/* Id of a special token by its text; -1 if the vocabulary has none. */
int32_t bpe_special(const struct bpe *b, const char *text);
bool bpe_is_special(const struct bpe *b, int32_t id);
size_t bpe_n_tokens(const struct bpe *b);
/* Merges that are ignored. */
size_t bpe_n_idle_merges(const struct bpe *b);
/* Bytes of a token (special tokens and texts outside the byte alphabet: their text). Returns the length; the pointer
 * lives as long as b. id outside: length 0. */
size_t bpe_token_bytes(const struct bpe *b, int32_t id, const char **bytes);

#endif
