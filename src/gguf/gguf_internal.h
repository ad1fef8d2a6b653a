/* Shared by reader, values and writer. */
#ifndef GGUF_GGUF_INTERNAL_H
#define GGUF_GGUF_INTERNAL_H
#include "base/pile.h"
#include "gguf/gguf.h"

enum { GGUF_MAX_KEY = 65535, GGUF_MAX_DIMS = 4, GGUF_DEFAULT_ALIGN = 32 };

#define GGUF_ALIGN_KEY "general.alignment"

/* Bytes of one element; 0 for strings, arrays and numbers that are no type. */
unsigned gguf_type_bytes(uint32_t type);
const char *gguf_type_name(uint32_t type);

/* Little-endian unsigned number of n <= 8 bytes, at any address. */
uint64_t gguf_load(const uint8_t *p, unsigned n);

/* Name or key for a message: quoted, bytes that are not printable ASCII as \xNN, long ones cut. */
struct gguf_shown {
    char text[128];
};
struct gguf_shown gguf_show(const char *p, uint64_t n);

/* What a file without GGUF's magic is, and what to do, where its first bytes tell: a clause that begins with "it". */
enum { GGUF_WHAT_ELSE = 320 };
bool gguf_what_else(const uint8_t *data, uint64_t n, char what[GGUF_WHAT_ELSE]);
/* True if all n bytes are zero. */
bool gguf_zeros(const uint8_t *p, uint64_t n);

/* file_map_open of a model's file; what is none (a folder, an empty file) is told with what to give instead. */
int gguf_map_path(const char *path, struct file_map **out, struct err *e);

/* The part of a file that tensors lie in; bytes: up to the end of the file, which may be too few. */
struct gguf_data_part {
    const uint8_t *data;
    uint64_t bytes, align;
};
/* Replaces numbers of types that other programs use too by what they mean in this file: a type of quant (a reading), or
 * GGUF_NO_TYPE. tensors: struct gguf_tensor, measured, offsets from the start of the data. note: a
 * sentence on it, or "". */
void gguf_settle_types(const struct pile *tensors, const struct gguf_data_part *d, char note[160]);

/* A tensor has at most GGUF_MAX_DIMS dims. */
int gguf_dims_check(uint64_t n_dims, struct err *e);
/* Checks ne[0..n_dims) and (where the type is known) the row length; sets the rest of ne, and bytes. n_dims is good;
 * nothing of t but these and type is used. */
int gguf_tensor_measure(struct gguf_tensor *t, struct err *e);

/* An alignment must be a power of two. */
int gguf_align_check(uint64_t align, struct err *e);

#endif
