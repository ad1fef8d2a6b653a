/* A shard of another quantisation of the same model: names, numbers and tensors fit, and so the model runs. Its types
 * tell: where a shard has whole blocks of experts, none of its three matrices has a type that it has elsewhere. */
#include "dialect/dialect_internal.h"
#include "quant/quant.h"

enum { LEAST_BLOCKS = 4 }; /* of each matrix: a model's first and last blocks often have types of their own */

static bool is_expert(const struct canonical *c, const struct source *s, int row)
{
    return s->bound && s->row == row && s->layer < c->n_layers;
}

static int count_blocks(const struct canonical *c, int file, int row)
{
    int n = 0;
    for (uint64_t i = 0; i < c->sources.n; i++)
        n += is_expert(c, source_at(c, i), row) && source_at(c, i)->file == file;
    return n;
}

/* True if none of the row's matrices in the file has a type that one of another file has. *here, *there: one of each.
 */
static bool differs(const struct canonical *c, int file, int row, const struct source **here,
                    const struct source **there)
{
    *here = *there = NULL;
    for (uint64_t i = 0; i < c->sources.n; i++) {
        const struct source *s = source_at(c, i);
        if (!is_expert(c, s, row) || s->file != file) continue;
        *here = s;
        for (uint64_t k = 0; k < c->sources.n; k++) {
            const struct source *o = source_at(c, k);
            if (!is_expert(c, o, row) || o->file == file) continue;
            if (o->t->type == s->t->type) return false;
            *there = o;
        }
    }
    return *here && *there;
}

static bool is_foreign(const struct canonical *c, int file, const struct source **here, const struct source **there)
{
    int n_rows = 0;
    for (int row = 0; row < c->family->n_tensors; row++) {
        if (c->family->tensors[row].class != CLASS_EXPERT) continue;
        if (count_blocks(c, file, row) < LEAST_BLOCKS || !differs(c, file, row, here, there)) return false;
        n_rows++;
    }
    return n_rows > 0;
}

void dialect_warn_shards(struct canonical *c)
{
    const struct source *here, *there;
    for (int f = c->n_files - 1; f >= 0 && c->n_files > 1; f--) {
        if (!is_foreign(c, f, &here, &there)) continue;
        dialect_warn(c, "",
                     "%s has experts of other types (%s) than the other files (%s): one is from another download, "
                     "unless the model was quantised so; the model runs, but to have it as it was published get this "
                     "file again from the folder of the others",
                     dialect_file_name(gguf_path(c->files[f])), quant_type(here->t->type)->name,
                     quant_type(there->t->type)->name);
        return;
    }
}
