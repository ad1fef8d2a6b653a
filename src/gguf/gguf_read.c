/* Reader: header, metadata records, tensor records (byte tables: spec gguf-and-quants 1.1).
 *
 * One cursor walks the file once; take() is the only way to bytes and keeps every read inside the file. Tables grow, in
 * small pieces, with the records that were actually found. Errors are sticky in the cursor; the sentence gets its
 * context (file, record, name) once, at the end. */
#include "gguf/gguf.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/mem.h"
#include "base/pile.h"
#include "base/strmap.h"
#include "gguf/gguf_internal.h"
#include "quant/quant.h"

#define CONTINUE_IT "continue it; if that changes nothing, get it again"

/* Smallest records: key or name length + 1 byte of key, type + 1 byte of value; n_dims, type, offset. */
enum { HEADER_BYTES = 24, MIN_KV_BYTES = 8 + 1 + 4 + 1, MIN_TENSOR_BYTES = 8 + 4 + 4 + 8 };
enum { ZEROS = 32 };           /* as many in a row are no records */
enum { MOST_PADDING = 65536 }; /* behind records: the largest usual alignment */

struct gguf {
    const uint8_t *data;
    uint64_t size;
    char *name;
    struct file_map *map;        /* NULL: the caller's memory */
    struct pile kv, tensor;      /* struct gguf_kv, struct gguf_tensor */
    struct strmap *keys, *names; /* to indices */
    uint64_t data_start;
    bool headers; /* data need not be there */
    char warning[256];
};

/* What the cursor is in, for messages. */
enum part { IN_FILE, IN_KV, IN_TENSOR };

struct cursor {
    struct gguf *g;
    struct err err;
    uint64_t at;
    uint64_t n_kv, n_tensors; /* as stated */
    enum part part;
    uint64_t i;            /* record */
    struct gguf_str label; /* its key or name, once read */
    bool told;             /* err says what to do */
};

static uint64_t left(const struct cursor *c)
{
    return c->g->size - c->at;
}

/* A file that ends before its records do. What is said of its records may be damage: both remedies are told. */
static void end_early(struct cursor *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void end_early(struct cursor *c, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(&c->err, ERR_FORMAT, "%s: the download is incomplete: " CONTINUE_IT, text);
    c->told = true;
}

/* The next n bytes, or NULL and an error. */
static const uint8_t *take(struct cursor *c, uint64_t n, const char *field)
{
    if (c->err.code) return NULL;
    if (n > left(c)) {
        end_early(c, "%s at byte %" PRIu64 " needs %" PRIu64 " bytes, the file has %" PRIu64 " more", field, c->at, n,
                  left(c));
        return NULL;
    }
    const uint8_t *p = c->g->data + c->at;
    c->at += n;
    return p;
}

/* 0 after an error. */
static uint64_t take_number(struct cursor *c, unsigned n, const char *field)
{
    const uint8_t *p = take(c, n, field);
    return p ? gguf_load(p, n) : 0;
}

static struct gguf_str take_string(struct cursor *c, const char *field)
{
    struct gguf_str s = {.n = take_number(c, 8, field)};
    s.p = (const char *)take(c, s.n, field);
    return s;
}

/* Key or tensor name: becomes the record's label in messages. */
static struct gguf_str take_label(struct cursor *c, const char *field)
{
    struct gguf_str s = {.n = take_number(c, 8, field)};
    if (s.n > GGUF_MAX_KEY)
        err_set(&c->err, ERR_FORMAT, "%s of %" PRIu64 " bytes; at most %d are allowed", field, s.n, GGUF_MAX_KEY);
    s.p = (const char *)take(c, s.n, field);
    if (s.p) c->label = s;
    return s;
}

/* The next element of a table, or NULL and an error. */
static void *add_record(struct cursor *c, struct pile *table)
{
    void *record = c->err.code ? NULL : pile_add(table);
    if (!record && !c->err.code) err_set(&c->err, ERR_MEMORY, "no memory for record %" PRIu64, c->i);
    c->label = (struct gguf_str){0};
    return record;
}

static void note_name(struct cursor *c, struct strmap *map, struct gguf_str name, const char *field)
{
    if (c->err.code) return;
    const int rc = strmap_put(map, name.p, (size_t)name.n, c->i);
    uint64_t first = 0;
    if (rc < 0) err_set(&c->err, ERR_MEMORY, "no memory for its name");
    if (rc == 0 && strmap_get(map, name.p, (size_t)name.n, &first))
        err_set(&c->err, ERR_FORMAT, "the %s is given twice, first by record %" PRIu64 "; it must be unique", field,
                first);
}

/* The sentence for a file that begins with other bytes than GGUF's; false: there is none. */
static bool is_something_else(struct cursor *c)
{
    char what[GGUF_WHAT_ELSE];
    if (!gguf_what_else(c->g->data, c->g->size, what)) return false;
    err_set(&c->err, ERR_FORMAT, "not a GGUF file: %s", what);
    return true;
}

static void read_header(struct cursor *c)
{
    if (is_something_else(c)) return;
    if (left(c) < HEADER_BYTES) {
        end_early(c, "the file has %" PRIu64 " byte%s; a GGUF header has %d", left(c), left(c) == 1 ? "" : "s",
                  HEADER_BYTES);
        return;
    }
    const uint8_t *magic = take(c, 4, "magic");
    const uint32_t version = (uint32_t)take_number(c, 4, "version");
    c->n_tensors = take_number(c, 8, "n_tensors");
    c->n_kv = take_number(c, 8, "n_kv");
    if (memcmp(magic, "GGUF", 4))
        err_set(&c->err, ERR_FORMAT,
                "not a GGUF file: it begins with bytes %02X %02X %02X %02X, not \"GGUF\": get the model's file again",
                magic[0], magic[1], magic[2], magic[3]);
    else if (version && !(version & 0xFFFF))
        err_set(&c->err, ERR_FORMAT,
                "written on a machine of the other byte order (version field 0x%08" PRIX32
                "); only little-endian files can be read: get another publisher's",
                version);
    else if (version != 2 && version != 3)
        err_set(&c->err, ERR_FORMAT, "GGUF version %" PRIu32 "; versions 2 and 3 can be read: %s", version,
                version == 0   ? "the file is damaged; get it again"
                : version == 1 ? "get a newer conversion of the model"
                               : "get a newer ds4, or another publisher's file");
    else if (c->n_kv > left(c) / MIN_KV_BYTES)
        end_early(c, "n_kv = %" PRIu64 "; the file's %" PRIu64 " bytes have room for %" PRIu64 " at most", c->n_kv,
                  c->g->size, left(c) / MIN_KV_BYTES);
    else if (c->n_tensors > left(c) / MIN_TENSOR_BYTES)
        end_early(c, "n_tensors = %" PRIu64 "; the file's %" PRIu64 " bytes have room for %" PRIu64 " at most",
                  c->n_tensors, c->g->size, left(c) / MIN_TENSOR_BYTES);
}

static void take_type(struct cursor *c, enum gguf_type *type, const char *field)
{
    const uint32_t v = (uint32_t)take_number(c, 4, field);
    if (v >= GGUF_TYPE_COUNT)
        err_set(&c->err, ERR_FORMAT, "%s %" PRIu32 "; 0 to %d are allowed", field, v, GGUF_TYPE_COUNT - 1);
    *type = c->err.code ? GGUF_U8 : (enum gguf_type)v;
}

/* Strings are walked before memory is taken for their offsets. */
static void read_strings(struct cursor *c, struct gguf_kv *kv)
{
    const uint64_t start = c->at;
    for (uint64_t i = 0; i < kv->count && !c->err.code; i++) take_string(c, "string of the array");
    if (c->err.code || !kv->count) return;
    uint64_t *at = kv->count <= SIZE_MAX / sizeof *at ? mem_try((size_t)kv->count * sizeof *at) : NULL;
    if (!at) {
        err_set(&c->err, ERR_MEMORY, "no memory for the offsets of %" PRIu64 " strings", kv->count);
        return;
    }
    c->at = start;
    for (uint64_t i = 0; i < kv->count; i++) {
        at[i] = c->at - start;
        take_string(c, "string of the array");
    }
    kv->str_at = at;
}

static void read_array(struct cursor *c, struct gguf_kv *kv)
{
    take_type(c, &kv->elem, "element type");
    kv->count = take_number(c, 8, "element count");
    if (kv->elem == GGUF_ARRAY)
        err_set(&c->err, ERR_FORMAT, "array of arrays; elements must be numbers, bools or strings");
    if (c->err.code) return;
    const unsigned bytes = kv->elem == GGUF_STRING ? 8 : gguf_type_bytes(kv->elem);
    if (kv->count > left(c) / bytes) {
        end_early(c, "array of %" PRIu64 " elements of type %s; the file has %" PRIu64 " bytes more, room for %" PRIu64,
                  kv->count, gguf_type_name(kv->elem), left(c), left(c) / bytes);
        return;
    }
    kv->data = c->g->data + c->at;
    if (kv->elem == GGUF_STRING)
        read_strings(c, kv);
    else
        take(c, kv->count * bytes, "array");
}

/* The first one of the file is told. */
static void note_odd_bools(struct cursor *c, const struct gguf_kv *kv)
{
    for (uint64_t i = 0; i < kv->count && !c->g->warning[0]; i++)
        if (kv->data[i] > 1)
            snprintf(c->g->warning, sizeof c->g->warning,
                     "key %s holds bool byte %u, taken as true; 0 and 1 are allowed",
                     gguf_show(kv->key.p, kv->key.n).text, kv->data[i]);
}

static void read_kv(struct cursor *c, struct gguf_kv *kv)
{
    kv->key = take_label(c, "key");
    if (!c->err.code && !kv->key.n) err_set(&c->err, ERR_FORMAT, "the key is empty; it needs at least 1 byte");
    note_name(c, c->g->keys, kv->key, "key");
    take_type(c, &kv->type, "value type");
    if (c->err.code) return;
    kv->elem = kv->type;
    kv->count = 1;
    if (kv->type == GGUF_ARRAY) {
        read_array(c, kv);
    } else {
        kv->data = c->g->data + c->at;
        if (kv->type == GGUF_STRING)
            take_string(c, "string");
        else
            take(c, gguf_type_bytes(kv->type), "value");
    }
    if (!c->err.code && kv->elem == GGUF_BOOL) note_odd_bools(c, kv);
}

static void read_metadata(struct cursor *c)
{
    c->part = IN_KV;
    for (c->i = 0; c->i < c->n_kv; c->i++) {
        struct gguf_kv *kv = add_record(c, &c->g->kv);
        if (kv) read_kv(c, kv);
        if (c->err.code) return;
    }
}

static uint64_t read_alignment(struct cursor *c)
{
    uint64_t align = GGUF_DEFAULT_ALIGN;
    const struct gguf_kv *kv = c->err.code ? NULL : gguf_kv_find(c->g, GGUF_ALIGN_KEY);
    if (!kv) return align;
    strmap_get(c->g->keys, kv->key.p, (size_t)kv->key.n, &c->i);
    c->label = kv->key;
    if (kv->type == GGUF_ARRAY)
        err_set(&c->err, ERR_FORMAT, "an array; it must be one integer");
    else if (!gguf_u64(kv, 0, &align, &c->err))
        gguf_align_check(align, &c->err);
    return align;
}

static void read_tensor(struct cursor *c, struct gguf_tensor *t, uint64_t align)
{
    t->name = take_label(c, "name");
    note_name(c, c->g->names, t->name, "name");
    const uint64_t n_dims = take_number(c, 4, "n_dims");
    if (!c->err.code && gguf_dims_check(n_dims, &c->err)) return;
    t->n_dims = (int)n_dims;
    for (int d = 0; d < t->n_dims; d++) t->ne[d] = take_number(c, 8, "dims");
    t->number = (uint32_t)take_number(c, 4, "type");
    t->type = t->number < QT_READINGS ? t->number : GGUF_NO_TYPE;
    t->offset = take_number(c, 8, "offset");
    if (c->err.code || gguf_tensor_measure(t, &c->err)) return;
    if (t->offset & (align - 1))
        err_set(&c->err, ERR_FORMAT, "offset %" PRIu64 "; it must be a multiple of the alignment %" PRIu64, t->offset,
                align);
}

static void read_tensors(struct cursor *c, uint64_t align)
{
    if (c->err.code) return;
    c->part = IN_TENSOR;
    for (c->i = 0; c->i < c->n_tensors; c->i++) {
        struct gguf_tensor *t = add_record(c, &c->g->tensor);
        if (t) read_tensor(c, t, align);
        if (c->err.code) return;
    }
}

static struct gguf_tensor *tensor(const struct gguf *g, uint64_t i)
{
    return pile_at(&g->tensor, i);
}

/* A tensor of unknown type has at least one byte. */
static uint64_t extent(const struct gguf_tensor *t)
{
    return t->bytes ? t->bytes : 1;
}

static void at_tensor(struct cursor *c, uint64_t i)
{
    c->part = IN_TENSOR;
    c->i = i;
    c->label = tensor(c->g, i)->name;
}

/* Makes offsets absolute and compares the end that they state with the file's. Returns the first tensor that is not
 * whole, n_tensors if all are. */
static uint64_t place_tensors(struct cursor *c, uint64_t align, uint64_t *end)
{
    struct gguf *g = c->g;
    uint64_t start, missing = g->tensor.n;
    *end = 0;
    if (!u64_align_up(c->at, align, &start)) start = UINT64_MAX;
    g->data_start = start;
    for (uint64_t i = 0; i < g->tensor.n; i++) {
        struct gguf_tensor *t = tensor(g, i);
        uint64_t last;
        if (!u64_add(t->offset, start, &t->offset) || !u64_add(t->offset, extent(t), &last)) {
            at_tensor(c, i);
            err_set(&c->err, ERR_FORMAT, "offset or size passes 2^64; its data must lie inside the file");
            return i;
        }
        if (last > *end) *end = last;
        if (last > g->size && i < missing) missing = i;
    }
    return missing;
}

static void settle_types(struct cursor *c, uint64_t align)
{
    uint64_t start;
    char note[160];
    if (c->err.code || !u64_align_up(c->at, align, &start) || start > c->g->size) return;
    const struct gguf_data_part d = {c->g->data + start, c->g->size - start, align};
    gguf_settle_types(&c->g->tensor, &d, note);
    if (note[0] && !c->g->warning[0]) snprintf(c->g->warning, sizeof c->g->warning, "%s", note);
}

/* Nothing but padding follows. */
static bool ends_behind_records(const struct cursor *c)
{
    return c->g->size <= c->g->data_start && left(c) <= MOST_PADDING && gguf_zeros(c->g->data + c->at, left(c));
}

static void check_inside(struct cursor *c, uint64_t align)
{
    uint64_t end;
    if (c->err.code) return;
    const uint64_t missing = place_tensors(c, align, &end);
    if (c->err.code || missing == c->g->tensor.n || c->g->headers) return;
    const struct gguf_tensor *t = tensor(c->g, missing);
    c->part = IN_FILE;
    if (ends_behind_records(c)) {
        err_set(&c->err, ERR_FORMAT,
                "it has records but no weights, as ds4-gguf synth --headers writes them: ds4-gguf synth --like FILE "
                "makes a whole file of it, with random weights; if it is a download, continue it");
        return;
    }
    err_set(&c->err, ERR_FORMAT,
            "header says %" PRIu64 " bytes, file has %" PRIu64 ": the download is incomplete: " CONTINUE_IT
            " (tensor %s, bytes %" PRIu64 " to %" PRIu64 ", is the first that is not whole)",
            end, c->g->size, gguf_show(t->name.p, t->name.n).text, t->offset, t->offset + extent(t) - 1);
}

struct span {
    uint64_t begin, end, i;
};

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static void check_overlap(struct cursor *c)
{
    const struct gguf *g = c->g;
    const uint64_t n = g->tensor.n;
    if (c->err.code || !n) return;
    struct span *s = mem_try((size_t)n * sizeof *s);
    if (!s) {
        err_set(&c->err, ERR_MEMORY, "no memory to compare the places of %" PRIu64 " tensors", n);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = tensor(g, i);
        s[i] = (struct span){t->offset, t->offset + extent(t), i};
    }
    qsort(s, (size_t)n, sizeof *s, by_begin);
    for (uint64_t i = 1; i < n && !c->err.code; i++) {
        if (s[i].begin >= s[i - 1].end) continue;
        const struct gguf_str other = tensor(g, s[i - 1].i)->name;
        at_tensor(c, s[i].i);
        err_set(&c->err, ERR_FORMAT,
                "its data at byte %" PRIu64 " begins inside that of tensor %s (bytes %" PRIu64 " to %" PRIu64
                "); tensors must not overlap",
                s[i].begin, gguf_show(other.p, other.n).text, s[i - 1].begin, s[i - 1].end - 1);
    }
    mem_free(s);
}

/* What to do about a record that makes no sense: zeros are what a download has not written yet. */
static const char *remedy(const struct cursor *c)
{
    const uint64_t at = c->at > ZEROS ? c->at - ZEROS : 0, end = c->at + ZEROS;
    if (c->told || c->part == IN_FILE || c->err.code != ERR_FORMAT) return "";
    if (!c->g->data_start && end <= c->g->size &&
        (gguf_zeros(c->g->data + c->at, ZEROS) || gguf_zeros(c->g->data + at, c->at - at)))
        return "; zeros stand there: the download has not written this part yet; " CONTINUE_IT;
    return "; the file is damaged or badly made: get it again, or another one";
}

static int report(struct cursor *c, struct err *e)
{
    const char *kind = c->part == IN_KV ? "metadata record" : "tensor record", *instead = remedy(c);
    if (c->part == IN_FILE || c->err.code == ERR_MEMORY)
        err_wrap(&c->err, "%s", c->g->name);
    else if (c->label.p)
        err_wrap(&c->err, "%s: %s %" PRIu64 " %s", c->g->name, kind, c->i, gguf_show(c->label.p, c->label.n).text);
    else
        err_wrap(&c->err, "%s: %s %" PRIu64, c->g->name, kind, c->i);
    return err_set(e, c->err.code, "%s%s", c->err.msg, instead);
}

static int parse(struct gguf *g, struct err *e)
{
    struct cursor c = {.g = g};
    g->keys = strmap_new(0);
    g->names = strmap_new(0);
    if (!g->keys || !g->names)
        err_set(&c.err, ERR_MEMORY, "no memory for the directory");
    else
        read_header(&c);
    if (!c.err.code) read_metadata(&c);
    const uint64_t align = read_alignment(&c);
    read_tensors(&c, align);
    settle_types(&c, align);
    check_inside(&c, align);
    check_overlap(&c);
    if (gguf_damaged(g, e)) return ERR_IO;
    if (c.err.code) return report(&c, e);
    log_msg(LOG_DEBUG, "gguf", "%s: %" PRIu64 " keys, %" PRIu64 " tensors", g->name, g->kv.n, g->tensor.n);
    return 0;
}

/* Takes over map. */
static int open_bytes(const uint8_t *data, uint64_t n, const char *name, struct file_map *map, bool headers,
                      struct gguf **out, struct err *e)
{
    struct gguf *g = mem_alloc(sizeof *g);
    *g = (struct gguf){.data = data, .size = n, .name = mem_strdup(name), .map = map, .headers = headers};
    g->kv.bytes = sizeof(struct gguf_kv);
    g->tensor.bytes = sizeof(struct gguf_tensor);
    const int rc = parse(g, e);
    if (rc)
        gguf_close(g);
    else
        *out = g;
    return rc;
}

int gguf_open(const char *path, struct gguf **out, struct err *e)
{
    struct file_map *map;
    *out = NULL;
    const int rc = gguf_map_path(path, &map, e);
    return rc ? rc : open_bytes(file_map_data(map), file_map_size(map), path, map, false, out, e);
}

int gguf_open_headers(const char *path, struct gguf **out, struct err *e)
{
    struct file_map *map;
    *out = NULL;
    const int rc = gguf_map_path(path, &map, e);
    return rc ? rc : open_bytes(file_map_data(map), file_map_size(map), path, map, true, out, e);
}

uint64_t gguf_data_start(const struct gguf *g)
{
    return g->data_start;
}

uint64_t gguf_data_end(const struct gguf *g)
{
    uint64_t end = g->data_start;
    for (uint64_t i = 0; i < g->tensor.n; i++) {
        const struct gguf_tensor *t = tensor(g, i);
        if (t->offset + t->bytes > end) end = t->offset + t->bytes;
    }
    return end;
}

int gguf_parse(const void *data, uint64_t n, const char *name, struct gguf **out, struct err *e)
{
    *out = NULL;
    return open_bytes(data, n, name, NULL, false, out, e);
}

void gguf_close(struct gguf *g)
{
    if (!g) return;
    for (uint64_t i = 0; i < g->kv.n; i++) mem_free((void *)(uintptr_t)gguf_kv_at(g, i)->str_at);
    pile_free(&g->kv);
    pile_free(&g->tensor);
    strmap_free(g->keys);
    strmap_free(g->names);
    file_map_close(g->map);
    mem_free(g->name);
    mem_free(g);
}

const char *gguf_path(const struct gguf *g)
{
    return g->name;
}

const uint8_t *gguf_data(const struct gguf *g)
{
    return g->data;
}

uint64_t gguf_size(const struct gguf *g)
{
    return g->size;
}

const struct file_map *gguf_map(const struct gguf *g)
{
    return g->map;
}

const char *gguf_warning(const struct gguf *g)
{
    return g->warning[0] ? g->warning : NULL;
}

bool gguf_damaged(const struct gguf *g, struct err *e)
{
    uint64_t at;
    if (!g->map || !file_map_lost(g->map, &at)) return false;
    err_set(e, ERR_IO, "%s: the model is damaged at byte %" PRIu64 " (could not be read)", g->name, at);
    return true;
}

uint64_t gguf_n_kv(const struct gguf *g)
{
    return g->kv.n;
}

const struct gguf_kv *gguf_kv_at(const struct gguf *g, uint64_t i)
{
    return i < g->kv.n ? pile_at(&g->kv, i) : NULL;
}

const struct gguf_kv *gguf_kv_find(const struct gguf *g, const char *key)
{
    return gguf_kv_find_str(g, &(struct gguf_str){key, strlen(key)});
}

const struct gguf_kv *gguf_kv_find_str(const struct gguf *g, const struct gguf_str *key)
{
    uint64_t i;
    return strmap_get(g->keys, key->p, (size_t)key->n, &i) ? gguf_kv_at(g, i) : NULL;
}

uint64_t gguf_n_tensors(const struct gguf *g)
{
    return g->tensor.n;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, uint64_t i)
{
    return i < g->tensor.n ? tensor(g, i) : NULL;
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name, uint64_t n)
{
    uint64_t i;
    return n <= SIZE_MAX && strmap_get(g->names, name, (size_t)n, &i) ? tensor(g, i) : NULL;
}
