/* Damage that a file's structure does not show: NaN or Inf in a block scale or in a plain float (spec dialects 13.2
 * W8); and tensors of zeros, which a download that was not finished leaves. Tensors of up to 64 MiB are read whole, of
 * larger ones 64 rows: in runs, which a disk reads at once. Where a model is only described, what is larger than 1 MiB
 * is left alone, or everything. */
#include "dialect/dialect_internal.h"
#include <math.h>
#include <string.h>
#include "quant/quant.h"
#include "quant/quant_sound.h"

enum { WHOLE_MIB = 64, LOOK_BYTES = 1 << 20, RUNS = 8, ROWS_OF_RUN = 8, DECODED = 1024 };

/* Rows [from, from + n) of a tensor: a row with what is looked for, or -1. */
typedef int64_t look_at_rows(const struct gguf_tensor *t, const uint8_t *data, int64_t from, int64_t n);

static int64_t unsound_row(const struct gguf_tensor *t, const uint8_t *data, int64_t from, int64_t n)
{
    const int64_t k = (int64_t)t->ne[0], blocks = k / quant_type(t->type)->block;
    const size_t bytes = quant_row_bytes(t->type, k);
    const int64_t at = quant_first_unsound(t->type, data + (size_t)from * bytes, n * blocks);
    return at < 0 ? -1 : from + at / blocks;
}

static int64_t row_with_bits(const struct gguf_tensor *t, const uint8_t *data, int64_t from, int64_t n)
{
    const size_t bytes = quant_row_bytes(t->type, (int64_t)t->ne[0]);
    const uint8_t *p = data + (size_t)from * bytes;
    return p[0] || memcmp(p, p + 1, (size_t)n * bytes - 1) != 0 ? from : -1;
}

static bool is_left_alone(const struct canonical *c, const struct gguf_tensor *t)
{
    return c->headers_only || (c->look && t->bytes > LOOK_BYTES);
}

static int64_t look_at(const struct canonical *c, const struct source *s, look_at_rows *look)
{
    const struct gguf_tensor *t = s->t;
    const uint8_t *data = gguf_data(c->files[s->file]) + t->offset;
    const int64_t rows = (int64_t)(t->ne[1] * t->ne[2] * t->ne[3]);
    if (t->bytes <= (uint64_t)WHOLE_MIB << 20 || rows <= RUNS * ROWS_OF_RUN) return look(t, data, 0, rows);
    for (int i = 0; i < RUNS; i++) {
        const int64_t at = look(t, data, i * (rows - ROWS_OF_RUN) / (RUNS - 1), ROWS_OF_RUN);
        if (at >= 0) return at;
    }
    return -1;
}

int64_t dialect_scan(const struct canonical *c, const struct source *s)
{
    return is_left_alone(c, s->t) ? -1 : look_at(c, s, unsound_row);
}

bool dialect_is_void(const struct canonical *c, const struct source *s)
{
    const struct gguf_tensor *t = s->t;
    if (is_left_alone(c, t) || quant_type(t->type)->block == 1 || look_at(c, s, row_with_bits) >= 0) return false;
    return row_with_bits(t, gguf_data(c->files[s->file]) + t->offset, 0, (int64_t)(t->ne[1] * t->ne[2] * t->ne[3])) < 0;
}

/* Part of a row: a row may be long. */
static bool part_is_finite(const struct quant_type *q, const uint8_t *p, int64_t n)
{
    float v[DECODED];
    int64_t i = 0;
    q->decode(p, v, n);
    while (i < n && isfinite(v[i])) i++;
    return i == n;
}

bool dialect_values(const struct canonical *c, int layer, const char *stem, double *mean, double *largest)
{
    const struct source *s = dialect_find(c, layer, stem);
    if (!s || !s->bound) return false;
    const struct quant_type *q = quant_type(s->view.type);
    const int64_t n = s->view.ne[0] * s->view.ne[1] * s->view.ne[2] * s->view.ne[3];
    float v[DECODED];
    double sum = 0;
    *largest = -INFINITY;
    for (int64_t i = 0; i < n; i += DECODED) {
        const int64_t part = n - i < DECODED ? n - i : DECODED;
        q->decode(s->view.data + quant_row_bytes(s->view.type, i), v, part);
        for (int64_t k = 0; k < part; k++) sum += v[k], *largest = v[k] > *largest ? v[k] : *largest;
    }
    *mean = sum / (double)n;
    return true;
}

int64_t dialect_scan_values(const struct source *s)
{
    const struct quant_type *q = quant_type(s->view.type);
    const int64_t k = s->view.ne[0], rows = s->view.ne[1] * s->view.ne[2] * s->view.ne[3];
    const size_t bytes = quant_row_bytes(s->view.type, k);
    for (int64_t r = 0; r < rows; r++) {
        const uint8_t *row = s->view.data + (size_t)r * bytes;
        for (int64_t i = 0; i < k; i += DECODED)
            if (!part_is_finite(q, row + quant_row_bytes(s->view.type, i), k - i < DECODED ? k - i : DECODED)) return r;
    }
    return -1;
}
