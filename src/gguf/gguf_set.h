/* File sets (spec dialects 2.1): the files of one model and their merged directory. A set is a single file, a split set
 * of which any shard was named, or a list of files with disjoint tensors and the same model's metadata in each, the
 * first of which may stand for its split set. A later file of a list may be a draft: its own keys are left aside, and
 * so is what it has twice.
 *
 * Every file keeps its own alignment and data start. Descriptors are closed once a file is mapped, so the limit of open
 * files does not limit the number of shards. */
#ifndef GGUF_GGUF_SET_H
#define GGUF_GGUF_SET_H
#include "gguf/gguf.h"

struct gguf_set;

/* Opens one path (with the other shards, if it is one of a split set: found by the name given, not by what a link leads
 * to) or a list of at least two, the files behind the first whole ones. On error nothing is left open and e holds one
 * sentence that names the file or shard (spec 13.3 R3, R4, R6). */
int gguf_set_open(const char *const *paths, int n_paths, struct gguf_set **out, struct err *e);
/* This file alone, even if it is a shard of several: to be looked at. */
int gguf_set_open_part(const char *path, struct gguf_set **out, struct err *e);
void gguf_set_close(struct gguf_set *s); /* NULL is fine */

/* The files: shards by number, others as listed, behind them. Split: all are shards. */
int gguf_set_n_files(const struct gguf_set *s);
const struct gguf *gguf_set_file(const struct gguf_set *s, int i);
bool gguf_set_is_split(const struct gguf_set *s);

/* Merged metadata: records of the first file, then those of others whose key no earlier file has. What describes a file
 * by itself (split.*, general.alignment) is taken from the first only. */
uint64_t gguf_set_n_kv(const struct gguf_set *s);
const struct gguf_kv *gguf_set_kv_at(const struct gguf_set *s, uint64_t i);
const struct gguf_kv *gguf_set_kv_find(const struct gguf_set *s, const char *key);

uint64_t gguf_set_n_tensors(const struct gguf_set *s);
const struct gguf_tensor *gguf_set_tensor_find(const struct gguf_set *s, const char *name, uint64_t n);

/* A later file of a list that is a draft: blocks with nextn tensors, none of them the first (spec dialects 11). */
bool gguf_set_is_draft(const struct gguf_set *s, int i);

/* Sentences on what is odd about the set but does no harm; NULL behind the last. */
const char *gguf_set_warning(const struct gguf_set *s, int i);

#endif
