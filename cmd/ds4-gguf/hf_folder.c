/* Shards of a source folder and the index of their tensors. */
#include "hf_folder.h"
#include <jansson.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "hf_json.h"

struct shard {
    char *file; /* name in the folder */
    struct safetensors *st;
};

struct hf_folder {
    char *path;
    struct shard *shards;
    size_t n_shards;
    const struct st_tensor **tensors;
    bool *used;
    size_t n_tensors;
    struct strmap *names; /* -> index into tensors */
};

const char *hf_folder_file(const struct hf_folder *f, const char *file, struct str *s)
{
    str_clear(s);
    str_printf(s, "%s/%s", f->path, file);
    return str_c(s);
}

static int open_shard(struct hf_folder *f, const char *file, struct err *e)
{
    struct str path = {0};
    f->shards = mem_grow(f->shards, (f->n_shards + 1) * sizeof *f->shards);
    struct shard *s = &f->shards[f->n_shards];
    *s = (struct shard){0};
    const int rc = safetensors_open(hf_folder_file(f, file, &path), &s->st, e);
    if (!rc) {
        s->file = mem_strdup(file);
        f->n_shards++;
    }
    str_free(&path);
    return rc;
}

static struct shard *find_shard(const struct hf_folder *f, const char *file)
{
    for (size_t i = 0; i < f->n_shards; i++)
        if (strcmp(f->shards[i].file, file) == 0) return &f->shards[i];
    return NULL;
}

/* Opens every file that the weight map names. */
static int open_listed(struct hf_folder *f, const char *index, const json_t *map, struct err *e)
{
    if (!json_is_object(map)) return err_set(e, ERR_FORMAT, "%s: no \"weight_map\"", index);
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)map, name, v)
    {
        const char *file = json_string_value(v);
        if (!file || !*file || *file == '.' || strchr(file, '/'))
            return err_set(e, ERR_FORMAT, "%s: tensor %s: not the name of a file in this folder", index, name);
        const int rc = find_shard(f, file) ? 0 : open_shard(f, file, e);
        if (rc) return rc;
    }
    return 0;
}

static int index_tensors(struct hf_folder *f, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_shards; i++) n += safetensors_count(f->shards[i].st);
    f->tensors = mem_try((n + 1) * sizeof *f->tensors);
    f->used = mem_try(n + 1);
    f->names = strmap_new(n);
    if (!f->tensors || !f->used || !f->names)
        return err_set(e, ERR_MEMORY, "%s: not enough memory for its list of tensors", f->path);
    for (size_t i = 0; i < f->n_shards; i++)
        for (size_t j = 0; j < safetensors_count(f->shards[i].st); j++) {
            const struct st_tensor *t = safetensors_at(f->shards[i].st, j);
            const int rc = strmap_put(f->names, t->name, strlen(t->name), f->n_tensors);
            if (rc < 0) return err_set(e, ERR_MEMORY, "%s: not enough memory for its list of tensors", f->path);
            if (rc == 0) return err_set(e, ERR_FORMAT, "%s: tensor %s is in two files", f->path, t->name);
            f->tensors[f->n_tensors++] = t;
        }
    return 0;
}

/* Every tensor of the weight map must be in some file. */
static int check_listed(const struct hf_folder *f, const char *index, const json_t *map, struct err *e)
{
    const char *name;
    json_t *v;
    uint64_t at;
    json_object_foreach((json_t *)map, name, v)
    {
        if (!strmap_get(f->names, name, strlen(name), &at))
            return err_set(e, ERR_FORMAT, "%s: tensor %s is not in %s", index, name, json_string_value(v));
    }
    return 0;
}

static int open_tensors(struct hf_folder *f, struct err *e)
{
    struct str path = {0};
    json_t *root = NULL;
    int rc = 0;
    if (access(hf_folder_file(f, "model.safetensors.index.json", &path), F_OK) == 0) {
        rc = hf_json_read(str_c(&path), &root, e);
        const json_t *map = json_object_get(root, "weight_map");
        if (!rc) rc = open_listed(f, str_c(&path), map, e);
        if (!rc) rc = index_tensors(f, e);
        if (!rc) rc = check_listed(f, str_c(&path), map, e);
    } else {
        rc = open_shard(f, "model.safetensors", e);
        if (!rc) rc = index_tensors(f, e);
    }
    json_decref(root);
    str_free(&path);
    return rc;
}

int hf_folder_open(const char *path, struct hf_folder **out, struct err *e)
{
    struct hf_folder *f = mem_alloc(sizeof *f);
    f->path = mem_strdup(path);
    const int rc = open_tensors(f, e);
    if (rc)
        hf_folder_close(f);
    else
        *out = f;
    return rc;
}

void hf_folder_close(struct hf_folder *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->n_shards; i++) {
        safetensors_close(f->shards[i].st);
        mem_free(f->shards[i].file);
    }
    strmap_free(f->names);
    mem_free(f->shards);
    mem_free(f->tensors);
    mem_free(f->used);
    mem_free(f->path);
    mem_free(f);
}

const struct st_tensor *hf_folder_find(struct hf_folder *f, const char *name)
{
    uint64_t at;
    if (!strmap_get(f->names, name, strlen(name), &at)) return NULL;
    f->used[at] = true;
    return f->tensors[at];
}

const struct st_tensor *hf_folder_at(const struct hf_folder *f, size_t i)
{
    return i < f->n_tensors ? f->tensors[i] : NULL;
}

static bool same_file(const struct hf_folder *f, const char *file, const char *path)
{
    struct str own = {0};
    const bool same = file_same(hf_folder_file(f, file, &own), path);
    str_free(&own);
    return same;
}

bool hf_folder_reads(const struct hf_folder *f, const char *path)
{
    for (size_t i = 0; i < f->n_shards; i++)
        if (same_file(f, f->shards[i].file, path)) return true;
    return same_file(f, "config.json", path) || same_file(f, "tokenizer.json", path) ||
           same_file(f, "model.safetensors.index.json", path);
}

void hf_folder_unused(const struct hf_folder *f, void (*fn)(void *arg, const char *name), void *arg)
{
    for (size_t i = 0; i < f->n_tensors; i++)
        if (!f->used[i]) fn(arg, f->tensors[i]->name);
}

int hf_folder_intact(const struct hf_folder *f, struct err *e)
{
    for (size_t i = 0; i < f->n_shards; i++)
        if (safetensors_intact(f->shards[i].st, e)) return ERR_IO;
    return 0;
}
