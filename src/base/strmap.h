/* Hash map from byte strings to a number (an index into the caller's array). Keys are not copied: they must outlive
 * the map. Memory is tried, not assumed: the number of keys may come from a file. */
#ifndef BASE_STRMAP_H
#define BASE_STRMAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strmap;

struct strmap *strmap_new(size_t n_expected); /* NULL: out of memory */
void strmap_free(struct strmap *m);
/* 1 inserted, 0 the key is there already (unchanged), negative: ERR_MEMORY. */
int strmap_put(struct strmap *m, const char *key, size_t n, uint64_t value);
bool strmap_get(const struct strmap *m, const char *key, size_t n, uint64_t *value);
size_t strmap_count(const struct strmap *m);

#endif
