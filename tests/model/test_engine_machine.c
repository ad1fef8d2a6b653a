/* A random walk over everything that sessions can do, side by side on one engine, against a model that is as simple as
 * can be: a session's history is the beginning of one of a few token lists, and its logits are those that a session
 * alone on one thread computed there, token by token. Whatever was done before, with whatever chunks, threads, faults
 * and cancellations, the bits must be the same. An argument multiplies the number of operations, a second one is the
 * seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/engine_kit.h"
#include "../support/synth_model.h"
#include "base/mem.h"
#include "engine/engine_internal.h"
#include "quant/quant.h"

enum { STREAMS = 3, ACTORS = 9, BLOBS = 3, DRAFT = 16 };

static int effort = 1;
static uint64_t rng = 0x2545f4914f6cdd1du;

static int below(int n)
{
    return kit_below(&rng, n);
}

static bool one_in(int n)
{
    return below(n) == 0;
}

/* ---------------------------------------------------------------- a model, token lists, truth */

static struct {
    char path[64];
    int n, V; /* tokens of a list */
    int32_t *tokens[STREAMS];
    float *truth[STREAMS]; /* [n][V] */
} world;

static void no_log(void *arg, int level, const char *subject, const char *text)
{
}

static struct ds4_options options(const char *backend)
{
    static const char *path = world.path;
    return (struct ds4_options){.model_paths = &path,
                                .n_model_paths = 1,
                                .backend = backend,
                                .threads = 1,
                                .sessions = 1,
                                .ctx = world.n + 1,
                                .memory_limit = (uint64_t)1 << 40,
                                .log = no_log};
}

static ds4_session *session_of(ds4_engine *g, int ctx)
{
    struct ds4_error e = {0};
    ds4_session *s = NULL;
    if (ds4_session_create(g, ctx, &s, &e)) fail_msg("%s", e.message);
    return s;
}

static void truth_make(const struct ds4_options *o, int stream)
{
    const size_t V = (size_t)world.V;
    ds4_engine *g = kit_open(o);
    ds4_session *s = session_of(g, world.n + 1);
    world.truth[stream] = mem_alloc((size_t)world.n * V * sizeof(float));
    for (int i = 0; i < world.n; i++) {
        kit_submit(s, world.tokens[stream] + i, 1);
        assert_int_equal(ds4_engine_step(g, NULL), 0);
        assert_int_equal(ds4_session_collect(s, NULL, NULL), DS4_DONE);
        memcpy(world.truth[stream] + (size_t)i * V, ds4_session_logits(s), V * sizeof(float));
    }
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* Lists that begin alike: the second leaves the first after three tenths, the third the second after eight. */
static void world_make(const struct synth_shape *shape, int n, const char *backend)
{
    struct err e = {0};
    world.n = n, world.V = shape->V;
    snprintf(world.path, sizeof world.path, "/tmp/ds4-machine-%d.gguf", (int)getpid());
    if (synth_deepseek4(world.path, shape, &e)) fail_msg("%s", e.msg);
    const struct ds4_options o = options(backend);
    for (int k = 0; k < STREAMS; k++) {
        const int from = k == 0 ? 0 : k == 1 ? n * 3 / 10 : n * 8 / 10;
        world.tokens[k] = mem_alloc((size_t)n * sizeof(int32_t));
        if (from) memcpy(world.tokens[k], world.tokens[k - 1], (size_t)from * sizeof(int32_t));
        for (int i = from; i < n; i++) world.tokens[k][i] = below(shape->V);
        truth_make(&o, k);
    }
}

static void world_end(void)
{
    unlink(world.path);
    for (int k = 0; k < STREAMS; k++) {
        mem_free(world.tokens[k]);
        mem_free(world.truth[k]);
    }
}

static int common(int a, int b)
{
    int i = 0;
    while (i < world.n && world.tokens[a][i] == world.tokens[b][i]) i++;
    return i;
}

/* A position of interest up to most. */
static int position(int most)
{
    static const int special[] = {0, 1, 2, 15, 16, 17, 127, 128, 129, 255, 256, 1023, 4095, 4096, 4097, 4111};
    const int kind = below(6);
    int p = below(most + 1);
    if (kind == 0) p = special[below((int)(sizeof special / sizeof *special))];
    if (kind == 1) p = below(most / 128 + 1) * 128 - below(3) + 1;
    if (kind == 2) p = most - below(20);
    return p < 0 ? 0 : p > most ? most : p;
}

/* ---------------------------------------------------------------- faults */

/* Countdowns: the call at which one reaches zero fails, or cancels. */
static struct {
    struct family family;
    const struct family *real;
    struct dev_ops op;
    const struct dev_ops *real_op;
    int layers, memory, cancel;
    ds4_session *victim;
    int longest; /* cancelled: layers that were run afterwards */
    bool cancelled;
} fault;

static void faulty_layer(const void *model, struct step *s, int l)
{
    if (fault.cancelled) fault.longest++;
    if (fault.cancel && --fault.cancel == 0) {
        ds4_session_cancel(fault.victim);
        fault.cancelled = true;
    }
    fault.real->layer(model, s, l);
    if (fault.layers && --fault.layers == 0) dev_fail(s->stream, ERR_DEVICE, "a device failed");
}

static bool no_memory(void)
{
    return fault.memory && --fault.memory == 0;
}

static struct dev_ring *faulty_ring(struct dev *d, const struct ring_desc *desc)
{
    return no_memory() ? NULL : fault.real_op->ring_create(d, desc);
}

static struct dev_store *faulty_store(struct dev *d, const struct row_format *f)
{
    return no_memory() ? NULL : fault.real_op->store_create(d, f);
}

static int faulty_reserve(struct dev_store *s, int64_t from, int64_t to)
{
    return no_memory() ? ERR_MEMORY : fault.real_op->store_reserve(s, from, to);
}

static int faulty_share(struct dev_store *dst, const struct dev_store *src, int64_t n)
{
    return no_memory() ? ERR_MEMORY : fault.real_op->store_share(dst, src, n);
}

static void faults_into(ds4_engine *g)
{
    memset(&fault, 0, sizeof fault);
    fault.real = g->family, fault.family = *g->family, fault.family.layer = faulty_layer;
    fault.real_op = g->dev->op, fault.op = *g->dev->op;
    fault.op.ring_create = faulty_ring, fault.op.store_create = faulty_store;
    fault.op.store_reserve = faulty_reserve, fault.op.store_share = faulty_share;
    g->family = &fault.family;
    g->dev->op = &fault.op;
}

/* ---------------------------------------------------------------- actors */

struct actor {
    ds4_session *s;
    int ctx, stream, length;
    int goal; /* busy: length when all is done */
    bool busy;
    int drafted, right; /* rows that wait for a commit, and how many of them are the list's */
};

struct blob {
    void *data;
    size_t n;
    int stream, length;
};

static struct {
    ds4_engine *g;
    struct actor a[ACTORS];
    struct blob blob[BLOBS];
    uint64_t anchor_bytes;
    bool faults; /* one may strike during this operation */
    int failed;  /* operations that one ended */
} stage;

static void actor_check(const struct actor *a)
{
    const int n = ds4_session_length(a->s);
    assert_memory_equal(ds4_session_tokens(a->s), world.tokens[a->stream], (size_t)n * sizeof(int32_t));
    const float *x = ds4_session_logits(a->s);
    const size_t V = (size_t)world.V;
    if (n == 0) assert_null(x);
    if (n && x) assert_memory_equal(x, world.truth[a->stream] + (size_t)(n - 1) * V, V * sizeof(float));
    assert_true(a->s->anchors.bytes <= stage.anchor_bytes);
}

/* The history ends between two positions, after an operation that may have been cut short. */
static void actor_settle(struct actor *a, int low, int high)
{
    const int n = ds4_session_length(a->s);
    assert_in_range(n, low, high);
    a->length = n;
    actor_check(a);
}

static void actor_at(struct actor *a, int n)
{
    actor_settle(a, n, n);
    if (n) assert_non_null(ds4_session_logits(a->s));
}

static bool stopped(int rc)
{
    if (!rc) return false;
    assert_true(stage.faults || fault.cancelled);
    assert_true(rc == DS4_E_DEVICE || rc == DS4_E_MEMORY || rc == DS4_E_CANCELLED);
    stage.failed++;
    return true;
}

/* Looks how the submissions are that other operations carried on. */
static void actors_look(void)
{
    for (int i = 0; i < ACTORS; i++) {
        struct actor *a = &stage.a[i];
        if (!a->s) continue;
        if (!a->busy) {
            actor_settle(a, a->length, a->length);
            continue;
        }
        struct ds4_error e = {0};
        const enum ds4_state s = ds4_session_collect(a->s, NULL, &e);
        if (s == DS4_DONE)
            actor_at(a, a->goal);
        else
            actor_settle(a, a->length, a->goal);
        a->busy = s == DS4_BUSY;
        if (s == DS4_FAILED) stopped(e.code);
    }
}

static struct actor *some_actor(bool idle)
{
    for (int tries = 0; tries < 20; tries++) {
        struct actor *a = &stage.a[below(ACTORS)];
        if (a->s && (!idle || (!a->busy && !a->drafted))) return a;
    }
    return NULL;
}

static struct actor *some_place(void)
{
    for (int i = 0; i < ACTORS; i++)
        if (!stage.a[i].s) return &stage.a[i];
    return NULL;
}

/* ---------------------------------------------------------------- operations */

static void do_create(void)
{
    struct actor *a = some_place();
    const int ctx = one_in(3) ? 2 + position(world.n - 1) : world.n + 1;
    if (!a) return;
    const int rc = ds4_session_create(stage.g, ctx, &a->s, NULL);
    if (stopped(rc)) return;
    *a = (struct actor){.s = a->s, .ctx = ctx};
}

static void do_free(void)
{
    struct actor *a = some_actor(false);
    if (!a || one_in(2)) return;
    ds4_session_free(a->s);
    *a = (struct actor){0};
}

static void do_fork(void)
{
    struct actor *from = some_actor(true), *a = some_place();
    ds4_session *copy;
    if (!from || !a || stopped(ds4_session_fork(from->s, &copy, NULL))) return;
    *a = *from;
    a->s = copy;
}

static void count_down(void *arg, int done, int total)
{
    int *left = arg;
    if (*left > 0 && --*left == 0) {
        ds4_session_cancel(fault.victim);
        fault.cancelled = true;
    }
}

static void do_sync(void)
{
    struct actor *a = some_actor(true);
    struct ds4_sync_info info;
    if (!a) return;
    const int to = below(STREAMS), n = 1 + position((a->ctx - 1 < world.n ? a->ctx - 1 : world.n) - 1);
    int shared = common(a->stream, to), left = one_in(4) ? 1 + below(12) : 0;
    if (shared > a->length) shared = a->length;
    fault.victim = a->s;
    const int rc = ds4_session_sync(a->s, world.tokens[to], n, count_down, &left, &info, NULL);
    const bool unmoved = rc && ds4_session_length(a->s) == a->length && a->length > shared;
    if (!unmoved) a->stream = to;
    if (stopped(rc)) {
        actor_settle(a, 0, n > a->length ? n : a->length);
    } else {
        actor_at(a, n);
        assert_int_equal(info.reused + info.evaluated, n);
        assert_int_equal(info.first_diff, shared < n && shared < info.first_diff + 1 ? shared : info.first_diff);
    }
}

static void do_rewind(void)
{
    struct actor *a = some_actor(true);
    if (!a) return;
    const int pos = position(a->length);
    fault.victim = a->s;
    if (stopped(ds4_session_rewind(a->s, pos, NULL)))
        actor_settle(a, 0, a->length);
    else
        actor_at(a, pos);
}

static void do_mark(void)
{
    struct actor *a = some_actor(false);
    if (a) assert_int_equal(ds4_session_mark(a->s, position(a->ctx), NULL), 0);
}

static void do_submit(void)
{
    struct actor *a = some_actor(true);
    if (!a) return;
    const int most = (a->ctx < world.n ? a->ctx : world.n) - a->length;
    if (most < 1) return;
    int n = one_in(3) ? 1 + position(most - 1) : 1 + below(one_in(2) ? 18 : 200);
    if (n > most) n = most;
    assert_int_equal(ds4_session_submit(a->s, world.tokens[a->stream] + a->length, n, NULL), 0);
    a->busy = true;
    a->goal = a->length + n;
}

static void do_step(void)
{
    for (int i = 1 + below(one_in(4) ? 60 : 6); i > 0; i--) {
        const int rc = ds4_engine_step(stage.g, NULL);
        if (rc < 0) assert_true(stage.faults);
        if (rc <= 0) break;
    }
}

static void do_cancel(void)
{
    struct actor *a = some_actor(false);
    if (!a || !a->busy) return;
    fault.cancelled = true;
    ds4_session_cancel(a->s);
    if (one_in(2)) do_step();
}

static void do_draft(void)
{
    static float rows[DRAFT * 4096];
    struct actor *a = some_actor(true);
    int32_t ids[DRAFT];
    if (!a) return;
    const int room = (a->ctx < world.n ? a->ctx : world.n) - a->length;
    int n = 1 + below(DRAFT);
    if (n > room) n = room;
    if (n < 1) return;
    const int right = below(n + 1);
    const size_t V = (size_t)world.V;
    for (int i = 0; i < n; i++) ids[i] = i < right ? world.tokens[a->stream][a->length + i] : (int32_t)below(world.V);
    fault.victim = a->s;
    if (stopped(ds4_session_draft(a->s, ids, n, rows, NULL))) return;
    for (int i = 0; i < right; i++)
        assert_memory_equal(rows + (size_t)i * V, world.truth[a->stream] + (size_t)(a->length + i) * V,
                            V * sizeof *rows);
    a->drafted = n, a->right = right;
}

static void do_commit(void)
{
    for (int i = 0; i < ACTORS; i++) {
        struct actor *a = &stage.a[i];
        if (!a->s || !a->drafted || one_in(3)) continue;
        const int keep = one_in(3) ? below(a->right + 1) : a->right;
        assert_int_equal(ds4_session_commit(a->s, keep, NULL), 0);
        a->drafted = 0;
        actor_settle(a, a->length + keep, a->length + keep);
    }
}

static void do_snapshot(void)
{
    struct actor *a = some_actor(true);
    struct blob *b = &stage.blob[below(BLOBS)];
    if (!a) return;
    ds4_free(b->data);
    *b = (struct blob){.stream = a->stream, .length = a->length};
    assert_int_equal(ds4_session_snapshot(a->s, &b->data, &b->n, NULL), 0);
}

static void do_restore(void)
{
    struct actor *a = some_actor(true);
    const struct blob *b = &stage.blob[below(BLOBS)];
    if (!a || !b->data) return;
    const int rc = ds4_session_restore(a->s, b->data, b->n, NULL);
    if (b->length > a->ctx) {
        assert_int_equal(rc, DS4_E_LIMIT);
    } else if (!stopped(rc)) {
        a->stream = b->stream;
        a->length = b->length;
    }
}

static void operate(void)
{
    static const struct {
        void (*fn)(void);
        int share;
    } ops[] = {{do_create, 3}, {do_free, 2},     {do_fork, 4},   {do_sync, 6},   {do_rewind, 6},
               {do_mark, 4},   {do_submit, 12},  {do_step, 16},  {do_cancel, 2}, {do_draft, 10},
               {do_commit, 8}, {do_snapshot, 2}, {do_restore, 2}};
    int total = 0, k = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) total += ops[i].share;
    int at = below(total);
    while (at >= ops[k].share) at -= ops[k++].share;
    fault.layers = fault.memory = fault.cancel = fault.longest = 0;
    fault.cancelled = stage.faults = false;
    const int kind = below(24);
    if (kind == 0) fault.layers = 1 + below(30);
    if (kind == 1) fault.memory = 1 + below(one_in(2) ? 8 : 60);
    if (kind == 2) fault.cancel = 1 + below(30);
    fault.victim = stage.a[below(ACTORS)].s;
    if (!fault.victim) fault.cancel = 0;
    stage.faults = kind < 2;
    ops[k].fn();
    actors_look();
}

static void walk(const char *backend, int n_ops)
{
    static const int chunks[] = {1, 3, 17, 64, 128, 200, 512, 1 << 13};
    static const uint64_t budgets[] = {1, 40000, 300000, 4 << 20};
    struct ds4_options o = options(backend);
    const char *const isa[] = {NULL, "scalar"};
    if (!strcmp(backend, "cpu")) o.isa = isa[one_in(4)];
    o.threads = 1 + below(3);
    o.prefill_chunk = chunks[below((int)(sizeof chunks / sizeof *chunks))];
    o.sessions = one_in(3) ? 1 : 1 + below(ACTORS);
    memset(&stage, 0, sizeof stage);
    stage.anchor_bytes = o.anchor_bytes = budgets[below(4)];
    if (o.prefill_chunk < 16) n_ops /= 4; /* they take long */
    stage.g = kit_open(&o);
    faults_into(stage.g);
    for (int i = 0; i < n_ops; i++) operate();
    for (int i = 0; i < ACTORS; i++) ds4_session_free(stage.a[i].s);
    for (int i = 0; i < BLOBS; i++) ds4_free(stage.blob[i].data);
    stage.g->dev->op = fault.real_op;
    ds4_engine_close(stage.g);
}

/* ---------------------------------------------------------------- models */

static struct synth_shape with_types(struct synth_shape s, uint32_t dense, uint32_t expert)
{
    s.embed = s.dense = dense;
    s.gate = s.up = s.down = expert;
    return s;
}

static void walks(const struct synth_shape *shape, int n, const char *backend, int engines, int n_ops)
{
    world_make(shape, n, backend);
    for (int i = 0; i < engines; i++) walk(backend, n_ops * effort);
    world_end();
}

static void test_f16(void **state)
{
    struct synth_shape s = with_types(synth_tiny(), QT_F16, QT_F16);
    walks(&s, 1300, "cpu", 3, 150);
}

static void test_q8_top_1(void **state)
{
    struct synth_shape s = with_types(synth_tiny(), QT_Q8_0, QT_Q8_0);
    s.IK = 1, s.W = 1, s.seed = 7;
    walks(&s, 1300, "cpu", 3, 150);
}

static void test_q2_wide_window(void **state)
{
    struct synth_shape s = with_types(synth_wide(), QT_Q8_0, QT_Q2_K);
    s.W = 200, s.seed = 11;
    walks(&s, 700, "cpu", 2, 120);
}

static void test_mixed(void **state)
{
    struct synth_shape s = with_types(synth_wide(), QT_Q4_K, QT_IQ2_XXS);
    s.gate = QT_Q4_K, s.up = QT_IQ2_XXS, s.down = QT_Q2_K, s.late = 2, s.late_type = QT_Q8_0;
    s.Rq = 256, s.Ro = s.d = 128, s.r = s.ID = 64;
    s.W = 130, s.hash = 2, s.IK = 33, s.rest = QT_F16;
    walks(&s, 700, "cpu", 2, 120);
}

/* Store segments are shared, and written into, only behind 4,096 tokens. */
static void test_long(void **state)
{
    struct synth_shape s = with_types(synth_tiny(), QT_Q8_0, QT_Q8_0);
    s.L = 2, s.ratios[0] = s.ratios[1] = 4;
    walks(&s, 4600, "cpu", 2, 120);
}

static void test_ratios(void **state)
{
    struct synth_shape s = with_types(synth_tiny(), QT_F16, QT_Q8_0);
    s.L = 2, s.W = 17;
    s.ratios[0] = s.ratios[1] = 0;
    walks(&s, 900, "cpu", 2, 120);
    s.ratios[0] = s.ratios[1] = 128;
    walks(&s, 900, "cpu", 2, 120);
    s.ratios[0] = 128, s.ratios[1] = 4, s.W = 3;
    walks(&s, 900, "cpu", 2, 120);
}

static void test_ref(void **state)
{
    struct synth_shape s = with_types(synth_tiny(), QT_F16, QT_Q8_0);
    s.L = 3, s.W = 20, s.IK = 9;
    walks(&s, 300, "ref", 2, 80);
}

int main(int argc, char **argv)
{
    if (argc > 1) effort = atoi(argv[1]);
    if (argc > 2) rng ^= strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15u;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),   cmocka_unit_test(test_q8_top_1), cmocka_unit_test(test_q2_wide_window),
        cmocka_unit_test(test_mixed), cmocka_unit_test(test_long),     cmocka_unit_test(test_ratios),
        cmocka_unit_test(test_ref),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
