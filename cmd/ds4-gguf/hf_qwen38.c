/* Hyper-parameters from config.json and from the whole numbers among the tensors. What the engine would refuse in the
 * finished file is refused here, before the work. */
#include "hf_qwen38.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hf_json.h"

/* ---- names ---- */

static const struct st_tensor *find_either(struct hf_folder *f, const char *name)
{
    char other[160];
    const struct st_tensor *t = hf_folder_find(f, name);
    const size_t n = strlen(name), tail = strlen(".weight");
    if (t) return t;
    if (n > tail && strcmp(name + n - tail, ".weight") == 0)
        snprintf(other, sizeof other, "%.*s", (int)(n - tail), name);
    else
        snprintf(other, sizeof other, "%s.weight", name);
    return hf_folder_find(f, other);
}

const struct st_tensor *hf_qwen38_find(struct hf_folder *f, const char *name)
{
    char other[160];
    const struct st_tensor *const t = find_either(f, name);
    if (t || strncmp(name, "model.", 6)) return t;
    snprintf(other, sizeof other, "model.language_model.%s", name + 6);
    return find_either(f, other);
}

/* The one tensor whose name ends so. */
static const struct st_tensor *find_end(struct hf_folder *f, const char *end)
{
    const struct st_tensor *t;
    for (size_t i = 0; (t = hf_folder_at(f, i)); i++) {
        const size_t n = strlen(t->name), m = strlen(end);
        if (n >= m && strcmp(t->name + n - m, end) == 0) return hf_folder_find(f, t->name);
    }
    return NULL;
}

const struct st_tensor *hf_qwen38_piece(struct hf_folder *f, int i)
{
    static const char part[] = ".ngram_embedding.shard_";
    const struct st_tensor *t;
    for (size_t k = 0; (t = hf_folder_at(f, k)); k++) {
        const char *const at = strstr(t->name, part);
        if (!at) continue;
        char *end;
        const long number = strtol(at + strlen(part), &end, 10);
        if (number == i && end > at + strlen(part) && (!*end || *end == '.')) return hf_folder_find(f, t->name);
    }
    return NULL;
}

/* ---- tensors of whole numbers ---- */

static int64_t read_list(struct hf_folder *f, const char *end, uint64_t *v, int most, struct err *e)
{
    const struct st_tensor *const t = find_end(f, end);
    if (!t) {
        err_set(e, ERR_MODEL, "tensor *%s is missing", end);
        return PARAM_UNSET;
    }
    if (t->dtype != ST_I64 || t->bytes / 8 > (uint64_t)most || t->bytes == 0) {
        err_set(e, ERR_MODEL, "tensor %s: %" PRIu64 " bytes of %s; 1 to %d I64 are expected", t->name, t->bytes,
                st_dtype_name(t->dtype), most);
        return PARAM_UNSET;
    }
    for (uint64_t i = 0; i < t->bytes / 8; i++) {
        v[i] = 0;
        for (int b = 7; b >= 0; b--) v[i] = v[i] << 8 | t->data[i * 8 + (uint64_t)b];
    }
    return (int64_t)(t->bytes / 8);
}

static void read_table(struct hf_folder *f, int64_t n_pieces, struct qwen38_params *p, struct err *e)
{
    p->n_mul = read_list(f, "ple_embedding.layer_multipliers", p->mul, QWEN38_MAX_NGRAM, e);
    p->n_off = read_list(f, "ple_embedding.ngram_heads_offsets", p->off, QWEN38_MAX_HEADS, e);
    p->n_voc = read_list(f, "ple_embedding.ngram_heads_vocab_sizes", p->voc, QWEN38_MAX_HEADS, e);
    const struct st_tensor *const first = hf_qwen38_piece(f, 0);
    for (int i = 0; i < n_pieces && !(e && e->code); i++) {
        const struct st_tensor *const t = hf_qwen38_piece(f, i);
        if (!t)
            err_set(e, ERR_MODEL, "tensor *.ngram_embedding.shard_%d is missing; there are to be %" PRId64, i,
                    n_pieces);
        else if (t->n_dims != 2 || t->shape[0] != first->shape[0] || t->dtype != first->dtype)
            err_set(e, ERR_MODEL, "tensor %s: other rows than shard 0 has", t->name);
    }
    if (first && first->n_dims == 2) p->row_count = (int64_t)first->shape[0] * n_pieces;
}

/* ---- config.json ---- */

static void read_shape(struct hf_reader *r, struct qwen38_params *p)
{
    const int64_t max = 1 << 24;
    p->V = hf_int(r, "vocab_size", 1, max);
    p->E = hf_int(r, "hidden_size", 1, max);
    p->Lall = hf_int(r, "num_hidden_layers", 1, QWEN38_MAX_LAYERS - 1);
    p->nextn = hf_int_or(r, "mtp_num_hidden_layers", 0, 1, 0);
    p->H = hf_int(r, "num_attention_heads", 1, 65536);
    p->Hkv = hf_int(r, "num_key_value_heads", 1, 65536);
    p->D = hf_int(r, "head_dim", 1, 65536);
    p->context = hf_int(r, "max_position_embeddings", 1, max);
    p->eps = (float)hf_float(r, "rms_norm_eps", 0, 0.1);
    p->Kc = hf_int(r, "linear_conv_kernel_dim", 1, 64);
    p->Dl = hf_int(r, "linear_key_head_dim", 1, 65536);
    p->Hk = hf_int(r, "linear_num_key_heads", 1, 65536);
    p->Hv = hf_int(r, "linear_num_value_heads", 1, 65536);
    p->NE = hf_int(r, "num_experts", 1, 65536);
    p->K = hf_int(r, "num_experts_per_tok", 1, 65536);
    p->F = hf_int(r, "moe_intermediate_size", 1, max);
    p->Fs = hf_int(r, "shared_expert_intermediate_size", 1, max);
    p->hc = hf_int(r, "hc_count", 2, 64);
    p->rho = hf_int(r, "hc_lowrank", 1, max);
    p->Hi = hf_int(r, "indexer_n_heads", 1, 65536);
    p->Di = hf_int(r, "indexer_head_dim", 1, 65536);
    p->B = hf_int(r, "indexer_budget", 1, max);
    p->ratios[0] = (int32_t)hf_int(r, "indexer_compress_ratio", 1, 65536);
    p->I = hf_int_or(r, "full_attention_interval", 1, 1024, 4);
    if (hf_int(r, "linear_value_head_dim", 1, 65536) != p->Dl)
        err_set(r->e, ERR_MODEL,
                "%s: \"linear_value_head_dim\" is not \"linear_key_head_dim\"; that cannot be converted", r->path);
    if (!hf_bool_or(r, "norm_topk_prob", true))
        err_set(r->e, ERR_MODEL, "%s: \"norm_topk_prob\" is false; only true can be converted", r->path);
    hf_expect(r, "output_gate_type", "sigmoid", false);
    hf_expect(r, "hidden_act", "silu", false);
}

static void read_memory(struct hf_reader *r, struct qwen38_params *p)
{
    const json_t *const layers = json_object_get(r->object, "ple_layer_ids");
    if (json_array_size(layers) != 1)
        err_set(r->e, ERR_MODEL, "%s: \"ple_layer_ids\" must be a list of one layer", r->path);
    p->n_lp = 1;
    p->lp[0] = (int32_t)json_integer_value(json_array_get(layers, 0)) - 1; /* counted from 1 */
    if (p->lp[0] < 0) err_set(r->e, ERR_MODEL, "%s: \"ple_layer_ids\" counts from 1", r->path);
    p->G = hf_int(r, "ngram_size", 2, QWEN38_MAX_NGRAM);
    p->P = hf_int(r, "heads_per_ngram", 1, QWEN38_MAX_HEADS);
    p->Kp = hf_int(r, "ple_conv_kernel_size", 1, 64);
}

static void read_rope(struct hf_reader *r, struct qwen38_params *p)
{
    const json_t *o = json_object_get(r->object, "rope_parameters");
    if (!o) o = json_object_get(r->object, "rope_scaling");
    struct hf_reader s = {r->path, json_is_object(o) ? o : r->object, r->e};
    p->theta = (float)hf_float(json_object_get(s.object, "rope_theta") ? &s : r, "rope_theta", 1, 1e15);
    const double part = hf_float_or(json_object_get(s.object, "partial_rotary_factor") ? &s : r,
                                    "partial_rotary_factor", 0.001, 1, 0.25);
    p->Rn = (int64_t)((double)p->D * part);
    const json_t *const sections = json_object_get(s.object, "mrope_section");
    p->n_sections = json_array_size(sections) == 3 ? 4 : PARAM_UNSET;
    p->sections[3] = 0;
    for (size_t i = 0; i < 3 && p->n_sections == 4; i++)
        p->sections[i] = (int32_t)json_integer_value(json_array_get(sections, i));
    p->yarn_factor = 1;
    if (o && (json_object_get(o, "rope_type") || json_object_get(o, "type")))
        hf_expect(&s, json_object_get(o, "rope_type") ? "rope_type" : "type", "default", true);
}

/* Every layer must be of the kind that the interval says: the file has no other word for it. */
static void check_layers(struct hf_reader *r, const struct qwen38_params *p)
{
    const json_t *const types = json_object_get(r->object, "layer_types");
    for (size_t l = 0; l < json_array_size(types); l++) {
        const char *const type = json_string_value(json_array_get(types, l));
        const bool attention = (int64_t)(l + 1) % p->I == 0;
        if (!type || strcmp(type, attention ? "full_attention" : "linear_attention")) {
            err_set(r->e, ERR_MODEL, "%s: \"layer_types\" entry %zu is not what \"full_attention_interval\" says",
                    r->path, l);
            return;
        }
    }
}

/* Those of the text model, or of the whole where it has none of its own. */
static int64_t read_token(const json_t *root, struct hf_reader *r, const char *key, int64_t none)
{
    struct hf_reader whole = {r->path, root, r->e};
    const json_t *const own = json_object_get(r->object, key);
    if (json_is_array(own) || json_is_array(json_object_get(root, key))) {
        err_set(r->e, ERR_MODEL, "%s: \"%s\" is a list; which of them separates n-grams cannot be told", r->path, key);
        return none;
    }
    return hf_int_or(own && !json_is_null(own) ? r : &whole, key, 0, 1 << 24, none);
}

static void read_all(const json_t *root, struct hf_reader *r, struct hf_folder *f, struct qwen38_params *p)
{
    read_shape(r, p);
    read_memory(r, p);
    read_rope(r, p);
    check_layers(r, p);
    p->eos = read_token(root, r, "eos_token_id", PARAM_UNSET);
    p->image = read_token(root, r, "image_token_id", PARAM_UNSET);
    if (p->eos == PARAM_UNSET) err_set(r->e, ERR_MODEL, "%s: \"eos_token_id\" is missing", r->path);
    const int64_t pieces = hf_int_or(r, "split_ngram_parts", 1, 65536, 1);
    if (!r->e->code) read_table(f, pieces, p, r->e);
    if (p->nextn && !hf_qwen38_find(f, "mtp.fc_embedding.weight")) p->nextn = 0;
    p->Lall += p->nextn;
}

int hf_qwen38_config(const char *path, struct hf_folder *f, struct qwen38_params *p, struct err *e)
{
    json_t *root;
    const int rc = hf_json_read(path, &root, e);
    if (rc) return rc;
    const json_t *const text = json_object_get(root, "text_config");
    struct err mine = {0};
    struct hf_reader r = {path, json_is_object(text) ? text : root, &mine};
    *p = (struct qwen38_params){.dv = PARAM_UNSET,
                                .inner = PARAM_UNSET,
                                .W = PARAM_UNSET,
                                .row_dim = PARAM_UNSET,
                                .n_ratios = 1,
                                .yarn_factor = 1,
                                .base = 2};
    read_all(root, &r, f, p);
    json_decref(root);
    return mine.code ? err_set(e, mine.code, "%s", mine.msg) : qwen38_complete(p, path, e);
}
