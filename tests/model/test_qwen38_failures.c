/* A row of the n-gram table that cannot be read fails the step: nothing of it becomes history, and once the rows are
 * there again the session goes on with the same bits. */
#include "../support/engine_kit.h"
#include "base/file.h"
#include "base/mem.h"
#include "gguf/gguf.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* The model's file, and where its table begins: behind everything else. */
struct victim {
    const char *path;
    char *bytes;
    size_t n;
    uint64_t table;
};

static struct victim victim_make(void)
{
    struct victim v = {.path = kit_path(KIT_QWEN)};
    struct err e = {0};
    struct gguf *g;
    if (file_read(v.path, 1 << 24, &v.bytes, &v.n, &e) || gguf_open(v.path, &g, &e)) fail_msg("%s", e.msg);
    const struct gguf_tensor *t = gguf_tensor_find(g, "per_layer_token_embd.weight", 27);
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) assert_true(gguf_tensor_at(g, i)->offset <= t->offset);
    v.table = t->offset;
    gguf_close(g);
    return v;
}

static void give_back(const struct victim *v)
{
    FILE *f = fopen(v->path, "r+b");
    assert_non_null(f);
    assert_int_equal(fwrite(v->bytes, 1, v->n, f), v->n);
    assert_int_equal(fclose(f), 0);
}

static void expect(const struct victim *v, int rc, const struct ds4_error *e)
{
    assert_int_equal(rc, DS4_E_IO);
    if (!strstr(e->message, v->path)) fail_msg("\"%s\"", e->message);
}

static void rows_that_cannot_be_read(void **state)
{
    const struct ds4_options o = kit_options(KIT_QWEN);
    kit_truth(KIT_QWEN, 1); /* before the file is spoilt */
    struct victim v = victim_make();
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    struct ds4_error e = {0};
    kit_sync(s, kit_tokens(), 40);
    for (int k = 0; k < 3; k++) {
        const int length = ds4_session_length(s);
        assert_int_equal(truncate(v.path, (off_t)v.table), 0);
        expect(&v, ds4_session_sync(s, kit_tokens(), length + 30, NULL, NULL, NULL, &e), &e);
        expect(&v, ds4_session_draft(s, kit_tokens() + length, 2, NULL, &e), &e);
        kit_submit(s, kit_tokens() + length, 1);
        expect(&v, ds4_engine_step(g, &e), &e);
        assert_int_equal(ds4_session_collect(s, NULL, NULL), DS4_FAILED);
        kit_check(s, KIT_QWEN, length);
        give_back(&v);
        kit_eval(s, kit_tokens() + length, 1 + 25 * k);
        kit_check(s, KIT_QWEN, length + 1 + 25 * k);
    }
    ds4_session_free(s);
    ds4_engine_close(g);
    mem_free(v.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_that_cannot_be_read)};
    return cmocka_run_group_tests(tests, NULL, kit_teardown);
}
