#include "looks.h"
#include "base/clock.h"

static const double between_s = 0.25;

static void add(struct looks *l, int kind, double per_s)
{
    l->per[kind] += 1 / per_s;
    if (kind) return;
    if (!l->n || per_s < l->slowest) l->slowest = per_s;
    if (!l->n || per_s > l->fastest) l->fastest = per_s;
}

int looks_take(struct looks *l, bool now, struct err *e)
{
    const double start = clock_s();
    if (!now && start - l->last < between_s) return 0;
    double v;
    int rc = 0;
    for (int k = 0; k < (l->memory ? 1 : PEAK_KINDS) && !rc; k++) {
        if (!l->memory && !peak_loop(l->m->isa, (enum peak_kind)k)) continue;
        rc = l->memory ? machine_look_memory(l->m, &v, e) : machine_look_peak(l->m, (enum peak_kind)k, &v, e);
        if (!rc) add(l, k, v);
    }
    if (!rc) l->n++;
    l->last = clock_s();
    l->spent += l->last - start;
    return rc;
}

double looks_cost(const struct looks *l, int kind)
{
    return l->per[kind] / l->n;
}
