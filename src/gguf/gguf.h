/* GGUF files: bytes <-> directory of metadata and tensors. Strict: every field is validated before use (spec
 * gguf-and-quants 1.3, dialects 3). Does not know what a tensor means. Memory grows with the records that were read and
 * found whole, never by a count that the file merely states. */
#ifndef GGUF_GGUF_H
#define GGUF_GGUF_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/file.h"

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT
};

struct gguf_str {
    const char *p; /* into the file; not zero-terminated */
    uint64_t n;
};

/* One metadata record. A scalar is an array of one value for the accessors below. */
struct gguf_kv {
    struct gguf_str key;
    enum gguf_type type;    /* GGUF_ARRAY, or the type of the scalar */
    enum gguf_type elem;    /* element type (= type for scalars) */
    uint64_t count;         /* elements (1 for scalars) */
    const uint8_t *data;    /* packed elements */
    const uint64_t *str_at; /* string arrays: offset of each element's length field from data */
};

/* The type of tensors whose number is none of ggml's, or one of ggml's newer ones with tensors of another size: another
 * program's layout. */
#define GGUF_NO_TYPE UINT32_MAX

struct gguf_tensor {
    struct gguf_str name;
    int n_dims;      /* 0..4 */
    uint64_t ne[4];  /* 1 behind n_dims; ne[0] = row length */
    uint32_t number; /* of the type, as in the file */
    uint32_t type;   /* what it means: of quant, or a number that quant does not know, or GGUF_NO_TYPE */
    uint64_t offset; /* absolute, from the start of the file */
    uint64_t bytes;  /* 0 if the type is unknown */
};

struct gguf;

/* Maps and parses. On error nothing is left open and e names file, field, value and what is allowed. */
int gguf_open(const char *path, struct gguf **out, struct err *e);
/* The same for a file whose tensors need not be there: only the records are looked at, and no data may be. */
int gguf_open_headers(const char *path, struct gguf **out, struct err *e);
/* The same for bytes in memory (they must stay valid); name is used in messages. */
int gguf_parse(const void *data, uint64_t n, const char *name, struct gguf **out, struct err *e);
void gguf_close(struct gguf *g);

const char *gguf_path(const struct gguf *g);
uint64_t
gguf_data_start(const struct gguf *g);        /* bytes before the data of tensors; may pass the end of a file without */
uint64_t gguf_data_end(const struct gguf *g); /* where the last tensor ends by the records, or the data begin */
const uint8_t *gguf_data(const struct gguf *g); /* start of the file */
uint64_t gguf_size(const struct gguf *g);
const struct file_map *gguf_map(const struct gguf *g); /* NULL after gguf_parse */
/* True if a page of the file was lost since it was opened (file truncated, disk error): sets e. Whatever was read from
 * it since may be zeros. */
bool gguf_damaged(const struct gguf *g, struct err *e);
/* A sentence on what is odd about the file but does no harm; NULL: nothing is. */
const char *gguf_warning(const struct gguf *g);

uint64_t gguf_n_kv(const struct gguf *g);
const struct gguf_kv *gguf_kv_at(const struct gguf *g, uint64_t i);
const struct gguf_kv *gguf_kv_find(const struct gguf *g, const char *key);
const struct gguf_kv *gguf_kv_find_str(const struct gguf *g, const struct gguf_str *key);
uint64_t gguf_n_tensors(const struct gguf *g);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, uint64_t i);
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name, uint64_t n);

/* Element i of a value as a number. Integers: any integer width or bool; a negative or too large value, a float or a
 * string is an error that names the key. Floats: f32, f64 or any integer, finite. Bools: bool, or an integer 0 or 1.
 * The errors do not name the file: the caller wraps them with gguf_path. */
int gguf_u64(const struct gguf_kv *kv, uint64_t i, uint64_t *v, struct err *e);
int gguf_i64(const struct gguf_kv *kv, uint64_t i, int64_t *v, struct err *e);
int gguf_f64(const struct gguf_kv *kv, uint64_t i, double *v, struct err *e);
int gguf_bool(const struct gguf_kv *kv, uint64_t i, bool *v, struct err *e);
int gguf_string(const struct gguf_kv *kv, uint64_t i, struct gguf_str *v, struct err *e);

/* What a value is, for messages: "u32", "array of string". */
const char *gguf_kind(const struct gguf_kv *kv, char text[32]);

/* Writer (spec 1.4): metadata in the order given, then tensors in the order declared, offsets computed, atomic rename.
 * Sticky error: after the first failure calls do nothing and gguf_writer_finish returns it. */
struct gguf_writer;
int gguf_writer_open(const char *path, struct gguf_writer **out, struct err *e);
/* From now on fn says under which name a record is written; false: it is left out. */
enum { GGUF_RENAMED_KEY = 256 };
typedef bool gguf_key_fn(const void *arg, const char *key, char name[GGUF_RENAMED_KEY]);
void gguf_writer_rename(struct gguf_writer *w, gguf_key_fn *fn, const void *arg);
void gguf_put_u16(struct gguf_writer *w, const char *key, uint16_t v);
void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v);
void gguf_put_u64(struct gguf_writer *w, const char *key, uint64_t v);
void gguf_put_i32(struct gguf_writer *w, const char *key, int32_t v);
void gguf_put_f32(struct gguf_writer *w, const char *key, float v);
void gguf_put_bool(struct gguf_writer *w, const char *key, bool v);
void gguf_put_str(struct gguf_writer *w, const char *key, const char *v, uint64_t n);
void gguf_put_arr_i32(struct gguf_writer *w, const char *key, const int32_t *v, uint64_t n);
void gguf_put_arr_u64(struct gguf_writer *w, const char *key, const uint64_t *v, uint64_t n);
void gguf_put_arr_f32(struct gguf_writer *w, const char *key, const float *v, uint64_t n);
void gguf_put_arr_str(struct gguf_writer *w, const char *key, const struct gguf_str *v, uint64_t n);
/* Copies a record of another file as it is. */
void gguf_put_kv(struct gguf_writer *w, const struct gguf_kv *kv);
/* Declares a tensor; its bytes follow from type and ne. All metadata and declarations come before the first data. */
void gguf_declare(struct gguf_writer *w, const char *name, uint32_t type, int n_dims, const uint64_t *ne);
/* The same for the last tensor, whose bytes start at a multiple of align (a power of two) from the start of the file,
 * behind zeros, and end the file without padding: the native form of tables that are not mapped (spec qwen38 2.3).
 * Nothing is put or declared behind it. */
void gguf_declare_tail(struct gguf_writer *w, const char *name, uint32_t type, int n_dims, const uint64_t *ne,
                       uint64_t align);
/* Appends bytes of the tensors, in declaration order; pieces may have any size but must not cross a tensor's end. */
void gguf_write(struct gguf_writer *w, const void *data, uint64_t n);
/* 0, or the first failure so far: nothing that is still given would be written. */
int gguf_writer_error(const struct gguf_writer *w, struct err *e);
/* Completes, fsyncs and renames, or removes what was written; frees w. */
int gguf_writer_finish(struct gguf_writer *w, struct err *e);
void gguf_writer_abort(struct gguf_writer *w);

#endif
