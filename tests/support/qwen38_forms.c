/* A form is a list of pieces: a tensor of the source, or several joined in their rows. */
#include "qwen38_forms.h"
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

enum { MOST = 400 };

struct piece {
    char name[80];
    const struct gguf_tensor *part[3];
    int n;
};

struct form {
    struct gguf *source;
    struct piece piece[MOST];
    int n;
};

static struct piece *add(struct form *f, const struct gguf_tensor *t)
{
    struct piece *p = &f->piece[f->n++];
    snprintf(p->name, sizeof p->name, "%.*s", (int)t->name.n, t->name.p);
    p->part[0] = t, p->n = 1;
    return p;
}

static const struct gguf_tensor *tensor_at(const struct form *f, int block, const char *stem)
{
    char name[80];
    snprintf(name, sizeof name, "blk.%d.%s.weight", block, stem);
    return gguf_tensor_find(f->source, name, strlen(name));
}

static uint64_t rows_of(const struct piece *p)
{
    uint64_t rows = 0;
    for (int i = 0; i < p->n; i++) rows += p->part[i]->ne[1];
    return rows;
}

static void write_piece(struct gguf_writer *w, const struct form *f, const struct piece *p)
{
    for (uint64_t k = 0; k < p->part[0]->ne[2]; k++)
        for (int i = 0; i < p->n; i++) {
            const struct gguf_tensor *t = p->part[i];
            const uint64_t bytes = quant_row_bytes(t->type, (int64_t)t->ne[0]) * t->ne[1];
            gguf_write(w, gguf_data(f->source) + t->offset + k * bytes, bytes);
        }
}

static bool has_key(const struct gguf_kv *kv, const char *key)
{
    return kv->key.n == strlen(key) && !memcmp(kv->key.p, key, kv->key.n);
}

/* counted: blocks that the file says it has; 0: as the source. */
static int store(const struct form *f, const char *to, uint32_t counted, struct err *e)
{
    struct gguf_writer *w = NULL;
    const int rc = gguf_writer_open(to, &w, e);
    if (rc) return rc;
    for (uint64_t i = 0; i < gguf_n_kv(f->source); i++) {
        const struct gguf_kv *kv = gguf_kv_at(f->source, i);
        if (counted && has_key(kv, "qwen4exp.nextn_predict_layers")) continue;
        if (counted && has_key(kv, "qwen4exp.block_count"))
            gguf_put_u32(w, "qwen4exp.block_count", counted);
        else
            gguf_put_kv(w, kv);
    }
    for (int i = 0; i < f->n; i++) {
        const struct piece *p = &f->piece[i];
        const struct gguf_tensor *t = p->part[0];
        gguf_declare(w, p->name, t->type, t->n_dims, (uint64_t[]){t->ne[0], t->n_dims > 1 ? rows_of(p) : 1, t->ne[2]});
    }
    for (int i = 0; i < f->n; i++) write_piece(w, f, &f->piece[i]);
    return gguf_writer_finish(w, e);
}

static int blocks_of(const struct form *f)
{
    int n = 0;
    while (tensor_at(f, n, "hc_attn_norm")) n++;
    return n;
}

static int finish(struct form *f, const char *to, uint32_t counted, struct err *e)
{
    const int rc = store(f, to, counted, e);
    gguf_close(f->source);
    mem_free(f);
    return rc;
}

static struct form *begin(const char *from, struct err *e)
{
    struct form *f = mem_alloc(sizeof *f);
    if (gguf_open(from, &f->source, e) == 0) return f;
    mem_free(f);
    return NULL;
}

/* True if the tensor became part of another one. */
static bool join(struct form *f, const struct gguf_tensor *t)
{
    static const struct {
        const char *first, *other[2], *name;
    } joins[] = {{"attn_q.weight", {"attn_k", "attn_v"}, "attn_qkv"},
                 {"ffn_gate_exps.weight", {"ffn_up_exps"}, "ffn_gate_up_exps"}};
    int block, at = 0;
    if (sscanf(t->name.p, "blk.%d.%n", &block, &at) != 1) return false;
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(joins[i].first);
        if (t->name.n - (uint64_t)at == n && !memcmp(t->name.p + at, joins[i].first, n)) {
            struct piece *p = add(f, t);
            for (int k = 0; k < 2 && joins[i].other[k]; k++) p->part[p->n++] = tensor_at(f, block, joins[i].other[k]);
            snprintf(p->name, sizeof p->name, "blk.%d.%s.weight", block, joins[i].name);
            return true;
        }
        for (int k = 0; k < 2 && joins[i].other[k]; k++)
            if (t == tensor_at(f, block, joins[i].other[k])) return true;
    }
    return false;
}

int qwen38_write_fused(const char *from, const char *to, struct err *e)
{
    struct form *f = begin(from, e);
    for (uint64_t i = 0; f && i < gguf_n_tensors(f->source); i++)
        if (!join(f, gguf_tensor_at(f->source, i))) add(f, gguf_tensor_at(f->source, i));
    return f ? finish(f, to, 0, e) : e->code;
}

int qwen38_write_part(const char *from, const char *to, enum qwen38_part part, struct err *e)
{
    struct form *f = begin(from, e);
    if (!f) return e->code;
    const int draft = blocks_of(f) - 1;
    for (uint64_t i = 0; i < gguf_n_tensors(f->source); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(f->source, i);
        int block = -1;
        const bool of_draft = sscanf(t->name.p, "blk.%d.", &block) == 1 && block == draft;
        const bool around = !memcmp(t->name.p, "token_embd", 10) || !memcmp(t->name.p, "output.", 7);
        if (part <= PART_STRIPPED ? !of_draft : of_draft || (part == PART_DRAFT_COPY && around)) {
            struct piece *p = add(f, t);
            const char *mixer = strstr(p->name, ".nextn.hc_head_");
            char name[80];
            if (part != PART_DRAFT_COPY || !mixer) continue;
            snprintf(name, sizeof name, "output_hc_%s", mixer + strlen(".nextn.hc_head_"));
            memcpy(p->name, name, sizeof name);
        }
    }
    return finish(f, to, part == PART_TRUNK ? (uint32_t)draft : 0, e);
}
