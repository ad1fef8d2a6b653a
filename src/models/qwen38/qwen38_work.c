/* What prepare finds out for one step: rows of the n-gram table (being read from then on), the rope positions of the
 * first tokens of blocks, and the row table of the draft block, which works one position behind the step. */
#include "models/qwen38/qwen38_internal.h"
#include "base/mem.h"
#include <string.h>

static void work_free(struct qwen38_work *w)
{
    if (!w) return;
    rowtable_cancel(w->gather);
    mem_free(w->committed);
    mem_free(w->window);
    mem_free(w->row);
    mem_free(w->memory);
    mem_free(w->segment);
    mem_free(w->state_of);
    mem_free(w->take);
    mem_free(w->column);
    mem_free(w);
}

void qwen38_work_done(struct step *step, int segment)
{
    struct qwen38_work *w = step->work;
    if (!w || w->committed[segment]) return;
    w->committed[segment] = true;
    if (--w->open) return;
    work_free(w);
    step->work = NULL;
}

/* ---------------------------------------------------------------- what lies before a row */

/* The token and rope positions at pos of segment g, which may lie before it. */
static struct qwen38_past past_of(const struct step *step, int g, int pos)
{
    const struct rows *r = &step->rows;
    const struct segment *seg = &r->segments[g];
    if (pos < seg->pos0) return *qwen38_past_at(step->state[g], pos);
    const int row = seg->row0 + pos - seg->pos0;
    struct qwen38_past p = {.token = r->token[row]};
    memcpy(p.rope, r->rope_pos + 3 * (size_t)row, sizeof p.rope);
    return p;
}

/* Rope positions of the first token of the block that ends at pos, if one does. */
static void window_find(const struct step *step, const struct qwen38_shape *s, int g, int pos, int32_t window[3])
{
    if (!s->q || (pos + 1) % s->q != 0) return;
    const struct qwen38_past p = past_of(step, g, pos + 1 - s->q);
    memcpy(window, p.rope, sizeof p.rope);
}

static void hash_row(const struct step *step, const struct qwen38_shape *s, int i, uint32_t *row)
{
    int32_t before[8];
    const int g = step->rows.segment[i], pos = step->rows.pos[i];
    for (int j = 1; j < s->G; j++) before[j - 1] = pos >= j ? past_of(step, g, pos - j).token : s->eos;
    qwen38_hash(s, step->rows.token[i], before, row);
}

/* ---------------------------------------------------------------- the draft's rows */

/* Columns of its row table, n each (rope_pos and window: three values a row). */
enum {
    COLUMN_TOKEN,
    COLUMN_SEGMENT,
    COLUMN_POS,
    COLUMN_FIRST,
    COLUMN_LAST,
    COLUMN_ROPE,
    COLUMN_WINDOW = 8,
    COLUMNS = 11
};

static bool draft_allocate(struct qwen38_work *w, const struct rows *r)
{
    const size_t n = (size_t)r->n, segments = (size_t)r->n_segments;
    w->segment = mem_try(segments * sizeof *w->segment);
    w->state_of = mem_try(segments * sizeof *w->state_of);
    w->take = mem_try(n * sizeof *w->take);
    w->column = mem_try(COLUMNS * n * sizeof *w->column);
    return w->segment && w->state_of && w->take && w->column;
}

static void draft_row(struct qwen38_work *w, const struct step *step, const struct qwen38_shape *s, int g, int row)
{
    const size_t n = (size_t)step->rows.n, at = (size_t)w->draft.n++;
    const int pos = step->rows.pos[row] - 1;
    const struct qwen38_past p = past_of(step, g, pos);
    w->take[at] = row;
    w->column[COLUMN_TOKEN * n + at] = step->rows.token[row];
    w->column[COLUMN_SEGMENT * n + at] = w->draft.n_segments;
    w->column[COLUMN_POS * n + at] = w->column[COLUMN_LAST * n + at] = pos;
    memcpy(w->column + COLUMN_ROPE * n + 3 * at, p.rope, sizeof p.rope);
    window_find(step, s, g, pos, w->column + COLUMN_WINDOW * n + 3 * at);
}

static void draft_rows(struct qwen38_work *w, const struct step *step, const struct qwen38_shape *s)
{
    const size_t n = (size_t)step->rows.n;
    for (int g = 0; g < step->rows.n_segments; g++) {
        const struct segment *seg = &step->rows.segments[g];
        const int skip = seg->pos0 == 0 ? 1 : 0;
        if (seg->n == skip) continue;
        w->segment[w->draft.n_segments] = (struct segment){
            .slot = seg->slot, .row0 = w->draft.n, .n = seg->n - skip, .pos0 = seg->pos0 - 1 + skip, .bulk = seg->bulk};
        w->state_of[w->draft.n_segments] = g;
        for (int i = skip; i < seg->n; i++) draft_row(w, step, s, g, seg->row0 + i);
        w->draft.n_segments++;
    }
    int32_t *c = w->column;
    w->draft.token = c + COLUMN_TOKEN * n, w->draft.segment = c + COLUMN_SEGMENT * n;
    w->draft.pos = c + COLUMN_POS * n, w->draft.rope_pos = c + COLUMN_ROPE * n;
    w->draft.raw_first = c + COLUMN_FIRST * n, w->draft.raw_last = c + COLUMN_LAST * n;
    w->draft.window_rope = c + COLUMN_WINDOW * n;
    w->draft.segments = w->segment;
}

/* ---------------------------------------------------------------- making it */

static bool work_allocate(struct qwen38_work *w, const struct qwen38_shape *s, const struct rows *r)
{
    const size_t n = (size_t)r->n;
    w->open = r->n_segments;
    w->committed = mem_try((size_t)r->n_segments);
    w->window = mem_try(3 * n * sizeof *w->window);
    w->row = mem_try(n * (size_t)s->Np * sizeof *w->row);
    w->memory = mem_try(n * (size_t)s->E * sizeof *w->memory);
    return w->committed && w->window && w->row && w->memory && (s->blocks == s->L || draft_allocate(w, r));
}

int qwen38_work_create(const struct qwen38_model *m, struct step *step, struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    const struct rows *r = &step->rows;
    struct qwen38_work *w = mem_alloc(sizeof *w);
    int rc = work_allocate(w, s, r) ? 0 : err_set(e, ERR_MEMORY, "out of memory for a step of %d rows", r->n);
    for (int i = 0; i < r->n && !rc; i++) {
        window_find(step, s, r->segment[i], r->pos[i], w->window + 3 * (size_t)i);
        hash_row(step, s, i, w->row + (size_t)i * (size_t)s->Np);
    }
    if (!rc && s->blocks > s->L) draft_rows(w, step, s);
    if (!rc) rc = rowtable_start(m->memory.table, w->row, (size_t)r->n * (size_t)s->Np, w->memory, &w->gather, e);
    if (rc) {
        work_free(w);
        return rc;
    }
    step->rows.window_rope = w->window;
    step->work = w;
    return 0;
}
