/* One session of a model, driven at the family's door: no scheduler in between, state and scratch within reach. */
#ifndef MODEL_RUN_H
#define MODEL_RUN_H
#include "models/family.h"

struct model_run {
    struct canonical *canonical;
    struct pool *pool;
    struct dev *dev;
    const struct family *family;
    void *model, *scratch, *state;
    struct dev_stream *stream;
    struct dev_buf *carry[CARRY_PARTS], *logits;
    int n_carry;
    int rows_max, draft_max, n_vocab;
    /* the step at work */
    struct step step;
    struct segment segment;
    int32_t *token, *seg, *pos, *rope_pos, *first, *last;
    const int32_t *rope; /* positions of all tokens, three each; NULL: those of text */
};

struct model_run_options {
    const char *backend; /* "ref", "cpu", or "shadow": both at once, compared (shadow_device.h) */
    int threads;         /* of cpu; 0: 1 */
    bool kv_sim_off, draft;
    int rows_max; /* most rows of a step; 0: 64 */
    int ctx;      /* 0: 4096 */
};

/* Fails the running cmocka test with the message when something goes wrong; so do the functions below. */
void model_run_open(struct model_run *r, const char *path, const struct model_run_options *o);
void model_run_close(struct model_run *r);

/* Prepares and embeds a step of n tokens behind the committed ones; bulk if n > draft_max. */
void model_run_begin(struct model_run *r, const int32_t *ids, int n);
void model_run_layer(struct model_run *r, int l);
/* Logits of all rows of the step, [n][n_vocab]. */
void model_run_head(struct model_run *r, double *logits);
void model_run_commit(struct model_run *r, int n);
/* All of the above for ids[0..n) in steps of at most `chunk` rows; logits [n][n_vocab] or NULL. */
void model_run_all(struct model_run *r, const int32_t *ids, int n, int chunk, double *logits);

#endif
