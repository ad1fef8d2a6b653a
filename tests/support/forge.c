/* Byte table: spec gguf-and-quants 1.1. Nothing here asks the reader under test. */
#include "forge.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "base/mem.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

/* A record as bytes; the label (key or name) is what edits find it by, whatever becomes of its bytes. */
struct part {
    char *label;
    struct str bytes;
};

struct list {
    struct part *p;
    size_t n, cap;
};

struct forge {
    struct str head, front, behind, data;
    struct list keys, tensors;
    uint64_t align;
    size_t place[PART_END + 1]; /* where parts begin in the file, once it is put together */
    bool no_data;
    const struct forge_edit *cut;
};

/* ---- bytes */

static void put(struct str *s, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) str_add(s, &(uint8_t){(uint8_t)(i < 8 ? v >> (8 * i) : 0)}, 1);
}

static void put_text(struct str *s, const char *text, size_t n)
{
    put(s, n, 8);
    str_add(s, text, n);
}

static void poke(struct str *s, size_t at, uint64_t v, size_t n)
{
    assert_true(at + n <= s->n);
    for (size_t i = 0; i < n; i++) s->p[at + i] = i < 8 ? (char)(v >> (8 * i)) : 0;
}

static uint64_t load(const char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

/* The text of an edit: text itself, or its bytes over and over. */
static void put_edit_text(struct str *s, const struct forge_edit *x)
{
    const size_t length = strlen(x->text), n = x->n ? x->n : length;
    put(s, n, 8);
    for (size_t at = 0; at < n; at += length) str_add(s, x->text, n - at < length ? n - at : length);
}

/* ---- records */

static struct part *add(struct list *l, const char *label, size_t n)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->p = mem_grow(l->p, l->cap * sizeof *l->p);
    }
    struct part *p = &l->p[l->n++];
    *p = (struct part){.label = mem_alloc(n + 1)};
    memcpy(p->label, label, n);
    return p;
}

static struct part *look_for(const struct list *l, const char *label)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->p[i].label, label) == 0) return &l->p[i];
    return NULL;
}

static struct part *found(const struct list *l, const char *label)
{
    struct part *p = look_for(l, label);
    if (!p) fail_msg("no record \"%s\" to edit", label);
    return p;
}

static void again(struct list *l, const char *label)
{
    const struct str bytes = found(l, label)->bytes;
    str_add(&add(l, label, strlen(label))->bytes, bytes.p, bytes.n);
}

static void drop(struct list *l, size_t i)
{
    mem_free(l->p[i].label);
    str_free(&l->p[i].bytes);
    memmove(&l->p[i], &l->p[i + 1], (--l->n - i) * sizeof *l->p);
}

static void list_free(struct list *l)
{
    while (l->n) drop(l, l->n - 1);
    mem_free(l->p);
}

/* Length of the label with its length field. */
static size_t label_bytes(const struct part *p)
{
    return 8 + strlen(p->label);
}

/* ---- metadata */

static size_t width(int type)
{
    static const uint8_t bytes[] = {
        [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
        [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8};
    return bytes[type];
}

static uint64_t bits_of(const struct forge_edit *x)
{
    const float single = (float)x->real;
    uint32_t low;
    uint64_t all;
    memcpy(&low, &single, 4);
    memcpy(&all, &x->real, 8);
    return x->type == GGUF_F32 ? low : all;
}

/* The record with key and type alone; the value follows. */
static struct str *fresh_key(struct forge *f, const char *key, uint32_t type)
{
    struct part *p = look_for(&f->keys, key);
    if (!p) p = add(&f->keys, key, strlen(key));
    str_clear(&p->bytes);
    put_text(&p->bytes, key, strlen(key));
    put(&p->bytes, type, 4);
    return &p->bytes;
}

static struct str *fresh_array(struct forge *f, const struct forge_edit *x, uint32_t elem)
{
    struct str *s = fresh_key(f, x->name, GGUF_ARRAY);
    put(s, elem, 4);
    put(s, x->n, 8);
    return s;
}

static void put_texts(struct str *s, const struct forge_edit *x)
{
    char text[64];
    for (uint64_t i = 0; i < x->n; i++) {
        const int k = snprintf(text, sizeof text, x->v ? "%s%llu" : "%s", x->text, (unsigned long long)i);
        put_text(s, text, (size_t)k);
    }
}

/* Where element i of an array begins. */
static size_t element(const struct part *p, uint64_t i)
{
    size_t at = label_bytes(p) + 4;
    const uint32_t elem = (uint32_t)load(p->bytes.p + at, 4);
    at += 4 + 8;
    if (elem != GGUF_STRING) return at + i * width((int)elem);
    for (; i > 0; i--) at += 8 + load(p->bytes.p + at, 8);
    return at;
}

static void keep(struct part *p, uint64_t n)
{
    p->bytes.n = element(p, n);
    poke(&p->bytes, label_bytes(p) + 8, n, 8);
}

static void set_item(struct part *p, const struct forge_edit *x)
{
    const size_t at = element(p, (uint64_t)x->at);
    struct str s = {0};
    const size_t behind = at + 8 + load(p->bytes.p + at, 8);
    str_add(&s, p->bytes.p, at);
    put_edit_text(&s, x);
    str_add(&s, p->bytes.p + behind, p->bytes.n - behind);
    str_free(&p->bytes);
    p->bytes = s;
}

/* Numbers keep their values; floats stay floats. */
static void widen(struct part *p, int to)
{
    const size_t start = label_bytes(p);
    const char *at = p->bytes.p + start + 4;
    uint32_t type = (uint32_t)load(p->bytes.p + start, 4);
    uint64_t n = 1;
    struct str s = {0};
    const bool array = type == GGUF_ARRAY;
    if (array) type = (uint32_t)load(at, 4), n = load(at + 4, 8), at += 12;
    str_add(&s, p->bytes.p, start);
    put(&s, array ? GGUF_ARRAY : (uint64_t)to, 4);
    if (array) put(&s, (uint64_t)to, 4), put(&s, n, 8);
    for (uint64_t i = 0; i < n; i++, at += width((int)type)) {
        uint64_t v = load(at, width((int)type));
        if (type == GGUF_F32) {
            const uint32_t bits = (uint32_t)v;
            float single;
            memcpy(&single, &bits, 4);
            v = bits_of(&(struct forge_edit){.real = (double)single, .type = to});
            if (to != GGUF_F32 && to != GGUF_F64) v = (uint64_t)(int64_t)single;
        }
        put(&s, v, width(to));
    }
    str_free(&p->bytes);
    p->bytes = s;
}

static void fill(struct forge *f, const struct forge_edit *x)
{
    char key[64];
    for (uint64_t i = 0; i < x->n; i++) {
        const size_t n = (size_t)snprintf(key, sizeof key, "%s%llu", x->text, (unsigned long long)i);
        struct str *s = &add(&f->keys, key, n)->bytes; /* not looked for: there may be very many */
        put_text(s, key, n);
        put(s, GGUF_U8, 4);
        put(s, 0, 1);
    }
}

static void edit_field(struct forge *f, const struct forge_edit *x)
{
    struct part *p = found(&f->keys, x->name);
    const size_t type = label_bytes(p);
    const bool array = load(p->bytes.p + type, 4) == GGUF_ARRAY;
    struct str s = {0};
    switch (x->kind) {
    case KEY_TYPE:
        poke(&p->bytes, type, x->v, 4);
        break;
    case KEY_ELEM:
        poke(&p->bytes, type + 4, x->v, 4);
        break;
    case KEY_COUNT:
        poke(&p->bytes, type + (array ? 8 : 4), x->v, 8);
        break;
    case KEY_LENGTH:
        poke(&p->bytes, 0, x->v, 8);
        break;
    case KEY_LAST:
        poke(&p->bytes, p->bytes.n - width((int)load(p->bytes.p + type + 4, 4)), x->v,
             width((int)load(p->bytes.p + type + 4, 4)));
        break;
    case KEY_ITEM:
        set_item(p, x);
        break;
    case KEY_INNER:
        poke(&p->bytes, element(p, (uint64_t)x->at), x->v, 8);
        break;
    case KEY_KEEP:
        keep(p, x->n);
        break;
    case KEY_POKE:
        poke(&p->bytes, (size_t)x->at, x->v, x->n);
        break;
    case KEY_WIDEN:
        widen(p, x->type);
        break;
    default: /* KEY_NAME */
        put_edit_text(&s, x);
        str_add(&s, p->bytes.p + type, p->bytes.n - type);
        str_free(&p->bytes);
        p->bytes = s;
        break;
    }
}

static void edit_key(struct forge *f, const struct forge_edit *x)
{
    const uint64_t v = x->kind == KEY_REALS || x->kind == KEY_REAL ? bits_of(x) : x->v;
    struct str *s;
    switch (x->kind) {
    case KEY_NUM:
    case KEY_REAL:
        put(fresh_key(f, x->name, (uint32_t)x->type), v, width(x->type));
        break;
    case KEY_TEXT:
        put_edit_text(fresh_key(f, x->name, GGUF_STRING), x);
        break;
    case KEY_ARRAY:
    case KEY_REALS:
        s = fresh_array(f, x, (uint32_t)x->type);
        for (uint64_t i = 0; i < x->n; i++) put(s, v, width(x->type));
        break;
    case KEY_TEXTS:
        put_texts(fresh_array(f, x, GGUF_STRING), x);
        break;
    case KEY_FILL:
        fill(f, x);
        break;
    case KEY_AGAIN:
        again(&f->keys, x->name);
        break;
    case KEY_DROP:
        drop(&f->keys, (size_t)(found(&f->keys, x->name) - f->keys.p));
        break;
    default:
        edit_field(f, x);
        break;
    }
}

/* ---- tensors */

/* Where fields are: n_dims, dims, type, offset. */
struct fields {
    size_t n_dims, dim, type, offset;
};

static struct fields fields_of(const struct part *p)
{
    const size_t at = label_bytes(p), n = load(p->bytes.p + at, 4);
    return (struct fields){at, at + 4, at + 4 + 8 * n, at + 4 + 8 * n + 4};
}

static uint64_t offset_of(const struct part *p)
{
    return load(p->bytes.p + fields_of(p).offset, 8);
}

static size_t data_bytes(const struct part *p)
{
    const struct fields at = fields_of(p);
    uint64_t ne[4] = {1, 1, 1, 1};
    for (size_t i = 0; at.dim + 8 * i < at.type; i++) ne[i] = load(p->bytes.p + at.dim + 8 * i, 8);
    return quant_row_bytes((uint32_t)load(p->bytes.p + at.type, 4), (int64_t)ne[0]) * ne[1] * ne[2] * ne[3];
}

static void put_tensor(struct str *s, const char *name, size_t n, const uint64_t *dims, size_t n_dims, uint64_t type,
                       uint64_t offset)
{
    put_text(s, name, n);
    put(s, n_dims, 4);
    for (size_t i = 0; i < n_dims; i++) put(s, dims[i], 8);
    put(s, type, 4);
    put(s, offset, 8);
}

static void set_shape(struct part *p, const struct forge_edit *x)
{
    const struct fields at = fields_of(p);
    const uint64_t type = load(p->bytes.p + at.type, 4), offset = offset_of(p);
    uint64_t dims[4];
    for (int i = 0; i < 4; i++) dims[i] = x->v >> (16 * i) & 0xffff;
    str_clear(&p->bytes);
    put_tensor(&p->bytes, p->label, strlen(p->label), dims, x->n, type, offset);
}

static void pad(struct str *s, uint64_t align)
{
    while (s->n % align) put(s, 0, 1);
}

static void new_tensor(struct forge *f, const struct forge_edit *x)
{
    pad(&f->data, f->align);
    put_tensor(&add(&f->tensors, x->name, strlen(x->name))->bytes, x->name, strlen(x->name), (const uint64_t[]){1}, 1,
               (uint64_t)x->type, f->data.n);
    put(&f->data, 0, 32);
}

static void lay_out(struct forge *f, uint64_t between)
{
    struct str data = {0};
    for (size_t i = 0; i < f->tensors.n; i++) {
        struct part *p = &f->tensors.p[i];
        pad(&data, f->align);
        const size_t at = data.n;
        str_add(&data, f->data.p + offset_of(p), data_bytes(p));
        poke(&p->bytes, fields_of(p).offset, at, 8);
        put(&data, 0, between);
    }
    str_free(&f->data);
    f->data = data;
}

static void turn(struct list *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        const struct part p = l->p[i];
        l->p[i] = l->p[l->n - 1 - i];
        l->p[l->n - 1 - i] = p;
    }
}

static void edit_record(struct forge *f, const struct forge_edit *x)
{
    struct part *p = found(&f->tensors, x->name);
    const struct fields at = fields_of(p);
    struct str s = {0};
    switch (x->kind) {
    case T_LENGTH:
        poke(&p->bytes, 0, x->v, 8);
        break;
    case T_NDIMS:
        poke(&p->bytes, at.n_dims, x->v, 4);
        break;
    case T_DIM:
        poke(&p->bytes, at.dim + 8 * (size_t)x->at, x->v, 8);
        break;
    case T_TYPE:
        poke(&p->bytes, at.type, x->v, 4);
        break;
    case T_OFFSET:
        poke(&p->bytes, at.offset, x->v, 8);
        break;
    case T_ONTO:
        poke(&p->bytes, at.offset, offset_of(found(&f->tensors, x->text)) + x->v, 8);
        break;
    case T_SHAPE:
        set_shape(p, x);
        break;
    case T_POKE:
        poke(&f->data, offset_of(p) + (size_t)x->at, x->v, x->n);
        break;
    default: /* T_NAME */
        put_edit_text(&s, x);
        str_add(&s, p->bytes.p + at.n_dims, p->bytes.n - at.n_dims);
        str_free(&p->bytes);
        p->bytes = s;
        break;
    }
}

static void edit_tensor(struct forge *f, const struct forge_edit *x)
{
    const size_t before = f->tensors.n;
    switch (x->kind) {
    case T_NEW:
        new_tensor(f, x);
        break;
    case T_AGAIN:
        again(&f->tensors, x->name);
        break;
    case T_DROP:
        for (size_t i = f->tensors.n; i-- > 0;)
            if (strncmp(f->tensors.p[i].label, x->name, strlen(x->name)) == 0) drop(&f->tensors, i);
        if (f->tensors.n == before) fail_msg("no tensor \"%s...\"", x->name);
        break;
    default:
        edit_record(f, x);
        break;
    }
}

/* ---- the whole */

static void count(struct forge *f)
{
    poke(&f->head, 8, f->tensors.n, 8);
    poke(&f->head, 16, f->keys.n, 8);
}

static void edit(struct forge *f, const struct forge_edit *x)
{
    switch (x->kind) {
    case HEAD: /* counted once all edits are done */
        break;
    case CUT:
        f->cut = x;
        break;
    case PREFIX:
        str_add(&f->front, x->text, x->n);
        break;
    case APPEND:
        for (uint64_t i = 0; i < x->n; i++) put(&f->behind, x->v, 1);
        break;
    case NO_DATA:
        f->no_data = true;
        break;
    case ALIGN:
        f->align = x->v;
        break;
    case SPACED:
        lay_out(f, x->v);
        break;
    case TURNED:
        turn(&f->tensors);
        break;
    default:
        if (x->kind < T_LENGTH)
            edit_key(f, x);
        else
            edit_tensor(f, x);
        break;
    }
}

static void take_apart(struct forge *f, const char *file, size_t n)
{
    size_t at = 24;
    str_add(&f->head, file, at);
    for (uint64_t i = load(file + 16, 8); i > 0; i--) {
        const size_t start = at, key = load(file + at, 8);
        at += 8 + key;
        uint32_t type = (uint32_t)load(file + at, 4);
        uint64_t values = 1;
        at += 4;
        if (type == GGUF_ARRAY) type = (uint32_t)load(file + at, 4), values = load(file + at + 4, 8), at += 12;
        if (type != GGUF_STRING) at += values * width((int)type);
        for (uint64_t k = 0; type == GGUF_STRING && k < values; k++) at += 8 + load(file + at, 8);
        str_add(&add(&f->keys, file + start + 8, key)->bytes, file + start, at - start);
    }
    for (uint64_t i = load(file + 8, 8); i > 0; i--) {
        const size_t start = at, name = load(file + at, 8), n_dims = load(file + at + 8 + name, 4);
        at += 8 + name + 4 + 8 * n_dims + 4 + 8;
        str_add(&add(&f->tensors, file + start + 8, name)->bytes, file + start, at - start);
    }
    f->align = 32;
    while (at % f->align) at++;
    if (at < n) str_add(&f->data, file + at, n - at);
}

static void join(struct forge *f, struct str *out)
{
    str_add(out, f->front.p, f->front.n);
    f->place[PART_HEADER] = out->n;
    str_add(out, f->head.p, f->head.n);
    f->place[PART_KEYS] = out->n;
    for (size_t i = 0; i < f->keys.n; i++) str_add(out, f->keys.p[i].bytes.p, f->keys.p[i].bytes.n);
    f->place[PART_TENSORS] = out->n;
    for (size_t i = 0; i < f->tensors.n; i++) str_add(out, f->tensors.p[i].bytes.p, f->tensors.p[i].bytes.n);
    f->place[PART_DATA] = f->place[PART_END] = out->n;
    if (f->no_data) return;
    pad(out, f->align);
    f->place[PART_DATA] = out->n;
    str_add(out, f->data.p, f->data.n);
    str_add(out, f->behind.p, f->behind.n);
    f->place[PART_END] = out->n;
}

static void save(struct forge *f, const char *path)
{
    struct str out = {0};
    join(f, &out);
    if (f->cut) {
        const int64_t end = (int64_t)f->place[f->cut->at] + (int64_t)f->cut->v;
        assert_true(end >= 0 && (size_t)end <= out.n);
        out.n = (size_t)end;
    }
    FILE *file = fopen(path, "wb");
    if (!file || (out.n && fwrite(out.p, 1, out.n, file) != out.n) || fclose(file)) fail_msg("cannot write %s", path);
    str_free(&out);
}

void forge_write(const char *from, const char *to, const struct forge_edit *edits, int n)
{
    struct forge f = {0};
    struct err e = {0};
    char *file;
    size_t bytes;
    if (file_read(from, 1 << 28, &file, &bytes, &e)) fail_msg("%s", e.msg);
    take_apart(&f, file, bytes);
    mem_free(file);
    for (int i = 0; i < n && edits[i].kind != FORGE_END; i++) edit(&f, &edits[i]);
    count(&f);
    for (int i = 0; i < n && edits[i].kind != FORGE_END; i++)
        if (edits[i].kind == HEAD) poke(&f.head, (size_t)edits[i].at, edits[i].v, edits[i].n);
    save(&f, to);
    list_free(&f.keys);
    list_free(&f.tensors);
    struct str *const parts[] = {&f.head, &f.front, &f.behind, &f.data};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) str_free(parts[i]);
}
