/* How fast the threads of a pool read memory. */
#ifndef BASE_READING_H
#define BASE_READING_H
#include <stddef.h>
#include <stdint.h>
#include "base/pool.h"

/* Ways of reading; which one is fastest depends on the processor and on what its neighbours do. */
enum reading_way {
    READING_PLAIN, /* from the first to the last line: what the processor foresees by itself */
    READING_FOUR,  /* as four streams, lines asked for 1 KiB before their turn, into the second-level cache */
    READING_EIGHT, /* as eight streams, 2 KiB before: as kernels read weights for one token */
    READING_WAYS
};

/* Brings n bytes, a multiple of 64, to the processor: one word of every 64 counts, the line comes as a whole. The sum
 * of these words, the same for all ways. */
uint64_t reading_sum(enum reading_way way, const void *p, size_t n);
/* How many threads of the pool (pool_limit) read memory fastest when the work comes in pieces as small as the matrices
 * of a model: all, unless fewer are clearly faster again and again, as where several share a channel to memory or a
 * core. Takes some 15 milliseconds and 64 MiB for a moment; all, where that is not there. The pool's limit is lifted.
 */
int reading_threads(struct pool *p);

#endif
