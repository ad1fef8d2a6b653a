/* What the machine can do, measured before and after the model's own measurements: how far it lies apart says how quiet
 * the machine was. */
#ifndef MACHINE_H
#define MACHINE_H
#include <stdio.h>
#include "base/file.h"
#include "common/measure.h"
#include "ds4.h"

struct machine_speed {
    double least, most; /* per second */
};

struct machine {
    struct pool *pool;
    int readers;              /* threads of it that read, as those that decode */
    struct file_map *weights; /* memory of the model's file, mapped or read as the engine has it */
    enum quant_isa isa;
    int n;          /* measurements */
    uint64_t looks; /* passes over memory */
    struct machine_speed read, peak[PEAK_KINDS];
    struct pool *apart[2];        /* of one and of two threads; NULL where the engine has one only */
    struct machine_speed scaling; /* what two threads multiply, of what one does */
};

int machine_open(struct machine *m, const char *model_file, const struct ds4_model_info *engine, struct err *e);
void machine_close(struct machine *m);
/* Bytes of weights that are measured with, mapped or read once more than the engine has them. */
uint64_t machine_bytes(const struct machine *m);
int machine_measure(struct machine *m, struct err *e); /* about a second */
/* Milliseconds, in turns with other work: how fast weights are read, how many products there are of a kind. */
int machine_look_memory(struct machine *m, double *bytes_per_s, struct err *e);
int machine_look_peak(const struct machine *m, enum peak_kind kind, double *per_s, struct err *e);
/* The line "machine: ...", and a warning behind it where two threads are in each other's way. */
void machine_print(FILE *out, const struct machine *m);

#endif
