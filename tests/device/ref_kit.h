/* A kit on the judge, for tests against written-down values. */
#ifndef REF_KIT_H
#define REF_KIT_H
#include <math.h>
#include "device_kit.h"

/* Within limit of what is wanted. */
static inline void close_to(const double *got, const double *want, int n, double limit)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= limit)) fail_msg("value %d: got %.12g, wanted %.12g", i, got[i], want[i]);
}

static inline void ref_open(struct kit *k)
{
    struct dev *d;
    assert_int_equal(dev_ref_create(&d, NULL), 0);
    kit_open(k, d, 1);
}

static inline void ref_close(struct kit *k)
{
    struct dev *d = k->dev;
    kit_check(k);
    kit_close(k);
    d->op->free(d);
}

static inline struct dev_buf *doubles(struct kit *k, int rows, int groups, int width, const double *values)
{
    struct dev_buf *b = kit_floats(k, rows, groups, width);
    k->op->write_f64(k->stream, b, 0, rows, values);
    return b;
}

#endif
