#include "engine/pace.h"
#include <stdbool.h>

static const double WAIT_S = 0.020, WAIT_STEPS = 2, COSTLIER = 1.2, DEARER = 1.5, FORGET = 0.93, RISE = 1.25;

void pace_init(struct pace *p, int chunk, int least)
{
    *p = (struct pace){.chunk = chunk, .least = least};
}

/* Other work on the machine makes steps longer, never shorter: a short one is believed at once, a long one by and by.
 */
static void learn(double *usual, double seconds)
{
    *usual = *usual == 0 || seconds < *usual * RISE ? seconds : *usual * RISE;
}

void pace_decode(struct pace *p, double seconds)
{
    learn(&p->decode_s, seconds);
}

void pace_layer(struct pace *p, int rows, int layer, int n_layers, double seconds)
{
    p->sum = layer ? p->sum + seconds : seconds;
    for (int i = 0; i < PACES && layer == n_layers - 1; i++)
        if (rows == p->chunk >> i) learn(&p->layer_s[i], p->sum / n_layers);
}

/* Of size i; if it was not tried, a hopeful guess from the next smaller one that was. 0: there is none. */
static double expected(const struct pace *p, int i)
{
    double guess = 1;
    int j = i;
    for (; j + 1 < PACES && p->layer_s[j] == 0; j++) guess *= DEARER;
    return p->layer_s[j] * guess;
}

/* Half as many rows cannot take longer than all. */
static bool worth_halving(struct pace *p, int i)
{
    const double all = expected(p, i);
    if (p->layer_s[i + 1] > all) p->layer_s[i + 1] = all;
    return 2 * p->layer_s[i + 1] <= COSTLIER * all;
}

int pace_rows(struct pace *p)
{
    const double limit = WAIT_STEPS * p->decode_s + WAIT_S;
    int i = 0;
    /* nothing is known: the smallest size */
    while (expected(p, 0) == 0 && i + 1 < PACES && p->chunk >> (i + 1) >= p->least) i++;
    while (i + 1 < PACES && p->chunk >> (i + 1) >= p->least && expected(p, i) > limit) {
        if (!worth_halving(p, i)) {
            p->layer_s[i + 1] *= FORGET;
            break;
        }
        i++;
    }
    return p->chunk >> i;
}
