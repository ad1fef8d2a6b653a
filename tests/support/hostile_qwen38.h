/* Broken and odd headers of Qwen3.8 files, made from the list of its keys and tensors: every key missing, of a wrong
 * type, negative, huge, 0, contradicting the tensors; every list short, empty, one too long, not a list; every tensor
 * missing, of another shape, of a type that nothing computes with. */
#ifndef HOSTILE_QWEN38_H
#define HOSTILE_QWEN38_H
#include <stdbool.h>
#include "base/err.h"
#include "forge.h"

enum hostile_end {
    END_SAME,    /* runs as the file that it was made of */
    END_REFUSED, /* in one line that names `about` */
    END_EITHER,  /* the same line, or it runs: as another model, for nothing else tells the value */
    END_ALONE,   /* runs without its draft */
};

struct hostile_qwen38 {
    char name[96]; /* of the case: a file name */
    char key[96], about[96];
    struct forge_edit edit; /* name points to key */
    enum hostile_end end;
};

int hostile_qwen38_count(void);
void hostile_qwen38_at(int i, struct hostile_qwen38 *c);
/* The file that the edits are for: with a draft, gate and up apart. small: few tokens, for corpora. */
int hostile_qwen38_base(const char *path, bool small, struct err *e);

#endif
