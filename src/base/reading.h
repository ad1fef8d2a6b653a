/* How fast the threads of a pool read memory. */
#ifndef BASE_READING_H
#define BASE_READING_H
#include <stddef.h>
#include <stdint.h>
#include "base/pool.h"

/* Reads n bytes, a multiple of 64 on a border of 8; returns something that depends on all of them. */
uint64_t reading_sum(const void *p, size_t n);
/* How many threads of the pool (pool_limit) read memory fastest when the work comes in pieces as small as the matrices
 * of a model: all, unless fewer are clearly faster again and again, as where several share a channel to memory or a
 * core. Takes some 15 milliseconds and 64 MiB for a moment; all, where that is not there. The pool's limit is lifted.
 */
int reading_threads(struct pool *p);

#endif
