/* Reads files of a vocabulary and encoded strings (tests/golden/demo_bpe.txt describes the format). */
#ifndef TESTS_BPE_GOLDEN_H
#define TESTS_BPE_GOLDEN_H
#include "text/bpe.h"

struct bpe_golden_case {
    bool rendered; /* special tokens count where they occur literally */
    char *text;    /* n bytes */
    size_t n;
    size_t *piece; /* lengths of the n_pieces pieces; none are given for rendered strings */
    size_t n_pieces;
    struct bpe_ids ids;
};

struct bpe_golden {
    struct bpe *bpe;
    struct bpe_golden_case *at;
    size_t n;
    char *file; /* the texts of the vocabulary lie in here */
};

/* pre: the pre-tokenizer of the vocabulary. Ends the program with a message if the file is not as described. */
void bpe_golden_read(const char *path, enum pretokenizer pre, struct bpe_golden *g);
void bpe_golden_free(struct bpe_golden *g);

#endif
