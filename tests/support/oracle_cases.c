/* The table of shapes: each is the tiny model with a few numbers changed. */
#include "oracle_cases.h"
#include "quant/quant.h"
#include <string.h>

/* What differs from the base shape; 0 keeps the base value. */
struct variant {
    const char *name;
    int n_ids, L, ratios[9], hash, E, K, W, IK, D, H, d, r, G, Rq, Ro, F, ID, n, iters;
};

static const struct variant variants[] = {
    {"plain", 40, 2, {0, 0}, -1, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"mixed", 150, 4, {0, 4, 128, 4}, 1, 8, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"fours", 100, 3, {4, 4, 4}, -1, 8, 3, 16, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"pro_like", 270, 4, {128, 128, 4, 128}, 2, 16, 6, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"flash_like", 140, 7, {0, 0, 4, 128, 4, 128, 4}, 3, 16, 6, 12, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"deep", 140, 9, {0, 4, 128, 4, 128, 4, 0, 128, 4}, 2, 6, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"many_experts", 60, 3, {0, 4, 4}, 1, 32, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"one_expert", 90, 3, {4, 0, 4}, -1, 5, 1, 5, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"all_hashed", 50, 3, {0, 4, 0}, 3, 8, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"only_128", 300, 2, {128, 128}, -1, 4, 2, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"wide_head", 110, 3, {4, 128, 4}, 1, 8, 2, 20, 10, 96, 6, 160, 32, 3, 40, 24, 48, 64, 0, 0},
    {"two_streams", 80, 4, {0, 4, 4, 128}, 1, 8, 2, 0, 5, 0, 2, 72, 8, 1, 0, 0, 0, 0, 2, 5},
    {"one_stream", 70, 3, {4, 0, 4}, -1, 7, 5, 1, 1, 0, 0, 0, 0, 4, 0, 0, 0, 0, 1, 1},
    {"small_window", 160, 5, {4, 128, 4, 0, 4}, -1, 12, 4, 2, 16, 0, 0, 144, 0, 0, 0, 0, 0, 128, 3, 0},
};

int oracle_case_count(void)
{
    return (int)(sizeof variants / sizeof variants[0]);
}

static void set(int *to, int value)
{
    if (value) *to = value;
}

struct oracle_case oracle_case_at(int i)
{
    const struct variant *v = &variants[i];
    struct oracle_case c = {.name = v->name, .shape = synth_tiny(), .n_ids = v->n_ids};
    struct synth_shape *s = &c.shape;
    s->V = 64;
    s->L = v->L;
    for (int l = 0; l < v->L; l++) s->ratios[l] = v->ratios[l];
    s->hash = v->hash < 0 ? 0 : v->hash;
    set(&s->E, v->E), set(&s->K, v->K), set(&s->W, v->W), set(&s->IK, v->IK), set(&s->D, v->D), set(&s->H, v->H),
        set(&s->d, v->d);
    set(&s->r, v->r), set(&s->G, v->G), set(&s->Rq, v->Rq), set(&s->Ro, v->Ro), set(&s->F, v->F), set(&s->ID, v->ID),
        set(&s->n, v->n);
    set(&s->iters, v->iters);
    s->embed = s->dense = s->gate = s->up = s->down = s->rest = QT_F16;
    s->seed = 1000 + (uint64_t)i;
    return c;
}

void oracle_case_ids(const struct oracle_case *c, int32_t *ids)
{
    uint64_t x = 0x9e3779b97f4a7c15u * (c->shape.seed + 1);
    for (int i = 0; i < c->n_ids; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((x >> 33) % (uint64_t)c->shape.V);
    }
}
