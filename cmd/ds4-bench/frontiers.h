/* Lengths of the context at which speed is measured. */
#ifndef FRONTIERS_H
#define FRONTIERS_H
#include <stdbool.h>

struct frontiers {
    int start, max; /* 1 <= start <= max */
    int increment;  /* with mul 1: from one to the next; >= 1 */
    float mul;      /* > 1: the next is at least one more and at least mul times as much */
};

/* The first one (at 0) or the one behind `at`; the last is max. 0: there is none. */
int frontiers_next(const struct frontiers *f, int at);

#endif
