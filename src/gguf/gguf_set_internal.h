/* Shared by gguf_set.c (files) and gguf_merge.c (directory). */
#ifndef GGUF_SET_INTERNAL_H
#define GGUF_SET_INTERNAL_H
#include "base/str.h"
#include "base/strmap.h"
#include "gguf/gguf_set.h"

enum { GGUF_SET_WARNINGS = 3 }; /* 0: counts of shards differ; 1: keys differ; 2: of a file */

struct gguf_set {
    struct gguf **file; /* owned, as is all of this */
    int n, n_shards;    /* the first n_shards files are shards of one split set */
    bool *draft;        /* [n] gguf_set_is_draft */
    const struct gguf_kv **kv;
    uint64_t n_kv, n_tensors;
    struct strmap *keys;  /* to indices of kv */
    struct strmap *names; /* to places of tensors: file << 40 | index */
    struct str warning[GGUF_SET_WARNINGS];
};

/* Files of a list behind the first, or behind its shards. */
static inline int gguf_set_rest(const struct gguf_set *s)
{
    return s->n_shards > 0 ? s->n_shards : 1;
}

/* Makes the directory; a tensor in two files is refused. */
int gguf_set_merge(struct gguf_set *s, struct err *e);
/* A list: all files describe the first one's model. */
int gguf_set_check_list(const struct gguf_set *s, struct err *e);

#endif
