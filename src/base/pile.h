/* A growing table whose elements never move: it grows by pieces of a few kilobytes, so that neither a copy nor one
 * large block is ever needed, however long a table a file describes. Zero-initialised but for `bytes` = empty. */
#ifndef BASE_PILE_H
#define BASE_PILE_H
#include <stddef.h>
#include <stdint.h>

struct pile {
    size_t bytes;  /* of an element */
    uint64_t n;    /* elements */
    void **piece;  /* owned */
    size_t pieces; /* room of the list of pieces */
};

void *pile_add(struct pile *p); /* the next element, zeroed; NULL: out of memory, the pile is as it was */
void *pile_at(const struct pile *p, uint64_t i); /* element i < n */
void pile_free(struct pile *p);                  /* back to empty */

#endif
