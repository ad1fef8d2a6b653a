/* Growing lists of ids; the longest token; the greedy choice. */
#include "token_list.h"
#include "base/mem.h"

void token_list_add(struct ds4_tokens *t, int32_t id)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 256;
        t->p = mem_grow(t->p, t->cap * sizeof *t->p);
    }
    t->p[t->n++] = id;
}

size_t token_longest(const ds4_engine *g)
{
    struct ds4_model_info info;
    const char *bytes;
    size_t longest = 1;
    ds4_engine_info(g, &info);
    for (int32_t id = 0; id < info.n_vocab; id++) {
        const size_t n = ds4_token_bytes(g, id, &bytes);
        if (n > longest) longest = n;
    }
    return longest;
}

int32_t token_greedy(const float *logits, int n_vocab)
{
    const struct ds4_sampling p = {.temperature = 0, .top_p = 1};
    return ds4_sample(logits, n_vocab, &p, 0);
}
