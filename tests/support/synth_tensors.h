/* What the writers of random models share: a list of tensors is made first (name, type, shape, distribution), then
 * declared, then filled row by row; a vocabulary of special tokens and bytes. */
#ifndef SYNTH_TENSORS_H
#define SYNTH_TENSORS_H
#include <stdint.h>
#include "base/err.h"
#include "gguf/gguf.h"

enum synth_fill { FILL_NORMAL, FILL_AROUND_ONE, FILL_HASH, FILL_DECAY };

struct synth_tensor {
    char name[64];
    uint32_t type;
    int n_dims;
    uint64_t ne[3];
    enum synth_fill fill;
    double std;
    int most; /* FILL_HASH: ids below it */
};

struct synth_list {
    struct synth_tensor *at; /* owned */
    int n, cap;
    int layer; /* prefix of the names; -1: none */
};

/* Adds a tensor; the format gives its whole name behind the layer's prefix. */
struct synth_tensor *synth_add(struct synth_list *y, uint32_t type, enum synth_fill fill, double std, int n_dims,
                               const uint64_t *ne, const char *fmt, ...) __attribute__((format(printf, 7, 8)));
/* A matrix of `rows` rows of `width` values with deviation std / sqrt(width). */
void synth_matrix(struct synth_list *y, uint32_t type, double std, int width, int rows, const char *name);
/* n normal values; the name is whole. */
void synth_vector(struct synth_list *y, double std, int n, const char *name);
/* n values around 1. */
void synth_norm(struct synth_list *y, int n, const char *name);

/* Special tokens, one merged pair, the byte alphabet (printable bytes first), then fillers. */
void synth_write_vocabulary(struct gguf_writer *w, int V, const char *const *special, int n_special, const char *pre,
                            int bos, int eos);
/* Declares and writes all tensors and empties the list. */
int synth_write(struct gguf_writer *w, struct synth_list *y, uint64_t seed, struct err *e);

#endif
