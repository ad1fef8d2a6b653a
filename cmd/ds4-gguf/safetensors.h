/* safetensors files: u64 length of a JSON header, the header {name: {dtype, shape, data_offsets}}, then the data (spec
 * gguf-and-quants 2.12). Strict: known dtypes, sizes that agree with shapes, ranges that fill the data without gap or
 * overlap. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum st_dtype {
    ST_BOOL,
    ST_U8,
    ST_I8,
    ST_F8_E5M2,
    ST_F8_E4M3,
    ST_F8_E8M0,
    ST_I16,
    ST_U16,
    ST_F16,
    ST_BF16,
    ST_I32,
    ST_U32,
    ST_F32,
    ST_F64,
    ST_I64,
    ST_U64,
    ST_DTYPE_COUNT
};
enum { ST_MAX_DIMS = 8 };

struct st_tensor {
    const char *name; /* zero-terminated; lives as long as the file */
    enum st_dtype dtype;
    int n_dims;
    uint64_t shape[ST_MAX_DIMS]; /* slowest first, as in the file */
    uint64_t begin, bytes;       /* within the data */
    const uint8_t *data;         /* not aligned */
};

struct safetensors;

/* Maps and parses. On error nothing is left open and e names file, tensor and what is wrong with it. */
int safetensors_open(const char *path, struct safetensors **out, struct err *e);
/* The same for n bytes in memory that stay valid; name is used in messages. */
int safetensors_parse(const uint8_t *data, uint64_t n, const char *name, struct safetensors **out, struct err *e);
void safetensors_close(struct safetensors *s);

size_t safetensors_count(const struct safetensors *s);
const struct st_tensor *safetensors_at(const struct safetensors *s, size_t i); /* in the order of the data */
/* ERR_IO if a page of the file was lost while it was read. */
int safetensors_intact(const struct safetensors *s, struct err *e);

const char *st_dtype_name(enum st_dtype t);

#endif
