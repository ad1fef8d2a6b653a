/* Numbers of types that mean different things: the sizes of a file's tensors tell which one it means, the largest for
 * all, and what fits nothing is another program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "gguf/gguf.h"
#include "quant/quant.h"

enum { MOST = 4, ALIGN = 32 };

static uint8_t file[1 << 20];
static uint64_t n_file;

static void number(uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) file[n_file++] = (uint8_t)(v >> (8 * i));
}

/* n tensors "a", "b", ... of [256, rows] of one type, each with bytes(i) of data, padded; data of zeros. Returns where
 * the data start. */
static uint64_t write_file(uint32_t type, int n, const uint64_t *rows, const uint64_t *bytes)
{
    uint64_t at = 0;
    memset(file, 0, sizeof file);
    n_file = 0;
    memcpy(file, "GGUF", 4), n_file = 4;
    number(3, 4), number((uint64_t)n, 8), number(0, 8);
    for (int i = 0; i < n; i++) {
        number(1, 8), number('a' + (uint64_t)i, 1);
        number(2, 4), number(256, 8), number(rows[i], 8), number(type, 4), number(at, 8);
        at += (bytes[i] + ALIGN - 1) / ALIGN * ALIGN;
    }
    const uint64_t start = (n_file + ALIGN - 1) / ALIGN * ALIGN;
    n_file = start + at;
    assert_true(n_file < sizeof file);
    return start;
}

static struct gguf *parsed(void)
{
    struct gguf *g;
    struct err e = {0};
    if (gguf_parse(file, n_file, "m.gguf", &g, &e)) fail_msg("%s", e.msg);
    return g;
}

static const struct reading {
    uint32_t id;
    uint64_t block, bytes;
    uint32_t type; /* 0: another program's */
} cases[] = {
    {39, 32, 17, QT_MXFP4}, {40, 64, 36, QT_NVFP4},     {41, 128, 18, QT_Q1_0},
    {42, 64, 18, QT_Q2_0},  {42, 128, 34, QT_Q2_0_128}, {42, 128, 129, 0},
    {42, 64, 20, 0},        {43, 128, 34, QT_Q2_0_128}, {43, 64, 20, 0},
    {41, 32, 30, 0},
};

static void sizes_tell(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct reading *c = &cases[i];
        const uint64_t rows[] = {1, 64, 3};
        uint64_t bytes[3];
        for (int k = 0; k < 3; k++) bytes[k] = rows[k] * 256 / c->block * c->bytes;
        write_file(c->id, 3, rows, bytes);
        struct gguf *g = parsed();
        for (uint64_t k = 0; k < 3; k++) {
            const struct gguf_tensor *t = gguf_tensor_at(g, k);
            if (t->type != (c->type ? c->type : GGUF_NO_TYPE) || t->bytes != (c->type ? bytes[k] : 0))
                fail_msg("%u as %u of %llu bytes", (unsigned)c->id, (unsigned)t->type, (unsigned long long)t->bytes);
        }
        const bool told = c->type && c->type != c->id;
        assert_true((gguf_warning(g) != NULL) == told);
        if (told) assert_non_null(strstr(gguf_warning(g), " by the size of its tensors"));
        gguf_close(g);
    }
}

/* Scales of MXFP8 lie close together, codes do not: the order of a block's parts is told by content. */
static void order_of_mxfp8(void **state)
{
    const uint64_t rows[] = {64}, bytes[] = {64 * 264};
    for (int first = 0; first < 2; first++) {
        const uint64_t start = write_file(43, 1, rows, bytes);
        for (int b = 0; b < 64; b++)
            for (int i = 0; i < 264; i++) {
                const bool scale = first ? i < 8 : i >= 256;
                file[start + (uint64_t)b * 264 + (uint64_t)i] =
                    scale ? (uint8_t)(110 + (b + i) % 20) : (uint8_t)((b * 131 + i * 77) % 251);
            }
        struct gguf *g = parsed();
        assert_int_equal(gguf_tensor_at(g, 0)->type, first ? QT_MXFP8_SF : QT_MXFP8);
        gguf_close(g);
    }
    write_file(43, 1, rows, bytes); /* zeros: either could be */
    struct gguf *g = parsed();
    assert_int_equal(gguf_tensor_at(g, 0)->type, GGUF_NO_TYPE);
    gguf_close(g);
}

/* A file that was cut is one, whatever numbers it uses; and every cut and every byte is survived. */
static void cuts(void **state)
{
    const uint64_t rows[] = {1, 64}, bytes[] = {72, 64 * 72};
    struct gguf *g;
    write_file(42, 2, rows, bytes);
    const uint64_t whole = n_file;
    struct err e = {0};
    assert_int_equal(gguf_parse(file, whole - 100, "m.gguf", &g, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "the download is incomplete"));
    for (uint64_t n = 0; n < whole; n += n < 200 ? 1 : 61)
        if (gguf_parse(file, n, "m.gguf", &g, NULL) == 0) gguf_close(g);
    for (uint64_t i = 24; i < 140; i++) {
        const uint8_t was = file[i];
        for (int v = 0; v < 256; v += 5) {
            file[i] = (uint8_t)v;
            if (gguf_parse(file, whole, "m.gguf", &g, NULL) == 0) gguf_close(g);
        }
        file[i] = was;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_tell),
        cmocka_unit_test(order_of_mxfp8),
        cmocka_unit_test(cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
