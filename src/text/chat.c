/* What the frames of all families need of a conversation. */
#include "text/chat.h"
#include <stdlib.h>
#include "base/mem.h"
#include "base/strmap.h"

bool chat_is_turn(const struct chat_message *m)
{
    return m->role == CHAT_USER || m->role == CHAT_TOOL;
}

size_t chat_turn_end(const struct chat_message *m, size_t n, size_t from)
{
    size_t end = from;
    for (size_t i = from; i < n && m[i].role != CHAT_ASSISTANT; i++)
        if (chat_is_turn(&m[i])) end = i + 1;
    return end;
}

int chat_no_system(const struct chat_message *m, size_t n, size_t from, struct err *e)
{
    for (size_t i = from; i < n; i++)
        if (m[i].role == CHAT_SYSTEM)
            return err_set(e, ERR_ARG, "a system message cannot follow an answer: it belongs to the start of the chat");
    return 0;
}

int chat_specials_check(const struct bpe *b, const char *const *specials, size_t n, const char *format, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (bpe_special(b, specials[i]) < 0)
            return err_set(
                e, ERR_MODEL,
                "tokenizer.ggml.tokens has no token \"%s\", which the %s chat format needs; the model file was "
                "made with another tokenizer",
                specials[i], format);
    return 0;
}

/* ------------------------------------------------------------------------------------------------ results */

struct ranked {
    uint64_t rank; /* 0: of no known call; else 1 + the index of the call */
    size_t index;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *const x = a, *const y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The assistant message that the turn at m[from] follows; NULL: none. */
static const struct chat_message *caller_before(const struct chat_message *m, size_t from)
{
    while (from > 0 && m[from - 1].role == CHAT_SYSTEM) from--;
    return from > 0 && m[from - 1].role == CHAT_ASSISTANT ? &m[from - 1] : NULL;
}

static int rank_results(const struct chat_message *m, const struct chat_message *caller, struct ranked *list, size_t n)
{
    struct strmap *const ids = strmap_new(caller->n_calls);
    int rc = ids ? 0 : ERR_MEMORY;
    for (size_t i = 0; rc >= 0 && i < caller->n_calls; i++)
        if (caller->calls[i].id.n > 0) rc = strmap_put(ids, caller->calls[i].id.p, caller->calls[i].id.n, i + 1);
    for (size_t i = 0; rc >= 0 && i < n; i++) {
        const struct bpe_text id = m[list[i].index].call_id;
        if (id.n > 0) strmap_get(ids, id.p, id.n, &list[i].rank);
    }
    strmap_free(ids);
    return rc < 0 ? rc : 0;
}

int chat_results(const struct chat_message *m, size_t from, size_t to, size_t **order, struct err *e)
{
    const struct chat_message *const caller = caller_before(m, from);
    const size_t room = to - from;
    struct ranked *const list = mem_try(room * sizeof *list);
    size_t n = 0;
    *order = mem_try(room * sizeof **order);
    int rc = list && *order ? 0 : ERR_MEMORY;
    for (size_t i = from; rc == 0 && i < to; i++)
        if (m[i].role == CHAT_TOOL) list[n++] = (struct ranked){.index = i};
    if (rc == 0 && n > 1 && caller) {
        rc = rank_results(m, caller, list, n);
        qsort(list, n, sizeof *list, compare_ranked);
    }
    for (size_t i = 0; rc == 0 && i < n; i++) (*order)[i] = list[i].index;
    mem_free(list);
    if (rc == 0) return 0;
    mem_free(*order);
    *order = NULL;
    return err_set(e, ERR_MEMORY, "no memory to order %zu messages", room);
}
