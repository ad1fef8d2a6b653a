/* The usual names of GGUF tensors, those of all dialects alike: blk.N.PART, experts *_exps, the shared one's *_shexp.
 */
#include "file_census.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "dialect/canonical.h"
#include "quant/quant.h"

static const char *const names[CENSUS_GROUPS] = {
    "embedding", "tables", "dense", "shared experts", "routed experts", "head", "draft", "other",
};

const char *file_census_name(enum census_group g)
{
    return names[g];
}

/* ---- one tensor */

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static enum census_group group_of(const char *name, int n_layers)
{
    const bool block = !strncmp(name, "blk.", 4);
    if (has(name, "nextn.") || has(name, "mtp.") || has(name, "markov_")) return CENSUS_DRAFT;
    if (block && n_layers && atoi(name + 4) >= n_layers) return CENSUS_DRAFT;
    if (has(name, "_shexp")) return CENSUS_SHARED;
    if (has(name, "_exps")) return CENSUS_ROUTED;
    if (has(name, "per_layer_token_embd") || has(name, "engram_embd")) return CENSUS_TABLES;
    if (has(name, "token_embd")) return CENSUS_EMBEDDING;
    if (block) return CENSUS_DENSE;
    return !strncmp(name, "output", 6) || !strncmp(name, "hc_head", 7) ? CENSUS_HEAD : CENSUS_OTHER;
}

static void add_type(struct census_sum *s, uint32_t type, const char *name)
{
    int i = 0;
    while (i < s->n_types && (s->types[i].type != type || s->types[i].name != name)) i++;
    if (i == CENSUS_MOST_TYPES) return;
    if (i == s->n_types) s->types[s->n_types].type = type, s->types[s->n_types++].name = name;
    s->types[i].n++;
}

static void add_tensor(struct census_sum *s, const struct gguf_tensor *t, const char *fork)
{
    const struct quant_type *q = quant_type(t->type);
    s->n++;
    s->bytes += t->bytes;
    s->n_unknown += !q;
    add_type(s, q ? t->type : t->number, q ? q->name : fork);
}

void file_census_take(struct file_census *c, const struct gguf_set *set, int n_layers)
{
    *c = (struct file_census){.n_files = gguf_set_n_files(set)};
    for (int f = 0; f < c->n_files; f++) {
        const struct gguf *g = gguf_set_file(set, f);
        c->file_bytes += gguf_size(g);
        for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
            const struct gguf_tensor *t = gguf_tensor_at(g, i);
            const char *fork = quant_type(t->type) ? NULL : canonical_fork_type(g, t);
            struct str name = {0};
            str_add(&name, t->name.p, (size_t)t->name.n);
            add_tensor(&c->group[group_of(str_c(&name), n_layers)], t, fork);
            add_tensor(&c->all, t, fork);
            str_free(&name);
        }
    }
}

/* ---- the table */

void census_type_name(struct str *out, const struct census_sum *s, int i)
{
    if (s->types[i].name)
        str_puts(out, s->types[i].name);
    else
        str_printf(out, "type %" PRIu32, s->types[i].type);
}

static void print_sum(const char *name, const struct census_sum *s, uint64_t all)
{
    struct str types = {0};
    for (int i = 0; i < s->n_types; i++) {
        str_puts(&types, i ? ", " : "");
        census_type_name(&types, s, i);
        str_printf(&types, " %" PRIu64, s->types[i].n);
    }
    printf("%-16s%9" PRIu64 "%17" PRIu64 "%10.3f GB%7.1f %%  %s\n", name, s->n, s->bytes, (double)s->bytes * 1e-9,
           all ? 100 * (double)s->bytes / (double)all : 0, str_c(&types));
    str_free(&types);
}

void file_census_print(const struct file_census *c)
{
    printf("%-16s%9s%17s%13s%9s  %s\n", "group", "tensors", "bytes", "", "share", "types");
    for (int i = 0; i < CENSUS_GROUPS; i++)
        if (c->group[i].n) print_sum(names[i], &c->group[i], c->all.bytes);
    print_sum("all", &c->all, c->all.bytes);
    if (c->all.n_unknown)
        printf("(without %" PRIu64 " tensor%s of types whose size is not known)\n", c->all.n_unknown,
               c->all.n_unknown == 1 ? "" : "s");
    printf("\n%" PRIu64 " tensor%s, %" PRIu64 " bytes of weights, ", c->all.n, c->all.n == 1 ? "" : "s", c->all.bytes);
    if (c->n_files > 1) printf("%d files", c->n_files);
    printf("%s of %" PRIu64 " bytes\n", c->n_files > 1 ? "" : "file", c->file_bytes);
}
