/* GGUF reader and writer. Byte tables: spec gguf-and-quants 1.1; what must be refused: 1.3; keys: spec dialects 3.
 * The files of the reader's tests are put together here byte by byte, without the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/temp_files.h"
#include "base/mem.h"
#include "base/str.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* --- putting files together --- */

static void num(struct str *s, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) str_add(s, &(uint8_t){(uint8_t)(v >> (8 * i))}, 1);
}

static void text(struct str *s, const char *t)
{
    num(s, strlen(t), 8);
    str_puts(s, t);
}

static void head(struct str *s, uint64_t n_tensors, uint64_t n_kv)
{
    str_puts(s, "GGUF");
    num(s, 3, 4);
    num(s, n_tensors, 8);
    num(s, n_kv, 8);
}

static void key(struct str *s, const char *k, uint32_t type)
{
    text(s, k);
    num(s, type, 4);
}

static void key_u32(struct str *s, const char *k, uint32_t v)
{
    key(s, k, GGUF_U32);
    num(s, v, 4);
}

static void key_array(struct str *s, const char *k, uint32_t elem, uint64_t n)
{
    key(s, k, GGUF_ARRAY);
    num(s, elem, 4);
    num(s, n, 8);
}

/* A tensor of two dims; n_dims only states how many follow. */
static void tensor(struct str *s, const char *name, uint64_t ne0, uint64_t ne1, uint32_t type, uint64_t offset)
{
    text(s, name);
    num(s, 2, 4);
    num(s, ne0, 8);
    num(s, ne1, 8);
    num(s, type, 4);
    num(s, offset, 8);
}

static void pad(struct str *s, size_t align)
{
    while (s->n % align) num(s, 0, 1);
}

static void fill(struct str *s, size_t n)
{
    for (size_t i = 0; i < n; i++) num(s, i, 1);
}

/* A file with one value of every kind and three tensors. */
static void good(struct str *s)
{
    head(s, 3, 6);
    key(s, "general.architecture", GGUF_STRING);
    text(s, "demo");
    key_u32(s, "general.alignment", 64);
    key_array(s, "list.i32", GGUF_I32, 3);
    num(s, 7, 4);
    num(s, (uint64_t)-8, 4);
    num(s, 9, 4);
    key_array(s, "list.str", GGUF_STRING, 3);
    text(s, "a");
    text(s, "");
    text(s, "bcd");
    key(s, "x.f32", GGUF_F32);
    num(s, 0x3fc00000, 4);
    key(s, "x.bool", GGUF_BOOL);
    num(s, 1, 1);
    tensor(s, "w.q8", 64, 2, QT_Q8_0, 128); /* 136 bytes */
    tensor(s, "w.f32", 3, 5, QT_F32, 0);    /* 60 bytes */
    tensor(s, "w.new", 8, 1, 9999, 64);     /* unknown type */
    pad(s, 64);
    fill(s, 128 + 136);
}

/* Parses an exact copy on the heap, so that a sanitizer sees every byte read beyond the end. */
static int parse(const void *bytes, size_t n, struct gguf **g, uint8_t **copy, struct err *e)
{
    *copy = malloc(n ? n : 1);
    assert_non_null(*copy);
    if (n) memcpy(*copy, bytes, n);
    return gguf_parse(*copy, n, "m.gguf", g, e);
}

/* --- reading --- */

static void expect_text(struct gguf_str s, const char *want)
{
    assert_int_equal(s.n, strlen(want));
    assert_memory_equal(s.p, want, s.n);
}

static void check_good_keys(const struct gguf *g)
{
    struct err e = {0};
    struct gguf_str s;
    int64_t i;
    double d;
    bool b;
    assert_int_equal(gguf_n_kv(g), 6);
    assert_null(gguf_kv_at(g, 6));
    expect_text(gguf_kv_at(g, 2)->key, "list.i32");
    assert_int_equal(gguf_string(gguf_kv_find(g, "general.architecture"), 0, &s, &e), 0);
    expect_text(s, "demo");
    const struct gguf_kv *list = gguf_kv_find(g, "list.i32");
    assert_int_equal(list->type, GGUF_ARRAY);
    assert_int_equal(list->count, 3);
    assert_int_equal(gguf_i64(list, 1, &i, &e), 0);
    assert_int_equal(i, -8);
    const char *const words[] = {"a", "", "bcd"};
    for (uint64_t k = 0; k < 3; k++) {
        assert_int_equal(gguf_string(gguf_kv_find(g, "list.str"), k, &s, &e), 0);
        expect_text(s, words[k]);
    }
    assert_int_equal(gguf_f64(gguf_kv_find(g, "x.f32"), 0, &d, &e), 0);
    assert_true(d == 1.5);
    assert_int_equal(gguf_bool(gguf_kv_find(g, "x.bool"), 0, &b, &e), 0);
    assert_true(b);
    assert_null(gguf_kv_find(g, "x.boo"));
}

static void reads_a_good_file(void **state)
{
    struct str s = {0};
    struct err e = {0};
    struct gguf *g;
    uint8_t *copy;
    good(&s);
    assert_int_equal(parse(s.p, s.n, &g, &copy, &e), 0);
    assert_string_equal(gguf_path(g), "m.gguf");
    assert_int_equal(gguf_size(g), s.n);
    assert_ptr_equal(gguf_data(g), copy);
    assert_null(gguf_map(g));
    check_good_keys(g);
    const uint64_t start = s.n - (128 + 136);
    assert_int_equal(gguf_n_tensors(g), 3);
    const struct gguf_tensor *t = gguf_tensor_find(g, "w.q8", 4);
    assert_ptr_equal(t, gguf_tensor_at(g, 0));
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->ne[0], 64);
    assert_int_equal(t->ne[1], 2);
    assert_int_equal(t->ne[2], 1);
    assert_int_equal(t->ne[3], 1);
    assert_int_equal(t->bytes, 136);
    assert_int_equal(t->offset, start + 128);
    t = gguf_tensor_find(g, "w.f32", 5);
    assert_int_equal(t->bytes, 60);
    assert_int_equal(t->offset, start);
    t = gguf_tensor_find(g, "w.new", 5);
    assert_int_equal(t->type, 9999);
    assert_int_equal(t->bytes, 0);
    assert_int_equal(t->offset, start + 64);
    assert_null(gguf_tensor_find(g, "w.q", 3));
    assert_null(gguf_tensor_at(g, 3));
    gguf_close(g);
    gguf_close(NULL);
    free(copy);
    str_free(&s);
}

static void scalar_v2(struct str *s)
{
    head(s, 1, 0);
    s->p[4] = 2;
    text(s, "t");
    num(s, 0, 4);
    num(s, QT_F32, 4);
    num(s, 0, 8);
    pad(s, 32);
    fill(s, 4);
}

/* A shard of metadata only ends where its records end; nothing is rounded up. */
static void metadata_only(struct str *s)
{
    head(s, 0, 2);
    key(s, "split.no", GGUF_U16);
    num(s, 0, 2);
    key(s, "general.alignment", GGUF_I64);
    num(s, 4096, 8);
}

static void no_last_padding(struct str *s)
{
    head(s, 1, 0);
    tensor(s, "t", 3, 1, QT_F16, 32);
    pad(s, 32);
    fill(s, 32 + 6);
}

static void odd_bool(struct str *s)
{
    head(s, 0, 1);
    key(s, "b", GGUF_BOOL);
    num(s, 7, 1);
}

static void empty_arrays(struct str *s)
{
    head(s, 0, 2);
    key_array(s, "s", GGUF_STRING, 0);
    key_array(s, "f", GGUF_F64, 0);
}

static void many_records(struct str *s)
{
    char name[20];
    head(s, 2000, 3000);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "key.%d", i);
        key_u32(s, name, (uint32_t)i);
    }
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "tensor.%d", i);
        tensor(s, name, 8, 1, QT_F32, (uint64_t)(1999 - i) * 32);
    }
    pad(s, 32);
    fill(s, 2000 * 32);
}

static void accepts_legal_variants(void **state)
{
    void (*const build[])(struct str *) = {scalar_v2, metadata_only, no_last_padding,
                                           odd_bool,  empty_arrays,  many_records};
    for (size_t i = 0; i < COUNT(build); i++) {
        struct str s = {0};
        struct err e = {0};
        struct gguf *g;
        uint8_t *copy;
        build[i](&s);
        if (parse(s.p, s.n, &g, &copy, &e)) fail_msg("variant %zu: %s", i, e.msg);
        if (build[i] == many_records) {
            assert_int_equal(gguf_n_kv(g), 3000);
            assert_int_equal(gguf_n_tensors(g), 2000);
            const struct gguf_tensor *t = gguf_tensor_find(g, "tensor.1234", 11);
            assert_ptr_equal(t, gguf_tensor_at(g, 1234));
            assert_int_equal(t->offset, s.n - 2000 * 32 + (1999 - 1234) * 32);
        }
        gguf_close(g);
        free(copy);
        str_free(&s);
    }
}

static void odd_bool_is_true_with_a_warning(void **state)
{
    struct str s = {0};
    struct gguf *g;
    bool b = false;
    odd_bool(&s);
    assert_int_equal(gguf_parse(s.p, s.n, "m.gguf", &g, NULL), 0);
    assert_string_equal(gguf_warning(g), "key \"b\" holds bool byte 7, taken as true; 0 and 1 are allowed");
    assert_int_equal(gguf_bool(gguf_kv_at(g, 0), 0, &b, NULL), 0);
    assert_true(b);
    gguf_close(g);
    str_free(&s);
}

/* --- broken files --- */

static void good_with(struct str *s, const char *find, size_t n_find, size_t skip, const void *bytes, size_t n)
{
    good(s);
    for (size_t i = 0; i + n_find <= s->n; i++)
        if (!memcmp(s->p + i, find, n_find)) {
            memcpy(s->p + i + skip, bytes, n);
            return;
        }
    fail_msg("%s is not in the file", find);
}

/* Overwrites bytes of the good file: at an offset, or after a name. */
#define AT(offset, ...)                                                                                                \
    do {                                                                                                               \
        good(s);                                                                                                       \
        memcpy(s->p + (offset), (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}));               \
    } while (0)
#define AFTER(name, skip, ...)                                                                                         \
    good_with(s, name, sizeof(name) - 1, sizeof(name) - 1 + (skip), (const uint8_t[]){__VA_ARGS__},                    \
              sizeof((const uint8_t[]){__VA_ARGS__}))
#define BROKEN(name, ...)                                                                                              \
    static void name(struct str *s)                                                                                    \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

#define FFS4 0xff, 0xff, 0xff, 0xff

BROKEN(b_empty, (void)s;)
BROKEN(b_short, str_add(s, "GGUF\3\0\0\0abc", 11);)
BROKEN(b_magic, AT(0, 'G', 'G', 'M', 'L');)
BROKEN(b_zeros, for (int i = 0; i < 100; i++) num(s, 0, 1);)
BROKEN(b_version_0, AT(4, 0, 0, 0, 0);)
BROKEN(b_version_1, AT(4, 1, 0, 0, 0);)
BROKEN(b_version_4, AT(4, 4, 0, 0, 0);)
BROKEN(b_byte_order, AT(4, 0, 0, 0, 3);)
BROKEN(b_n_kv, AT(16, 0, 0, 0, 0, 1, 0, 0, 0);)
BROKEN(b_n_kv_max, AT(16, FFS4, FFS4);)
BROKEN(b_n_tensors, AT(8, 0, 0, 0, 0, 0, 1, 0, 0);)
BROKEN(b_n_tensors_max, AT(8, FFS4, FFS4);)
BROKEN(b_key_length, AT(24, FFS4, FFS4);)
BROKEN(b_key_65536, head(s, 0, 1); num(s, 65536, 8); fill(s, 70000);)
BROKEN(b_key_past_end, head(s, 0, 1); num(s, 500, 8); fill(s, 30);)
BROKEN(b_key_empty, head(s, 0, 1); key_u32(s, "", 1); fill(s, 10);)
BROKEN(b_key_zeros, head(s, 0, 2); key_u32(s, "a", 1); for (int i = 0; i < 100; i++) num(s, 0, 1);)
BROKEN(b_key_twice, head(s, 0, 3); key_u32(s, "a", 1); key_u32(s, "b", 1); key_u32(s, "a", 2);)
BROKEN(b_value_type, AFTER("x.f32", 0, 13, 0, 0, 0);)
BROKEN(b_value_type_max, AFTER("x.bool", 0, FFS4);)
BROKEN(b_string_past_end, AFTER("general.architecture", 4, FFS4, 0, 0, 0, 0);)
BROKEN(b_string_overflow, AFTER("general.architecture", 4, FFS4, FFS4);)
BROKEN(b_array_of_arrays, AFTER("list.i32", 4, GGUF_ARRAY, 0, 0, 0);)
BROKEN(b_array_elem, AFTER("list.i32", 4, 99, 0, 0, 0);)
BROKEN(b_array_count, AFTER("list.i32", 8, 0, 0, 0, 0, 1, 0, 0, 0);)
BROKEN(b_array_overflow, AFTER("list.i32", 8, 1, 0, 0, 0, 0, 0, 0, 0x40);)
BROKEN(b_strings_count, AFTER("list.str", 8, 0, 0, 0, 0, 0, 0, 0, 0x20);)
BROKEN(b_strings_inner, AFTER("list.str", 16, FFS4, FFS4);)
BROKEN(b_scalar_cut, head(s, 0, 1); key(s, "abc", GGUF_U64); num(s, 0, 5);)
BROKEN(b_align_0, AFTER("general.alignment", 4, 0, 0, 0, 0);)
BROKEN(b_align_24, AFTER("general.alignment", 4, 24, 0, 0, 0);)
BROKEN(b_align_float, AFTER("general.alignment", 0, GGUF_F32, 0, 0, 0);)
BROKEN(b_align_negative, AFTER("general.alignment", 0, GGUF_I32, 0, 0, 0, FFS4);)
BROKEN(b_align_array, head(s, 0, 1); key_array(s, "general.alignment", GGUF_U32, 1); num(s, 32, 4);)
BROKEN(b_align_huge, head(s, 1, 1); key(s, "general.alignment", GGUF_U64); num(s, UINT64_C(1) << 63, 8);
       tensor(s, "t", 1, 1, QT_F32, 0); fill(s, 100);)
BROKEN(b_name_length, AFTER("x.bool", 5, FFS4, FFS4);)
BROKEN(b_name_twice, head(s, 2, 0); tensor(s, "t", 1, 1, QT_F32, 0); tensor(s, "t", 1, 1, QT_F32, 32); pad(s, 32);
       fill(s, 64);)
BROKEN(b_n_dims_5, AFTER("w.q8", 0, 5, 0, 0, 0);)
BROKEN(b_n_dims_max, AFTER("w.q8", 0, FFS4);)
BROKEN(b_dim_0, AFTER("w.q8", 12, 0, 0);)
BROKEN(b_dim_negative, AFTER("w.q8", 12, FFS4, FFS4);)
BROKEN(b_dims_product, AFTER("w.q8", 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);)
BROKEN(b_size_overflow, AFTER("w.f32", 4, 0, 0, 0, 0, 0, 0, 0, 0x20, 3, 0, 0, 0, 0, 0, 0, 0);)
BROKEN(b_row_block, AFTER("w.q8", 4, 63);)
BROKEN(b_scalar_block, head(s, 1, 0); text(s, "t"); num(s, 0, 4); num(s, QT_Q4_K, 4); num(s, 0, 8); pad(s, 32);
       fill(s, 200);)
BROKEN(b_offset_align, AFTER("w.q8", 24, 160);)
BROKEN(b_offset_overflow, AFTER("w.q8", 24, 0xc0, 0xff, 0xff, 0xff, FFS4);)
BROKEN(b_offset_past_end, AFTER("w.new", 24, 0, 0, 1, 0);)
BROKEN(b_payload_cut, good(s); s->n -= 1;)
BROKEN(b_records_cut, good(s); s->n -= 128 + 136 + 64;)
BROKEN(b_data_cut, good(s); s->n -= 128 + 136;)
BROKEN(b_overlap_equal, AFTER("w.q8", 24, 0);)
BROKEN(b_overlap_unknown, AFTER("w.new", 24, 192);)
BROKEN(b_overlap_inside, head(s, 2, 0); tensor(s, "big", 64, 1, QT_F32, 0); tensor(s, "small", 1, 1, QT_F32, 96);
       pad(s, 32); fill(s, 256);)

static const struct {
    void (*build)(struct str *);
    const char *part; /* of the message */
} broken[] = {
    {b_empty, "m.gguf: the file has 0 bytes; a GGUF header has 24: the download is incomplete: continue it"},
    {b_short, "the file has 11 bytes"},
    {b_magic, "m.gguf: not a GGUF file: it begins with bytes 47 47 4D 4C, not \"GGUF\": get the model's file again"},
    {b_zeros, "not a GGUF file: it begins with zeros: the download has not written this part yet; continue it"},
    {b_version_0, "GGUF version 0; versions 2 and 3 can be read: the file is damaged; get it again"},
    {b_version_1, "GGUF version 1; versions 2 and 3 can be read: get a newer conversion of the model"},
    {b_version_4, "GGUF version 4; versions 2 and 3 can be read: get a newer ds4, or another publisher's file"},
    {b_byte_order, "only little-endian files can be read: get another publisher's"},
    {b_n_kv, " at most: the download is incomplete: continue it"},
    {b_n_kv_max, "n_kv = 18446744073709551615"},
    {b_n_tensors, " at most: the download is incomplete: continue it"},
    {b_n_tensors_max, "n_tensors = 18446744073709551615"},
    {b_key_length, "metadata record 0: key of 18446744073709551615 bytes; at most 65535"},
    {b_key_65536, "key of 65536 bytes; at most 65535"},
    {b_key_past_end, "metadata record 0: key at byte 32 needs 500 bytes, the file has 30 more"},
    {b_key_empty, "the key is empty"},
    {b_key_zeros, "zeros stand there: the download has not written this part yet; continue it"},
    {b_key_twice, "metadata record 2 \"a\": the key is given twice, first by record 0"},
    {b_value_type,
     "metadata record 4 \"x.f32\": value type 13; 0 to 12 are allowed; the file is damaged or badly made: get it "
     "again, or another one"},
    {b_value_type_max, "value type 4294967295; 0 to 12"},
    {b_string_past_end, "metadata record 0 \"general.architecture\": string at byte 64 needs 4294967295 bytes"},
    {b_string_overflow, "needs 18446744073709551615 bytes"},
    {b_array_of_arrays, "metadata record 2 \"list.i32\": array of arrays"},
    {b_array_elem, "element type 99; 0 to 12"},
    {b_array_count, "array of 4294967296 elements of type i32; the file has"},
    {b_array_overflow, "array of 4611686018427387905 elements of type i32"},
    {b_strings_count, "array of 2305843009213693952 elements of type string"},
    {b_strings_inner, "metadata record 3 \"list.str\": string of the array at byte"},
    {b_scalar_cut, "metadata record 0 \"abc\": value at byte 39 needs 8 bytes, the file has 5 more"},
    {b_align_0, "metadata record 1 \"general.alignment\": alignment 0; it must be a power of two"},
    {b_align_24, "alignment 24; it must be a power of two"},
    {b_align_float, "\"general.alignment\" is f32; an integer"},
    {b_align_negative, "\"general.alignment\" is -1; an integer of at least 0"},
    {b_align_array, "an array; it must be one integer"},
    {b_align_huge, "header says"},
    {b_name_length, "tensor record 0: name of 18446744073709551615 bytes; at most 65535"},
    {b_name_twice, "tensor record 1 \"t\": the name is given twice, first by record 0"},
    {b_n_dims_5, "tensor record 0 \"w.q8\": n_dims = 5; 0 to 4"},
    {b_n_dims_max, "n_dims = 4294967295; 0 to 4"},
    {b_dim_0, "dims[1] = 0; it must be at least 1"},
    {b_dim_negative, "dims[1] = -1; it must be at least 1"},
    {b_dims_product, "passes 2^63 at dims[1] = 4294967296"},
    {b_size_overflow, "3 rows of 2305843009213693952 values of type F32; the size must fit"},
    {b_row_block, "tensor record 0 \"w.q8\": row length 63; rows of type Q8_0 must be multiples of 32"},
    {b_scalar_block, "row length 1; rows of type Q4_K must be multiples of 256"},
    {b_offset_align, "offset 160; it must be a multiple of the alignment 64"},
    {b_offset_overflow, "tensor record 0 \"w.q8\": offset or size passes 2^64"},
    {b_offset_past_end, "the download is incomplete: continue it; if that changes nothing, get it again (tensor "
                        "\"w.new\", bytes 65920 to 65920, is the first that"},
    {b_payload_cut, "the download is incomplete: continue it; if that changes nothing, get it again (tensor \"w.q8\""},
    {b_records_cut, " more: the download is incomplete: continue it; if that changes nothing, get it again"},
    {b_data_cut,
     "m.gguf: it has records but no weights, as ds4-gguf synth --headers writes them: ds4-gguf synth --like FILE makes "
     "a whole file of it, with random weights; if it is a download, continue it"},
    {b_overlap_equal, "tensor record 1 \"w.f32\": its data at byte"},
    {b_overlap_unknown, "begins inside that of tensor \"w.q8\""},
    {b_overlap_inside,
     "tensor record 1 \"small\": its data at byte 224 begins inside that of tensor \"big\" (bytes 128 to 383)"},
};

static void refuses_broken_files(void **state)
{
    for (size_t i = 0; i < COUNT(broken); i++) {
        struct str s = {0};
        struct err e = {0};
        struct gguf *g;
        uint8_t *copy;
        broken[i].build(&s);
        const int rc = parse(s.p, s.n, &g, &copy, &e);
        if (!rc || rc != e.code || g) fail_msg("file %zu (%s) was accepted", i, broken[i].part);
        if (!strstr(e.msg, broken[i].part) || strncmp(e.msg, "m.gguf: ", 8))
            fail_msg("file %zu: got \"%s\", expected \"%s\"", i, e.msg, broken[i].part);
        free(copy);
        str_free(&s);
    }
}

/* Every shorter file is refused; every single changed byte is either refused with a message or read without harm. */
static void survives_cuts_and_changed_bytes(void **state)
{
    struct str s = {0};
    struct gguf *g;
    uint8_t *copy;
    good(&s);
    for (size_t n = 0; n < s.n; n++) {
        struct err e = {0};
        assert_int_not_equal(parse(s.p, n, &g, &copy, &e), 0);
        assert_int_equal(e.code, ERR_FORMAT);
        free(copy);
    }
    const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < COUNT(values); k++) {
            struct err e = {0};
            const char old = s.p[i];
            s.p[i] = (char)values[k];
            const int rc = parse(s.p, s.n, &g, &copy, &e);
            assert_int_equal(rc, e.code);
            assert_true(!rc == !e.msg[0]);
            gguf_close(g);
            free(copy);
            s.p[i] = old;
        }
    str_free(&s);
}

/* --- values --- */

/* A record of one value of the type, made of the low bytes of bits. */
static struct gguf_kv value(enum gguf_type type, uint64_t bits)
{
    static uint8_t data[8];
    for (int i = 0; i < 8; i++) data[i] = (uint8_t)(bits >> (8 * i));
    return (struct gguf_kv){{"a.key", 5}, type, type, 1, data, NULL};
}

static void expect_message(int rc, struct err *e, const char *message)
{
    assert_int_equal(rc, ERR_MODEL);
    assert_string_equal(e->msg, message);
    err_clear(e);
}

static void integers_of_every_width(void **state)
{
    static const struct {
        enum gguf_type type;
        uint64_t bits;
        int64_t want;
    } cases[] = {
        {GGUF_U8, 0xff, 255},
        {GGUF_I8, 0x80, -128},
        {GGUF_U16, 0xffff, 65535},
        {GGUF_I16, 0x8000, -32768},
        {GGUF_U32, UINT32_MAX, UINT32_MAX},
        {GGUF_I32, UINT32_MAX, -1},
        {GGUF_I64, UINT64_MAX, -1},
        {GGUF_I64, INT64_MAX, INT64_MAX},
        {GGUF_BOOL, 1, 1},
        {GGUF_U64, INT64_MAX, INT64_MAX},
        {GGUF_I8, 0x7f, 127},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gguf_kv kv = value(cases[i].type, cases[i].bits);
        struct err e = {0};
        int64_t v = 0;
        uint64_t u = 0;
        assert_int_equal(gguf_i64(&kv, 0, &v, &e), 0);
        assert_true(v == cases[i].want);
        assert_int_equal(gguf_u64(&kv, 0, &u, &e) == 0, cases[i].want >= 0);
        assert_true(cases[i].want < 0 || u == (uint64_t)cases[i].want);
    }
}

static void unfit_values_are_named(void **state)
{
    struct err e = {0};
    uint64_t u;
    int64_t s;
    double d;
    bool b;
    struct gguf_str str;
    struct gguf_kv kv = value(GGUF_I16, 0xfffe);
    expect_message(gguf_u64(&kv, 0, &u, &e), &e, "key \"a.key\" is -2; an integer of at least 0 is needed");
    expect_message(gguf_bool(&kv, 0, &b, &e), &e, "key \"a.key\" is -2; a bool (or 0 or 1) is needed");
    expect_message(gguf_string(&kv, 0, &str, &e), &e, "key \"a.key\" is i16; a string is needed");
    expect_message(gguf_u64(&kv, 1, &u, &e), &e, "key \"a.key\" has 1 elements; at least 2 are needed");
    kv = value(GGUF_U64, UINT64_MAX);
    expect_message(gguf_i64(&kv, 0, &s, &e), &e,
                   "key \"a.key\" is 18446744073709551615; an integer below 2^63 is needed");
    kv = value(GGUF_F32, 0);
    expect_message(gguf_u64(&kv, 0, &u, &e), &e, "key \"a.key\" is f32; an integer of at least 0 is needed");
    kv = value(GGUF_STRING, 0);
    expect_message(gguf_f64(&kv, 0, &d, &e), &e, "key \"a.key\" is string; a finite number is needed");
    expect_message(gguf_i64(&kv, 0, &s, &e), &e, "key \"a.key\" is string; an integer below 2^63 is needed");
    kv = value(GGUF_F32, 0x7fc00000);
    expect_message(gguf_f64(&kv, 0, &d, &e), &e, "key \"a.key\" is NaN; a finite number is needed");
    kv = value(GGUF_F64, UINT64_C(0xfff0000000000000));
    kv.type = GGUF_ARRAY;
    expect_message(gguf_f64(&kv, 0, &d, &e), &e, "key \"a.key\"[0] is infinite; a finite number is needed");
}

static void floats_of_every_kind(void **state)
{
    static const struct {
        enum gguf_type type;
        uint64_t bits;
        double want;
    } cases[] = {
        {GGUF_F32, 0xbf000000, -0.5},
        {GGUF_F64, UINT64_C(0x3fb999999999999a), 0.1},
        {GGUF_I32, 0xfffffff6, -10},
        {GGUF_U64, UINT64_C(1) << 63, 9223372036854775808.0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gguf_kv kv = value(cases[i].type, cases[i].bits);
        double d = 0;
        assert_int_equal(gguf_f64(&kv, 0, &d, NULL), 0);
        assert_true(d == cases[i].want);
    }
}

/* Bytes that cannot be shown are escaped, long names are cut. */
static void names_are_fit_for_display(void **state)
{
    struct err e = {0};
    uint64_t u;
    struct gguf_kv kv = value(GGUF_F32, 0);
    kv.key = (struct gguf_str){"a\n\"\x80", 4};
    expect_message(gguf_u64(&kv, 0, &u, &e), &e, "key \"a\\x0A\\x22\\x80\" is f32; an integer of at least 0 is needed");
    char name[1000];
    memset(name, 'n', sizeof name);
    kv.key = (struct gguf_str){name, sizeof name};
    gguf_u64(&kv, 0, &u, &e);
    assert_non_null(strstr(e.msg, "nnn...\" is f32"));
    assert_true(strlen(e.msg) < 200);
}

/* --- writing --- */

static char folder[TEMP_PATH], path[200];

static int make_folder(void **state)
{
    temp_folder(folder);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    return 0;
}

static int remove_folder(void **state)
{
    return temp_remove(folder);
}

static void put_records(struct gguf_writer *w)
{
    const struct gguf_str words[] = {{"a", 1}, {"", 0}, {"bcd", 3}};
    gguf_put_str(w, "general.architecture", "demo", 4);
    gguf_put_u32(w, "general.alignment", 64);
    gguf_put_arr_i32(w, "list.i32", (const int32_t[]){7, -8, 9}, 3);
    gguf_put_arr_str(w, "list.str", words, 3);
    gguf_put_f32(w, "x.f32", 1.5f);
    gguf_put_bool(w, "x.bool", true);
    gguf_declare(w, "w.q8", QT_Q8_0, 2, (const uint64_t[]){64, 2});
    gguf_declare(w, "w.f32", QT_F32, 2, (const uint64_t[]){3, 5});
}

/* The same file as bytes: the tensors lie in the order of their declaration, and the last one is padded too. */
static void expected_records(struct str *s)
{
    struct str g = {0};
    good(&g);
    const size_t records = g.n - (128 + 136);
    head(s, 2, 6);
    for (size_t i = 24; i < records; i++) {
        if (!memcmp(g.p + i, "w.q8", 4)) break;
        str_add(s, g.p + i, 1);
    }
    s->n -= 8; /* the name's length */
    tensor(s, "w.q8", 64, 2, QT_Q8_0, 0);
    tensor(s, "w.f32", 3, 5, QT_F32, 192);
    pad(s, 64);
    fill(s, 136);
    pad(s, 64);
    fill(s, 60);
    pad(s, 64);
    str_free(&g);
}

static void write_in_pieces(struct gguf_writer *w, uint64_t n, uint64_t piece)
{
    uint8_t data[256];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)i;
    for (uint64_t at = 0; at < n; at += piece) gguf_write(w, data + at, piece < n - at ? piece : n - at);
}

static void writes_the_bytes_of_the_format(void **state)
{
    struct str want = {0};
    expected_records(&want);
    for (uint64_t piece = 1; piece < 200; piece += 33) {
        struct err e = {0};
        struct gguf_writer *w;
        char *got;
        size_t n;
        assert_int_equal(gguf_writer_open(path, &w, &e), 0);
        put_records(w);
        write_in_pieces(w, 136, piece);
        write_in_pieces(w, 60, piece);
        assert_int_equal(gguf_writer_finish(w, &e), 0);
        assert_int_equal(file_read(path, 1 << 20, &got, &n, &e), 0);
        assert_int_equal(n, want.n);
        assert_memory_equal(got, want.p, n);
        mem_free(got);
    }
    str_free(&want);
}

static void reads_back_what_it_wrote(void **state)
{
    struct err e = {0};
    struct gguf_writer *w;
    struct gguf *g;
    uint64_t u;
    double d;
    assert_int_equal(gguf_writer_open(path, &w, &e), 0);
    put_records(w);
    write_in_pieces(w, 136, 136);
    write_in_pieces(w, 60, 60);
    assert_int_equal(gguf_writer_finish(w, &e), 0);
    assert_int_equal(gguf_open(path, &g, &e), 0);
    assert_non_null(gguf_map(g));
    check_good_keys(g);
    const struct gguf_tensor *t = gguf_tensor_find(g, "w.f32", 5);
    assert_int_equal(t->offset % 64, 0);
    for (uint64_t i = 0; i < t->bytes; i++) assert_int_equal(gguf_data(g)[t->offset + i], i);
    gguf_close(g);

    assert_int_equal(gguf_writer_open(path, &w, &e), 0); /* metadata only, and the other kinds of values */
    gguf_put_u64(w, "u64", UINT64_MAX);
    gguf_put_i32(w, "i32", -5);
    gguf_put_arr_f32(w, "arr.f32", (const float[]){0.25f, -2}, 2);
    gguf_put_arr_str(w, "none", NULL, 0);
    gguf_put_bool(w, "no", false);
    assert_int_equal(gguf_writer_finish(w, &e), 0);
    assert_int_equal(gguf_open(path, &g, &e), 0);
    assert_int_equal(gguf_n_tensors(g), 0);
    assert_int_equal(gguf_u64(gguf_kv_find(g, "u64"), 0, &u, &e), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(gguf_f64(gguf_kv_find(g, "i32"), 0, &d, &e), 0);
    assert_true(d == -5);
    assert_int_equal(gguf_f64(gguf_kv_find(g, "arr.f32"), 1, &d, &e), 0);
    assert_true(d == -2);
    assert_int_equal(gguf_kv_find(g, "none")->count, 0);
    gguf_close(g);
}

/* Every record of a file that the writer did not make, copied: the records' bytes are equal. */
/* Records of several lengths, so that the hole in front of the tail has several; tensors ahead of it or none. */
static void a_tail_begins_at_its_border_and_ends_the_file(void **state)
{
    for (int fill = 0; fill < 3; fill++)
        for (int ahead = 0; ahead < 2; ahead++) {
            struct err e = {0};
            struct gguf *g;
            struct gguf_writer *w;
            static char words[9000];
            memset(words, '.', sizeof words);
            assert_int_equal(gguf_writer_open(path, &w, &e), 0);
            gguf_put_str(w, "words", words, (uint64_t)fill * 4091);
            if (ahead) gguf_declare(w, "ahead", QT_F32, 1, (const uint64_t[]){3});
            gguf_declare_tail(w, "tail", QT_BF16, 2, (const uint64_t[]){5, 7}, 4096);
            if (ahead) gguf_write(w, "abcdefghijkl", 12);
            write_in_pieces(w, 70, 9);
            assert_int_equal(gguf_writer_finish(w, &e), 0);
            assert_int_equal(gguf_open(path, &g, &e), 0);
            const struct gguf_tensor *const t = gguf_tensor_find(g, "tail", 4);
            assert_int_equal(t->offset % 4096, 0);
            assert_int_equal(t->offset + 70, gguf_size(g));
            assert_int_equal(gguf_data(g)[t->offset + 69], 69);
            assert_int_equal(gguf_data(g)[t->offset - 1], 0);
            if (ahead)
                assert_memory_equal(gguf_data(g) + gguf_tensor_find(g, "ahead", 5)->offset, "abcdefghijkl\0", 13);
            gguf_close(g);
        }
}

static void copies_records_as_they_are(void **state)
{
    struct str s = {0};
    struct err e = {0};
    struct gguf *g;
    struct gguf_writer *w;
    char *got;
    size_t n;
    good(&s);
    assert_int_equal(gguf_parse(s.p, s.n, "m.gguf", &g, &e), 0);
    assert_int_equal(gguf_writer_open(path, &w, &e), 0);
    for (uint64_t i = 0; i < gguf_n_kv(g); i++) gguf_put_kv(w, gguf_kv_at(g, i));
    gguf_declare(w, "t", QT_F32, 1, (const uint64_t[]){1});
    gguf_write(w, "abcd", 4);
    assert_int_equal(gguf_writer_finish(w, &e), 0);
    assert_int_equal(file_read(path, 1 << 20, &got, &n, &e), 0);
    const struct gguf_kv *last = gguf_kv_at(g, 5);
    const size_t end = (size_t)(last->data + 1 - gguf_data(g));
    assert_memory_equal(got + 24, s.p + 24, end - 24);
    assert_int_equal(n % 64, 0); /* the copied alignment is obeyed */
    assert_memory_equal(got + n - 64, "abcd\0", 5);
    mem_free(got);
    gguf_close(g);
    str_free(&s);
}

static void w_key_twice(struct gguf_writer *w)
{
    gguf_put_u32(w, "a", 1);
    gguf_put_f32(w, "a", 1);
}

static void w_key_empty(struct gguf_writer *w)
{
    gguf_put_u32(w, "", 1);
}

static void w_align(struct gguf_writer *w)
{
    gguf_put_u32(w, "general.alignment", 48);
}

static void w_align_late(struct gguf_writer *w)
{
    gguf_declare(w, "t", QT_F32, 1, (const uint64_t[]){1});
    gguf_put_i32(w, "general.alignment", 64);
}

static void w_tensor_twice(struct gguf_writer *w)
{
    gguf_declare(w, "t", QT_F32, 1, (const uint64_t[]){1});
    gguf_declare(w, "t", QT_F32, 1, (const uint64_t[]){1});
}

static void w_type(struct gguf_writer *w)
{
    gguf_declare(w, "t", 31, 1, (const uint64_t[]){1});
    gguf_put_u32(w, "", 1); /* the first error stays */
}

static void w_dims(struct gguf_writer *w)
{
    gguf_declare(w, "t", QT_F32, 5, (const uint64_t[]){1, 1, 1, 1, 1});
}

static void w_row(struct gguf_writer *w)
{
    gguf_declare(w, "t", QT_Q2_K, 2, (const uint64_t[]){128, 2});
}

static void w_missing(struct gguf_writer *w)
{
    gguf_declare(w, "t", QT_F32, 1, (const uint64_t[]){2});
    gguf_write(w, "abcd", 4);
}

static void w_across(struct gguf_writer *w)
{
    gguf_declare(w, "t", QT_F32, 1, (const uint64_t[]){1});
    gguf_declare(w, "u", QT_F32, 1, (const uint64_t[]){1});
    gguf_write(w, "abcdefgh", 8);
}

static void w_too_much(struct gguf_writer *w)
{
    gguf_declare(w, "t", QT_F32, 1, (const uint64_t[]){1});
    gguf_write(w, "abcd", 4);
    gguf_write(w, "e", 1);
}

static void w_late_key(struct gguf_writer *w)
{
    gguf_declare(w, "t", QT_F32, 1, (const uint64_t[]){1});
    gguf_write(w, "abcd", 4);
    gguf_put_u32(w, "a", 1);
}

static void w_behind_tail(struct gguf_writer *w)
{
    gguf_declare_tail(w, "t", QT_F32, 1, (const uint64_t[]){1}, 4096);
    gguf_declare(w, "u", QT_F32, 1, (const uint64_t[]){1});
}

static void w_key_behind_tail(struct gguf_writer *w)
{
    gguf_declare_tail(w, "t", QT_F32, 1, (const uint64_t[]){1}, 4096);
    gguf_put_u32(w, "a", 1);
}

static void writer_refuses_wrong_use(void **state)
{
    static const struct {
        void (*use)(struct gguf_writer *);
        const char *part;
    } cases[] = {
        {w_key_twice, "key \"a\" is given twice"},
        {w_key_empty, "empty key"},
        {w_align, "general.alignment: alignment 48; it must be a power of two"},
        {w_align_late, "general.alignment comes after the first tensor"},
        {w_tensor_twice, "tensor \"t\" is given twice"},
        {w_type, "tensor \"t\": type 31 is unknown"},
        {w_dims, "tensor \"t\": n_dims = 5"},
        {w_row, "tensor \"t\": row length 128; rows of type Q2_K must be multiples of 256"},
        {w_missing, "data of tensor 0 of 1 is missing (4 of 8 bytes were given)"},
        {w_across, "8 bytes of data for tensor 0 of 2, which has room for 4 more"},
        {w_too_much, "1 bytes of data for tensor 1 of 1, which has room for 0 more"},
        {w_late_key, "key \"a\" comes after the first data"},
        {w_behind_tail, "tensor \"u\" comes after the last tensor"},
        {w_key_behind_tail, "key \"a\" comes after the last tensor"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err e = {0};
        struct gguf_writer *w;
        assert_int_equal(gguf_writer_open(path, &w, &e), 0);
        assert_int_equal(gguf_writer_error(w, &e), 0);
        cases[i].use(w);
        if (cases[i].use != w_missing) { /* what is missing is known at the end; the rest at once */
            struct err now = {0};
            const int failed = gguf_writer_error(w, &now);
            if (!failed || failed != now.code || !strstr(now.msg, cases[i].part))
                fail_msg("case %zu: got \"%s\" before the end", i, now.msg);
        }
        const int rc = gguf_writer_finish(w, &e);
        if (!rc || rc != e.code || !strstr(e.msg, cases[i].part) || !strstr(e.msg, path))
            fail_msg("case %zu: got \"%s\", expected \"%s\"", i, e.msg, cases[i].part);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    gguf_writer_abort(NULL);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_good_file),
        cmocka_unit_test(accepts_legal_variants),
        cmocka_unit_test(odd_bool_is_true_with_a_warning),
        cmocka_unit_test(refuses_broken_files),
        cmocka_unit_test(survives_cuts_and_changed_bytes),
        cmocka_unit_test(integers_of_every_width),
        cmocka_unit_test(unfit_values_are_named),
        cmocka_unit_test(floats_of_every_kind),
        cmocka_unit_test(names_are_fit_for_display),
        IN_FOLDER(writes_the_bytes_of_the_format),
        IN_FOLDER(reads_back_what_it_wrote),
        IN_FOLDER(a_tail_begins_at_its_border_and_ends_the_file),
        IN_FOLDER(copies_records_as_they_are),
        IN_FOLDER(writer_refuses_wrong_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
