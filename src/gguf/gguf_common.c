/* What reader and writer agree on: types, shapes, and how names look in messages. */
#include "gguf/gguf_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "quant/quant.h"

static const struct {
    const char *name;
    unsigned bytes;
} value_types[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = {"u8", 1},       [GGUF_I8] = {"i8", 1},   [GGUF_U16] = {"u16", 2}, [GGUF_I16] = {"i16", 2},
    [GGUF_U32] = {"u32", 4},     [GGUF_I32] = {"i32", 4}, [GGUF_F32] = {"f32", 4}, [GGUF_BOOL] = {"bool", 1},
    [GGUF_U64] = {"u64", 8},     [GGUF_I64] = {"i64", 8}, [GGUF_F64] = {"f64", 8}, [GGUF_STRING] = {"string", 0},
    [GGUF_ARRAY] = {"array", 0},
};

unsigned gguf_type_bytes(uint32_t type)
{
    return type < GGUF_TYPE_COUNT ? value_types[type].bytes : 0;
}

const char *gguf_type_name(uint32_t type)
{
    return type < GGUF_TYPE_COUNT ? value_types[type].name : "unknown";
}

uint64_t gguf_load(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

struct gguf_shown gguf_show(const char *p, uint64_t n)
{
    struct gguf_shown s = {"\""};
    size_t at = 1;
    uint64_t i = 0;
    for (; i < n && at < sizeof s.text - 9; i++) {
        const unsigned char c = (unsigned char)p[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            s.text[at++] = (char)c;
        else
            at += (size_t)snprintf(s.text + at, sizeof s.text - at, "\\x%02X", c);
    }
    strcpy(s.text + at, i < n ? "...\"" : "\"");
    return s;
}

static int check_row(struct gguf_tensor *t, uint64_t n_rows, struct err *e)
{
    const struct quant_type *q = quant_type(t->type);
    t->bytes = 0;
    if (!q) return 0;
    if (t->ne[0] % q->block)
        return err_set(e, ERR_FORMAT, "row length %" PRIu64 "; rows of type %s must be multiples of %u", t->ne[0],
                       q->name, q->block);
    uint64_t row;
    if (!u64_mul(t->ne[0] / q->block, q->block_bytes, &row) || !u64_mul(row, n_rows, &t->bytes))
        return err_set(e, ERR_FORMAT, "%" PRIu64 " rows of %" PRIu64 " values of type %s; the size must fit 64 bits",
                       n_rows, t->ne[0], q->name);
    return 0;
}

int gguf_dims_check(uint64_t n_dims, struct err *e)
{
    if (n_dims <= GGUF_MAX_DIMS) return 0;
    return err_set(e, ERR_FORMAT, "n_dims = %" PRIu64 "; 0 to %d are allowed", n_dims, GGUF_MAX_DIMS);
}

int gguf_tensor_measure(struct gguf_tensor *t, struct err *e)
{
    uint64_t n = 1;
    for (int d = 0; d < t->n_dims; d++) {
        if (!t->ne[d] || t->ne[d] > INT64_MAX)
            return err_set(e, ERR_FORMAT, "dims[%d] = %" PRId64 "; it must be at least 1", d, (int64_t)t->ne[d]);
        if (!u64_mul(n, t->ne[d], &n) || n > INT64_MAX)
            return err_set(e, ERR_FORMAT, "the product of its dims passes 2^63 at dims[%d] = %" PRIu64, d, t->ne[d]);
    }
    for (int d = t->n_dims; d < GGUF_MAX_DIMS; d++) t->ne[d] = 1;
    return check_row(t, n / t->ne[0], e);
}

int gguf_align_check(uint64_t align, struct err *e)
{
    if (align && !(align & (align - 1))) return 0;
    return err_set(e, ERR_FORMAT, "alignment %" PRIu64 "; it must be a power of two", align);
}
