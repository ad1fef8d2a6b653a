/* Tensors of a file that is to be written: names, roles and shapes. */
#ifndef LAYOUT_H
#define LAYOUT_H
#include <stdint.h>

/* What a tensor is for: decides which types it may take. */
enum layout_role {
    ROLE_EMBEDDING, /* token_embd */
    ROLE_HEAD,      /* output */
    ROLE_ATTENTION, /* attention projections */
    ROLE_SHARED,    /* shared experts */
    ROLE_EXPERTS,   /* routed experts, [in, out, E] */
    ROLE_SIDE,      /* compressors and the indexer's query projection */
    ROLE_SMALL,     /* matrices that stay exact: hyper-connections, router, position biases, indexer.proj */
    ROLE_MIXER,     /* hyper-connections that are F16 */
    ROLE_VECTOR,    /* F32: vectors, and matrices that decide much */
    ROLE_IDS,       /* tid2eid, I32 */
    ROLE_TABLE      /* rows that are not mapped: the file's last tensor, from a border of LAYOUT_TABLE_BORDER on */
};

enum { LAYOUT_TABLE_BORDER = 65536 };

struct layout_tensor {
    char name[80];           /* in GGUF */
    char source[80];         /* in the source checkpoint; experts: the part before the expert's number */
    const char *source_tail; /* experts: the part behind it; else NULL */
    enum layout_role role;
    int layer; /* -1: none */
    int n_dims;
    uint64_t ne[3];   /* ne[0] = row length */
    uint64_t logical; /* of a row padded with zeros: its values; else 0 */
};

/* Values of a row without padding. */
static inline uint64_t layout_row(const struct layout_tensor *t)
{
    return t->logical ? t->logical : t->ne[0];
}

#endif
