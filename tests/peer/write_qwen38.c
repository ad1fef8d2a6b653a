/* Random Qwen3.8 models whose shapes come from seeds, in several kinds of files (random_models.h says what it prints).
 */
#include <stdlib.h>
#include "../support/synth_qwen38.h"
#include "quant/quant.h"
#include "random_models.h"

enum { N_SHAPES = 9 };

/* Selection, spec qwen38 3.6: where it takes place the other engine sees the missing tokens of the last block's q - 1
 * from the next best block, so that only positions without such are comparable, and these only where no layer in front
 * has selected. Hence three kinds of shapes: nothing is selected; blocks of one token; the last layer is the only one
 * with attention. With few index heads many blocks score exactly 0, and the order of such ties is open: eight or more.
 */
static void selection(struct rng *r, int kind, struct synth_qwen38 *s)
{
    s->I = pick(r, 2, 3, 4), s->L = s->I * (kind == 2 ? 1 : pick(r, 1, 2));
    s->lp = s->L - s->I + (int)(rng_next(r) % (uint64_t)(s->I - 1));
    s->q = kind == 1 ? 1 : pick(r, 2, 4, 8);
    s->B = kind == 0 ? 2 * MAX_PROMPT : s->q * pick(r, 3, 5, 6);
    s->Hi = pick(r, 8, 12), s->Di = pick(r, 32, 64);
}

/* Without a draft block, which the other engine cannot read. */
static struct synth_qwen38 shape_at(int i)
{
    struct rng r = {3000 + (uint64_t)i};
    struct synth_qwen38 s = synth_qwen38_tiny();
    s.seed = 300 + (uint64_t)i;
    selection(&r, i % 3, &s);
    s.V = pick(&r, 288, 320), s.E = pick(&r, 96, 192);
    s.Hkv = pick(&r, 1, 2, 4), s.H = s.Hkv * pick(&r, 1, 2, 3);
    s.D = pick(&r, 32, 64, 96), s.Rn = pick(&r, 8, 12, 16, 32);
    s.NE = pick(&r, 6, 8, 16, 32), s.K = pick(&r, 1, 2, 4), s.F = pick(&r, 32, 64, 96), s.Fs = pick(&r, 32, 64);
    s.Hk = pick(&r, 1, 2, 4), s.Hv = s.Hk * pick(&r, 1, 2, 3), s.Dl = pick(&r, 32, 64), s.Kc = pick(&r, 3, 4);
    s.hc = pick(&r, 2, 3, 4), s.rho = pick(&r, 32, 64);
    s.G = pick(&r, 2, 3, 4), s.P = pick(&r, 2, 4, 8), s.Kp = pick(&r, 2, 3, 4);
    s.base = pick(&r, 0, 1) ? 1e7f : 1e4f, s.yarn = (float)pick(&r, 0, 0, 4);
    s.tied = pick(&r, 0, 0, 1), s.big = pick(&r, 0, 1);
    return s;
}

/* Not in quantised files: the activations of both engines are rounded there, and the recurrent layers carry every
 * rounding that falls the other way to all later positions. */
static const struct kind {
    const char *name;
    uint32_t matrices, experts, table;
} kinds[] = {
    {"qwen-f32", QT_F32, QT_F32, QT_BF16},
    {"qwen-f16", QT_F16, QT_F16, QT_F16},
};

int main(int argc, char **argv)
{
    if (argc == 1) return printf("%d\n", N_SHAPES), 0;
    if (argc != 3) return fprintf(stderr, "usage: write_qwen38 [SHAPE FOLDER]\n"), 2;
    const int i = atoi(argv[1]);
    struct synth_qwen38 s = shape_at(i);
    const int seen = (s.B / s.q + 1) * s.q - 1; /* before anything is left out */
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct err e = {0};
        char name[32], path[4096];
        s.type = kinds[k].matrices, s.experts = kinds[k].experts, s.table = kinds[k].table;
        snprintf(name, sizeof name, "n%02d-%s", i, kinds[k].name + 5);
        snprintf(path, sizeof path, "%s/%s.gguf", argv[2], name);
        if (synth_qwen38_write(path, &s, &e)) return fprintf(stderr, "%s: %s\n", name, e.msg), 1;
        print_prompts(&(struct peer_file){name, kinds[k].name, s.V, s.seed, seen, s.q, s.eos});
    }
    return 0;
}
