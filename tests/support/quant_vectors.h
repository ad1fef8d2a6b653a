/* Inputs of the golden vectors of the block types: spec gguf-and-quants appendix A and more-quants 7.2. */
#ifndef SUPPORT_QUANT_VECTORS_H
#define SUPPORT_QUANT_VECTORS_H
#include <stddef.h>
#include <stdint.h>
#include "quant/quant.h"

enum { VEC_N = 4096, VEC_ROW = 1024, VEC_ROWS = 4 };

struct quant_vectors {
    float x[VEC_N]; /* four rows of weights */
    float importance[VEC_ROW];
    float y[VEC_N]; /* four rows of activations */
    uint32_t state; /* of the generator after the last draw */
};

uint32_t vec_xorshift(uint32_t *state);
void quant_vectors_make(struct quant_vectors *v);
/* FNV-1a, 64 bits. */
uint64_t vec_fnv(const void *data, size_t bytes);
/* The same over the bits of n floats; processors differ in the sign of what is not a number, so it counts as one value.
 */
uint64_t vec_fnv_floats(const float *x, size_t n);
/* Activation row ACT_Q8_0 as ggml's generic code makes it: d rounded to f16, codes rounded half away from zero. */
void vec_act_ggml(const float *x, int k, void *row);
/* Random blocks of a type with finite scales (more-quants 7.2); n_bytes: a whole number of blocks. */
void vec_random_blocks(uint32_t type, void *out, size_t n_bytes);
/* Makes the scales of blocks finite, as that does. */
void vec_finite_blocks(uint32_t type, void *blocks, size_t n_bytes);

/* Rows of x that ggml's quantisers encoded, more-quants 7.1: all of that section but IQ1_M, whose quantiser has changed
 * since. Their bytes lie one behind the other in tests/golden/quant_encoded.bin. */
enum vec_importance { VEC_PLAIN, VEC_GIVEN, VEC_ONES };
struct vec_encoded {
    uint32_t type;
    enum vec_importance importance; /* none, that of the vectors for every row, all 1 */
    uint64_t bytes, floats;         /* fnv of the blocks and of what they stand for */
    uint32_t dot[VEC_ROWS];         /* with y: bits in ggml's generic order */
};
extern const struct vec_encoded vec_encoded[];
extern const int vec_n_encoded;

/* Whether a kernel set is to be tested: all that the processor can run, but on one that stands for a set (TEST_ISA,
 * tests/run_aarch64.sh) this one beside the scalar set: each of the others has a processor of its own. */
bool vec_isa_tested(enum quant_isa isa);

#endif
