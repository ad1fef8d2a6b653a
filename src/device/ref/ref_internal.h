/* The judge: every operation in plain double, straight from the spec, one thread, sums in ascending order.
 * Float buffers, rings, stores and packed rows all hold doubles; rows of a rounded format hold values that the format
 * can represent. Weights are decoded row by row when they are used. */
#ifndef REF_INTERNAL_H
#define REF_INTERNAL_H
#include "device/device_internal.h"

struct dev_buf {
    struct buf_desc desc;
    size_t row_bytes;
    uint8_t *data; /* [desc.rows][row_bytes] */
    bool view;     /* data is another buffer's */
};

struct dev_mat {
    struct tensor_view view;
};

struct dev_ring {
    struct ring_desc desc;
    int current;     /* bank that holds the committed rows */
    double *bank[2]; /* [span + slack][width] */
};

struct ref_segment {
    int users;
    double *rows; /* [STORE_SEGMENT][width] */
};

struct dev_store {
    struct row_format fmt;
    int64_t n_segments;
    struct ref_segment **segment; /* NULL where nothing was reserved */
};

struct dev_scan {
    struct scan_desc desc;
    int current;     /* bank that holds the committed state */
    double *bank[2]; /* [value_heads][width][width] */
    double *kept;    /* [slack]: what a step's row brings, as ref_scan.c lays it out */
};

/* Scratch of an op: blocks that are handed out in turn and reused by the next op. */
enum { REF_SCRATCH_BLOCKS = 16 };
struct ref_stream {
    struct dev_stream base;
    int n_taken;
    struct {
        double *p;
        size_t n;
    } block[REF_SCRATCH_BLOCKS];
    float *narrow; /* [n_narrow]: a row as quant decodes and quantises it */
    size_t n_narrow;
};

/* False if the stream has failed; else starts an op: all scratch is free again. */
bool ref_begin(struct dev_stream *s);
/* n doubles of scratch, contents undefined; NULL after setting the stream's error. */
double *ref_take(struct dev_stream *s, size_t n);
/* The one float row of the stream, for the calls into quant. */
float *ref_narrow(struct dev_stream *s, size_t n);

static inline double *ref_row(const struct dev_buf *b, int64_t row)
{
    return (double *)(void *)(b->data + (size_t)row * b->row_bytes);
}

static inline int32_t *ref_row_i32(const struct dev_buf *b, int64_t row)
{
    return (int32_t *)(void *)(b->data + (size_t)row * b->row_bytes);
}

/* The segment of row i of the step. */
static inline const struct segment *ref_segment_of(const struct dev_stream *s, int i)
{
    return &s->rows->segments[s->rows->segment[i]];
}

/* ref_round.c: spec deepseek-v4 3.0. */
double ref_e4m3(double x);
double ref_e2m1(double x);
double ref_f16(double x);
void ref_round_row(const struct row_format *fmt, double *x); /* fmt.width values in place */

/* ref_rows.c: one group, shared with the compressor. */
void ref_norm_group(const double *x, const double *weight, double eps, int n, double *out);
void ref_rotate(double *x, const struct dev_rope *rope, const int32_t pos[3], bool inverse); /* 2*pairs values */
void ref_hadamard_group(double *x, int n);

/* ref_matmul.c: weights as doubles. */
/* Row r of a weight, decoded to ne[0] values; false after setting the stream's error. */
bool ref_decode_row(struct dev_stream *s, const struct tensor_view *v, int64_t r, double *out);
/* Rows 0 .. n_rows-1 of a small weight in scratch; NULL after setting the error. */
const double *ref_vector(struct dev_stream *s, const struct dev_mat *m, int64_t n_rows);
/* The values that a dot product with rows of v sees for x[ne0]: x itself, or x after quantisation into act (an
 * activation row of scratch). */
bool ref_dot_input(struct dev_stream *s, const struct tensor_view *v, const double *x, void *act, double *out);
/* Quantises n values, given as doubles, into an activation row. */
bool ref_act_row(struct dev_stream *s, enum act_format f, const double *x, int n, void *row);
bool ref_act_values(struct dev_stream *s, enum act_format f, const void *row, int n, double *out);
double ref_dot(const double *a, const double *b, int64_t n);

/* ref_state.c */
struct dev_ring *ref_ring_create(struct dev *d, const struct ring_desc *desc);
void ref_ring_free(struct dev_ring *r);
size_t ref_ring_bytes(const struct dev *d, const struct ring_desc *desc);
void ref_ring_flip(struct dev_ring *r);
int ref_ring_copy(struct dev_ring *dst, const struct dev_ring *src);
void ref_ring_get(const struct dev_ring *r, int32_t pos, int n, void *dst);
void ref_ring_put(struct dev_ring *r, int32_t pos, int n, const void *src);
/* Committed row of a position. */
const double *ref_ring_row(const struct dev_ring *r, int32_t pos);
/* Writes a segment: x0 = row of its first position, x_stride doubles from row to row. Sets the error if it does not
 * fit. */
void ref_ring_write_segment(struct dev_stream *s, struct dev_ring *r, const struct segment *g, const double *x0,
                            size_t x_stride);
struct dev_store *ref_store_create(struct dev *d, const struct row_format *fmt);
void ref_store_free(struct dev_store *st);
size_t ref_store_bytes(const struct dev *d, const struct row_format *fmt, int64_t n_rows);
int ref_store_reserve(struct dev_store *st, int64_t from, int64_t to);
int ref_store_share(struct dev_store *dst, const struct dev_store *src, int64_t n);
void ref_store_get(const struct dev_store *st, int64_t row, int64_t n, void *dst);
void ref_store_put(struct dev_store *st, int64_t row, int64_t n, const void *src);
/* Row of a store, or NULL if it was not reserved. */
double *ref_store_row(const struct dev_store *st, int64_t row);

/* The operations of the table. */
void ref_embed(struct dev_stream *s, const struct embed_args *a);
void ref_rms_norm(struct dev_stream *s, const struct rms_norm_args *a);
void ref_act_quant(struct dev_stream *s, const struct act_quant_args *a);
void ref_matmul(struct dev_stream *s, const struct matmul_args *a);
void ref_rope(struct dev_stream *s, const struct rope_args *a);
void ref_hadamard(struct dev_stream *s, const struct hadamard_args *a);
void ref_round(struct dev_stream *s, const struct round_args *a);
void ref_pack(struct dev_stream *s, const struct pack_args *a);
void ref_ring_write(struct dev_stream *s, const struct ring_write_args *a);
void ref_compress(struct dev_stream *s, const struct compress_args *a);
void ref_select(struct dev_stream *s, const struct select_args *a);
void ref_attention(struct dev_stream *s, const struct attention_args *a);
void ref_router(struct dev_stream *s, const struct router_args *a);
void ref_moe(struct dev_stream *s, const struct moe_args *a);
void ref_hc_gates(struct dev_stream *s, const struct hc_gates_args *a);
void ref_hc_reduce(struct dev_stream *s, const struct hc_reduce_args *a);
void ref_hc_expand(struct dev_stream *s, const struct hc_expand_args *a);
void ref_hc_mix(struct dev_stream *s, const struct hc_mix_args *a);
void ref_gather(struct dev_stream *s, const struct gather_args *a);
void ref_element(struct dev_stream *s, const struct element_args *a);
void ref_decay(struct dev_stream *s, const struct decay_args *a);
void ref_conv(struct dev_stream *s, const struct conv_args *a);
void ref_delta_scan(struct dev_stream *s, const struct delta_scan_args *a);
void ref_memory_gate(struct dev_stream *s, const struct memory_gate_args *a);
void ref_store_write(struct dev_stream *s, const struct store_write_args *a);
void ref_pool(struct dev_stream *s, const struct pool_args *a);
void ref_attention_heads(struct dev_stream *s, const struct attention_heads_args *a);

/* ref_element.c: functions of one value. */
double ref_sigmoid(double x);
double ref_silu(double x);
double ref_softplus(double x);

/* ref_scan.c: state of a delta rule. */
struct dev_scan *ref_scan_create(struct dev *d, const struct scan_desc *desc);
void ref_scan_free(struct dev_scan *c);
size_t ref_scan_bytes(const struct dev *d, const struct scan_desc *desc);
size_t ref_scan_state_bytes(const struct dev *d, const struct scan_desc *desc);
void ref_scan_flip(struct dev_scan *c);
void ref_scan_replay(struct dev_stream *s, struct dev_scan *c, int from, int to);
int ref_scan_copy(struct dev_scan *dst, const struct dev_scan *src);
void ref_scan_get(const struct dev_scan *c, void *dst);
void ref_scan_put(struct dev_scan *c, const void *src);

#endif
