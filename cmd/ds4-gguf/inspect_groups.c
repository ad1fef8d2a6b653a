/* The usual names of GGUF tensors, those of all dialects alike: blk.N.PART, experts *_exps, the shared one's *_shexp.
 */
#include "inspect_groups.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "quant/quant.h"

enum group { EMBEDDING, TABLES, DENSE, SHARED, ROUTED, HEAD, DRAFT, OTHER, GROUP_COUNT };
enum { MOST_TYPES = 32 };

static const char *const names[GROUP_COUNT] = {
    "embedding", "tables", "dense", "shared experts", "routed experts", "head", "draft", "other",
};

struct sum {
    uint64_t n, bytes, n_unknown; /* unknown: tensors whose size the reader does not know */
    int n_types;
    struct {
        uint32_t type;
        uint64_t n;
    } types[MOST_TYPES];
};

/* ---- one tensor */

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static enum group group_of(const char *name, int n_layers)
{
    const bool block = !strncmp(name, "blk.", 4);
    if (has(name, "nextn.") || has(name, "mtp.") || has(name, "markov_")) return DRAFT;
    if (block && n_layers && atoi(name + 4) >= n_layers) return DRAFT;
    if (has(name, "_shexp")) return SHARED;
    if (has(name, "_exps")) return ROUTED;
    if (has(name, "per_layer_token_embd") || has(name, "engram_embd")) return TABLES;
    if (has(name, "token_embd")) return EMBEDDING;
    if (block) return DENSE;
    return !strncmp(name, "output", 6) || !strncmp(name, "hc_head", 7) ? HEAD : OTHER;
}

static void add_type(struct sum *s, uint32_t type, uint64_t n)
{
    int i = 0;
    while (i < s->n_types && s->types[i].type != type) i++;
    if (i == MOST_TYPES) return;
    if (i == s->n_types) s->types[s->n_types++].type = type;
    s->types[i].n += n;
}

static void add_tensor(struct sum *s, const struct gguf_tensor *t)
{
    s->n++;
    s->bytes += t->bytes;
    s->n_unknown += !quant_type(t->type);
    add_type(s, t->type, 1);
}

/* ---- the table */

static void print_sum(const char *name, const struct sum *s, uint64_t all)
{
    struct str types = {0};
    for (int i = 0; i < s->n_types; i++) {
        const struct quant_type *q = quant_type(s->types[i].type);
        str_puts(&types, i ? ", " : "");
        if (q)
            str_puts(&types, q->name);
        else
            str_printf(&types, "type %" PRIu32, s->types[i].type);
        str_printf(&types, " %" PRIu64, s->types[i].n);
    }
    printf("%-16s%9" PRIu64 "%17" PRIu64 "%10.3f GB%7.1f %%  %s\n", name, s->n, s->bytes, (double)s->bytes * 1e-9,
           all ? 100 * (double)s->bytes / (double)all : 0, str_c(&types));
    str_free(&types);
}

void inspect_groups(const struct gguf_set *set, int n_layers)
{
    struct sum sums[GROUP_COUNT] = {{0}}, all = {0};
    uint64_t file_bytes = 0;
    const int n_files = gguf_set_n_files(set);
    for (int f = 0; f < n_files; f++) {
        const struct gguf *g = gguf_set_file(set, f);
        file_bytes += gguf_size(g);
        for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
            const struct gguf_tensor *t = gguf_tensor_at(g, i);
            struct str name = {0};
            str_add(&name, t->name.p, (size_t)t->name.n);
            add_tensor(&sums[group_of(str_c(&name), n_layers)], t);
            add_tensor(&all, t);
            str_free(&name);
        }
    }
    printf("%-16s%9s%17s%13s%9s  %s\n", "group", "tensors", "bytes", "", "share", "types");
    for (int i = 0; i < GROUP_COUNT; i++)
        if (sums[i].n) print_sum(names[i], &sums[i], all.bytes);
    print_sum("all", &all, all.bytes);
    if (all.n_unknown) printf("(without %" PRIu64 " tensors of types whose size is not known)\n", all.n_unknown);
    printf("\n%" PRIu64 " tensors, %" PRIu64 " bytes of weights, ", all.n, all.bytes);
    if (n_files > 1) printf("%d files", n_files);
    printf("%s of %" PRIu64 " bytes\n", n_files > 1 ? "" : "file", file_bytes);
}
