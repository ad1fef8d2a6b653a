/* A row's result depends on nothing but its own history: chunks, threads, other sessions' rows, sweeps that are
 * interrupted. All comparisons are of bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "engine/engine_internal.h"
#include "../support/engine_kit.h"

static void test_chunks(void **state)
{
    static const int chunk[] = {1, 3, 64, 512, KIT_TRUTH};
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        for (size_t i = 0; i < sizeof chunk / sizeof *chunk; i++) {
            struct ds4_options o = kit_options((enum kit_model)m);
            o.prefill_chunk = chunk[i];
            ds4_engine *g = kit_open(&o);
            ds4_session *s = kit_session(g);
            const int n = chunk[i] < 64 ? 150 : KIT_TRUTH;
            kit_sync(s, kit_tokens(), n - 1);
            kit_check(s, (enum kit_model)m, n - 1);
            kit_sync(s, kit_tokens(), n);
            kit_check(s, (enum kit_model)m, n);
            ds4_session_free(s);
            ds4_engine_close(g);
        }
    }
}

/* Chunks of which only a part is attended to at a time (DEEPSEEK4_PART). */
static void test_long_chunks(void **state)
{
    enum { N = 2081 };
    static const int chunk[] = {512, 1152, 2048};
    float want[KIT_VOCAB];
    for (size_t i = 0; i < sizeof chunk / sizeof *chunk; i++) {
        struct ds4_options o = kit_options(KIT_Q2);
        o.prefill_chunk = chunk[i];
        o.sessions = 1;
        ds4_engine *g = kit_open(&o);
        ds4_session *s = kit_session(g);
        kit_sync(s, kit_tokens(), N);
        if (i)
            assert_memory_equal(ds4_session_logits(s), want, sizeof want);
        else
            memcpy(want, ds4_session_logits(s), sizeof want);
        ds4_session_free(s);
        ds4_engine_close(g);
    }
}

/* The answers mean something: they are finite, differ from position to position and from model to model. */
static void test_answers(void **state)
{
    for (int n = 1; n <= KIT_TRUTH; n++) {
        const float *x = kit_truth(KIT_F16, n);
        for (int i = 0; i < KIT_VOCAB; i++) assert_true(isfinite(x[i]));
        assert_memory_not_equal(x, kit_truth(KIT_F16, n > 1 ? n - 1 : 2), KIT_VOCAB * sizeof(float));
        assert_memory_not_equal(x, kit_truth(KIT_Q8, n), KIT_VOCAB * sizeof(float));
    }
}

static void test_threads(void **state)
{
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        for (int threads = 1; threads <= 3; threads++) {
            struct ds4_options o = kit_options((enum kit_model)m);
            o.threads = threads;
            ds4_engine *g = kit_open(&o);
            ds4_session *s = kit_session(g);
            kit_sync(s, kit_tokens(), 300);
            kit_check(s, (enum kit_model)m, 300);
            for (int n = 301; n < 310; n++) {
                kit_eval(s, kit_tokens() + n - 1, 1);
                kit_check(s, (enum kit_model)m, n);
            }
            ds4_session_free(s);
            ds4_engine_close(g);
        }
    }
}

static void collect_done(ds4_session *s, int n)
{
    int done = -1;
    assert_int_equal(ds4_session_collect(s, &done, NULL), DS4_DONE);
    assert_int_equal(done, n);
    assert_int_equal(ds4_session_collect(s, NULL, NULL), DS4_IDLE);
}

/* Eight sessions at eight positions share one decode step; some with several rows. */
static void test_batch(void **state)
{
    enum { N = 8 };
    static const int at[N] = {1, 7, 8, 127, 128, 255, 333, 600}, rows[N] = {1, 3, 16, 1, 2, 1, 5, 1};
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        const struct ds4_options o = kit_options((enum kit_model)m);
        ds4_engine *g = kit_open(&o);
        ds4_session *s[N];
        for (int i = 0; i < N; i++) {
            s[i] = kit_session(g);
            kit_sync(s[i], kit_tokens(), at[i]);
        }
        for (int i = 0; i < N; i++) kit_submit(s[i], kit_tokens() + at[i], rows[i]);
        assert_int_equal(ds4_engine_step(g, NULL), 0); /* one step for all of them */
        for (int i = 0; i < N; i++) {
            collect_done(s[i], rows[i]);
            kit_check(s[i], (enum kit_model)m, at[i] + rows[i]);
        }
        for (int i = 0; i < N; i++) ds4_session_free(s[i]);
        ds4_engine_close(g);
    }
}

/* One session's long prompt against another that decodes all the while: in turns, one decode step for each layer. */
static void test_interrupted_sweep(void **state)
{
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        struct ds4_options o = kit_options((enum kit_model)m);
        o.prefill_chunk = 128;
        ds4_engine *g = kit_open(&o);
        struct ds4_model_info info;
        ds4_engine_info(g, &info);
        ds4_session *a = kit_session(g), *b = kit_session(g);
        kit_sync(b, kit_tokens(), 120);
        kit_submit(a, kit_tokens(), KIT_TRUTH);
        int steps = 0, decoded = 0, done_a = 0;
        bool more = true;
        kit_submit(b, kit_tokens() + 120, 1);
        while (more) {
            more = ds4_engine_step(g, NULL) == 1;
            steps++;
            if (ds4_session_collect(b, NULL, NULL) == DS4_DONE) {
                kit_check(b, (enum kit_model)m, 121 + decoded);
                decoded++;
                if (ds4_session_collect(a, &done_a, NULL) == DS4_BUSY) kit_submit(b, kit_tokens() + 120 + decoded, 1);
            }
        }
        kit_check(a, (enum kit_model)m, KIT_TRUTH);
        const int chunks = (KIT_TRUTH + 127) / 128;
        assert_true(decoded >= chunks * info.n_layers - 1);
        assert_true(steps - decoded >= (chunks - 1) * info.n_layers);
        ds4_session_free(a);
        ds4_session_free(b);
        ds4_engine_close(g);
    }
}

/* Two long prompts take turns by chunks; both come out right. */
static void test_two_sweeps(void **state)
{
    struct ds4_options o = kit_options(KIT_Q8);
    o.prefill_chunk = 64;
    ds4_engine *g = kit_open(&o);
    ds4_session *a = kit_session(g), *b = kit_session(g);
    kit_submit(a, kit_tokens(), 600);
    kit_submit(b, kit_tokens(), 200);
    int done_a = 0, rc;
    while ((rc = ds4_engine_step(g, NULL)) == 1)
        if (ds4_session_length(b) == 200 && !done_a) done_a = ds4_session_length(a);
    assert_int_equal(rc, 0);
    assert_in_range(done_a, 128, 256); /* b did not wait for all of a */
    kit_check(a, KIT_Q8, 600);
    kit_check(b, KIT_Q8, 200);
    ds4_session_free(a);
    ds4_session_free(b);
    ds4_engine_close(g);
}

/* Where layers are known to take long, a prompt goes in small pieces while an answer is written and in large ones as
 * soon as it is over: the same bits. */
static void test_pieces_beside_an_answer(void **state)
{
    struct ds4_options o = kit_options(KIT_Q8);
    o.prefill_chunk = 512;
    ds4_engine *g = kit_open(&o);
    ds4_session *a = kit_session(g), *b = kit_session(g);
    kit_sync(b, kit_tokens(), 120);
    g->pace.layer_s[0] = 1, g->pace.layer_s[1] = 0.5;
    kit_submit(a, kit_tokens(), KIT_TRUTH);
    kit_submit(b, kit_tokens() + 120, 1);
    int decoded = 0, done = 0, before = 0;
    while (ds4_engine_step(g, NULL) == 1) {
        (void)ds4_session_collect(a, &done, NULL);
        if (done > before && before < 256) assert_int_equal(done - before, 128);
        if (done > before && before == 256) assert_int_equal(done, KIT_TRUTH); /* alone, 444 in one piece */
        before = done;
        if (done < 256 && ds4_session_collect(b, NULL, NULL) == DS4_DONE)
            kit_submit(b, kit_tokens() + 121 + decoded++, 1);
    }
    assert_true(decoded > 0);
    kit_check(a, KIT_Q8, KIT_TRUTH);
    kit_check(b, KIT_Q8, ds4_session_length(b));
    ds4_session_free(a);
    ds4_session_free(b);
    ds4_engine_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),     cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_long_chunks), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_batch),       cmocka_unit_test(test_interrupted_sweep),
        cmocka_unit_test(test_two_sweeps),  cmocka_unit_test(test_pieces_beside_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, kit_teardown);
}
