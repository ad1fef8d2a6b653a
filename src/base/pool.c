/* Thread pool.
 *
 * `left` is the whole protocol: the number of tasks of a part of the current job that nobody has taken. Whoever lowers
 * it from k to k-1 owns task end - k; the job's fields cannot change before that task is counted in `done`, because
 * pool_run waits for done == n_tasks. So a worker that wakes late finds left == 0 or takes a task of the job that is
 * current. There is one part for each memory node; threads begin with their own.
 *
 * Sleeping is by two condition variables under one lock. Before a thread sleeps it says so (`sleepers`,
 * `caller_sleeps`) and looks again; who makes work or finishes looks at that afterwards (all sequentially consistent):
 * no wake-up is lost and the fast path takes no lock.
 *
 * Workers own nothing but their stack, take only the pool's lock, and live from pool_create to pool_free. */
#include "base/pool.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/topology.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#ifdef __linux__
#include <sched.h>
#endif

/* Long enough to span the serial stretches between two ops of a step, which take up to 80 us, as long as waking takes;
 * short enough to cost nothing when idle. */
enum { SPIN_NS = 200000, MAX_THREADS = 4096 };

struct worker {
    pthread_t id;
    struct pool *pool;
    int thread, cpu; /* cpu -1: not bound */
};

/* A part of a job. */
struct part {
    _Alignas(64) atomic_int left;
    int end; /* the task behind its last */
};

struct pool {
    struct part *part; /* [n_nodes] */
    int *node;         /* [n_threads] whose part a thread begins with */
    int n_nodes;
    _Alignas(64) atomic_int done;
    atomic_int active; /* threads from this on take no tasks */
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

/* Takes tasks of a part until none is left; returns how many. */
static int take_part(struct pool *p, struct part *part, int thread)
{
    for (int mine = 0;; mine++) {
        int left = atomic_load_explicit(&part->left, memory_order_relaxed);
        while (left > 0 && !atomic_compare_exchange_weak(&part->left, &left, left - 1)) {
        }
        if (left <= 0) return mine;
        p->fn(p->arg, part->end - left, thread);
    }
}

/* Takes tasks until none is left; whoever counts the last ones wakes the caller. */
static void take_tasks(struct pool *p, int thread)
{
    int mine = 0;
    if (thread >= atomic_load(&p->active)) return;
    for (int k = 0; k < p->n_nodes; k++) mine += take_part(p, &p->part[(p->node[thread] + k) % p->n_nodes], thread);
    if (!mine) return;
    /* The job is still open here; after the addition it may be over. */
    const int n_tasks = p->n_tasks;
    if (atomic_fetch_add(&p->done, mine) + mine < n_tasks || !atomic_load(&p->caller_sleeps)) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->finished);
    pthread_mutex_unlock(&p->lock);
}

static bool have_work(struct pool *p, int thread)
{
    if (atomic_load(&p->quit)) return true;
    if (thread >= atomic_load(&p->active)) return false;
    for (int k = 0; k < p->n_nodes; k++)
        if (atomic_load(&p->part[k].left) > 0) return true;
    return false;
}

static bool job_done(struct pool *p, int thread)
{
    return atomic_load(&p->done) == p->n_tasks;
}

static bool spin_until(struct pool *p, int thread, bool (*ready)(struct pool *, int thread))
{
    const uint64_t end = clock_ns() + SPIN_NS;
    do {
        for (int i = 0; i < 32; i++) {
            if (ready(p, thread)) return true;
            relax();
        }
    } while (clock_ns() < end);
    return false;
}

static void wait_for_work(struct pool *p, int thread)
{
    if (spin_until(p, thread, have_work)) return;
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (!have_work(p, thread)) pthread_cond_wait(&p->work, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static void wait_for_job(struct pool *p)
{
    if (spin_until(p, 0, job_done)) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (!job_done(p, 0)) pthread_cond_wait(&p->finished, &p->lock);
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

/* The calling thread; where that is refused the system goes on moving it. */
static void bind_to(int cpu)
{
#ifdef __linux__
    cpu_set_t *set = cpu >= 0 ? CPU_ALLOC(cpu + 1) : NULL;
    if (!set) return;
    CPU_ZERO_S(CPU_ALLOC_SIZE(cpu + 1), set);
    CPU_SET_S(cpu, CPU_ALLOC_SIZE(cpu + 1), set);
    sched_setaffinity(0, CPU_ALLOC_SIZE(cpu + 1), set);
    CPU_FREE(set);
#endif
}

static void *worker_main(void *arg)
{
    const struct worker *w = arg;
    struct pool *p = w->pool;
    bind_to(w->cpu);
    while (!atomic_load(&p->quit)) {
        take_tasks(p, w->thread);
        wait_for_work(p, w->thread);
    }
    return NULL;
}

void pool_run(struct pool *p, void (*fn)(void *arg, int task, int thread), void *arg, int n_tasks)
{
    if (atomic_load(&p->active) == 1 || n_tasks <= 1) {
        for (int t = 0; t < n_tasks; t++) fn(arg, t, 0);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->n_tasks = n_tasks;
    atomic_store(&p->done, 0);
    for (int k = 0, from = 0; k < p->n_nodes; k++) {
        const int end = (int)((int64_t)n_tasks * (k + 1) / p->n_nodes);
        p->part[k].end = end;
        atomic_store(&p->part[k].left, end - from);
        from = end;
    }
    wake_workers(p);
    take_tasks(p, 0);
    wait_for_job(p);
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
    mem_free(p->part);
    mem_free(p->node);
    mem_free(p->worker);
    mem_free(p);
}

static int start_workers(struct pool *p, const struct topology_core *place, struct err *e)
{
    int rc = 0, n = 0;
    for (; n < p->n_threads - 1 && !rc; n += !rc) {
        p->worker[n] = (struct worker){.pool = p, .thread = n + 1, .cpu = place[n + 1].cpu};
        rc = thread_start(&p->worker[n].id, worker_main, &p->worker[n]);
    }
    if (!rc) return 0;
    stop_workers(p, n);
    return err_set(e, ERR_MEMORY, "cannot start thread %d of %d: the system's limit of threads or memory is reached",
                   n + 2, p->n_threads);
}

static int create(const struct topology *t, int n_threads, struct pool **out, struct err *e)
{
    struct pool *p = mem_try_aligned(sizeof *p, 64);
    if (!p) return err_set(e, ERR_MEMORY, "no memory for a thread pool");
    struct topology_core *place = mem_alloc((size_t)n_threads * sizeof *place);
    const bool bound = t && t->n_nodes > 1;
    for (int i = 0; i < n_threads; i++) place[i].cpu = -1;
    if (bound) topology_place(t, n_threads, place);
    p->n_threads = n_threads;
    p->n_nodes = bound ? t->n_nodes : 1;
    atomic_store(&p->active, n_threads);
    p->worker = mem_alloc((size_t)n_threads * sizeof *p->worker);
    p->node = mem_alloc((size_t)n_threads * sizeof *p->node);
    for (int i = 0; i < n_threads; i++) p->node[i] = place[i].node;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->finished, NULL);
    p->part = mem_try_aligned((size_t)p->n_nodes * sizeof *p->part, 64);
    const int rc = p->part ? start_workers(p, place, e) : err_set(e, ERR_MEMORY, "no memory for a thread pool");
    mem_free(place);
    if (rc)
        release(p);
    else
        *out = p;
    return rc;
}

int pool_create_on(const struct topology *t, int n_threads, struct pool **out, struct err *e)
{
    *out = NULL;
    if (n_threads < 0 || n_threads > MAX_THREADS)
        return err_set(e, ERR_ARG, "%d threads: give 1 to %d, or 0 to choose by the machine", n_threads, MAX_THREADS);
    return create(t, n_threads ? n_threads : t ? t->threads : pool_default_threads(), out, e);
}

int pool_create(int n_threads, struct pool **out, struct err *e)
{
    return pool_create_on(NULL, n_threads, out, e);
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

int pool_nodes(const struct pool *p)
{
    return p->n_nodes;
}

void pool_limit(struct pool *p, int n)
{
    atomic_store(&p->active, n < 1 ? 1 : n < p->n_threads ? n : p->n_threads);
}

int pool_default_threads(void)
{
    struct topology t;
    topology_read(&t);
    const int n = t.threads;
    topology_free(&t);
    return n;
}
