/* Conversion of Qwen3.8: which matrices of the source a tensor comes from, and what is done to them. */
#include <stdlib.h>
#include <string.h>
#include "convert_family.h"
#include "hf_qwen38.h"

static int config(const char *path, struct hf_folder *f, void *params, struct err *e)
{
    return hf_qwen38_config(path, f, params, e);
}

enum { MOST_PIECES = 65536 };

static struct convert_numbers numbers(const void *params)
{
    const struct qwen38_params *const p = params;
    return (struct convert_numbers){.tokens = p->V,
                                    .layers = qwen38_layers(p),
                                    .experts = p->NE,
                                    .sources = p->NE > MOST_PIECES ? p->NE : MOST_PIECES};
}

/* ---- what is done ---- */

static bool is_part(const struct layout_tensor *t, const char *name)
{
    const char *const dot = t->layer < 0 ? NULL : strchr(t->name + 4, '.');
    return dot && strcmp(dot + 1, name) == 0;
}

static struct source_edit edit_of(const struct qwen38_params *p, const struct layout_tensor *t)
{
    struct source_edit c = {.heads = p->Hv, .groups = p->Hk};
    if (is_part(t, "attn_qkv.weight") || is_part(t, "ssm_conv1d.weight"))
        c.first_row = 2 * p->Hk * p->Dl, c.rows_per_head = p->Dl;
    else if (is_part(t, "attn_gate.weight"))
        c.rows_per_head = p->Dl;
    else if (is_part(t, "ssm_alpha.weight") || is_part(t, "ssm_beta.weight"))
        c.rows_per_head = 1;
    else if (is_part(t, "ssm_a") || is_part(t, "ssm_dt.bias"))
        c.cols_per_head = 1;
    else if (is_part(t, "ssm_out.weight"))
        c.cols_per_head = p->Dl;
    c.minus_exp = is_part(t, "ssm_a");
    c.one_more = t->role == ROLE_VECTOR && strstr(t->name, "norm") && !is_part(t, "ssm_norm.weight");
    c.beside = is_part(t, "nextn.eh_proj.weight");
    return c;
}

/* ---- where from ---- */

static const struct st_tensor *need(struct hf_folder *f, const char *name, struct err *e)
{
    const struct st_tensor *const t = hf_qwen38_find(f, name);
    if (!t) err_set(e, ERR_MODEL, "tensor %s is missing", name);
    return t;
}

/* A whole matrix. A model whose head is its embedding has one tensor for both. */
static int bind_matrix(struct hf_folder *f, const char *name, int64_t rows, int64_t cols, struct source_matrix *m,
                       struct err *e)
{
    const struct st_tensor *t = hf_qwen38_find(f, name);
    if (!t && strcmp(name, "lm_head.weight") == 0) t = hf_qwen38_find(f, "model.embed_tokens.weight");
    return source_find(f, t ? t->name : name, rows, cols, false, m, e);
}

/* Experts lie behind each other; gate_up_proj has the gate's rows and then those of up in each. */
static int bind_experts(struct hf_folder *f, const struct qwen38_params *p, const struct layout_tensor *t,
                        struct source_matrix *list, struct err *e)
{
    const struct st_tensor *const s = need(f, t->source, e);
    const int64_t cols = (int64_t)layout_row(t), rows = (int64_t)t->ne[1];
    const bool down = is_part(t, "ffn_down_exps.weight"), up = is_part(t, "ffn_up_exps.weight");
    const int64_t pitch = down ? rows : 2 * rows;
    int rc = s ? 0 : ERR_MODEL;
    for (int64_t i = 0; i < p->NE && !rc; i++)
        rc = source_part(s, i * pitch + (up ? rows : 0), rows, p->NE * pitch, cols, &list[i], e);
    return rc;
}

/* Queries first, then the key. */
static int bind_indexer(struct hf_folder *f, const struct qwen38_params *p, const struct layout_tensor *t,
                        struct source_matrix *m, struct err *e)
{
    const struct st_tensor *const s = need(f, t->source, e);
    const int64_t queries = p->Hi * p->Di;
    if (!s) return ERR_MODEL;
    return source_part(s, is_part(t, "indexer.q_proj.weight") ? 0 : queries, (int64_t)t->ne[1], queries + p->Di, p->E,
                       m, e);
}

static int bind_table(struct hf_folder *f, const struct layout_tensor *t, struct source_matrix *list, struct err *e)
{
    int rc = 0;
    int64_t rows = 0;
    for (int i = 0; rows < (int64_t)t->ne[1] && i < MOST_PIECES && !rc; i++) {
        const struct st_tensor *const s = hf_qwen38_piece(f, i);
        if (!s) return err_set(e, ERR_MODEL, "tensor *.ngram_embedding.shard_%d is missing", i);
        rc = source_part(s, 0, (int64_t)s->shape[0], (int64_t)s->shape[0], (int64_t)t->ne[0], &list[i], e);
        rows += (int64_t)s->shape[0];
    }
    return rc;
}

static int bind(struct hf_folder *f, const void *params, const struct layout_tensor *t, struct source_matrix *list,
                struct source_edit *edit, struct err *e)
{
    const struct qwen38_params *const p = params;
    *edit = edit_of(p, t);
    if (t->role == ROLE_TABLE) return bind_table(f, t, list, e);
    if (t->role == ROLE_EXPERTS) return bind_experts(f, p, t, list, e);
    if (is_part(t, "indexer.q_proj.weight") || is_part(t, "indexer.k_proj.weight"))
        return bind_indexer(f, p, t, list, e);
    if (!edit->beside) return bind_matrix(f, t->source, (int64_t)t->ne[1], (int64_t)t->ne[0], list, e);
    const int rc = bind_matrix(f, "mtp.fc_embedding.weight", p->E, p->E, &list[0], e);
    return rc ? rc : bind_matrix(f, "mtp.fc_hidden.weight", p->E, p->E, &list[1], e);
}

const struct convert_family convert_qwen38 = {
    .model_type = "qwen4_exp",
    .arch = "qwen4exp",
    .pretokenizer = "qwen35",
    .layers = "model.layers.",
    .params_bytes = sizeof(struct qwen38_params),
    .pads = true,
    .config = config,
    .layout = qwen38_tensors,
    .metadata = qwen38_metadata,
    .numbers = numbers,
    .bind = bind,
};
