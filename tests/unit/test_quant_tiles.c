/* Every kernel set gives the bits of the scalar set, whatever the shape of the tile, and these are the same on every
 * kind of processor; the order of dense sums against values computed with exact rational arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "quant/quant_internal.h"
#include "../support/quant_vectors.h"

static const uint32_t types[] = {QT_F32,    QT_F16,   QT_BF16,   QT_Q8_0,    QT_Q4_0,     QT_MXFP4, QT_Q2_K,
                                 QT_Q4_K,   QT_Q5_K,  QT_Q6_K,   QT_IQ2_XXS, QT_Q4_1,     QT_Q5_0,  QT_Q5_1,
                                 QT_IQ4_NL, QT_NVFP4, QT_Q1_0,   QT_Q2_0,    QT_Q2_0_128, QT_Q3_K,  QT_IQ4_XS,
                                 QT_TQ1_0,  QT_TQ2_0, QT_IQ2_XS, QT_IQ2_S,   QT_IQ3_XXS,  QT_IQ3_S, QT_IQ1_S,
                                 QT_IQ1_M,  QT_Q8_1,  QT_Q8_K,   QT_MXFP8,   QT_MXFP8_SF};
enum { N_TYPES = sizeof types / sizeof types[0], MAX_ROWS = 19, MAX_COLS = 70 };

static void *aligned(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(p);
    memset(p, 0, bytes);
    return p;
}

/* Finite, but from 1e-42 to 1e33 between columns. */
static float activation(uint32_t *state, int col)
{
    static const float size[8] = {1, 100, 1e-3f, 1e30f, 1e-30f, 1e-42f, 0, 1e33f};
    return ((float)(int32_t)vec_xorshift(state) * 0x1p-31f) * size[col % 8];
}

/* A matrix, its activations and the scalar results of the largest tile. */
struct problem {
    uint32_t type;
    int k;
    size_t w_stride, x_stride;
    uint8_t *w;
    char *x;
    float *want; /* [MAX_COLS][MAX_ROWS] */
};

/* f32 weights of ordinary size: as random bits most would be useless. */
static void fill_weights(struct problem *p)
{
    const size_t bytes = quant_row_bytes(p->type, p->k);
    uint8_t *const all = malloc(MAX_ROWS * bytes);
    vec_random_blocks(p->type == QT_F32 ? QT_Q8_0 : p->type, all,
                      p->type == QT_F32 ? bytes / 34 * 34 : MAX_ROWS * bytes);
    uint32_t state = 7;
    for (int r = 0; r < MAX_ROWS; r++) {
        uint8_t *const row = p->w + (size_t)r * p->w_stride;
        memcpy(row, all + (size_t)r * bytes, bytes);
        for (int i = 0; p->type == QT_F32 && i < p->k; i++) {
            const float v = (float)(int32_t)vec_xorshift(&state) * 0x1p-31f;
            memcpy(row + 4 * i, &v, 4);
        }
    }
    free(all);
}

static struct problem problem_make(uint32_t type, int k)
{
    const enum act_format f = quant_type(type)->act;
    struct problem p = {.type = type, .k = k};
    p.w_stride = quant_row_bytes(type, k) + 6;
    p.x_stride = act_row_bytes(f, k) + 64;
    p.w = malloc(MAX_ROWS * p.w_stride);
    p.x = aligned(MAX_COLS * p.x_stride);
    p.want = malloc(MAX_COLS * MAX_ROWS * sizeof *p.want);
    fill_weights(&p);
    float *const x = malloc((size_t)k * sizeof *x);
    uint32_t state = 99;
    for (int c = 0; c < MAX_COLS; c++) {
        for (int i = 0; i < k; i++) x[i] = activation(&state, c);
        act_quantise(f, x, k, p.x + (size_t)c * p.x_stride);
    }
    free(x);
    quant_tile(QUANT_SCALAR, type)(k, p.w, p.w_stride, MAX_ROWS, p.x, p.x_stride, MAX_COLS, p.want, MAX_ROWS);
    return p;
}

static void problem_free(struct problem *p)
{
    free(p->w);
    free(p->x);
    free(p->want);
}

/* A tile at the end of the matrix gives the reference bits and writes nothing outside itself. */
static void check_tile(const struct problem *p, enum quant_isa isa, int n_rows, int n_cols)
{
    const int r0 = MAX_ROWS - n_rows, c0 = MAX_COLS - n_cols;
    const size_t stride = (size_t)n_rows + 3;
    float *const got = malloc((size_t)n_cols * stride * sizeof *got);
    const float guard = -12345.5f;
    for (size_t i = 0; i < (size_t)n_cols * stride; i++) got[i] = guard;
    quant_tile(isa, p->type)(p->k, p->w + (size_t)r0 * p->w_stride, p->w_stride, n_rows,
                             p->x + (size_t)c0 * p->x_stride, p->x_stride, n_cols, got, stride);
    for (int c = 0; c < n_cols; c++) {
        assert_memory_equal(got + (size_t)c * stride, p->want + (c0 + c) * MAX_ROWS + r0, (size_t)n_rows * sizeof *got);
        for (int i = n_rows; i < n_rows + 3; i++) assert_true(got[(size_t)c * stride + (size_t)i] == guard);
    }
    free(got);
}

/* The same products through a slab of `each` blocks at a time and panels. The rows are repeated, so that it is full. */
static void check_slab_of(const struct problem *p, const struct quant_slab *s, int n_rows, int n_cols, int each)
{
    assert_in_range(s->panel, 1, QUANT_PANEL_MOST);
    assert_int_equal(QUANT_PANELS % s->panel, 0);
    assert_int_equal(QUANT_SLAB % s->rows, 0);
    const int blocks = p->k / s->block, r0 = MAX_ROWS - n_rows, c0 = MAX_COLS - n_cols;
    const uint8_t *row[QUANT_SLAB], *x[MAX_COLS];
    for (int r = 0; r < QUANT_SLAB; r++) row[r] = p->w + (size_t)(r0 + r % n_rows) * p->w_stride;
    for (int c = 0; c < n_cols; c++) x[c] = (const uint8_t *)p->x + (size_t)(c0 + c) * p->x_stride;
    uint8_t *const panel = aligned((size_t)(s->panel * each) * s->panel_block + QUANT_PANEL_BEHIND);
    uint8_t *const slab = aligned((size_t)each * s->slab_block);
    float *const acc = aligned((size_t)n_cols * QUANT_SLAB * sizeof *acc);
    if (s->begin) s->begin();
    for (int b = 0; b < blocks; b += each)
        for (int h = 0; h < QUANT_SLAB; h += s->rows) {
            const int n = blocks - b < each ? blocks - b : each;
            s->fill(row + h, b, n, slab);
            for (int c = 0; c < n_cols; c += s->panel) {
                const int m = n_cols - c < s->panel ? n_cols - c : s->panel;
                s->pack(p->k, x + c, m, b, n, panel);
                s->multiply(n, slab, panel, m, (b == 0 ? SLAB_FIRST : 0) | (b + n == blocks ? SLAB_LAST : 0),
                            acc + c * QUANT_SLAB + h);
            }
        }
    if (s->end) s->end();
    for (int c = 0; c < n_cols; c++)
        for (int r = 0; r < QUANT_SLAB; r++)
            assert_memory_equal(acc + c * QUANT_SLAB + r, p->want + (c0 + c) * MAX_ROWS + r0 + r % n_rows, sizeof *acc);
    free(panel);
    free(slab);
    free(acc);
}

/* Kernels with tiles of products where tiles are portable C (tests/support/tiles_model.h), beside those of AVX-512,
 * which they need. */
extern const quant_slab_table tiles_model_slabs;

static void check_model(const struct problem *p, enum quant_isa isa, int n_rows, int n_cols, int each)
{
    const int slot = quant_slot(p->type);
    if (isa == QUANT_AVX512 && slot >= 0 && tiles_model_slabs[slot])
        check_slab_of(p, tiles_model_slabs[slot], n_rows, n_cols, each);
}

static void check_slab(const struct problem *p, enum quant_isa isa, int n_rows, int n_cols, int each)
{
    const struct quant_slab *const s = quant_slab(isa, p->type);
    if (s) check_slab_of(p, s, n_rows, n_cols, each);
}

/* A slab never learns how many of its rows are wanted: all of them are compared at every width, and every width is also
 * taken once with one row alone, which all of the slab's rows then are. Pieces behind the first that holds the whole
 * row are that one again. */
static void check_slabs(const struct problem *p, enum quant_isa isa, int n_cols)
{
    const struct quant_slab *const s = quant_slab(isa, p->type);
    if (!s) return;
    for (int each = 1, before = 0; each <= 64 && before < p->k / s->block; before = each, each *= 4)
        check_slab(p, isa, MAX_ROWS, n_cols, each);
    check_slab(p, isa, 1, n_cols, 4);
    if (n_cols < MAX_COLS) check_model(p, isa, MAX_ROWS, n_cols, 4); /* slow, and panels are alike */
}

static void check_shapes(uint32_t type, int k)
{
    static const int rows[] = {1, 2, 3, 5, 8, MAX_ROWS}, cols[] = {1, 2, 3, 4, 5, 6, 8, 11, 13, 33, MAX_COLS};
    struct problem p = problem_make(type, k);
    for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
        if (!vec_isa_tested((enum quant_isa)isa)) continue;
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++)
                if (isa != QUANT_SCALAR || rows[r] * cols[c] < 20)
                    check_tile(&p, (enum quant_isa)isa, rows[r], cols[c]);
        for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) check_slabs(&p, (enum quant_isa)isa, cols[c]);
    }
    problem_free(&p);
}

static void test_one_block(void **state)
{
    for (int i = 0; i < N_TYPES; i++) check_shapes(types[i], quant_type(types[i])->block);
}

static void test_several_blocks(void **state)
{
    /* In units of the block: 9 and 11 leave part of a slab of 8 blocks, and a tail of dense lanes. */
    for (int i = 0; i < N_TYPES; i++) {
        check_shapes(types[i], 3 * quant_type(types[i])->block);
        check_shapes(types[i], (quant_type(types[i])->block == 256 ? 2 : 11) * quant_type(types[i])->block);
    }
    check_shapes(QT_Q8_0, 9 * 32);
    check_shapes(QT_F32, 1000);
    check_shapes(QT_F16, 1024);
    check_shapes(QT_BF16, 1041);
}

/* Float weights of many rows are taken in panels of rows and blocks of activations: more than one of each. */
static void test_many_float_rows(void **state)
{
    enum { K = 1100, W = 70, X = 150 };
    static const uint32_t floats[] = {QT_F32, QT_F16, QT_BF16};
    float *const x = malloc(X * K * sizeof *x), *const want = malloc(W * X * sizeof *x);
    uint8_t *const w = malloc(W * K * 4);
    float *const got = malloc(W * X * sizeof *got);
    uint32_t state_x = 5;
    for (int i = 0; i < X * K; i++) x[i] = activation(&state_x, i % 2);
    for (size_t t = 0; t < sizeof floats / sizeof floats[0]; t++) {
        const size_t stride = quant_row_bytes(floats[t], K);
        vec_random_blocks(floats[t], w, W * stride);
        for (int i = 0; i < W * K && floats[t] == QT_F32; i++) memcpy(w + 4 * i, &x[i], 4);
        quant_tile(QUANT_SCALAR, floats[t])(K, w, stride, W, x, K * sizeof *x, X, want, W);
        for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
            if (isa == QUANT_SCALAR || !vec_isa_tested((enum quant_isa)isa)) continue;
            quant_tile((enum quant_isa)isa, floats[t])(K, w, stride, W, x, K * sizeof *x, X, got, W);
            assert_memory_equal(got, want, W * X * sizeof *got);
        }
    }
    free(x);
    free(want);
    free(w);
    free(got);
}

static void test_long_rows(void **state)
{
    for (int i = 0; i < N_TYPES; i++) check_shapes(types[i], quant_type(types[i])->block == 1 ? 2500 : 2304);
    /* IQ2_XXS takes longer rows in pieces of 8192 values: a whole second one, and one of an odd number of blocks. */
    check_shapes(QT_IQ2_XXS, 2 * 8192);
    check_shapes(QT_IQ2_XXS, 8192 + 256);
    check_shapes(QT_IQ2_XXS, 8192 + 3 * 256);
}

/* Largest codes everywhere: no intermediate sum may overflow or saturate. */
static void test_extreme_codes(void **state)
{
    enum { K = 512 };
    static const uint8_t bytes[] = {0xff, 0x00, 0x80, 0x7f};
    for (int i = 0; i < N_TYPES; i++) {
        if (quant_type(types[i])->block == 1) continue;
        struct problem p = problem_make(types[i], K);
        for (size_t v = 0; v < sizeof bytes; v++) {
            float x[K];
            for (int r = 0; r < MAX_ROWS; r++) {
                uint8_t *const row = p.w + (size_t)r * p.w_stride;
                memset(row, bytes[v], quant_row_bytes(types[i], K));
                vec_finite_blocks(types[i], row, quant_row_bytes(types[i], K));
            }
            for (int c = 0; c < MAX_COLS; c++) {
                for (int j = 0; j < K; j++) x[j] = c % 4 == 0 ? 1 : c % 4 == 1 ? -1 : c % 4 == 2 || j & 1 ? 1 : -1;
                /* Q8_K: the largest magnitude is -127, all others 127 */
                if (c % 4 == 2) x[0] = x[256] = -1.001f;
                act_quantise(quant_type(types[i])->act, x, K, p.x + (size_t)c * p.x_stride);
            }
            quant_tile(QUANT_SCALAR, types[i])(K, p.w, p.w_stride, MAX_ROWS, p.x, p.x_stride, MAX_COLS, p.want,
                                               MAX_ROWS);
            for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
                if (!vec_isa_tested((enum quant_isa)isa)) continue;
                check_tile(&p, (enum quant_isa)isa, 9, 1);
                check_tile(&p, (enum quant_isa)isa, 9, 6);
                check_slab(&p, (enum quant_isa)isa, 9, 6, 16);
                check_model(&p, (enum quant_isa)isa, 9, 6, 16);
            }
        }
        problem_free(&p);
    }
}

static uint32_t bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* Sums over the vectors of appendix A, computed outside with rational arithmetic and one rounding per fma or sum. */
static void test_dense_order(void **state)
{
    static const struct {
        uint32_t type;
        int first, k;
        uint32_t want;
    } cases[] = {
        {QT_F32, 0, 1100, 0xc310293e}, {QT_F16, 0, 1100, 0xc31028f1},   {QT_BF16, 0, 1100, 0xc3105b0c},
        {QT_F32, 0, 4096, 0xc3e3585f}, {QT_F16, 0, 4096, 0xc3e3545a},   {QT_BF16, 0, 4096, 0xc3e38da2},
        {QT_F32, 256, 7, 0x414eed68},  {QT_F32, 256, 1100, 0x41064e46}, {QT_F32, 256, 3840, 0x4256753a},
    };
    static struct quant_vectors v;
    static uint8_t w[VEC_N * 4];
    quant_vectors_make(&v);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(quant_encode(cases[i].type, v.x + cases[i].first, cases[i].k, NULL, w), 0);
        for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
            float got;
            if (!vec_isa_tested((enum quant_isa)isa)) continue;
            quant_tile((enum quant_isa)isa, cases[i].type)(cases[i].k, w, 0, 1, v.y, 0, 1, &got, 1);
            assert_int_equal(bits(got), cases[i].want);
        }
        if (cases[i].type == QT_F32)
            assert_int_equal(bits(quant_dot_f32(v.x + cases[i].first, v.y, cases[i].k)), cases[i].want);
    }
}

/* Hashes of the largest tile, as the scalar set computed them on x86-64. */
static void test_same_on_every_processor(void **state)
{
    static const uint64_t want[N_TYPES] = {
        0xcbc48a8666a4770d, 0x9a459e94d8049dfe, 0x25baefc29869a4ff, 0x17cf75ccb7592041, 0xec34902a65fe5f2b,
        0x47b2702e3dcbb77d, 0xdeb3889ffed3dac4, 0x07e00432f265ec54, 0xc607db88dbceced3, 0x732242ef9dec7c55,
        0xae5c1fdca58c093e, 0x19ca137d440064aa, 0x7d24c3682b659f3b, 0x5ae354f5c70b8dc1, 0x3d32978dda0899cb,
        0x4d937a02826ec0dd, 0x0f45c53803bb48a9, 0xc267938a5077454c, 0xc79829399008202e, 0x6252ea7f2dff0b5a,
        0xdf8e03239a04ed29, 0x243f121b954d1dd9, 0x6e0425804fab65ec, 0x8eb705ae05a07efe, 0xbdd8f405657e7db0,
        0x64642eba85fb5cc4, 0x55189dd1ee9cb73e, 0x2fd9410536e0941c, 0xc59a9f69e1b75afe, 0x4e75dede1c3ba2f0,
        0xb01ca6487e95c5a6, 0x96b00dcc0d900baf, 0x7d7c898c25263dcd};
    for (int i = 0; i < N_TYPES; i++) {
        struct problem p = problem_make(types[i], quant_type(types[i])->block == 1 ? 1100 : 1280);
        for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
            if (!vec_isa_tested((enum quant_isa)isa)) continue;
            if (isa != QUANT_SCALAR) /* those are there */
                quant_tile((enum quant_isa)isa, p.type)(p.k, p.w, p.w_stride, MAX_ROWS, p.x, p.x_stride, MAX_COLS,
                                                        p.want, MAX_ROWS);
            assert_int_equal(vec_fnv_floats(p.want, MAX_ROWS * MAX_COLS), want[i]);
            check_slab(&p, (enum quant_isa)isa, MAX_ROWS, MAX_COLS, 4);
        }
        problem_free(&p);
    }
}

static void test_no_kernel(void **state)
{
    for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
        assert_null(quant_tile((enum quant_isa)isa, QT_I32));
        assert_null(quant_tile((enum quant_isa)isa, QT_F64));
        assert_null(quant_tile((enum quant_isa)isa, 1000));
        assert_non_null(quant_tile((enum quant_isa)isa, QT_IQ2_XXS));
    }
    assert_true(quant_isa_usable(QUANT_SCALAR));
    assert_true(quant_isa_usable(quant_isa_best()));
    /* TEST_ISA: the set that an emulated processor is meant to have. */
    if (getenv("TEST_ISA")) assert_string_equal(quant_isa_name(quant_isa_best()), getenv("TEST_ISA"));
    assert_string_equal(quant_isa_name(QUANT_AVX2), "avx2");
    assert_string_equal(quant_isa_name(QUANT_AVXVNNI), "avxvnni");
    assert_string_equal(quant_isa_name(QUANT_NEON_DOTPROD), "neon-dotprod");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_block),       cmocka_unit_test(test_several_blocks),
        cmocka_unit_test(test_many_float_rows), cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_extreme_codes),   cmocka_unit_test(test_dense_order),
        cmocka_unit_test(test_no_kernel),       cmocka_unit_test(test_same_on_every_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
