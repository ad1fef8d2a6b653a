/* Files that are no language model by themselves: parts of one, or things beside one (spec dialects 2.2, 11, 13.3 R2,
 * R13). What each is, and what to do instead, is all that is known of them here. */
#include "dialect/dialect_internal.h"
#include "gguf/side_file.h"

#define GIVE_BEHIND                                                                                                    \
    "give it behind the model itself: -m MODEL -m THIS (to check them: --check-file MODEL --check-file THIS)"

int dialect_refuse_side_file(const struct canonical *c, struct err *e)
{
    struct side_file side;
    if (side_file_tell(c->files[0], &side))
        return err_set(e, ERR_MODEL, "%s is %s; %s", gguf_path(c->files[0]), side.what, side.instead);
    if (gguf_set_n_tensors(c->set) == 0 && gguf_set_kv_find(c->set, "tokenizer.ggml.tokens"))
        return err_set(e, ERR_MODEL, "%s is a vocabulary without a model; a language model is needed",
                       gguf_path(c->files[0]));
    return 0;
}

int dialect_refuse_draft(const struct canonical *c, struct err *e)
{
    if (c->family->binds_draft)
        return err_set(e, ERR_MODEL, "%s is the draft block of a %s model; " GIVE_BEHIND, gguf_path(c->files[0]),
                       c->family->name);
    return err_set(e, ERR_MODEL, "%s is an MTP draft of %s, which this version does not use; " SIDE_MODEL_ALONE,
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
