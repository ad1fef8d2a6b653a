/* Writer (spec gguf-and-quants 1.4). Records are collected in memory; the first byte of data, or the end, writes the
 * header and them, so counts and offsets are known by then. */
#include "gguf/gguf.h"
#include <inttypes.h>
#include <string.h>
#include "base/mem.h"
#include "base/strmap.h"
#include "gguf/gguf_internal.h"
#include "quant/quant.h"

struct bytes {
    uint8_t *p;
    size_t n, cap;
};

struct gguf_writer {
    struct file_writer *file;
    char *path;
    struct err err;          /* sticky */
    struct bytes kv, tensor; /* encoded records */
    struct bytes sizes;      /* u64 per tensor: bytes of its data */
    struct bytes names;      /* char *: every key and name, owned here for the maps */
    struct strmap *keys, *tensor_names;
    uint64_t n_kv, n_tensors, align;
    uint64_t next_offset; /* of the next tensor to be declared, from the start of data */
    gguf_key_fn *rename;  /* or NULL */
    const void *rename_arg;
    bool has_tail;
    uint64_t tail_at;   /* of the tail, from the start of the file */
    bool started;       /* the records are written */
    uint64_t i_tensor;  /* tensor whose data is awaited */
    uint64_t n_written; /* bytes of it so far */
};

static void append(struct gguf_writer *w, struct bytes *b, const void *p, uint64_t n)
{
    if (w->err.code) return;
    if (n > b->cap - b->n) {
        const uint64_t cap = n < PTRDIFF_MAX / 2 - b->n ? (b->n + n) * 2 + 256 : SIZE_MAX;
        uint8_t *wider = cap < SIZE_MAX ? mem_try((size_t)cap) : NULL;
        if (!wider) {
            err_set(&w->err, ERR_MEMORY, "%s: no memory for the records to write", w->path);
            return;
        }
        if (b->n) memcpy(wider, b->p, b->n);
        mem_free(b->p);
        b->p = wider;
        b->cap = (size_t)cap;
    }
    if (n) memcpy(b->p + b->n, p, (size_t)n);
    b->n += (size_t)n;
}

static void append_number(struct gguf_writer *w, struct bytes *b, uint64_t v, unsigned n)
{
    uint8_t le[8];
    for (unsigned i = 0; i < n; i++) le[i] = (uint8_t)(v >> (8 * i));
    append(w, b, le, n);
}

static void append_string(struct gguf_writer *w, struct bytes *b, const char *p, uint64_t n)
{
    append_number(w, b, n, 8);
    append(w, b, p, n);
}

/* A reader refuses the same: too long, or there already. */
static bool new_name(struct gguf_writer *w, struct strmap *map, const char *kind, const char *p, uint64_t n)
{
    if (w->err.code) return false;
    if (w->started)
        err_set(&w->err, ERR_ARG, "%s: %s %s comes after the first data", w->path, kind, gguf_show(p, n).text);
    else if (w->has_tail)
        err_set(&w->err, ERR_ARG, "%s: %s %s comes after the last tensor", w->path, kind, gguf_show(p, n).text);
    else if (n > GGUF_MAX_KEY)
        err_set(&w->err, ERR_ARG, "%s: %s of %" PRIu64 " bytes; at most %d are allowed", w->path, kind, n,
                GGUF_MAX_KEY);
    if (w->err.code) return false;
    char *copy = mem_alloc((size_t)n + 1);
    if (n) memcpy(copy, p, (size_t)n);
    const int rc = strmap_put(map, copy, (size_t)n, 0);
    append(w, &w->names, &copy, sizeof copy);
    if (w->err.code) mem_free(copy);
    if (rc < 0) err_set(&w->err, ERR_MEMORY, "%s: no memory for the records to write", w->path);
    if (rc == 0) err_set(&w->err, ERR_ARG, "%s: %s %s is given twice", w->path, kind, gguf_show(p, n).text);
    return !w->err.code;
}

static bool begin_kv(struct gguf_writer *w, const char *key, uint64_t n, enum gguf_type type)
{
    char was[GGUF_RENAMED_KEY], name[GGUF_RENAMED_KEY];
    if (w->rename && n < sizeof was) {
        memcpy(was, key, (size_t)n);
        was[n] = 0;
        if (!w->rename(w->rename_arg, was, name)) return false;
        key = name;
        n = strlen(name);
    }
    if (!n) err_set(&w->err, ERR_ARG, "%s: empty key", w->path);
    if (!new_name(w, w->keys, "key", key, n)) return false;
    append_string(w, &w->kv, key, n);
    append_number(w, &w->kv, type, 4);
    w->n_kv++;
    return true;
}

static bool is_align_key(const char *key, uint64_t n)
{
    return n == strlen(GGUF_ALIGN_KEY) && !memcmp(key, GGUF_ALIGN_KEY, (size_t)n);
}

static void note_align(struct gguf_writer *w, uint64_t v)
{
    if (w->err.code) return;
    if (w->n_tensors)
        err_set(&w->err, ERR_ARG, "%s: " GGUF_ALIGN_KEY " comes after the first tensor", w->path);
    else if (gguf_align_check(v, &w->err))
        err_wrap(&w->err, "%s: " GGUF_ALIGN_KEY, w->path);
    else
        w->align = v;
}

static void put_integer(struct gguf_writer *w, const char *key, enum gguf_type type, uint64_t v)
{
    const uint64_t n = strlen(key);
    if (!begin_kv(w, key, n, type)) return;
    append_number(w, &w->kv, v, gguf_type_bytes(type));
    if (is_align_key(key, n)) note_align(w, type == GGUF_I32 ? (uint64_t)(int64_t)(int32_t)v : v);
}

void gguf_writer_rename(struct gguf_writer *w, gguf_key_fn *fn, const void *arg)
{
    w->rename = fn;
    w->rename_arg = arg;
}

void gguf_put_u16(struct gguf_writer *w, const char *key, uint16_t v)
{
    put_integer(w, key, GGUF_U16, v);
}

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v)
{
    put_integer(w, key, GGUF_U32, v);
}

void gguf_put_u64(struct gguf_writer *w, const char *key, uint64_t v)
{
    put_integer(w, key, GGUF_U64, v);
}

void gguf_put_i32(struct gguf_writer *w, const char *key, int32_t v)
{
    put_integer(w, key, GGUF_I32, (uint32_t)v);
}

void gguf_put_bool(struct gguf_writer *w, const char *key, bool v)
{
    put_integer(w, key, GGUF_BOOL, v);
}

static uint32_t float_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

void gguf_put_f32(struct gguf_writer *w, const char *key, float v)
{
    if (begin_kv(w, key, strlen(key), GGUF_F32)) append_number(w, &w->kv, float_bits(v), 4);
}

void gguf_put_str(struct gguf_writer *w, const char *key, const char *v, uint64_t n)
{
    if (begin_kv(w, key, strlen(key), GGUF_STRING)) append_string(w, &w->kv, v, n);
}

static bool begin_array(struct gguf_writer *w, const char *key, enum gguf_type elem, uint64_t n)
{
    if (!begin_kv(w, key, strlen(key), GGUF_ARRAY)) return false;
    append_number(w, &w->kv, elem, 4);
    append_number(w, &w->kv, n, 8);
    return true;
}

void gguf_put_arr_i32(struct gguf_writer *w, const char *key, const int32_t *v, uint64_t n)
{
    if (!begin_array(w, key, GGUF_I32, n)) return;
    for (uint64_t i = 0; i < n && !w->err.code; i++) append_number(w, &w->kv, (uint32_t)v[i], 4);
}

void gguf_put_arr_u64(struct gguf_writer *w, const char *key, const uint64_t *v, uint64_t n)
{
    if (!begin_array(w, key, GGUF_U64, n)) return;
    for (uint64_t i = 0; i < n && !w->err.code; i++) append_number(w, &w->kv, v[i], 8);
}

void gguf_put_arr_f32(struct gguf_writer *w, const char *key, const float *v, uint64_t n)
{
    if (!begin_array(w, key, GGUF_F32, n)) return;
    for (uint64_t i = 0; i < n && !w->err.code; i++) append_number(w, &w->kv, float_bits(v[i]), 4);
}

void gguf_put_arr_str(struct gguf_writer *w, const char *key, const struct gguf_str *v, uint64_t n)
{
    if (!begin_array(w, key, GGUF_STRING, n)) return;
    for (uint64_t i = 0; i < n && !w->err.code; i++) append_string(w, &w->kv, v[i].p, v[i].n);
}

/* Bytes of the packed elements as they are in the file. */
static uint64_t packed_bytes(const struct gguf_kv *kv)
{
    if (kv->elem != GGUF_STRING) return kv->count * gguf_type_bytes(kv->elem);
    if (!kv->count) return 0;
    const uint64_t last = kv->str_at ? kv->str_at[kv->count - 1] : 0;
    return last + 8 + gguf_load(kv->data + last, 8);
}

void gguf_put_kv(struct gguf_writer *w, const struct gguf_kv *kv)
{
    uint64_t align;
    if (!begin_kv(w, kv->key.p, kv->key.n, kv->type)) return;
    if (kv->type == GGUF_ARRAY) {
        append_number(w, &w->kv, kv->elem, 4);
        append_number(w, &w->kv, kv->count, 8);
    }
    append(w, &w->kv, kv->data, packed_bytes(kv));
    if (is_align_key(kv->key.p, kv->key.n)) note_align(w, gguf_u64(kv, 0, &align, NULL) ? 0 : align);
}

/* Where the data of a tensor starts whose record is the last one. */
static bool place_tail(struct gguf_writer *w, struct gguf_tensor *t, uint64_t n_name, uint64_t align)
{
    const uint64_t record = 8 + n_name + 4 + 8 * (uint64_t)t->n_dims + 4 + 8;
    uint64_t start;
    if (align < w->align) align = w->align;
    if (!u64_align_up(24 + w->kv.n + w->tensor.n + record, w->align, &start) ||
        !u64_add(start, w->next_offset, &w->tail_at) || !u64_align_up(w->tail_at, align, &w->tail_at))
        return false;
    t->offset = w->tail_at - start;
    w->has_tail = true;
    return true;
}

/* tail_align 0: it is not the tail. */
static void declare(struct gguf_writer *w, const char *name, uint32_t type, int n_dims, const uint64_t *ne,
                    uint64_t tail_align)
{
    struct gguf_tensor t = {.n_dims = n_dims, .type = type, .offset = w->next_offset};
    const uint64_t n = strlen(name);
    if (!new_name(w, w->tensor_names, "tensor", name, n)) return;
    for (int d = 0; d < n_dims && d < GGUF_MAX_DIMS; d++) t.ne[d] = ne[d];
    if (!quant_type(type))
        err_set(&w->err, ERR_ARG, "type %" PRIu32 " is unknown", type);
    else if (!gguf_dims_check((uint64_t)n_dims, &w->err))
        gguf_tensor_measure(&t, &w->err);
    if (!w->err.code &&
        ((tail_align && !place_tail(w, &t, n, tail_align)) || !u64_add(t.offset, t.bytes, &w->next_offset) ||
         !u64_align_up(w->next_offset, w->align, &w->next_offset)))
        err_set(&w->err, ERR_ARG, "the file would pass 2^64 bytes");
    if (w->err.code) {
        err_wrap(&w->err, "%s: tensor %s", w->path, gguf_show(name, n).text);
        return;
    }
    append_string(w, &w->tensor, name, n);
    append_number(w, &w->tensor, (uint64_t)n_dims, 4);
    for (int d = 0; d < n_dims; d++) append_number(w, &w->tensor, t.ne[d], 8);
    append_number(w, &w->tensor, type, 4);
    append_number(w, &w->tensor, t.offset, 8);
    append(w, &w->sizes, &t.bytes, sizeof t.bytes);
    w->n_tensors++;
}

void gguf_declare(struct gguf_writer *w, const char *name, uint32_t type, int n_dims, const uint64_t *ne)
{
    declare(w, name, type, n_dims, ne, 0);
}

void gguf_declare_tail(struct gguf_writer *w, const char *name, uint32_t type, int n_dims, const uint64_t *ne,
                       uint64_t align)
{
    declare(w, name, type, n_dims, ne, align);
}

static void to_file(struct gguf_writer *w, const void *p, uint64_t n)
{
    if (!w->err.code && n) file_writer_put(w->file, p, (size_t)n, &w->err);
}

/* Up to where tensor `next` starts. */
static void pad_file(struct gguf_writer *w, uint64_t next)
{
    static const uint8_t zeros[4096];
    uint64_t end;
    const uint64_t at = file_writer_at(w->file);
    if (!u64_align_up(at, w->align, &end) || (w->has_tail && next == w->n_tensors)) end = at;
    if (w->has_tail && next + 1 == w->n_tensors) end = w->tail_at;
    for (uint64_t n = end - at; n && !w->err.code;) {
        const uint64_t part = n < sizeof zeros ? n : sizeof zeros;
        to_file(w, zeros, part);
        n -= part;
    }
}

/* Header and records; padding up to the data only where there is data. */
static void start(struct gguf_writer *w)
{
    if (w->started) return;
    struct bytes head = {0};
    w->started = true;
    append(w, &head, "GGUF", 4);
    append_number(w, &head, 3, 4);
    append_number(w, &head, w->n_tensors, 8);
    append_number(w, &head, w->n_kv, 8);
    to_file(w, head.p, head.n);
    mem_free(head.p);
    to_file(w, w->kv.p, w->kv.n);
    to_file(w, w->tensor.p, w->tensor.n);
    if (w->n_tensors) pad_file(w, 0);
}

static uint64_t size_of(const struct gguf_writer *w, uint64_t i)
{
    uint64_t bytes;
    memcpy(&bytes, w->sizes.p + i * sizeof bytes, sizeof bytes);
    return bytes;
}

void gguf_write(struct gguf_writer *w, const void *data, uint64_t n)
{
    if (w->err.code || !n) return;
    start(w);
    const uint64_t room = w->i_tensor < w->n_tensors ? size_of(w, w->i_tensor) - w->n_written : 0;
    if (n > room) {
        err_set(&w->err, ERR_ARG,
                "%s: %" PRIu64 " bytes of data for tensor %" PRIu64 " of %" PRIu64 ", which has room for %" PRIu64
                " more",
                w->path, n, w->i_tensor, w->n_tensors, room);
        return;
    }
    to_file(w, data, n);
    w->n_written += n;
    if (n < room) return;
    w->n_written = 0;
    pad_file(w, ++w->i_tensor);
}

int gguf_writer_open(const char *path, struct gguf_writer **out, struct err *e)
{
    struct gguf_writer *w = mem_alloc(sizeof *w);
    *out = NULL;
    w->path = mem_strdup(path);
    w->align = GGUF_DEFAULT_ALIGN;
    w->keys = strmap_new(0);
    w->tensor_names = strmap_new(0);
    int rc = w->keys && w->tensor_names ? 0 : err_set(e, ERR_MEMORY, "%s: no memory for a writer", path);
    if (!rc) rc = file_writer_open(path, &w->file, e);
    if (rc)
        gguf_writer_abort(w);
    else
        *out = w;
    return rc;
}

int gguf_writer_error(const struct gguf_writer *w, struct err *e)
{
    return w->err.code ? err_set(e, w->err.code, "%s", w->err.msg) : 0;
}

int gguf_writer_finish(struct gguf_writer *w, struct err *e)
{
    if (!w->err.code) start(w);
    if (!w->err.code && w->i_tensor < w->n_tensors)
        err_set(&w->err, ERR_ARG,
                "%s: data of tensor %" PRIu64 " of %" PRIu64 " is missing (%" PRIu64 " of %" PRIu64
                " bytes were given)",
                w->path, w->i_tensor, w->n_tensors, w->n_written, size_of(w, w->i_tensor));
    if (!w->err.code) {
        struct file_writer *file = w->file;
        w->file = NULL;
        file_writer_commit(file, &w->err);
    }
    const int rc = gguf_writer_error(w, e);
    gguf_writer_abort(w);
    return rc;
}

void gguf_writer_abort(struct gguf_writer *w)
{
    if (!w) return;
    file_writer_abort(w->file);
    for (size_t i = 0; i < w->names.n; i += sizeof(char *)) {
        char *name;
        memcpy(&name, w->names.p + i, sizeof name);
        mem_free(name);
    }
    mem_free(w->names.p);
    mem_free(w->sizes.p);
    mem_free(w->kv.p);
    mem_free(w->tensor.p);
    strmap_free(w->keys);
    strmap_free(w->tensor_names);
    mem_free(w->path);
    mem_free(w);
}
