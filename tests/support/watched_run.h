/* Runs a program and looks at what it says and what it takes. */
#ifndef WATCHED_RUN_H
#define WATCHED_RUN_H
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct watched {
    int status;        /* exit status; -1: a signal ended it, -2: it ran longer than `seconds` */
    struct str errors; /* its standard error */
    double cpu;        /* seconds of processor time, which a loaded machine does not stretch */
    uint64_t largest;  /* bytes of its largest request for memory, anonymous mappings included; 0: not measured */
    uint64_t peak;     /* most bytes of heap at once; 0: not measured */
};

/* True where memory is measured: glibc, and no sanitizer that takes the allocator over. */
bool watched_measures(void);

/* Runs argv (argv[0]: path of the program, NULL behind the last) with nothing on its standard input and its standard
 * output thrown away. *w may be used again; watched_free at the end. Fails the running test if it cannot start. */
void watched_run(const char *const argv[], int seconds, struct watched *w);
void watched_free(struct watched *w);

#endif
