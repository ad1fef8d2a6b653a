/* Parsing of safetensors headers. */
#include "safetensors.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/mem.h"

/* Larger headers are refused before they are parsed; published ones have a few MB. */
#define MAX_HEADER (100u << 20)

struct safetensors {
    struct file_map *map; /* NULL after safetensors_parse */
    json_t *header;       /* owns the names */
    struct st_tensor *tensors;
    size_t n;
};

static const struct {
    const char *name;
    int bytes;
} dtypes[ST_DTYPE_COUNT] = {
    [ST_BOOL] = {"BOOL", 1},       [ST_U8] = {"U8", 1},           [ST_I8] = {"I8", 1},   [ST_F8_E5M2] = {"F8_E5M2", 1},
    [ST_F8_E4M3] = {"F8_E4M3", 1}, [ST_F8_E8M0] = {"F8_E8M0", 1}, [ST_I16] = {"I16", 2}, [ST_U16] = {"U16", 2},
    [ST_F16] = {"F16", 2},         [ST_BF16] = {"BF16", 2},       [ST_I32] = {"I32", 4}, [ST_U32] = {"U32", 4},
    [ST_F32] = {"F32", 4},         [ST_F64] = {"F64", 8},         [ST_I64] = {"I64", 8}, [ST_U64] = {"U64", 8},
};

const char *st_dtype_name(enum st_dtype t)
{
    return dtypes[t].name;
}

/* What is being read, for messages. */
struct place {
    const char *file, *tensor;
    struct err *e;
};

static int bad(const struct place *at, const char *what)
{
    return err_set(at->e, ERR_FORMAT, "%s: tensor %s: %s", at->file, at->tensor, what);
}

static int read_dtype(const struct place *at, const json_t *v, struct st_tensor *t)
{
    const char *name = json_string_value(v);
    if (!name) return bad(at, "no dtype");
    for (int i = 0; i < ST_DTYPE_COUNT; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            t->dtype = (enum st_dtype)i;
            return 0;
        }
    return err_set(at->e, ERR_FORMAT, "%s: tensor %s: dtype %.32s is not known", at->file, at->tensor, name);
}

static int read_size(const json_t *v, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0) return -1;
    *out = (uint64_t)json_integer_value(v);
    return 0;
}

/* Shape and range; the range must be inside data_bytes and as long as dtype and shape say. */
static int read_extent(const struct place *at, const json_t *shape, const json_t *range, uint64_t data_bytes,
                       struct st_tensor *t)
{
    if (!json_is_array(shape)) return bad(at, "no shape");
    if (json_array_size(shape) > ST_MAX_DIMS) return bad(at, "too many dimensions");
    t->n_dims = (int)json_array_size(shape);
    uint64_t bytes = (uint64_t)dtypes[t->dtype].bytes, end;
    for (int i = 0; i < t->n_dims; i++) {
        if (read_size(json_array_get(shape, (size_t)i), &t->shape[i]))
            return bad(at, "a dimension is not a whole number");
        if (!u64_mul(bytes, t->shape[i], &bytes)) return bad(at, "its size overflows");
    }
    if (json_array_size(range) != 2 || read_size(json_array_get(range, 0), &t->begin) ||
        read_size(json_array_get(range, 1), &end))
        return bad(at, "data_offsets are not two whole numbers");
    if (t->begin > end || end > data_bytes)
        return err_set(at->e, ERR_FORMAT,
                       "%s: tensor %s: data [%" PRIu64 ", %" PRIu64 ") is outside the file's %" PRIu64 " bytes of data",
                       at->file, at->tensor, t->begin, end, data_bytes);
    t->bytes = end - t->begin;
    if (t->bytes != bytes)
        return err_set(at->e, ERR_FORMAT, "%s: tensor %s: %" PRIu64 " bytes of data, its shape needs %" PRIu64,
                       at->file, at->tensor, t->bytes, bytes);
    return 0;
}

static int by_begin(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes; /* empty tensors before the one that starts there too */
}

/* The sorted ranges must follow each other and end with the data. */
static int check_cover(const struct safetensors *s, const char *file, uint64_t data_bytes, struct err *e)
{
    uint64_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct st_tensor *t = &s->tensors[i];
        if (t->begin != at)
            return err_set(e, ERR_FORMAT, "%s: tensor %s: data starts at %" PRIu64 ", %s", file, t->name, t->begin,
                           t->begin < at ? "inside another tensor" : "after a gap");
        at += t->bytes;
    }
    if (at != data_bytes)
        return err_set(e, ERR_FORMAT, "%s: %" PRIu64 " bytes of data belong to no tensor", file, data_bytes - at);
    return 0;
}

static int read_tensors(struct safetensors *s, const char *file, const uint8_t *data, uint64_t data_bytes,
                        struct err *e)
{
    s->tensors = mem_try((json_object_size(s->header) + 1) * sizeof *s->tensors);
    if (!s->tensors) return err_set(e, ERR_MEMORY, "%s: not enough memory for its list of tensors", file);
    const char *name;
    json_t *v;
    json_object_foreach(s->header, name, v)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        const struct place at = {file, name, e};
        struct st_tensor *t = &s->tensors[s->n++];
        t->name = name;
        int rc = read_dtype(&at, json_object_get(v, "dtype"), t);
        if (!rc) rc = read_extent(&at, json_object_get(v, "shape"), json_object_get(v, "data_offsets"), data_bytes, t);
        if (rc) return rc;
        t->data = data + t->begin;
    }
    qsort(s->tensors, s->n, sizeof *s->tensors, by_begin);
    return check_cover(s, file, data_bytes, e);
}

int safetensors_parse(const uint8_t *data, uint64_t n, const char *name, struct safetensors **out, struct err *e)
{
    uint64_t header = 0;
    if (n < 8) return err_set(e, ERR_FORMAT, "%s: too short for a safetensors file", name);
    for (int i = 7; i >= 0; i--) header = header << 8 | data[i];
    if (header > n - 8 || header > MAX_HEADER)
        return err_set(e, ERR_FORMAT, "%s: not a safetensors file (header of %" PRIu64 " bytes)", name, header);

    struct safetensors *s = mem_alloc(sizeof *s);
    json_error_t je;
    s->header = json_loadb((const char *)data + 8, (size_t)header, JSON_REJECT_DUPLICATES, &je);
    int rc;
    if (!s->header)
        rc = err_set(e, ERR_FORMAT, "%s: header is not valid JSON: %s (byte %d)", name, je.text, je.position);
    else if (!json_is_object(s->header))
        rc = err_set(e, ERR_FORMAT, "%s: header is not a JSON object", name);
    else
        rc = read_tensors(s, name, data + 8 + header, n - 8 - header, e);
    if (rc) {
        safetensors_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

int safetensors_open(const char *path, struct safetensors **out, struct err *e)
{
    struct file_map *map;
    int rc = file_map_open(path, &map, e);
    if (rc) return rc;
    rc = safetensors_parse(file_map_data(map), file_map_size(map), path, out, e);
    if (rc)
        file_map_close(map);
    else
        (*out)->map = map;
    return rc;
}

void safetensors_close(struct safetensors *s)
{
    if (!s) return;
    json_decref(s->header);
    mem_free(s->tensors);
    if (s->map) file_map_close(s->map);
    mem_free(s);
}

size_t safetensors_count(const struct safetensors *s)
{
    return s->n;
}

const struct st_tensor *safetensors_at(const struct safetensors *s, size_t i)
{
    return &s->tensors[i];
}

int safetensors_intact(const struct safetensors *s, struct err *e)
{
    uint64_t offset;
    if (!s->map || !file_map_lost(s->map, &offset)) return 0;
    return err_set(e, ERR_IO, "%s: damaged: could not be read at offset %" PRIu64, file_map_path(s->map), offset);
}
