/* Logits that independent implementations computed once. */
#include "golden_logits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include "base/file.h"

float *golden_logits(const char *name, size_t n)
{
    char path[256];
    char *data;
    size_t bytes;
    struct err e = {0};
    snprintf(path, sizeof path, "tests/golden/%s.bin", name);
    if (file_read(path, 1 << 24, &data, &bytes, &e)) fail_msg("%s", e.msg);
    assert_int_equal(bytes, n * sizeof(float));
    return (float *)(void *)data;
}

/* fmax passes over what is no number. */
static double larger(double a, double b)
{
    return isnan(b) ? INFINITY : fmax(a, b);
}

double golden_distance(const double *got, const float *want, int n_pos, int V)
{
    double most = 0;
    for (int t = 0; t < n_pos; t++) {
        double diff = 0, top = 0;
        for (size_t i = (size_t)t * (size_t)V; i < (size_t)(t + 1) * (size_t)V; i++) {
            diff = larger(diff, fabs(got[i] - (double)want[i]));
            top = fmax(top, fabs((double)want[i]));
        }
        most = larger(most, diff / top);
    }
    return most;
}
