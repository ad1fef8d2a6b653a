/* How each operation is run on a bench: random inputs, the call, and what is compared afterwards and how closely.
 * Inputs and state are drawn before the first step, so that every cut into steps sees the same values. */
#ifndef OPS_RUNS_H
#define OPS_RUNS_H
#include "ops_bench.h"

/* The fields mean what the case's run function says. */
struct op_case {
    const char *op;
    void (*run)(struct bench *b, const struct op_case *c);
    enum qtype type, down;
    int k, rows, groups, width;
    int first, pairs;
    enum row_format_kind kind;
    int n_fp8;
    int ratio, top_k, span, slack, ahead;
    bool flag, other, far, more;
};

/* ---------------------------------------------------------------- rows */

/* type, k = width, groups = copies */
static void run_embed(struct bench *b, const struct op_case *c)
{
    struct dev_mat *table = kit_mat(&b->k, c->type, c->k, 11, NULL);
    while (bench_step(b)) {
        struct dev_buf *out = kit_floats(&b->k, b->n, c->groups, c->k);
        b->k.op->embed(b->k.stream, &(struct embed_args){.table = table, .out = out, .copies = c->groups, .n = b->n});
        result_rows(b, out, c->groups * c->k, 0);
    }
}

/* groups x width, flag: with weight, other: in place, more: a weight for each group */
static void run_rms_norm(struct bench *b, const struct op_case *c)
{
    const int row = c->groups * c->width;
    const float *x = kit_values(&b->k, (int64_t)b->h.n * row, 3);
    struct dev_mat *weight = c->flag ? kit_mat(&b->k, c->type, c->more ? row : c->width, 1, NULL) : NULL;
    while (bench_step(b)) {
        struct dev_buf *in = bench_input(b, x, 1, row), *out = c->other ? in : kit_floats(&b->k, b->n, 1, row);
        b->k.op->rms_norm(b->k.stream, &(struct rms_norm_args){.x = in,
                                                               .out = out,
                                                               .weight = weight,
                                                               .eps = 1e-6,
                                                               .groups = c->groups,
                                                               .width = c->width,
                                                               .each = c->more,
                                                               .n = b->n});
        result_rows(b, out, row, 1e-6);
    }
}

/* Size of the terms of one output of a matmul: the sum of magnitudes, and the size that a sum of terms with random
 * signs typically has. */
struct terms {
    double sum, typical;
};

static struct terms terms_of(const struct tensor_view *w, int64_t r, const float *x)
{
    float row[4096];
    double sum = 0, squares = 0;
    quant_type(w->type)->decode(w->data + (uint64_t)r * w->stride[1], row, w->ne[0]);
    for (int64_t i = 0; i < w->ne[0]; i++) {
        const double term = (double)row[i] * x[i];
        sum += fabs(term);
        squares += term * term;
    }
    return (struct terms){.sum = sum, .typical = sqrt(squares)};
}

/* Float weights: every output within a share of its sum of magnitudes. Quantised: of the row's largest output, or of a
 * typical one where a row has few. */
static void result_matmul(struct bench *b, const struct tensor_view *w, const float *x, int groups, const double *v)
{
    const int rows = (int)w->ne[1];
    const bool coded = quant_type(w->type)->act != ACT_F32;
    double size = 0;
    for (int r = 0; r < rows; r++) {
        const struct terms t = terms_of(w, r, x + r / (rows / groups) * w->ne[0]);
        size = fmax(size, fmax(fabs(v[r]), t.typical));
        if (!coded) result_add(b, v + r, 1, 1e-6)->scale = t.sum;
    }
    if (coded) result_add(b, v, rows, 1e-6)->scale = size;
}

/* type, k, rows, groups; width: values of out that no row of the weight fills; flag: x is one group in the buffer;
 * more: every group times the whole matrix */
static void run_matmul(struct bench *b, const struct op_case *c)
{
    const enum act_format act = quant_type(c->type)->act;
    const int row = c->groups * c->k, wide = (c->more ? c->groups : 1) * c->rows + c->width;
    const float *x = kit_values(&b->k, (int64_t)b->h.n * row, 2);
    const struct tensor_view w = kit_tensor(&b->k, c->type, c->k, c->rows, 1, NULL);
    struct dev_mat *m = kit_mat_of(&b->k, &w);
    while (bench_step(b)) {
        struct dev_buf *in = bench_input(b, x, c->flag ? 1 : c->groups, c->flag ? row : c->k);
        struct dev_buf *out = kit_floats(&b->k, b->n, 1, wide);
        if (act != ACT_F32) {
            struct dev_buf *coded = kit_buf(
                &b->k,
                (struct buf_desc){.kind = BUF_ACT, .rows = b->n, .groups = c->groups, .width = c->k, .act = act});
            b->k.op->act_quant(b->k.stream, &(struct act_quant_args){.x = in, .out = coded, .n = b->n});
            in = coded;
        }
        b->k.op->matmul(b->k.stream, &(struct matmul_args){.w = m, .x = in, .out = out, .each = c->more, .n = b->n});
        for (int i = 0; i < b->n; i++) {
            double *v = kit_memory(&b->k, (size_t)wide * sizeof *v);
            b->k.op->read_f64(b->k.stream, out, i, 1, v);
            kit_check(&b->k);
            const float *from = x + (int64_t)(b->r0 + i) * row;
            for (int g = 0; g < (c->more ? c->groups : 1); g++)
                result_matmul(b, &w, from + g * c->k, c->more ? 1 : c->groups, v + g * c->rows);
        }
    }
}

/* groups x width, first, pairs, flag: inverse, more: halves with axes and a magnitude */
static void run_rope(struct bench *b, const struct op_case *c)
{
    const float *x = kit_values(&b->k, (int64_t)b->h.n * c->groups * c->width, 1);
    struct dev_rope *rope = c->more ? kit_rope_halves(&b->k, c->pairs) : kit_rope_of(&b->k, c->pairs);
    while (bench_step(b)) {
        struct dev_buf *buf = bench_input(b, x, c->groups, c->width);
        b->k.op->rope(b->k.stream, &(struct rope_args){.x = buf,
                                                       .rope = rope,
                                                       .groups = c->groups,
                                                       .width = c->width,
                                                       .first = c->first,
                                                       .inverse = c->flag,
                                                       .n = b->n});
        result_rows(b, buf, c->groups * c->width, 1e-6);
    }
}

static void run_hadamard(struct bench *b, const struct op_case *c)
{
    const float *x = kit_values(&b->k, (int64_t)b->h.n * c->groups * c->width, 1);
    while (bench_step(b)) {
        struct dev_buf *buf = bench_input(b, x, c->groups, c->width);
        b->k.op->hadamard(b->k.stream,
                          &(struct hadamard_args){.x = buf, .groups = c->groups, .width = c->width, .n = b->n});
        result_rows(b, buf, c->groups * c->width, 1e-6);
    }
}

/* Values over many magnitudes, some of them zero. */
static float *spread(struct bench *b, int64_t n)
{
    float *x = kit_values(&b->k, n, 1);
    for (int64_t i = 0; i < n; i++) x[i] = i % 13 == 7 ? 0 : ldexpf(x[i], (int)(i / 32 % 24) - 16);
    return x;
}

/* kind, width, n_fp8, groups */
static void run_round(struct bench *b, const struct op_case *c)
{
    const float *x = spread(b, (int64_t)b->h.n * c->groups * c->width);
    while (bench_step(b)) {
        struct dev_buf *buf = bench_input(b, x, c->groups, c->width);
        b->k.op->round(b->k.stream,
                       &(struct round_args){
                           .x = buf, .fmt = kit_format(c->kind, c->width, c->n_fp8), .groups = c->groups, .n = b->n});
        result_rows(b, buf, c->groups * c->width, 0);
    }
}

/* ---------------------------------------------------------------- rings */

static struct dev_buf *packed(struct bench *b, struct row_format fmt, struct dev_buf *x)
{
    struct dev_buf *out = kit_buf(
        &b->k, (struct buf_desc){.kind = BUF_PACKED, .rows = b->n, .groups = 1, .width = fmt.width, .fmt = fmt});
    b->k.op->pack(b->k.stream, &(struct pack_args){.x = x, .out = out, .n = b->n});
    return out;
}

/* Packed rows become readable in a ring. kind, width, n_fp8 */
static void run_pack(struct bench *b, const struct op_case *c)
{
    const struct row_format fmt = kit_format(c->kind, c->width, c->n_fp8);
    const float *x = spread(b, (int64_t)b->h.n * c->width);
    bench_rings(b, 0, fmt, 1);
    while (bench_step(b)) {
        struct dev_buf *rows = packed(b, fmt, bench_input(b, x, 1, c->width));
        b->k.op->ring_write(b->k.stream, &(struct ring_write_args){.x = rows, .ring = b->seg_ring[0]});
        for (int i = 0; i < b->st.rows.n_segments; i++) {
            const struct segment *g = &b->st.seg[i];
            result_ring(b, 0, &fmt, g->slot, g->pos0, g->n, 0);
        }
    }
}

/* kind, width, n_fp8, span; flag: packed rows */
static void run_ring_write(struct bench *b, const struct op_case *c)
{
    const struct row_format fmt = kit_format(c->kind, c->width, c->n_fp8);
    const float *x = spread(b, (int64_t)b->h.n * c->width);
    bench_rings(b, 0, fmt, c->span);
    while (bench_step(b)) {
        struct dev_buf *rows = bench_input(b, x, 1, c->width);
        if (c->flag) rows = packed(b, fmt, rows);
        b->k.op->ring_write(b->k.stream, &(struct ring_write_args){.x = rows, .ring = b->seg_ring[0]});
        bench_commit(b);
    }
    result_rings(b, 0, &fmt, c->span, 0);
}

/* ---------------------------------------------------------------- compressor, selection, attention */

/* ratio, width, flag: overlap, pairs, other: hadamard, kind and n_fp8 of the store */
static void run_compress(struct bench *b, const struct op_case *c)
{
    const int row = c->flag ? 2 * c->width : c->width, span = c->flag ? 2 * c->ratio : c->ratio;
    const struct row_format state = kit_format(ROWFMT_F32, row, 0), fmt = kit_format(c->kind, c->width, c->n_fp8);
    const float *kv = kit_values(&b->k, (int64_t)b->h.n * row, 2), *gate = kit_values(&b->k, (int64_t)b->h.n * row, 3);
    struct compress_args a = {.ape = kit_mat(&b->k, c->type, row, c->ratio, NULL),
                              .norm = kit_vector(&b->k, c->width, NULL),
                              .eps = 1e-6,
                              .ratio = c->ratio,
                              .w = c->width,
                              .overlap = c->flag,
                              .rope = kit_rope_of(&b->k, c->pairs),
                              .hadamard = c->other,
                              .ring_kv = b->seg_ring[0],
                              .ring_score = b->seg_ring[1],
                              .store = b->seg_store};
    bench_rings(b, 0, state, span);
    bench_rings(b, 1, state, span);
    bench_stores(b, fmt, c->ratio, false);
    while (bench_step(b)) {
        a.kv = bench_input(b, kv, 1, row);
        a.gate = bench_input(b, gate, 1, row);
        b->k.op->compress(b->k.stream, &a);
        kit_check(&b->k);
        bench_commit(b);
    }
    for (int slot = 0; slot < KIT_SLOTS; slot++) {
        const int64_t from = b->h.start[slot] / c->ratio, to = history_end(&b->h, slot) / c->ratio;
        const double *v = kit_store_values(&b->k, b->store[slot], &fmt, from, to - from);
        for (int64_t i = 0; i < to - from; i++) result_add(b, v + i * c->width, c->width, 1e-5);
    }
    result_rings(b, 0, &state, span, 0);
    result_rings(b, 1, &state, span, 1e-6);
}

/* groups = heads, width, kind, ratio, top_k; flag: all scores are equal; more: no weights */
static void run_select(struct bench *b, const struct op_case *c)
{
    const float *q = kit_values(&b->k, (int64_t)b->h.n * c->groups * c->width, c->flag ? 0 : 1);
    const float *weight = kit_values(&b->k, (int64_t)b->h.n * c->groups, 1);
    bench_stores(b, kit_format(c->kind, c->width, 0), c->ratio, true);
    while (bench_step(b)) {
        struct dev_buf *out = kit_ints(&b->k, b->n, 1 + c->top_k, NULL);
        b->k.op->select(b->k.stream,
                        &(struct select_args){.q = bench_input(b, q, c->groups, c->width),
                                              .weight = c->more ? NULL : bench_input(b, weight, 1, c->groups),
                                              .scale = 0.125,
                                              .store = b->seg_store,
                                              .ratio = c->ratio,
                                              .top_k = c->top_k,
                                              .out = out,
                                              .n = b->n});
        for (int i = 0; i < b->n; i++) {
            const int want = (b->st.pos[i] + 1) / c->ratio > c->top_k ? c->top_k : -1;
            result_ids(b, out, 1 + c->top_k, i, want > 0 ? 1 + want : 1);
            assert_true(b->out->v[b->out->n_values - (size_t)(want > 0 ? 1 + want : 1)] == want);
        }
    }
}

/* Per row: every second visible compressed row (also: the first one), or all of them in every third row. */
static struct dev_buf *some_rows(struct bench *b, int ratio, int top_k, bool also)
{
    int32_t *list = kit_memory(&b->k, (size_t)b->n * (size_t)(1 + top_k) * sizeof *list);
    for (int i = 0; i < b->n; i++) {
        int32_t *row = list + (int64_t)i * (1 + top_k);
        if ((b->r0 + i) % 3 == 2) {
            row[0] = -1;
            continue;
        }
        for (int c = also ? 0 : b->st.pos[i] % 2; c < (b->st.pos[i] + 1) / ratio && row[0] < top_k; c += 2)
            row[1 + row[0]++] = c;
    }
    return kit_ints(&b->k, b->n, 1 + top_k, list);
}

/* Rows from `row` on of a buffer. */
static struct dev_buf *view_of(struct bench *b, const struct dev_buf *of, int row)
{
    struct dev_buf *v = kit_own(&b->k, KIT_BUF, b->k.op->view_create(b->k.dev));
    b->k.op->view_set(v, of, row);
    return v;
}

/* Attention of the step in two parts, in place: a->out is a->q. */
static void attention_parts(struct bench *b, const struct attention_args *a)
{
    const int cut = b->n / 3;
    const struct rows *all = &b->st.rows;
    for (int row = 0; row < b->n; row = row ? b->n : cut ? cut : b->n) {
        struct attention_args x = *a;
        struct rows part = *all;
        x.n = part.n = row ? b->n - row : cut ? cut : b->n;
        part.token += row, part.segment += row, part.pos += row, part.rope_pos += 3 * row;
        part.raw_first += row, part.raw_last += row;
        x.q = x.out = view_of(b, a->out, row);
        if (a->selected) x.selected = view_of(b, a->selected, row);
        b->k.op->set_rows(b->k.stream, &part);
        b->k.op->attention(b->k.stream, &x);
    }
    b->k.op->set_rows(b->k.stream, all);
}

/* groups = heads, width, kind, n_fp8, span = window; ratio 0: no compressed rows; top_k: with a selection; more: in
 * parts and in place; pairs: queries are normed and rotated by the op, halves if flag */
static void run_attention(struct bench *b, const struct op_case *c)
{
    const struct row_format fmt = kit_format(c->kind, c->width, c->n_fp8);
    const int row = c->groups * c->width;
    const float *q = kit_values(&b->k, (int64_t)b->h.n * row, 2),
                *raw = kit_values(&b->k, (int64_t)b->h.n * c->width, 1);
    struct dev_mat *sinks = kit_vector(&b->k, c->groups, NULL);
    struct dev_rope *rope = !c->pairs ? NULL
                            : c->flag ? kit_rope_halves(&b->k, c->pairs)
                                      : kit_rope_of(&b->k, c->pairs);
    bench_rings(b, 0, fmt, c->span);
    if (c->ratio) bench_stores(b, fmt, c->ratio, true);
    while (bench_step(b)) {
        struct dev_buf *rows = packed(b, fmt, bench_input(b, raw, 1, c->width));
        struct dev_buf *in = bench_input(b, q, c->groups, c->width);
        struct dev_buf *out = c->more ? in : kit_floats(&b->k, b->n, c->groups, c->width);
        const struct attention_args a = {.q = in,
                                         .rope = rope,
                                         .eps = 1e-6,
                                         .raw = rows,
                                         .ring = b->seg_ring[0],
                                         .store = c->ratio ? b->seg_store : NULL,
                                         .ratio = c->ratio,
                                         .selected = c->top_k ? some_rows(b, c->ratio, c->top_k, false) : NULL,
                                         .sinks = sinks,
                                         .scale = 1 / sqrt(c->width),
                                         .out = out,
                                         .n = b->n};
        if (c->more)
            attention_parts(b, &a);
        else
            b->k.op->attention(b->k.stream, &a);
        result_rows(b, out, row, 1e-5);
        b->k.op->ring_write(b->k.stream, &(struct ring_write_args){.x = rows, .ring = b->seg_ring[0]});
        bench_commit(b);
    }
}

/* ---------------------------------------------------------------- experts */

/* rows = experts, k; flag: bias, other: table by token; width: not normalised if 0; top_k: logits are whole numbers, so
 * that many are equal; more: softmax */
static void run_router(struct bench *b, const struct op_case *c)
{
    float *logits = kit_values(&b->k, (int64_t)b->h.n * (c->rows + 1), 6);
    for (int i = 0; c->top_k && i < b->h.n * (c->rows + 1); i++) logits[i] = floorf(logits[i]);
    struct dev_mat *bias = c->flag ? kit_vector(&b->k, c->rows, NULL) : NULL;
    int32_t table[11 * 8];
    for (int i = 0; i < 11 * c->k; i++)
        table[i] = (int32_t)(((uint32_t)i / (uint32_t)c->k * 5 + (uint32_t)i % (uint32_t)c->k * 3) % (uint32_t)c->rows);
    struct dev_mat *by_token = c->other ? kit_id_table(&b->k, c->k, 11, table) : NULL;
    while (bench_step(b)) {
        struct dev_buf *ids = kit_ints(&b->k, b->n, c->k + 1, NULL), *weight = kit_floats(&b->k, b->n, 1, c->k + 2);
        b->k.op->router(b->k.stream, &(struct router_args){.score = c->more ? ROUTER_SOFTMAX : ROUTER_SQRT_SOFTPLUS,
                                                           .logits = bench_input(b, logits, 1, c->rows + 1),
                                                           .experts = c->rows,
                                                           .bias = bias,
                                                           .table = by_token,
                                                           .k = c->k,
                                                           .scale = 1.5,
                                                           .floor = 0x1p-14,
                                                           .normalise = c->width > 0,
                                                           .ids = ids,
                                                           .weight = weight,
                                                           .n = b->n});
        for (int i = 0; i < b->n; i++) {
            result_ids(b, ids, c->k + 1, i, c->k);
            result_row(b, weight, c->k + 2, i, c->k, 1e-5);
        }
    }
}

/* Distinct ids of every row in random order. */
static int32_t *random_ids(struct bench *b, int experts, int k)
{
    int32_t *ids = kit_memory(&b->k, (size_t)b->h.n * (size_t)k * sizeof *ids);
    for (int i = 0; i < b->h.n; i++)
        for (int j = 0; j < k; j++) {
            bool taken = true;
            while (taken) {
                ids[i * k + j] = (int32_t)(kit_bits(&b->k) % (uint64_t)experts);
                taken = false;
                for (int o = 0; o < j; o++) taken |= ids[i * k + o] == ids[i * k + j];
            }
        }
    return ids;
}

/* A stack of matrices whose outputs are about as large as their inputs. */
static struct tensor_view even_matrix(struct bench *b, enum qtype type, int k, int rows, int n)
{
    return kit_tensor(&b->k, type, k, rows, n, kit_values(&b->k, (int64_t)k * rows * n, 1 / sqrt(k)));
}

/* type (gate, up), down, k = D, width = F, rows = experts, groups = experts per row; flag: shared expert, other: mid,
 * else in place; first: shared width; top_k: clamp in tenths; more: the shared expert has a weight; span: rows of
 * down are padded to so many */
static void run_moe(struct bench *b, const struct op_case *c)
{
    const struct expert_layer layer = {even_matrix(b, c->type, c->k, c->width, c->rows),
                                       even_matrix(b, c->type, c->k, c->width, c->rows),
                                       even_matrix(b, c->down, c->span ? c->span : c->width, c->k, c->rows)};
    struct moe_args a = {.k = c->groups, .clamp = c->top_k / 10.0, .shared_clamp = c->top_k / 10.0};
    assert_int_equal(
        experts_open_resident((const struct expert_layer[]){{.gate = {.data = NULL}}, layer}, 2, &a.experts, NULL), 0);
    kit_own(&b->k, KIT_EXPERTS, a.experts);
    a.layer = 1;
    if (c->flag) {
        const struct tensor_view gate = even_matrix(b, c->type, c->k, c->first, 1),
                                 up = even_matrix(b, c->type, c->k, c->first, 1);
        const struct tensor_view down = even_matrix(b, c->down, c->first, c->k, 1);
        a.shared_gate = kit_mat_of(&b->k, &gate);
        a.shared_up = kit_mat_of(&b->k, &up);
        a.shared_down = kit_mat_of(&b->k, &down);
    }
    const float *x = kit_values(&b->k, (int64_t)b->h.n * c->k, 2);
    float *weight = kit_values(&b->k, (int64_t)b->h.n * c->groups, 1);
    const int32_t *ids = random_ids(b, c->rows, c->groups);
    const float *shared = c->more ? kit_values(&b->k, b->h.n, 1) : NULL;
    const bool coded = quant_type(c->down)->act != ACT_F32;
    while (bench_step(b)) {
        struct dev_buf *in = bench_input(b, x, 1, c->k);
        a.x = in;
        a.ids = kit_ints(&b->k, b->n, c->groups, ids + (int64_t)b->r0 * c->groups);
        a.weight = bench_input(b, weight, 1, c->groups);
        a.out = c->other ? kit_floats(&b->k, b->n, 1, c->k) : in;
        a.shared_weight = c->more ? bench_input(b, shared, 1, 1) : NULL;
        a.mid = c->other ? kit_floats(&b->k, b->n, c->groups, c->width) : NULL;
        a.n = b->n;
        b->k.op->moe(b->k.stream, &a);
        for (int i = 0; i < b->n; i++) {
            result_row(b, a.out, c->k, i, c->k, 1e-5)->coded = coded;
            if (c->other) result_row(b, a.mid, c->groups * c->width, i, c->groups * c->width, 1e-5);
        }
    }
}

/* ---------------------------------------------------------------- hyper-connections, copies */

/* groups = streams, rows = iterations, flag: head */
static void run_hc_gates(struct bench *b, const struct op_case *c)
{
    const int m = c->groups, row = c->flag ? m : 2 * m + m * m;
    const float *x = kit_values(&b->k, (int64_t)b->h.n * row, 2);
    struct dev_mat *base = kit_vector(&b->k, row, NULL), *scale = kit_vector(&b->k, c->flag ? 1 : 3, NULL);
    while (bench_step(b)) {
        struct dev_buf *mix = bench_input(b, x, 1, row);
        b->k.op->hc_gates(b->k.stream, &(struct hc_gates_args){.mix = mix,
                                                               .base = base,
                                                               .scale = scale,
                                                               .streams = m,
                                                               .iterations = c->rows,
                                                               .eps = 1e-6,
                                                               .head = c->flag,
                                                               .n = b->n});
        result_rows(b, mix, row, 1e-5);
    }
}

/* groups = streams, width; more: the mean */
static void run_hc_reduce(struct bench *b, const struct op_case *c)
{
    const int m = c->groups, gates = 2 * m + m * m;
    const float *x = kit_values(&b->k, (int64_t)b->h.n * m * c->width, 1);
    const float *g = kit_values(&b->k, (int64_t)b->h.n * gates, 1);
    while (bench_step(b)) {
        struct dev_buf *out = kit_floats(&b->k, b->n, 1, c->width);
        b->k.op->hc_reduce(b->k.stream, &(struct hc_reduce_args){.x = bench_input(b, x, m, c->width),
                                                                 .gates = c->more ? NULL : bench_input(b, g, 1, gates),
                                                                 .out = out,
                                                                 .streams = m,
                                                                 .n = b->n});
        result_rows(b, out, c->width, 1e-6);
    }
}

/* groups = streams, width; more: streams stay apart; flag: without gates */
static void run_hc_expand(struct bench *b, const struct op_case *c)
{
    const int m = c->groups, gates = 2 * m + m * m;
    const float *x = kit_values(&b->k, (int64_t)b->h.n * m * c->width, 1);
    const float *g = kit_values(&b->k, (int64_t)b->h.n * gates, 1),
                *y = kit_values(&b->k, (int64_t)b->h.n * c->width, 1);
    while (bench_step(b)) {
        struct dev_buf *streams = bench_input(b, x, m, c->width);
        b->k.op->hc_expand(b->k.stream, &(struct hc_expand_args){.y = bench_input(b, y, 1, c->width),
                                                                 .gates = c->flag ? NULL : bench_input(b, g, 1, gates),
                                                                 .x = streams,
                                                                 .streams = m,
                                                                 .apart = c->more,
                                                                 .n = b->n});
        result_rows(b, streams, m * c->width, 1e-6);
    }
}

/* type of fn, groups = streams, width, rows = iterations; flag: head; other: with y, which is out */
static void run_hc_mix(struct bench *b, const struct op_case *c)
{
    const int m = c->groups, gates = 2 * m + m * m, row = c->flag ? m : gates, values = m * c->width;
    const float *x = kit_values(&b->k, (int64_t)b->h.n * values, 1);
    const float *g = kit_values(&b->k, (int64_t)b->h.n * gates, 1),
                *y = kit_values(&b->k, (int64_t)b->h.n * c->width, 1);
    struct dev_mat *fn = kit_mat(&b->k, c->type, values, row, NULL), *weight = kit_vector(&b->k, c->width, NULL);
    struct dev_mat *base = kit_vector(&b->k, row, NULL), *scale = kit_vector(&b->k, c->flag ? 1 : 3, NULL);
    while (bench_step(b)) {
        struct dev_buf *streams = bench_input(b, x, m, c->width), *mix = bench_input(b, g, 1, gates);
        struct dev_buf *out = c->other ? bench_input(b, y, 1, c->width) : kit_floats(&b->k, b->n, 1, c->width);
        b->k.op->hc_mix(b->k.stream, &(struct hc_mix_args){.y = c->other ? out : NULL,
                                                           .x = streams,
                                                           .mix = mix,
                                                           .out = out,
                                                           .fn = fn,
                                                           .base = base,
                                                           .scale = scale,
                                                           .weight = weight,
                                                           .streams = m,
                                                           .iterations = c->rows,
                                                           .eps = 1e-6,
                                                           .hc_eps = 1e-5,
                                                           .head = c->flag,
                                                           .n = b->n});
        for (int i = 0; i < b->n; i++) {
            result_row(b, streams, values, i, values, 1e-6);
            result_row(b, mix, gates, i, row, 1e-5);
            result_row(b, out, c->width, i, c->width, 1e-5);
        }
    }
}

/* groups x width; flag: integers */
static void run_gather(struct bench *b, const struct op_case *c)
{
    const int row = c->groups * c->width;
    const float *x = kit_values(&b->k, (int64_t)b->h.n * row, 1);
    int32_t *ids = kit_memory(&b->k, (size_t)(b->h.n * row) * sizeof *ids);
    for (int i = 0; i < b->h.n * row; i++) ids[i] = 7 * i;
    struct dev_buf *all =
        c->flag ? kit_ints(&b->k, b->h.n, row, ids) : kit_filled(&b->k, b->h.n, c->groups, c->width, x);
    while (bench_step(b)) {
        struct dev_buf *out = c->flag ? kit_ints(&b->k, b->n, row, NULL) : kit_floats(&b->k, b->n, c->groups, c->width);
        int list[KIT_ROWS];
        for (int i = 0; i < b->n; i++) list[i] = (b->r0 + i) * 5 % b->h.n;
        b->k.op->gather(b->k.stream, &(struct gather_args){.x = all, .out = out, .row = list, .n = b->n});
        if (!c->flag) result_rows(b, out, row, 0);
        for (int i = 0; i < b->n && c->flag; i++) result_ids(b, out, row, i, row);
    }
}

/* ---------------------------------------------------------------- value by value */

/* first = kind, groups x width; flag: in place of x, other: in place of y */
static void run_element(struct bench *b, const struct op_case *c)
{
    const int64_t n = (int64_t)b->h.n * c->groups * c->width;
    const float *x = kit_values(&b->k, n, 3), *y = kit_values(&b->k, n, 3);
    while (bench_step(b)) {
        struct dev_buf *in = bench_input(b, x, c->groups, c->width), *second = bench_input(b, y, c->groups, c->width);
        struct dev_buf *out = c->flag ? in : c->other ? second : kit_floats(&b->k, b->n, c->groups, c->width);
        b->k.op->element(b->k.stream, &(struct element_args){.kind = (enum element_kind)c->first,
                                                             .x = in,
                                                             .y = second,
                                                             .out = out,
                                                             .scale = 0.75,
                                                             .factor = 2,
                                                             .n = b->n});
        result_rows(b, out, c->groups * c->width, 1e-6);
    }
}

static void run_decay(struct bench *b, const struct op_case *c)
{
    const float *x = kit_values(&b->k, (int64_t)b->h.n * c->width, 8);
    float *rate = kit_values(&b->k, c->width, 1);
    for (int i = 0; i < c->width; i++) rate[i] = -fabsf(rate[i]);
    struct dev_mat *a = kit_vector(&b->k, c->width, rate), *bias = kit_vector(&b->k, c->width, NULL);
    while (bench_step(b)) {
        struct dev_buf *buf = bench_input(b, x, 1, c->width);
        b->k.op->decay(b->k.stream, &(struct decay_args){.x = buf, .out = buf, .a = a, .bias = bias, .n = b->n});
        result_rows(b, buf, c->width, 1e-6);
    }
}

/* groups = streams, width */
static void run_memory_gate(struct bench *b, const struct op_case *c)
{
    const int row = c->groups * c->width;
    float *key = kit_values(&b->k, (int64_t)b->h.n * row, 1), *query = kit_values(&b->k, (int64_t)b->h.n * row, 1);
    const float *value = kit_values(&b->k, (int64_t)b->h.n * c->width, 1);
    memset(key, 0, (size_t)row * sizeof *key); /* a product of exactly 0 */
    while (bench_step(b)) {
        struct dev_buf *out = kit_floats(&b->k, b->n, c->groups, c->width);
        b->k.op->memory_gate(b->k.stream,
                             &(struct memory_gate_args){.key = bench_input(b, key, c->groups, c->width),
                                                        .query = bench_input(b, query, c->groups, c->width),
                                                        .value = bench_input(b, value, 1, c->width),
                                                        .out = out,
                                                        .streams = c->groups,
                                                        .n = b->n});
        result_rows(b, out, row, 1e-5);
    }
}

/* ---------------------------------------------------------------- walks over rows */

/* width, k = taps, ratio = dilation, flag: silu */
static void run_conv(struct bench *b, const struct op_case *c)
{
    const int span = (c->k - 1) * c->ratio;
    const struct row_format state = kit_format(ROWFMT_F32, c->width, 0);
    const float *x = kit_values(&b->k, (int64_t)b->h.n * c->width, 1);
    struct dev_mat *weight = kit_mat(&b->k, c->type, c->k, c->width, NULL);
    if (span) bench_rings(b, 0, state, span);
    while (bench_step(b)) {
        struct dev_buf *out = kit_floats(&b->k, b->n, 1, c->width);
        b->k.op->conv(b->k.stream, &(struct conv_args){.x = bench_input(b, x, 1, c->width),
                                                       .out = out,
                                                       .weight = weight,
                                                       .taps = c->k,
                                                       .dilation = c->ratio,
                                                       .silu = c->flag,
                                                       .ring = b->seg_ring[0]});
        result_rows(b, out, c->width, 1e-5);
        bench_commit(b);
    }
    if (span) result_rings(b, 0, &state, span, 0);
}

/* Makes a step's rows history: by the other bank, or, every second time where rows were kept, by going through them. */
static void scans_commit(struct bench *b)
{
    for (int i = 0; i < b->st.rows.n_segments; i++) {
        const struct segment *g = &b->st.seg[i];
        if (g->bulk || g->n % 2) {
            b->k.op->scan_flip(b->seg_scan[i]);
            continue;
        }
        b->k.op->scan_replay(b->k.stream, b->seg_scan[i], 0, g->n / 2);
        b->k.op->scan_replay(b->k.stream, b->seg_scan[i], g->n / 2, g->n);
    }
}

/* groups = key heads, rows = value heads, width */
static void run_delta_scan(struct bench *b, const struct op_case *c)
{
    const struct scan_desc d = {.key_heads = c->groups, .value_heads = c->rows, .width = c->width, .slack = b->h.slack};
    const int row = (2 * c->groups + c->rows) * c->width, all = c->rows * c->width * c->width;
    const struct row_format fmt = kit_format(ROWFMT_F32, all, 0);
    const float *x = kit_values(&b->k, (int64_t)b->h.n * row, 1),
                *beta = kit_values(&b->k, (int64_t)b->h.n * c->rows, 0.3);
    float *decay = kit_values(&b->k, (int64_t)b->h.n * c->rows, 1);
    for (int i = 0; i < b->h.n * c->rows; i++) decay[i] = expf(-fabsf(decay[i]));
    bench_scans(b, &d);
    while (bench_step(b)) {
        struct dev_buf *out = kit_floats(&b->k, b->n, c->rows, c->width);
        b->k.op->delta_scan(b->k.stream, &(struct delta_scan_args){.x = bench_input(b, x, 1, row),
                                                                   .decay = bench_input(b, decay, 1, c->rows),
                                                                   .beta = bench_input(b, beta, 1, c->rows),
                                                                   .eps = 1e-6,
                                                                   .scale = 0.5,
                                                                   .scan = b->seg_scan,
                                                                   .out = out});
        result_rows(b, out, c->rows * c->width, 1e-5);
        scans_commit(b);
        kit_check(&b->k);
    }
    for (int slot = 0; slot < KIT_SLOTS; slot++) {
        double *v = kit_memory(&b->k, (size_t)all * sizeof *v);
        void *bytes = kit_memory(&b->k, b->k.op->scan_state_bytes(b->k.dev, &d));
        b->k.op->scan_get(b->scan[slot], bytes);
        kit_decoded(&b->k, &fmt, bytes, 1, v);
        result_add(b, v, all, 1e-5);
    }
}

/* ---------------------------------------------------------------- rows of their own keys and values */

static void result_store(struct bench *b, const struct row_format *fmt, int ratio, double limit, bool coded)
{
    for (int slot = 0; slot < KIT_SLOTS; slot++) {
        const int64_t from = b->h.start[slot] / ratio, to = history_end(&b->h, slot) / ratio;
        const double *v = kit_store_values(&b->k, b->store[slot], fmt, from, to - from);
        for (int64_t i = 0; i < to - from; i++) result_add(b, v + i * fmt->width, fmt->width, limit)->coded = coded;
    }
}

/* groups x width and, with flag, k values more; kind */
static void run_store_write(struct bench *b, const struct op_case *c)
{
    const int row = c->groups * c->width;
    const struct row_format fmt = kit_format(c->kind, row + (c->flag ? c->k : 0), 0);
    const float *x = kit_values(&b->k, (int64_t)b->h.n * row, 2),
                *y = kit_values(&b->k, (int64_t)b->h.n * (c->k + 1), 2);
    bench_stores(b, fmt, 1, false);
    while (bench_step(b)) {
        b->k.op->store_write(b->k.stream, &(struct store_write_args){.x = bench_input(b, x, c->groups, c->width),
                                                                     .y = c->flag ? bench_input(b, y, 1, c->k) : NULL,
                                                                     .store = b->seg_store});
        kit_check(&b->k);
    }
    result_store(b, &fmt, 1, 0, false);
}

/* ratio, width, pairs, kind */
static void run_pool(struct bench *b, const struct op_case *c)
{
    const struct row_format state = kit_format(ROWFMT_F32, c->width, 0), fmt = kit_format(c->kind, c->width, 0);
    const float *x = kit_values(&b->k, (int64_t)b->h.n * c->width, 1);
    struct pool_args a = {.norm = kit_vector(&b->k, c->width, NULL),
                          .eps = 1e-6,
                          .ratio = c->ratio,
                          .rope = kit_rope_halves(&b->k, c->pairs),
                          .ring = b->seg_ring[0],
                          .store = b->seg_store};
    bench_rings(b, 0, state, c->ratio);
    bench_stores(b, fmt, c->ratio, false);
    while (bench_step(b)) {
        a.x = bench_input(b, x, 1, c->width);
        b->k.op->pool(b->k.stream, &a);
        kit_check(&b->k);
        bench_commit(b);
    }
    result_store(b, &fmt, c->ratio, 1e-5, c->kind == ROWFMT_F16);
    result_rings(b, 0, &state, c->ratio, 0);
}

/* groups = heads, k = kv heads, width, kind; ratio = rows of a block; top_k: with a selection of blocks; more: in place
 */
static void run_attention_heads(struct bench *b, const struct op_case *c)
{
    const int row = c->groups * c->width;
    const float *q = kit_values(&b->k, (int64_t)b->h.n * row, 2);
    bench_stores(b, kit_format(c->kind, 2 * c->k * c->width, 0), 1, true);
    while (bench_step(b)) {
        struct dev_buf *in = bench_input(b, q, c->groups, c->width);
        struct dev_buf *out = c->more ? in : kit_floats(&b->k, b->n, c->groups, c->width);
        b->k.op->attention_heads(b->k.stream, &(struct attention_heads_args){
                                                  .q = in,
                                                  .kv_heads = c->k,
                                                  .store = b->seg_store,
                                                  .block = c->ratio,
                                                  .selected = c->top_k ? some_rows(b, c->ratio, c->top_k, true) : NULL,
                                                  .scale = 1 / sqrt(c->width),
                                                  .out = out,
                                                  .n = b->n});
        result_rows(b, out, row, 1e-5);
    }
}

#endif
