/* Ids of the short pieces that a text has again and again: a word is merged once. */
#ifndef TEXT_BPE_CACHE_H
#define TEXT_BPE_CACHE_H
#include <stddef.h>
#include <stdint.h>

enum { PIECE_CACHE_BYTES = 16, PIECE_CACHE_IDS = 4 }; /* longer ones are not kept */

struct piece_slot {
    uint64_t text[2]; /* padded with zeros */
    int32_t ids[PIECE_CACHE_IDS];
    uint8_t n_bytes, n_ids; /* 0: empty */
};

struct piece_cache; /* of one thread and one vocabulary */

/* NULL where there is no memory for it: everything works without. */
struct piece_cache *piece_cache_new(void);
void piece_cache_free(struct piece_cache *c); /* NULL is fine */
/* Finds a piece of 1 to PIECE_CACHE_BYTES bytes: the slot that has its ids (n_ids > 0), or the one that another piece
 * has to leave for them: its text is this one's then, its n_ids 0. */
struct piece_slot *piece_cache_find(struct piece_cache *c, const char *piece, size_t n);

#endif
