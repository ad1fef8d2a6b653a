/* Thread pool. One job at a time: pool_run cuts it into tasks that any thread may take, and returns when all are done.
 * Results must not depend on which thread runs which task. Workers spin briefly, then sleep. */
#ifndef BASE_POOL_H
#define BASE_POOL_H
#include "base/err.h"

struct pool;

/* n_threads counts the caller's thread: 1 = no workers. 0 = pool_default_threads(). */
int pool_create(int n_threads, struct pool **out, struct err *e);
void pool_free(struct pool *p);
int pool_threads(const struct pool *p);
/* Calls fn(arg, task, thread) for task = 0 .. n_tasks-1; thread is 0 .. pool_threads-1, for per-thread scratch.
 * Not reentrant: fn must not call pool_run on the same pool. */
void pool_run(struct pool *p, void (*fn)(void *arg, int task, int thread), void *arg, int n_tasks);

/* One thread per physical core that this process may use: affinity mask and cgroup quota respected; at least 1. */
int pool_default_threads(void);

#endif
