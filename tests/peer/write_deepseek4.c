/* Random DeepSeek V4 models whose shapes come from seeds, in the form that other engines read, each with the tensor
 * types of several kinds of files (random_models.h says what it prints). */
#include <stdlib.h>
#include "../support/dialect_forms.h"
#include "../support/synth_model.h"
#include "quant/quant.h"
#include "random_models.h"

enum { N_SHAPES = 14 };

/* What the other engine asks of this family: four streams, layers of ratio 4 and 128, index keys wider than the part of
 * them that is rotated, and at least two index heads; with few heads the scores of many rows are exactly 0, and the
 * order of such ties is open, hence eight or more. Every other shape is wide enough for blocks of 256. */
static struct synth_shape shape_at(int i)
{
    struct rng r = {1000 + (uint64_t)i};
    struct synth_shape s = synth_tiny();
    s.seed = 100 + (uint64_t)i;
    s.V = pick(&r, 288, 300, 384);
    s.D = i % 2 ? pick(&r, 64, 96, 128, 192) : 256;
    s.F = i % 2 ? pick(&r, 64, 96, 128) : 256;
    s.L = i % 2 ? pick(&r, 2, 3, 4, 5, 6) : pick(&r, 2, 3, 4);
    s.G = pick(&r, 1, 2, 4);
    s.H = s.G * pick(&r, 1, 2, 3);
    s.d = pick(&r, 128, 128, 192, 256, 512), s.r = 64;
    s.Rq = pick(&r, 32, 64, 96), s.Ro = pick(&r, 32, 64);
    s.E = i % 2 ? pick(&r, 4, 8, 12, 16) : pick(&r, 4, 6), s.K = pick(&r, 1, 2, 3, 4);
    s.W = pick(&r, 4, 8, 16, 32, 64);
    s.IH = pick(&r, 8, 12, 16), s.ID = 128, s.IK = pick(&r, 4, 8, 16, 512);
    s.hash = pick(&r, 0, 1, 2);
    for (int l = 0; l < s.L; l++) s.ratios[l] = pick(&r, 0, 4, 4, 128);
    s.ratios[i % 3 == 0] = 4, s.ratios[i % 3 != 0] = 128;
    s.clamp = (float)pick(&r, 3, 6, 20) / 2;
    s.scale = (float)pick(&r, 2, 3, 5) / 2;
    return s;
}

enum width { ANY, WIDE_ONLY, NARROW_ONLY, MADE_WIDE };

/* The kinds of files: F32 for a sharp comparison, then what is published. Experts of 2 bits and of Q4_K need rows of
 * 256: for 2 bits the narrow shapes are made as wide, for 4 they have blocks of 32. */
static const struct kind {
    const char *name;
    uint32_t embed, dense, gate, up, down, rest;
    enum width width;
} kinds[] = {
    {"f32", QT_F32, QT_F32, QT_F32, QT_F32, QT_F32, QT_F32, ANY},
    {"f16", QT_F16, QT_F16, QT_F16, QT_F16, QT_F16, QT_F16, ANY},
    {"q8", QT_F16, QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_F32, ANY},
    {"q4", QT_F16, QT_Q8_0, QT_Q4_K, QT_Q4_K, QT_Q4_K, QT_F32, WIDE_ONLY},
    {"q4", QT_F16, QT_Q8_0, QT_MXFP4, QT_MXFP4, QT_Q4_0, QT_F32, NARROW_ONLY},
    {"q2", QT_F16, QT_Q8_0, QT_IQ2_XXS, QT_IQ2_XXS, QT_Q2_K, QT_F32, MADE_WIDE},
};

static bool kind_fits(const struct kind *k, const struct synth_shape *s)
{
    const bool wide = s->D % 256 == 0 && s->F % 256 == 0;
    return k->width == NARROW_ONLY ? !wide : k->width == WIDE_ONLY ? wide : true;
}

/* Engines that round activations to 8 bits agree only as well as those roundings do: a difference of the last bit
 * before one becomes a whole step behind it, and every layer multiplies. So quantised models are shallow, select
 * nothing by index (the other files do) and have logits of deviation 1. */
static void tame(struct synth_shape *s)
{
    if (s->L > 2) s->L = 2;
    s->IK = 512;
    s->logit_std = 1;
}

static int write_file(const char *folder, const char *name, struct synth_shape s, const struct kind *k)
{
    struct err e = {0};
    char own[4096], path[4096];
    if (k->dense == QT_Q8_0) tame(&s);
    if (k->width == MADE_WIDE) s.D = s.F = 256;
    s.embed = k->embed, s.dense = k->dense, s.gate = k->gate, s.up = k->up, s.down = k->down, s.rest = k->rest;
    snprintf(own, sizeof own, "%s/own.gguf", folder);
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    int rc = synth_deepseek4(own, &s, &e);
    if (!rc) rc = dialect_form_write(own, path, FORM_LC, WIDTHS_KEPT, &e);
    if (rc) fprintf(stderr, "%s: %s\n", name, e.msg);
    remove(own);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 1) return printf("%d\n", N_SHAPES), 0;
    if (argc != 3) return fprintf(stderr, "usage: write_deepseek4 [SHAPE FOLDER]\n"), 2;
    const int i = atoi(argv[1]);
    const struct synth_shape s = shape_at(i);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char name[32];
        if (!kind_fits(&kinds[k], &s)) continue;
        snprintf(name, sizeof name, "s%02d-%s", i, kinds[k].name);
        if (write_file(argv[2], name, s, &kinds[k])) return 1;
        /* Prompts within the window, past it, and past the first row of a layer that compresses 128 to 1. */
        print_prompts(&(struct peer_file){name, kinds[k].name, s.V, s.seed, MAX_PROMPT, 1, -1});
    }
    return 0;
}
