/* Functions of a float that the device computes itself, eight at a time: no libm in one path and vectors in another.
 * Only kernel files include this. */
#ifndef CPU_MATH_H
#define CPU_MATH_H
#include "device/cpu/cpu_vec.h"

#define MATH(op)    v8_##op
#define MATH_FLOATS v8f
#include "device/cpu/cpu_math.inc"

#endif
