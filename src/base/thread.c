#include "base/thread.h"
#include <signal.h>

enum { STACK_BYTES = 4 << 20 };

/* Faults come to the thread that makes them; SIGPROF is a profiler's. */
static void block_signals(sigset_t *old)
{
    const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, old);
}

int thread_start(pthread_t *id, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t a;
    sigset_t old;
    int rc = pthread_attr_init(&a);
    if (rc) return rc;
    pthread_attr_setstacksize(&a, STACK_BYTES);
    block_signals(&old);
    rc = pthread_create(id, &a, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&a);
    return rc;
}
