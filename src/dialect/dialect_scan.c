/* Damage that a file's structure does not show: NaN or Inf in a block scale or in a plain float (spec dialects 13.2
 * W8). Tensors of up to 64 MiB are read whole, of larger ones 64 rows: in runs, which a disk reads at once. Where a
 * model is only described, what is larger than 1 MiB is left alone, or everything. */
#include "dialect/dialect_internal.h"
#include <math.h>
#include <string.h>
#include "quant/quant.h"

enum { WHOLE_MIB = 64, LOOK_BYTES = 1 << 20, RUNS = 8, ROWS_OF_RUN = 8, DECODED = 1024 };

/* Where the F16 scales of a block lie (spec gguf-and-quants 2). */
static const struct scales {
    uint32_t type;
    int n, at[2];
} scales[] = {
    {QT_Q4_0, 1, {0}},    {QT_Q4_1, 2, {0, 2}},   {QT_Q5_0, 1, {0}},   {QT_Q5_1, 2, {0, 2}},  {QT_Q8_0, 1, {0}},
    {QT_Q8_1, 2, {0, 2}}, {QT_Q2_K, 2, {80, 82}}, {QT_Q3_K, 1, {108}}, {QT_Q4_K, 2, {0, 2}},  {QT_Q5_K, 2, {0, 2}},
    {QT_Q6_K, 1, {208}},  {QT_IQ2_XXS, 1, {0}},   {QT_IQ2_XS, 1, {0}}, {QT_IQ2_S, 1, {0}},    {QT_IQ3_XXS, 1, {0}},
    {QT_IQ3_S, 1, {0}},   {QT_IQ1_S, 1, {0}},     {QT_IQ4_NL, 1, {0}}, {QT_IQ4_XS, 1, {0}},   {QT_TQ1_0, 1, {52}},
    {QT_TQ2_0, 1, {64}},  {QT_Q1_0, 1, {0}},      {QT_Q2_0, 1, {0}},   {QT_Q2_0_128, 1, {0}},
};

static bool f32_are_finite(const uint8_t *p, int64_t n)
{
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t v;
        memcpy(&v, p + 4 * i, sizeof v);
        bad |= (v & 0x7F800000u) == 0x7F800000u;
    }
    return !bad;
}

/* 16-bit numbers, `stride` bytes apart, with the exponent bits of mask. */
static bool halves_are_finite(const uint8_t *p, int64_t n, size_t stride, uint16_t mask)
{
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint16_t v;
        memcpy(&v, p + (size_t)i * stride, sizeof v);
        bad |= (v & mask) == mask;
    }
    return !bad;
}

static bool e8m0_are_finite(const uint8_t *p, int64_t n, size_t stride)
{
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) bad |= p[(size_t)i * stride] == 0xFF;
    return !bad;
}

/* Blocks whose scales are no plain F16: looked at through their values. */
static bool blocks_are_finite(const struct quant_type *q, const uint8_t *p, int64_t n)
{
    float v[256];
    for (int64_t b = 0; b < n; b++, p += q->block_bytes) {
        q->decode(p, v, q->block);
        for (int i = 0; i < q->block; i++)
            if (!isfinite(v[i])) return false;
    }
    return true;
}

static bool row_is_finite(uint32_t type, const uint8_t *p, int64_t k)
{
    const struct quant_type *q = quant_type(type);
    const int64_t blocks = k / q->block;
    if (type == QT_F32) return f32_are_finite(p, k);
    if (type == QT_F16) return halves_are_finite(p, k, 2, 0x7C00);
    if (type == QT_BF16) return halves_are_finite(p, k, 2, 0x7F80);
    if (type == QT_MXFP4) return e8m0_are_finite(p, blocks, q->block_bytes);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        for (int j = 0; scales[i].type == type && j < scales[i].n; j++)
            if (!halves_are_finite(p + scales[i].at[j], blocks, q->block_bytes, 0x7C00)) return false;
    if (type == QT_IQ1_M || type == QT_MXFP8 || type == QT_MXFP8_SF || type == QT_Q8_K)
        return blocks_are_finite(q, p, blocks);
    return true;
}

static int64_t scan_rows(const struct source *s, const uint8_t *data, int64_t from, int64_t n)
{
    const int64_t k = (int64_t)s->t->ne[0];
    const size_t bytes = quant_row_bytes(s->t->type, k);
    for (int64_t r = from; r < from + n; r++)
        if (!row_is_finite(s->t->type, data + (size_t)r * bytes, k)) return r;
    return -1;
}

int64_t dialect_scan(const struct canonical *c, const struct source *s)
{
    const struct gguf_tensor *t = s->t;
    const uint8_t *data = gguf_data(c->files[s->file]) + t->offset;
    const int64_t rows = (int64_t)(t->ne[1] * t->ne[2] * t->ne[3]);
    if (c->headers_only || (c->look && t->bytes > LOOK_BYTES)) return -1;
    if (t->bytes <= (uint64_t)WHOLE_MIB << 20 || rows <= RUNS * ROWS_OF_RUN) return scan_rows(s, data, 0, rows);
    for (int i = 0; i < RUNS; i++) {
        const int64_t at = scan_rows(s, data, i * (rows - ROWS_OF_RUN) / (RUNS - 1), ROWS_OF_RUN);
        if (at >= 0) return at;
    }
    return -1;
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
