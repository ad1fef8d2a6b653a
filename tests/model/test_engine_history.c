/* Going back and forth in a history: drafts, forks, rewinds, snapshots, marks, rewind points. Whatever the way to a
 * position was, the logits there and behind it have the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/engine_kit.h"
#include "../support/synth_model.h"
#include "../support/temp_files.h"
#include "engine/engine_internal.h"

static int32_t other_token(int i)
{
    return 1 + (kit_tokens()[i] + 16) % (KIT_VOCAB - 1);
}

/* ---------------------------------------------------------------- drafts */

/* A draft of n rows behind p tokens, of which the first `keep` are right; then some plain tokens. */
static void draft_once(ds4_session *s, enum kit_model m, int p, int n, int keep)
{
    struct ds4_error e = {0};
    int32_t ids[16];
    static float rows[16][KIT_VOCAB];
    kit_sync(s, kit_tokens(), p);
    for (int i = 0; i < n; i++) ids[i] = i < keep ? kit_tokens()[p + i] : other_token(p + i);
    if (ds4_session_draft(s, ids, n, rows[0], &e)) fail_msg("%s", e.message);
    for (int i = 0; i < keep; i++) assert_memory_equal(rows[i], kit_truth(m, p + i + 1), sizeof rows[i]);
    kit_check(s, m, p);
    assert_int_equal(ds4_session_submit(s, ids, 1, &e), DS4_E_ARG); /* only a commit is allowed now */
    assert_int_equal(ds4_session_rewind(s, 0, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_commit(s, n + 1, &e), DS4_E_ARG);
    if (ds4_session_commit(s, keep, &e)) fail_msg("%s", e.message);
    kit_check(s, m, p + keep);
    assert_int_equal(ds4_session_commit(s, 0, &e), DS4_E_ARG);
    for (int i = 1; i <= 3; i++) {
        kit_eval(s, kit_tokens() + p + keep + i - 1, 1);
        kit_check(s, m, p + keep + i);
    }
}

static void test_drafts(void **state)
{
    uint64_t rng = 77;
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        struct ds4_options o = kit_options((enum kit_model)m);
        o.prefill_chunk = 128;
        ds4_engine *g = kit_open(&o);
        ds4_session *s = kit_session(g);
        const int times = m == KIT_Q8 ? 100 : 30;
        for (int i = 0; i < times; i++) {
            const int keep = i % 6, n = keep ? keep + kit_below(&rng, 17 - keep) : 1 + kit_below(&rng, 16);
            const int p = i % 10 == 0 ? 127 + 128 * kit_below(&rng, 4) : 1 + kit_below(&rng, KIT_TRUTH - 20);
            draft_once(s, (enum kit_model)m, p, n, keep);
        }
        ds4_session_free(s);
        ds4_engine_close(g);
    }
}

/* Others go on, with small and big steps, while a draft waits for its commit. */
static void test_draft_among_others(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *a = kit_session(g), *b = kit_session(g);
    kit_sync(a, kit_tokens(), 250);
    assert_int_equal(ds4_session_draft(a, kit_tokens() + 250, 8, NULL, &e), 0);
    kit_sync(b, kit_tokens(), 400);
    kit_eval(b, kit_tokens() + 400, 5);
    kit_check(b, KIT_Q8, 405);
    assert_int_equal(ds4_session_commit(a, 8, &e), 0);
    kit_check(a, KIT_Q8, 258);
    kit_eval(a, kit_tokens() + 258, 1);
    kit_check(a, KIT_Q8, 259);
    assert_int_equal(ds4_session_draft(a, kit_tokens() + 259, 8, NULL, &e), 0);
    ds4_session_free(a); /* with the draft open */
    kit_eval(b, kit_tokens() + 405, 40);
    kit_check(b, KIT_Q8, 445);
    ds4_session_free(b);
    ds4_engine_close(g);
}

/* ---------------------------------------------------------------- forks */

static void test_forks(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *a = kit_session(g), *b, *c;
    int32_t wrong[64];
    for (int i = 0; i < 64; i++) wrong[i] = other_token(301 + i);
    kit_sync(a, kit_tokens(), 301);
    assert_int_equal(ds4_session_fork(a, &b, &e), 0);
    kit_check(b, KIT_Q8, 301);
    kit_eval(a, wrong, 64); /* the copy must not see this */
    kit_eval(b, kit_tokens() + 301, 20);
    kit_check(b, KIT_Q8, 321);
    assert_int_equal(ds4_session_fork(b, &c, &e), 0);
    ds4_session_free(b);
    kit_eval(c, kit_tokens() + 321, 200);
    kit_check(c, KIT_Q8, 521);
    kit_rewind(c, 129); /* with points that the source took */
    kit_check(c, KIT_Q8, 129);
    kit_sync(a, kit_tokens(), 400);
    kit_check(a, KIT_Q8, 400);
    kit_submit(a, kit_tokens() + 400, 1);
    assert_int_equal(ds4_session_fork(a, &b, &e), DS4_E_ARG); /* not while it evaluates */
    assert_null(b);
    ds4_session_free(a);
    ds4_session_free(c);
    ds4_engine_close(g);
}

/* ---------------------------------------------------------------- rewinds */

static void test_rewinds(void **state)
{
    uint64_t rng = 5;
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        struct ds4_options o = kit_options((enum kit_model)m);
        o.prefill_chunk = 128;
        ds4_engine *g = kit_open(&o);
        ds4_session *s = kit_session(g);
        for (int i = 0; i < 50; i++) {
            const int top = 200 + kit_below(&rng, KIT_TRUTH - 220);
            kit_sync(s, kit_tokens(), top);
            const int pos = i % 5 == 0 ? top - kit_below(&rng, 17) : 1 + kit_below(&rng, top);
            kit_rewind(s, pos);
            kit_check(s, (enum kit_model)m, pos);
            const int more = 1 + kit_below(&rng, 20);
            kit_eval(s, kit_tokens() + pos, more);
            kit_check(s, (enum kit_model)m, pos + more);
        }
        kit_rewind(s, 0);
        assert_int_equal(ds4_session_length(s), 0);
        assert_null(ds4_session_logits(s));
        kit_sync(s, kit_tokens(), 5);
        kit_check(s, (enum kit_model)m, 5);
        ds4_session_free(s);
        ds4_engine_close(g);
    }
}

/* What a sync of tokens[0..n) with token `differs` replaced (-1: none) found and did. */
static struct ds4_sync_info sync_info(ds4_session *s, int n, int differs)
{
    static int32_t ids[KIT_TOKENS];
    struct ds4_sync_info info;
    struct ds4_error e = {0};
    memcpy(ids, kit_tokens(), sizeof ids);
    if (differs >= 0) ids[differs] = other_token(differs);
    if (ds4_session_sync(s, ids, n, NULL, NULL, &info, &e)) fail_msg("%s", e.message);
    assert_int_equal(ds4_session_length(s), n);
    assert_int_equal(info.reused + info.evaluated, n);
    return info;
}

static void test_sync(void **state)
{
    struct ds4_options o = kit_options(KIT_F16);
    o.prefill_chunk = 128;
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    struct ds4_sync_info i = sync_info(s, 300, -1);
    assert_true(i.reused == 0 && i.evaluated == 300 && i.first_diff == -1);
    i = sync_info(s, 300, -1); /* nothing to do */
    assert_true(i.reused == 300 && i.evaluated == 0 && i.first_diff == -1);
    i = sync_info(s, 350, -1); /* more */
    assert_true(i.reused == 300 && i.first_diff == -1);
    i = sync_info(s, 256, -1); /* less: a point with logits is there */
    assert_true(i.reused == 256 && i.first_diff == -1);
    kit_check(s, KIT_F16, 256);
    i = sync_info(s, 257, 256);
    i = sync_info(s, 260, 258);
    assert_int_equal(i.first_diff, 256);
    assert_int_equal(i.reused, 256);
    i = sync_info(s, 260, -1); /* the family still holds the last rows */
    assert_true(i.reused == 258 && i.first_diff == 258);
    kit_check(s, KIT_F16, 260);
    i = sync_info(s, 290, 3); /* before the first point: from zero */
    assert_true(i.reused == 0 && i.first_diff == 3);
    kit_sync(s, kit_tokens(), 290);
    kit_check(s, KIT_F16, 290);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* Two prompts queued at once, one of them after a history that differs, give what each gives alone. */
static void test_sync_submit(void **state)
{
    struct ds4_options o = kit_options(KIT_Q8);
    o.prefill_chunk = 64;
    ds4_engine *g = kit_open(&o);
    ds4_session *a = kit_session(g), *b = kit_session(g);
    struct ds4_sync_info i;
    struct ds4_error e = {0};
    static int32_t ids[KIT_TRUTH];
    memcpy(ids, kit_tokens(), sizeof ids);
    ids[200] = other_token(200);
    kit_sync(a, ids, 300);
    assert_int_equal(ds4_session_sync_submit(a, kit_tokens(), 400, &i, &e), 0);
    assert_true(i.first_diff == 200 && i.reused <= 200 && i.reused >= 128);
    assert_int_equal(ds4_session_sync_submit(b, kit_tokens(), 500, &i, &e), 0);
    assert_true(i.first_diff == -1 && i.reused == 0);
    assert_int_equal(ds4_session_sync_submit(a, kit_tokens(), 400, &i, &e), DS4_E_ARG); /* not while it evaluates */
    while (ds4_engine_step(g, &e) > 0) {
    }
    assert_int_equal(ds4_session_collect(a, NULL, &e), DS4_DONE);
    assert_int_equal(ds4_session_collect(b, NULL, &e), DS4_DONE);
    kit_check(a, KIT_Q8, 400);
    kit_check(b, KIT_Q8, 500);
    assert_int_equal(ds4_session_sync_submit(a, kit_tokens(), 400, &i, &e), 0); /* nothing is left to do */
    assert_int_equal(i.reused, 400);
    assert_int_equal(ds4_session_collect(a, NULL, &e), DS4_DONE);
    assert_int_equal(ds4_session_collect(a, NULL, &e), DS4_IDLE);
    kit_check(a, KIT_Q8, 400);
    assert_int_equal(ds4_session_sync_submit(a, kit_tokens(), 4096, &i, &e), DS4_E_LIMIT);
    ds4_session_free(a);
    ds4_session_free(b);
    ds4_engine_close(g);
}

/* A history that went on differently leaves nothing behind, rewind points included. */
static void test_other_history(void **state)
{
    struct ds4_options o = kit_options(KIT_Q8);
    o.prefill_chunk = 128;
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g), *fresh = kit_session(g);
    static int32_t ids[KIT_TRUTH];
    memcpy(ids, kit_tokens(), sizeof ids);
    ids[100] = other_token(100);
    kit_sync(s, kit_tokens(), KIT_TRUTH);
    kit_sync(s, ids, 650);
    kit_rewind(s, 384);
    kit_sync(fresh, ids, 384);
    assert_memory_equal(ds4_session_logits(s), ds4_session_logits(fresh), KIT_VOCAB * sizeof(float));
    assert_memory_not_equal(ds4_session_logits(s), kit_truth(KIT_Q8, 384), KIT_VOCAB * sizeof(float));
    kit_sync(s, kit_tokens(), KIT_TRUTH);
    kit_rewind(s, 256);
    kit_check(s, KIT_Q8, 256);
    ds4_session_free(s);
    ds4_session_free(fresh);
    ds4_engine_close(g);
}

/* ---------------------------------------------------------------- marks and the budget */

static void test_marks(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_F16);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    static const int mark[] = {333, 50, 51, 601};
    for (int i = 0; i < 4; i++) assert_int_equal(ds4_session_mark(s, mark[i], &e), 0);
    kit_sync(s, kit_tokens(), 650);
    kit_check(s, KIT_F16, 650);
    assert_int_equal(sync_info(s, 650, 601).reused, 601);
    kit_sync(s, kit_tokens(), 650);
    assert_int_equal(sync_info(s, 333, -1).evaluated, 0);
    kit_check(s, KIT_F16, 333);
    kit_eval(s, kit_tokens() + 333, 1);
    assert_int_equal(ds4_session_mark(s, 334, &e), 0); /* where it stands */
    kit_eval(s, kit_tokens() + 334, 100);
    assert_int_equal(sync_info(s, 334, -1).evaluated, 0);
    assert_int_equal(sync_info(s, 60, 51).reused, 51);
    assert_int_equal(sync_info(s, 60, 50).reused, 50);
    assert_int_equal(ds4_session_mark(s, -1, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_mark(s, 4097, &e), DS4_E_ARG);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* Drafts leave rewind points on their way as plain steps do: at marks, and at multiples of 128. */
static void test_marks_in_drafts(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), 120);
    assert_int_equal(ds4_session_mark(s, 123, &e), 0);
    assert_int_equal(ds4_session_mark(s, 135, &e), 0);
    assert_int_equal(ds4_session_draft(s, kit_tokens() + 120, 16, NULL, &e), 0);
    assert_int_equal(ds4_session_commit(s, 12, &e), 0);
    kit_check(s, KIT_Q8, 132);
    kit_eval(s, kit_tokens() + 132, 300);
    kit_check(s, KIT_Q8, 432);
    assert_int_equal(sync_info(s, 135, -1).evaluated, 0); /* still ahead of the draft's end */
    assert_int_equal(sync_info(s, 128, -1).evaluated, 0);
    kit_check(s, KIT_Q8, 128);
    assert_int_equal(sync_info(s, 123, -1).evaluated, 0);
    kit_check(s, KIT_Q8, 123);
    kit_eval(s, kit_tokens() + 123, 200);
    kit_check(s, KIT_Q8, 323);
    ds4_session_free(s);
    ds4_engine_close(g);
}

static uint64_t anchor_bytes(const struct anchors *a)
{
    uint64_t n = 0;
    for (int i = 0; i < a->n; i++) {
        n += a->at[i]->cap;
        if (i) assert_true(a->at[i]->pos > a->at[i - 1]->pos);
    }
    return n;
}

/* With room for a handful of points: the budget holds, marks stay, the rest lies closer together towards the tail. */
static void test_budget(void **state)
{
    struct ds4_error e = {0};
    struct ds4_options o = kit_options(KIT_F16);
    o.prefill_chunk = 64;
    o.anchor_bytes = 1;
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), 300);
    assert_int_equal(s->anchors.n, 0); /* not even one fits */
    const size_t one = KIT_VOCAB * sizeof(float) + g->family->anchor_bytes_at(g->model, 128);
    ds4_session_free(s);
    s = kit_session(g);
    s->anchors.budget = 8 * one;
    assert_int_equal(ds4_session_mark(s, 128, &e), 0);
    assert_int_equal(ds4_session_mark(s, 384, &e), 0);
    for (int n = 200; n <= 2000; n += 200) {
        kit_sync(s, kit_tokens(), n);
        assert_true(anchor_bytes(&s->anchors) <= s->anchors.budget);
        assert_int_equal(anchor_bytes(&s->anchors), s->anchors.bytes);
    }
    const struct anchors *a = &s->anchors;
    assert_in_range(a->n, 7, 8);
    assert_int_equal(a->at[0]->pos, 128);
    int marked = 0;
    for (int i = 0; i < a->n; i++) {
        assert_int_equal(a->marked[i], a->at[i]->pos == 128 || a->at[i]->pos == 384);
        marked += a->marked[i];
        const int before = i ? a->at[i - 1]->pos : 0;
        assert_true(a->at[i]->pos - before <= 2000 - before - 128 + 64);
    }
    assert_int_equal(marked, 2);
    assert_true(a->at[a->n - 1]->pos >= 1920 && a->at[a->n - 2]->pos >= 1664);
    ds4_session_free(s);
    s = kit_session(g);
    s->anchors.budget = 2 * one; /* the marks push others out, and no others push out the marks */
    assert_int_equal(ds4_session_mark(s, 128, &e), 0);
    assert_int_equal(ds4_session_mark(s, 384, &e), 0);
    kit_sync(s, kit_tokens(), KIT_TRUTH);
    assert_true(s->anchors.n == 2 && s->anchors.at[0]->pos == 128 && s->anchors.at[1]->pos == 384);
    kit_rewind(s, 500);
    kit_check(s, KIT_F16, 500);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* ---------------------------------------------------------------- snapshots */

static void restore(ds4_session *s, const void *data, size_t n)
{
    struct ds4_error e = {0};
    if (ds4_session_restore(s, data, n, &e)) fail_msg("%s", e.message);
}

static void test_snapshots(void **state)
{
    static const int at[] = {0, 1, 127, 128, 300, 523};
    struct ds4_error e = {0};
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        const struct ds4_options o = kit_options((enum kit_model)m);
        ds4_engine *g = kit_open(&o), *other = kit_open(&o);
        for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
            ds4_session *a = kit_session(g), *b = kit_session(other);
            void *data;
            size_t n;
            if (at[i]) kit_sync(a, kit_tokens(), at[i]);
            assert_int_equal(ds4_session_snapshot(a, &data, &n, &e), 0);
            ds4_session_free(a);
            kit_eval(b, &(int32_t){5}, 1); /* something to replace */
            restore(b, data, n);
            ds4_free(data);
            assert_int_equal(ds4_session_length(b), at[i]);
            if (at[i]) kit_check(b, (enum kit_model)m, at[i]);
            kit_eval(b, kit_tokens() + at[i], 1);
            kit_check(b, (enum kit_model)m, at[i] + 1);
            kit_eval(b, kit_tokens() + at[i] + 1, 150);
            kit_check(b, (enum kit_model)m, at[i] + 151);
            ds4_session_free(b);
        }
        ds4_engine_close(g);
        ds4_engine_close(other);
    }
}

/* Every refusal leaves the session as it was. */
static void refused(ds4_session *s, const void *data, size_t n, int code)
{
    struct ds4_error e = {0};
    assert_int_equal(ds4_session_restore(s, data, n, &e), code);
    assert_int_equal(e.code, code);
    assert_true(strlen(e.message) > 0);
    kit_check(s, KIT_Q8, 40);
}

static void test_bad_snapshots(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8), o16 = kit_options(KIT_F16);
    ds4_engine *g = kit_open(&o), *g16 = kit_open(&o16);
    ds4_session *s = kit_session(g), *big = kit_session(g), *s16 = kit_session(g16), *small;
    void *data, *data16;
    size_t n, n16;
    kit_sync(s, kit_tokens(), 40);
    kit_sync(big, kit_tokens(), 300);
    kit_sync(s16, kit_tokens(), 40);
    assert_int_equal(ds4_session_snapshot(big, &data, &n, &e), 0);
    assert_int_equal(ds4_session_snapshot(s16, &data16, &n16, &e), 0);
    refused(s, data16, n16, DS4_E_MODEL);
    refused(s, data, 0, DS4_E_FORMAT);
    refused(s, data, 8, DS4_E_FORMAT);
    refused(s, data, n - 1, DS4_E_FORMAT);
    unsigned char *copy = malloc(n + 1);
    memcpy(copy, data, n);
    copy[n] = 0;
    refused(s, copy, n + 1, DS4_E_FORMAT);
    for (size_t i = 0; i < n; i += i < 100 ? 1 : n / 97) {
        copy[i] ^= 0x40;
        assert_true(ds4_session_restore(s, copy, n, &e) < 0);
        kit_check(s, KIT_Q8, 40);
        copy[i] ^= 0x40;
    }
    assert_int_equal(ds4_session_create(g, 299, &small, &e), 0);
    assert_int_equal(ds4_session_restore(small, data, n, &e), DS4_E_LIMIT);
    assert_int_equal(ds4_session_length(small), 0);
    kit_eval(s, kit_tokens() + 40, 3);
    kit_check(s, KIT_Q8, 43);
    restore(s, copy, n);
    kit_check(s, KIT_Q8, 300);
    free(copy);
    ds4_free(data);
    ds4_free(data16);
    ds4_session_free(small);
    ds4_session_free(big);
    ds4_session_free(s);
    ds4_session_free(s16);
    ds4_engine_close(g);
    ds4_engine_close(g16);
}

/* Files with the same tensors but another parameter are not the same model. */
static void test_snapshot_parameters(void **state)
{
    struct ds4_error e = {0};
    struct err err = {0};
    struct synth_shape shape = synth_tiny();
    char made[2][TEMP_PATH];
    const char *const path[2] = {made[0], made[1]};
    for (int i = 0; i < 2; i++) temp_file(made[i]);
    ds4_engine *g[2];
    ds4_session *s[2];
    void *data;
    size_t n;
    for (int i = 0; i < 2; i++) {
        shape.base = i ? 20000 : 10000;
        assert_int_equal(synth_deepseek4(path[i], &shape, &err), 0);
        struct ds4_options o = kit_options(KIT_F16);
        o.model_paths = &path[i];
        g[i] = kit_open(&o);
        s[i] = kit_session(g[i]);
        kit_sync(s[i], kit_tokens(), 20);
    }
    assert_int_equal(ds4_session_snapshot(s[0], &data, &n, &e), 0);
    assert_int_equal(ds4_session_restore(s[0], data, n, &e), 0);
    assert_int_equal(ds4_session_restore(s[1], data, n, &e), DS4_E_MODEL);
    ds4_free(data);
    for (int i = 0; i < 2; i++) {
        ds4_session_free(s[i]);
        ds4_engine_close(g[i]);
        unlink(path[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_draft_among_others),
        cmocka_unit_test(test_forks),
        cmocka_unit_test(test_rewinds),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_sync_submit),
        cmocka_unit_test(test_other_history),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_marks_in_drafts),
        cmocka_unit_test(test_snapshot_parameters),
        cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_bad_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, kit_teardown);
}
