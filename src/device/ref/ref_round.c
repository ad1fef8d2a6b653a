/* Rounding to stored formats, as values: spec deepseek-v4 3.0. Nothing is encoded; a rounded double is the row. */
#include "device/ref/ref_internal.h"
#include <math.h>

/* Nearest multiple of the spacing that a format with so many fraction bits has at |x|, ties to even; below the
 * smallest normal exponent the spacing stays. */
static double round_to_bits(double x, int fraction_bits, int min_exponent)
{
    if (x == 0 || !isfinite(x)) return x;
    const int e = ilogb(x) > min_exponent ? ilogb(x) : min_exponent;
    const double spacing = ldexp(1.0, e - fraction_bits);
    return nearbyint(x / spacing) * spacing;
}

static double clamp(double x, double limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

double ref_e4m3(double x)
{
    return round_to_bits(clamp(x, 448), 3, -6);
}

double ref_e2m1(double x)
{
    return round_to_bits(clamp(x, 6), 1, 0);
}

double ref_f16(double x)
{
    const double r = round_to_bits(x, 10, -14);
    return fabs(r) > 65504 ? copysign(INFINITY, x) : r;
}

/* 2^ceil(log2(x)) for x > 0. */
static double power_of_two_above(double x)
{
    int e;
    const double fraction = frexp(x, &e); /* in [0.5, 1) */
    return ldexp(1.0, fraction == 0.5 ? e - 1 : e);
}

/* One block: a power-of-two scale from the largest magnitude (at least floor), then every value to its nearest code.
 * An infinity spoils its block. */
static void round_block(double *x, int n, double floor, double max_code, double (*code)(double))
{
    double a = floor;
    for (int i = 0; i < n; i++) a = fabs(x[i]) > a ? fabs(x[i]) : a;
    const double scale = isfinite(a) ? power_of_two_above(a / max_code) : a;
    for (int i = 0; i < n; i++) x[i] = code(x[i] / scale) * scale;
}

void ref_round_row(const struct row_format *fmt, double *x)
{
    if (fmt->kind == ROWFMT_FP8) {
        for (int i = 0; i < fmt->n_fp8; i += fmt->block) round_block(x + i, fmt->block, 1e-4, 448, ref_e4m3);
        for (int i = fmt->n_fp8; i < fmt->width; i++) x[i] = ref_f16(x[i]);
    } else if (fmt->kind == ROWFMT_F16) {
        for (int i = 0; i < fmt->width; i++) x[i] = ref_f16(x[i]);
    } else if (fmt->kind == ROWFMT_FP4) {
        for (int i = 0; i < fmt->width; i += fmt->block) round_block(x + i, fmt->block, 6 * 0x1p-126, 6, ref_e2m1);
    }
}

void ref_round(struct dev_stream *s, const struct round_args *a)
{
    if (!ref_begin(s)) return;
    for (int i = 0; i < a->n; i++)
        for (int g = 0; g < a->groups; g++) ref_round_row(&a->fmt, ref_row(a->x, i) + (size_t)g * a->fmt.width);
}

void ref_pack(struct dev_stream *s, const struct pack_args *a)
{
    if (!ref_begin(s)) return;
    const struct row_format *fmt = &a->out->desc.fmt;
    for (int i = 0; i < a->n; i++) {
        const double *x = ref_row(a->x, i);
        double *out = ref_row(a->out, i);
        for (int k = 0; k < fmt->width; k++) out[k] = x[k];
        ref_round_row(fmt, out);
    }
}
