/* The merged directory of a file set (spec dialects 2.1): whose record counts where files disagree, which must agree,
 * and where each tensor is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "gguf/gguf_internal.h"
#include "gguf/gguf_set_internal.h"
#include "gguf/side_file.h"

enum { FILE_SHIFT = 40, NAMED_KEYS = 3 };

static bool key_begins(const struct gguf_kv *kv, const char *start)
{
    const size_t n = strlen(start);
    return kv->key.n >= n && memcmp(kv->key.p, start, n) == 0;
}

/* Records that each file has for itself. */
static bool is_of_file(const struct gguf_kv *kv)
{
    return key_begins(kv, "split.") || (kv->key.n == strlen(GGUF_ALIGN_KEY) && key_begins(kv, GGUF_ALIGN_KEY));
}

static uint64_t payload(const struct gguf_kv *kv)
{
    struct gguf_str s;
    if (!kv->count) return 0;
    if (kv->elem != GGUF_STRING) return kv->count * gguf_type_bytes(kv->elem);
    if (gguf_string(kv, kv->count - 1, &s, NULL)) return 0;
    return (uint64_t)((const uint8_t *)s.p + s.n - kv->data);
}

static bool same_number(const struct gguf_kv *a, const struct gguf_kv *b, uint64_t i)
{
    int64_t x, y;
    double v, w;
    if (gguf_i64(a, i, &x, NULL) == 0 && gguf_i64(b, i, &y, NULL) == 0) return x == y;
    return gguf_f64(a, i, &v, NULL) == 0 && gguf_f64(b, i, &w, NULL) == 0 && v == w;
}

/* The same value, whatever the width of its numbers. */
static bool same_value(const struct gguf_kv *a, const struct gguf_kv *b)
{
    if ((a->type == GGUF_ARRAY) != (b->type == GGUF_ARRAY) || a->count != b->count) return false;
    if (a->elem == b->elem) {
        const uint64_t n = payload(a);
        return n == payload(b) && (n == 0 || memcmp(a->data, b->data, (size_t)n) == 0);
    }
    for (uint64_t i = 0; i < a->count; i++)
        if (!same_number(a, b, i)) return false;
    return true;
}

/* ---- drafts: they have copies of what the model has, and count blocks differently */

static bool is_draft(const struct gguf *g)
{
    bool nextn = false;
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_str *name = &gguf_tensor_at(g, i)->name;
        if (name->n < 6 || memcmp(name->p, "blk.", 4)) continue;
        if (!memcmp(name->p + 4, "0.", 2)) return false;
        for (uint64_t at = 5; !nextn && at + 7 <= name->n; at++) nextn = !memcmp(name->p + at, ".nextn.", 7);
    }
    return nextn;
}

/* ---- metadata */

static int no_memory(const struct gguf_set *s, struct err *e)
{
    return err_set(e, ERR_MEMORY, "no memory for the directory of %d files", s->n);
}

static void note_other(struct str *list, int n, const struct gguf_kv *kv, const struct gguf *g)
{
    const char *path = gguf_path(g), *slash = strrchr(path, '/');
    if (n < NAMED_KEYS)
        str_printf(list, "%s%.*s in %s", n ? ", " : "", (int)(kv->key.n < 80 ? kv->key.n : 80), kv->key.p,
                   slash ? slash + 1 : path);
}

static int merge_keys(struct gguf_set *s, struct err *e)
{
    uint64_t most = 0, first;
    struct str others = {0};
    int rc = 0, n_others = 0;
    for (int f = 0; f < s->n; f++) most += gguf_n_kv(s->file[f]);
    s->kv = mem_try((size_t)(most + 1) * sizeof *s->kv);
    if (!s->kv) return no_memory(s, e);
    for (int f = 0; f < s->n && rc == 0; f++)
        for (uint64_t i = 0; i < gguf_n_kv(s->file[f]) && rc == 0; i++) {
            const struct gguf_kv *kv = gguf_kv_at(s->file[f], i);
            if (f && (is_of_file(kv) || s->draft[f])) continue;
            const int put = strmap_put(s->keys, kv->key.p, (size_t)kv->key.n, s->n_kv);
            if (put < 0)
                rc = no_memory(s, e);
            else if (put)
                s->kv[s->n_kv++] = kv;
            else if (strmap_get(s->keys, kv->key.p, (size_t)kv->key.n, &first) && !same_value(s->kv[first], kv))
                note_other(&others, n_others++, kv, s->file[f]);
        }
    if (rc == 0 && n_others)
        str_printf(&s->warning[1], "%d key%s of other files differ%s from the first file's and %s ignored: %s%s",
                   n_others, n_others > 1 ? "s" : "", n_others > 1 ? "" : "s", n_others > 1 ? "are" : "is",
                   str_c(&others), n_others > NAMED_KEYS ? ", ..." : "");
    str_free(&others);
    return rc;
}

/* ---- tensors */

static const struct gguf_tensor *tensor_of(const struct gguf_set *s, uint64_t place)
{
    return gguf_tensor_at(s->file[place >> FILE_SHIFT], place & ((UINT64_C(1) << FILE_SHIFT) - 1));
}

static int merge_tensor(struct gguf_set *s, int f, uint64_t i, struct err *e)
{
    const struct gguf_tensor *t = gguf_tensor_at(s->file[f], i);
    const int put = strmap_put(s->names, t->name.p, (size_t)t->name.n, (uint64_t)f << FILE_SHIFT | i);
    uint64_t first = 0;
    if (put < 0) return no_memory(s, e);
    if (put == 0 && s->draft[f]) return 0;
    s->n_tensors++;
    if (put) return 0;
    strmap_get(s->names, t->name.p, (size_t)t->name.n, &first);
    const bool shard = f < s->n_shards;
    return err_set(e, ERR_MODEL, "tensor %.*s is in two %s: %s and %s: %s", (int)(t->name.n < 200 ? t->name.n : 200),
                   t->name.p, shard ? "shards" : "files", gguf_path(s->file[first >> FILE_SHIFT]),
                   gguf_path(s->file[f]),
                   shard ? "one is of another download; get both again from one folder"
                         : "one is of another download, or each is a whole model; give one of them, or get both again "
                           "from one folder");
}

int gguf_set_merge(struct gguf_set *s, struct err *e)
{
    s->keys = strmap_new(0);
    s->names = strmap_new(0);
    s->draft = mem_try((size_t)s->n * sizeof *s->draft);
    if (!s->keys || !s->names || !s->draft) return no_memory(s, e);
    for (int f = gguf_set_rest(s); f < s->n; f++) s->draft[f] = is_draft(s->file[f]);
    int rc = merge_keys(s, e);
    for (int f = 0; f < s->n && rc == 0; f++)
        for (uint64_t i = 0; i < gguf_n_tensors(s->file[f]) && rc == 0; i++) rc = merge_tensor(s, f, i, e);
    return rc;
}

/* ---- lists of whole files */

static bool is_integer(const struct gguf_kv *kv)
{
    return kv->elem != GGUF_STRING && kv->elem != GGUF_F32 && kv->elem != GGUF_F64;
}

/* What a draft of its own counts for itself: blocks, and lists by block. */
static bool counts_blocks(const struct gguf_kv *kv, const char *prefix)
{
    static const char *const names[] = {"block_count", "nextn_predict_layers"};
    const size_t n = strlen(prefix);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (kv->key.n == n + strlen(names[i]) && !memcmp(kv->key.p + n, names[i], strlen(names[i]))) return true;
    return kv->type == GGUF_ARRAY;
}

/* Shapes are integers under the architecture's name. */
static int check_shapes(const struct gguf *a, const struct gguf *b, const char *prefix, struct err *e)
{
    const bool draft = is_draft(b);
    for (uint64_t i = 0; i < gguf_n_kv(a); i++) {
        const struct gguf_kv *x = gguf_kv_at(a, i), *y = gguf_kv_find_str(b, &x->key);
        if (!key_begins(x, prefix) || !is_integer(x) || (draft && counts_blocks(x, prefix))) continue;
        if (y && !same_value(x, y))
            return err_set(e, ERR_MODEL, "%s and %s are not of one model: key %.*s differs; give the files of one",
                           gguf_path(a), gguf_path(b), (int)(x->key.n < 200 ? x->key.n : 200), x->key.p);
    }
    return 0;
}

/* What lies beside the model in its folder, and was taken for a part of it. */
static int refuse_side_files(const struct gguf_set *s, struct err *e)
{
    struct side_file side;
    for (int f = 0; s->n > gguf_set_rest(s) && f < s->n; f++)
        if (side_file_tell(s->file[f], &side))
            return err_set(e, ERR_MODEL, "%s is %s: leave it out", gguf_path(s->file[f]), side.what);
    return 0;
}

int gguf_set_check_list(const struct gguf_set *s, struct err *e)
{
    static const char key[] = "general.architecture";
    const struct gguf_kv *arch = gguf_kv_find(s->file[0], key), *other;
    struct gguf_str name, also;
    char prefix[100];
    int rc = refuse_side_files(s, e);
    for (int f = gguf_set_rest(s); f < s->n && rc == 0; f++) {
        other = gguf_kv_find(s->file[f], key);
        const bool both = arch && other && gguf_string(arch, 0, &name, NULL) == 0 &&
                          gguf_string(other, 0, &also, NULL) == 0 && name.n < 90;
        if (!both || name.n != also.n || memcmp(name.p, also.p, (size_t)name.n) != 0)
            return err_set(e, ERR_MODEL, "%s and %s are not of one model: %s %s; give the files of one",
                           gguf_path(s->file[0]), gguf_path(s->file[f]), key, both ? "differs" : "is missing");
        const int n = snprintf(prefix, sizeof prefix, "%.*s.", (int)name.n, name.p);
        rc = n < 0 ? ERR_ARG : check_shapes(s->file[0], s->file[f], prefix, e);
    }
    return rc;
}

/* ---- what the directory answers */

bool gguf_set_is_draft(const struct gguf_set *s, int i)
{
    return s->draft[i];
}

uint64_t gguf_set_n_kv(const struct gguf_set *s)
{
    return s->n_kv;
}

const struct gguf_kv *gguf_set_kv_at(const struct gguf_set *s, uint64_t i)
{
    return i < s->n_kv ? s->kv[i] : NULL;
}

const struct gguf_kv *gguf_set_kv_find(const struct gguf_set *s, const char *key)
{
    uint64_t i;
    return strmap_get(s->keys, key, strlen(key), &i) ? s->kv[i] : NULL;
}

uint64_t gguf_set_n_tensors(const struct gguf_set *s)
{
    return s->n_tensors;
}

const struct gguf_tensor *gguf_set_tensor_find(const struct gguf_set *s, const char *name, uint64_t n)
{
    uint64_t place;
    return n <= SIZE_MAX && strmap_get(s->names, name, (size_t)n, &place) ? tensor_of(s, place) : NULL;
}
