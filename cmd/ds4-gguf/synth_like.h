/* A model like another one, without its weights: for reports of what goes wrong with a file that cannot be sent. */
#ifndef SYNTH_LIKE_H
#define SYNTH_LIKE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "synth_family.h"

struct synth_like {
    const char *path, *out;
    const struct synth_family *const *families; /* NULL behind the last: they know how large values usually are */
    bool headers;                               /* nothing but the records: a few megabytes */
    uint64_t seed;
};

/* Copies the records byte for byte; the data of every tensor are random values of its type, at the same place. Of types
 * that cannot be made up, zeros. The file may be one that was made with headers: the whole one comes back from it. */
int synth_like(const struct synth_like *o, struct err *e);

#endif
