/* Short looks at the machine in turns with the parts of what is measured. Where machines share processors and memory,
 * speed moves within seconds: what could have been reached is what was there meanwhile, not the best of another minute.
 */
#ifndef LOOKS_H
#define LOOKS_H
#include "machine.h"

struct looks {
    struct machine *m;
    bool memory; /* at how fast it is read, for decoding; else at the peaks, for prompts */
    int n;
    double spent, last;      /* seconds in looks, which belong to nobody; when the last one ended */
    double per[PEAK_KINDS];  /* sum over the looks of the seconds per product; of memory [0], per byte */
    double slowest, fastest; /* of the first kind, per second */
};

/* Takes a look, unless the last one is no quarter of a second ago and `now` is not set. */
int looks_take(struct looks *l, bool now, struct err *e);
/* Seconds per product of a kind, or per byte (kind 0), as the looks saw it in the mean. At least one was taken. */
double looks_cost(const struct looks *l, int kind);

#endif
