/* Files that are no language model by themselves: parts of one, or things beside one (spec dialects 2.2, 11, 13.3 R2,
 * R13). What each is, and what to do instead, is all that is known of them here. */
#include "dialect/dialect_internal.h"
#include <string.h>

#define MODEL_ALONE "run the model itself, which gives the same answers without it"

#define GIVE_BEHIND                                                                                                    \
    "give it behind the model itself: -m MODEL -m THIS (to check them: --check-file MODEL --check-file THIS)"

static const struct side_file {
    const char *key, *value, *what;
} side_files[] = {
    {"general.type", "imatrix", "an importance matrix, which is for making models; a language model is needed"},
    {"general.type", "adapter", "an adapter, which this version does not use; a language model is needed"},
    {"general.type", "mmproj",
     "a vision encoder, and this version reads text only; give the language model that it belongs to"},
    {"general.architecture", "clip",
     "a vision encoder, and this version reads text only; give the language model that it belongs to"},
    {"general.architecture", "dspark", "a DSpark draft, which this version does not use; " MODEL_ALONE},
    {"general.architecture", "deepseek4-dspark",
     "a DSpark draft of DeepSeek V4, which this version does not use; " MODEL_ALONE},
    {"general.architecture", "deepseek41-dspark",
     "a DSpark draft of DeepSeek V4.1, which this version does not use; " MODEL_ALONE},
    {"general.architecture", "deepseek4-mtp",
     "an MTP draft of DeepSeek V4, which this version does not use; " MODEL_ALONE},
    {"general.architecture", "deepseek4_mtp_support",
     "an MTP draft of DeepSeek V4, which this version does not use; " MODEL_ALONE},
};

static int refuse(const struct canonical *c, const char *what, struct err *e)
{
    return err_set(e, ERR_MODEL, "%s is %s", gguf_path(c->files[0]), what);
}

/* Drafts of one architecture, of two kinds. */
static int refuse_dflash(const struct canonical *c, struct err *e)
{
    const bool dspark = gguf_set_kv_find(c->set, "dflash.hyper_connection.count") != NULL;
    return refuse(c,
                  dspark ? "a DSpark draft, which this version does not use; " MODEL_ALONE
                         : "a DFlash draft, which this version does not use; " MODEL_ALONE,
                  e);
}

int dialect_refuse_side_file(const struct canonical *c, struct err *e)
{
    for (size_t i = 0; i < sizeof side_files / sizeof *side_files; i++)
        if (dialect_text_is(gguf_set_kv_find(c->set, side_files[i].key), side_files[i].value))
            return refuse(c, side_files[i].what, e);
    const size_t n = strlen(c->arch);
    if (strcmp(c->arch, "dflash") == 0) return refuse_dflash(c, e);
    if (n > 7 && strcmp(c->arch + n - 7, "-vision") == 0)
        return refuse(
            c, "a vision encoder, and this version reads text only; give the language model that it belongs to", e);
    if (gguf_set_n_tensors(c->set) == 0 && gguf_set_kv_find(c->set, "tokenizer.ggml.tokens"))
        return refuse(c, "a vocabulary without a model; a language model is needed", e);
    return 0;
}

int dialect_refuse_draft(const struct canonical *c, struct err *e)
{
    if (c->family->binds_draft)
        return err_set(e, ERR_MODEL, "%s is the draft block of a %s model; " GIVE_BEHIND, gguf_path(c->files[0]),
                       c->family->name);
    return err_set(e, ERR_MODEL, "%s is an MTP draft of %s, which this version does not use; " MODEL_ALONE,
                   gguf_path(c->files[0]), c->family->name);
}

/* ---- a table that lies in a file of its own */

/* The family's table; NULL: it has none. */
static const struct tensor_row *table_row(const struct canonical *c)
{
    for (int i = 0; i < c->family->n_tensors; i++)
        if (c->family->tensors[i].flags & TENSOR_TABLE) return &c->family->tensors[i];
    return NULL;
}

static bool is_named(const struct gguf_str *name, const struct tensor_row *row)
{
    if (dialect_begins(name, row->stem)) return true;
    for (size_t a = 0; a < sizeof row->also / sizeof *row->also && row->also[a].stem; a++)
        if (dialect_begins(name, row->also[a].stem)) return true;
    return false;
}

static bool has_table(const struct canonical *c, const struct tensor_row *row)
{
    for (int f = 0; f < c->n_files; f++)
        for (uint64_t i = 0; i < gguf_n_tensors(c->files[f]); i++)
            if (is_named(&gguf_tensor_at(c->files[f], i)->name, row)) return true;
    return false;
}

bool dialect_is_table_alone(const struct canonical *c)
{
    const struct tensor_row *row = table_row(c);
    return row && gguf_set_n_tensors(c->set) == 1 && has_table(c, row);
}

int dialect_refuse_table(const struct canonical *c, struct err *e)
{
    return err_set(e, ERR_MODEL, "%s holds the n-gram table of a %s model and nothing else; " GIVE_BEHIND,
                   gguf_path(c->files[0]), c->family->name);
}

bool dialect_lacks_table(const struct canonical *c)
{
    const struct tensor_row *row = table_row(c);
    return row && !has_table(c, row);
}
