/* What can go wrong, and what is refused: cancellation, failing steps, memory, wrong arguments; and what an engine
 * tells about itself and makes of text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/engine_kit.h"
#include "../support/dialect_forms.h"
#include "../support/temp_files.h"
#include "../support/synth_model.h"
#include "../support/synth_qwen38.h"
#include "base/clock.h"
#include "engine/engine_internal.h"
#include "gguf/gguf.h"

/* ---------------------------------------------------------------- cancellation */

struct canceller {
    ds4_session *s;
    atomic_int calls;       /* of progress */
    int after;              /* cancels once so many were seen */
    _Atomic uint64_t at;    /* when; 0: not yet */
    int calls_at;           /* calls seen then */
    uint64_t last, longest; /* longest step before the cancellation */
};

static void count_progress(void *arg, int done, int total)
{
    struct canceller *c = arg;
    const uint64_t now = clock_ns();
    if (atomic_load(&c->calls) && !atomic_load(&c->at) && now - c->last > c->longest) c->longest = now - c->last;
    c->last = now;
    atomic_fetch_add(&c->calls, 1);
}

static void *cancel_later(void *arg)
{
    struct canceller *c = arg;
    while (atomic_load(&c->calls) < c->after) {
    }
    atomic_store(&c->at, clock_ns());
    ds4_session_cancel(c->s);
    c->calls_at = atomic_load(&c->calls);
    return NULL;
}

/* Cancels a prefill of 2,000 tokens from another thread. Returns whether it ended within one step and 10 ms. */
static bool cancel_prefill(ds4_engine *g, int after)
{
    struct ds4_error e = {0};
    ds4_session *s = kit_session(g);
    struct canceller c = {.s = s, .after = after};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, &c), 0);
    const int rc = ds4_session_sync(s, kit_tokens(), 2000, count_progress, &c, NULL, &e);
    const uint64_t end = clock_ns();
    pthread_join(thread, NULL);
    assert_int_equal(rc, DS4_E_CANCELLED);
    assert_true(atomic_load(&c.calls) - c.calls_at <= 2); /* at most the step at work and one that had just begun */
    const int kept = ds4_session_length(s);
    assert_true(kept < 2000);
    assert_int_equal(kept % 128, 0); /* whole chunks */
    kit_sync(s, kit_tokens(), 600);  /* the session goes on */
    kit_check(s, KIT_Q2, 600);
    ds4_session_free(s);
    return end - atomic_load(&c.at) < c.longest + 10000000u;
}

static void test_cancel_prefill(void **state)
{
    struct ds4_options o = kit_options(KIT_Q2);
    o.threads = 1; /* leaves a processor to the thread that cancels */
    o.prefill_chunk = 128;
    ds4_engine *g = kit_open(&o);
    bool in_time = false;
    for (int i = 0; i < 5 && !in_time; i++) in_time = cancel_prefill(g, 6 + 5 * i);
    assert_true(in_time);
    ds4_engine_close(g);
}

/* Cancels from inside a step: the family's layer function is replaced by one that raises the flag on the way. */
static struct {
    struct family family;
    const struct family *real;
    ds4_session *victim;
    int layer_calls, cancel_at, fail_at;
    bool prepare_fails, commit_fails;
} hook;

static void hooked_layer(const void *model, struct step *s, int l)
{
    hook.layer_calls++;
    if (hook.layer_calls == hook.cancel_at) ds4_session_cancel(hook.victim);
    hook.real->layer(model, s, l);
    if (hook.layer_calls == hook.fail_at) dev_fail(s->stream, ERR_DEVICE, "a device failed in layer %d", l);
}

static int hooked_prepare(const void *model, struct step *s, struct err *e)
{
    if (hook.prepare_fails) return err_set(e, ERR_MEMORY, "no room for rows");
    return hook.real->prepare(model, s, e);
}

static int hooked_commit(const void *model, struct step *s, int segment, int n, struct err *e)
{
    const bool fails = hook.commit_fails && n > 0;
    const int rc = hook.real->commit(model, s, segment, fails ? 0 : n, e);
    return fails ? err_set(e, ERR_DEVICE, "rows were lost") : rc;
}

static void hook_into(ds4_engine *g)
{
    memset(&hook, 0, sizeof hook);
    hook.real = g->family;
    hook.family = *g->family;
    hook.family.layer = hooked_layer;
    hook.family.prepare = hooked_prepare;
    hook.family.commit = hooked_commit;
    g->family = &hook.family;
}

static void hook_at(ds4_session *victim, int cancel_at, int fail_at)
{
    hook.victim = victim;
    hook.layer_calls = 0;
    hook.cancel_at = cancel_at;
    hook.fail_at = fail_at;
}

static void test_cancel_at_every_layer(void **state)
{
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    hook_into(g);
    ds4_session *a = kit_session(g), *b = kit_session(g);
    kit_sync(a, kit_tokens(), 100);
    kit_sync(b, kit_tokens(), 130);
    for (int layer = 1; layer <= g->n_layers; layer++) {
        struct ds4_error e = {0};
        hook_at(a, layer, 0); /* alone in a decode step: it ends at that layer */
        kit_submit(a, kit_tokens() + 100, 4);
        assert_int_equal(ds4_engine_step(g, NULL), 0);
        assert_int_equal(hook.layer_calls, layer);
        assert_int_equal(ds4_session_collect(a, NULL, &e), DS4_CANCELLED);
        assert_int_equal(ds4_session_collect(a, NULL, &e), DS4_IDLE);
        kit_check(a, KIT_Q8, 100);

        hook_at(a, layer, 0); /* with another, who gets its rows */
        const int at_b = ds4_session_length(b);
        kit_submit(a, kit_tokens() + 100, 4);
        kit_submit(b, kit_tokens() + at_b, 1);
        assert_int_equal(ds4_engine_step(g, NULL), 0);
        assert_int_equal(hook.layer_calls, g->n_layers);
        assert_int_equal(ds4_session_collect(a, NULL, &e), DS4_CANCELLED);
        assert_int_equal(ds4_session_collect(b, NULL, &e), DS4_DONE);
        kit_check(a, KIT_Q8, 100);
        kit_check(b, KIT_Q8, at_b + 1);

        hook_at(a, layer, 0); /* in a draft, and in a sweep */
        assert_int_equal(ds4_session_draft(a, kit_tokens() + 100, 4, NULL, &e), DS4_E_CANCELLED);
        hook_at(a, layer, 0);
        assert_int_equal(ds4_session_sync(a, kit_tokens(), 300, NULL, NULL, NULL, &e), DS4_E_CANCELLED);
        assert_int_equal(hook.layer_calls, layer);
        kit_check(a, KIT_Q8, 100);
    }
    hook_at(a, 0, 0);
    kit_sync(a, kit_tokens(), 300);
    kit_check(a, KIT_Q8, 300);
    ds4_session_free(a);
    ds4_session_free(b);
    ds4_engine_close(g);
}

/* Waiting work is dropped too; a cancellation without work has no effect on what follows. */
static void test_cancel_waiting(void **state)
{
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *a = kit_session(g), *b = kit_session(g);
    kit_submit(a, kit_tokens(), 600);
    kit_submit(b, kit_tokens(), 600);
    assert_int_equal(ds4_engine_step(g, NULL), 1);
    ds4_session_cancel(b);
    assert_int_equal(ds4_engine_step(g, NULL), 1);
    assert_int_equal(ds4_session_collect(b, NULL, NULL), DS4_CANCELLED);
    ds4_session_cancel(a); /* between two layers of its sweep */
    assert_int_equal(ds4_engine_step(g, NULL), 0);
    assert_int_equal(ds4_session_collect(a, NULL, NULL), DS4_CANCELLED);
    ds4_session_cancel(a);
    kit_sync(a, kit_tokens(), 30);
    kit_check(a, KIT_Q8, 30);
    kit_submit(b, kit_tokens(), 600);
    assert_int_equal(ds4_engine_step(g, NULL), 1);
    ds4_session_free(b); /* in the middle of its sweep */
    kit_sync(a, kit_tokens(), 100);
    kit_check(a, KIT_Q8, 100);
    ds4_session_free(a);
    ds4_engine_close(g);
}

/* ---------------------------------------------------------------- failing steps */

static void expect_failed(ds4_session *s, int code, const char *text)
{
    struct ds4_error e = {0};
    assert_int_equal(ds4_session_collect(s, NULL, &e), DS4_FAILED);
    assert_int_equal(e.code, code);
    assert_non_null(strstr(e.message, text));
    assert_int_equal(ds4_session_collect(s, NULL, &e), DS4_IDLE);
}

static void test_failures(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    hook_into(g);
    ds4_session *a = kit_session(g), *b = kit_session(g);
    kit_sync(a, kit_tokens(), 60);
    kit_sync(b, kit_tokens(), 70);
    for (int layer = 1; layer <= g->n_layers; layer++) {
        hook_at(NULL, 0, layer);
        kit_submit(a, kit_tokens() + 60, 1);
        assert_int_equal(ds4_engine_step(g, &e), DS4_E_DEVICE);
        expect_failed(a, DS4_E_DEVICE, "a device failed");
        kit_check(a, KIT_Q8, 60);
        hook_at(NULL, 0, layer);
        assert_int_equal(ds4_session_sync(a, kit_tokens(), 200, NULL, NULL, NULL, &e), DS4_E_DEVICE);
        assert_int_equal(ds4_session_draft(a, kit_tokens() + 60, 2, NULL, &e), 0);
        assert_int_equal(ds4_session_commit(a, 0, &e), 0);
        kit_check(a, KIT_Q8, 60);
    }
    hook_at(NULL, 0, 2); /* the sweep of a fails, the decode step of b does not */
    kit_submit(a, kit_tokens() + 60, 100);
    kit_submit(b, kit_tokens() + 70, 17);
    int failures = 0, rc;
    while ((rc = ds4_engine_step(g, &e)) != 0) failures += rc < 0;
    assert_int_equal(failures, 1);
    expect_failed(a, DS4_E_DEVICE, "a device failed");
    assert_int_equal(ds4_session_collect(b, NULL, NULL), DS4_DONE);
    kit_check(a, KIT_Q8, 60);
    kit_check(b, KIT_Q8, 87);
    hook.prepare_fails = true;
    kit_submit(a, kit_tokens() + 60, 1);
    assert_int_equal(ds4_engine_step(g, &e), DS4_E_MEMORY);
    expect_failed(a, DS4_E_MEMORY, "no room");
    assert_int_equal(ds4_session_sync(a, kit_tokens(), 300, NULL, NULL, NULL, &e), DS4_E_MEMORY);
    assert_int_equal(ds4_session_draft(a, kit_tokens() + 60, 2, NULL, &e), DS4_E_MEMORY);
    hook.prepare_fails = false;
    hook.commit_fails = true;
    kit_submit(a, kit_tokens() + 60, 1);
    assert_int_equal(ds4_engine_step(g, &e), DS4_E_DEVICE);
    expect_failed(a, DS4_E_DEVICE, "rows were lost");
    assert_int_equal(ds4_session_sync(a, kit_tokens(), 300, NULL, NULL, NULL, &e), DS4_E_DEVICE);
    assert_int_equal(ds4_session_draft(a, kit_tokens() + 60, 2, NULL, &e), 0);
    assert_int_equal(ds4_session_commit(a, 2, &e), DS4_E_DEVICE);
    kit_check(a, KIT_Q8, 60);
    hook.commit_fails = false;
    kit_sync(a, kit_tokens(), 300);
    kit_check(a, KIT_Q8, 300);
    ds4_session_free(a);
    ds4_session_free(b);
    ds4_engine_close(g);
}

/* ---------------------------------------------------------------- memory */

static void test_memory(void **state)
{
    struct ds4_error e = {0};
    struct ds4_options o = kit_options(KIT_Q8);
    struct ds4_memory_plan p;
    o.prefill_chunk = 1024;
    ds4_engine *g = kit_open(&o);
    ds4_engine_plan(g, &p);
    assert_true(p.weights > 0 && p.scratch > 0 && p.session > 4096 * 4 && p.anchors == o.anchor_bytes);
    assert_true(p.total == p.weights + p.weights_own + p.scratch + 8 * (p.session + p.anchors));
    assert_true(p.sessions == 8 && p.ctx == 4096);
    ds4_engine_close(g);

    o.memory_limit = p.total;
    g = kit_open(&o);
    ds4_session *s[9];
    for (int i = 0; i < 8; i++) s[i] = kit_session(g);
    assert_int_equal(ds4_session_create(g, 4096, &s[8], &e), DS4_E_MEMORY);
    assert_null(s[8]);
    assert_int_equal(ds4_session_fork(s[0], &s[8], &e), DS4_E_MEMORY);
    ds4_session_free(s[3]);
    s[3] = kit_session(g);
    for (int i = 0; i < 8; i++) ds4_session_free(s[i]);
    ds4_engine_close(g);

    o.memory_limit = p.total - 1;
    assert_int_equal(ds4_engine_open(&o, &g, &e), DS4_E_MEMORY);
    assert_null(g);
    assert_non_null(strstr(e.message, "needed"));
    assert_non_null(strstr(e.message, "available"));
    assert_non_null(strstr(e.message, "7 sessions would fit"));
    assert_non_null(strstr(e.message, "a context of 3840 tokens would fit"));
    o.sessions = 7;
    ds4_engine_close(kit_open(&o));
    o.sessions = 8, o.ctx = 3840;
    ds4_engine_close(kit_open(&o));

    o.memory_limit = p.weights / 2;
    assert_int_equal(ds4_engine_open(&o, &g, &e), DS4_E_MEMORY);
    assert_non_null(strstr(e.message, "smaller quantisation"));
    assert_non_null(strstr(e.message, "page the weights"));
    o.memory_limit = p.total - p.weights;
    o.page_weights = true;
    ds4_engine_close(kit_open(&o));
}

/* Rows of a chunk that the engine chooses with so much memory; 0: it does not open. */
static int chosen_chunk(struct ds4_options o, uint64_t memory)
{
    struct ds4_model_info i;
    ds4_engine *g;
    o.memory_limit = memory;
    if (ds4_engine_open(&o, &g, NULL)) return 0;
    ds4_engine_info(g, &i);
    ds4_engine_close(g);
    return i.prefill_chunk;
}

static uint64_t needed(struct ds4_options o, int chunk)
{
    struct ds4_memory_plan p;
    o.prefill_chunk = chunk;
    ds4_engine *g = kit_open(&o);
    ds4_engine_plan(g, &p);
    ds4_engine_close(g);
    return p.total;
}

/* Large where nobody else waits, smaller where memory is short. */
static void test_chosen_chunk(void **state)
{
    struct ds4_options o = kit_options(KIT_Q8);
    assert_int_equal(chosen_chunk(o, 0), 1024);
    o.sessions = 2;
    assert_int_equal(chosen_chunk(o, 0), 2048);
    o.sessions = 1;
    assert_int_equal(chosen_chunk(o, 0), 2048);
    const uint64_t large = needed(o, 2048), middle = needed(o, 512), small = needed(o, 256);
    assert_true(small < middle && middle < large);
    assert_int_equal(chosen_chunk(o, large), 2048);
    assert_int_equal(chosen_chunk(o, large - 1), 1024);
    assert_int_equal(chosen_chunk(o, middle), 512);
    assert_int_equal(chosen_chunk(o, middle - 1), 256);
    assert_int_equal(chosen_chunk(o, small), 256);
    assert_int_equal(chosen_chunk(o, small - 1), 0);
    o.prefill_chunk = 512;
    assert_int_equal(chosen_chunk(o, middle), 512);
    assert_int_equal(chosen_chunk(o, middle - 1), 0); /* what was asked for stays */
}

/* Bytes that this process has allocated; 0 where the allocator does not tell. */
static uint64_t allocated(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Fills n sessions of ctx tokens, the last of them together in decode steps of sixteen rows. */
static void fill(ds4_engine *g, ds4_session **s, int n, int ctx)
{
    int32_t *ids = malloc((size_t)ctx * sizeof *ids);
    for (int i = 0; i < ctx; i++) ids[i] = 1 + i % 200;
    for (int i = 0; i < n; i++) {
        assert_int_equal(ds4_session_create(g, ctx, &s[i], NULL), 0);
        kit_submit(s[i], ids, ctx - 32);
    }
    while (ds4_engine_step(g, NULL) == 1) {
    }
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++) kit_submit(s[i], ids, 16);
        while (ds4_engine_step(g, NULL) == 1) {
        }
    }
    for (int i = 0; i < n; i++) assert_int_equal(ds4_session_length(s[i]), ctx);
    free(ids);
}

/* Weights that a token reads, by the letters of the model's shape: of the file's tensors all but the rows of tables and
 * the experts that belong to other tokens and choices. */
static void test_active_weights(void **state)
{
    static const int bits[KIT_MODEL_COUNT] = {
        [KIT_F16] = 16, [KIT_Q8] = 8, [KIT_Q2] = 2, [KIT_NINE] = 3, [KIT_QWEN] = 4};
    const struct synth_shape s = synth_tiny();
    const uint64_t V = (uint64_t)s.V, K = (uint64_t)s.K, L = (uint64_t)s.L, others = (uint64_t)(s.E - s.K);
    const uint64_t row = 64 / 32 * 34; /* Q8_0, D = F = 64 */
    struct ds4_model_info info;
    struct ds4_memory_plan p;
    struct gguf *file;
    uint64_t all = 0;
    assert_int_equal(gguf_open(kit_path(KIT_Q8), &file, NULL), 0);
    for (uint64_t i = 0; i < gguf_n_tensors(file); i++) all += gguf_tensor_at(file, i)->bytes;
    gguf_close(file);
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        const struct ds4_options o = kit_options((enum kit_model)m);
        ds4_engine *g = kit_open(&o);
        ds4_engine_info(g, &info);
        ds4_engine_plan(g, &p);
        ds4_engine_close(g);
        assert_int_equal(info.quant_bits, bits[m]);
        if (m == KIT_Q8)
            assert_true(p.active ==
                        all - (V - 1) * row - (uint64_t)s.hash * (V - 1) * K * 4 - L * 3 * others * 64 * row);
    }
}

/* Multiply-adds of a Qwen3.8 token, by the letters of its shape: of the matrices that it passes, and of its history. */
static void test_cost_of_qwen(void **state)
{
    struct synth_qwen38 s = synth_qwen38_tiny();
    s.rho = 32, s.Hi = 8, s.B = 32; /* as the kit's model */
    const double E = s.E, hcE = s.hc * E, vd = s.Hv * s.Dl, cd = 2 * s.Hk * s.Dl + vd, heads = s.H * s.D;
    const double every = 2 * (2 * hcE * s.rho + hcE * s.hc) + E * s.NE + s.K * 3 * E * s.F + 3 * E * s.Fs;
    const double net = E * cd + E * vd + 2 * E * s.Hv + vd * E;
    const double attention = E * 2 * heads + 2 * E * s.Hkv * s.D + heads * E + E * s.Di, index = E * s.Hi * s.Di;
    const int nets = s.L - s.L / s.I, kept = s.B / s.q, pos = 100 * s.q; /* sees 100 blocks and itself */
    const struct ds4_options o = kit_options(KIT_QWEN);
    struct ds4_cost c;
    ds4_engine *g = kit_open(&o);
    assert_int_equal(nets, s.L - 1);
    assert_true(kept < 100);
    ds4_engine_cost(g, 0, 1, &c);
    assert_true(c.int8 + c.f32 == s.L * every + nets * net + attention + E * hcE + E * E);
    assert_true(c.f32 >= s.L * E * s.NE && c.int8 > c.f32);
    assert_true(c.attention == nets * 3 * vd * s.Dl + 2 * heads);
    ds4_engine_cost(g, pos, pos + 1, &c);
    assert_true(c.int8 + c.f32 == s.L * every + nets * net + attention + index + E * hcE + E * E);
    assert_true(c.attention == nets * 3 * vd * s.Dl + 2 * heads * (kept * s.q + 1) + 100 * s.Hi * s.Di);
    ds4_engine_close(g);
}

/* What is really taken, with all sessions full, stays within the plan, and the plan is not made up. */
static void test_plan_holds(void **state)
{
    static const struct {
        enum kit_model m;
        const char *backend;
        int threads, chunk, sessions, ctx;
    } cases[] = {
        {KIT_Q8, "cpu", 2, 512, 1, 1500},   {KIT_Q2, "cpu", 1, 1024, 4, 1100},  {KIT_F16, "cpu", 3, 16, 8, 1200},
        {KIT_Q8, "cpu", 2, 256, 2, 4900},   {KIT_F16, "ref", 1, 64, 2, 200},    {KIT_Q2, "cpu", 2, 2048, 1, 300},
        {KIT_QWEN, "cpu", 2, 512, 1, 1500}, {KIT_QWEN, "cpu", 1, 100, 3, 3000}, {KIT_QWEN, "ref", 1, 64, 2, 200}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ds4_options o = kit_options(cases[i].m);
        o.backend = cases[i].backend, o.threads = cases[i].threads, o.prefill_chunk = cases[i].chunk;
        o.sessions = cases[i].sessions, o.ctx = cases[i].ctx, o.anchor_bytes = 400000;
        struct ds4_memory_plan p;
        ds4_session *s[8];
        const uint64_t before = allocated();
        ds4_engine *g = kit_open(&o);
        ds4_engine_plan(g, &p);
        if (i % 2) ds4_engine_warm(g);
        fill(g, s, o.sessions, o.ctx);
        const uint64_t used = allocated() - before, planned = p.total - p.weights;
        enum { TABLES = 300000 }; /* vocabulary, names, threads: not planned */
        if (allocated()) {
            assert_true(used <= planned + TABLES);
            assert_true(used >= planned / 2);
        }
        for (int k = 0; k < o.sessions; k++) ds4_session_free(s[k]);
        ds4_engine_close(g);
    }
}

/* ---------------------------------------------------------------- arguments */

static void open_fails(struct ds4_options o, int code, const char *text)
{
    struct ds4_error e = {0};
    ds4_engine *g;
    assert_int_equal(ds4_engine_open(&o, &g, &e), code);
    assert_int_equal(e.code, code);
    assert_null(g);
    if (!strstr(e.message, text)) fail_msg("%s", e.message);
}

static void test_options(void **state)
{
    const struct ds4_options ok = kit_options(KIT_Q8);
    struct ds4_options o = ok;
    o.backend = "gpu", open_fails(o, DS4_E_ARG, "gpu"), o = ok;
    o.isa = "mmx", open_fails(o, DS4_E_ARG, "mmx"), o = ok;
    o.threads = -1, open_fails(o, DS4_E_ARG, "threads"), o = ok;
    o.threads_decode = 4097, open_fails(o, DS4_E_ARG, "decode"), o = ok;
    o.prefill_chunk = -1, open_fails(o, DS4_E_ARG, "chunk"), o = ok;
    o.sessions = -1, open_fails(o, DS4_E_ARG, "sessions"), o = ok;
    o.ctx = 1, open_fails(o, DS4_E_ARG, "context"), o = ok;
    o.ctx = 2000000000, open_fails(o, DS4_E_ARG, "1048576"), o = ok;
    o.n_model_paths = 0, open_fails(o, DS4_E_ARG, "model"), o = ok;
    o.model_paths = (const char *const[]){"/nonexistent.gguf"}, open_fails(o, DS4_E_IO, "/nonexistent.gguf");
}

static void test_arguments(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s, *t;
    const int32_t bad[3] = {1, KIT_VOCAB, 2}, negative = -1;
    assert_int_equal(ds4_session_create(g, 1, &s, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_create(g, 2000000, &s, &e), DS4_E_ARG);
    assert_null(s);
    assert_int_equal(ds4_session_create(g, 32, &s, &e), 0);
    assert_int_equal(ds4_session_ctx(s), 32);
    assert_int_equal(ds4_session_length(s), 0);
    assert_null(ds4_session_logits(s));
    assert_int_equal(ds4_session_submit(s, bad, 3, &e), DS4_E_ARG);
    assert_non_null(strstr(e.message, "288"));
    assert_int_equal(ds4_session_submit(s, &negative, 1, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_submit(s, kit_tokens(), 0, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_submit(s, kit_tokens(), 33, &e), DS4_E_LIMIT);
    assert_int_equal(ds4_session_sync(s, kit_tokens(), 0, NULL, NULL, NULL, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_sync(s, bad, 3, NULL, NULL, NULL, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_sync(s, kit_tokens(), 32, NULL, NULL, NULL, &e), DS4_E_LIMIT);
    assert_int_equal(ds4_session_sync(s, kit_tokens(), 31, NULL, NULL, NULL, &e), 0);
    kit_check(s, KIT_Q8, 31);
    assert_int_equal(ds4_session_draft(s, kit_tokens(), 2, NULL, &e), DS4_E_LIMIT);
    assert_int_equal(ds4_session_draft(s, kit_tokens(), 17, NULL, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_draft(s, kit_tokens(), 0, NULL, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_draft(s, &bad[1], 1, NULL, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_commit(s, 0, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_rewind(s, 32, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_rewind(s, -1, &e), DS4_E_ARG);
    kit_submit(s, kit_tokens() + 31, 1);                                     /* the very last one */
    assert_int_equal(ds4_session_submit(s, kit_tokens(), 1, &e), DS4_E_ARG); /* while it works */
    assert_int_equal(ds4_session_rewind(s, 3, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_snapshot(s, &(void *){NULL}, &(size_t){0}, &e), DS4_E_ARG);
    assert_int_equal(ds4_engine_step(g, NULL), 0);
    kit_check(s, KIT_Q8, 32);
    assert_int_equal(ds4_session_submit(s, kit_tokens(), 1, &e), DS4_E_LIMIT);
    assert_int_equal(ds4_session_submit(s, kit_tokens(), 1, NULL), DS4_E_LIMIT); /* no error wanted */
    assert_int_equal(ds4_session_create(g, 16, &t, &e), 0);
    ds4_session_free(t);
    ds4_session_free(s);
    ds4_session_free(NULL);
    assert_int_equal(ds4_engine_step(g, NULL), 0);
    ds4_engine_close(g);
    ds4_engine_close(NULL);
}

/* ---------------------------------------------------------------- what it tells, and text */

static void test_info(void **state)
{
    struct ds4_model_info i;
    struct ds4_options o = kit_options(KIT_F16);
    o.isa = "scalar";
    ds4_engine *g = kit_open(&o);
    ds4_engine_info(g, &i);
    assert_string_equal(i.name, "random V4 shape");
    assert_string_equal(i.family, "deepseek4");
    assert_string_equal(i.backend, "cpu");
    assert_string_equal(i.isa, "scalar");
    assert_true(i.n_layers == 4 && i.n_vocab == KIT_VOCAB && i.ctx_max == 1048576);
    assert_true(i.threads == 2 && i.threads_decode == 2 && i.numa_nodes >= 1);
    assert_true(i.prefill_chunk == 1024 && i.draft_max == 16);
    assert_non_null(strstr(ds4_engine_report(g), "memory needed"));
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), 200);
    kit_check(s, KIT_F16, 200); /* the kernel sets agree */
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* Prompts and decode steps by other numbers of threads, or by as many as were measured: the same bits. */
static void test_threads(void **state)
{
    static const int counts[][4] = {{3, 1, 3, 1}, {1, 4, 1, 4}, {2, 0, 2, 2}, {0, 0, 0, 0}}; /* asked for; told */
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct ds4_options o = kit_options(KIT_Q8);
        struct ds4_model_info i;
        o.threads = counts[k][0], o.threads_decode = counts[k][1], o.numa_off = k % 2;
        ds4_engine *g = kit_open(&o);
        ds4_engine_info(g, &i);
        if (o.threads)
            assert_true(i.threads == counts[k][2] && i.threads_decode == counts[k][3]);
        else
            assert_true(i.threads >= 1 && i.threads_decode >= 1 && i.threads_decode <= i.threads);
        ds4_session *s = kit_session(g);
        kit_sync(s, kit_tokens(), 60);
        for (int n = 60; n < 64; n++) kit_eval(s, kit_tokens() + n, 1);
        kit_check(s, KIT_Q8, 64);
        ds4_session_free(s);
        ds4_engine_close(g);
    }
}

static void test_text(void **state)
{
    struct ds4_error e = {0};
    struct ds4_tokens t = {0}, chat = {0};
    const struct ds4_options o = kit_options(KIT_F16);
    ds4_engine *g = kit_open(&o);
    const char *bytes, bos[] = "<｜begin▁of▁sentence｜>";
    const size_t n_bos = strlen(bos);
    assert_int_equal(ds4_tokenize(g, "th e", 4, false, &t, &e), 0);
    assert_int_equal(t.n, 3); /* "th", " ", "e" */
    assert_int_equal(ds4_token_bytes(g, t.p[0], &bytes), 2);
    assert_memory_equal(bytes, "th", 2);
    assert_int_equal(ds4_tokenize(g, bos, n_bos, true, &t, &e), 0); /* appends */
    assert_int_equal(t.n, 4);
    assert_int_equal(t.p[3], 0);
    assert_true(ds4_token_is_special(g, 0) && !ds4_token_is_stop(g, 0) && ds4_token_is_stop(g, 1));
    assert_false(ds4_token_is_special(g, t.p[0]));
    assert_int_equal(ds4_token_think_begin(g), 4);
    assert_int_equal(ds4_token_think_end(g), 5);
    assert_int_equal(ds4_tokenize(g, bos, n_bos, false, &t, &e), 0);
    assert_int_equal(t.n, 4 + n_bos); /* untrusted: bytes */
    assert_true(ds4_is_rendered_chat(g, bos, n_bos) && !ds4_is_rendered_chat(g, "hello", 5));

    const struct ds4_message m[2] = {{.role = DS4_SYSTEM, .text = "s", .n_text = 1},
                                     {.role = DS4_USER, .text = "u", .n_text = 1}};
    enum ds4_think used = DS4_THINK_OFF;
    assert_int_equal(ds4_chat_tokens(g, m, 2, DS4_THINK_HIGH, 4096, &chat, &used, &e), 0);
    assert_int_equal(used, DS4_THINK_HIGH);
    assert_int_equal(chat.n, 6); /* BOS s USER u ASSISTANT THINK */
    assert_true(chat.p[0] == 0 && chat.p[2] == 2 && chat.p[4] == 3 && chat.p[5] == 4);
    assert_int_equal(ds4_chat_tokens(g, m, 2, DS4_THINK_MAX, 4096, &chat, &used, &e), 0);
    assert_int_equal(used, DS4_THINK_HIGH); /* too small a context for more */
    assert_int_equal(ds4_chat_tokens(g, m, 2, (enum ds4_think)9, 4096, &chat, &used, &e), DS4_E_ARG);
    ds4_tokens_free(&chat);
    ds4_tokens_free(&t);
    assert_true(t.p == NULL && t.n == 0);
    ds4_engine_close(g);
}

static int log_count;

static void count_log(void *arg, int level, const char *subject, const char *text)
{
    assert_in_range(level, 0, 3);
    assert_true(strlen(subject) > 0 && strlen(text) > 0);
    ++*(int *)arg;
}

static void test_log(void **state)
{
    struct ds4_options o = kit_options(KIT_F16);
    o.log = count_log, o.log_arg = &log_count;
    ds4_engine_close(kit_open(&o));
    assert_true(log_count > 0);
}

/* Looks for what a load must say: level and a part of the text. */
struct log_wanted {
    int level;
    const char *part;
    int seen;
};

static void look_log(void *arg, int level, const char *subject, const char *text)
{
    struct log_wanted *w = arg;
    if (level == w->level && !strcmp(subject, "model") && strstr(text, w->part)) w->seen++;
}

/* A normal load says once what was derived and renamed, and warns of damage without being asked. */
static void test_log_of_load(void **state)
{
    static const struct form_edit nan_edit = {.kind = EDIT_POKE, .name = "token_embd.weight", .number = 0x7fc00000};
    struct synth_shape shape = synth_tiny();
    struct err err = {0};
    char from[TEMP_PATH], other[TEMP_PATH], bad[TEMP_PATH];
    temp_file(from), temp_file(other), temp_file(bad);
    assert_int_equal(synth_deepseek4(from, &shape, &err), 0);
    assert_int_equal(dialect_form_write(from, other, FORM_IK, WIDTHS_KEPT, &err), 0);
    assert_int_equal(dialect_form_edit(from, bad, &nan_edit, 1, &err), 0);
    struct log_wanted wanted[] = {{2, "renamed: ", 0}, {2, "derived: ", 0}, {1, "token_embd.weight", 0}};
    for (int i = 0; i < 3; i++) {
        const char *const path = i < 2 ? other : bad;
        struct ds4_options o = kit_options(KIT_F16);
        o.model_paths = &path;
        o.log = look_log;
        o.log_arg = &wanted[i];
        ds4_engine_close(kit_open(&o));
        assert_int_equal(wanted[i].seen, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel_prefill),
        cmocka_unit_test(test_cancel_at_every_layer),
        cmocka_unit_test(test_cancel_waiting),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_chosen_chunk),
        cmocka_unit_test(test_active_weights),
        cmocka_unit_test(test_cost_of_qwen),
        cmocka_unit_test(test_plan_holds),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_log_of_load),
    };
    return cmocka_run_group_tests(tests, NULL, kit_teardown);
}
