/* Logits that independent implementations computed once (tests/golden), and how far others are from them. */
#ifndef GOLDEN_LOGITS_H
#define GOLDEN_LOGITS_H
#include <stddef.h>

/* The n floats of tests/golden/NAME.bin; the running test fails if it has others. The caller frees them with
 * mem_free. */
float *golden_logits(const char *name, size_t n);
/* Largest |difference| over largest |logit| of a position, of the worst of n_pos positions of V logits: one large logit
 * elsewhere hides nothing. Infinite where one is no number. */
double golden_distance(const double *got, const float *want, int n_pos, int V);

#endif
