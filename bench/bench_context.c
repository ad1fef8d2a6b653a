/* How decoding slows down with the context: bench_context MODEL THREADS LENGTH... fills a session with random tokens,
 * keeps a copy at each length, then lets the copies decode in turn, so that whatever else the machine does meets all of
 * them alike. Without rewind points, whose budget would hide what a session holds. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/clock.h"
#include "ds4.h"

enum { DECODED = 100, MOST = 16 };

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

/* Processor time of all threads. */
static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fill(ds4_engine *g, ds4_session *s, const int32_t *t, int length, struct ds4_error *e)
{
    const int from = ds4_session_length(s);
    const double begun = clock_s();
    const int rc = evaluate(g, s, t + from, length - from, e);
    const struct mallinfo2 m = mallinfo2();
    printf("%7d tokens: prefill %7.1f t/s, %.1f MB allocated\n", length, (length - from) / (clock_s() - begun),
           (double)(m.uordblks + m.hblkhd) / 1e6);
    fflush(stdout);
    return rc;
}

/* Milliseconds of a token, DECODED of each session. */
static int decode(ds4_engine *g, ds4_session *const *s, int n, const int32_t *t, double (*ms)[DECODED],
                  struct ds4_error *e)
{
    int rc = 0;
    for (int i = 0; i < DECODED; i++)
        for (int k = 0; k < n && !rc; k++) {
            const double begun = processor_s();
            rc = evaluate(g, s[k], t + i, 1, e);
            ms[k][i] = 1e3 * (processor_s() - begun);
        }
    return rc;
}

int main(int argc, char **argv)
{
    static double ms[MOST][DECODED];
    struct ds4_error e = {0};
    struct ds4_model_info info;
    ds4_engine *g;
    ds4_session *s, *copy[MOST];
    const int n = argc - 3;
    if (n < 1 || n > MOST) return fprintf(stderr, "usage: bench_context MODEL THREADS LENGTH...\n"), 2;
    const int ctx = atoi(argv[argc - 1]) + DECODED;
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
    for (int i = 0; i < n; i++)
        if (fill(g, s, tokens, atoi(argv[3 + i]), &e) || ds4_session_fork(s, &copy[i], &e)) return fail(&e);
    if (decode(g, copy, n, tokens, ms, &e)) return fail(&e);
    for (int i = 0; i < n; i++) {
        qsort(ms[i], DECODED, sizeof ms[i][0], by_value);
        printf("decoding behind %7s tokens: %.3f ms of processor time a token (median; least %.3f)\n", argv[3 + i],
               ms[i][DECODED / 2], ms[i][0]);
        ds4_session_free(copy[i]);
    }
    free(tokens);
    ds4_session_free(s);
    ds4_engine_close(g);
    return 0;
}
