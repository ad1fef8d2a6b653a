/* Pieces of PIECE elements; the list of pieces doubles. */
#include "base/pile.h"
#include <assert.h>
#include <string.h>
#include "base/mem.h"

enum { PIECE = 128, FIRST_PIECES = 8 };

static void **wider(const struct pile *p)
{
    const size_t room = p->pieces ? 2 * p->pieces : FIRST_PIECES;
    void **list = room <= SIZE_MAX / sizeof *list ? mem_try(room * sizeof *list) : NULL;
    if (list && p->pieces) memcpy(list, p->piece, p->pieces * sizeof *list);
    return list;
}

void *pile_add(struct pile *p)
{
    const size_t at = (size_t)(p->n / PIECE);
    if (at == p->pieces) {
        void **list = wider(p);
        if (!list) return NULL;
        mem_free(p->piece);
        p->piece = list;
        p->pieces = p->pieces ? 2 * p->pieces : FIRST_PIECES;
    }
    if (!p->piece[at] && !(p->piece[at] = mem_try(PIECE * p->bytes))) return NULL;
    return pile_at(p, p->n++);
}

void *pile_at(const struct pile *p, uint64_t i)
{
    assert(i / PIECE < p->pieces);
    return (char *)p->piece[i / PIECE] + (size_t)(i % PIECE) * p->bytes;
}

void pile_free(struct pile *p)
{
    for (size_t i = 0; i < p->pieces && p->piece[i]; i++) mem_free(p->piece[i]);
    mem_free(p->piece);
    *p = (struct pile){.bytes = p->bytes};
}
