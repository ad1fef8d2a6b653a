/* What the writers of random models for other engines share. Without arguments such a program prints the number of its
 * shapes; WRITER I FOLDER writes the files of shape I and prints a line for every file and prompt: name of the file,
 * kind, size of the vocabulary, which positions can be compared, ids. */
#ifndef RANDOM_MODELS_H
#define RANDOM_MODELS_H
#include <stdint.h>
#include <stdio.h>

enum { N_PROMPTS = 3, MAX_PROMPT = 160 };

struct rng {
    uint64_t x;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->x += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline int pick_of(struct rng *r, int n, const int *of)
{
    return of[rng_next(r) % (uint64_t)n];
}
#define pick(r, ...) pick_of(r, sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__})

/* A file as the comparison sees it. */
struct peer_file {
    const char *name, *kind;
    int V;
    uint64_t seed;
    int all,
        block;     /* compared: the first `all` positions; behind them those that end all but one of a block's tokens */
    int separator; /* the id that one of 16 tokens is; -1: none */
};

static inline void print_prompts(const struct peer_file *f)
{
    static const int length[N_PROMPTS] = {12, 60, MAX_PROMPT};
    for (int p = 0; p < N_PROMPTS; p++) {
        struct rng r = {f->seed * N_PROMPTS + (uint64_t)p};
        printf("%s %s %d %d/%d ", f->name, f->kind, f->V, f->all, f->block);
        for (int i = 0; i < length[p]; i++) {
            const uint64_t x = rng_next(&r);
            const int id = f->separator >= 0 && (x >> 32) % 16 == 0 ? f->separator : (int)(x % (uint64_t)f->V);
            printf("%s%d", i ? "," : "", id);
        }
        printf("\n");
    }
}

#endif
