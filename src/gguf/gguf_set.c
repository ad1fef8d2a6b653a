/* Opening the files of a set, and what makes them one: names, numbers, counts (spec dialects 2.1). */
#include "gguf/gguf_set.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "gguf/gguf_set_internal.h"
#include "gguf/name_list.h"
#include "gguf/piece_name.h"
#include "gguf/shard_name.h"

enum { MOST_SHARDS = 65535 }; /* split.* are numbers of 16 bits */
enum { PADDING = 65536 };     /* behind a file's last tensor, at most */

static int open_file(const char *path, struct gguf **g, struct err *e)
{
    struct err why = {0};
    struct str piece = {0};
    int rc = gguf_open(path, g, &why);
    if (rc == ERR_FORMAT && piece_name_tell(path, &piece))
        rc = err_set(e, ERR_MODEL, "%s %s", path, str_c(&piece));
    else if (rc == ERR_FORMAT && name_is_unfinished(path))
        err_set(e, rc, "%s (a download that is not finished, as its name says)", why.msg);
    else if (rc)
        err_set(e, rc, "%s", why.msg);
    str_free(&piece);
    return rc;
}

/* A number of the split set, at most `most`; *there false: the file does not have it. */
static int split_number(const struct gguf *g, const char *key, uint64_t most, uint64_t *v, bool *there, struct err *e)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    *v = 0;
    *there = kv != NULL;
    if (!kv) return 0;
    int rc = kv->type == GGUF_ARRAY ? err_set(e, ERR_FORMAT, "key %s is an array; it must be one integer", key)
                                    : gguf_u64(kv, 0, v, e);
    if (rc == 0 && *v > most)
        rc = err_set(e, ERR_MODEL, "%s = %" PRIu64 " is not supported (only 0 to %" PRIu64 ")", key, *v, most);
    if (rc) err_wrap(e, "%s", gguf_path(g));
    return rc;
}

static int split_count(const struct gguf *g, uint64_t *n, bool *there, struct err *e)
{
    return split_number(g, "split.count", MOST_SHARDS, n, there, e);
}

/* What the file says of itself against its name. */
static int check_shard(const struct gguf *g, int i, int n, struct err *e)
{
    uint64_t no, count;
    bool has_no, has_count;
    int rc = split_number(g, "split.no", MOST_SHARDS - 1, &no, &has_no, e);
    if (rc == 0) rc = split_count(g, &count, &has_count, e);
    if (rc) return rc;
    if ((!has_count || count == (uint64_t)n) && (!has_no || no + 1 == (uint64_t)i)) return 0;
    return err_set(e, ERR_MODEL,
                   "%s: shard %d says it is %" PRIu64 " of %" PRIu64
                   ", its name says %d of %d: it is from another set, or was renamed; get shard %d of this set",
                   gguf_path(g), i, has_no ? no + 1 : (uint64_t)i, has_count ? count : (uint64_t)n, i, n, i);
}

/* Shards by number; the first that is missing may lie there under a name that was changed. */
static void tell_missing(const struct shard_name *name, int no, const struct name_list *missing, const char *path,
                         struct err *e)
{
    struct str stray = {0}, numbers = {0};
    name_list_put(missing, &numbers);
    if (shard_name_stray(name, no, &stray) && name_is_unfinished(str_c(&stray)))
        err_set(e, ERR_IO, "%s: shard %d of %d is missing; the download of %s is not finished: continue it", path, no,
                name->n, last_part(str_c(&stray)));
    else if (stray.n)
        err_set(e, ERR_IO, "%s: shard %d of %d is missing, and \"%s\" lies there: rename that to \"%s\"", path, no,
                name->n, last_part(str_c(&stray)), last_part(path));
    else if (missing->n == 1)
        err_set(e, ERR_IO, "%s: shard %d of %d is missing; get it into the same folder", path, no, name->n);
    else
        err_set(e, ERR_IO, "%s: shards %s of %d are missing; get them into the same folder", path, str_c(&numbers),
                name->n);
    str_free(&numbers);
    str_free(&stray);
}

/* Looks for all of them before any is opened. */
static int check_siblings(const struct shard_name *name, struct err *e)
{
    struct str path = {0}, first = {0};
    struct name_list missing = {0};
    int number = 0;
    for (int i = 1; i <= name->n; i++) {
        char text[12];
        if (i == name->no || shard_name_sibling(name, i, &path)) continue;
        snprintf(text, sizeof text, "%d", i);
        name_list_add(&missing, text);
        if (missing.n > 1) continue;
        str_puts(&first, str_c(&path));
        number = i;
    }
    const int rc = missing.n ? ERR_IO : 0;
    if (rc) tell_missing(name, number, &missing, str_c(&first), e);
    name_list_free(&missing);
    str_free(&path);
    str_free(&first);
    return rc;
}

static int room_for(struct gguf_set *s, int n, struct err *e)
{
    s->file = mem_try((size_t)n * sizeof(struct gguf *));
    return s->file ? 0 : err_set(e, ERR_MEMORY, "no memory for a list of %d files", n);
}

/* Takes over given, which is shard name->no; leaves room for n_more files. */
static int open_shards(struct gguf_set *s, struct gguf *given, const struct shard_name *name, int n_more, struct err *e)
{
    struct str path = {0};
    int rc = check_shard(given, name->no, name->n, e);
    if (rc == 0 && name->n > MOST_SHARDS)
        rc = err_set(e, ERR_MODEL, "%s: its name says it is one of %d shards; at most %d are supported",
                     gguf_path(given), name->n, MOST_SHARDS);
    if (rc == 0) rc = check_siblings(name, e);
    if (rc == 0) rc = room_for(s, name->n + n_more, e);
    for (int i = 1; rc == 0 && i <= name->n; i++) {
        struct gguf *g = NULL;
        if (i == name->no) {
            g = given, given = NULL;
        } else {
            shard_name_sibling(name, i, &path);
            rc = open_file(str_c(&path), &g, e);
        }
        if (rc == 0) s->file[s->n++] = g;
    }
    s->n_shards = s->n;
    gguf_close(given);
    str_free(&path);
    return rc;
}

/* ---- a shard that is not as it was */

/* Where the header of another file stands behind the tensors, or 0. */
static uint64_t second_header(const struct gguf *g)
{
    const uint8_t *data = gguf_data(g);
    uint64_t at = gguf_data_end(g);
    for (const uint64_t end = at + PADDING; at < end && at + 8 <= gguf_size(g); at++)
        if (memcmp(data + at, "GGUF", 4) == 0 && data[at + 4] < 4 && !data[at + 5] && !data[at + 6] && !data[at + 7])
            return at;
    return 0;
}

static int refuse_joined(const struct gguf *g, uint64_t count, struct err *e)
{
    const uint64_t at = second_header(g);
    if (!at) return 0;
    return err_set(e, ERR_MODEL,
                   "%s: shards of a split model were joined with cat: behind the tensors of the first, at byte %" PRIu64
                   ", another GGUF header stands; shards cannot be joined so: get all %" PRIu64
                   " as files of their own and give any of them, or join those with llama.cpp's gguf-split --merge",
                   gguf_path(g), at, count);
}

/* A shard whose name does not say so. */
static int refuse_name(const struct gguf *g, uint64_t count, struct err *e)
{
    struct str own = {0};
    uint64_t no;
    bool there;
    const char *path = gguf_path(g), *name = last_part(path);
    int rc = split_number(g, "split.no", MOST_SHARDS - 1, &no, &there, e);
    if (rc) return rc;
    no = there ? no + 1 : 1;
    if (!shard_name_own(path, &own)) {
        const size_t n = strlen(name), cut = n > 5 && strcmp(name + n - 5, ".gguf") == 0 ? 5 : 0;
        str_printf(&own, "%.*s-%05" PRIu64 "-of-%05" PRIu64 ".gguf", (int)(n - cut), name, no, count);
        rc = err_set(
            e, ERR_MODEL,
            "%s: split.count says it is one of %" PRIu64
            " shards, but it is not named so, and the others are found by their names: give all of them the names "
            "that they were published under, such as \"%s\"",
            path, count, str_c(&own));
    } else if (part_is_there(str_c(&own))) {
        rc = err_set(e, ERR_MODEL, "%s: a copy of a shard of %" PRIu64 "; give the one with the right name: \"%s\"",
                     path, count, last_part(str_c(&own)));
    } else {
        rc = err_set(e, ERR_MODEL,
                     "%s: a shard of %" PRIu64 ", whose name was changed, and the others are found by it: rename it to "
                     "\"%s\"",
                     path, count, last_part(str_c(&own)));
    }
    str_free(&own);
    return rc;
}

/* The first file of n_more + 1, with its shards. */
static int open_first(struct gguf_set *s, const char *path, int n_more, struct err *e)
{
    struct gguf *g;
    struct shard_name name;
    uint64_t count;
    bool there;
    int rc = open_file(path, &g, e);
    if (rc) return rc;
    rc = split_count(g, &count, &there, e);
    if (rc == 0 && count > 1) rc = refuse_joined(g, count, e);
    const bool counted = count > 1 || n_more == 0; /* in a list a name alone does not tell */
    if (rc == 0 && counted && shard_name_parse(path, &name) && name.n > 1) return open_shards(s, g, &name, n_more, e);
    if (rc == 0 && count > 1) rc = refuse_name(g, count, e);
    if (rc == 0) rc = room_for(s, 1 + n_more, e);
    if (rc)
        gguf_close(g);
    else
        s->file[s->n++] = g;
    return rc;
}

/* The files behind the first are whole. */
static int open_others(struct gguf_set *s, const char *const *paths, int n, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        uint64_t count;
        bool there;
        rc = open_file(paths[i], &s->file[s->n], e);
        if (rc) break;
        rc = split_count(s->file[s->n++], &count, &there, e);
        if (rc == 0 && count > 1)
            rc = err_set(e, ERR_MODEL,
                         "%s: split.count says it is one of %" PRIu64
                         " shards; give one shard alone, before other files: the others are found by their names",
                         paths[i], count);
    }
    return rc;
}

/* Two names of one file: a wrong link, or one file given twice. */
static int check_same(const struct gguf_set *s, struct err *e)
{
    uint64_t(*id)[2] = mem_try((size_t)s->n * sizeof *id), other;
    struct strmap *seen = strmap_new((size_t)s->n);
    int rc = id && seen ? 0 : err_set(e, ERR_MEMORY, "no memory to compare %d files", s->n);
    for (int i = 0; i < s->n && rc == 0; i++) {
        file_map_id(gguf_map(s->file[i]), id[i]);
        const int put = strmap_put(seen, (const char *)id[i], sizeof id[i], (uint64_t)i);
        if (put < 0)
            rc = err_set(e, ERR_MEMORY, "no memory to compare %d files", s->n);
        else if (put == 0 && strmap_get(seen, (const char *)id[i], sizeof id[i], &other))
            rc = err_set(e, ERR_MODEL, "%s: %s %d and %d are the same file (%s)", gguf_path(s->file[i]),
                         i < s->n_shards ? "shards" : "files", (int)other + 1, i + 1,
                         last_part(gguf_path(s->file[other])));
    }
    strmap_free(seen);
    mem_free(id);
    return rc;
}

static uint64_t n_tensors(const struct gguf_set *s, int n_files)
{
    uint64_t n = 0;
    for (int i = 0; i < n_files; i++) n += gguf_n_tensors(s->file[i]);
    return n;
}

/* Tensors in all shards, or in a file alone, against what the first one says; what others say is only a remark: a shard
 * may be shared with another set. */
static int check_counts(struct gguf_set *s, struct err *e)
{
    const uint64_t have = n_tensors(s, gguf_set_rest(s));
    uint64_t n, other;
    bool there, other_there;
    int rc = split_number(s->file[0], "split.tensors.count", UINT64_MAX, &n, &there, e);
    for (int i = 1; i < s->n_shards && rc == 0; i++) {
        rc = split_number(s->file[i], "split.tensors.count", UINT64_MAX, &other, &other_there, e);
        if (rc || !there || !other_there || other == n || s->warning[0].n) continue;
        str_printf(&s->warning[0],
                   "%s counts %" PRIu64 " tensors in all shards, the first shard %" PRIu64 ": using the first's",
                   last_part(gguf_path(s->file[i])), other, n);
    }
    if (rc || !there || n == have || (!s->n_shards && s->n > 1)) return rc;
    if (!s->n_shards)
        return err_set(e, ERR_MODEL,
                       "%s: it holds %" PRIu64 " tensors, and split.tensors.count says %" PRIu64
                       ": a part of a set whose other parts are not known, or a damaged file; download the model again",
                       gguf_path(s->file[0]), have, n);
    return err_set(e, ERR_MODEL, "%s: shards hold %" PRIu64 " of %" PRIu64 " tensors; one is from another download",
                   gguf_path(s->file[0]), have, n);
}

/* What the first odd file says of itself. */
static void note_odd_file(struct gguf_set *s)
{
    for (int i = 0; i < s->n && !s->warning[2].n; i++)
        if (gguf_warning(s->file[i]))
            str_printf(&s->warning[2], "%s: %s", last_part(gguf_path(s->file[i])), gguf_warning(s->file[i]));
}

static int open_all(struct gguf_set *s, const char *const *paths, int n_paths, struct err *e)
{
    if (n_paths < 1) return err_set(e, ERR_ARG, "no model file is given");
    int rc = open_first(s, paths[0], n_paths - 1, e);
    if (rc == 0) rc = open_others(s, paths + 1, n_paths - 1, e);
    if (rc == 0) rc = check_same(s, e);
    for (int i = 0; rc == 0 && i < s->n_shards; i++) rc = check_shard(s->file[i], i + 1, s->n_shards, e);
    if (rc == 0) rc = gguf_set_check_list(s, e);
    if (rc == 0) rc = gguf_set_merge(s, e);
    if (rc == 0) rc = check_counts(s, e);
    if (rc == 0) note_odd_file(s);
    return rc;
}

int gguf_set_open(const char *const *paths, int n_paths, struct gguf_set **out, struct err *e)
{
    struct gguf_set *s = mem_alloc(sizeof *s);
    struct err why = {0}, lost = {0};
    int rc = open_all(s, paths, n_paths, &why);
    for (int i = 0; i < s->n && !lost.code; i++)
        if (gguf_damaged(s->file[i], &lost)) why = lost, rc = lost.code; /* whatever zeros were taken for */
    *out = rc ? NULL : s;
    if (rc == 0) return 0;
    gguf_set_close(s);
    return err_set(e, rc, "%s", why.msg);
}

int gguf_set_open_part(const char *path, struct gguf_set **out, struct err *e)
{
    struct gguf_set *s = mem_alloc(sizeof *s);
    int rc = room_for(s, 1, e);
    if (rc == 0) rc = gguf_open(path, &s->file[0], e);
    if (rc == 0) s->n = 1;
    if (rc == 0) rc = gguf_set_merge(s, e);
    *out = rc ? NULL : s;
    if (rc) gguf_set_close(s);
    return rc;
}

void gguf_set_close(struct gguf_set *s)
{
    if (!s) return;
    for (int i = 0; i < s->n; i++) gguf_close(s->file[i]);
    for (int i = 0; i < GGUF_SET_WARNINGS; i++) str_free(&s->warning[i]);
    strmap_free(s->keys);
    strmap_free(s->names);
    mem_free(s->kv);
    mem_free(s->draft);
    mem_free(s->file);
    mem_free(s);
}

int gguf_set_n_files(const struct gguf_set *s)
{
    return s->n;
}

const struct gguf *gguf_set_file(const struct gguf_set *s, int i)
{
    return i >= 0 && i < s->n ? s->file[i] : NULL;
}

bool gguf_set_is_split(const struct gguf_set *s)
{
    return s->n_shards > 0 && s->n_shards == s->n;
}

const char *gguf_set_warning(const struct gguf_set *s, int i)
{
    for (int k = 0; k < GGUF_SET_WARNINGS; k++)
        if (s->warning[k].n && i-- == 0) return str_c(&s->warning[k]);
    return NULL;
}
