/* Binding and decoding of source tensors. */
#include "source_rows.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "quant/quant.h"

static uint64_t load(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Shapes are compared without ones: a vector may be stored as one row. */
static bool has_shape(const struct st_tensor *t, int64_t rows, int64_t cols)
{
    const uint64_t want[2] = {(uint64_t)rows, (uint64_t)cols};
    int w = 0;
    for (int at = 0; at <= t->n_dims; at++) {
        while (w < 2 && want[w] == 1) w++;
        if (at == t->n_dims) break;
        if (t->shape[at] == 1) continue;
        if (w == 2 || t->shape[at] != want[w++]) return false;
    }
    return w == 2;
}

static int wrong_shape(const struct st_tensor *t, int64_t rows, int64_t cols, struct err *e)
{
    struct str s = {0};
    for (int i = 0; i < t->n_dims; i++) str_printf(&s, "%s%" PRIu64, i ? ", " : "", t->shape[i]);
    err_set(e, ERR_MODEL, "tensor %s: shape [%s], expected [%" PRId64 ", %" PRId64 "]", t->name, str_c(&s), rows, cols);
    str_free(&s);
    return ERR_MODEL;
}

/* "x.weight" -> "x.scale". */
static const struct st_tensor *find_scale(struct hf_folder *f, const char *name, struct str *scale_name)
{
    const char *end = strstr(name, ".weight");
    str_add(scale_name, name, end ? (size_t)(end - name) : strlen(name));
    str_puts(scale_name, ".scale");
    return hf_folder_find(f, str_c(scale_name));
}

static int bind_scale(struct hf_folder *f, struct source_matrix *m, struct err *e)
{
    struct str name = {0};
    const struct st_tensor *s = find_scale(f, m->t->name, &name);
    int rc = 0;
    if (!s)
        rc = err_set(e, ERR_MODEL, "tensor %s is %s and needs its scales, but %s is missing", m->t->name,
                     st_dtype_name(m->t->dtype), str_c(&name));
    else if (s->dtype != ST_F8_E8M0)
        rc =
            err_set(e, ERR_MODEL, "tensor %s: scales of type %s cannot be converted", s->name, st_dtype_name(s->dtype));
    else if (m->kind == SOURCE_FP4) {
        if (!has_shape(s, m->rows, m->cols / 32)) rc = wrong_shape(s, m->rows, m->cols / 32, e);
    } else {
        m->tile = 128;
        if (!has_shape(s, ceil_div(m->rows, 128), ceil_div(m->cols, 128))) m->tile = 32;
        if (m->tile == 32 && !has_shape(s, ceil_div(m->rows, 32), ceil_div(m->cols, 32)))
            rc = wrong_shape(s, ceil_div(m->rows, 128), ceil_div(m->cols, 128), e);
    }
    if (!rc) m->scale = s->data;
    str_free(&name);
    return rc;
}

int source_find(struct hf_folder *f, const char *name, int64_t rows, int64_t cols, bool want_ids,
                struct source_matrix *m, struct err *e)
{
    const struct st_tensor *t = hf_folder_find(f, name);
    if (!t) return err_set(e, ERR_MODEL, "tensor %s is missing", name);
    *m = (struct source_matrix){.t = t, .rows = rows, .cols = cols};
    const bool ids = t->dtype == ST_I64 || t->dtype == ST_I32;
    const bool numbers =
        t->dtype == ST_F32 || t->dtype == ST_F16 || t->dtype == ST_BF16 || t->dtype == ST_F8_E4M3 || t->dtype == ST_I8;
    if (want_ids ? !ids : !numbers)
        return err_set(e, ERR_MODEL, "tensor %s: type %s cannot be converted", name, st_dtype_name(t->dtype));
    if (t->dtype == ST_F8_E4M3) m->kind = SOURCE_FP8;
    if (t->dtype == ST_I8) m->kind = SOURCE_FP4;
    if (m->kind == SOURCE_FP4 && cols % 32)
        return err_set(e, ERR_MODEL, "tensor %s: rows of %" PRId64 " FP4 values are not whole blocks of 32", name,
                       cols);
    const int64_t stored = m->kind == SOURCE_FP4 ? cols / 2 : cols;
    if (!has_shape(t, rows, stored)) return wrong_shape(t, rows, stored, e);
    return m->kind == SOURCE_PLAIN ? 0 : bind_scale(f, m, e);
}

int source_part(const struct st_tensor *t, int64_t first, int64_t rows, int64_t all_rows, int64_t cols,
                struct source_matrix *m, struct err *e)
{
    uint64_t values = 1;
    *m = (struct source_matrix){.t = t, .rows = rows, .cols = cols, .first = first};
    if (t->dtype != ST_F32 && t->dtype != ST_F16 && t->dtype != ST_BF16)
        return err_set(e, ERR_MODEL, "tensor %s: type %s cannot be converted", t->name, st_dtype_name(t->dtype));
    for (int i = 0; i < t->n_dims; i++) values *= t->shape[i];
    if (t->n_dims == 0 || t->shape[t->n_dims - 1] != (uint64_t)cols || values != (uint64_t)all_rows * (uint64_t)cols)
        return wrong_shape(t, all_rows, cols, e);
    return 0;
}

static uint64_t row_bytes(const struct source_matrix *m)
{
    uint64_t values = 1;
    for (int i = 0; i < m->t->n_dims; i++) values *= m->t->shape[i];
    const uint64_t stored = (uint64_t)m->cols / (m->kind == SOURCE_FP4 ? 2 : 1);
    return m->t->bytes / (values / stored);
}

const uint8_t *source_row_data(const struct source_matrix *m, int64_t row)
{
    return m->t->data + row_bytes(m) * (uint64_t)(m->first + row);
}

static void plain_row(const struct source_matrix *m, int64_t row, float *out)
{
    const uint8_t *p = source_row_data(m, row);
    switch (m->t->dtype) {
    case ST_F16:
        for (int64_t i = 0; i < m->cols; i++) out[i] = f16_to_f32((uint16_t)load(p + 2 * i, 2));
        break;
    case ST_BF16:
        for (int64_t i = 0; i < m->cols; i++) out[i] = bf16_to_f32((uint16_t)load(p + 2 * i, 2));
        break;
    default:
        memcpy(out, p, (size_t)m->cols * sizeof *out);
    }
}

/* Scale code 255 stands for "not a number". */
static float scale_value(uint8_t code)
{
    return code == 255 ? NAN : e8m0_to_f32(code);
}

static void fp8_row(const struct source_matrix *m, int64_t row, float *out)
{
    const uint8_t *p = source_row_data(m, row);
    const uint8_t *scale = m->scale + row / m->tile * ceil_div(m->cols, m->tile);
    for (int64_t i = 0; i < m->cols; i++) out[i] = e4m3_to_f32(p[i]) * scale_value(scale[i / m->tile]);
}

static void fp4_row(const struct source_matrix *m, int64_t row, float *out)
{
    const uint8_t *p = source_row_data(m, row), *scale = m->scale + row * (m->cols / 32);
    for (int64_t i = 0; i < m->cols; i++)
        out[i] = e2m1_to_f32(p[i / 2] >> (i % 2 ? 4 : 0) & 15) * scale_value(scale[i / 32]);
}

static int bad_value(const struct source_matrix *m, int64_t row, struct err *e)
{
    return err_set(e, ERR_MODEL, "tensor %s: row %" PRId64 " holds a value that is not finite", m->t->name, row);
}

int source_row(const struct source_matrix *m, int64_t row, float *out, struct err *e)
{
    switch (m->kind) {
    case SOURCE_PLAIN:
        plain_row(m, row, out);
        break;
    case SOURCE_FP8:
        fp8_row(m, row, out);
        break;
    case SOURCE_FP4:
        fp4_row(m, row, out);
        break;
    }
    for (int64_t i = 0; i < m->cols; i++)
        if (!isfinite(out[i])) return bad_value(m, row, e);
    return 0;
}

/* Source bytes hold neighbours (2j, 2j+1), MXFP4 bytes the values j and j+16 of a block. */
int source_row_mxfp4(const struct source_matrix *m, int64_t row, uint8_t *out, struct err *e)
{
    const uint8_t *p = source_row_data(m, row), *scale = m->scale + row * (m->cols / 32);
    for (int64_t b = 0; b < m->cols / 32; b++, p += 16, out += 17) {
        if (scale[b] == 255) return bad_value(m, row, e);
        out[0] = scale[b];
        for (int j = 0; j < 16; j++) {
            const int shift = j % 2 ? 4 : 0;
            out[1 + j] = (uint8_t)((p[j / 2] >> shift & 15) | (p[j / 2 + 8] >> shift & 15) << 4);
        }
    }
    return 0;
}

int source_row_ids(const struct source_matrix *m, int64_t row, int64_t limit, int32_t *out, struct err *e)
{
    const uint8_t *p = source_row_data(m, row);
    for (int64_t i = 0; i < m->cols; i++) {
        const int64_t id = m->t->dtype == ST_I64 ? (int64_t)load(p + 8 * i, 8) : (int32_t)load(p + 4 * i, 4);
        if (id < 0 || id >= limit)
            return err_set(e, ERR_MODEL, "tensor %s: row %" PRId64 " names expert %" PRId64 ", there are %" PRId64,
                           m->t->name, row, id, limit);
        out[i] = (int32_t)id;
    }
    return 0;
}

uint32_t source_exact_type(const struct source_matrix *m)
{
    switch (m->kind) {
    case SOURCE_FP4:
        return QT_MXFP4;
    case SOURCE_FP8:
        return QT_BF16; /* four significant bits times a power of two */
    case SOURCE_PLAIN:
        break;
    }
    switch (m->t->dtype) {
    case ST_F16:
        return QT_F16;
    case ST_BF16:
        return QT_BF16;
    case ST_I64:
    case ST_I32:
        return QT_I32;
    default:
        return QT_F32;
    }
}
