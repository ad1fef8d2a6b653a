/* From sources to views: presence, shape, type and values of every tensor of the table; then small tensors become
 * copies (spec dialects 4, 13.2). Problems are collected, so that one refusal names up to three of them. */
#include "dialect/dialect_internal.h"
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "quant/quant.h"

enum { MOST_NOTED = 20 };

/* Tensors with the same fault: told once, with the first of them and what is wrong there. */
struct several {
    int n;
    const struct source *first;
    int64_t what;
};

struct problems {
    struct canonical *c; /* whose notes get them too, or NULL: those of a draft refuse nothing */
    struct str text;
    int n;
    int n_unsound;          /* tensors with NaN or Inf that are only warned about */
    bool presence;          /* nothing but missing tensors is looked for */
    int n_gaps, gap[2];     /* tensors of one row that are missing: first and last block */
    struct several foreign; /* of a type that is not ggml's */
    struct several uneven;  /* of as many experts, where the block's router has another number */
    struct several zeros;   /* of zeros only */
    struct several spoilt;  /* NaN or Inf in that row, and every token goes through it */
};

/* Of the problem that comes next. */
static void advise(struct problems *p, enum dialect_advice advice)
{
    if (p->c && p->n == 0) dialect_advise(p->c, advice);
}

__attribute__((format(printf, 2, 3))) static void problem(struct problems *p, const char *fmt, ...)
{
    struct str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    if (p->n++ < 3) str_printf(&p->text, "%s%s", p->n > 1 ? "; " : "", str_c(&text));
    if (p->c && p->n <= MOST_NOTED) dialect_note(p->c, NOTE_PROBLEM, "%s", str_c(&text));
    str_free(&text);
}

static void add(struct several *k, const struct source *s, int64_t what)
{
    if (k->n++ == 0) k->first = s, k->what = what;
}

/* ", and so are 3 more tensors", or "". */
static const char *others(char text[80], const struct several *k, const char *one, const char *more)
{
    const int n = k->n - 1;
    text[0] = 0;
    if (n > 0) snprintf(text, 80, ", and so %s %d more tensor%s", n > 1 ? more : one, n, n > 1 ? "s" : "");
    return text;
}

static int problems_end(struct problems *p, struct err *e)
{
    int rc = 0;
    if (p->n > 3) str_printf(&p->text, "; and %d more", p->n - 3);
    if (p->c && p->n > MOST_NOTED) dialect_note(p->c, NOTE_PROBLEM, "and %d more", p->n - MOST_NOTED);
    if (p->n > 0) rc = err_set(e, ERR_MODEL, "%s", str_c(&p->text));
    str_free(&p->text);
    return rc;
}

/* ---- types */

/* One problem of all of them; the census of types has the others' numbers. */
static void tell_foreign(const struct canonical *c, struct problems *p)
{
    char fork[FORK_TEXT], more[80] = "";
    const int n = p->foreign.n - 1;
    if (n < 0) return;
    dialect_fork(c, p->foreign.first, fork);
    if (n > 0) snprintf(more, sizeof more, ", and %d more tensor%s such a type", n, n > 1 ? "s have" : " has");
    advise(p, ADVICE_TYPES);
    problem(p, "%s has %s%s", p->foreign.first->name, fork, more);
    p->foreign.n = 0;
}

static bool type_is_usable(const struct source *s, const struct tensor_row *row, struct problems *p)
{
    const uint32_t type = s->t->type;
    const struct quant_type *q = quant_type(type);
    if (!q)
        add(&p->foreign, s, 0);
    else if ((row->flags & TENSOR_IDS) && type != QT_I32 && type != QT_I64)
        problem(p, "%s has type %s; expert ids are I32 or I64", s->name, q->name);
    else if (!(row->flags & TENSOR_IDS) && (!q->decode || (type == QT_I32 && !(row->flags & TENSOR_TABLE))))
        advise(p, ADVICE_TYPES), problem(p, "%s has type %s, which this version cannot compute with", s->name, q->name);
    else
        return true;
    return false;
}

/* ---- views */

/* Strides are those of the file's tensor: a part of a split one keeps the distance of whole experts. */
static void make_view(const struct canonical *c, struct source *s, const int64_t want[4])
{
    const struct gguf_tensor *t = s->t;
    const uint64_t row = quant_row_bytes(t->type, (int64_t)t->ne[0]);
    int64_t before, all;
    dialect_shape_parts(c, s, want, &before, &all);
    const uint64_t skip = (uint64_t)before * row;
    s->view = (struct tensor_view){.type = t->type, .file = s->file, .offset = t->offset + skip};
    memcpy(s->view.ne, want, sizeof s->view.ne);
    s->view.stride[1] = row;
    s->view.stride[2] = row * (uint64_t)all;
    s->view.stride[3] = s->view.stride[2] * (uint64_t)want[2];
    s->view.data = gguf_data(c->files[s->file]) + s->view.offset;
}

static void own(struct source *s, void *copy, uint32_t type, size_t row)
{
    s->copy = copy;
    s->view.type = type;
    s->view.file = -1;
    s->view.offset = 0;
    s->view.data = copy;
    s->view.stride[1] = row;
    s->view.stride[2] = row * (uint64_t)s->view.ne[1];
    s->view.stride[3] = s->view.stride[2] * (uint64_t)s->view.ne[2];
}

/* ---- damage */

static int64_t load_id(const uint8_t *p, uint32_t type)
{
    int64_t wide;
    int32_t narrow;
    if (type == QT_I64) return memcpy(&wide, p, sizeof wide), wide;
    return memcpy(&narrow, p, sizeof narrow), narrow;
}

static int64_t id_at(const struct source *s, int64_t row, int64_t k)
{
    const size_t width = s->view.type == QT_I64 ? 8 : 4;
    return load_id(s->view.data + (size_t)row * s->view.stride[1] + (size_t)k * width, s->view.type);
}

static void check_ids(const struct canonical *c, const struct source *s, struct problems *p)
{
    const int64_t E = canonical_int_at(c, c->family->experts, s->layer);
    for (int64_t r = 0; r < s->view.ne[1]; r++) {
        for (int64_t k = 0; k < s->view.ne[0]; k++) {
            const int64_t id = id_at(s, r, k);
            if (id >= 0 && id < E) continue;
            advise(p, ADVICE_CONVERSION);
            problem(p,
                    "%s: hash routing names expert %lld of %lld: experts were cut away (pruned) and this table still "
                    "sends words to them",
                    s->name, (long long)id, (long long)E);
            return;
        }
    }
}

/* An embedding that is the output matrix too is met whole. */
bool dialect_is_vital(const struct canonical *c, const struct tensor_row *row)
{
    const bool by_row = (row->flags & TENSOR_TABLE) ||
                        (row->class == CLASS_EDGE && strcmp(row->stem, "output") != 0 && dialect_find(c, -1, "output"));
    return row->class != CLASS_EXPERT && !by_row;
}

/* What is wrong in every token is refused, what may never be met earns a warning (spec 13.2 W8). */
static void check_values(struct canonical *c, const struct source *s, const struct tensor_row *row, bool all,
                         struct problems *p)
{
    if (dialect_is_void(c, s)) {
        add(&p->zeros, s, 0);
        return;
    }
    int64_t r = all ? dialect_scan_values(s) : s->part > 0 ? -1 : dialect_scan(c, s);
    if (r < 0 && s->last) r = dialect_scan(c, s->last);
    if (r < 0) return;
    if (!dialect_is_vital(c, row)) {
        if (p->n_unsound++ < 3)
            dialect_warn(c, "W8", "%s holds NaN or Inf in row %lld: " CANONICAL_DAMAGE CANONICAL_DAMAGE_REMEDY, s->name,
                         (long long)r);
    } else {
        add(&p->spoilt, s, r);
    }
}

static void tell_damage(struct problems *p)
{
    char more[80];
    if (p->zeros.n) {
        advise(p, ADVICE_SAID);
        problem(p, "%s is zeros only%s: the download was not finished; continue it or get it again",
                p->zeros.first->name, others(more, &p->zeros, "is", "are"));
    }
    if (p->spoilt.n) {
        advise(p, ADVICE_SAID);
        problem(p, "%s holds NaN or Inf in row %lld%s: " CANONICAL_VITAL_DAMAGE CANONICAL_DAMAGE_REMEDY,
                p->spoilt.first->name, (long long)p->spoilt.what, others(more, &p->spoilt, "does", "do"));
    }
}

/* ---- copies */

static int no_memory(const struct source *s, struct err *e)
{
    return err_set(e, ERR_MEMORY, "no memory for a copy of %s", s->name);
}

/* An F32 copy of a tensor that lies in one piece. A vector may be stored as rows of one value. */
static int widen(struct source *s, struct err *e)
{
    const int64_t k = s->view.ne[0], rows = s->view.ne[1] * s->view.ne[2] * s->view.ne[3];
    const size_t from = quant_row_bytes(s->view.type, k);
    float *copy = mem_try_aligned((size_t)(k * rows) * sizeof *copy, 64);
    if (!copy) return no_memory(s, e);
    for (int64_t r = 0; r < rows; r++)
        quant_type(s->view.type)->decode(s->view.data + (size_t)r * from, copy + r * k, k);
    own(s, copy, QT_F32, (size_t)k * sizeof *copy);
    return 0;
}

/* An I32 copy of the first columns of a table of expert ids. */
static int copy_ids(struct source *s, struct err *e)
{
    const int64_t K = s->view.ne[0], rows = s->view.ne[1];
    int32_t *copy = mem_try_aligned((size_t)(K * rows) * sizeof *copy, 64);
    if (!copy) return no_memory(s, e);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < K; k++) copy[r * K + k] = (int32_t)id_at(s, r, k);
    own(s, copy, QT_I32, (size_t)K * sizeof *copy);
    return 0;
}

static bool is_small(const struct tensor_row *row)
{
    return (row->flags & TENSOR_SMALL) || !strchr(row->shape, ' ');
}

/* What is small, but no matrices of halves, which are multiplied as they are: every step would read twice as much. */
static bool is_widened(const struct source *s, const struct tensor_row *row)
{
    const bool halves = s->view.type == QT_F16 || s->view.type == QT_BF16, vector = !strchr(row->shape, ' ');
    return is_small(row) && (vector || row->class == CLASS_VECTOR || !halves);
}

/* Columns of one tensor, then those of the other, in every row. */
static int join(const struct canonical *c, struct source *s, struct err *e)
{
    const struct source *last = s->last;
    const size_t half = quant_row_bytes(s->view.type, s->view.ne[0] / 2);
    const uint8_t *a = gguf_data(c->files[s->file]) + s->t->offset,
                  *b = gguf_data(c->files[last->file]) + last->t->offset;
    uint8_t *copy = mem_try_aligned((size_t)s->view.ne[1] * 2 * half, 64);
    if (!copy) return no_memory(s, e);
    for (int64_t r = 0; r < s->view.ne[1]; r++) {
        memcpy(copy + (size_t)r * 2 * half, a + (size_t)r * half, half);
        memcpy(copy + (size_t)r * 2 * half + half, b + (size_t)r * half, half);
    }
    own(s, copy, s->view.type, 2 * half);
    return 0;
}

/* Once nothing is left to refuse: a damaged file costs no memory. */
static int make_copies(struct canonical *c, struct err *e)
{
    int rc = 0;
    for (uint64_t i = 0; i < c->sources.n && rc == 0; i++) {
        struct source *s = source_at(c, i);
        const struct tensor_row *row = &c->family->tensors[s->row];
        if (!s->bound) continue;
        if (s->last)
            rc = c->look ? 0 : join(c, s, e);
        else if (row->flags & TENSOR_IDS && c->look)
            own(s, NULL, QT_I32, (size_t)s->view.ne[0] * sizeof(int32_t));
        else if (row->flags & TENSOR_IDS)
            rc = copy_ids(s, e);
        else if (is_widened(s, row) && c->look)
            own(s, NULL, QT_F32, (size_t)s->view.ne[0] * sizeof(float));
        else if (is_widened(s, row))
            rc = widen(s, e);
    }
    return rc;
}

/* ---- rows of the table */

static bool may_be_missing(const struct canonical *c, const struct tensor_row *row)
{
    if (row->flags & TENSOR_OPTIONAL) return true;
    if (!(row->flags & TENSOR_ALL_OR_NONE)) return false;
    for (int l = 0; l < c->n_layers; l++)
        if (dialect_find(c, l, row->stem)) return false;
    return true;
}

static void missing(int layer, struct problems *p)
{
    if (p->n_gaps++ == 0) p->gap[0] = layer;
    p->gap[1] = layer;
}

static void tell_table(const char *name, const char *also, struct problems *p)
{
    advise(p, ADVICE_SAID);
    problem(p,
            "%s%s is missing: this is the n-gram table, which is published in a file of its own; get that from the "
            "same place and give it second: -m MODEL -m TABLE (to check them: --check-file MODEL --check-file TABLE)",
            name, also);
}

/* One problem of all blocks that lack the row's tensor. */
static void tell_missing(const struct tensor_row *row, struct problems *p)
{
    char name[DIALECT_NAME], others[80] = "";
    struct str also = {0};
    const int n = p->n_gaps - 1;
    p->n_gaps = 0;
    if (n < 0) return;
    dialect_name(name, row, p->gap[0]);
    dialect_also(&also, row, p->gap[0]);
    if (row->flags & TENSOR_TABLE) {
        tell_table(name, str_c(&also), p);
        str_free(&also);
        return;
    }
    if (n > 0)
        snprintf(others, sizeof others, ", and so %s %d more block%s up to blk.%d",
                 n > 1 ? "are those of" : "is that of", n, n > 1 ? "s" : "", p->gap[1]);
    problem(p, "%s%s is missing%s", name, str_c(&also), others);
    str_free(&also);
}

/* Experts were cut away here or in the router, and not in both: nothing else is wrong with the shape. */
static bool is_uneven(const struct canonical *c, const struct source *s, const int64_t want[4])
{
    const struct tensor_row *row = &c->family->tensors[s->row];
    const int at = dialect_shape_experts(c, row);
    int64_t other[4];
    if (at < 0) return false;
    memcpy(other, want, sizeof other);
    other[at] = (int64_t)s->t->ne[at];
    return dialect_shape_fits(c, s, other, row->flags);
}

static void tell_uneven(const struct canonical *c, struct problems *p)
{
    const struct source *s = p->uneven.first;
    char more[80];
    if (!p->uneven.n) return;
    const struct tensor_row *row = &c->family->tensors[s->row];
    advise(p, ADVICE_CONVERSION);
    problem(p, "blk.%d has %lld experts in %s and %lld in its router%s: pruned only in part", s->layer,
            (long long)s->t->ne[dialect_shape_experts(c, row)], row->stem, (long long)p->uneven.what,
            others(more, &p->uneven, "differs", "differ"));
    p->uneven.n = 0;
}

static void misshapen(const struct canonical *c, const struct source *s, const int64_t want[4], struct problems *p)
{
    if (is_uneven(c, s, want)) {
        add(&p->uneven, s, want[dialect_shape_experts(c, &c->family->tensors[s->row])]);
        return;
    }
    char have_text[96], want_text[96];
    int64_t have[4], before, all;
    dialect_shape_parts(c, s, want, &before, &all);
    for (int i = 0; i < 4; i++) have[i] = (int64_t)s->t->ne[i];
    dialect_shape_text(have_text, have);
    int64_t whole[4] = {want[0], all, want[2], want[3]};
    dialect_shape_text(want_text, whole);
    problem(p, "%.*s is %s, expected %s", (int)s->t->name.n, s->t->name.p, have_text, want_text);
}

/* A tensor that the file has as two, with half of the columns each: a view without data until the copy is made. True:
 * there are two of them. */
static bool bind_halves(struct canonical *c, const struct tensor_row *row, int layer, struct problems *p)
{
    const struct source *a = row->halves[0] ? dialect_find(c, layer, row->halves[0]) : NULL;
    const struct source *b = row->halves[1] ? dialect_find(c, layer, row->halves[1]) : NULL;
    int64_t want[4], half[4];
    struct err e = {0};
    if (!a || !b) return false;
    if (p->presence) return true;
    dialect_shape(c, row, layer, want);
    memcpy(half, want, sizeof half);
    half[0] /= 2;
    if (!type_is_usable(a, row, p) || !type_is_usable(b, row, p)) return true;
    if (!dialect_shape_fits(c, a, half, 0) || !dialect_shape_fits(c, b, half, 0))
        misshapen(c, dialect_shape_fits(c, a, half, 0) ? b : a, half, p);
    else if (a->t->type != b->t->type)
        problem(p, "%s and %s have two types, %s and %s; one is needed", a->name, b->name, quant_type(a->t->type)->name,
                quant_type(b->t->type)->name);
    else {
        struct source *s = dialect_add_joined(c, a, b, row, layer, &e);
        if (!s) {
            problem(p, "%s", e.msg);
            return true;
        }
        s->view = (struct tensor_view){.type = a->t->type};
        memcpy(s->view.ne, want, sizeof want);
        own(s, NULL, a->t->type, quant_row_bytes(a->t->type, want[0]));
        s->bound = true;
        dialect_note(c, NOTE_SPLIT, "%s, %s -> %s", row->halves[0], row->halves[1], row->stem);
    }
    return true;
}

static void bind_one(struct canonical *c, const struct tensor_row *row, int layer, bool optional, struct problems *p)
{
    struct source *s = (struct source *)dialect_find(c, layer, row->stem);
    int64_t want[4];
    if (row->flags & TENSOR_HALF || (row->when && !row->when(c, layer))) return;
    if (!s && bind_halves(c, row, layer, p)) return;
    if (!s) {
        if (!optional) missing(layer, p);
        return;
    }
    if (p->presence) return;
    dialect_shape(c, row, layer, want);
    if (!type_is_usable(s, row, p)) return;
    if (!dialect_shape_fits(c, s, want, row->flags)) {
        misshapen(c, s, want, p);
        return;
    }
    if (quant_row_bytes(s->t->type, want[0]) == 0) {
        problem(p, "%s has rows that do not fill blocks of its type", s->name);
        return;
    }
    make_view(c, s, want);
    s->bound = true;
}

/* Data is looked at once all tensors are there: where the list of tensors is wrong, so is the place of their data. */
static void check_data(struct canonical *c, struct problems *p)
{
    for (uint64_t i = 0; i < c->sources.n; i++) {
        const struct source *s = source_at(c, i);
        const struct tensor_row *row = &c->family->tensors[s->row];
        if (s->bound && (row->flags & TENSOR_IDS))
            check_ids(c, s, p);
        else if (s->bound && !c->scanned)
            check_values(c, s, row, is_small(row) && !c->look, p);
    }
    tell_damage(p);
    struct err e = {0};
    if (!c->family->look || !c->family->look(c, &e)) return;
    advise(p, ADVICE_CONVERSION);
    problem(p, "%s", e.msg);
}

/* Tensors of the draft behind the trunk; an incomplete one is left alone (spec 13.2 W12). */
static void bind_draft(struct canonical *c)
{
    struct problems p = {0};
    for (int i = 0; i < c->family->n_tensors; i++) {
        for (int l = c->n_layers; l < canonical_n_blocks(c); l++)
            if (c->family->tensors[i].scope == SCOPE_BLOCK) bind_one(c, &c->family->tensors[i], l, false, &p);
        tell_missing(&c->family->tensors[i], &p);
    }
    tell_uneven(c, &p);
    tell_foreign(c, &p);
    if (p.n > 0) {
        dialect_warn(c, "W12", "draft ignored: %s%s", str_c(&p.text), p.n > 3 ? "; and more" : "");
        for (uint64_t i = 0; i < c->sources.n; i++)
            if (source_at(c, i)->layer >= c->n_layers) source_at(c, i)->bound = false;
        c->n_draft = 0;
    }
    str_free(&p.text);
}

static void bind_trunk(struct canonical *c, struct problems *p)
{
    for (int i = 0; i < c->family->n_tensors; i++) {
        const struct tensor_row *row = &c->family->tensors[i];
        const bool optional = may_be_missing(c, row), block = row->scope == SCOPE_BLOCK;
        for (int l = 0; l < (block ? c->n_layers : 1); l++) bind_one(c, row, block ? l : -1, optional, p);
        tell_missing(row, p);
    }
    tell_uneven(c, p);
    tell_foreign(c, p);
}

void dialect_note_missing(struct canonical *c)
{
    struct problems p = {.c = c, .presence = true};
    struct err e = {0};
    bind_trunk(c, &p);
    problems_end(&p, &e);
}

int dialect_bind(struct canonical *c, struct err *e)
{
    struct problems p = {.c = c};
    bind_trunk(c, &p);
    bind_draft(c);
    if (p.n == 0 && !c->headers_only) check_data(c, &p);
    if (p.n_unsound > 3) dialect_warn(c, "W8", "and %d more tensors hold NaN or Inf", p.n_unsound - 3);
    const int refused = problems_end(&p, e);
    return refused ? refused : make_copies(c, e);
}
