/* Speeds of the machine, measured in well under a second each (the disk: two). All use the threads of the pool. */
#ifndef MEASURE_H
#define MEASURE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/pool.h"
#include "base/reading.h"
#include "base/sysinfo.h"
#include "peak.h"
#include "quant/quant.h"

/* Seconds that a measurement takes where nothing hurries. */
#define MEASURE_S 0.15

/* Bytes to read for the speed of memory: more than caches hold, and no burden for the machine. */
uint64_t measure_probe_bytes(const struct sysinfo *s);
/* Bytes per second of reading memory that no cache holds: the best of several passes over one block of bytes. */
int measure_memory(struct pool *p, uint64_t bytes, double *bytes_per_s, struct err *e);
/* The same of bytes that exist already: n > 0 at p, which stay as they are. Ways of reading take turns, and the fastest
 * pass of all counts: no kernel should be much faster. */
int measure_reading(struct pool *p, const void *bytes, uint64_t n, double *bytes_per_s, struct err *e);
/* One pass. */
int measure_reading_once(struct pool *p, enum reading_way way, const void *bytes, uint64_t n, double *bytes_per_s,
                         struct err *e);
/* Multiply-adds per second without any memory, the best of the passes of so many seconds: no kernel is faster. */
int measure_peak(struct pool *p, enum quant_isa isa, enum peak_kind kind, double seconds, double *per_s, struct err *e);
/* Multiply-adds per second of Q8_0 weights with many rows of 8-bit activations, everything in the caches: what bounds a
 * prompt, where memory bounds an answer. */
int measure_products(struct pool *p, enum quant_isa isa, double *per_s, struct err *e);

struct disk_speed {
    double bytes_per_s;
    uint64_t bytes; /* that were read */
    bool cached;    /* the system does not let its cache be passed by: this may be the speed of memory */
};
/* Reads parts of a file, spread over its length. */
int measure_disk(struct pool *p, const char *path, struct disk_speed *d, struct err *e);

#endif
