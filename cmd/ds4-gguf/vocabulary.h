/* A byte-level BPE vocabulary on its way into a file: tokenizer.ggml.* (spec gguf-and-quants 1.6). */
#ifndef VOCABULARY_H
#define VOCABULARY_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"
#include "gguf/gguf.h"

enum token_type {
    TOKEN_NONE,
    TOKEN_NORMAL,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER_DEFINED,
    TOKEN_UNUSED,
    TOKEN_BYTE
};

/* Texts in one growing buffer, addressed by offset until they are written. */
struct text_list {
    struct str bytes;
    size_t *at; /* n + 1 offsets */
    size_t n, cap;
};
void text_list_add(struct text_list *l, const char *text, size_t n);
void text_list_free(struct text_list *l);

struct vocabulary {
    struct text_list tokens, merges; /* byte alphabet; "left right" */
    int32_t *types;                  /* [tokens.n] enum token_type */
    int64_t bos, eos, pad;           /* -1: none */
    const char *pre;                 /* tokenizer.ggml.pre */
};
void vocabulary_free(struct vocabulary *v);
/* Writes tokenizer.ggml.*. */
int vocabulary_put(struct gguf_writer *w, const struct vocabulary *v, struct err *e);

#endif
