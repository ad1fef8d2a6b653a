/* Parameters: each key of the family's table is read, looked at alone, compared with what tensors say, and replaced
 * where it is missing (spec dialects 1.3 to 1.6, 3, 6.2, 6.4). */
#include "dialect/dialect_internal.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

/* ---- one key of the file */

static const struct gguf_kv *find_kv(const struct canonical *c, const char *prefix, const char *name)
{
    char key[160];
    snprintf(key, sizeof key, "%s%s%s", prefix, *prefix ? "." : "", name);
    return gguf_set_kv_find(c->set, key);
}

/* The file's own architecture first, then the family's other prefixes, then none. */
const struct gguf_kv *dialect_key(const struct canonical *c, const char *name)
{
    const struct gguf_kv *kv = find_kv(c, c->arch, name);
    for (int i = 0; !kv && i < 4 && c->family->prefix[i]; i++) kv = find_kv(c, c->family->prefix[i], name);
    return kv ? kv : find_kv(c, "", name);
}

static const struct gguf_kv *find_key(const struct canonical *c, const struct key_row *row, enum origin *origin)
{
    const struct gguf_kv *kv = dialect_key(c, row->name);
    *origin = ORIGIN_KEY;
    for (int i = 0; !kv && i < 2 && row->also[i]; i++) {
        kv = dialect_key(c, row->also[i]);
        *origin = ORIGIN_ALIAS;
    }
    return kv;
}

static int read_number(const struct gguf_kv *kv, enum key_kind kind, uint64_t i, double *v, struct err *e)
{
    int64_t whole = 0;
    bool flag = false;
    int rc = 0;
    switch (kind) {
    case KEY_INT:
        rc = gguf_i64(kv, i, &whole, e), *v = (double)whole;
        break;
    case KEY_FLOAT:
        rc = gguf_f64(kv, i, v, e);
        break;
    case KEY_BOOL:
        rc = gguf_bool(kv, i, &flag, e), *v = flag;
        break;
    }
    return rc;
}

static void number_text(char text[40], enum key_kind kind, double v)
{
    if (kind == KEY_BOOL)
        snprintf(text, 40, "%s", v != 0 ? "true" : "false");
    else
        snprintf(text, 40, kind == KEY_INT ? "%.0f" : "%.9g", v);
}

/* ---- allowed values */

static bool is_allowed(const char *allowed, double v)
{
    const char *dots = strstr(allowed, "..");
    if (dots) return v >= strtod(allowed, NULL) && v <= strtod(dots + 2, NULL);
    for (const char *p = allowed; *p;) {
        char *end;
        if (strtod(p, &end) == v) return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

static void allowed_text(char text[64], const struct key_row *row)
{
    size_t k = 0;
    if (row->kind == KEY_BOOL) {
        snprintf(text, 64, "%s", strchr(row->allowed, ' ') ? "true, false" : "true");
        return;
    }
    const char *dots = strstr(row->allowed, "..");
    if (dots) {
        snprintf(text, 64, "%.*s to %s", (int)(dots - row->allowed), row->allowed, dots + 2);
        return;
    }
    for (const char *p = row->allowed; *p && k + 3 < 64; p++) {
        if (*p == ' ') text[k++] = ',';
        text[k++] = *p;
    }
    text[k] = 0;
}

/* Value i of n by a key of the given name; what says it, if not the key itself. */
struct said {
    struct gguf_str key;
    const char *by;
    int i, n;
};

static int check_allowed(const struct key_row *row, const struct said *s, double v, struct err *e)
{
    char got[40], allowed[64], index[16] = "";
    if (is_allowed(row->allowed, v)) return 0;
    number_text(got, row->kind, v);
    allowed_text(allowed, row);
    if (s->n > 1) snprintf(index, sizeof index, "[%d]", s->i);
    return err_set(e, ERR_MODEL, "%.*s%s = %s%s%s%s is not supported (only %s)", (int)s->key.n, s->key.p, index, got,
                   s->by ? ", which " : "", s->by ? s->by : "", s->by ? " says," : "", allowed);
}

static struct gguf_str name_of(const struct key_row *row)
{
    return (struct gguf_str){row->name, strlen(row->name)};
}

/* A list needs an entry for every block; more are of drafts. */
static int check_entries(const struct canonical *c, struct gguf_str key, uint64_t n, struct err *e)
{
    if (n == 1 || n >= (uint64_t)c->n_layers) return 0;
    return err_set(e, ERR_MODEL, "%.*s has %llu entries for %d blocks; one or at least as many are needed", (int)key.n,
                   key.p, (unsigned long long)n, c->n_layers);
}

static const struct key_row *row_of(const struct canonical *c, const char *key)
{
    int i = 0;
    while (i < c->family->n_keys && strcmp(c->family->keys[i].name, key) != 0) i++;
    assert(i < c->family->n_keys); /* a key that the family's table has */
    return &c->family->keys[i];
}

int dialect_refuse_value(const struct canonical *c, struct err *e, const char *key, int64_t value, const char *fmt, ...)
{
    char allowed[300];
    const struct value *v = dialect_value(c, key);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(allowed, sizeof allowed, fmt, ap);
    va_end(ap);
    if (v->origin == ORIGIN_TENSOR)
        return err_set(e, ERR_MODEL, "%s = %lld, which %s says, is not supported (only %s)", key, (long long)value,
                       row_of(c, key)->from, allowed);
    if (v->kv)
        return err_set(e, ERR_MODEL, "%.*s = %lld is not supported (only %s)", (int)v->kv->key.n, v->kv->key.p,
                       (long long)value, allowed);
    return err_set(e, ERR_MODEL, "%s = %lld is not supported (only %s)", key, (long long)value, allowed);
}

/* ---- resolving */

/* Values of one key while they are put together. */
struct draft {
    const struct key_row *row;
    const struct gguf_kv *kv;
    enum origin kv_origin;
    int n;
    double *said;  /* by the key: n values, or one for all */
    double *shown; /* by tensors */
    bool *has_shown;
};

static int read_key(const struct canonical *c, struct draft *d, struct err *e)
{
    const struct key_row *row = d->row;
    d->kv = find_key(c, row, &d->kv_origin);
    if (!d->kv) return 0;
    const struct gguf_kv *kv = d->kv;
    if (kv->type == GGUF_ARRAY && !(row->flags & KEY_PER_LAYER))
        return err_set(e, ERR_MODEL, "%.*s is an array; one value is needed", (int)kv->key.n, kv->key.p);
    int rc = check_entries(c, kv->key, kv->count, e);
    for (int i = 0; i < d->n && rc == 0; i++) {
        const struct said s = {.key = kv->key, .i = i, .n = kv->count > 1 ? 2 : 1};
        if (i > 0 && (uint64_t)i >= kv->count) { /* one value for all, or a list without the draft */
            d->said[i] = d->said[i - 1];
            continue;
        }
        rc = read_number(kv, row->kind, (uint64_t)i, &d->said[i], e);
        if (rc == 0) rc = check_allowed(row, &s, d->said[i], e);
    }
    return rc;
}

static double largest(const double *v, int n)
{
    double m = v[0];
    for (int i = 1; i < n; i++) m = v[i] > m ? v[i] : m;
    return m;
}

/* Blocks may be counted with the draft's behind them. */
static bool counts_draft(const struct canonical *c, const struct key_row *row, double said, double shown)
{
    return strcmp(row->name, c->family->key_layers) == 0 &&
           said == shown + (double)canonical_int(c, c->family->key_draft);
}

/* Blocks that the file says the model has, and more than a draft's are not there: a half of a model that is published
 * in two files, say. What else is missing may be there too. */
static int check_whole(struct canonical *c, const struct draft *d, struct err *e)
{
    if (!d->kv || !d->has_shown[0] || strcmp(d->row->name, c->family->key_layers) != 0) return 0;
    const double said = d->said[0], shown = d->shown[0], draft = (double)canonical_int(c, c->family->key_draft);
    if (said <= shown + (draft > 1 ? draft : 1)) return 0;
    c->partial = true;
    dialect_advise(c, ADVICE_SAID);
    return err_set(e, ERR_MODEL,
                   "blk.%.0f to blk.%.0f are missing: the model has %.0f blocks (%.*s), and this is a part of it; get "
                   "the file with the others, too, and " DIALECT_GIVE_BOTH
                   "; or, if there is no such file, the key is wrong: get another publisher's",
                   shown, said - 1, said, (int)d->kv->key.n, d->kv->key.p);
}

/* A scalar for a quantity that differs by block stands for the largest. */
static void warn_mismatch(struct canonical *c, const struct draft *d)
{
    char said[40], shown[40], index[16] = "";
    int first = -1, n = 0;
    const bool scalar = d->n > 1 && d->kv->count == 1;
    for (int i = 0; i < d->n; i++) {
        if (!d->has_shown[i]) continue;
        if (scalar ? d->said[i] < d->shown[i] : d->said[i] != d->shown[i])
            if (n++ == 0) first = i;
    }
    if (scalar && d->has_shown[0] && n == 0 && d->said[0] != largest(d->shown, d->n)) first = 0, n = 1;
    if (n == 0 || counts_draft(c, d->row, d->said[first], d->shown[first])) return;
    number_text(said, d->row->kind, d->said[first]);
    number_text(shown, d->row->kind, scalar ? largest(d->shown, d->n) : d->shown[first]);
    if (d->n > 1 && !scalar) snprintf(index, sizeof index, "[%d]", first);
    dialect_warn(c, "W9", "key %s%s says %s, tensors say %s: using %s", d->row->name, index, said, shown, shown);
}

static int fallback(const struct canonical *c, const struct key_row *row, double *v, struct err *e)
{
    const bool needed = !row->needed || row->needed(c);
    *v = 0;
    if (!needed) return 0;
    if (row->rule == RULE_PUBLISHED && c->published) {
        *v = row->constant[c->published - c->family->published];
        return 0;
    }
    *v = row->constant[0];
    if (row->rule == RULE_ANY || row->rule == RULE_DEFAULT || row->rule == RULE_QUIET) return 0;
    /* The one cause, not what follows from it. */
    if (row->derive && strcmp(row->from, "token_embd") == 0 && !dialect_find(c, -1, "token_embd"))
        return err_set(e, ERR_MODEL, "token_embd.weight is missing");
    return err_set(e, ERR_MODEL, "%s.%s is missing and cannot be derived for this shape%s%s%s", c->family->short_name,
                   row->name, row->derive ? ": neither do tensors tell it (" : "", row->derive ? row->from : "",
                   row->derive ? ")" : "");
}

static void note_origin(struct canonical *c, const struct draft *d, const struct value *v)
{
    char text[40];
    number_text(text, d->row->kind, v->v[0]);
    if (v->origin == ORIGIN_TENSOR && !d->kv) {
        if (v->n > 1)
            dialect_note(c, NOTE_DERIVED, "%s (%s)", d->row->name, d->row->from);
        else
            dialect_note(c, NOTE_DERIVED, "%s %s (%s)", d->row->name, text, d->row->from);
    }
    if (v->origin == ORIGIN_CONSTANT)
        dialect_note(c, NOTE_DEFAULT, "%s %s (constant of %s)", d->row->name, text,
                     d->row->rule == RULE_PUBLISHED ? c->published->name : c->family->name);
    if (v->origin == ORIGIN_CONSTANT && d->row->rule == RULE_ANY)
        dialect_warn(c, "W9", "key %s is missing: using %s, as in every published %s", d->row->name, text,
                     c->family->name);
    if (v->origin == ORIGIN_DEFAULT && d->row->rule == RULE_DEFAULT)
        dialect_note(c, NOTE_DEFAULT, "%s %s", d->row->name, text);
    if (d->kv && d->kv->count > 1 && d->kv->count != (uint64_t)v->n)
        dialect_note(c, NOTE_DERIVED, "%s (file has %llu entries for %d blocks)", d->row->name,
                     (unsigned long long)d->kv->count, v->n);
}

static int choose(struct canonical *c, const struct draft *d, struct value *v, struct err *e)
{
    const struct key_row *row = d->row;
    bool key_used = false, tensor_used = false;
    for (int i = 0; i < d->n; i++) {
        if (d->kv && (!d->has_shown[i] || row->flags & KEY_WINS)) {
            v->v[i] = d->said[i];
            key_used = true;
        } else if (d->has_shown[i]) {
            v->v[i] = d->shown[i];
            tensor_used = true;
        } else {
            const int rc = fallback(c, row, &v->v[i], e);
            if (rc) return rc;
        }
    }
    const bool agrees = d->kv && memcmp(v->v, d->said, (size_t)d->n * sizeof *v->v) == 0;
    const bool constant = row->rule == RULE_PUBLISHED || row->rule == RULE_ANY;
    if (agrees || (key_used && !tensor_used))
        v->origin = d->kv_origin;
    else if (tensor_used)
        v->origin = ORIGIN_TENSOR;
    else
        v->origin = constant && (!row->needed || row->needed(c)) ? ORIGIN_CONSTANT : ORIGIN_DEFAULT;
    return 0;
}

static int resolve(struct canonical *c, const struct key_row *row, struct value *v, struct err *e)
{
    struct draft d = {.row = row, .n = row->flags & KEY_PER_LAYER ? canonical_n_blocks(c) : 1};
    v->n = d.n;
    double *values = mem_alloc((size_t)d.n * sizeof *values);
    d.said = mem_alloc((size_t)d.n * sizeof *d.said);
    d.shown = mem_alloc((size_t)d.n * sizeof *d.shown);
    d.has_shown = mem_alloc((size_t)d.n * sizeof *d.has_shown);
    int rc = read_key(c, &d, e);
    for (int i = 0; i < d.n && rc == 0; i++) {
        const struct said s = {name_of(row), row->from, i, row->flags & KEY_PER_LAYER ? 2 : 1};
        d.has_shown[i] = row->derive && row->derive(c, i, &d.shown[i]);
        if (d.has_shown[i]) rc = check_allowed(row, &s, d.shown[i], e);
    }
    v->kv = d.kv;
    v->v = values;
    if (rc == 0) rc = choose(c, &d, v, e);
    if (rc == 0) rc = check_whole(c, &d, e);
    if (rc == 0 && d.kv && !(row->flags & KEY_WINS)) warn_mismatch(c, &d);
    if (rc == 0) note_origin(c, &d, v);
    mem_free(d.said);
    mem_free(d.shown);
    mem_free(d.has_shown);
    return rc;
}

/* The published model with this width and length, once both are known. */
static void note_published(struct canonical *c)
{
    if (c->published || !dialect_value(c, c->family->key_width)->v || !dialect_value(c, c->family->key_layers)->v)
        return;
    const int64_t width = canonical_int(c, c->family->key_width), layers = canonical_int(c, c->family->key_layers);
    for (int i = 0; i < 2; i++)
        if (c->family->published[i].width == width && c->family->published[i].layers == layers)
            c->published = &c->family->published[i];
}

/* Not a limit of ours: values that contradict each other, of a file or of one that is to be written. */
static int refuse_used(struct canonical *c, const struct value *K, double used, double most, struct err *e)
{
    if (!K->kv) return err_set(e, ERR_MODEL, "%s = %.0f, but the model has %.0f experts", c->family->used, used, most);
    dialect_advise(c, ADVICE_CONVERSION);
    return err_set(e, ERR_MODEL, "%.*s = %.0f, but the model has %.0f experts: the key is wrong", (int)K->kv->key.n,
                   K->kv->key.p, used, most);
}

/* Expert counts may differ by block; where a block has fewer than are used, it uses all (spec 6.4). */
static int fit_used_experts(struct canonical *c, struct err *e)
{
    const struct value *E = dialect_value(c, c->family->experts), *K = dialect_value(c, c->family->used);
    const double most = largest(E->v, E->n);
    int fewer = 0, cut = 0;
    for (int l = 0; l < E->n; l++) {
        if (K->v[l] > most) return refuse_used(c, K, K->v[l], most, e);
        fewer += E->v[l] < most;
        cut += K->v[l] > E->v[l];
        if (K->v[l] > E->v[l]) K->v[l] = E->v[l];
    }
    if (fewer)
        dialect_warn(c, "W10", "%d of %d blocks have fewer than %d experts: a pruned model", fewer, c->n_layers,
                     (int)most);
    if (cut) dialect_warn(c, "W10", "%d blocks have fewer experts than are used: they use all of theirs", cut);
    return 0;
}

/* A value that no rule can trip over, for one that is refused: keys behind it are looked at all the same. */
static void stand_in(const struct key_row *row, struct value *v)
{
    const double value = is_allowed(row->allowed, 1) ? 1 : strtod(row->allowed, NULL);
    for (int i = 0; i < v->n; i++) v->v[i] = value;
}

int dialect_resolve_keys(struct canonical *c, struct err *e)
{
    c->values = mem_alloc((size_t)c->family->n_keys * sizeof *c->values);
    const int bad = dialect_read_arrays(c, e);
    if (bad) return bad;
    for (int i = 0; i < c->family->n_keys; i++) {
        const int why = resolve(c, &c->family->keys[i], &c->values[i], e);
        const int rc = dialect_refused(c, why, e);
        if (rc) return rc;
        if (why) stand_in(&c->family->keys[i], &c->values[i]);
        note_published(c);
    }
    return dialect_refused(c, fit_used_experts(c, e), e);
}

/* ---- values without a file */

static int take(struct canonical *c, const struct key_row *row, const struct canonical_given *g, struct value *v,
                struct err *e)
{
    const struct gguf_str key = name_of(row);
    v->n = row->flags & KEY_PER_LAYER ? canonical_n_blocks(c) : 1;
    v->v = mem_alloc((size_t)v->n * sizeof *v->v);
    if (!g)
        for (int i = 0; i < v->n; i++) {
            const int rc = row->derive && row->derive(c, i, &v->v[i]) ? 0 : fallback(c, row, &v->v[i], e);
            if (rc) return rc;
        }
    int rc = g && v->n > 1 ? check_entries(c, key, (uint64_t)g->n, e) : 0;
    for (int i = 0; g && i < v->n && rc == 0; i++) {
        const struct said s = {.key = key, .i = i, .n = g->n};
        v->v[i] = g->v[g->n == 1 ? 0 : i];
        rc = check_allowed(row, &s, v->v[i], e);
    }
    return rc;
}

int dialect_take_keys(struct canonical *c, const struct canonical_given *given, int n, struct err *e)
{
    int rc = 0, taken = 0;
    c->values = mem_alloc((size_t)c->family->n_keys * sizeof *c->values);
    for (int i = 0; i < c->family->n_keys && rc == 0; i++) {
        const struct canonical_given *g = NULL;
        for (int k = 0; k < n && !g; k++)
            if (strcmp(given[k].key, c->family->keys[i].name) == 0) g = &given[k];
        taken += g != NULL;
        rc = take(c, &c->family->keys[i], g, &c->values[i], e);
        if (rc == 0) note_published(c);
    }
    assert(rc || taken == n);
    return rc ? rc : fit_used_experts(c, e);
}

const struct value *dialect_value(const struct canonical *c, const char *key)
{
    return &c->values[row_of(c, key) - c->family->keys];
}

/* ---- what the model asks */

static const struct value *known_value(const struct canonical *c, const char *key)
{
    const struct value *v = dialect_value(c, key);
    assert(v->v);
    return v;
}

static double value_at(const struct canonical *c, const char *key, int layer)
{
    const struct value *v = known_value(c, key);
    assert(layer >= 0 && layer < canonical_n_blocks(c));
    return v->v[v->n == 1 ? 0 : layer];
}

static double value_of(const struct canonical *c, const char *key)
{
    const struct value *v = known_value(c, key);
    return largest(v->v, v->n);
}

int64_t canonical_int(const struct canonical *c, const char *key)
{
    return (int64_t)value_of(c, key);
}

double canonical_float(const struct canonical *c, const char *key)
{
    return value_of(c, key);
}

bool canonical_bool(const struct canonical *c, const char *key)
{
    return value_of(c, key) != 0;
}

int64_t canonical_int_at(const struct canonical *c, const char *key, int layer)
{
    return (int64_t)value_at(c, key, layer);
}

double canonical_float_at(const struct canonical *c, const char *key, int layer)
{
    return value_at(c, key, layer);
}

enum origin canonical_origin(const struct canonical *c, const char *key)
{
    return known_value(c, key)->origin;
}

/* ---- digest */

uint64_t dialect_digest(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static bool matters(const struct canonical *c, const struct key_row *row, int layer)
{
    return (!row->needed || row->needed(c)) && (!row->matters || row->matters(c, layer));
}

uint64_t canonical_digest(const struct canonical *c)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < c->family->n_keys; i++) {
        const struct key_row *row = &c->family->keys[i];
        const struct value *v = &c->values[i];
        h = dialect_digest(h, row->name, strlen(row->name));
        for (int l = 0; v->v && l < (v->n == 1 ? 1 : c->n_layers); l++)
            if (matters(c, row, l)) h = dialect_digest(h, &v->v[l], sizeof v->v[l]);
    }
    return dialect_digest_arrays(c, h);
}
