#include "serve/repetition.h"
#include <stdbool.h>

int repetition_add(struct repetition *r, int32_t token)
{
    int period = 0;
    for (int p = REPETITION_PERIODS; p >= 1; p--) {
        const bool same = r->n >= (uint64_t)p && r->last[(r->n - (uint64_t)p) % REPETITION_PERIODS] == token;
        r->run[p - 1] = same ? r->run[p - 1] + 1 : 0;
        if (r->run[p - 1] > REPETITION_TOKENS) period = p;
    }
    r->last[r->n++ % REPETITION_PERIODS] = token;
    return period;
}
