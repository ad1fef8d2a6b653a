/* The merge step of byte-level BPE, on ids alone: of all neighbours that a rule joins, the pair of the lowest rank is
 * joined first, the leftmost on ties, until no rule fits. */
#ifndef TEXT_BPE_MERGE_H
#define TEXT_BPE_MERGE_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* Rules by their pair of ids. */
struct merge_table;

struct merge_table *merge_table_new(size_t n_rules); /* room for n_rules; NULL: out of memory */
void merge_table_free(struct merge_table *t);
/* Adds left + right -> joined. A pair that has a rule already keeps it. At most n_rules calls; ids are not negative. */
void merge_table_put(struct merge_table *t, int32_t left, int32_t right, uint32_t rank, int32_t joined);

/* Memory for long pieces, kept from piece to piece; zero = empty. */
struct merge_work {
    struct merge_link *link;
    struct merge_entry *heap;
    size_t n_link, n_heap; /* entries there is room for */
};
void merge_work_free(struct merge_work *w);

/* Merges ids[0..*n) in place and sets *n to what is left. O(n log n). 0, ERR_MEMORY, or ERR_LIMIT from 2^30 ids on. */
int merge_run(const struct merge_table *t, struct merge_work *w, int32_t *ids, size_t *n, struct err *e);

#endif
