/* What every family does alike with a step. */
#include "models/block/step.h"

int block_step_prepare(const struct step *step, struct err *e)
{
    for (int i = 0; i < step->rows.n_segments; i++) {
        const int rc = block_state_prepare(step->state[i], &step->rows.segments[i], e);
        if (rc) return rc;
    }
    return 0;
}

void block_step_embed(const struct step *step, const struct weight *embedding, int streams)
{
    const struct dev_ops *op = step->stream->dev->op;
    op->set_rows(step->stream, &step->rows);
    op->embed(step->stream, &(struct embed_args){
                                .table = embedding->mat, .out = step->carry[0], .copies = streams, .n = step->rows.n});
}

void block_step_segments(const struct step *step, int l, int n, const int *state_of)
{
    for (int i = 0; i < n; i++) {
        const struct block_state *state = step->state[state_of ? state_of[i] : i];
        block_scratch_segment(step->scratch, i, &state->layer[l]);
    }
}

struct rows block_step_part(const struct rows *r, int row, int n)
{
    struct rows p = *r;
    p.n = n;
    p.token += row, p.segment += row, p.pos += row, p.rope_pos += 3 * (size_t)row;
    p.raw_first += row, p.raw_last += row;
    if (p.window_rope) p.window_rope += 3 * (size_t)row;
    return p;
}
