#include "base/reading.h"
#include <stdbool.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#include "base/clock.h"
#include "base/mem.h"

enum { LINE = 64, CHOICES = 2, ROUNDS = 5 };
#define BLOCK_BYTES ((size_t)64 << 20) /* more than most caches hold of one core's */
#define JOB_BYTES   ((size_t)4 << 20)  /* about what an operation of a decode step reads */
#define TASK_BYTES  ((size_t)64 << 10)

/* Fewer threads must take so much less time than all; all of them at most so much more in the worst round. */
static const double clearly = 0.93, quiet = 1.1;

/* Sums of single words, so that nothing but the lines' way to the processor takes time. */
static inline __attribute__((always_inline)) uint64_t sum_lines(const uint8_t *p, size_t n, size_t streams,
                                                                size_t ahead)
{
    const size_t part = n / LINE / streams * LINE;
    uint64_t sum = 0, word;
    for (size_t at = 0; at < part; at += LINE)
        for (const uint8_t *line = p + at, *const end = line + streams * part; line < end; line += part) {
            if (ahead) __builtin_prefetch((const void *)((uintptr_t)line + ahead), 0, 2);
            memcpy(&word, line, sizeof word);
            sum += word;
        }
    for (size_t at = streams * part; at < n; at += LINE) {
        memcpy(&word, p + at, sizeof word);
        sum += word;
    }
    return sum;
}

uint64_t reading_sum(enum reading_way way, const void *p, size_t n)
{
    switch (way) {
    case READING_PLAIN:
        return sum_lines(p, n, 1, 0);
    case READING_FOUR:
        return sum_lines(p, n, 4, 1024);
    case READING_EIGHT:
    case READING_WAYS:
        break;
    }
    return sum_lines(p, n, 8, 2048);
}

struct block {
    uint8_t *p;
    size_t from;           /* of the running job */
    volatile uint64_t sum; /* so that reading cannot be left out; who wins does not matter */
};

static void write_task(void *arg, int task, int thread)
{
    const struct block *b = arg;
    memset(b->p + (size_t)task * TASK_BYTES, 1, TASK_BYTES);
}

static void read_task(void *arg, int task, int thread)
{
    struct block *b = arg;
    const uint64_t sum = reading_sum(READING_EIGHT, b->p + b->from + (size_t)task * TASK_BYTES, TASK_BYTES);
    if (sum == 0) b->sum = sum;
}

static double pass(struct pool *p, struct block *b, int threads)
{
    pool_limit(p, threads);
    const double start = clock_s();
    for (b->from = 0; b->from < BLOCK_BYTES; b->from += JOB_BYTES)
        pool_run(p, read_task, b, (int)(JOB_BYTES / TASK_BYTES));
    return clock_s() - start;
}

/* Choices that lost one round are out: as a rule all after the first. A wrong choice of fewer threads lasts as long as
 * the pool, so where all threads are not equally fast in every round (another program is at work) they stay. */
static int fastest(struct pool *p, struct block *b)
{
    const int all = pool_threads(p), choice[CHOICES] = {(all + 1) / 2, (3 * all + 3) / 4};
    double least = 1e9, most = 0, sum[CHOICES] = {0};
    bool in[CHOICES] = {choice[0] < all, choice[1] < all};
    pass(p, b, all);
    for (int k = 0; k < ROUNDS && (in[0] || in[1]); k++) {
        const double t = pass(p, b, all);
        if (t < least) least = t;
        if (t > most) most = t;
        for (int i = 0; i < CHOICES; i++) {
            const double fewer = in[i] ? pass(p, b, choice[i]) : 0;
            in[i] = in[i] && fewer < clearly * least;
            sum[i] += fewer;
        }
    }
    if (most > quiet * least) return all;
    const int at = in[0] && in[1] ? sum[1] <= sum[0] : in[1];
    return in[at] ? choice[at] : all;
}

int reading_threads(struct pool *p)
{
    const int all = pool_threads(p);
    if (all == 1) return 1;
    void *const memory = mem_try(BLOCK_BYTES + 4096);
    if (!memory) return all;
    struct block b = {.p = (uint8_t *)memory + (4096 - (uintptr_t)memory % 4096)};
#ifdef MADV_HUGEPAGE
    madvise(b.p, BLOCK_BYTES, MADV_HUGEPAGE);
#endif
    pool_run(p, write_task, &b, (int)(BLOCK_BYTES / TASK_BYTES));
    const int best = fastest(p, &b);
    pool_limit(p, all);
    mem_free(memory);
    return best;
}
