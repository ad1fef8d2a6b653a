/* Canonical names: each tensor of the files that the family's table knows, by its own name or an alias, becomes a
 * source under its canonical name; a split tensor becomes two (spec dialects 4 T1, T3). */
#include "dialect/dialect_internal.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"

/* Stem in a file -> row of the table. */
static int stems_make(const struct family_table *f, struct strmap **map, struct err *e)
{
    *map = strmap_new((size_t)f->n_tensors * 3);
    int rc = *map ? 0 : ERR_MEMORY;
    for (int i = 0; i < f->n_tensors && rc >= 0; i++) {
        const struct tensor_row *row = &f->tensors[i];
        rc = strmap_put(*map, row->stem, strlen(row->stem), (uint64_t)i);
        for (size_t a = 0; a < sizeof row->also / sizeof *row->also && row->also[a].stem && rc >= 0; a++)
            rc = strmap_put(*map, row->also[a].stem, strlen(row->also[a].stem), (uint64_t)i);
    }
    return rc < 0 ? err_set(e, ERR_MEMORY, "no memory for the names of tensors") : 0;
}

static const char *suffix_of(const struct tensor_row *row)
{
    return row->suffix ? row->suffix : ".weight";
}

/* Takes a suffix off. */
static bool cut_suffix(struct gguf_str *s, const char *suffix)
{
    const size_t n = strlen(suffix);
    if (s->n <= n || !dialect_ends(s, suffix)) return false;
    s->n -= n;
    return true;
}

void dialect_name(char name[DIALECT_NAME], const struct tensor_row *row, int layer)
{
    if (layer < 0)
        snprintf(name, DIALECT_NAME, "%s%s", row->stem, suffix_of(row));
    else
        snprintf(name, DIALECT_NAME, "blk.%d.%s%s", layer, row->stem, suffix_of(row));
}

void dialect_also(struct str *out, const struct tensor_row *row, int layer)
{
    for (size_t a = 0; a < sizeof row->also / sizeof *row->also && row->also[a].stem; a++) {
        str_puts(out, a == 0 ? " (also looked for " : ", ");
        if (layer >= 0 && strncmp(row->also[a].stem, "mtp.", 4) != 0) str_printf(out, "blk.%d.", layer);
        str_puts(out, row->also[a].stem);
    }
    if (row->also[0].stem) str_puts(out, ")");
}

int dialect_row(const struct family_table *f, const char *stem)
{
    for (int i = 0; i < f->n_tensors; i++)
        if (strcmp(f->tensors[i].stem, stem) == 0) return i;
    assert(!"a stem that the table lacks");
    return 0;
}

/* The key of by_name is the name without its suffix. */
static int add_source(struct canonical *c, int file, const struct gguf_tensor *t, int row, int layer,
                      const struct tensor_split *split, int part, struct err *e)
{
    const uint64_t i = c->sources.n;
    struct source *s = pile_add(&c->sources);
    if (!s) return err_set(e, ERR_MEMORY, "no memory for the names of tensors");
    const struct tensor_row *r = &c->family->tensors[row];
    *s = (struct source){.t = t, .file = file, .row = row, .layer = layer, .part = part, .split = split};
    dialect_name(s->name, r, layer);
    const int rc = strmap_put(c->by_name, s->name, strlen(s->name) - strlen(suffix_of(r)), i);
    if (rc < 0) return err_set(e, ERR_MEMORY, "no memory for the names of tensors");
    if (rc == 0) {
        uint64_t other;
        strmap_get(c->by_name, s->name, strlen(s->name) - strlen(suffix_of(r)), &other);
        const struct gguf_str *a = &source_at(c, other)->t->name;
        return err_set(e, ERR_MODEL, "tensors %.*s and %.*s are both %s", (int)a->n, a->p, (int)t->name.n, t->name.p,
                       s->name);
    }
    return 0;
}

struct source *dialect_add_joined(struct canonical *c, const struct source *first, const struct source *last,
                                  const struct tensor_row *row, int layer, struct err *e)
{
    const int rc = add_source(c, first->file, first->t, (int)(row - c->family->tensors), layer, NULL, -1, e);
    struct source *s = rc ? NULL : source_at(c, c->sources.n - 1);
    if (s) s->last = last;
    return s;
}

static void note_rename(struct canonical *c, const struct source *s)
{
    if (dialect_is(&s->t->name, s->name)) return;
    if (c->n_renamed++ < 3) dialect_note(c, NOTE_RENAMED, "%.*s -> %s", (int)s->t->name.n, s->t->name.p, s->name);
}

static bool has_beside(const struct canonical *c, const struct tensor_split *split, int64_t block)
{
    char name[DIALECT_NAME];
    if (!split->beside) return true;
    dialect_name(name, &c->family->tensors[dialect_row(c->family, split->beside)], (int)block);
    return gguf_set_tensor_find(c->set, name, strlen(name)) ||
           gguf_set_tensor_find(c->set, name, strlen(name) - strlen(".weight"));
}

static const struct tensor_split *split_of(const struct canonical *c, const struct gguf_str *stem, int64_t block)
{
    for (int i = 0; i < c->family->n_splits; i++)
        if (dialect_is(stem, c->family->splits[i].stem) && has_beside(c, &c->family->splits[i], block))
            return &c->family->splits[i];
    return NULL;
}

static int map_split(struct canonical *c, int file, const struct gguf_tensor *t, const struct tensor_split *split,
                     int layer, struct err *e)
{
    const int kind = 1 << (split - c->family->splits);
    const char *const third = split->part[2];
    int rc = 0;
    if (!(c->split_kinds & kind))
        dialect_note(c, NOTE_SPLIT, "%s -> %s, %s%s%s", split->stem, split->part[0], split->part[1], third ? ", " : "",
                     third ? third : "");
    c->split_kinds |= kind;
    for (int part = 0; part < 3 && split->part[part] && rc == 0; part++)
        rc = add_source(c, file, t, dialect_row(c->family, split->part[part]), layer, split, part, e);
    return rc;
}

/* Block and stem of a name. In the first files with a draft what goes around its block has names without a block,
 * "mtp.fc_embd", and the block itself may be "mtp.layers.0" (spec dialects 11). */
static int64_t place_of(const struct canonical *c, const struct gguf_str *name, struct gguf_str *stem)
{
    static const char apart[] = "mtp.", blocks[] = "mtp.layers.0.";
    *stem = *name;
    if (c->n_draft == 0 || !dialect_begins(name, apart)) return dialect_block(name, stem);
    const size_t n = dialect_begins(name, blocks) ? strlen(blocks) : 0;
    *stem = (struct gguf_str){name->p + n, name->n - n};
    return c->n_layers;
}

static int map_one(struct canonical *c, const struct strmap *stems, int file, const struct gguf_tensor *t,
                   struct err *e)
{
    struct gguf_str stem;
    const int64_t block = place_of(c, &t->name, &stem);
    const bool weight = cut_suffix(&stem, ".weight"), bias = !weight && cut_suffix(&stem, ".bias");
    const struct tensor_split *const split = bias || block < 0 ? NULL : split_of(c, &stem, block);
    uint64_t at;
    if (split) return map_split(c, file, t, split, (int)block, e);
    if (!strmap_get(stems, stem.p, (size_t)stem.n, &at)) return 0;
    const struct tensor_row *row = &c->family->tensors[at];
    if ((row->scope == SCOPE_BLOCK) != (block >= 0) || (bias && !row->suffix)) return 0;
    const int rc = add_source(c, file, t, (int)at, (int)block, NULL, -1, e);
    if (rc == 0 && block < canonical_n_blocks(c)) note_rename(c, source_at(c, c->sources.n - 1));
    return rc;
}

/* The mixer of a draft's head may be named like a model's, in a file that is the draft alone (spec dialects 11). */
static int map_draft_mixer(struct canonical *c, int file, const struct gguf_tensor *t, struct err *e)
{
    static const char *const parts[] = {"norm", "down", "up"};
    char name[DIALECT_NAME], stem[32];
    for (int i = 0; i < 3 && c->n_draft > 0; i++) {
        snprintf(name, sizeof name, "output_hc_%s.weight", parts[i]);
        if (!dialect_is(&t->name, name)) continue;
        snprintf(stem, sizeof stem, "nextn.hc_head_%s", parts[i]);
        const int row = dialect_row(c->family, stem);
        dialect_name(name, &c->family->tensors[row], c->n_layers);
        if (gguf_set_tensor_find(c->set, name, strlen(name))) return 0;
        const int rc = add_source(c, file, t, row, c->n_layers, NULL, -1, e);
        if (rc == 0) note_rename(c, source_at(c, c->sources.n - 1));
        return rc;
    }
    return 0;
}

/* What a draft's file has twice counts in the model's. */
static int map_tensor(struct canonical *c, const struct strmap *stems, int file, const struct gguf_tensor *t,
                      struct err *e)
{
    if (gguf_set_tensor_find(c->set, t->name.p, t->name.n) == t) return map_one(c, stems, file, t, e);
    return map_draft_mixer(c, file, t, e);
}

/* A block of the trunk of which nothing is there: said before keys are asked what only its tensors could tell. */
static int check_blocks(const struct canonical *c, struct err *e)
{
    uint8_t *has = mem_alloc((size_t)c->n_layers);
    int first = -1, n = 0;
    for (uint64_t i = 0; i < c->sources.n; i++) {
        const int l = source_at(c, i)->layer;
        if (l >= 0 && l < c->n_layers) has[l] = 1;
    }
    for (int l = c->n_layers - 1; l >= 0; l--)
        if (!has[l]) first = l, n++;
    mem_free(has);
    if (n == 0) return 0;
    if (n == 1)
        return err_set(e, ERR_MODEL, "blk.%d is missing: no tensor of one of the %d blocks is there", first,
                       c->n_layers);
    return err_set(e, ERR_MODEL, "blk.%d is missing, and so %s %d more of the %d blocks: no tensor of them is there",
                   first, n == 2 ? "is" : "are", n - 1, c->n_layers);
}

int dialect_map_names(struct canonical *c, struct err *e)
{
    struct strmap *stems = NULL;
    c->sources.bytes = sizeof(struct source);
    c->by_name = strmap_new(0);
    if (!c->by_name) return err_set(e, ERR_MEMORY, "no memory for the names of tensors");
    int rc = stems_make(c->family, &stems, e);
    for (int f = 0; f < c->n_files && rc == 0; f++)
        for (uint64_t i = 0; i < gguf_n_tensors(c->files[f]) && rc == 0; i++)
            rc = map_tensor(c, stems, f, gguf_tensor_at(c->files[f], i), e);
    strmap_free(stems);
    return rc ? rc : dialect_refused(c, check_blocks(c, e), e);
}

const struct source *dialect_find(const struct canonical *c, int layer, const char *stem)
{
    char key[DIALECT_NAME];
    uint64_t i;
    const int n =
        layer < 0 ? snprintf(key, sizeof key, "%s", stem) : snprintf(key, sizeof key, "blk.%d.%s", layer, stem);
    return strmap_get(c->by_name, key, (size_t)n, &i) ? source_at(c, i) : NULL;
}

int64_t dialect_ne(const struct canonical *c, int layer, const char *stem, int i)
{
    const struct source *s = dialect_find(c, layer, stem);
    if (!s || s->t->ne[i] > INT64_MAX) return 0;
    /* A vector may have its length in any dimension. */
    const uint64_t *ne = s->t->ne;
    if (i == 0 && !strchr(c->family->tensors[s->row].shape, ' ')) return (int64_t)(ne[0] * ne[1] * ne[2] * ne[3]);
    if (i == 1 && s->part >= 0) return s->split->even ? (int64_t)(s->t->ne[1] / 2) : 0;
    return (int64_t)s->t->ne[i];
}

bool dialect_has(const struct canonical *c, int layer, const char *stem_prefix)
{
    char start[DIALECT_NAME];
    const size_t n = (size_t)snprintf(start, sizeof start, "blk.%d.%s", layer, stem_prefix);
    for (uint64_t i = 0; i < c->sources.n; i++)
        if (strncmp(source_at(c, i)->name, start, n) == 0) return true;
    for (int f = 0; f < c->n_files; f++) {
        for (uint64_t i = 0; i < gguf_n_tensors(c->files[f]); i++) {
            const struct gguf_str *name = &gguf_tensor_at(c->files[f], i)->name;
            if (name->n >= n && memcmp(name->p, start, n) == 0) return true;
        }
    }
    return false;
}
