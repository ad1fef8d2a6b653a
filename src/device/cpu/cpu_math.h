/* Functions of a float that the device computes itself, eight at a time: no libm in one path and vectors in another.
 * Only kernel files include this. */
#ifndef CPU_MATH_H
#define CPU_MATH_H
#include "device/cpu/cpu_vec.h"

/* e^x, relative error below 2e-7; 0 below ln(2^-126), +inf above ln of the largest float, NaN stays.
 * x = n ln2 + r, |r| <= ln2/2; Taylor polynomial of degree 7 (its remainder is 5e-9); 2^n in two factors, since n = 128
 * has none. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
V8_INLINE v8f v8_exp(v8f x)
{
    const float lowest = -0x1.5d589ep6f, highest = 0x1.62e42ep6f, magic = 0x1.8p23f;
    const v8f c = v8_min(v8_max(x, v8_set(lowest)), v8_set(highest));
    const v8f t = v8_fma(c, v8_set(0x1.715476p0f), v8_set(magic));
    const v8f n = t - v8_set(magic);
    const v8f r = v8_fma(n, v8_set(-0x1.7f7d1cp-20f), v8_fma(n, v8_set(-0x1.62e4p-1f), c));
    v8f p = v8_set(1.0f / 5040);
    p = v8_fma(p, r, v8_set(1.0f / 720));
    p = v8_fma(p, r, v8_set(1.0f / 120));
    p = v8_fma(p, r, v8_set(1.0f / 24));
    p = v8_fma(p, r, v8_set(1.0f / 6));
    p = v8_fma(p, r, v8_set(0.5f));
    p = v8_fma(p, r, v8_set(1));
    p = v8_fma(p, r, v8_set(1));
    const v8i k = (v8i)t - (v8i)v8_set(magic), k1 = k >> 1, k2 = k - k1;
    v8f y = p * (v8f)((k1 + 127) << 23) * (v8f)((k2 + 127) << 23);
    y = v8_select(x < v8_set(lowest), v8_set(0), y);
    y = v8_select(x > v8_set(highest), v8_set(INFINITY), y);
    return v8_select(x != x, x, y);
}

/* 1/(1+e^-x), as e^x/(1+e^x) for x < 0. */
V8_INLINE v8f v8_sigmoid(v8f x)
{
    const v8f one = v8_set(1), t = v8_exp(-v8_abs(x));
    return v8_select(x < v8_set(0), t, one) / (one + t);
}

V8_INLINE v8f v8_silu(v8f x)
{
    return x * v8_sigmoid(x);
}

#endif
