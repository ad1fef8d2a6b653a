/* Cuts a GGUF file into the file sets that people publish (spec dialects 2.1). */
#ifndef SPLIT_FILES_H
#define SPLIT_FILES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct split_form {
    int n;           /* shards; 0: one tensor in each */
    bool meta_first; /* the first shard has no tensor, and ends where its metadata end */
    bool link_last;  /* the last shard lies in a folder of its own under another name and is linked */
    bool no_keys;    /* without split.*: names alone tell */
    bool wide_keys;  /* split.* as u64 instead of u16 and i32 */
    bool full;       /* all metadata in every file, no split.* */
    int digits;      /* of the numbers in names; 0: five */
    uint64_t align;  /* general.alignment of the first shard; 0: none */
};

/* Path of shard i (from 1) of n: stem is folder and prefix. */
const char *split_path(char path[256], const char *stem, const struct split_form *form, int i, int n);
/* Writes the set next to each other; *n gets the number of shards. Tensors stay in order, as equal in number as can be.
 */
int split_write(const char *from, const char *stem, const struct split_form *form, int *n, struct err *e);

#endif
