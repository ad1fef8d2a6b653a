/* Broken and odd GGUF files: each is one change, or a few, of a good model (forge.h), with the words that a program
 * must find for it. What the loader has to derive, to overrule or to ignore (spec dialects 1, 3, 6.2, 12) is good: such
 * files run, with the logits of the unchanged one. */
#ifndef HOSTILE_CASES_H
#define HOSTILE_CASES_H
#include <stdbool.h>
#include "base/err.h"
#include "forge.h"

enum {
    HOSTILE_HEADER = 1, /* no GGUF: whoever reads the container refuses it too */
    HOSTILE_GOOD = 2,   /* runs; `says` are words of warnings */
    HOSTILE_ONE = 4,    /* only for the first base: for what the other form has not */
    HOSTILE_WORSE = 8   /* with HOSTILE_GOOD: runs, but what comes out is another thing */
};

struct hostile_case {
    const char *kind, *name;
    struct forge_edit edits[FORGE_MOST];
    const char *says[3]; /* all of them stand in the message: what it is about, what it is, what is allowed */
    int flags;
};

extern const struct hostile_case hostile_cases[];
extern const int hostile_n_cases;

/* The models that cases are made of. Mixed: Q8_0, F16, Q4_0 and MXFP4 under ds4's names and keys. Q2: experts in
 * IQ2_XXS and Q2_K under ik_llama.cpp's names, with few keys. */
enum hostile_base { HOSTILE_MIXED, HOSTILE_Q2, HOSTILE_BASES };
/* The smallest model whose parts all differ: for corpora. 16 tokens, 2 layers. */
int hostile_small_write(const char *path, struct err *e);
const char *hostile_base_name(enum hostile_base b);
int hostile_base_write(enum hostile_base b, const char *path, struct err *e);

/* True if the case can be made of this base. */
bool hostile_applies(const struct hostile_case *c, enum hostile_base b);

#endif
