#include "engine/pace.h"
#include <stdbool.h>

static const double WAIT_S = 0.030, WAIT_STEPS = 2, COSTLIER = 1.2;

void pace_init(struct pace *p, int chunk, int least)
{
    *p = (struct pace){.chunk = chunk, .least = least};
}

void pace_decode(struct pace *p, double seconds)
{
    p->decode_s += p->decode_s > 0 ? (seconds - p->decode_s) / 8 : seconds;
}

void pace_layer(struct pace *p, int rows, int layer, double seconds)
{
    for (int i = 0; i < PACES; i++)
        if (rows == p->chunk >> i && (layer == 0 || seconds > p->layer_s[i])) p->layer_s[i] = seconds;
}

static bool worth_halving(const struct pace *p, int i)
{
    const double half = p->layer_s[i + 1];
    return half == 0 || 2 * half <= COSTLIER * p->layer_s[i];
}

int pace_rows(const struct pace *p)
{
    const double limit = WAIT_STEPS * p->decode_s + WAIT_S;
    int i = 0;
    while (i + 1 < PACES && p->chunk >> (i + 1) >= p->least && p->layer_s[i] > limit && worth_halving(p, i)) i++;
    return p->chunk >> i;
}
