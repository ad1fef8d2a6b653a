/* A complete small DeepSeek V4 source folder for tests of conversion: config.json, tokenizer.json and safetensors of
 * made-up values. Names, shapes and what they become in a GGUF file are written here from the spec
 * (deepseek-v4 2.3, 2.6), apart from the converter's table. */
#ifndef ST_SOURCE_H
#define ST_SOURCE_H
#include <stddef.h>
#include <stdint.h>

enum { ST_SOURCE_MAX = 160 };

struct st_entry {
    char name[72];     /* in the source */
    char gguf[56];     /* tensor that it becomes, or is a slice of; "": none */
    int slice;         /* expert; 0 for whole tensors */
    const char *dtype; /* "BF16" */
    int n_dims;
    uint64_t shape[2]; /* slowest first */
    uint8_t *data;     /* owned */
    size_t bytes;
};

struct st_source {
    struct st_entry at[ST_SOURCE_MAX];
    int n;
    const char *config, *tokenizer; /* texts; may be replaced before writing */
};

/* 3 layers with ratios 0, 4, 128 (and an entry for the draft block); D 64, E 3, V 24; matrices BF16, norms of both
 * kinds. */
void st_source_make(struct st_source *s);
void st_source_free(struct st_source *s);
struct st_entry *st_source_find(struct st_source *s, const char *name);
/* Gives an entry another type and shape (n_dims 1 or 2) and new bytes, counted up from first. */
void st_source_retype(struct st_entry *t, const char *dtype, int n_dims, uint64_t rows, uint64_t cols, uint8_t first);
/* Adds an entry; data as in st_source_retype. */
struct st_entry *st_source_add(struct st_source *s, const char *name, const char *dtype, uint64_t rows, uint64_t cols,
                               uint8_t first);
void st_source_remove(struct st_source *s, const char *name);

/* Writes the folder, which must exist. n_shards 1: model.safetensors; more: shards and their index. 0 or -1. */
int st_source_write(const struct st_source *s, const char *folder, int n_shards);

#endif
