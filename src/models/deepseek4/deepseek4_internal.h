/* Structures of the DeepSeek V4 family, one per lifetime: shape and weights (model), scratch, state. */
#ifndef MODELS_DEEPSEEK4_INTERNAL_H
#define MODELS_DEEPSEEK4_INTERNAL_H
#include "models/block/bind.h"
#include "models/block/linear.h"
#include "models/block/scratch.h"
#include "models/block/state.h"
#include "models/block/step.h"
#include "models/family.h"

/* ---------------------------------------------------------------- shape: letters of spec deepseek-v4 */

struct deepseek4_layer_shape {
    int ratio;                  /* rho: 0, or the length of a compressed window */
    bool indexed;               /* ratio is the overlapping one: windows overlap and an indexer selects */
    bool hashed;                /* experts by token id */
    int E, K;                   /* experts, experts per token */
    double clamp, shared_clamp; /* of SwiGLU; <= 1e-6: none */
};

struct deepseek4_shape {
    int L, D, V, H, d, r, G, Rq, Ro, W;
    int IH, ID, IK;    /* indexer heads, width, top-k */
    int n, iterations; /* hyper-connection streams, Sinkhorn iterations */
    double hc_eps, eps;
    double route_scale;
    bool route_norm;
    bool hadamard;
    struct row_format kv_row, index_row; /* stored rows */
    struct deepseek4_layer_shape *layer; /* [L] */
};

enum { DEEPSEEK4_ROUTE_FLOOR_LOG2 = -14 };

int deepseek4_shape_read(const struct canonical *c, const struct bind_options *o, struct deepseek4_shape *s,
                         struct err *e);
void deepseek4_shape_free(struct deepseek4_shape *s);
/* Rotation frequencies [r/2]: plain, or the YaRN form of layers with a compressor (spec 3.4). */
void deepseek4_frequencies(const struct canonical *c, int r, bool compressed, double *freq);

/* ---------------------------------------------------------------- weights */

struct deepseek4_hc {
    struct weight fn;
    struct dev_mat *base, *scale;
};

/* One compressor lane: attention (width d) or indexer (width ID). */
struct deepseek4_lane {
    struct weight kv, gate;
    struct dev_mat *ape, *norm;
};

struct deepseek4_layer {
    struct deepseek4_hc hc_attn, hc_ffn;
    struct dev_mat *attn_norm, *ffn_norm, *q_a_norm, *kv_norm, *sinks;
    struct weight q_a, q_b, kv, out_a, out_b;
    struct deepseek4_lane attn_lane, index_lane; /* where ratio != 0; where indexed */
    struct weight index_q, index_proj;           /* where indexed */
    struct weight router;
    struct dev_mat *router_bias, *router_table; /* one of both, or no bias */
    struct weight shared_gate, shared_up, shared_down;
};

/* Rows that several matrices read. */
enum deepseek4_input {
    INPUT_NORMED, /* rows in front of a sublayer */
    INPUT_QR,     /* compressed query */
    INPUT_HEADS,  /* attention output */
    INPUT_LOW,    /* first half of the output projection */
    INPUT_HEAD,   /* normed rows of the head */
    INPUT_COUNT
};

struct deepseek4_model {
    struct deepseek4_shape shape;
    struct dev *dev;
    int draft_max;
    struct dev_rope *rope_plain, *rope_compressed;
    struct weight embedding, output;
    struct dev_mat *output_norm;
    struct deepseek4_hc output_hc;
    struct deepseek4_layer *layer; /* [L] */
    struct experts *experts;
    struct state_layout layout;
    struct scratch_layout rows;
    unsigned formats[INPUT_COUNT]; /* that the matrices at an input need: bits 1 << enum act_format */
};

int deepseek4_weights_bind(const struct canonical *c, struct deepseek4_model *m, struct err *e);
void deepseek4_weights_free(struct deepseek4_model *m);
void deepseek4_cost(const void *model, const struct canonical *c, int from, int to, struct family_cost *cost);

/* ---------------------------------------------------------------- scratch: rows of one layer call, T = most rows
 *
 * The widest rows are needed for a part of the step at a time: those of queries for P = at most DEEPSEEK4_PART rows,
 * streams of the head for N = at most DEEPSEEK4_HEADS. Weights are unpacked once for every part: of 528 rows, a prompt
 * of 2,048 took 1 % longer, of 256 rows 2 to 3 %. Experts gain from many rows and get all of them. */

enum { DEEPSEEK4_PART = 1032 /* whole panels of six */, DEEPSEEK4_HEADS = 64 };

enum deepseek4_scratch_id {
    S_MIX, /* [T][1][2n+n^2] hyper-connection gates */
    S_XN,  /* [T][1][D] input of a sublayer, before and after its norm */
    S_QR,  /* [T][1][Rq] */
    S_Q,   /* [P][H][d] queries, then attention output */
    S_KV,  /* [T][1][d] */
    S_RAW, /* [T] packed kv rows */
    S_LANE_KV,
    S_LANE_GATE, /* [T][1][c*w] projections of one compressor */
    S_INDEX_Q,   /* [P][IH][ID] */
    S_INDEX_W,   /* [P][1][IH] */
    S_SELECT,    /* [P][1][1+IK] I32 */
    S_LOW,       /* [P][1][G*Ro] */
    S_ROUTER,    /* [T][1][E] */
    S_IDS,       /* [T][1][K] I32 */
    S_WEIGHTS,   /* [T][1][K] */
    S_HEAD,      /* [N][1][n*D] gathered streams */
    S_COUNT,
    S_Y = S_XN /* output of a sublayer, in place of its input */
};

/* Buffers of which a part is looked at: the carry's streams, and what is [T] above; logits. */
enum deepseek4_view { VIEW_XN, VIEW_QR, VIEW_Y, VIEW_LOGITS, VIEW_COUNT };

enum { RING_RAW, RING_KV, RING_SCORE, RING_INDEX_KV, RING_INDEX_SCORE, RING_COUNT };
enum { STORE_KV, STORE_INDEX, STORE_COUNT };

/* Makes m->rows. */
void deepseek4_scratch_layout(struct deepseek4_model *m);
size_t deepseek4_scratch_bytes(const void *model, int n_rows, int n_segments);
int deepseek4_scratch_create(const void *model, int n_rows, int n_segments, void **scratch, struct err *e);
bool deepseek4_work(const void *model, int l, int n_rows, int n_segments, int ctx, struct moe_args *moe,
                    struct work_desc *d);

/* ---------------------------------------------------------------- state of a session */

struct deepseek4_state {
    struct block_state base; /* first */
};

/* Makes m->layout. */
void deepseek4_layout(struct deepseek4_model *m);
size_t deepseek4_state_bytes(const void *model, int ctx);
int deepseek4_state_create(const void *model, int ctx, void **state, struct err *e);
void deepseek4_state_free(void *state);
int deepseek4_state_fork(void *dst, const void *src, struct err *e);
size_t deepseek4_anchor_bytes(const void *state);
size_t deepseek4_anchor_bytes_at(const void *model, int pos);
void deepseek4_anchor_take(const void *state, void *dst);
void deepseek4_anchor_restore(void *state, int pos, const void *src);
size_t deepseek4_rows_bytes_at(const void *model, int pos);

/* ---------------------------------------------------------------- forward */

int deepseek4_prepare(const void *model, struct step *s, struct err *e);
void deepseek4_embed(const void *model, struct step *s);
void deepseek4_layer_run(const void *model, struct step *s, int l);
void deepseek4_head(const void *model, struct step *s, const int *row, int n, struct dev_buf *logits);
int deepseek4_commit(const void *model, struct step *s, int segment, int n, struct err *e);

#endif
