/* The file is written from front to back: records, then tensors in the order of their places, zeros between them. */
#include "synth_like.h"
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/program.h"
#include "base/str.h"
#include "common/work_progress.h"
#include "gguf/gguf.h"
#include "quant/quant.h"
#include "synth_blocks.h"

enum { BATCH_BYTES = 4 << 20 };

struct like {
    const struct synth_like *o;
    struct gguf *g;
    const struct synth_family *family; /* NULL: of no family that is known */
    struct file_writer *w;
    struct work_progress progress;
    uint64_t experts; /* ids of hash tables are below */
    uint8_t *batch;
};

/* ---- what values are like */

static void find_family(struct like *l)
{
    struct gguf_str arch;
    const struct gguf_kv *kv = gguf_kv_find(l->g, "general.architecture");
    if (!kv || gguf_string(kv, 0, &arch, NULL)) return;
    for (const struct synth_family *const *f = l->o->families; *f; f++)
        if (arch.n == strlen((*f)->arch) && memcmp(arch.p, (*f)->arch, (size_t)arch.n) == 0) l->family = *f;
}

/* Of the block with the fewest. */
static void find_experts(struct like *l)
{
    l->experts = UINT32_MAX;
    for (uint64_t i = 0; i < gguf_n_tensors(l->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(l->g, i);
        const bool router = t->name.n > 12 && memmem(t->name.p, (size_t)t->name.n, "ffn_gate_inp.", 13);
        if (router && t->ne[1] > 1 && t->ne[1] < l->experts) l->experts = t->ne[1];
    }
    if (l->experts == UINT32_MAX) l->experts = 1;
}

/* ---- rows */

static int put(struct like *l, const void *p, uint64_t n, struct err *e)
{
    return file_writer_put(l->w, p, (size_t)n, e);
}

static int zeros_until(struct like *l, uint64_t at, struct err *e)
{
    int rc = 0;
    memset(l->batch, 0, BATCH_BYTES);
    while (rc == 0 && file_writer_at(l->w) < at) {
        const uint64_t left = at - file_writer_at(l->w);
        rc = put(l, l->batch, left < BATCH_BYTES ? left : BATCH_BYTES, e);
    }
    return rc;
}

static void fill_ids(struct like *l, uint64_t *state, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const int32_t id = (int32_t)(synth_next(state) % l->experts);
        memcpy(l->batch + 4 * i, &id, 4);
    }
}

/* Rows that are longer than a batch are made in pieces of whole blocks: each piece is a row for the filler. */
static int random_tensor(struct like *l, const struct gguf_tensor *t, uint64_t seed, struct err *e)
{
    const struct quant_type *q = quant_type(t->type);
    struct str name = {0};
    struct synth_filler f;
    float mean, sigma;
    str_add(&name, t->name.p, (size_t)t->name.n);
    synth_spread_of(l->family ? l->family->spreads : NULL, str_c(&name), t->ne[0], &mean, &sigma);
    str_free(&name);
    uint64_t left = t->bytes / q->block_bytes, piece = BATCH_BYTES / q->block_bytes, row = 0;
    int rc = t->type == QT_I32 ? 0 : synth_filler_init(&f, t->type, (int64_t)(piece * q->block), mean, sigma, seed, e);
    for (; left && rc == 0; left -= piece, row++) {
        if (piece > left) piece = left;
        f.k = (int64_t)(piece * q->block);
        if (t->type == QT_I32)
            fill_ids(l, &seed, piece);
        else
            synth_filler_row(&f, (int64_t)row, l->batch);
        rc = put(l, l->batch, piece * q->block_bytes, e);
        work_progress_add(&l->progress, "random values", piece * q->block_bytes);
    }
    return rc;
}

static int by_offset(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a, *y = *(const struct gguf_tensor *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int write_tensors(struct like *l, struct err *e)
{
    const uint64_t n = gguf_n_tensors(l->g);
    const struct gguf_tensor **order = mem_try((size_t)(n + 1) * sizeof *order);
    if (!order) return err_set(e, ERR_MEMORY, "no memory for a list of tensors");
    int rc = 0;
    for (uint64_t i = 0; i < n; i++) order[i] = gguf_tensor_at(l->g, i);
    qsort(order, (size_t)n, sizeof *order, by_offset);
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        const struct gguf_tensor *t = order[i];
        rc = zeros_until(l, t->offset, e);
        if (rc == 0 && (synth_can_fill(t->type) || t->type == QT_I32))
            rc = random_tensor(l, t, synth_seed(l->o->seed, t->offset), e);
        else if (rc == 0)
            rc = zeros_until(l, t->offset + t->bytes, e);
    }
    /* The last tensor's padding, or whatever size one of an unknown type has. */
    if (rc == 0 && n && gguf_size(l->g) > file_writer_at(l->w)) rc = zeros_until(l, gguf_size(l->g), e);
    mem_free(order);
    return rc;
}

static int write_file(struct like *l, struct err *e)
{
    const uint64_t start = gguf_data_start(l->g), head = start < gguf_size(l->g) ? start : gguf_size(l->g);
    int rc = file_writer_open(l->o->out, &l->w, e);
    if (rc) return rc;
    rc = put(l, gguf_data(l->g), head, e);
    if (rc == 0 && !l->o->headers) rc = write_tensors(l, e);
    if (rc)
        file_writer_abort(l->w);
    else
        rc = file_writer_commit(l->w, e);
    return rc;
}

int synth_like(const struct synth_like *o, struct err *e)
{
    struct like l = {.o = o, .batch = mem_try(BATCH_BYTES)};
    if (!l.batch) return err_set(e, ERR_MEMORY, "too little memory is free");
    int rc = gguf_open_headers(o->path, &l.g, e);
    uint64_t bytes = 0;
    for (uint64_t i = 0; rc == 0 && i < gguf_n_tensors(l.g); i++) bytes += gguf_tensor_at(l.g, i)->bytes;
    work_progress_begin(&l.progress, o->headers ? 0 : bytes);
    if (rc == 0) {
        find_family(&l);
        find_experts(&l);
        rc = write_file(&l, e);
    }
    work_progress_end(&l.progress);
    if (rc == 0)
        program_say("ds4-gguf", "wrote %s, %s", o->out, o->headers ? "records only" : "records and random data");
    gguf_close(l.g);
    mem_free(l.batch);
    return rc;
}
