/* Which family a file holds, in which role, and how long its trunk is (spec dialects 5). Decided by the architecture
 * and by tensors; what keys count is only compared later. */
#include "dialect/dialect_internal.h"
#include <stdio.h>
#include <string.h>
#include "base/mem.h"

/* What this build does with an architecture. */
static const struct known {
    const char *arch;
    const struct family_table *family; /* NULL: refused with what */
    const char *what;
} known[] = {
    {"deepseek4", &dialect_deepseek4, NULL},
    {"deepseek-v4", &dialect_deepseek4, NULL},
    {"deepseek-v4-flash", &dialect_deepseek4, NULL},
    {"deepseek41", NULL, "DeepSeek V4.1"},
    {"deepseek2", NULL, "DeepSeek V2, V3 or R1 (or Kimi K2)"},
    {"deepseek32", NULL, "DeepSeek V3.2"},
    {"deepseek", NULL, "DeepSeek 1"},
    {"llama", NULL, "Llama (or Mistral)"},
    {"llama4", NULL, "Llama 4"},
    {"mistral3", NULL, "Mistral 3"},
    {"glm4", NULL, "GLM 4"},
    {"glm4moe", NULL, "GLM 4.5, 4.6 or 4.7"},
    {"gpt-oss", NULL, "gpt-oss"},
    {"gemma3", NULL, "Gemma 3"},
    {"minimax-m2", NULL, "MiniMax M2"},
    {"phi3", NULL, "Phi 3 or 4"},
    {"qwen2", NULL, "Qwen2 or Qwen2.5"},
    {"qwen2moe", NULL, "Qwen2 MoE"},
    {"qwen3", NULL, "Qwen3"},
    {"qwen3moe", NULL, "Qwen3 MoE (30B-A3B, 235B-A22B, Coder)"},
    {"qwen3next", NULL, "Qwen3-Next"},
    {"qwen35", NULL, "Qwen3.5"},
    {"qwen35moe", NULL, "Qwen3.5 MoE"},
    {"glm-dsa", NULL, "GLM 5"},
    {"glm5-next", NULL, "GLM 5.3 Flash"},
    {"glm5next", NULL, "GLM 5.3 Flash"},
    {"glm5_next", NULL, "GLM 5.3 Flash"},
    {"qwen4exp", &dialect_qwen38, NULL},
    {"qwen4-exp", &dialect_qwen38, NULL},
    {"qwen4_exp", &dialect_qwen38, NULL},
};

int64_t dialect_block(const struct gguf_str *name, struct gguf_str *rest)
{
    uint64_t i = 4;
    int64_t block = 0;
    if (name->n < 6 || memcmp(name->p, "blk.", 4) != 0) return -1;
    for (; i < name->n && i < 20 && name->p[i] >= '0' && name->p[i] <= '9'; i++)
        block = block * 10 + (name->p[i] - '0');
    if (i == 4 || i >= name->n || name->p[i] != '.') return -1;
    *rest = (struct gguf_str){name->p + i + 1, name->n - i - 1};
    return block;
}

/* A V4.1 model under the older name: its n-gram tables tell. */
static bool is_deepseek41(const struct canonical *c)
{
    const struct gguf_kv *variant = gguf_set_kv_find(c->set, "deepseek4.variant");
    if (dialect_text_has(variant, "v4.1")) return true;
    for (int f = 0; f < c->n_files; f++)
        for (uint64_t i = 0; i < gguf_n_tensors(c->files[f]); i++)
            if (dialect_contains(&gguf_tensor_at(c->files[f], i)->name, ".engram_")) return true;
    for (uint64_t i = 0; i < gguf_set_n_kv(c->set); i++)
        if (dialect_contains(&gguf_set_kv_at(c->set, i)->key, ".engram.") &&
            !gguf_set_tensor_find(c->set, "output_hc_fn.weight", 19))
            return true;
    return false;
}

#define RUN_INSTEAD                                                                                                    \
    "it runs DeepSeek V4 and Qwen3.8 Flash Next: get a file of one of them, or run this one with another program, "    \
    "such as llama.cpp"

static int refuse_family(const struct gguf *g, const char *what, struct err *e)
{
    return err_set(e, ERR_MODEL, "%s is a %s model, which this version does not run; " RUN_INSTEAD, gguf_path(g), what);
}

int dialect_recognise(struct canonical *c, struct err *e)
{
    const struct gguf *g = c->files[0];
    struct gguf_str arch = {NULL, 0};
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, "general.architecture");
    if (kv && kv->type == GGUF_ARRAY)
        return err_set(e, ERR_MODEL, "general.architecture is an array; a string is needed");
    if (kv && gguf_string(kv, 0, &arch, e)) return e->code;
    c->arch = mem_alloc((size_t)arch.n + 1);
    if (arch.n) memcpy(c->arch, arch.p, (size_t)arch.n);
    text_defuse(c->arch, (size_t)arch.n);
    const int rc = dialect_refuse_side_file(c, e);
    if (rc) return rc;
    if (!kv)
        return err_set(
            e, ERR_MODEL,
            "%s has no general.architecture: it is not a language model, or a faulty conversion of one; give "
            "the model's .gguf file, or get another publisher's",
            gguf_path(g));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].arch, c->arch) != 0) continue;
        if (!known[i].family) return refuse_family(g, known[i].what, e);
        if (known[i].family == &dialect_deepseek4 && is_deepseek41(c)) return refuse_family(g, "DeepSeek V4.1", e);
        c->family = known[i].family;
        return 0;
    }
    return err_set(e, ERR_MODEL,
                   "%s is a model of architecture \"%.80s\", which this version does not run; " RUN_INSTEAD,
                   gguf_path(g), c->arch);
}

static const struct gguf_tensor *tensor_of(const struct canonical *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static const struct gguf_tensor *tensor_of(const struct canonical *c, const char *fmt, ...)
{
    char name[DIALECT_NAME];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return gguf_set_tensor_find(c->set, name, (uint64_t)n);
}

static uint64_t router_width(const struct canonical *c, int block)
{
    const struct gguf_tensor *t = tensor_of(c, "blk.%d.%s.weight", block, c->family->router);
    return t ? t->ne[1] : 0;
}

/* Stages of a DSpark draft behind the trunk's blocks: as many as the file says, else those whose router has another
 * number of experts. */
static int draft_stages(const struct canonical *c, int n_blocks)
{
    int n = 0;
    int64_t said;
    if (!tensor_of(c, "fc.weight") || !tensor_of(c, "markov_w1.weight")) return 0;
    const struct gguf_kv *kv = dialect_key(c, c->family->key_draft);
    if (kv && gguf_i64(kv, 0, &said, NULL) == 0) return said > 0 && said < n_blocks ? (int)said : 0;
    while (n + 1 < n_blocks && router_width(c, n_blocks - 1 - n) != router_width(c, 0)) n++;
    return n;
}

static int refuse_part(const struct canonical *c, int64_t least, int64_t last, struct err *e)
{
    const char *path = gguf_path(c->files[0]);
    if (least < 1)
        return err_set(e, ERR_MODEL, "%s has no whole block of a model (blk.0 and so on): get another file", path);
    return err_set(e, ERR_MODEL,
                   "%s has no blk.0: its blocks are %lld to %lld, which is a part of a model; get the file with those "
                   "before, too, and " DIALECT_GIVE_BOTH,
                   path, (long long)least, (long long)(last > least ? last : least));
}

int dialect_trunk(struct canonical *c, struct err *e)
{
    int64_t draft = -1, least = -1, last = -1;
    bool first = false, draft_only = false, apart = false, apart_blocks = false;
    for (int f = 0; f < c->n_files; f++) {
        for (uint64_t i = 0; i < gguf_n_tensors(c->files[f]); i++) {
            const struct gguf_str *name = &gguf_tensor_at(c->files[f], i)->name;
            struct gguf_str rest;
            const int64_t b = dialect_block(name, &rest);
            apart |= dialect_begins(name, "mtp."), apart_blocks |= dialect_begins(name, "mtp.layers.");
            if (b < 0) continue;
            if (b >= DIALECT_MAX_BLOCKS)
                return err_set(e, ERR_MODEL, "tensor %.*s: block %lld is not supported (only 0 to %d)",
                               (int)(name->n < 100 ? name->n : 100), name->p, (long long)b, DIALECT_MAX_BLOCKS - 1);
            if (b == 0) first = true;
            if (least < 0 || b < least) least = b;
            const bool nextn = dialect_begins(&rest, "nextn.") || dialect_begins(&rest, "mtp.");
            if (nextn && (draft < 0 || b < draft)) draft = b;
            if (dialect_begins(&rest, "nextn.eh_proj") || dialect_begins(&rest, "nextn.e_proj")) draft_only = true;
            if ((dialect_begins(&rest, "attn_") || dialect_begins(&rest, "ssm_")) && b > last) last = b;
        }
    }
    if (!first && draft_only) return dialect_refuse_draft(c, e);
    /* The first Qwen files: what goes around the draft's block has no block in its names, the block is the last one. */
    if (c->family->binds_draft && draft < 0 && apart && !apart_blocks && last > 0) draft = last;
    c->n_layers = (int)(draft >= 0 ? draft : last + 1);
    c->n_layers -= draft_stages(c, c->n_layers);
    if (draft >= 0 && c->family->binds_draft) c->n_draft = (int)(last - draft) + 1;
    if (draft < 0 && c->family->binds_draft && apart_blocks) c->n_draft = 1;
    if (c->n_layers == 0 || !first) {
        if (dialect_is_table_alone(c)) return dialect_refuse_table(c, e);
        return refuse_part(c, least, last, e);
    }
    return 0;
}

const char *dialect_whose(const struct canonical *c)
{
    if (strncmp(c->arch, "deepseek-", 9) == 0) return "early fork";
    const char *alias = NULL;
    for (uint64_t i = 0; i < c->sources.n && !alias; i++) {
        const struct source *s = source_at(c, i);
        const struct tensor_row *row = &c->family->tensors[s->row];
        for (size_t a = 0; a < sizeof row->also / sizeof *row->also && row->also[a].stem; a++)
            if (row->also[a].dialect && dialect_contains(&s->t->name, row->also[a].stem)) alias = row->also[a].dialect;
    }
    if (alias) return alias;
    const struct value *v = dialect_value(c, "vocab_size");
    return v->kv ? "ds4" : "llama.cpp";
}
