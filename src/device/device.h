/* What a device does: buffers of rows, weights, session state, and operations on rows. A model is written once against
 * this table; ref (plain double, the judge), cpu and later GPUs fill it.
 *
 * Rows. A step works on T rows; everything that differs from row to row lives in one table (struct rows), never in op
 * arguments, so decode, prefill, mixed batches and drafts are the same code. Arguments carry shapes and handles only.
 *
 * Order and errors. Ops are enqueued on a stream in order. The first error sticks: later ops do nothing; callers look
 * at dev_error after each layer.
 *
 * Numbers. Row buffers hold the device's own element type (ref: double; others: float); only dev_read/dev_write see it.
 * A row's result depends on nothing but its own history: not on T, on other rows, on threads. docs/numerics.md states
 * for every op the order of summation and where it rounds. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/pool.h"
#include "experts/experts.h"
#include "gguf/tensor_view.h"
#include "quant/quant.h"

struct dev;
struct dev_stream;
struct dev_buf;
struct dev_mat;
struct dev_rope;
struct dev_ring;
struct dev_store;
struct dev_scan;

/* ---------------------------------------------------------------- the row table */

/* Consecutive rows of one session, in position order. */
struct segment {
    int slot;     /* the caller's session slot */
    int row0, n;  /* rows [row0, row0+n) of the step */
    int32_t pos0; /* position of the first; positions are consecutive */
    bool bulk;    /* more rows than a ring's slack: rings are written in their other bank, see struct dev_ring */
};

/* A part of a step: the columns begin at its first row, n is its number of rows, segments are those of the whole step.
 * Ops that work row by row take a part; those that walk segments (compress, ring_write, conv, delta_scan, store_write,
 * pool) want the whole step. */
struct rows {
    int n;                   /* T */
    const int32_t *token;    /* [T] */
    const int32_t *segment;  /* [T] index into segments */
    const int32_t *pos;      /* [T] position in the session */
    const int32_t *rope_pos; /* [T][3] rope positions (text: pos three times) */
    int32_t *raw_first;      /* [T] first visible position of the raw window, filled by the family's prepare */
    int32_t *raw_last;       /* [T] last visible one (inclusive; may lie behind the row inside its segment) */
    int n_segments;
    const struct segment *segments;
    const int32_t *window_rope; /* [T][3] rope positions of the first token of the window that ends at a row; set by
                                   the prepare of families that need it */
};

/* ---------------------------------------------------------------- buffers */

enum buf_kind {
    BUF_FLOAT, /* the device's float type */
    BUF_I32,   /* ids, selections */
    BUF_ACT,   /* quantised activations: one enum act_format */
    BUF_PACKED /* rows in a struct row_format */
};

/* How a state row is stored. FP8: the first n_fp8 values as E4M3 codes with one power-of-two scale per fp8_block values
 * (spec deepseek-v4 3.0), the rest as F16. FP4: all values E2M1, scale per fp4_block. F16: every value. F32: as they
 * are (ref: double). */
enum row_format_kind { ROWFMT_F32, ROWFMT_FP8, ROWFMT_FP4, ROWFMT_F16 };
struct row_format {
    enum row_format_kind kind;
    int width; /* values in a row */
    int n_fp8; /* ROWFMT_FP8: leading values that are rounded to FP8; a multiple of block */
    int block; /* values per scale */
};

struct buf_desc {
    enum buf_kind kind;
    int rows;              /* capacity */
    int groups, width;     /* a row is groups x width values, contiguous */
    enum act_format act;   /* BUF_ACT: every group is one activation row of width values */
    struct row_format fmt; /* BUF_PACKED: groups = 1 */
};

/* ---------------------------------------------------------------- session state */

/* The last rows of a session by absolute position: slot = pos mod capacity, nothing is shifted. capacity = span +
 * slack: span rows are needed at the committed length; a step of at most slack rows of this session writes in place and
 * any number of its rows can be committed. A bulk step writes only the last span rows, into the other of two banks, and
 * is committed as a whole (dev_ring_flip) or not at all. */
struct ring_desc {
    struct row_format fmt;
    int span, slack;
};

/* Append-only rows by index, in segments of STORE_SEGMENT rows. Full segments can be shared between sessions (fork) and
 * are copied before a session writes into one that it shares. */
enum { STORE_SEGMENT = 1024 };

/* The state of a gated delta rule: one matrix [width][width] (key value, value value) per value head, in two banks. A
 * step reads the current bank and writes the other; committed as a whole it is flipped (dev scan_flip). Of a step that
 * is not bulk the rows are kept too (at most slack), so that a part of it can be committed: scan_replay runs them in
 * the current bank. */
struct scan_desc {
    int key_heads, value_heads, width, slack;
};

/* Rotation of pairs: angle = position * freq, cosine and sine times magnitude. */
struct rope_desc {
    const double *freq; /* [pairs] */
    int pairs;
    const uint8_t *axis; /* [pairs] which of a row's three positions; NULL: the first */
    bool halves;         /* pair i is values i and i + pairs; else 2i and 2i + 1 */
    double magnitude;    /* 0: 1 */
};

/* ---------------------------------------------------------------- op arguments
 * n = rows to compute (rows 0..n-1 of the buffers). Unless said otherwise row i of a buffer belongs to row i of the row
 * table. */

struct embed_args { /* out[i] = copies times the embedding row of token i */
    const struct dev_mat *table;
    struct dev_buf *out;
    int copies;
    int n;
};
struct rms_norm_args { /* each group: y = x / sqrt(mean(x^2) + eps) * weight (NULL: 1); out may be x; groups x width may
                          regroup the buffer's row (e.g. n streams of D as one group of n*D) */
    const struct dev_buf *x;
    struct dev_buf *out;
    const struct dev_mat *weight;
    double eps;
    int groups, width;
    bool each; /* weight is [groups][width], else [width] for all groups */
    int n;
};
struct act_quant_args { /* the row of x, cut into out's groups: each becomes one activation row */
    const struct dev_buf *x;
    struct dev_buf *out;
    int n;
};
struct matmul_args { /* out[i][r] = w[r] . x[i][group of r]; x: FLOAT for float weights, else BUF_ACT of the weight's
                        format; rows of w are split evenly over x's groups; the leading values of an out row are written
                        (out may be wider than w has rows) */
    const struct dev_mat *w;
    const struct dev_buf *x;
    struct dev_buf *out;
    bool each; /* every group of x times the whole of w: out has as many groups */
    int n;
};
struct rope_args { /* rotates values first .. first+2*pairs-1 of every group by the row's rope_pos; in place */
    struct dev_buf *x;
    const struct dev_rope *rope;
    int groups, width, first;
    bool inverse;
    int n;
};
struct hadamard_args { /* every group of width (a power of two), times width^-1/2; in place */
    struct dev_buf *x;
    int groups, width;
    int n;
};
struct round_args { /* rounds each group to fmt (width = fmt.width) and back; in place */
    struct dev_buf *x;
    struct row_format fmt;
    int groups;
    int n;
};
struct pack_args { /* x (1 group) -> packed rows: rounding and encoding in one */
    const struct dev_buf *x;
    struct dev_buf *out;
    int n;
};
struct ring_write_args { /* rows of every segment -> its ring (last span rows if bulk). x: PACKED or FLOAT of the ring's
                            format */
    const struct dev_buf *x;
    struct dev_ring *const *ring; /* [n_segments] */
};
struct compress_args {                /* DeepSeek V4 compressor, spec deepseek-v4 3.5; also writes the rings */
    const struct dev_buf *kv, *gate;  /* [T][c*w] projections, gate without ape */
    const struct dev_mat *ape, *norm; /* [ratio][c*w], [w] */
    double eps;
    int ratio, w;                /* window length, width of an emitted row */
    bool overlap;                /* c = 2: previous window's first half joins in */
    const struct dev_rope *rope; /* on the last 2*pairs values, at the window's first position */
    bool hadamard;               /* after the rope */
    struct dev_ring *const *ring_kv, *const *ring_score; /* [n_segments], ROWFMT_F32 of c*w; span (c*ratio) */
    struct dev_store *const *store; /* [n_segments] row of window c has index c; encoded in the store's format */
};
struct select_args {                /* top-k of visible compressed rows, spec deepseek-v4 3.6 */
    const struct dev_buf *q;        /* [T][heads][width], already rotated and rounded */
    const struct dev_buf *weight;   /* [T][heads]; NULL: 1 */
    double scale;                   /* on the weights */
    struct dev_store *const *store; /* [n_segments] index rows */
    int ratio, top_k;
    struct dev_buf *out; /* I32 [T][1][1 + top_k]: count, then row indices ascending; count -1: all visible rows */
    int n;
};
struct attention_args {          /* spec deepseek-v4 3.7: raw window rows, then compressed rows; K = V; sink per head */
    struct dev_buf *q;           /* [T][heads][width] */
    const struct dev_rope *rope; /* or NULL. Else every head of q is first brought to root mean square 1 (eps as in
                                    rms_norm) and its last 2*pairs values are rotated, in place or elsewhere; those of
                                    the output are rotated back */
    double eps;
    const struct dev_buf *raw;      /* PACKED: raw rows of the whole step, also where rows are a part of it */
    struct dev_ring *const *ring;   /* [n_segments] raw rows of earlier positions */
    struct dev_store *const *store; /* [n_segments] compressed rows, or NULL */
    int ratio;                      /* row c is visible from position ratio*(c+1)-1 on */
    const struct dev_buf *selected; /* of select, or NULL: all visible rows */
    const struct dev_mat *sinks;    /* [heads] */
    double scale;
    struct dev_buf *out; /* [T][heads][width]; may be q; NULL: act alone is wanted, and q holds anything afterwards */
    struct dev_buf *act; /* what act_quant makes of out, or NULL */
    int n;
};
enum router_score { ROUTER_SQRT_SOFTPLUS, ROUTER_SOFTMAX };
struct router_args { /* scores, top-k with bias or a table by token id; spec deepseek-v4 3.9, qwen38 3.7 */
    enum router_score score;
    const struct dev_buf *logits; /* [T][1][>= experts] */
    int experts;
    const struct dev_mat *bias;  /* [experts] or NULL */
    const struct dev_mat *table; /* I32 [k, vocabulary] or NULL; the table decides when given */
    int k;
    double scale, floor;
    bool normalise;
    struct dev_buf *ids, *weight; /* I32 and FLOAT [T][1][>= k], leading values, in selection order */
    int n;
};
struct moe_args {            /* spec deepseek-v4 3.9: routed experts in ascending id, the shared expert last */
    const struct dev_buf *x; /* FLOAT [T][D] */
    const struct dev_buf *ids, *weight; /* of router: leading k values of each row */
    int k;
    struct experts *experts;
    int layer;
    const struct dev_mat *shared_gate, *shared_up, *shared_down; /* NULL: none */
    const struct dev_buf *shared_weight;                         /* FLOAT [T][1] factor of the shared expert; NULL: 1 */
    double clamp, shared_clamp;                                  /* <= 1e-6: none */
    struct dev_buf *out;                                         /* FLOAT [T][D]; may be x */
    struct dev_buf *mid; /* FLOAT [T][k][F] in selection order, or NULL: the tap expert_mid; work_desc does not count
                            what it takes */
    int n;
};
struct hc_gates_args { /* spec deepseek-v4 3.2: mix [T][2m+m^2] (head: [T][m]) -> pre, post, comb in place */
    struct dev_buf *mix;
    const struct dev_mat *base, *scale;
    int streams, iterations;
    double eps;
    bool head;
    int n;
};
struct hc_reduce_args { /* out = sum_i pre_i * stream_i; pre = first `streams` values of a gates row; gates NULL: mean
                         */
    const struct dev_buf *x, *gates;
    struct dev_buf *out;
    int streams;
    int n;
};
struct hc_expand_args { /* x_k = post_k*y + sum_j comb[j][k]*x_j, all streams from the old x; in place */
    const struct dev_buf *y, *gates;
    struct dev_buf *x;
    int streams;
    bool apart; /* streams stay apart: x_k += gates_k*y, a gates row is post alone; gates NULL: 1 */
    int n;
};
struct hc_mix_args { /* what lies between two sublayers: hc_expand of x (y NULL: none), mix = fn . x / sqrt(mean(x^2) +
                        eps), hc_gates, out = rms_norm of hc_reduce */
    const struct dev_buf *y;
    struct dev_buf *x, *mix;
    struct dev_buf *out;      /* may be y */
    const struct dev_mat *fn; /* floats, a row for each value of mix */
    const struct dev_mat *base, *scale, *weight;
    int streams, iterations;
    double eps, hc_eps; /* of both norms, of hc_gates */
    bool head;
    int n;
};
enum element_kind {
    ELEMENT_SILU,    /* out = silu(scale*x) */
    ELEMENT_SIGMOID, /* out = factor*sigmoid(scale*x) */
    ELEMENT_GATE,    /* out = x*sigmoid(y) */
    ELEMENT_ADD,     /* out = x + y */
};
struct element_args { /* value by value over the rows of out; out may be x or y */
    enum element_kind kind;
    const struct dev_buf *x, *y; /* as many values a row as out, or more */
    struct dev_buf *out;
    double scale, factor;
    int n;
};
struct decay_args { /* out = exp(a * softplus(x + bias)), spec qwen38 3.5 */
    const struct dev_buf *x;
    struct dev_buf *out;
    const struct dev_mat *a, *bias; /* [values of a row] */
    int n;
};
struct conv_args { /* causal, depth-wise: sum of weight[c][k] * x[c] of (taps-1-k)*dilation rows before, zeros before
                      the first position; also writes the rings */
    const struct dev_buf *x;
    struct dev_buf *out;          /* not x */
    const struct dev_mat *weight; /* [channels][taps] */
    int taps, dilation;
    bool silu;                    /* of the sum */
    struct dev_ring *const *ring; /* [n_segments] ROWFMT_F32 rows of x, span (taps-1)*dilation; NULL where that is 0 */
};
struct delta_scan_args { /* gated delta rule, spec qwen38 3.5: keys and queries of length 1, S *= decay, S += k (beta (v
                            - k.S)), out = scale * q.S; value head j has key head j mod key_heads */
    const struct dev_buf *x;            /* [T][queries | keys | values] */
    const struct dev_buf *decay, *beta; /* [T][value heads] */
    double eps, scale;                  /* length = sqrt(sum + eps) */
    struct dev_scan *const *scan;       /* [n_segments] */
    struct dev_buf *out;                /* [T][value heads][width] */
};
struct memory_gate_args { /* per stream: g = key.query / sqrt(D), out = sigmoid(sign(g) sqrt(max(|g|, 1e-6))) * value */
    const struct dev_buf *key, *query; /* [T][streams][D] */
    const struct dev_buf *value;       /* [T][D] */
    struct dev_buf *out;               /* [T][streams][D] */
    int streams;
    int n;
};
struct store_write_args {           /* row of position p has index p: the values of x, then those of y */
    const struct dev_buf *x, *y;    /* FLOAT; y NULL: none */
    struct dev_store *const *store; /* [n_segments] */
};
struct pool_args { /* mean of `ratio` rows, norm, rotation of the leading values at the window's first position: row c
                      of the store for positions ratio*c .. ratio*c + ratio-1; also writes the rings; spec qwen38 3.6 */
    const struct dev_buf *x; /* [T][width] */
    const struct dev_mat *norm;
    double eps;
    int ratio;
    const struct dev_rope *rope;
    struct dev_ring *const *ring;   /* [n_segments] ROWFMT_F32 rows of x, span >= ratio-1 */
    struct dev_store *const *store; /* [n_segments] */
};
struct attention_heads_args { /* grouped query attention, spec qwen38 3.6: head h sees key and value head h / (heads /
                                 kv_heads); rows of the store are [keys | values], those up to the row's own position
                                 are visible */
    const struct dev_buf *q;  /* [T][heads][width] */
    int kv_heads;
    struct dev_store *const *store; /* [n_segments] */
    int block;                      /* an entry of selected stands for so many rows; those of the incomplete last block
                                       are always seen */
    const struct dev_buf *selected; /* of select, or NULL: all visible rows */
    double scale;
    struct dev_buf *out; /* [T][heads][width]; may be q */
    int n;
};
struct gather_args { /* out[i] = x[row[i]]; rows are given by the host */
    const struct dev_buf *x;
    struct dev_buf *out;
    const int *row;
    int n;
};

/* Working space of a stream, in bytes: all operations share it, or each thread has its own. */
struct work_space {
    size_t shared, thread;
    int threads;
};

/* What the largest steps ask of a layer, for the working space that ops need beside their buffers. */
struct work_desc {
    int rows, segments;       /* of a step */
    int ctx;                  /* most positions of a session */
    int values;               /* in the widest row of a buffer */
    int heads, width, window; /* attention: query heads, values of a stored row, raw rows that a query sees */
    int pairs;                /* of a query's head that attention rotates */
    int ratio, wide;          /* 0: no compressor; values of its projected rows */
    int top_k, index_heads, index_width; /* of select; top_k 0: none, every query sees all compressed rows */
    int kv_heads, block;                 /* attention_heads: 0 heads: none; rows of a selected block */
    int scan_width;                      /* of delta_scan; 0: none */
    int streams;                         /* of hc_mix; 0: none */
    const struct moe_args *moe;          /* k, experts, layer and shared matrices are looked at */
};

/* ---------------------------------------------------------------- the table */

struct dev_ops {
    const char *name;
    void (*free)(struct dev *d);

    struct dev_stream *(*stream_create)(struct dev *d); /* NULL: out of memory */
    void (*stream_free)(struct dev_stream *s);

    /* NULL: out of memory. Contents are undefined: what nobody uses costs no memory, and the rows of a large buffer are
     * cleared by the system where they are first written. */
    struct dev_buf *(*buf_create)(struct dev *d, const struct buf_desc *desc);
    void (*buf_free)(struct dev_buf *b);
    /* A view: a buffer without rows of its own. view_set makes its row i row `row + i` of another buffer, until the
     * next call; that one must live as long. Freed like any buffer. */
    struct dev_buf *(*view_create)(struct dev *d); /* NULL: out of memory */
    void (*view_set)(struct dev_buf *view, const struct dev_buf *of, int row);
    size_t (*buf_bytes)(const struct dev *d, const struct buf_desc *desc); /* for the memory plan */

    /* Raises *most to the working space that a stream holds after such steps; for the memory plan. */
    void (*work)(const struct dev *d, const struct work_desc *w, struct work_space *most);
    /* Makes working space for such steps, as far as it is not there. w NULL: writes to every page of it, and of all
     * buffers, so that no step waits for the system to clear them; contents stay. NULL: nothing would be gained. */
    void (*warm)(struct dev_stream *s, const struct work_desc *w);

    /* Weights are views on the model's bytes; cpu widens small ones into copies. view stays valid. */
    struct dev_mat *(*mat_create)(struct dev *d, const struct tensor_view *view);
    void (*mat_free)(struct dev_mat *m);
    size_t (*mat_bytes)(const struct dev *d, const struct tensor_view *view); /* of the copy, for the memory plan */
    struct dev_rope *(*rope_create)(struct dev *d, const struct rope_desc *desc);
    void (*rope_free)(struct dev_rope *r);

    struct dev_ring *(*ring_create)(struct dev *d, const struct ring_desc *desc);
    void (*ring_free)(struct dev_ring *r);
    size_t (*ring_bytes)(const struct dev *d, const struct ring_desc *desc);
    void (*ring_flip)(struct dev_ring *r);                              /* commits a bulk step */
    int (*ring_copy)(struct dev_ring *dst, const struct dev_ring *src); /* same description, else ERR_ARG */

    struct dev_scan *(*scan_create)(struct dev *d, const struct scan_desc *desc);
    void (*scan_free)(struct dev_scan *c);
    size_t (*scan_bytes)(const struct dev *d, const struct scan_desc *desc);
    size_t (*scan_state_bytes)(const struct dev *d, const struct scan_desc *desc); /* of the matrices, for anchors */
    void (*scan_flip)(struct dev_scan *c);
    /* Kept rows [from, to) of the last step that was not bulk change the current bank. */
    void (*scan_replay)(struct dev_stream *s, struct dev_scan *c, int from, int to);
    int (*scan_copy)(struct dev_scan *dst, const struct dev_scan *src); /* same description, else ERR_ARG */
    void (*scan_get)(const struct dev_scan *c, void *dst);              /* the current bank */
    void (*scan_put)(struct dev_scan *c, const void *src);

    struct dev_store *(*store_create)(struct dev *d, const struct row_format *fmt);
    void (*store_free)(struct dev_store *s);
    size_t (*store_bytes)(const struct dev *d, const struct row_format *fmt, int64_t n_rows);
    /* Makes rows [from, to) writable: allocates segments, copies shared ones. ERR_MEMORY. Called before a step. */
    int (*store_reserve)(struct dev_store *s, int64_t from, int64_t to);
    /* dst becomes src's first n rows, sharing full segments. ERR_ARG if the formats differ or src has fewer segments.
     */
    int (*store_share)(struct dev_store *dst, const struct dev_store *src, int64_t n);

    /* Bytes of rows as the device stores them, for anchors and snapshots of the same device. Ring rows by position
     * (from the current bank), store rows by index. */
    size_t (*row_bytes)(const struct dev *d, const struct row_format *fmt);
    void (*ring_get)(const struct dev_ring *r, int32_t pos, int n, void *dst);
    void (*ring_put)(struct dev_ring *r, int32_t pos, int n, const void *src);
    void (*store_get)(const struct dev_store *s, int64_t row, int64_t n, void *dst);
    void (*store_put)(struct dev_store *s, int64_t row, int64_t n, const void *src);
    /* Values of one stored row, decoded; and a row written from values (rounded to the format). For tests and tools. */
    void (*row_decode)(const struct dev *d, const struct row_format *fmt, const void *src, double *values);
    void (*row_encode)(const struct dev *d, const struct row_format *fmt, const double *values, void *dst);

    /* Rows of a FLOAT or I32 buffer, synchronously. values: n * groups * width. */
    void (*read_f64)(struct dev_stream *s, const struct dev_buf *b, int row, int n, double *values);
    void (*read_f32)(struct dev_stream *s, const struct dev_buf *b, int row, int n, float *values);
    void (*read_i32)(struct dev_stream *s, const struct dev_buf *b, int row, int n, int32_t *values);
    void (*write_f64)(struct dev_stream *s, struct dev_buf *b, int row, int n, const double *values);
    void (*write_f32)(struct dev_stream *s, struct dev_buf *b, int row, int n, const float *values);
    void (*write_i32)(struct dev_stream *s, struct dev_buf *b, int row, int n, const int32_t *values);

    /* The row table of the ops that follow; must stay valid and unchanged until the next call. */
    void (*set_rows)(struct dev_stream *s, const struct rows *rows);

    void (*embed)(struct dev_stream *s, const struct embed_args *a);
    void (*rms_norm)(struct dev_stream *s, const struct rms_norm_args *a);
    void (*act_quant)(struct dev_stream *s, const struct act_quant_args *a);
    void (*matmul)(struct dev_stream *s, const struct matmul_args *a);
    void (*rope)(struct dev_stream *s, const struct rope_args *a);
    void (*hadamard)(struct dev_stream *s, const struct hadamard_args *a);
    void (*round)(struct dev_stream *s, const struct round_args *a);
    void (*pack)(struct dev_stream *s, const struct pack_args *a);
    void (*ring_write)(struct dev_stream *s, const struct ring_write_args *a);
    void (*compress)(struct dev_stream *s, const struct compress_args *a);
    void (*select)(struct dev_stream *s, const struct select_args *a);
    void (*attention)(struct dev_stream *s, const struct attention_args *a);
    void (*router)(struct dev_stream *s, const struct router_args *a);
    void (*moe)(struct dev_stream *s, const struct moe_args *a);
    void (*hc_gates)(struct dev_stream *s, const struct hc_gates_args *a);
    void (*hc_reduce)(struct dev_stream *s, const struct hc_reduce_args *a);
    void (*hc_expand)(struct dev_stream *s, const struct hc_expand_args *a);
    void (*hc_mix)(struct dev_stream *s, const struct hc_mix_args *a);
    void (*gather)(struct dev_stream *s, const struct gather_args *a);
    void (*element)(struct dev_stream *s, const struct element_args *a);
    void (*decay)(struct dev_stream *s, const struct decay_args *a);
    void (*conv)(struct dev_stream *s, const struct conv_args *a);
    void (*delta_scan)(struct dev_stream *s, const struct delta_scan_args *a);
    void (*memory_gate)(struct dev_stream *s, const struct memory_gate_args *a);
    void (*store_write)(struct dev_stream *s, const struct store_write_args *a);
    void (*pool)(struct dev_stream *s, const struct pool_args *a);
    void (*attention_heads)(struct dev_stream *s, const struct attention_heads_args *a);
};

/* Every device and every stream starts with these. */
struct dev {
    const struct dev_ops *op;
};
struct dev_stream {
    struct dev *dev;
    const struct rows *rows;
    struct err error;
    /* Asked between the tasks of an op, by any thread; true: the op and those behind it end at once, with
     * ERR_CANCELLED, and what they were to write is undefined. NULL: never. */
    bool (*unwanted)(const void *arg);
    const void *unwanted_arg;
};

/* The sticky error of a stream: 0 or its code (message in e). dev_clear empties it. */
int dev_error(const struct dev_stream *s, struct err *e);
void dev_clear(struct dev_stream *s);
/* Sets the sticky error unless one is there. */
void dev_fail(struct dev_stream *s, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Devices. The pool is borrowed. ref is single-threaded. */
int dev_ref_create(struct dev **out, struct err *e);
int dev_cpu_create(struct pool *pool, enum quant_isa isa, struct dev **out, struct err *e);
/* By name: "ref" or "cpu" (best instruction set). Unknown name: ERR_ARG listing the names. */
int dev_create(const char *name, struct pool *pool, struct dev **out, struct err *e);

#endif
