/* Thread pool. One job at a time: pool_run cuts it into tasks that any thread may take, and returns when all are done.
 * Results must not depend on which thread runs which task. Workers spin briefly, then sleep. */
#ifndef BASE_POOL_H
#define BASE_POOL_H
#include "base/err.h"

struct pool;
struct topology;

/* n_threads counts the caller's thread: 1 = no workers. 0 = pool_default_threads(). */
int pool_create(int n_threads, struct pool **out, struct err *e);
/* The same on cores with several memory nodes: workers are bound to cores (topology_place; the caller's thread is not),
 * and of every job the first tasks go to the threads of the first node, and so on, one equal part for each; who has
 * done its own part helps with the others. With one node, or t NULL, as pool_create. */
int pool_create_on(const struct topology *t, int n_threads, struct pool **out, struct err *e);
void pool_free(struct pool *p);
int pool_threads(const struct pool *p);
/* Parts that jobs are cut into: memory nodes of the threads, 1 where that is not known. */
int pool_nodes(const struct pool *p);
/* At most n threads, from the first on, take tasks of the jobs that follow; between jobs only. */
void pool_limit(struct pool *p, int n);
/* Calls fn(arg, task, thread) for task = 0 .. n_tasks-1; thread is 0 .. pool_threads-1, for per-thread scratch.
 * Not reentrant: fn must not call pool_run on the same pool. */
void pool_run(struct pool *p, void (*fn)(void *arg, int task, int thread), void *arg, int n_tasks);

/* topology_read's threads: one per physical core that this process may use, or the cgroups' quota. */
int pool_default_threads(void);

#endif
