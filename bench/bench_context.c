/* How decoding slows down with the context: bench_context MODEL [LENGTH...] fills a session with random tokens up to
 * each length and times single tokens there. Without rewind points, whose budget would hide what a session holds. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/clock.h"
#include "ds4.h"

enum { DECODED = 64 };

static int fail(const struct ds4_error *e)
{
    fprintf(stderr, "bench_context: %s\n", e->message);
    return 1;
}

static void random_tokens(int32_t *t, int n, int n_vocab)
{
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        t[i] = (int32_t)(x % (uint64_t)n_vocab);
    }
}

static int evaluate(ds4_engine *g, ds4_session *s, const int32_t *t, int n, struct ds4_error *e)
{
    int rc = ds4_session_submit(s, t, n, e);
    while (!rc && (rc = ds4_engine_step(g, e)) > 0) rc = 0;
    return rc ? rc : ds4_session_collect(s, NULL, e) == DS4_DONE ? 0 : DS4_E_DEVICE;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Processor time of all threads: what other programs do at the same time hardly shows. */
static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int measure(ds4_engine *g, ds4_session *s, const int32_t *t, int length, struct ds4_error *e)
{
    const int from = ds4_session_length(s);
    const double begun = clock_s();
    int rc = evaluate(g, s, t + from, length - DECODED - from, e);
    const double filled = clock_s();
    double busy[DECODED];
    for (int i = 0; i < DECODED && !rc; i++) {
        const double start = processor_s();
        rc = evaluate(g, s, t + length - DECODED + i, 1, e);
        busy[i] = 1e3 * (processor_s() - start);
    }
    const double end = clock_s();
    const struct mallinfo2 m = mallinfo2();
    qsort(busy, DECODED, sizeof busy[0], by_value);
    if (!rc)
        printf("%7d tokens: prefill %7.1f t/s, decoding %6.1f t/s, processor time of a token %.3f ms (median; least "
               "%.3f), %.1f MB allocated\n",
               length, (length - DECODED - from) / (filled - begun), DECODED / (end - filled), busy[DECODED / 2],
               busy[0], (double)(m.uordblks + m.hblkhd) / 1e6);
    fflush(stdout);
    return rc;
}

int main(int argc, char **argv)
{
    struct ds4_error e = {0};
    struct ds4_model_info info;
    ds4_engine *g;
    ds4_session *s;
    if (argc < 4) return fprintf(stderr, "usage: bench_context MODEL THREADS LENGTH...\n"), 2;
    const int ctx = atoi(argv[argc - 1]) + 1;
    const char *path = argv[1];
    const struct ds4_options o = {.model_paths = &path,
                                  .n_model_paths = 1,
                                  .threads = atoi(argv[2]),
                                  .ctx = ctx,
                                  .page_weights = true,
                                  .anchor_bytes = 1};
    if (ds4_engine_open(&o, &g, &e) || ds4_session_create(g, ctx, &s, &e)) return fail(&e);
    ds4_engine_info(g, &info);
    int32_t *tokens = malloc((size_t)ctx * sizeof *tokens);
    random_tokens(tokens, ctx, info.n_vocab);
    for (int i = 3; i < argc; i++)
        if (measure(g, s, tokens, atoi(argv[i]), &e)) return fail(&e);
    free(tokens);
    ds4_session_free(s);
    ds4_engine_close(g);
    return 0;
}
