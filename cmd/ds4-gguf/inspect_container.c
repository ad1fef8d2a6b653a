/* A line per record. Texts come from outside: they are made safe for a terminal. */
#include "inspect_container.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "dialect/canonical.h"
#include "quant/quant.h"

enum { SHOWN_ELEMENTS = 8, SHOWN_BYTES = 60 };

/* Key or name of a record, whole. */
static void add_name(struct str *s, struct gguf_str v)
{
    const size_t start = s->n;
    str_add(s, v.p, (size_t)v.n);
    text_defuse(s->p + start, (size_t)v.n);
}

/* Text on one line: control characters and quotes escaped, long ones cut at a character border. */
static void add_text(struct str *s, struct gguf_str v)
{
    uint64_t n = v.n;
    if (n > SHOWN_BYTES)
        for (n = SHOWN_BYTES; n > 0 && ((unsigned char)v.p[n] & 0xC0) == 0x80; n--) {
        }
    const size_t start = s->n;
    str_puts(s, "\"");
    for (uint64_t i = 0; i < n; i++) {
        const unsigned char b = (unsigned char)v.p[i];
        if (b == '\n')
            str_puts(s, "\\n");
        else if (b == '"' || b == '\\')
            str_printf(s, "\\%c", b);
        else if (b < 32 || b == 127)
            str_printf(s, "\\x%02x", b);
        else
            str_add(s, &v.p[i], 1);
    }
    str_puts(s, n < v.n ? "...\"" : "\"");
    text_defuse(s->p + start, s->n - start);
}

static void add_element(struct str *s, const struct gguf_kv *kv, uint64_t i)
{
    struct err e = {0};
    struct gguf_str text;
    int64_t integer;
    uint64_t whole;
    double number;
    bool flag;
    if (kv->elem == GGUF_STRING && !gguf_string(kv, i, &text, &e))
        add_text(s, text);
    else if (kv->elem == GGUF_BOOL && !gguf_bool(kv, i, &flag, &e))
        str_puts(s, flag ? "true" : "false");
    else if (kv->elem == GGUF_U64 && !gguf_u64(kv, i, &whole, &e))
        str_printf(s, "%" PRIu64, whole);
    else if (kv->elem != GGUF_F32 && kv->elem != GGUF_F64 && !gguf_i64(kv, i, &integer, &e))
        str_printf(s, "%" PRId64, integer);
    else if (!gguf_f64(kv, i, &number, &e))
        str_printf(s, "%.9g", number);
    else
        str_puts(s, "?"); /* not a finite number */
}

static void print_kv(const struct gguf_kv *kv)
{
    struct str s = {0};
    add_name(&s, kv->key);
    str_puts(&s, " = ");
    if (kv->type != GGUF_ARRAY)
        add_element(&s, kv, 0);
    else {
        str_puts(&s, "[");
        for (uint64_t i = 0; i < kv->count && i < SHOWN_ELEMENTS; i++) {
            if (i) str_puts(&s, ", ");
            add_element(&s, kv, i);
        }
        if (kv->count > SHOWN_ELEMENTS) str_printf(&s, ", ... %" PRIu64 " in all", kv->count);
        str_puts(&s, "]");
    }
    puts(str_c(&s));
    str_free(&s);
}

static void print_tensor(const struct gguf *g, const struct gguf_tensor *t)
{
    const struct quant_type *type = quant_type(t->type);
    const char *type_name = type ? type->name : canonical_fork_type(g, t);
    char unknown[24], shape[96];
    size_t n = 0;
    snprintf(unknown, sizeof unknown, "type %u", (unsigned)t->number);
    shape[0] = 0;
    for (int i = 0; i < t->n_dims; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRIu64, i ? ", " : "", t->ne[i]);
    struct str name = {0};
    add_name(&name, t->name);
    printf("%-40s %-8s [%s] %" PRIu64 " bytes at %" PRIu64 "\n", str_c(&name), type_name ? type_name : unknown, shape,
           t->bytes, t->offset);
    str_free(&name);
}

void inspect_metadata(const struct gguf_set *set)
{
    for (uint64_t i = 0; i < gguf_set_n_kv(set); i++) print_kv(gguf_set_kv_at(set, i));
    putchar('\n');
}

void inspect_tensors(const struct gguf_set *set)
{
    const int n = gguf_set_n_files(set);
    for (int f = 0; f < n; f++) {
        const struct gguf *g = gguf_set_file(set, f);
        if (n > 1) printf("%s%s:\n", f ? "\n" : "", gguf_path(g));
        for (uint64_t i = 0; i < gguf_n_tensors(g); i++) print_tensor(g, gguf_tensor_at(g, i));
    }
    putchar('\n');
}
