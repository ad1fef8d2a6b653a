/* Structures of the Qwen3.8 family, one per lifetime: shape and weights (model), scratch, work (a step), state. */
#ifndef MODELS_QWEN38_INTERNAL_H
#define MODELS_QWEN38_INTERNAL_H
#include "models/block/bind.h"
#include "models/block/linear.h"
#include "models/block/scratch.h"
#include "models/block/state.h"
#include "models/block/step.h"
#include "models/family.h"
#include "rowtable/rowtable.h"

/* ---------------------------------------------------------------- shape: letters of spec qwen38 1 */

struct qwen38_layer_shape {
    bool recurrent; /* gated delta net, else attention */
    int NE, K, F;   /* experts, experts per token, their width */
};

struct qwen38_shape {
    int L, blocks; /* trunk layers; with the draft block, if it is bound */
    int E, V, H, Hkv, D, Rn, hc, rho;
    int Hk, Hv, Dl, Kc; /* of the delta net */
    int Hi, Di, q, Kb;  /* indexer: heads, width, tokens of a block (0: none, all is seen), blocks kept */
    int lp, G, P, Np, Kp;
    int32_t eos;
    int Fs;
    double eps;
    struct row_format kv_row, block_row; /* stored rows: [keys | values]; keys of blocks */
    uint64_t *mul, *off, *voc;           /* [G], [Np], [Np] */
    struct qwen38_layer_shape *layer;    /* [blocks] */
};

int qwen38_shape_read(const struct canonical *c, const struct bind_options *o, struct qwen38_shape *s, struct err *e);
void qwen38_shape_free(struct qwen38_shape *s);
/* Rotation of heads and indexer (spec 3.9), YaRN included. NULL: out of memory. */
struct dev_rope *qwen38_rope(const struct canonical *c, struct dev *dev, const struct qwen38_shape *s);
/* Rows of the n-gram table for one token (spec 3.4): before[j-1] = the token j places earlier; row [Np]. */
void qwen38_hash(const struct qwen38_shape *s, int32_t token, const int32_t *before, uint32_t *row);

/* ---------------------------------------------------------------- weights */

struct qwen38_mixer {
    struct dev_mat *norm;
    struct weight down, up, inject; /* inject: not of heads */
};

struct qwen38_layer {
    struct qwen38_mixer attn, ffn;
    struct weight out; /* of either kind */
    struct weight qkv, z, beta, alpha;
    struct dev_mat *conv, *dt, *a, *out_norm;
    struct weight q, gate, k, v, index_q, index_k;
    struct dev_mat *q_norm, *k_norm, *index_q_norm, *index_k_norm;
    struct weight router, shared_in, shared_gate, shared_up, shared_down;
};

struct qwen38_memory { /* PLE */
    struct weight key, value;
    struct dev_mat *norm_key, *norm_query, *norm_conv, *conv;
    struct rowtable *table;
};

struct qwen38_draft { /* what the draft block has beside a layer */
    struct weight embed_proj, hidden_proj;
    struct dev_mat *embed_norm, *hidden_norm, *shift;
    struct qwen38_mixer head;
    float *shift_values; /* of shift */
};

/* Rows that several matrices read. */
enum qwen38_input {
    INPUT_STREAMS, /* normed streams as one row */
    INPUT_LOW,     /* between down and up of a mixer */
    INPUT_MIXED,   /* in front of a sublayer */
    INPUT_HEADS,   /* attention output */
    INPUT_STATE,   /* output of the delta net */
    INPUT_MEMORY,  /* rows of the n-gram table */
    INPUT_EMBED,   /* draft: normed embedding of the next token */
    INPUT_HIDDEN,  /* draft: normed streams, one by one */
    INPUT_COUNT
};

struct qwen38_model {
    struct qwen38_shape shape;
    struct dev *dev;
    int draft_max;
    struct dev_rope *rope;
    struct weight embedding, output;
    struct qwen38_mixer head;
    struct qwen38_memory memory;
    struct qwen38_draft draft;
    struct qwen38_layer *layer; /* [blocks] */
    struct experts *experts;
    struct state_layout layout;
    struct scratch_layout rows;
    unsigned formats[INPUT_COUNT]; /* that the matrices at an input need: bits 1 << enum act_format */
};

int qwen38_weights_bind(const struct canonical *c, struct qwen38_model *m, struct err *e);
void qwen38_weights_free(struct qwen38_model *m);
void qwen38_cost(const void *model, const struct canonical *c, int from, int to, struct family_cost *cost);

/* ---------------------------------------------------------------- scratch: rows of one layer call, T = most rows */

enum qwen38_scratch_id {
    S_FLAT,   /* [T][hc][E] normed streams */
    S_GATES,  /* [T][hc][E] of a mixer */
    S_LOW,    /* [T][1][rho] */
    S_INJECT, /* [T][1][hc] */
    S_MIXED,  /* [T][1][E] input of a sublayer */
    S_Y,      /* [T][1][E] its output */
    S_U,
    S_C, /* [T][1][cd] before and after the convolution */
    S_Z, /* [T][Hv][Dl] */
    S_BETA,
    S_ALPHA, /* [T][1][Hv] */
    S_STATE, /* [T][Hv][Dl] output of the delta net */
    S_Q,     /* [T][H][D] queries, then attention output */
    S_GATE,  /* [T][H][D] */
    S_K,
    S_V,       /* [T][Hkv][D] */
    S_INDEX_K, /* [T][1][Di] */
    S_INDEX_Q, /* [T][Hi][Di] */
    S_SELECT,  /* [T][1][1+Kb] I32 */
    S_ROUTER,
    S_IDS, /* [T][1][K] I32 */
    S_WEIGHTS,
    S_SHARED, /* [T][1][1] */
    S_HEAD,   /* [T][hc][E] gathered streams */
    S_DRAFT,  /* [T][hc][E] draft: its own streams */
    S_COUNT,

    /* In front of a layer's first mixer, in buffers that are free then. The n-gram memory: */
    S_MEMORY = S_MIXED, /* rows of the table */
    S_VALUE = S_Y,
    S_KEY = S_GATES,
    S_QUERY = S_FLAT,
    S_GATED = S_HEAD,
    /* The draft: */
    S_BEFORE = S_GATES, /* streams of the row before */
    S_EMBED = S_MIXED,
    S_EMBED_Y = S_Y
};

enum { RING_CONV, RING_INDEX, RING_STREAMS, RING_COUNT };
enum { STORE_KV, STORE_BLOCK, STORE_COUNT };

void qwen38_scratch_layout(struct qwen38_model *m);
size_t qwen38_scratch_bytes(const void *model, int n_rows, int n_segments);
int qwen38_scratch_create(const void *model, int n_rows, int n_segments, void **scratch, struct err *e);
bool qwen38_work(const void *model, int l, int n_rows, int n_segments, int ctx, struct moe_args *moe,
                 struct work_desc *d);

/* ---------------------------------------------------------------- work: what prepare finds out for one step */

struct qwen38_work {
    int open;                       /* segments that were not committed yet */
    bool *committed;                /* [n_segments] */
    int32_t *window;                /* [T][3]: rows.window_rope */
    uint32_t *row;                  /* [T][Np] rows of the n-gram table */
    float *memory;                  /* [T][E] */
    struct rowtable_gather *gather; /* NULL once waited for */
    /* Draft: its rows are those of the step one position back; the first of a session has none. */
    struct rows draft;
    struct segment *segment; /* [draft.n_segments] */
    int *state_of;           /* [draft.n_segments] segments of the step */
    int *take;               /* [draft.n] rows of the step */
    int32_t *column;         /* token, segment, pos, rope_pos (three), window (three): draft.n each */
};

struct qwen38_state;
int qwen38_work_create(const struct qwen38_model *m, struct step *step, struct err *e);
/* Segment i is committed; the last one frees the work. */
void qwen38_work_done(struct step *step, int segment);

/* ---------------------------------------------------------------- state of a session */

/* A token of the history. */
struct qwen38_past {
    int32_t token, rope[3];
};

struct qwen38_state {
    struct block_state base; /* first */
    const struct qwen38_model *model;
    struct qwen38_past *past; /* [qwen38_past_count] by position modulo their number */
};

int qwen38_past_count(const struct qwen38_shape *s);
/* The token at pos, which lies at most qwen38_past_count before the committed length. */
const struct qwen38_past *qwen38_past_at(const struct qwen38_state *s, int pos);

void qwen38_layout(struct qwen38_model *m);
size_t qwen38_state_bytes(const void *model, int ctx);
int qwen38_state_create(const void *model, int ctx, void **state, struct err *e);
void qwen38_state_free(void *state);
int qwen38_state_fork(void *dst, const void *src, struct err *e);
size_t qwen38_anchor_bytes(const void *state);
size_t qwen38_anchor_bytes_at(const void *model, int pos);
void qwen38_anchor_take(const void *state, void *dst);
void qwen38_anchor_restore(void *state, int pos, const void *src);
size_t qwen38_rows_bytes_at(const void *model, int pos);

/* ---------------------------------------------------------------- forward */

int qwen38_prepare(const void *model, struct step *s, struct err *e);
void qwen38_embed(const void *model, struct step *s);
void qwen38_layer_run(const void *model, struct step *s, int l);
void qwen38_head(const void *model, struct step *s, const int *row, int n, struct dev_buf *logits);
int qwen38_commit(const void *model, struct step *s, int segment, int n, struct err *e);
bool qwen38_has_draft(const void *model);
int qwen38_guess(const void *model, void *state, const struct guess *a, struct err *e);

#endif
