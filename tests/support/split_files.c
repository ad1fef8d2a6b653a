#include "split_files.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "gguf/gguf.h"

const char *split_path(char path[256], const char *stem, const struct split_form *form, int i, int n)
{
    const int digits = form->digits ? form->digits : 5;
    snprintf(path, 256, "%s-%0*d-of-%0*d.gguf", stem, digits, i, digits, n);
    return path;
}

static void put_u16(struct gguf_writer *w, const char *key, int v)
{
    const uint8_t bytes[2] = {(uint8_t)v, (uint8_t)(v >> 8)};
    gguf_put_kv(w, &(struct gguf_kv){{key, strlen(key)}, GGUF_U16, GGUF_U16, 1, bytes, NULL});
}

static void put_split_keys(struct gguf_writer *w, const struct split_form *form, int i, int n, uint64_t n_tensors)
{
    if (form->no_keys || form->full) return;
    if (form->wide_keys) {
        gguf_put_u64(w, "split.no", (uint64_t)i - 1);
        gguf_put_u64(w, "split.count", (uint64_t)n);
        gguf_put_u64(w, "split.tensors.count", n_tensors);
    } else {
        put_u16(w, "split.no", i - 1);
        put_u16(w, "split.count", n);
        gguf_put_i32(w, "split.tensors.count", (int32_t)n_tensors);
    }
}

static void declare(struct gguf_writer *w, const struct gguf_tensor *t)
{
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
    gguf_declare(w, name, t->type, t->n_dims, t->ne);
}

/* Shard i with tensors first to end - 1. */
static int write_shard(const struct gguf *g, const char *path, const struct split_form *form, int i, int n,
                       uint64_t first, uint64_t end, struct err *e)
{
    struct gguf_writer *w;
    const int rc = gguf_writer_open(path, &w, e);
    if (rc) return rc;
    if (i == 1 && form->align) gguf_put_u32(w, "general.alignment", (uint32_t)form->align);
    for (uint64_t k = 0; (i == 1 || form->full) && k < gguf_n_kv(g); k++)
        if (gguf_kv_at(g, k) != gguf_kv_find(g, "general.alignment")) gguf_put_kv(w, gguf_kv_at(g, k));
    put_split_keys(w, form, i, n, gguf_n_tensors(g));
    for (uint64_t t = first; t < end; t++) declare(w, gguf_tensor_at(g, t));
    for (uint64_t t = first; t < end; t++) {
        const struct gguf_tensor *of = gguf_tensor_at(g, t);
        gguf_write(w, gguf_data(g) + of->offset, of->bytes);
    }
    return gguf_writer_finish(w, e);
}

/* Cuts off what pads the file behind its last record. */
static int cut_padding(const char *path, struct err *e)
{
    struct gguf *g;
    const int rc = gguf_open(path, &g, e);
    if (rc) return rc;
    const struct gguf_kv *kv = gguf_kv_at(g, gguf_n_kv(g) - 1);
    const off_t end = (off_t)(kv->data - gguf_data(g)) + (kv->elem == GGUF_U64 ? 8 : 4);
    gguf_close(g);
    return truncate(path, end) ? err_set(e, ERR_IO, "%s: cannot cut", path) : 0;
}

static int link_elsewhere(const char *path, const char *stem, struct err *e)
{
    char folder[256], file[300];
    snprintf(folder, sizeof folder, "%s-common", stem);
    snprintf(file, sizeof file, "%s/tables.gguf", folder);
    if (mkdir(folder, 0700) || rename(path, file) || symlink(file, path))
        return err_set(e, ERR_IO, "%s: cannot link", path);
    return 0;
}

int split_write(const char *from, const char *stem, const struct split_form *form, int *n, struct err *e)
{
    struct gguf *g;
    char path[256];
    int rc = gguf_open(from, &g, e);
    if (rc) return rc;
    const int meta = form->meta_first ? 1 : 0;
    const uint64_t n_tensors = gguf_n_tensors(g), n_data = form->n ? (uint64_t)(form->n - meta) : n_tensors;
    *n = (int)n_data + meta;
    for (int i = 1; i <= *n && rc == 0; i++) {
        const uint64_t at = (uint64_t)(i - 1 - meta);
        const bool empty = meta && i == 1;
        rc = write_shard(g, split_path(path, stem, form, i, *n), form, i, *n, empty ? 0 : n_tensors * at / n_data,
                         empty ? 0 : n_tensors * (at + 1) / n_data, e);
        if (rc == 0 && empty) rc = cut_padding(path, e);
    }
    if (rc == 0 && form->link_last) rc = link_elsewhere(path, stem, e);
    gguf_close(g);
    return rc;
}
