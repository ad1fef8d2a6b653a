/* Thread pool.
 *
 * `left` is the whole protocol: the number of tasks of the current job that nobody has taken. Whoever lowers it from k
 * to k-1 owns task n_tasks - k; the job's fields cannot change before that task is counted in `done`, because pool_run
 * waits for done == n_tasks. So a worker that wakes late finds left == 0 or takes a task of the job that is current.
 *
 * Sleeping is by two condition variables under one lock. Before a thread sleeps it says so (`sleepers`,
 * `caller_sleeps`) and looks again; who makes work or finishes looks at that afterwards (all sequentially consistent):
 * no wake-up is lost and the fast path takes no lock.
 *
 * Workers own nothing but their stack, take only the pool's lock, and live from pool_create to pool_free. */
#include "base/pool.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/sysinfo_internal.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Long enough to span the serial stretches between two ops of a step, short enough to cost nothing when idle. */
enum { SPIN_NS = 50000, MAX_THREADS = 4096 };

struct worker {
    pthread_t id;
    struct pool *pool;
    int thread;
};

struct pool {
    _Alignas(64) atomic_int left;
    _Alignas(64) atomic_int done;
    void (*fn)(void *arg, int task, int thread);
    void *arg;
    int n_tasks;
    int n_threads;
    _Alignas(64) atomic_int sleepers;
    atomic_bool caller_sleeps, quit;
    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    struct worker *worker; /* [n_threads - 1] */
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes tasks until none is left; whoever counts the last ones wakes the caller. */
static void take_tasks(struct pool *p, int thread)
{
    int mine = 0, n_tasks = 0;
    for (;;) {
        int left = atomic_load_explicit(&p->left, memory_order_relaxed);
        while (left > 0 && !atomic_compare_exchange_weak(&p->left, &left, left - 1)) {
        }
        if (left <= 0) break;
        n_tasks = p->n_tasks;
        p->fn(p->arg, n_tasks - left, thread);
        mine++;
    }
    /* With mine > 0 the job is still open here; after the addition it may be over. */
    if (!mine || atomic_fetch_add(&p->done, mine) + mine < n_tasks || !atomic_load(&p->caller_sleeps)) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->finished);
    pthread_mutex_unlock(&p->lock);
}

static bool have_work(struct pool *p)
{
    return atomic_load(&p->left) > 0 || atomic_load(&p->quit);
}

static bool job_done(struct pool *p)
{
    return atomic_load(&p->done) == p->n_tasks;
}

static bool spin_until(struct pool *p, bool (*ready)(struct pool *))
{
    const uint64_t end = clock_ns() + SPIN_NS;
    do {
        for (int i = 0; i < 32; i++) {
            if (ready(p)) return true;
            relax();
        }
    } while (clock_ns() < end);
    return false;
}

static void wait_for_work(struct pool *p)
{
    if (spin_until(p, have_work)) return;
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (!have_work(p)) pthread_cond_wait(&p->work, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static void wait_for_job(struct pool *p)
{
    if (spin_until(p, job_done)) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (!job_done(p)) pthread_cond_wait(&p->finished, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

static void wake_workers(struct pool *p)
{
    if (!atomic_load(&p->sleepers)) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
    const struct worker *w = arg;
    struct pool *p = w->pool;
    while (!atomic_load(&p->quit)) {
        take_tasks(p, w->thread);
        wait_for_work(p);
    }
    return NULL;
}

void pool_run(struct pool *p, void (*fn)(void *arg, int task, int thread), void *arg, int n_tasks)
{
    if (p->n_threads == 1 || n_tasks <= 1) {
        for (int t = 0; t < n_tasks; t++) fn(arg, t, 0);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->n_tasks = n_tasks;
    atomic_store(&p->done, 0);
    atomic_store(&p->left, n_tasks);
    wake_workers(p);
    take_tasks(p, 0);
    wait_for_job(p);
}

/* Signals for the process are the main thread's business; only faults of its own reach a worker. */
static void block_signals(sigset_t *old)
{
    const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, old);
}

static void stop_workers(struct pool *p, int n)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->quit, true);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < n; i++) pthread_join(p->worker[i].id, NULL);
}

static void release(struct pool *p)
{
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->finished);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->worker);
    mem_free(p);
}

static int start_workers(struct pool *p, struct err *e)
{
    sigset_t old;
    int rc = 0, n = 0;
    block_signals(&old);
    for (; n < p->n_threads - 1 && !rc; n += !rc) {
        p->worker[n] = (struct worker){.pool = p, .thread = n + 1};
        rc = pthread_create(&p->worker[n].id, NULL, worker_main, &p->worker[n]);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!rc) return 0;
    stop_workers(p, n);
    return err_set(e, ERR_MEMORY, "cannot start thread %d of %d: the system's limit of threads or memory is reached",
                   n + 2, p->n_threads);
}

int pool_create(int n_threads, struct pool **out, struct err *e)
{
    *out = NULL;
    if (n_threads < 0 || n_threads > MAX_THREADS)
        return err_set(e, ERR_ARG, "%d threads: give 1 to %d, or 0 to choose by the machine", n_threads, MAX_THREADS);
    struct pool *p = mem_try_aligned(sizeof *p, 64);
    if (!p) return err_set(e, ERR_MEMORY, "no memory for a thread pool");
    p->n_threads = n_threads ? n_threads : pool_default_threads();
    p->worker = mem_alloc((size_t)p->n_threads * sizeof *p->worker);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->finished, NULL);
    const int rc = start_workers(p, e);
    if (rc)
        release(p);
    else
        *out = p;
    return rc;
}

void pool_free(struct pool *p)
{
    if (!p) return;
    stop_workers(p, p->n_threads - 1);
    release(p);
}

int pool_threads(const struct pool *p)
{
    return p->n_threads;
}

int pool_default_threads(void)
{
    return sysinfo_threads("");
}
