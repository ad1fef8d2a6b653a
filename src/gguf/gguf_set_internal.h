/* Shared by gguf_set.c (files) and gguf_merge.c (directory). */
#ifndef GGUF_SET_INTERNAL_H
#define GGUF_SET_INTERNAL_H
#include "base/str.h"
#include "base/strmap.h"
#include "gguf/gguf_set.h"

enum { GGUF_SET_WARNINGS = 3 }; /* 0: counts of shards differ; 1: keys differ; 2: of a file */

struct gguf_set {
    struct gguf **file; /* owned, as is all of this */
    int n;
    bool is_split;
    bool *draft; /* [n] files of a list that gguf_is_draft */
    const struct gguf_kv **kv;
    uint64_t n_kv, n_tensors;
    struct strmap *keys;  /* to indices of kv */
    struct strmap *names; /* to places of tensors: file << 40 | index */
    struct str warning[GGUF_SET_WARNINGS];
};

/* Makes the directory; a tensor in two files is refused. */
int gguf_set_merge(struct gguf_set *s, struct err *e);
/* A list of whole files: all describe the first one's model. */
int gguf_set_check_list(const struct gguf_set *s, struct err *e);

#endif
