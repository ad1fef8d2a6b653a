/* Opening a model: the steps of spec dialects 1 in their order, and what the finished model answers about tensors. */
#include "dialect/canonical.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "dialect/dialect_internal.h"
#include "quant/quant.h"

static void set_name(struct canonical *c)
{
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, "general.name");
    struct gguf_str s;
    if (!kv || kv->type != GGUF_STRING || gguf_string(kv, 0, &s, NULL) || s.n == 0 || s.n > 200) {
        const char *file = dialect_file_name(gguf_path(c->files[0]));
        s = (struct gguf_str){file, strlen(file)};
    }
    c->name = mem_alloc((size_t)s.n + 1);
    memcpy(c->name, s.p, (size_t)s.n);
    text_defuse(c->name, (size_t)s.n);
}

/* Who names a file behind the model wants it used. */
static bool is_unused_draft(struct canonical *c, int f)
{
    return !c->family->binds_draft && gguf_set_is_draft(c->set, f);
}

/* Tensors that the model has no use for: of draft blocks, and of names that nobody knows. */
static void note_ignored(struct canonical *c)
{
    int draft = 0, other = 0;
    for (int f = 0; f < c->n_files; f++) {
        if (is_unused_draft(c, f)) {
            dialect_warn(c, "", "%s is a draft of %s, which this version does not use: leave it out",
                         gguf_path(c->files[f]), c->family->name);
            continue;
        }
        for (uint64_t i = 0; i < gguf_n_tensors(c->files[f]); i++) {
            struct gguf_str rest;
            draft += dialect_block(&gguf_tensor_at(c->files[f], i)->name, &rest) >= canonical_n_blocks(c);
        }
        other += (int)gguf_n_tensors(c->files[f]);
    }
    for (uint64_t i = 0; i < c->sources.n; i++) {
        const struct source *s = source_at(c, i);
        if (s->bound && s->part <= 0) other -= s->last ? 2 : 1;
    }
    other -= draft;
    if (draft)
        dialect_note(c, NOTE_IGNORED, "%d tensors of a draft inside this file (blk.%d)", draft, canonical_n_blocks(c));
    if (other) dialect_note(c, NOTE_IGNORED, "%d tensors that the model does not use", other);
}

static int list_bound(struct canonical *c, struct err *e)
{
    c->bound = mem_try((size_t)(c->sources.n + 1) * sizeof *c->bound);
    if (!c->bound) return err_set(e, ERR_MEMORY, "no memory for a list of %d tensors", (int)c->sources.n);
    for (uint64_t i = 0; i < c->sources.n; i++)
        if (source_at(c, i)->bound) c->bound[c->n_bound++] = (int)i;
    return 0;
}

static void count_others(const struct canonical *c, struct err *e)
{
    const int n = (int)c->notes[NOTE_PROBLEM].n - 1;
    const struct err first = *e;
    if (n < 1) return;
    err_clear(e);
    err_set(e, first.code, "%s; and %d more", first.msg, n);
}

/* What follows from names and parameters. Without the parameters there are no shapes. */
static int bind(struct canonical *c, const struct canonical_options *opt, struct err *e)
{
    int rc = c->refused.code ? 0 : dialect_refused(c, c->family->validate(c, opt, e), e);
    const bool shaped = !c->refused.code;
    if (rc == 0) rc = dialect_refused(c, dialect_check_vocabulary(c, e), e);
    const bool alone = c->refused.code != 0; /* told of one thing, where dialect_bind tells of three */
    if (rc == 0 && shaped) rc = dialect_bind(c, e);
    if (!shaped && !c->partial) dialect_note_missing(c);
    if (rc && !c->refused.code) c->refused = *e;
    if (rc && !c->thorough) return rc;
    dialect_note_keys(c);
    for (int i = 0; gguf_set_warning(c->set, i); i++) dialect_warn(c, "", "%s", gguf_set_warning(c->set, i));
    if (!c->refused.code) note_ignored(c); /* else much is unused because something else is missing */
    dialect_warn_precision(c);
    dialect_warn_shards(c);
    *e = c->refused;
    if (alone && !c->partial) count_others(c, e);
    return e->code ? e->code : list_bound(c, e);
}

static int build(struct canonical *c, const struct canonical_options *opt, struct err *e)
{
    int rc = dialect_recognise(c, e);
    if (rc == 0) set_name(c);
    if (rc == 0) rc = dialect_trunk(c, e);
    if (rc == 0) rc = dialect_map_names(c, e);
    if (rc == 0) rc = dialect_resolve_keys(c, e);
    if (rc) return rc;
    c->dialect = dialect_whose(c);
    return bind(c, opt, e);
}

static int list_files(struct canonical *c, struct err *e)
{
    c->files = mem_try((size_t)c->n_files * sizeof *c->files);
    if (!c->files) return err_set(e, ERR_MEMORY, "no memory for a list of %d files", c->n_files);
    for (int f = 0; f < c->n_files; f++) c->files[f] = gguf_set_file(c->set, f);
    return 0;
}

int canonical_open(const char *const *paths, int n_paths, const struct canonical_options *opt, struct canonical **out,
                   struct err *e)
{
    static const struct canonical_options none;
    struct err why = {0};
    struct gguf_set *set;
    *out = NULL;
    int rc = gguf_set_open(paths, n_paths, &set, e);
    if (rc) return rc;
    struct canonical *c = mem_alloc(sizeof *c);
    c->look = opt && opt->look;
    c->headers_only = c->look && opt->headers_only;
    c->scanned = c->look && opt->scanned;
    c->thorough = opt && opt->refused_too;
    c->set = set;
    c->n_files = gguf_set_n_files(set);
    rc = list_files(c, &why);
    if (rc == 0) rc = build(c, opt ? opt : &none, &why);
    if (rc) dialect_add_advice(c, &why);
    rc = canonical_refusal(c, rc, &why);
    if (rc == 0 || (opt && opt->refused_too))
        *out = c;
    else
        canonical_close(c);
    return rc ? err_set(e, rc, "%s", why.msg) : 0;
}

static bool names_a_file(const struct canonical *c, const char *message)
{
    for (int f = 0; f < c->n_files; f++) {
        const char *path = gguf_path(gguf_set_file(c->set, f));
        if (strncmp(message, path, strlen(path)) == 0) return true;
    }
    return false;
}

int canonical_refusal(const struct canonical *c, int rc, struct err *e)
{
    struct err lost = {0};
    if (c->files && canonical_damaged(c, &lost))
        *e = lost; /* whatever zeros were taken for */
    else if (rc && !names_a_file(c, e->msg))
        err_wrap(e, "%s", gguf_path(gguf_set_file(c->set, 0)));
    return e->code;
}

int canonical_check(enum canonical_family f, int n_layers, const struct canonical_given *given, int n,
                    const struct canonical_options *opt, struct err *e)
{
    static const struct family_table *const families[CANONICAL_FAMILY_COUNT] = {&dialect_deepseek4, &dialect_qwen38};
    static const struct canonical_options none;
    struct canonical *c = mem_alloc(sizeof *c);
    c->family = families[f];
    c->n_layers = n_layers;
    c->by_name = strmap_new(0);
    int rc = c->by_name ? 0 : err_set(e, ERR_MEMORY, "no memory to check a model's parameters");
    if (rc == 0) rc = dialect_take_keys(c, given, n, e);
    if (rc == 0) rc = c->family->validate(c, opt ? opt : &none, e);
    canonical_close(c);
    return rc;
}

void canonical_close(struct canonical *c)
{
    if (!c) return;
    for (uint64_t i = 0; i < c->sources.n; i++) mem_free(source_at(c, i)->copy);
    for (int i = 0; c->values && i < c->family->n_keys; i++) mem_free(c->values[i].v);
    dialect_free_arrays(c);
    dialect_free_notes(c);
    strmap_free(c->by_name);
    mem_free(c->bound);
    pile_free(&c->sources);
    mem_free(c->values);
    mem_free(c->files);
    gguf_set_close(c->set);
    mem_free(c->arch);
    mem_free(c->name);
    mem_free(c);
}

bool canonical_is_known(const struct canonical *c)
{
    return c->family != NULL && c->name != NULL;
}

const char *canonical_title(const struct canonical *c)
{
    return c->published ? c->published->name : c->family->name;
}

enum canonical_family canonical_family(const struct canonical *c)
{
    return c->family->id;
}

const char *canonical_dialect(const struct canonical *c)
{
    return c->dialect;
}

const char *canonical_name(const struct canonical *c)
{
    return c->name;
}

int canonical_n_layers(const struct canonical *c)
{
    return c->n_layers;
}

int canonical_n_blocks(const struct canonical *c)
{
    return c->n_layers + c->n_draft;
}

bool canonical_has_file(const struct canonical *c)
{
    return c->set != NULL;
}

const struct gguf_set *canonical_files(const struct canonical *c)
{
    return c->set;
}

const struct file_map *canonical_file(const struct canonical *c, int file)
{
    return gguf_map(c->files[file]);
}

/* ---- tensors */

static const struct source *find_bound(const struct canonical *c, const char *name)
{
    static const char *const suffixes[] = {".weight", ".bias"};
    size_t n = strlen(name);
    uint64_t i;
    for (int k = 0; k < 2; k++) {
        const size_t m = strlen(suffixes[k]);
        if (n > m && strcmp(name + n - m, suffixes[k]) == 0) {
            n -= m;
            break;
        }
    }
    if (!strmap_get(c->by_name, name, n, &i)) return NULL;
    const struct source *s = source_at(c, i);
    return s->bound && strcmp(s->name, name) == 0 ? s : NULL;
}

const struct tensor_view *canonical_tensor(const struct canonical *c, const char *fmt, ...)
{
    char name[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    const struct source *s = find_bound(c, name);
    return s ? &s->view : NULL;
}

/* The row that a canonical name belongs to; NULL: a name that no table has. */
static const struct tensor_row *row_of(const struct canonical *c, const char *name, int *layer)
{
    struct gguf_str rest = {name, strlen(name)};
    const struct gguf_str whole = rest;
    char expected[DIALECT_NAME];
    *layer = (int)dialect_block(&whole, &rest);
    for (int i = 0; i < c->family->n_tensors; i++) {
        dialect_name(expected, &c->family->tensors[i], *layer);
        if (strcmp(expected, name) == 0) return &c->family->tensors[i];
    }
    return NULL;
}

const struct tensor_view *canonical_need(const struct canonical *c, struct err *e, int n_dims, const int64_t *ne,
                                         const char *fmt, ...)
{
    char name[128], have[96], want_text[96];
    int64_t want[4] = {1, 1, 1, 1};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    const struct source *s = find_bound(c, name);
    if (!s) {
        int layer;
        struct str also = {0};
        const struct tensor_row *row = row_of(c, name, &layer);
        if (row) dialect_also(&also, row, layer);
        err_set(e, ERR_MODEL, "%s%s is missing", name, str_c(&also));
        str_free(&also);
        return NULL;
    }
    for (int i = 0; i < n_dims && i < 4; i++) want[i] = ne[i];
    if (memcmp(want, s->view.ne, sizeof want) == 0) return &s->view;
    dialect_shape_text(have, s->view.ne);
    dialect_shape_text(want_text, want);
    err_set(e, ERR_MODEL, "%s is %s, expected %s", name, have, want_text);
    return NULL;
}

int canonical_n_tensors(const struct canonical *c)
{
    return c->n_bound;
}

bool canonical_is_vital(const struct canonical *c, const struct gguf_tensor *t)
{
    for (uint64_t i = 0; i < c->sources.n; i++) {
        const struct source *s = source_at(c, i);
        if ((s->t == t || (s->last && s->last->t == t)) && s->bound && dialect_is_vital(c, &c->family->tensors[s->row]))
            return true;
    }
    return false;
}

const char *canonical_tensor_at(const struct canonical *c, int i, const struct tensor_view **view)
{
    *view = NULL;
    if (i < 0 || i >= c->n_bound) return NULL;
    const struct source *s = source_at(c, (uint64_t)c->bound[i]);
    *view = &s->view;
    return s->name;
}

bool canonical_on_disk(const struct canonical *c, int i)
{
    return c->family->tensors[source_at(c, (uint64_t)c->bound[i])->row].flags & TENSOR_TABLE;
}

bool canonical_of_draft(const struct canonical *c, int i)
{
    return source_at(c, (uint64_t)c->bound[i])->layer >= c->n_layers;
}

uint64_t tensor_view_bytes(const struct tensor_view *v)
{
    const uint64_t row = quant_row_bytes(v->type, v->ne[0]);
    return row * (uint64_t)v->ne[1] * (uint64_t)v->ne[2] * (uint64_t)v->ne[3];
}

bool canonical_damaged(const struct canonical *c, struct err *e)
{
    for (int f = 0; f < c->n_files; f++)
        if (gguf_damaged(c->files[f], e)) return true;
    return false;
}
