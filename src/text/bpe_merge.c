/* The table of merge rules, and two ways to apply them: by looking at all pairs (short pieces) and with a heap. */
#include "text/bpe_merge.h"
#include <stdbool.h>
#include <string.h>
#include "base/mem.h"

#define NO_RANK UINT32_MAX

/* What a pair becomes; rank NO_RANK: no rule, the pair stays. */
struct merge_rule {
    uint32_t rank;
    int32_t joined;
};

/* Open addressing with linear probing, at most half full. A slot is free while its rank is NO_RANK. */
struct merge_slot {
    uint64_t pair;
    struct merge_rule rule;
};

struct merge_table {
    struct merge_slot *slot;
    unsigned shift; /* 64 - log2 of the number of slots */
    size_t mask;
};

static const struct merge_rule no_rule = {.rank = NO_RANK, .joined = -1};

/* ------------------------------------------------------------------------------------------------ table */

struct merge_table *merge_table_new(size_t n_rules)
{
    size_t n = 16;
    unsigned log2 = 4;
    while (n / 2 < n_rules) {
        if (n > SIZE_MAX / 2 / sizeof(struct merge_slot)) return NULL;
        n *= 2;
        log2++;
    }
    struct merge_table *t = mem_alloc(sizeof *t);
    t->slot = mem_try(n * sizeof *t->slot);
    if (!t->slot) {
        mem_free(t);
        return NULL;
    }
    t->mask = n - 1;
    t->shift = 64 - log2;
    for (size_t i = 0; i < n; i++) t->slot[i].rule = no_rule;
    return t;
}

void merge_table_free(struct merge_table *t)
{
    if (!t) return;
    mem_free(t->slot);
    mem_free(t);
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The slot of a pair, or the free slot where it belongs. Multiplicative hash: 2^64 / golden ratio, top bits. */
static struct merge_slot *slot_of(const struct merge_table *t, uint64_t pair)
{
    size_t i = (size_t)((pair * 0x9e3779b97f4a7c15u) >> t->shift);
    while (t->slot[i].rule.rank != NO_RANK && t->slot[i].pair != pair) i = (i + 1) & t->mask;
    return &t->slot[i];
}

void merge_table_put(struct merge_table *t, int32_t left, int32_t right, uint32_t rank, int32_t joined)
{
    struct merge_slot *s = slot_of(t, pair_of(left, right));
    if (s->rule.rank != NO_RANK) return;
    s->pair = pair_of(left, right);
    s->rule = (struct merge_rule){.rank = rank, .joined = joined};
}

static struct merge_rule rule_of(const struct merge_table *t, int32_t left, int32_t right)
{
    return slot_of(t, pair_of(left, right))->rule;
}

/* ------------------------------------------------------------------------------------------------ short pieces */

/* Nearly all pieces are words: looking through all their pairs for each merge is quicker than any order kept. */
enum { SHORT_PIECE = 32 };

static size_t merge_short(const struct merge_table *t, int32_t *ids, size_t n)
{
    struct merge_rule rule[SHORT_PIECE]; /* rule[i] is that of ids[i], ids[i + 1] */
    for (size_t i = 0; i + 1 < n; i++) rule[i] = rule_of(t, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rule[i].rank < rule[best].rank) best = i;
        if (rule[best].rank == NO_RANK) break;
        ids[best] = rule[best].joined;
        const size_t behind = n - best - 2; /* symbols behind the joined pair */
        memmove(&ids[best + 1], &ids[best + 2], behind * sizeof *ids);
        if (behind > 0) memmove(&rule[best + 1], &rule[best + 2], (behind - 1) * sizeof *rule);
        n--;
        if (best > 0) rule[best - 1] = rule_of(t, ids[best - 1], ids[best]);
        if (behind > 0) rule[best] = rule_of(t, ids[best], ids[best + 1]);
    }
    return n;
}

/* ------------------------------------------------------------------------------------------------ long pieces */

/* Symbols as a linked list over their first positions; rule is that of the symbol and its right neighbour. */
struct merge_link {
    uint32_t left, right; /* NOBODY at the ends */
    int32_t id;           /* -1: joined to its left neighbour */
    struct merge_rule rule;
};
#define NOBODY UINT32_MAX

/* Candidates in a binary heap, lowest (rank, position) on top. An entry is stale once the symbol's rule has changed: a
 * rank belongs to one pair, and a pair that was joined cannot come back at the same position. */
struct merge_entry {
    uint32_t rank, at;
};

struct heap {
    struct merge_entry *entry;
    size_t n;
};

static bool entry_before(struct merge_entry a, struct merge_entry b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void heap_sink(struct heap *h, size_t i)
{
    const struct merge_entry moved = h->entry[i];
    for (size_t child = 2 * i + 1; child < h->n; child = 2 * i + 1) {
        if (child + 1 < h->n && entry_before(h->entry[child + 1], h->entry[child])) child++;
        if (!entry_before(h->entry[child], moved)) break;
        h->entry[i] = h->entry[child];
        i = child;
    }
    h->entry[i] = moved;
}

static void heap_push(struct heap *h, struct merge_entry added)
{
    size_t i = h->n++;
    for (; i > 0 && entry_before(added, h->entry[(i - 1) / 2]); i = (i - 1) / 2) h->entry[i] = h->entry[(i - 1) / 2];
    h->entry[i] = added;
}

static struct merge_entry heap_pop(struct heap *h)
{
    const struct merge_entry top = h->entry[0];
    h->entry[0] = h->entry[--h->n];
    if (h->n > 1) heap_sink(h, 0);
    return top;
}

/* Room for n elements of what *p points to; the old content is not kept. */
static int work_room(void **p, size_t *room, size_t n, size_t element_bytes, struct err *e)
{
    if (*room >= n) return 0;
    mem_free(*p);
    *room = 0;
    *p = mem_try(n * element_bytes);
    if (!*p) return err_set(e, ERR_MEMORY, "tokenizer: no memory for a word of %zu bytes", n);
    *room = n;
    return 0;
}

/* Looks up the rule of the symbol at `at` and its right neighbour and enters it into the heap. */
static void pair_enter(const struct merge_table *t, struct merge_link *link, uint32_t at, struct heap *h)
{
    const uint32_t right = link[at].right;
    link[at].rule = right == NOBODY ? no_rule : rule_of(t, link[at].id, link[right].id);
    if (link[at].rule.rank != NO_RANK) heap_push(h, (struct merge_entry){.rank = link[at].rule.rank, .at = at});
}

static void pair_join(const struct merge_table *t, struct merge_link *link, uint32_t at, struct heap *h)
{
    struct merge_link *const l = &link[at];
    struct merge_link *const gone = &link[l->right];
    l->id = l->rule.joined;
    l->right = gone->right;
    if (gone->right != NOBODY) link[gone->right].left = at;
    gone->id = -1;
    gone->rule = no_rule;
    pair_enter(t, link, at, h);
    if (l->left != NOBODY) pair_enter(t, link, l->left, h);
}

static int merge_long(const struct merge_table *t, struct merge_work *w, int32_t *ids, size_t *n, struct err *e)
{
    if (*n >= (size_t)1 << 30) return err_set(e, ERR_LIMIT, "tokenizer: a word of %zu bytes is too long", *n);
    /* Each of the at most n - 1 joins takes one entry from the heap and adds at most two. */
    int rc = work_room((void **)&w->link, &w->n_link, *n, sizeof *w->link, e);
    if (rc == 0) rc = work_room((void **)&w->heap, &w->n_heap, 2 * *n, sizeof *w->heap, e);
    if (rc != 0) return rc;

    struct merge_link *const link = w->link;
    const uint32_t last = (uint32_t)(*n - 1);
    for (uint32_t i = 0; i <= last; i++) /* i - 1 wraps to NOBODY */
        link[i] = (struct merge_link){.left = i - 1, .right = i < last ? i + 1 : NOBODY, .id = ids[i]};
    struct heap heap = {.entry = w->heap};
    for (uint32_t i = 0; i <= last; i++) pair_enter(t, link, i, &heap);
    while (heap.n > 0) {
        const struct merge_entry top = heap_pop(&heap);
        if (link[top.at].rule.rank == top.rank) pair_join(t, link, top.at, &heap);
    }
    *n = 0;
    for (uint32_t i = 0; i != NOBODY; i = link[i].right) ids[(*n)++] = link[i].id;
    return 0;
}

void merge_work_free(struct merge_work *w)
{
    mem_free(w->link);
    mem_free(w->heap);
    *w = (struct merge_work){0};
}

int merge_run(const struct merge_table *t, struct merge_work *w, int32_t *ids, size_t *n, struct err *e)
{
    if (*n > SHORT_PIECE) return merge_long(t, w, ids, n, e);
    *n = merge_short(t, ids, *n);
    return 0;
}
