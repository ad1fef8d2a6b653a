/* Scalar dot products: the reference for the order of every sum (docs/numerics.md). One value at a time; the other
 * kernel sets must give the same bits. w: a row of k values, x: an activation row of the type's format. */
#ifndef QUANT_QUANT_DOTS_SCALAR_H
#define QUANT_QUANT_DOTS_SCALAR_H
#include "quant/quant.h"

typedef float quant_dot_fn(int k, const uint8_t *w, const void *x);
quant_dot_fn quant_dot_q8_0, quant_dot_q4_0, quant_dot_q4_1, quant_dot_q5_0, quant_dot_q5_1, quant_dot_iq4_nl,
    quant_dot_mxfp4, quant_dot_nvfp4, quant_dot_q1_0, quant_dot_q2_0, quant_dot_q2_0_128;
quant_dot_fn quant_dot_q2_k, quant_dot_q3_k, quant_dot_q4_k, quant_dot_q5_k, quant_dot_q6_k, quant_dot_iq4_xs,
    quant_dot_tq1_0, quant_dot_tq2_0, quant_dot_iq2_xxs, quant_dot_iq2_xs, quant_dot_iq2_s, quant_dot_iq3_xxs,
    quant_dot_iq3_s, quant_dot_iq1_s, quant_dot_iq1_m;

#endif
