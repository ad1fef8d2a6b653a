/* Numbers of types that several programs use for different layouts (spec more-quants 5): which layout a file means is
 * told by how far its tensors are apart. The largest tensor of a number decides for all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "gguf/gguf_internal.h"
#include "quant/quant.h"

static const struct reading {
    uint32_t id;   /* number in the file */
    uint32_t type; /* what it is read as; 0: not at all */
    uint32_t block, bytes;
} readings[] = {
    {39, QT_MXFP4, 32, 17},     {40, QT_NVFP4, 64, 36},   {41, QT_Q1_0, 128, 18},     {42, QT_Q2_0, 64, 18},
    {42, QT_Q2_0_128, 128, 34}, {43, QT_MXFP8, 256, 264}, {43, QT_Q2_0_128, 128, 34}, {41, 0, 32, 30},
};
enum { N_READINGS = sizeof readings / sizeof *readings, FIRST_ID = 39, LAST_ID = 43, LAST_SURE = 41 };

/* ---- spans */

struct place {
    uint64_t offset;
    struct gguf_tensor *t;
};

static int by_offset(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Bytes from a tensor's start to the next one's, or to the end of the file. */
static uint64_t span(const struct place *p, uint64_t n, uint64_t i, uint64_t data_bytes)
{
    const uint64_t end = i + 1 < n ? p[i + 1].offset : data_bytes;
    return end > p[i].offset ? end - p[i].offset : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t values(const struct gguf_tensor *t)
{
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

/* ---- which reading */

static uint64_t size_of(const struct reading *r, const struct gguf_tensor *t)
{
    uint64_t bytes;
    return t->ne[0] % r->block == 0 && u64_mul(values(t) / r->block, r->bytes, &bytes) ? bytes : 0;
}

static const struct reading *fitting(uint32_t id, const struct gguf_tensor *t, uint64_t room, uint64_t align)
{
    for (int i = 0; i < N_READINGS; i++) {
        const uint64_t bytes = readings[i].id == id ? size_of(&readings[i], t) : 0;
        if (bytes && bytes <= room && room - bytes < align) return &readings[i];
    }
    return NULL;
}

/* The byte order of MXFP8 blocks by content: scales of a block lie close together, codes carry random signs. */
static bool scales_are_close(const uint8_t *blocks, int n, int at)
{
    enum { BLOCK = 264, SPREAD = 40 };
    int least = 255, most = 0;
    for (int b = 0; b < n; b++)
        for (int i = 0; i < 8; i++) {
            const int v = blocks[b * BLOCK + at + i];
            if (v == 255) return false;
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
    return most - least <= SPREAD;
}

static uint32_t mxfp8_order(const uint8_t *data, uint64_t bytes)
{
    const int n = bytes / 264 < 64 ? (int)(bytes / 264) : 64;
    const bool last = scales_are_close(data, n, 256), first = scales_are_close(data, n, 0);
    return last == first ? 0 : last ? QT_MXFP8 : QT_MXFP8_SF;
}

/* ---- all tensors of a number */

static void read_as(const struct place *p, uint64_t n, uint32_t id, const struct reading *r, uint32_t type)
{
    for (uint64_t i = 0; i < n; i++) {
        struct gguf_tensor *t = p[i].t;
        if (t->type != id) continue;
        t->bytes = r ? size_of(r, t) : 0;
        t->type = t->bytes ? type : GGUF_NO_TYPE;
    }
}

static void settle(const struct place *p, uint64_t n, uint32_t id, const struct gguf_data_part *d, char note[160])
{
    uint64_t most = 0, at = n;
    for (uint64_t i = 0; i < n; i++)
        if (p[i].t->type == id && values(p[i].t) > most) most = values(p[i].t), at = i;
    if (at == n) return;
    const struct gguf_tensor *t = p[at].t;
    const uint64_t room = span(p, n, at, d->bytes);
    const struct reading *r = fitting(id, t, room, d->align);
    /* What is ggml's own and short of room is a file that was cut; gaps behind such tensors are nobody's sign. */
    if (!r && (id <= LAST_SURE || (at + 1 == n && t->bytes > room))) return;
    uint32_t type = r ? r->type : 0;
    if (type == QT_MXFP8)
        type = p[at].offset < d->bytes ? mxfp8_order(d->data + p[at].offset, least(room, d->bytes - p[at].offset)) : 0;
    if (type == id) return;
    read_as(p, n, id, type ? r : NULL, type);
    if (type && !note[0])
        snprintf(note, 160, "type %u is %s here, by the size of its tensors", (unsigned)id, quant_type(type)->name);
}

void gguf_settle_types(const struct pile *tensors, const struct gguf_data_part *d, char note[160])
{
    bool any = false;
    note[0] = 0;
    for (uint64_t i = 0; i < tensors->n; i++) {
        const struct gguf_tensor *t = pile_at(tensors, i);
        any |= t->type >= FIRST_ID && t->type <= LAST_ID;
    }
    struct place *p = any ? mem_try((size_t)tensors->n * sizeof *p) : NULL;
    if (!p) return;
    for (uint64_t i = 0; i < tensors->n; i++) {
        struct gguf_tensor *t = pile_at(tensors, i);
        p[i] = (struct place){t->offset, t};
    }
    qsort(p, (size_t)tensors->n, sizeof *p, by_offset);
    for (uint32_t id = FIRST_ID; id <= LAST_ID; id++) settle(p, tensors->n, id, d, note);
    mem_free(p);
}
