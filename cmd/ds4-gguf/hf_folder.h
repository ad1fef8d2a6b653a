/* A folder in the form in which checkpoints are published: config.json, tokenizer.json and the tensors in
 * model.safetensors or in the shards that model.safetensors.index.json lists. */
#ifndef HF_FOLDER_H
#define HF_FOLDER_H
#include <stdbool.h>
#include "base/err.h"
#include "base/str.h"
#include "safetensors.h"

struct hf_folder;

/* Opens all tensor files and indexes their names. */
int hf_folder_open(const char *path, struct hf_folder **out, struct err *e);
void hf_folder_close(struct hf_folder *f);
/* Puts "PATH/file" into s. */
const char *hf_folder_file(const struct hf_folder *f, const char *file, struct str *s);

/* A tensor by name, marked as used; NULL if there is none. */
const struct st_tensor *hf_folder_find(struct hf_folder *f, const char *name);
/* The tensors by place, in the order of the files; NULL behind the last. */
const struct st_tensor *hf_folder_at(const struct hf_folder *f, size_t i);
/* True if path is one of the files that are read, under whatever name. */
bool hf_folder_reads(const struct hf_folder *f, const char *path);
/* Calls fn for every tensor that hf_folder_find has not returned. */
void hf_folder_unused(const struct hf_folder *f, void (*fn)(void *arg, const char *name), void *arg);
/* ERR_IO if a file could not be read as a whole while it was used. */
int hf_folder_intact(const struct hf_folder *f, struct err *e);

#endif
