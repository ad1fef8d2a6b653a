#include "engine/pace.h"
#include <stdbool.h>

static const double WAIT_S = 0.020, WAIT_STEPS = 2, COSTLIER = 1.2, FORGET = 0.93, RISE = 1.25;

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

/* Half as many rows cannot take longer than all. */
static bool worth_halving(struct pace *p, int i)
{
    if (p->layer_s[i + 1] > p->layer_s[i]) p->layer_s[i + 1] = p->layer_s[i];
    return 2 * p->layer_s[i + 1] <= COSTLIER * p->layer_s[i];
}

int pace_rows(struct pace *p)
{
    const double limit = WAIT_STEPS * p->decode_s + WAIT_S;
    int i = 0;
    while (i + 1 < PACES && p->chunk >> (i + 1) >= p->least && p->layer_s[i] > limit) {
        if (!worth_halving(p, i)) {
            p->layer_s[i + 1] *= FORGET;
            break;
        }
        i++;
    }
    return p->chunk >> i;
}
