/* Decoding goes on in copies of the history at a frontier, which share its rows and are dropped afterwards. */
#include "bench.h"
#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "common/failure.h"
#include "frontier_logits.h"
#include "looks.h"

struct decoding {
    ds4_session **session; /* [n] */
    int32_t *next;         /* [n] */
    int n, n_vocab;
    const ds4_engine *engine;
};

/* The most probable token that does not end an answer. */
static int32_t likeliest(const struct decoding *d, const float *logits)
{
    int32_t best = -1;
    for (int32_t id = 0; id < d->n_vocab; id++)
        if ((best < 0 || logits[id] > logits[best]) && !ds4_token_is_stop(d->engine, id)) best = id;
    return best;
}

/* One token more in every session. */
static int step(const struct bench *b, struct decoding *d, struct ds4_error *e)
{
    for (int i = 0; i < d->n; i++) {
        const int at = ds4_session_length(d->session[i]);
        d->next[i] = b->o->teacher_forced ? b->text.p[at] : likeliest(d, ds4_session_logits(d->session[i]));
        const int rc = ds4_session_submit(d->session[i], &d->next[i], 1, e);
        if (rc) return rc;
    }
    int rc;
    while ((rc = ds4_engine_step(b->engine, e)) > 0) continue;
    for (int i = 0; i < d->n && rc == 0; i++) {
        int done;
        if (ds4_session_collect(d->session[i], &done, e) != DS4_DONE) rc = e->code ? e->code : DS4_E_DEVICE;
    }
    return rc;
}

static int look(struct looks *l, bool now, struct ds4_error *e)
{
    struct err err = {0};
    return looks_take(l, now, &err) ? failure_of(e, &err) : 0;
}

static int measure_steps(const struct bench *b, struct decoding *d, struct looks *l, struct bench_row *row,
                         struct ds4_error *e)
{
    const int n = b->o->n_tokens;
    double first = 0, all = 0;
    int rc = look(l, true, e);
    for (int i = 0; i < n && !rc; i++) {
        const double start = clock_s();
        rc = step(b, d, e);
        all += clock_s() - start;
        if (i == 0) first = all;
        if (!rc) rc = look(l, i + 1 == n, e);
    }
    row->gen_tokens = n * d->n;
    row->gen_tps = row->gen_tokens / all;
    row->gen_first_ms = first * 1e3;
    row->gen_steady_tokens = (n - 1) * d->n;
    row->gen_steady_tps = n > 1 ? row->gen_steady_tokens / (all - first) : 0;
    return rc;
}

static int measure_decode(const struct bench *b, ds4_session *s, struct looks *l, struct bench_row *row,
                          struct ds4_error *e)
{
    struct ds4_model_info info;
    ds4_engine_info(b->engine, &info);
    struct decoding d = {.n_vocab = info.n_vocab, .engine = b->engine};
    const size_t n = (size_t)b->o->sessions;
    d.session = mem_alloc(n * sizeof *d.session);
    d.next = mem_alloc(n * sizeof *d.next);
    int rc = 0;
    for (; d.n < b->o->sessions && !rc; d.n += !rc) rc = ds4_session_fork(s, &d.session[d.n], e);
    if (!rc) rc = measure_steps(b, &d, l, row, e);
    for (int i = 0; i < d.n; i++) ds4_session_free(d.session[i]);
    mem_free(d.session);
    mem_free(d.next);
    return rc;
}

/* ---------------------------------------------------------------- frontiers */

struct prefill {
    struct looks *l;
    int said, rc;
    struct ds4_error *e;
};

/* Called after every layer; said when more tokens are read than before. */
static void progress(void *arg, int done, int total)
{
    struct prefill *const p = arg;
    if (done > p->said) fprintf(stderr, "ds4-bench: %d of %d tokens read\n", done, total);
    p->said = done;
    if (!p->rc && done < total) p->rc = look(p->l, false, p->e);
}

static int measure_prefill(const struct bench *b, ds4_session *s, int frontier, struct looks *l, struct bench_row *row,
                           struct ds4_error *e)
{
    const int before = ds4_session_length(s);
    struct prefill p = {.l = l, .e = e};
    int rc = look(l, true, e);
    if (rc) return rc;
    const double start = clock_s(), spent = l->spent;
    rc = ds4_session_sync(s, b->text.p, frontier, progress, &p, NULL, e);
    row->ctx_tokens = frontier;
    row->prefill_tokens = frontier - before;
    row->prefill_tps = row->prefill_tokens / (clock_s() - start - (l->spent - spent));
    if (!rc) rc = p.rc;
    return rc ? rc : look(l, true, e);
}

static int measure_machine(const struct bench *b, struct ds4_error *e)
{
    struct err err = {0};
    return machine_measure(b->machine, &err) ? failure_of(e, &err) : 0;
}

/* Products of every kind at the speed of nothing but such products. */
static void say_prefill(const struct bench *b, const struct looks *l, const struct bench_row *row)
{
    struct ds4_cost c;
    ds4_engine_cost(b->engine, row->ctx_tokens - row->prefill_tokens, row->ctx_tokens, &c);
    const double floats = (c.f32 + c.attention) * looks_cost(l, PEAK_F32);
    const double least = c.int8 * looks_cost(l, PEAK_INT8) + floats, tiles = looks_cost(l, PEAK_TILES);
    fprintf(stderr,
            "ds4-bench: ctx %d: prefill %.2f t/s, %.1f %% of the %s speed: a token takes %.4f int8, %.4f f32 "
            "and %.4f attention (thousand million multiply-adds), at the peaks %.3f ms; these were int8 %.1f (%.1f to "
            "%.1f), f32 %.1f in %d looks meanwhile",
            row->ctx_tokens, row->prefill_tps, 100 * row->prefill_tps * least, tiles > 0 ? "vectors'" : "processors'",
            c.int8 * 1e-9, c.f32 * 1e-9, c.attention * 1e-9, least * 1e3, 1e-9 / looks_cost(l, PEAK_INT8),
            l->slowest * 1e-9, l->fastest * 1e-9, 1e-9 / looks_cost(l, PEAK_F32), l->n);
    if (tiles > 0)
        fprintf(stderr, "; tiles do %.1f int8, with which the least is %.3f ms, %.1f %%", 1e-9 / tiles,
                1e3 * (c.int8 * tiles + floats), 100 * row->prefill_tps * (c.int8 * tiles + floats));
    fputc('\n', stderr);
}

/* Decoding one token reads the active weights at least once, whatever else it does. */
static void say_decode(const struct bench *b, const struct looks *l, const struct bench_row *row)
{
    struct ds4_cost c;
    const int n = b->o->n_tokens;
    ds4_engine_cost(b->engine, row->ctx_tokens, row->ctx_tokens + n, &c);
    fprintf(stderr,
            "ds4-bench: ctx %d: decode %.2f t/s, %.1f %% of the memory's speed: a step reads %.3f GB of weights; it "
            "was read at %.2f GB/s (%.2f to %.2f) in %d looks meanwhile\n",
            row->ctx_tokens, row->gen_tps, 100 * row->gen_tps / b->o->sessions * (double)c.weights * looks_cost(l, 0),
            (double)c.weights * 1e-9, 1e-9 / looks_cost(l, 0), l->slowest * 1e-9, l->fastest * 1e-9, l->n);
}

static int measure_frontier(const struct bench *b, ds4_session *s, int frontier, struct bench_rows *rows,
                            struct ds4_error *e)
{
    struct bench_row row = {0};
    struct looks at_peaks = {.m = b->machine}, at_memory = {.m = b->machine, .memory = true};
    int rc = measure_prefill(b, s, frontier, &at_peaks, &row, e);
    if (!rc && b->o->dump_logits_dir) rc = frontier_logits(b, s, e);
    if (!rc) rc = measure_machine(b, e);
    if (!rc && b->o->n_tokens) rc = measure_decode(b, s, &at_memory, &row, e);
    if (!rc && b->o->n_tokens) rc = measure_machine(b, e);
    if (rc) return rc;
    row.kvcache_bytes = ds4_session_bytes(s);
    bench_rows_add(rows, &row);
    bench_row_print(b->csv, &row);
    say_prefill(b, &at_peaks, &row);
    if (row.gen_tokens) say_decode(b, &at_memory, &row);
    return 0;
}

int bench_run(const struct bench *b, struct bench_rows *rows, struct ds4_error *e)
{
    ds4_session *s;
    int rc = ds4_session_create(b->engine, b->o->ctx_alloc, &s, e);
    if (rc) return rc;
    bench_row_header(b->csv);
    rc = measure_machine(b, e);
    for (int f = frontiers_next(&b->o->frontiers, 0); f && !rc; f = frontiers_next(&b->o->frontiers, f))
        rc = measure_frontier(b, s, f, rows, e);
    ds4_session_free(s);
    if (!rc) machine_print(stderr, b->machine);
    return rc;
}
