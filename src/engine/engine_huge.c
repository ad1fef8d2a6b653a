/* Brings mapped weights into huge pages, in a thread of its own beside the work: pieces of 2 MiB, one after the other,
 * whose small pages are dropped and read again from the disk, once for as long as the system keeps the file in its
 * cache. It does 2 to 3 GiB a second (a fast disk, 0.5 to 0.9 GiB of a model of 2.2 GB). With six layers of Flash in
 * huge pages decoding went from 13.9 to 23.5 tokens/s, a prompt of 2,048 from 143 to 219 (`ds4-bench --ctx-start 2048
 * --ctx-max 2048`; 2 cores of an AMD EPYC, Zen 5, virtual). */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "engine_internal.h"

enum {
    FAILURES_MOST = 32, /* more than one piece in four, and these: the system does not do it */
    SLOW_FROM = 64,     /* pieces after which the disk's speed is known; a slow one is left in peace */
    SLOW_MS = 20,       /* for a piece: 100 MB/s */
};

struct huge_work {
    const struct canonical *c;
    struct load_plan plan; /* whose spans count */
    pthread_t thread;
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool running; /* under the lock */
    int tables, made, failed;
    uint64_t spent_ns;
};

/* Whether it is of use to go on. */
static bool goes_on(const struct huge_work *w)
{
    if (atomic_load(&w->stop)) return false;
    if (w->failed > FAILURES_MOST && w->failed > w->made / 4) return false;
    return w->made < SLOW_FROM || w->spent_ns / (uint64_t)w->made < SLOW_MS * UINT64_C(1000000);
}

static void make(struct huge_work *w, const struct file_map *m, int fd, uint64_t at)
{
    const uint64_t start = clock_ns();
    if (file_huge_make(w->tables, m, fd, at))
        w->made++;
    else
        w->failed++;
    w->spent_ns += clock_ns() - start;
}

static void do_span(struct huge_work *w, const struct load_span *s)
{
    const struct file_map *const m = canonical_file(w->c, s->file);
    struct err e = {0};
    const uint64_t first = (s->from + FILE_HUGE_BYTES - 1) / FILE_HUGE_BYTES * FILE_HUGE_BYTES;
    if (first + FILE_HUGE_BYTES > s->to || first + FILE_HUGE_BYTES > file_map_size(m)) return;
    const int fd = open(file_map_path(m), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    const uint64_t end = s->to < file_map_size(m) ? s->to : file_map_size(m);
    for (uint64_t at = first; at + FILE_HUGE_BYTES <= end && !file_check_same(m, fd, &e) && goes_on(w);
         at += FILE_HUGE_BYTES)
        if (file_huge_look(w->tables, m, at) == FILE_HUGE_SMALL) make(w, m, fd, at);
    close(fd);
}

static void *run(void *arg)
{
    struct huge_work *const w = arg;
    const double gib = (double)FILE_HUGE_BYTES / (1 << 30);
    for (int i = 0; i < w->plan.n_spans; i++) do_span(w, &w->plan.span[i]);
    if (w->made + w->failed && !atomic_load(&w->stop))
        log_msg(LOG_INFO, "engine", "weights: %.2f GiB brought into huge pages in %.1f s, %.2f could not be%s",
                w->made * gib, (double)w->spent_ns * 1e-9, w->failed * gib,
                goes_on(w) ? "" : "; the rest is left as it is");
    pthread_mutex_lock(&w->lock);
    w->running = false;
    pthread_cond_broadcast(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void work_free(struct huge_work *w)
{
    if (w->tables >= 0) close(w->tables);
    load_plan_free(&w->plan);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
}

struct huge_work *huge_start(const struct ds4_engine *g)
{
    struct err e = {0};
    if (g->load != DS4_LOAD_MAP || !engine_weights_mapped(g)) return NULL;
    struct huge_work *w = mem_alloc(sizeof *w);
    *w = (struct huge_work){.c = g->canonical, .tables = file_huge_open(), .running = true};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ended, NULL);
    if (w->tables >= 0 && !load_plan_make(g->canonical, g->draft, 1, &w->plan, &e) && !thread_start(&w->thread, run, w))
        return w;
    work_free(w);
    return NULL;
}

bool huge_wait(struct huge_work *w, int seconds)
{
    if (!w) return true;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += seconds;
    pthread_mutex_lock(&w->lock);
    while (w->running && !pthread_cond_timedwait(&w->ended, &w->lock, &end)) {
    }
    const bool over = !w->running;
    pthread_mutex_unlock(&w->lock);
    return over;
}

void huge_end(struct huge_work *w)
{
    if (!w) return;
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    work_free(w);
}
