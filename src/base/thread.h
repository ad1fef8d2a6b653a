/* Threads of the library. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H
#include <pthread.h>

/* Starts a thread that signals for the program do not reach, and that has room for kernels: they keep panels of some
 * hundred KiB on the stack, where systems give 128 KiB (musl) or 512 (macOS). 0, or an errno: the system's limit of
 * threads or memory is reached. */
int thread_start(pthread_t *id, void *(*run)(void *arg), void *arg);

#endif
