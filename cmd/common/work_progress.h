/* A line on a terminal's stderr that says how far a long work is. Elsewhere nothing is written. */
#ifndef WORK_PROGRESS_H
#define WORK_PROGRESS_H
#include <stdbool.h>
#include <stdint.h>

struct work_progress {
    bool on;
    uint64_t done, total; /* bytes */
    double start, shown;  /* clock_s */
};

/* Nothing will be shown if stderr is no terminal. */
void work_progress_begin(struct work_progress *p, uint64_t total_bytes);
/* n bytes more are done; what: the part that is at work. */
void work_progress_add(struct work_progress *p, const char *what, uint64_t n);
/* Takes the line away: before anything else is printed. */
void work_progress_end(struct work_progress *p);

#endif
