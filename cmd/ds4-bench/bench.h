/* The measurement: prefill and decode at every frontier of a text (spec cli-and-tools 6). */
#ifndef BENCH_H
#define BENCH_H
#include "bench_row.h"
#include "ds4.h"
#include "machine.h"
#include "options.h"

struct bench {
    const struct options *o;
    ds4_engine *engine;
    struct machine *machine;
    struct ds4_tokens text; /* at least --ctx-max; teacher-forced: and -n */
    FILE *csv;
};

/* Prints rows as they come, progress and what the speeds are of the machine's to stderr; *rows gets them all. */
int bench_run(const struct bench *b, struct bench_rows *rows, struct ds4_error *e);

#endif
