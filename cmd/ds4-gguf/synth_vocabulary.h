/* A made-up vocabulary: byte tokens, some merges of letters, the family's special tokens. */
#ifndef SYNTH_VOCABULARY_H
#define SYNTH_VOCABULARY_H
#include "vocabulary.h"

/* The special tokens of a family with their ids in the published vocabulary of `published` tokens. The first n_front
 * stand ahead of the bytes. */
struct synth_specials {
    const char *pre; /* tokenizer.ggml.pre */
    int64_t published;
    int n_front, n;
    int bos, eos, pad; /* which of them; -1: none */
    const struct synth_special {
        int id;
        enum token_type type;
        const char *text;
    } * at; /* [n], by id */
};

/* The fewest tokens that make a vocabulary: bytes, special tokens, one pair. */
int64_t synth_vocabulary_least(const struct synth_specials *s);
/* The id of special token i among n_tokens. */
int64_t synth_special_id(const struct synth_specials *s, int i, int64_t n_tokens);
/* Exactly n_tokens tokens, at least the fewest. Ids of special tokens are those of the published models where n_tokens
 * is theirs, else the last ones. The caller frees *v with vocabulary_free. */
int synth_words(const struct synth_specials *s, int64_t n_tokens, struct vocabulary *v, struct err *e);

#endif
