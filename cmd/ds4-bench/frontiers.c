#include "frontiers.h"
#include <math.h>

int frontiers_next(const struct frontiers *f, int at)
{
    if (at == 0) return f->start;
    if (at >= f->max) return 0;
    const double next = f->mul > 1 ? fmax(at + 1.0, ceil((double)at * (double)f->mul)) : (double)at + f->increment;
    return next < f->max ? (int)next : f->max;
}
