/* Rewind points: which positions have one, and which goes when the budget is used up. Marked positions stay longest;
 * the others thin out geometrically behind the tail, so that a rewind replays a bounded share of the way it goes back.
 * Memory is taken as points are, up to the budget; from then on a new point takes over the memory of one that goes. */
#include "engine/engine_internal.h"
#include <limits.h>
#include <string.h>
#include "base/mem.h"

static void anchor_release(struct anchor *p)
{
    if (p && --p->refs == 0) mem_free(p);
}

static void anchors_remove(struct anchors *a, int i)
{
    a->bytes -= a->at[i]->cap;
    a->n--;
    memmove(a->at + i, a->at + i + 1, (size_t)(a->n - i) * sizeof *a->at);
    memmove(a->marked + i, a->marked + i + 1, (size_t)(a->n - i) * sizeof *a->marked);
}

void anchors_free(struct anchors *a)
{
    anchors_cut(a, -1);
    mem_free(a->at);
    mem_free(a->marked);
    mem_free(a->mark);
    *a = (struct anchors){0};
}

void anchors_cut(struct anchors *a, int length)
{
    while (a->n && a->at[a->n - 1]->pos > length) {
        struct anchor *last = a->at[a->n - 1];
        anchors_remove(a, a->n - 1);
        anchor_release(last);
    }
}

int anchors_find(const struct anchors *a, int pos)
{
    int i = a->n - 1;
    while (i >= 0 && a->at[i]->pos > pos) i--;
    return i;
}

/* ---------------------------------------------------------------- marks */

static int mark_index(const struct anchors *a, int pos)
{
    int i = 0;
    while (i < a->n_mark && a->mark[i] < pos) i++;
    return i;
}

static bool mark_at(const struct anchors *a, int pos)
{
    const int i = mark_index(a, pos);
    return i < a->n_mark && a->mark[i] == pos;
}

int anchors_mark(struct anchors *a, int pos, struct err *e)
{
    const int i = anchors_find(a, pos), k = mark_index(a, pos);
    if (i >= 0 && a->at[i]->pos == pos) {
        a->marked[i] = true;
        return 0;
    }
    if (mark_at(a, pos)) return 0;
    if (a->n_mark == a->cap_mark) {
        const int cap = a->cap_mark ? 2 * a->cap_mark : 64;
        int *mark = mem_try((size_t)cap * sizeof *mark);
        if (!mark) return err_set(e, ERR_MEMORY, "no memory for %d marks", cap);
        if (a->n_mark) memcpy(mark, a->mark, (size_t)a->n_mark * sizeof *mark);
        mem_free(a->mark);
        a->mark = mark, a->cap_mark = cap;
    }
    memmove(a->mark + k + 1, a->mark + k, (size_t)(a->n_mark - k) * sizeof *a->mark);
    a->mark[k] = pos;
    a->n_mark++;
    return 0;
}

int anchors_next_mark(const struct anchors *a, int pos)
{
    const int i = mark_index(a, pos + 1);
    return i < a->n_mark ? a->mark[i] : INT_MAX;
}

/* Forgets the marks up to pos. */
static void marks_pass(struct anchors *a, int pos)
{
    const int i = mark_index(a, pos + 1);
    if (i == 0) return;
    a->n_mark -= i;
    memmove(a->mark, a->mark + i, (size_t)a->n_mark * sizeof *a->mark);
}

bool anchors_wanted(const struct anchors *a, int pos)
{
    return pos > 0 && a->budget > 0 && (pos % ANCHOR_STEP == 0 || mark_at(a, pos));
}

/* ---------------------------------------------------------------- what goes */

/* The point that is missed least: its neighbours lie close together compared with its distance from the tail. */
static int weakest(const struct anchors *a, int tail, bool marked)
{
    int best = -1;
    double least = 0;
    for (int i = 0; i < a->n; i++) {
        if (a->marked[i] != marked) continue;
        const int before = i > 0 ? a->at[i - 1]->pos : 0, after = i + 1 < a->n ? a->at[i + 1]->pos : tail;
        const double loss = (double)(after - before) / (tail - a->at[i]->pos + 1);
        if (best < 0 || loss < least) best = i, least = loss;
    }
    return best;
}

static uint64_t marked_bytes(const struct anchors *a)
{
    uint64_t n = 0;
    for (int i = 0; i < a->n; i++) n += a->marked[i] ? a->at[i]->cap : 0;
    return n;
}

/* Makes room for need bytes; what goes and can hold them is handed over in *spare. */
static bool make_room(struct anchors *a, size_t need, int tail, bool marked, struct anchor **spare)
{
    if (need > a->budget || (!marked && marked_bytes(a) + need > a->budget)) return false;
    while (a->bytes + need > a->budget) {
        int i = weakest(a, tail, false);
        if (i < 0) i = weakest(a, tail, true);
        struct anchor *gone = a->at[i];
        anchors_remove(a, i);
        const bool fits = gone->refs == 1 && gone->cap >= need && gone->cap - need <= need / 4;
        if (fits && !*spare && a->bytes + gone->cap <= a->budget)
            *spare = gone;
        else
            anchor_release(gone);
    }
    return true;
}

static bool list_grow(struct anchors *a)
{
    if (a->n < a->cap) return true;
    const int cap = a->cap ? 2 * a->cap : 64;
    struct anchor **at = mem_try((size_t)cap * sizeof *at);
    bool *marked = mem_try((size_t)cap * sizeof *marked);
    if (!at || !marked) {
        mem_free(at);
        mem_free(marked);
        return false;
    }
    if (a->n) memcpy(at, a->at, (size_t)a->n * sizeof *at), memcpy(marked, a->marked, (size_t)a->n * sizeof *marked);
    mem_free(a->at);
    mem_free(a->marked);
    a->at = at, a->marked = marked, a->cap = cap;
    return true;
}

/* ---------------------------------------------------------------- taking */

static struct anchor *anchor_new(size_t bytes)
{
    struct anchor *p = mem_try(sizeof *p + bytes);
    if (p) p->cap = bytes;
    return p;
}

static void anchor_fill(struct anchor *p, const struct ds4_session *s)
{
    const size_t logits = (size_t)s->engine->n_vocab * sizeof(float);
    p->refs = 1;
    p->pos = s->length;
    p->logits = (float *)(void *)p->data;
    p->part = p->data + logits;
    memcpy(p->logits, s->logits, logits);
    s->engine->family->anchor_take(s->state, p->part);
}

static void anchors_append(struct anchors *a, struct anchor *p, bool marked)
{
    a->at[a->n] = p;
    a->marked[a->n++] = marked;
    a->bytes += p->cap;
}

void anchors_take(struct ds4_session *s)
{
    struct anchors *a = &s->anchors;
    const bool marked = mark_at(a, s->length), wanted = s->have_logits && anchors_wanted(a, s->length);
    marks_pass(a, s->length);
    if (!wanted) return;
    const int i = anchors_find(a, s->length);
    if (i >= 0 && a->at[i]->pos == s->length) {
        a->marked[i] = a->marked[i] || marked;
        return;
    }
    const size_t need = (size_t)s->engine->n_vocab * sizeof(float) + s->engine->family->anchor_bytes(s->state);
    struct anchor *p = NULL;
    if (!list_grow(a) || !make_room(a, need, s->length, marked, &p)) return;
    if (!p) p = anchor_new(need);
    if (!p) return; /* a session can go on without the point */
    anchor_fill(p, s);
    anchors_append(a, p, marked);
}

int anchors_share(struct anchors *dst, const struct anchors *src, int length, struct err *e)
{
    for (int i = 0; i < src->n && src->at[i]->pos <= length; i++) {
        if (!list_grow(dst)) return err_set(e, ERR_MEMORY, "no memory for a list of rewind points");
        src->at[i]->refs++;
        anchors_append(dst, src->at[i], src->marked[i]);
    }
    for (int i = 0; i < src->n_mark; i++) {
        const int rc = anchors_mark(dst, src->mark[i], e);
        if (rc) return rc;
    }
    return 0;
}
