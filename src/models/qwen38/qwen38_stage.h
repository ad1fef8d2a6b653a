/* What the stages of one layer call share; for the files of the forward pass. */
#ifndef MODELS_QWEN38_STAGE_H
#define MODELS_QWEN38_STAGE_H
#include "models/qwen38/qwen38_internal.h"

struct stage {
    const struct qwen38_model *m;
    const struct qwen38_shape *s;
    struct step *step;
    struct dev_stream *st;
    const struct dev_ops *op;
    struct block_scratch *y;
    struct dev_buf *const *b; /* of the scratch */
    struct linear_input *in;
    struct dev_buf *streams;
    const struct rows *rows; /* the step's, or the draft's */
    int T, l;
    const struct qwen38_layer *w;
    const struct qwen38_layer_shape *ls;
};

/* T rows of a step; the streams are its carry, if it has one. */
struct stage qwen38_stage(const struct qwen38_model *m, struct step *step, int T);
void qwen38_at_layer(struct stage *g, int l);
/* Handles of the segments at the layer. state_of: which of the step's sessions a segment is of; NULL: in order. */
void qwen38_segments(const struct stage *g, const int *state_of);

/* Norm of every group; each: with a weight of its own. */
void qwen38_norm(const struct stage *g, struct dev_buf *x, struct dev_buf *out, const struct dev_mat *weight,
                 int groups, int width, bool each);
/* The product of an input's rows; they have changed since the last one if renew. */
void qwen38_product(const struct stage *g, enum qwen38_input input, bool renew, const struct weight *w,
                    struct dev_buf *out);
/* streams -> S_MIXED, and S_INJECT where the mixer has it (spec 3.2) */
void qwen38_mix(const struct stage *g, struct dev_buf *streams, const struct qwen38_mixer *w);
/* Both sublayers on the stage's streams (spec 3.3). */
void qwen38_layer_stages(const struct stage *g);

/* The draft block on the rows of a step, one position behind it. */
void qwen38_draft_follow(struct stage *g);

#endif
