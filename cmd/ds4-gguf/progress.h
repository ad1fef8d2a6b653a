/* A line on a terminal's stderr that says how far a long work is. Elsewhere nothing is written. */
#ifndef PROGRESS_H
#define PROGRESS_H
#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool on;
    uint64_t done, total; /* bytes */
    double start, shown;  /* clock_s */
};

/* Nothing will be shown if stderr is no terminal. */
void progress_begin(struct progress *p, uint64_t total_bytes);
/* n bytes more are done; what: the part that is at work. */
void progress_add(struct progress *p, const char *what, uint64_t n);
/* Takes the line away: before anything else is printed. */
void progress_end(struct progress *p);

#endif
