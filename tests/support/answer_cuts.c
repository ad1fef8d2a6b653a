#include "answer_cuts.h"
#include <stdint.h>
#include "base/mem.h"

const struct answer_cut_counts answer_cuts_full = {SIZE_MAX, 4096, true, 2000, 200};

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Sorted cuts at about k places. */
static size_t random_cuts(size_t *ends, size_t n, size_t k, uint64_t *seed)
{
    size_t count = 0;
    for (size_t at = 1; at < n; at++)
        if (next_random(seed) % n < k) ends[count++] = at;
    ends[count++] = n;
    return count;
}

static bool in_markup(const char *text, size_t at)
{
    size_t from = at;
    while (from > 0 && at - from < 40 && text[from] != '<' && text[from] != '>') from--;
    return text[from] == '<' || (text[at] & 0x80) != 0;
}

void answer_cuts(const char *text, size_t n, const struct answer_cut_counts *counts, answer_cut *cut, void *arg)
{
    uint64_t seed = 7;
    size_t *const ends = mem_alloc((n + 1) * sizeof *ends);
    cut(arg, &n, 1);
    for (size_t i = 0; i < n; i++) ends[i] = i + 1;
    if (n > 1 && n <= counts->bytes) cut(arg, ends, n);
    for (size_t at = 1; at < n; at++) {
        const bool wanted = n <= counts->all_splits || (counts->markup && in_markup(text, at));
        if (wanted || next_random(&seed) % n < counts->some_splits) cut(arg, (size_t[]){at, n}, 2);
    }
    for (int i = 0; n > 2 && i < counts->multi_splits; i++) {
        const size_t count = random_cuts(ends, n, 1 + next_random(&seed) % 40, &seed);
        cut(arg, ends, count);
    }
    mem_free(ends);
}
