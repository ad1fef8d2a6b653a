/* Shares by rank, and what gives them. */
#include "synth_routing.h"
#include <math.h>
#include "base/mem.h"
#include "synth_blocks.h"

/* No expert is used by more of the tokens, as long as the others can be. */
static const double MOST = 0.98;

/* use[r] = min(most, c / (r + 1)), with the c that makes their sum n_used. Only operations that every machine rounds
 * alike. */
static void shares_by_rank(double *use, int64_t n_experts, int64_t n_used)
{
    const double even = (double)n_used / (double)n_experts, most = even > MOST ? even : MOST;
    int64_t n_most = 0;
    for (;;) {
        double weights = 0;
        for (int64_t r = n_most; r < n_experts; r++) weights += 1 / (double)(r + 1);
        const double c = ((double)n_used - (double)n_most * most) / weights;
        for (int64_t r = 0; r < n_experts; r++) use[r] = r < n_most ? most : c / (double)(r + 1);
        if (n_most + 1 >= n_experts || use[n_most] <= most) return;
        n_most++;
    }
}

static void shuffle(double *v, int64_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t k = (int64_t)(synth_next(&state) % (uint64_t)(i + 1));
        const double other = v[i];
        v[i] = v[k];
        v[k] = other;
    }
}

int synth_routing_init(struct synth_routing *r, enum synth_router kind, int64_t n_experts, int64_t n_used,
                       uint64_t seed, struct err *e)
{
    *r = (struct synth_routing){.kind = kind, .n_experts = n_experts, .n_used = n_used, .seed = seed};
    if (kind == SYNTH_UNIFORM) return 0;
    r->use = mem_try((size_t)n_experts * sizeof *r->use);
    if (!r->use)
        return err_set(e, ERR_MEMORY, "not enough memory for the shares of %lld experts", (long long)n_experts);
    shares_by_rank(r->use, n_experts, n_used);
    shuffle(r->use, n_experts, synth_seed(seed, UINT64_MAX));
    return 0;
}

void synth_routing_free(struct synth_routing *r)
{
    mem_free(r->use);
}

/* A random first one, and the others at equal distances behind it. */
static void even_ids(const struct synth_routing *r, uint64_t random, int32_t *ids)
{
    const int64_t first = (int64_t)(random % (uint64_t)r->n_experts);
    for (int64_t c = 0; c < r->n_used; c++) ids[c] = (int32_t)((first + c * r->n_experts / r->n_used) % r->n_experts);
}

/* The same on a line on which every expert is as long as its share, n_used in all: points at a distance of 1 from a
 * random first one below 1. */
static void zipf_ids(const struct synth_routing *r, uint64_t random, int32_t *ids)
{
    const double first = (double)(random >> 11) * 0x1p-53;
    double end = r->use[0];
    int64_t expert = 0;
    for (int64_t c = 0; c < r->n_used; c++) {
        /* Rounding leaves enough of them for the points behind. */
        while (end <= first + (double)c && expert < r->n_experts - (r->n_used - c)) end += r->use[++expert];
        ids[c] = (int32_t)expert;
        if (++expert < r->n_experts) end += r->use[expert];
    }
}

void synth_routing_ids(const struct synth_routing *r, int64_t token, int32_t *ids)
{
    uint64_t state = synth_seed(r->seed, (uint64_t)token);
    (r->kind == SYNTH_UNIFORM ? even_ids : zipf_ids)(r, synth_next(&state), ids);
}

/* The score that a share p of scores is above: a random router's logits are standard normal, scores the square root of
 * their softplus. */
static double score_above(double p)
{
    double low = -10, high = 10;
    for (int i = 0; i < 60; i++) {
        const double mid = (low + high) / 2;
        if (0.5 * erfc(mid / sqrt(2)) > p)
            low = mid;
        else
            high = mid;
    }
    return sqrt(log1p(exp(low)));
}

/* An expert is chosen if score + bias passes what the n_used highest of equal experts pass. In steps of 1/1024, which
 * no difference between mathematical libraries reaches. */
void synth_routing_biases(const struct synth_routing *r, float *bias)
{
    const double passed = score_above(fmin(MOST, (double)r->n_used / (double)r->n_experts));
    for (int64_t i = 0; i < r->n_experts; i++)
        bias[i] = (float)(floor((passed - score_above(fmin(MOST, r->use[i]))) * 1024 + 0.5) / 1024);
}
