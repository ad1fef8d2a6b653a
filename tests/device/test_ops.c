/* Every operation of device cpu against the judge, on random inputs and odd shapes; and, bit by bit, against itself:
 * rows at once or one by one, any number of threads, any kernel set. Sessions of one to three segments per step. */
#include "ops_runs.h"
#include "base/topology.h"
#include <stdio.h>

/* ---------------------------------------------------------------- the table */

#define MATMUL(t, k_, rows_, groups_, pad)                                                                             \
    {                                                                                                                  \
        .op = "matmul", .run = run_matmul, .type = t, .k = k_, .rows = rows_, .groups = groups_, .width = pad          \
    }
#define MOE(t, d, D, F, E, K, ...)                                                                                     \
    {                                                                                                                  \
        .op = "moe", .run = run_moe, .type = t, .down = d, .k = D, .width = F, .rows = E, .groups = K, __VA_ARGS__     \
    }

static const struct op_case cases[] = {
    {.op = "embed", .run = run_embed, .type = QT_F32, .k = 37, .groups = 1},
    {.op = "embed", .run = run_embed, .type = QT_F16, .k = 37, .groups = 4},
    {.op = "embed", .run = run_embed, .type = QT_BF16, .k = 1, .groups = 3},
    {.op = "embed", .run = run_embed, .type = QT_Q8_0, .k = 96, .groups = 2},
    {.op = "embed", .run = run_embed, .type = QT_Q6_K, .k = 512, .groups = 1},

    {.op = "rms_norm", .run = run_rms_norm, .type = QT_F32, .groups = 1, .width = 1, .flag = true},
    {.op = "rms_norm", .run = run_rms_norm, .type = QT_F32, .groups = 3, .width = 37, .flag = true},
    {.op = "rms_norm", .run = run_rms_norm, .type = QT_F16, .groups = 2, .width = 80, .flag = true, .other = true},
    {.op = "rms_norm", .run = run_rms_norm, .groups = 4, .width = 80},
    {.op = "rms_norm", .run = run_rms_norm, .groups = 1, .width = 2600, .other = true},

    {.op = "act_quant", .run = run_matmul, .type = QT_Q8_0, .k = 32, .rows = 1, .groups = 1},
    {.op = "act_quant", .run = run_matmul, .type = QT_Q8_0, .k = 96, .rows = 9, .groups = 3, .flag = true},
    {.op = "act_quant", .run = run_matmul, .type = QT_Q4_K, .k = 512, .rows = 6, .groups = 2, .flag = true},

    MATMUL(QT_F32, 1, 1, 1, 0),
    MATMUL(QT_F32, 33, 5, 1, 2),
    MATMUL(QT_F32, 1030, 37, 1, 0),
    MATMUL(QT_F32, 7, 12, 4, 0),
    MATMUL(QT_F16, 15, 3, 1, 0),
    MATMUL(QT_F16, 257, 34, 2, 1),
    MATMUL(QT_F16, 2100, 24, 1, 0),
    MATMUL(QT_BF16, 65, 11, 1, 3),
    MATMUL(QT_BF16, 1024, 18, 2, 0),
    {.op = "matmul", .run = run_matmul, .type = QT_F16, .k = 148, .rows = 24, .groups = 2, .flag = true},
    /* an output that goes past the caches, but for the last rows of the weights */
    MATMUL(QT_Q8_0, 32, 31815, 1, 0),
    MATMUL(QT_Q8_0, 32, 1, 1, 0),
    MATMUL(QT_Q8_0, 96, 37, 1, 5),
    MATMUL(QT_Q8_0, 1056, 66, 2, 0),
    MATMUL(QT_Q4_0, 32, 3, 1, 0),
    MATMUL(QT_Q4_0, 288, 35, 1, 1),
    MATMUL(QT_Q4_0, 64, 40, 4, 0),
    MATMUL(QT_MXFP4, 32, 2, 1, 0),
    MATMUL(QT_MXFP4, 224, 33, 3, 0),
    MATMUL(QT_Q2_K, 256, 1, 1, 0),
    MATMUL(QT_Q2_K, 768, 37, 1, 0),
    MATMUL(QT_Q4_K, 256, 5, 1, 0),
    MATMUL(QT_Q4_K, 768, 38, 2, 3),
    MATMUL(QT_Q5_K, 256, 7, 1, 0),
    MATMUL(QT_Q5_K, 512, 17, 1, 0),
    MATMUL(QT_Q6_K, 256, 7, 1, 0),
    MATMUL(QT_Q6_K, 768, 19, 1, 0),
    MATMUL(QT_IQ2_XXS, 256, 3, 1, 0),
    MATMUL(QT_IQ2_XXS, 512, 21, 1, 0),

    {.op = "rope", .run = run_rope, .groups = 1, .width = 80, .first = 64, .pairs = 8},
    {.op = "rope", .run = run_rope, .groups = 3, .width = 37, .first = 5, .pairs = 13, .flag = true},
    {.op = "rope", .run = run_rope, .groups = 2, .width = 2, .first = 0, .pairs = 1, .far = true},
    {.op = "rope", .run = run_rope, .groups = 5, .width = 64, .first = 0, .pairs = 32, .far = true, .flag = true},

    {.op = "hadamard", .run = run_hadamard, .groups = 1, .width = 1},
    {.op = "hadamard", .run = run_hadamard, .groups = 3, .width = 2},
    {.op = "hadamard", .run = run_hadamard, .groups = 2, .width = 32},
    {.op = "hadamard", .run = run_hadamard, .groups = 5, .width = 128},

    {.op = "round", .run = run_round, .kind = ROWFMT_FP8, .groups = 1, .width = 64, .n_fp8 = 64},
    {.op = "round", .run = run_round, .kind = ROWFMT_FP8, .groups = 2, .width = 145, .n_fp8 = 128},
    {.op = "round", .run = run_round, .kind = ROWFMT_FP4, .groups = 3, .width = 32},
    {.op = "round", .run = run_round, .kind = ROWFMT_FP4, .groups = 1, .width = 128},
    {.op = "round", .run = run_round, .kind = ROWFMT_F32, .groups = 1, .width = 7},

    {.op = "pack", .run = run_pack, .kind = ROWFMT_FP8, .width = 80, .n_fp8 = 64, .slack = 40},
    {.op = "pack", .run = run_pack, .kind = ROWFMT_FP8, .width = 201, .n_fp8 = 192, .slack = 40},
    {.op = "pack", .run = run_pack, .kind = ROWFMT_FP4, .width = 96, .slack = 40},
    {.op = "pack", .run = run_pack, .kind = ROWFMT_F32, .width = 5, .slack = 40},

    {.op = "ring_write", .run = run_ring_write, .kind = ROWFMT_F32, .width = 5, .span = 8, .slack = 40},
    {.op = "ring_write", .run = run_ring_write, .kind = ROWFMT_F32, .width = 5, .span = 8, .slack = 1},
    {.op = "ring_write", .run = run_ring_write, .kind = ROWFMT_F32, .width = 1, .span = 30, .slack = 2, .flag = true},
    {.op = "ring_write",
     .run = run_ring_write,
     .kind = ROWFMT_FP8,
     .width = 80,
     .n_fp8 = 64,
     .span = 9,
     .slack = 40,
     .flag = true},
    {.op = "ring_write",
     .run = run_ring_write,
     .kind = ROWFMT_FP8,
     .width = 80,
     .n_fp8 = 64,
     .span = 30,
     .slack = 3,
     .flag = true,
     .far = true},

    {.op = "compress",
     .run = run_compress,
     .type = QT_F16,
     .ratio = 4,
     .width = 37,
     .flag = true,
     .pairs = 5,
     .slack = 40},
    {.op = "compress",
     .run = run_compress,
     .type = QT_F16,
     .ratio = 4,
     .width = 32,
     .flag = true,
     .pairs = 8,
     .other = true,
     .slack = 2},
    {.op = "compress",
     .run = run_compress,
     .type = QT_F32,
     .ratio = 4,
     .width = 80,
     .flag = true,
     .pairs = 8,
     .kind = ROWFMT_FP8,
     .n_fp8 = 64,
     .slack = 40,
     .far = true},
    {.op = "compress",
     .run = run_compress,
     .type = QT_F16,
     .ratio = 4,
     .width = 64,
     .flag = true,
     .pairs = 8,
     .other = true,
     .kind = ROWFMT_FP4,
     .slack = 5,
     .far = true},
    {.op = "compress", .run = run_compress, .type = QT_F16, .ratio = 9, .width = 21, .pairs = 3, .slack = 40},
    {.op = "compress",
     .run = run_compress,
     .type = QT_F32,
     .ratio = 128,
     .width = 80,
     .pairs = 8,
     .slack = 3,
     .far = true},
    {.op = "compress", .run = run_compress, .type = QT_F16, .ratio = 1, .width = 16, .pairs = 8, .slack = 1},

    {.op = "select", .run = run_select, .groups = 2, .width = 32, .kind = ROWFMT_FP4, .ratio = 4, .top_k = 4},
    {.op = "select", .run = run_select, .groups = 5, .width = 37, .kind = ROWFMT_F32, .ratio = 4, .top_k = 9},
    {.op = "select",
     .run = run_select,
     .groups = 3,
     .width = 128,
     .kind = ROWFMT_FP4,
     .ratio = 4,
     .top_k = 33,
     .far = true},
    {.op = "select",
     .run = run_select,
     .groups = 1,
     .width = 8,
     .kind = ROWFMT_F32,
     .ratio = 2,
     .top_k = 1,
     .far = true},
    {.op = "select",
     .run = run_select,
     .groups = 2,
     .width = 32,
     .kind = ROWFMT_FP4,
     .ratio = 4,
     .top_k = 5,
     .flag = true},

    {.op = "attention", .run = run_attention, .groups = 1, .width = 16, .span = 1, .slack = 40},
    {.op = "attention", .run = run_attention, .groups = 3, .width = 37, .span = 8, .slack = 40},
    {.op = "attention",
     .run = run_attention,
     .groups = 4,
     .width = 80,
     .kind = ROWFMT_FP8,
     .n_fp8 = 64,
     .span = 9,
     .slack = 3},
    {.op = "attention", .run = run_attention, .groups = 2, .width = 37, .span = 30, .ratio = 4, .slack = 40},
    {.op = "attention",
     .run = run_attention,
     .groups = 5,
     .width = 80,
     .kind = ROWFMT_FP8,
     .n_fp8 = 64,
     .span = 8,
     .ratio = 4,
     .slack = 1,
     .far = true},
    {.op = "attention",
     .run = run_attention,
     .groups = 4,
     .width = 144,
     .kind = ROWFMT_FP8,
     .n_fp8 = 128,
     .span = 140,
     .ratio = 4,
     .top_k = 100,
     .slack = 40,
     .far = true},
    {.op = "attention",
     .run = run_attention,
     .groups = 3,
     .width = 80,
     .kind = ROWFMT_FP8,
     .n_fp8 = 64,
     .span = 5,
     .ratio = 3,
     .top_k = 4,
     .slack = 2},
    {.op = "attention", .run = run_attention, .groups = 2, .width = 37, .span = 6, .ratio = 4, .slack = 40, .ahead = 7},
    {.op = "attention", .run = run_attention, .groups = 9, .width = 48, .span = 8, .ratio = 4, .slack = 40, .pairs = 7},
    {.op = "attention",
     .run = run_attention,
     .groups = 3,
     .width = 37,
     .span = 5,
     .ratio = 3,
     .top_k = 4,
     .slack = 2,
     .pairs = 16,
     .flag = true,
     .more = true},
    {.op = "attention",
     .run = run_attention,
     .groups = 9,
     .width = 32,
     .span = 8,
     .ratio = 4,
     .slack = 40,
     .more = true},
    {.op = "attention",
     .run = run_attention,
     .groups = 3,
     .width = 37,
     .span = 5,
     .ratio = 3,
     .top_k = 4,
     .slack = 2,
     .more = true},

    {.op = "router", .run = run_router, .rows = 1, .k = 1, .width = 1},
    {.op = "router", .run = run_router, .rows = 8, .k = 3, .flag = true, .width = 1},
    {.op = "router", .run = run_router, .rows = 37, .k = 6, .flag = true},
    {.op = "router", .run = run_router, .rows = 257, .k = 8, .width = 1},
    {.op = "router", .run = run_router, .rows = 61, .k = 7, .width = 1, .top_k = 1},
    {.op = "router", .run = run_router, .rows = 37, .k = 6, .other = true, .width = 1},

    MOE(QT_F32, QT_F32, 37, 19, 5, 2, .top_k = 20),
    MOE(QT_F16, QT_F16, 64, 33, 7, 3, .flag = true, .first = 21, .other = true),
    MOE(QT_BF16, QT_F32, 20, 7, 3, 3, .flag = true, .first = 9, .top_k = 5),
    MOE(QT_Q8_0, QT_Q8_0, 64, 96, 6, 2, .flag = true, .first = 32, .other = true, .top_k = 15),
    MOE(QT_MXFP4, QT_MXFP4, 96, 64, 9, 4, .flag = true, .first = 64, .top_k = 100),
    MOE(QT_Q4_0, QT_Q8_0, 64, 32, 4, 1),
    MOE(QT_IQ2_XXS, QT_Q2_K, 256, 256, 4, 2, .other = true, .top_k = 20),
    MOE(QT_Q4_K, QT_Q4_K, 256, 256, 3, 2, .top_k = 100),
    MOE(QT_Q5_K, QT_Q6_K, 256, 256, 3, 2, .top_k = 100),
    MOE(QT_Q4_K, QT_F16, 256, 40, 5, 3, .flag = true, .first = 24, .top_k = 100),

    {.op = "hc_gates", .run = run_hc_gates, .groups = 4, .rows = 20},
    {.op = "hc_gates", .run = run_hc_gates, .groups = 3, .rows = 1},
    {.op = "hc_gates", .run = run_hc_gates, .groups = 1, .rows = 2},
    {.op = "hc_gates", .run = run_hc_gates, .groups = 4, .flag = true},

    {.op = "hc_reduce", .run = run_hc_reduce, .groups = 4, .width = 37},
    {.op = "hc_reduce", .run = run_hc_reduce, .groups = 1, .width = 1},
    {.op = "hc_reduce", .run = run_hc_reduce, .groups = 3, .width = 128},
    {.op = "hc_expand", .run = run_hc_expand, .groups = 4, .width = 37},
    {.op = "hc_expand", .run = run_hc_expand, .groups = 1, .width = 7},
    {.op = "hc_expand", .run = run_hc_expand, .groups = 3, .width = 128},

    {.op = "rms_norm", .run = run_rms_norm, .type = QT_F32, .groups = 3, .width = 37, .flag = true, .more = true},
    {.op = "matmul", .run = run_matmul, .type = QT_F16, .k = 33, .rows = 7, .groups = 3, .more = true},
    {.op = "matmul", .run = run_matmul, .type = QT_Q8_0, .k = 64, .rows = 40, .groups = 4, .width = 3, .more = true},
    {.op = "rope", .run = run_rope, .groups = 3, .width = 37, .pairs = 13, .more = true, .far = true},
    {.op = "rope", .run = run_rope, .groups = 2, .width = 64, .pairs = 32, .more = true},
    {.op = "round", .run = run_round, .kind = ROWFMT_F16, .groups = 3, .width = 37},
    {.op = "select", .run = run_select, .groups = 5, .width = 37, .ratio = 4, .top_k = 9, .more = true},
    {.op = "select",
     .run = run_select,
     .groups = 4,
     .width = 32,
     .kind = ROWFMT_F16,
     .ratio = 4,
     .top_k = 9,
     .more = true},
    {.op = "select",
     .run = run_select,
     .groups = 6,
     .width = 128,
     .kind = ROWFMT_F16,
     .ratio = 2,
     .top_k = 7,
     .far = true},
    {.op = "select",
     .run = run_select,
     .groups = 3,
     .width = 24,
     .kind = ROWFMT_F16,
     .ratio = 1,
     .top_k = 3,
     .more = true},
    {.op = "router", .run = run_router, .rows = 61, .k = 7, .width = 1, .more = true},
    {.op = "router", .run = run_router, .rows = 61, .k = 7, .width = 1, .top_k = 1, .more = true},
    MOE(QT_F16, QT_F16, 64, 33, 7, 3, .flag = true, .first = 21, .other = true, .more = true),
    MOE(QT_Q8_0, QT_Q2_K, 256, 96, 5, 3, .other = true, .span = 256, .slack = 40),
    {.op = "hc_reduce", .run = run_hc_reduce, .groups = 3, .width = 37, .more = true},
    {.op = "hc_expand", .run = run_hc_expand, .groups = 3, .width = 37, .more = true},
    {.op = "hc_expand", .run = run_hc_expand, .groups = 4, .width = 16, .more = true, .flag = true},

    {.op = "element", .run = run_element, .first = ELEMENT_SILU, .groups = 1, .width = 37},
    {.op = "element", .run = run_element, .first = ELEMENT_SILU, .groups = 3, .width = 8, .flag = true},
    {.op = "element", .run = run_element, .first = ELEMENT_SIGMOID, .groups = 2, .width = 21, .flag = true},
    {.op = "element", .run = run_element, .first = ELEMENT_GATE, .groups = 2, .width = 21},
    {.op = "element", .run = run_element, .first = ELEMENT_GATE, .groups = 1, .width = 40, .other = true},
    {.op = "element", .run = run_element, .first = ELEMENT_ADD, .groups = 1, .width = 37},
    {.op = "element", .run = run_element, .first = ELEMENT_ADD, .groups = 2, .width = 9, .flag = true},
    {.op = "element", .run = run_element, .first = ELEMENT_ADD, .groups = 2, .width = 9, .other = true},
    {.op = "decay", .run = run_decay, .width = 13},
    {.op = "memory_gate", .run = run_memory_gate, .groups = 3, .width = 37},

    {.op = "conv", .run = run_conv, .width = 37, .k = 4, .ratio = 1, .flag = true, .slack = 40},
    {.op = "conv", .run = run_conv, .width = 16, .k = 4, .ratio = 3, .slack = 3},
    {.op = "conv", .run = run_conv, .width = 21, .k = 2, .ratio = 1, .slack = 40, .far = true},
    {.op = "conv", .run = run_conv, .width = 9, .k = 1, .ratio = 2, .flag = true, .slack = 5},
    {.op = "delta_scan", .run = run_delta_scan, .groups = 1, .rows = 1, .width = 16, .slack = 40},
    {.op = "delta_scan", .run = run_delta_scan, .groups = 2, .rows = 6, .width = 37, .slack = 40},
    {.op = "delta_scan", .run = run_delta_scan, .groups = 3, .rows = 3, .width = 48, .slack = 3},

    {.op = "store_write", .run = run_store_write, .groups = 2, .width = 37, .slack = 40},
    {.op = "store_write", .run = run_store_write, .groups = 1, .width = 21, .k = 12, .flag = true, .far = true},
    {.op = "store_write", .run = run_store_write, .kind = ROWFMT_F16, .groups = 2, .width = 17, .k = 9, .flag = true},
    {.op = "pool", .run = run_pool, .ratio = 4, .width = 37, .pairs = 6, .slack = 40},
    {.op = "pool", .run = run_pool, .ratio = 1, .width = 16, .pairs = 8, .slack = 2},
    {.op = "pool", .run = run_pool, .ratio = 8, .width = 21, .pairs = 3, .kind = ROWFMT_F16, .slack = 3, .far = true},
    {.op = "attention_heads", .run = run_attention_heads, .groups = 1, .k = 1, .width = 16},
    {.op = "attention_heads", .run = run_attention_heads, .groups = 6, .k = 2, .width = 32, .ratio = 4, .more = true},
    {.op = "attention_heads", .run = run_attention_heads, .groups = 6, .k = 2, .width = 37, .ratio = 4},
    {.op = "attention_heads",
     .run = run_attention_heads,
     .groups = 4,
     .k = 2,
     .width = 80,
     .ratio = 4,
     .top_k = 9,
     .far = true},
    {.op = "attention_heads",
     .run = run_attention_heads,
     .groups = 6,
     .k = 3,
     .width = 37,
     .kind = ROWFMT_F16,
     .ratio = 8,
     .top_k = 3},
    {.op = "attention_heads",
     .run = run_attention_heads,
     .groups = 12,
     .k = 1,
     .width = 256,
     .kind = ROWFMT_F16,
     .ratio = 4,
     .top_k = 2},

    {.op = "hc_mix", .run = run_hc_mix, .type = QT_F16, .groups = 4, .width = 336, .rows = 20, .other = true},
    {.op = "hc_mix", .run = run_hc_mix, .type = QT_F32, .groups = 3, .width = 37, .rows = 2, .other = true},
    {.op = "hc_mix", .run = run_hc_mix, .type = QT_BF16, .groups = 1, .width = 1100, .rows = 1},
    {.op = "hc_mix", .run = run_hc_mix, .type = QT_F16, .groups = 4, .width = 16, .flag = true},

    {.op = "gather", .run = run_gather, .groups = 2, .width = 17},
    {.op = "gather", .run = run_gather, .groups = 1, .width = 5, .flag = true},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---------------------------------------------------------------- running */

/* T rows as one to three segments: one session alone, two decode rows, prefill and decode mixed. */
static struct history history_of(const struct op_case *c, int T)
{
    static const struct {
        int T, count[KIT_SLOTS];
    } mix[] = {{1, {1}}, {2, {1, 1}}, {7, {3, 1, 3}}, {33, {20, 1, 12}}};
    struct history h = {.n = T,
                        .start = {c->far ? 4090 : 5, 37, 0},
                        .window = c->span,
                        .ahead = c->ahead,
                        .slack = c->slack,
                        .ratio = c->ratio};
    for (size_t i = 0; i < sizeof mix / sizeof *mix; i++)
        if (mix[i].T == T) memcpy(h.count, mix[i].count, sizeof h.count);
    return h;
}

static struct result *run_inputs(struct dev *d, int index, int T, int rows_per_step, bool extreme)
{
    static struct bench b;
    const struct op_case *c = &cases[index];
    memset(&b, 0, sizeof b);
    kit_open(&b.k, d, 1000 + (uint64_t)index);
    b.h = history_of(c, T);
    b.rows_per_step = rows_per_step;
    b.extreme = extreme;
    b.out = calloc(1, sizeof *b.out);
    assert_non_null(b.out);
    c->run(&b, c);
    kit_check(&b.k);
    assert_true(b.out->n_values > 0);
    kit_close(&b.k);
    return b.out;
}

static struct result *run_case(struct dev *d, int index, int T, int rows_per_step)
{
    return run_inputs(d, index, T, rows_per_step, false);
}

static const char *case_name(int index, int T, const char *how)
{
    static char name[200];
    const struct op_case *c = &cases[index];
    snprintf(name, sizeof name, "case %d: %s %s k %d rows %d groups %d width %d, T %d, %s", index, c->op,
             c->k ? quant_type(c->type)->name : "", c->k, c->rows, c->groups, c->width, T, how);
    return name;
}

static struct dev *ref_device(void)
{
    struct dev *d;
    struct err e = {0};
    if (dev_ref_create(&d, &e)) fail_msg("%s", e.msg);
    return d;
}

static struct dev *cpu_device(struct pool *pool, enum quant_isa isa)
{
    struct dev *d;
    struct err e = {0};
    if (dev_cpu_create(pool, isa, &d, &e)) fail_msg("%s", e.msg);
    return d;
}

static struct pool *threads(int n)
{
    struct pool *p;
    assert_int_equal(pool_create(n, &p, NULL), 0);
    return p;
}

/* As if memory had two nodes, of two cores and of one. */
static struct pool *threads_on_nodes(void)
{
    struct topology_core cores[] = {{-1, 0}, {-1, 1}, {-1, 0}};
    const struct topology t = {.core = cores, .n_cores = 3, .n_nodes = 2, .threads = 3};
    struct pool *p;
    assert_int_equal(pool_create_on(&t, 0, &p, NULL), 0);
    assert_int_equal(pool_nodes(p), 2);
    return p;
}

/* ---------------------------------------------------------------- tests */

static void test_cpu_against_ref(void **state)
{
    (void)state;
    static const int T[] = {1, 2, 7, 33};
    struct pool *pool = threads(2);
    struct dev *ref = ref_device(), *cpu = cpu_device(pool, quant_isa_best());
    for (int i = 0; i < CASES; i++)
        for (size_t t = 0; t < sizeof T / sizeof *T; t++) {
            struct result *want = run_case(ref, i, T[t], T[t]), *got = run_case(cpu, i, T[t], T[t]);
            result_compare(want, got, case_name(i, T[t], "cpu against ref"));
            free(want);
            free(got);
        }
    ref->op->free(ref);
    cpu->op->free(cpu);
    pool_free(pool);
}

/* All rows at once, in pieces that cut segments, and row by row. */
static void same_in_pieces(struct dev *d)
{
    for (int i = 0; i < CASES; i++) {
        if (cases[i].ahead) continue; /* rows that see later rows of their step */
        struct result *whole = run_case(d, i, 33, 33);
        for (int piece = 1; piece < 8; piece += 6) {
            struct result *got = run_case(d, i, 33, piece);
            result_same_bits(whole, got, case_name(i, 33, piece == 1 ? "row by row" : "seven rows a step"));
            free(got);
        }
        free(whole);
    }
    d->op->free(d);
}

static void test_ref_in_pieces(void **state)
{
    (void)state;
    same_in_pieces(ref_device());
}

static void test_cpu_in_pieces(void **state)
{
    (void)state;
    struct pool *pool = threads(2);
    same_in_pieces(cpu_device(pool, quant_isa_best()));
    pool_free(pool);
}

static void test_cpu_threads_and_kernels(void **state)
{
    (void)state;
    struct pool *one = threads(1), *pool[] = {threads(2), threads(3), threads_on_nodes()};
    struct dev *d = cpu_device(one, quant_isa_best()), *plain = cpu_device(one, QUANT_SCALAR);
    static const char *const names[] = {"two threads", "three threads", "threads on two nodes"};
    struct dev *more[3];
    for (int k = 0; k < 3; k++) more[k] = cpu_device(pool[k], quant_isa_best());
    for (int i = 0; i < 2 * CASES; i++) {
        const int at = i / 2, T = i % 2 ? 33 : 1;
        struct result *want = run_case(d, at, T, T), *scalar = run_case(plain, at, T, T);
        for (int k = 0; k < 3; k++) {
            struct result *got = run_case(more[k], at, T, T);
            result_same_bits(want, got, case_name(at, T, names[k]));
            free(got);
        }
        result_same_bits(want, scalar, case_name(at, T, "scalar kernels"));
        free(want);
        free(scalar);
    }
    for (int i = 0; i < 3; i++) more[i]->op->free(more[i]);
    d->op->free(d);
    plain->op->free(plain);
    pool_free(one);
    for (int i = 0; i < 3; i++) pool_free(pool[i]);
}

/* Infinities, what is not a number, and the largest and smallest values: nothing is read or written outside, selections
 * stay selections, and one row's trouble is not another's. */
static void test_extreme_inputs(void **state)
{
    (void)state;
    struct pool *pool = threads(2);
    struct dev *ref = ref_device(), *plain = cpu_device(pool, QUANT_SCALAR), *d = cpu_device(pool, quant_isa_best());
    for (int i = 0; i < CASES; i++) {
        struct result *want = run_inputs(d, i, 33, 33, true), *scalar = run_inputs(plain, i, 33, 33, true);
        result_same_bits(want, scalar, case_name(i, 33, "scalar kernels, extreme inputs"));
        free(scalar);
        free(run_inputs(ref, i, 33, 33, true));
        if (!cases[i].ahead) {
            struct result *single = run_inputs(d, i, 33, 1, true);
            result_same_bits(want, single, case_name(i, 33, "row by row, extreme inputs"));
            free(single);
        }
        free(want);
    }
    ref->op->free(ref);
    plain->op->free(plain);
    d->op->free(d);
    pool_free(pool);
}

#define OP(name)                                                                                                       \
    {                                                                                                                  \
#name, offsetof(struct dev_ops, name)                                                                          \
    }

/* The table of operations runs from embed to its end; each needs a name here and a case above. */
static void test_every_op_has_a_case(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t at;
    } ops[] = {OP(embed),       OP(rms_norm), OP(act_quant),      OP(matmul),    OP(rope),       OP(hadamard),
               OP(round),       OP(pack),     OP(ring_write),     OP(compress),  OP(select),     OP(attention),
               OP(router),      OP(moe),      OP(hc_gates),       OP(hc_reduce), OP(hc_expand),  OP(hc_mix),
               OP(gather),      OP(element),  OP(decay),          OP(conv),      OP(delta_scan), OP(memory_gate),
               OP(store_write), OP(pool),     OP(attention_heads)};
    for (size_t at = offsetof(struct dev_ops, embed); at < sizeof(struct dev_ops); at += sizeof(void (*)(void))) {
        const char *name = NULL;
        int n = 0;
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            if (ops[i].at == at) name = ops[i].name;
        if (!name)
            fail_msg("entry %zu of struct dev_ops behind embed has no case",
                     (at - offsetof(struct dev_ops, embed)) / sizeof(void (*)(void)));
        for (int i = 0; i < CASES; i++) n += !strcmp(cases[i].op, name);
        if (!n) fail_msg("operation %s has no case", name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_has_a_case),     cmocka_unit_test(test_ref_in_pieces),
        cmocka_unit_test(test_cpu_against_ref),         cmocka_unit_test(test_cpu_in_pieces),
        cmocka_unit_test(test_cpu_threads_and_kernels), cmocka_unit_test(test_extreme_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
