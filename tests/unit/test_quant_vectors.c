/* Encoders, decoders, activation quantisers and dot products against the golden vectors of the spec: gguf-and-quants
 * appendix A and more-quants 7. Every dot product is taken with every kernel set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "quant/quant.h"
#include "../support/quant_vectors.h"

static struct quant_vectors v;

static int setup(void **state)
{
    quant_vectors_make(&v);
    return 0;
}

static void *aligned(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(p);
    return p;
}

static uint32_t bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static void test_generator(void **state)
{
    assert_int_equal(bits(v.x[256]), bits(0x1.2fce1p-3f));
    assert_int_equal(bits(v.x[257]), bits(-0x1.0a9c26p+1f));
    assert_int_equal(bits(v.x[512]), bits(-0x1.01592p-7f));
    assert_int_equal(bits(v.importance[0]), bits(0x1.11e506p-4f));
    assert_int_equal(bits(v.y[0]), bits(0x1.76da18p+1f));
    assert_int_equal(v.state, 0xe5508ee8);
    assert_int_equal(vec_fnv(v.x, sizeof v.x), 0xfe5e2c5a35e08974);
    assert_int_equal(vec_fnv(v.importance, sizeof v.importance), 0x2bb03b8496b8e2f1);
    assert_int_equal(vec_fnv(v.y, sizeof v.y), 0x9729f2c9fa9c72b1);
}

enum importance { NONE, VECTOR, ONES, ENERGY };

static const struct encoded {
    uint32_t type;
    enum importance importance;
    uint64_t bytes, floats; /* fnv; floats 0: not given */
    uint32_t dot[VEC_ROWS]; /* bits in ggml's generic order */
    bool dots_exact;        /* our order of summation is the same; else 1e-6 of the sum of magnitudes */
} encoded[] = {
    {QT_Q8_0, NONE, 0x7c7d4ff2b2da502c, 0xbaaf879ca020f51a, {0xc310cabf, 0xc3434689, 0xc2c015e4, 0xc196ce0a}, true},
    {QT_Q4_0, NONE, 0xa9b61cdfab6a00ec, 0x6197fda50185b06e, {0xc312ffea, 0xc348e9bf, 0xc2bf1b33, 0xc1cb6322}, true},
    {QT_MXFP4, NONE, 0x208789b1283f69f1, 0x685a4200562d59f5, {0xc30d5771, 0xc34e01fc, 0xc2ba95b3, 0xc1e87695}, true},
    {QT_Q4_K, NONE, 0x9371ff50e05f524d, 0x7db4c46950135ac2, {0xc31187c4, 0xc343b5d3, 0xc2b94f8c, 0xc1b60d4e}, false},
    {QT_Q4_K, VECTOR, 0x7758a4f61025cbf8, 0x7a1fe52c013deb8f, {0xc30d4c3c, 0xc342e776, 0xc2b9637b, 0xc1897371}, false},
    {QT_Q5_K, NONE, 0x0ad224f1d1614fb5, 0x12f49e167ed0b30b, {0xc3111a3c, 0xc33faa30, 0xc2c32592, 0xc1a717aa}, false},
    {QT_Q2_K, NONE, 0xc00aa0dfa9a7209a, 0xa3128894e6c26996, {0xc3206e0a, 0xc3515f0d, 0xc2e6ddd0, 0xc17a1134}, true},
    {QT_Q2_K, VECTOR, 0x7e79f8a98d900d18, 0x3b696e53b6500dc7, {0xc3203546, 0xc36aed04, 0xc2f935e3, 0xbfff6aa0}, true},
    {QT_IQ2_XXS,
     VECTOR,
     0xf9065001e83c92a0,
     0x2a172bb65854230d,
     {0xc32c372e, 0xc33ef6e1, 0xc2a20188, 0xc202f813},
     true},
    {QT_IQ2_XXS, ONES, 0xaa5914b4db5b053b, 0, {0}, false},
    {QT_IQ2_XXS, ENERGY, 0x4b9a404d054b8e40, 0, {0}, false},
};

/* Weights of the columns: given, all 1, or the energy of the column over the four rows. */
static const float *importance_of(enum importance kind, float *buf)
{
    if (kind == NONE) return NULL;
    if (kind == VECTOR) return v.importance;
    for (int c = 0; c < VEC_ROW; c++) {
        buf[c] = kind == ONES ? 1 : 0;
        for (int r = 0; kind == ENERGY && r < VEC_ROWS; r++) buf[c] += v.x[r * VEC_ROW + c] * v.x[r * VEC_ROW + c];
    }
    return buf;
}

static void encode_rows(const struct encoded *e, uint8_t *out)
{
    float buf[VEC_ROW];
    const float *importance = importance_of(e->importance, buf);
    const size_t row = quant_row_bytes(e->type, VEC_ROW);
    for (int r = 0; r < VEC_ROWS; r++)
        assert_int_equal(quant_encode(e->type, v.x + r * VEC_ROW, VEC_ROW, importance, out + (size_t)r * row), 0);
}

/* Sum of |w*y|, the scale of rounding errors of a dot product. */
static double magnitude(uint32_t type, const uint8_t *row, const float *y)
{
    float w[VEC_ROW];
    double sum = 0;
    quant_type(type)->decode(row, w, VEC_ROW);
    for (int i = 0; i < VEC_ROW; i++) sum += fabs((double)w[i] * y[i]);
    return sum;
}

/* Of the first `rows` rows. */
static void check_dots(const struct encoded *e, const uint8_t *w, int rows)
{
    const enum act_format f = quant_type(e->type)->act;
    const size_t row = quant_row_bytes(e->type, VEC_ROW);
    void *const act = aligned(act_row_bytes(f, VEC_ROW));
    for (int r = 0; r < rows; r++) {
        const float *y = v.y + r * VEC_ROW;
        if (f == ACT_Q8_0)
            vec_act_ggml(y, VEC_ROW, act);
        else
            act_quantise(f, y, VEC_ROW, act);
        for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
            if (!vec_isa_tested((enum quant_isa)isa)) continue;
            float got, want;
            quant_tile((enum quant_isa)isa, e->type)(VEC_ROW, w + (size_t)r * row, row, 1, act, 0, 1, &got, 1);
            memcpy(&want, &e->dot[r], sizeof want);
            if (e->dots_exact)
                assert_int_equal(bits(got), e->dot[r]);
            else
                assert_true(fabs((double)got - want) <= 1e-6 * magnitude(e->type, w + (size_t)r * row, y));
        }
    }
    free(act);
}

static void test_encoded(void **state)
{
    for (size_t i = 0; i < sizeof encoded / sizeof encoded[0]; i++) {
        const struct encoded *e = &encoded[i];
        const size_t row = quant_row_bytes(e->type, VEC_ROW);
        uint8_t *const w = malloc(VEC_ROWS * row);
        float *const f = malloc(VEC_N * sizeof *f);
        encode_rows(e, w);
        assert_int_equal(vec_fnv(w, VEC_ROWS * row), e->bytes);
        if (e->floats) {
            for (int r = 0; r < VEC_ROWS; r++)
                quant_type(e->type)->decode(w + (size_t)r * row, f + r * VEC_ROW, VEC_ROW);
            assert_int_equal(vec_fnv(f, VEC_N * sizeof *f), e->floats);
            check_dots(e, w, VEC_ROWS);
        }
        free(f);
        free(w);
    }
}

/* Q8_0 weights with our own activations (f32 scales, nearest even), appendix A "ds4 scalar Q8_0 x f32-scale". */
static void test_q8_0_own_activations(void **state)
{
    static const uint32_t want[VEC_ROWS] = {0xc310cab5, 0xc3434c34, 0xc2c01c39, 0xc196b7d1};
    const size_t row = quant_row_bytes(QT_Q8_0, VEC_ROW);
    uint8_t *const w = malloc(VEC_ROWS * row);
    void *const act = aligned(act_row_bytes(ACT_Q8_0, VEC_ROW));
    encode_rows(&encoded[0], w);
    for (int r = 0; r < VEC_ROWS; r++) {
        act_quantise(ACT_Q8_0, v.y + r * VEC_ROW, VEC_ROW, act);
        for (int isa = 0; isa < QUANT_ISA_COUNT; isa++) {
            float got;
            if (!vec_isa_tested((enum quant_isa)isa)) continue;
            quant_tile((enum quant_isa)isa, QT_Q8_0)(VEC_ROW, w + (size_t)r * row, row, 1, act, 0, 1, &got, 1);
            assert_int_equal(bits(got), want[r]);
        }
    }
    free(act);
    free(w);
}

/* The blocks of the file format are {d, q[256], bsums[16]}; rows of ours hold the same values by field. */
static void test_q8_k_activations(void **state)
{
    static const uint8_t first[20] = {0x88, 0xa1, 0x3a, 0x3d, 0x40, 0xdd, 0xd7, 0xb1, 0x0f, 0x9f,
                                      0xff, 0x0f, 0x13, 0x68, 0x93, 0xdd, 0x70, 0x73, 0xc5, 0x11};
    void *const act = aligned(act_row_bytes(ACT_Q8_K, VEC_N));
    uint8_t file[VEC_N / 256 * 292];
    act_quantise(ACT_Q8_K, v.y, VEC_N, act);
    for (int b = 0; b < VEC_N / 256; b++) {
        memcpy(file + 292 * b, act_d(ACT_Q8_K, act, VEC_N) + b, 4);
        memcpy(file + 292 * b + 4, (const char *)act + 256 * b, 256);
        memcpy(file + 292 * b + 260, act_bsums(act, VEC_N) + 16 * b, 32);
    }
    assert_memory_equal(file, first, sizeof first);
    assert_int_equal(vec_fnv(file, sizeof file), 0x42cbb315331e04ab);
    free(act);
}

static void check_block(uint32_t type, const float *importance, int first, int n, const char *hex)
{
    uint8_t block[256];
    const size_t bytes = quant_row_bytes(type, n);
    assert_int_equal(strlen(hex), 2 * bytes);
    assert_int_equal(quant_encode(type, v.x + first, n, importance ? importance + first : NULL, block), 0);
    for (size_t i = 0; i < bytes; i++) {
        const char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
        assert_int_equal(block[i], strtol(pair, NULL, 16));
    }
}

static void test_debug_blocks(void **state)
{
    check_block(QT_Q8_0, NULL, 256, 32, "e9240893c702f0a80a4655b9e9cd7fb40d794f716ac0ac6da8517a772d426ccc8e7a");
    check_block(QT_MXFP4, NULL, 256, 32, "7e516e6cc0d96dd155656d3a5c66cde166");
    check_block(
        QT_IQ2_XXS, v.importance, 0, 256,
        "992400000000000000000000000000000000f5bdbdc9000000409f32f5f5000000303a1c1107201883f103d36c3a920018f6f5c9bd"
        "c92a954a75f5c9bdf52a954a85");
    check_block(
        QT_IQ2_XXS, v.importance, 256, 256,
        "15249ce4bdf1365716ec77c398e690fcacc17588cd9f3608adefab6bc3cba43e8cc4aaba1b9dc1fbc0cc32adfc3014d65ce9c04254"
        "8c34f639eebde9c7a938c8e2f9");
    check_block(
        QT_Q2_K, v.importance, 0, 256,
        "0000000002020202ffffffff5a5a5a5af0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0ff03ff0fff0c"
        "ff0ff30fff0ffc0fff03ff0fff0cff0ff30fff0ffc0fff03ff0f492c6632");
    check_block(
        QT_Q2_K, v.importance, 256, 256,
        "9a9998bbbf99eadaa8d8eadcfcdaebcadd9c58d9c51c6dd6569c655053105183b7e38ba85007f4cb87bb02c6df58c8f37cffd32e170f"
        "ea2bb4a9c4932ec19c675654db77b395c2234b263c66dae8563733303331");
    check_block(
        QT_Q2_K, NULL, 256, 256,
        "9cacaaceccddecdccbccccefffeeddceed9c58e9c92c7de666ac756053206183b6e39ba85017f4da87bb02c6df69d8f37cffd32e130f"
        "ea2bb4a9c5932ec198675554da77b395c2224a253c6a9ae85636da2e5131");
    check_block(
        QT_Q4_K, v.importance, 256, 256,
        "8a1d2a29fef9fff9faf7fafe98bbfaccb7c1949776c2e87b6cd376342e13282e6b0d9db3226d82cc7ebe1a6bfda4b00ec8a656d8d117"
        "3de859a74d58570858919bdba3885614ddd492bd11d0e667d4fed2dc1dc93cce989b5096342cea05b25d4652ab7e0c55190a9a57f088"
        "b8c1585b6fcfe51a2510ec29bf9ce2a50be175586746e44d9f97f238611b2f6bc7fb760d");
    check_block(
        QT_Q4_K, NULL, 256, 256,
        "7c1d3e29f9f9fffdf6f6f9fc89abfbeeb8c0949786c2e87c6dd376342f12282f6c0e9eb3226e82cc7fbf1a6bfea4b00fc89656c8c117"
        "3dd859974d48570848818bcb93884614cdc482ad11c0d667c4fed2dc1dc93cce989b5096342cea05b25d4652ab7e0c55190a9a57f088"
        "b8d1585b6fcfe51a2510ec29bf9ce3a50be185586746f45d9fa7f238711b3f7bc7fb761d");
}

/* Q3_K, Q4_K, Q5_K and Q6_K sum a block as one integer here, and in eight lanes in ggml. */
static bool has_own_order(uint32_t type)
{
    return type == QT_Q3_K || type == QT_Q4_K || type == QT_Q5_K || type == QT_Q6_K;
}

/* more-quants 7.1. */
static void test_encoded_elsewhere(void **state)
{
    FILE *const file = fopen("tests/golden/quant_encoded.bin", "rb");
    static uint8_t w[VEC_ROWS * 1024];
    static float f[VEC_N];
    assert_non_null(file);
    for (int i = 0; i < vec_n_encoded; i++) {
        const struct vec_encoded *const g = &vec_encoded[i];
        const size_t row = quant_row_bytes(g->type, VEC_ROW);
        struct encoded e = {.type = g->type, .dots_exact = !has_own_order(g->type)};
        memcpy(e.dot, g->dot, sizeof e.dot);
        assert_int_equal(fread(w, row, VEC_ROWS, file), VEC_ROWS);
        assert_int_equal(vec_fnv(w, VEC_ROWS * row), g->bytes);
        for (int r = 0; r < VEC_ROWS; r++) quant_type(g->type)->decode(w + (size_t)r * row, f + r * VEC_ROW, VEC_ROW);
        assert_int_equal(vec_fnv(f, sizeof f), g->floats);
        check_dots(&e, w, VEC_ROWS);
    }
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

/* more-quants 7.2; dots: fnv of 64 rows of 1,024 against the activations of ggml's generic code, 0 where our order
 * differs. */
static const struct random_blocks {
    uint32_t type;
    uint64_t blocks, floats, dots;
} random_blocks[] = {
    {QT_F16, 0x69da3cfb5a4605ab, 0xfe64bc41e07462f6, 0},
    {QT_Q4_0, 0x3fbd5e9a577f8d86, 0xd60d80a92d8da580, 0x459c03d47c19daa6},
    {QT_Q4_1, 0xd9f952104803dcd7, 0x8651ff8087d12811, 0xd5849531759e5820},
    {QT_Q5_0, 0x76b09926c72ce680, 0x7de5b3c335c4db16, 0x4a43e9af67c4f0fe},
    {QT_Q5_1, 0xf7ff89883216d809, 0xe4352cb465ebd9b9, 0xbcffd94fd865f7b7},
    {QT_Q8_0, 0xb7f3e0ab9ab46916, 0x46e15e0012c7905b, 0x4c3f36a32a6a40c3},
    {QT_Q8_1, 0x127ab71e5060d3db, 0xb235fcdf85c3bffc, 0},
    {QT_Q2_K, 0x5764a3348dd2602a, 0xf4ee65089859188c, 0xbce27bab2c28718b},
    {QT_Q3_K, 0xd8c7093aa8b90ee6, 0xfb08ecc6cdc1f4a5, 0},
    {QT_Q4_K, 0xe75c738b178bb800, 0x3ee250db7d5b9ad9, 0},
    {QT_Q5_K, 0x7251026df1321220, 0x662988bc9dca1166, 0},
    {QT_Q6_K, 0x3013c67a36a7661f, 0xa1c73df7a854a5bb, 0},
    {QT_Q8_K, 0x3cc997e608e54dfe, 0x077dd80679d5aead, 0},
    {QT_IQ2_XXS, 0x4769109ca99a7946, 0x7b04b1b2ca049a40, 0x733e20083359d899},
    {QT_IQ2_XS, 0x927dfe8c943f87fa, 0xce684c1b5fcd0c4e, 0x454da428382a30ae},
    {QT_IQ3_XXS, 0x0093c5c2de363568, 0xf0cb39a7980298f9, 0xe8768396c95bdc1b},
    {QT_IQ1_S, 0xf3d6887168065772, 0x5b3b068207a09753, 0x9897fc19972a1749},
    {QT_IQ4_NL, 0xd824dedbeaf45ec4, 0xf7d31ff3022e6d3e, 0x93e536538acec9ee},
    {QT_IQ3_S, 0x4bc40b8d9af816ae, 0x7d89841e046e58ab, 0x0a3edf2c9974fc6d},
    {QT_IQ2_S, 0xac1168ffe6b93ca2, 0x23dd641e39999255, 0xf086e35f6510a879},
    {QT_IQ4_XS, 0x46ac443a02d6b960, 0x3d696e942ac45697, 0x92f5e8debe373c73},
    {QT_IQ1_M, 0x6d7233967be0bd2e, 0x5dc976ede0ec9b13, 0xba8488a7d57f535f},
    {QT_BF16, 0x360e0771bafd5bca, 0xb091c9285ff53282, 0},
    {QT_TQ1_0, 0xfad99ac73e5a8ce3, 0x00b977d176a14cb6, 0x6984e371cb5b606b},
    {QT_TQ2_0, 0x2637a8bb8535a186, 0x59d27e8ece380528, 0xda69d482faf06eeb},
    {QT_MXFP4, 0x4ea95b96469ff837, 0x1ab2f81656aa3e50, 0xabc893bdb9a1fb2a},
    {QT_NVFP4, 0x187542e1809ffcc9, 0x2509e9a727fd586e, 0x9fa9227ba67ddafa},
    {QT_Q1_0, 0x35c3928b5b32a218, 0x6938f3ff27802725, 0x180b3abb6a654b5c},
    {QT_Q2_0, 0xc822ae995d71fe11, 0x55acae8abf95d4da, 0x9469423ac495546a},
    {QT_Q2_0_128, 0xe45b160bba0b7873, 0xa68ee66f1783c0a7, 0x7469aec98f667136},
    {QT_MXFP8, 0xb661b8cacf939d0c, 0x58c9ab378ac31a19, 0},
    {QT_MXFP8_SF, 0x8d8e69694b9a129f, 0xabbee2287429827d, 0},
};
enum { RANDOM_N = 65536 };

static uint64_t random_dots(uint32_t type, const uint8_t *w, enum quant_isa isa)
{
    const enum act_format f = quant_type(type)->act;
    const size_t row = quant_row_bytes(type, VEC_ROW);
    void *const act = aligned(act_row_bytes(f, VEC_ROW));
    float dots[RANDOM_N / VEC_ROW];
    for (int r = 0; r < RANDOM_N / VEC_ROW; r++) {
        if (f == ACT_Q8_0)
            vec_act_ggml(v.y + r % 4 * VEC_ROW, VEC_ROW, act);
        else
            act_quantise(f, v.y + r % 4 * VEC_ROW, VEC_ROW, act);
        quant_tile(isa, type)(VEC_ROW, w + (size_t)r * row, row, 1, act, 0, 1, &dots[r], 1);
    }
    free(act);
    return vec_fnv(dots, sizeof dots);
}

static void test_random_blocks(void **state)
{
    for (size_t i = 0; i < sizeof random_blocks / sizeof random_blocks[0]; i++) {
        const struct random_blocks *t = &random_blocks[i];
        const size_t bytes = quant_row_bytes(t->type, RANDOM_N);
        uint8_t *const w = malloc(bytes);
        float *const f = malloc(RANDOM_N * sizeof *f);
        vec_random_blocks(t->type, w, bytes);
        assert_int_equal(vec_fnv(w, bytes), t->blocks);
        quant_type(t->type)->decode(w, f, RANDOM_N);
        assert_int_equal(vec_fnv(f, RANDOM_N * sizeof *f), t->floats);
        for (int isa = 0; t->dots && isa < QUANT_ISA_COUNT; isa++)
            if (vec_isa_tested((enum quant_isa)isa))
                assert_int_equal(random_dots(t->type, w, (enum quant_isa)isa), t->dots);
        free(f);
        free(w);
    }
}

/* more-quants 7.3, to find a mistake: the first bytes of these blocks, most significant first, single weights, and the
 * dot of row 0 in ggml's order (0: the type has none). */
static const struct first_values {
    uint32_t type;
    uint64_t bytes;
    uint32_t weight[5], dot;
} first_values[] = {
    {QT_Q4_0, 0xf4d14a238ec4f957, {0xc2be8000, 0x436e2000, 0x433e8000, 0x46e56000, 0xc7b35800}, 0xc96dcfc8},
    {QT_Q4_1, 0xd5f14e238fc2f153, {0xc82ef5ff, 0xc6ba9ff9, 0xc7ba9ffe, 0xc37d8f80, 0x415157f2}, 0x4a895596},
    {QT_Q5_0, 0x70515a238adcf847, {0xc3ae0000, 0x43984000, 0xc22e0000, 0x3fb1a800, 0xc204bc00}, 0x47e6da99},
    {QT_Q5_1, 0x51715e238bdaf043, {0x488f8b00, 0x489a2d00, 0x47e9ec02, 0xc8ba0380, 0x430d2104}, 0xcb9efb2b},
    {QT_Q8_0, 0xbe9063238478fb7f, {0xbd6abd00, 0xbca5fa00, 0x3cfb5600, 0xc0810000, 0x3dcb6e00}, 0xccad0d49},
    {QT_Q2_K, 0xfcd06b2386f4fb77, {0x48512a21, 0x48512a21, 0x48354a00, 0x47a750e8, 0x48354053}, 0x4a45a581},
    {QT_Q3_K, 0xddf06f2387f2f373, {0x442e8a00, 0xc4ae8a00, 0x43fde000, 0xc4b28180, 0x42be6800}, 0x467d6004},
    {QT_Q4_K, 0x3a1073238060fa6f, {0xbe9c6f00, 0xbe9c6f00, 0xbe9c6f00, 0xbe721200, 0xbdd1d700}, 0x4924bcc9},
    {QT_Q5_K, 0x1b3077238166f26b, {0xbdd70000, 0x3fc80c00, 0x3e8f5000, 0x43117498, 0x403384c0}, 0xcc2e326d},
    {QT_Q6_K, 0x78507b2382ecfa67, {0xcab4f0c0, 0xca714100, 0x4a7f7200, 0xc88cbb40, 0x4792a500}, 0x4d2b8036},
    {QT_IQ2_XXS, 0x87930023df0c7d1f, {0x3cbc2f00, 0xbcbc2f00, 0xbcbc2f00, 0x3cad2100, 0xbb34a800}, 0xc4c225b4},
    {QT_IQ2_XS, 0xa6b30423de0a751b, {0x41ad48f0, 0xc1ad48f0, 0x3fd62800, 0x41621b60, 0x411b5be0}, 0x4d282f2d},
    {QT_IQ3_XXS, 0xc5d30823dd807d17, {0x459d5540, 0xc6378e20, 0x459d5540, 0x464afaa0, 0xc6031c60}, 0x47b83583},
    {QT_IQ1_S, 0xe4f30c23dc867513, {0x48852780, 0x48852780, 0x46ecb800, 0xc8852780, 0xc68e0800}, 0x48f7da7a},
    {QT_IQ4_NL, 0x03131023db147c0f, {0xbdde9f40, 0xbd63e180, 0xbdb64e00, 0x45828000, 0x49221940}, 0xcbad4c0e},
    {QT_IQ3_S, 0x22331423da12740b, {0xc095ca00, 0xc095ca00, 0xc12ec100, 0x42131d40, 0x4226bac0}, 0xcc57a114},
    {QT_IQ2_S, 0x41531823d9987c07, {0x452a0370, 0xc5923628, 0x43cb1c00, 0xc4985500, 0xc4b55900}, 0xcd05047c},
    {QT_IQ4_XS, 0x60731c23d89e7403, {0xcc1c4200, 0x4a5d4000, 0x4af36000, 0xca85ac00, 0xcc241800}, 0xcdd16878},
    {QT_IQ1_M, 0x2a323523d222762b, {0x3d506800, 0xbd221800, 0x3f436180, 0x3d506800, 0xbdadac00}, 0x492d2f11},
    {QT_TQ1_0, 0x96d5ce23284cf1d6, {0x00000000, 0x3bdd2000, 0x3bdd2000, 0x00000000, 0x00000000}, 0x488df6cb},
    {QT_TQ2_0, 0xb7f5ca23294af9d2, {0xc067c000, 0x80000000, 0xbfe7c000, 0x80000000, 0xbfe7c000}, 0x41167da0},
    {QT_MXFP4, 0x3375da232d52f8c2, {0x1a400000, 0x99800000, 0x1ac00000, 0x81800000, 0x5e800000}, 0xf8dbcfa4},
    {QT_NVFP4, 0x5c14672322f0f3fe, {0x41c00000, 0x00000000, 0xbd400000, 0xc3340000, 0x3fb00000}, 0xc34cfd5c},
    {QT_Q1_0, 0xfdb4e32323f6fbfa, {0xbe9fa000, 0xbe9fa000, 0xbe9fa000, 0xbe9fa000, 0x37e70000}, 0xc787564d},
    {QT_Q2_0, 0x9ed4ef23207cf3f6, {0xc313c000, 0xc313c000, 0xc313c000, 0x4293c000, 0x39784000}, 0xc828d834},
    {QT_MXFP8, 0xf2897b2050cbf979, {0xb6a00000, 0xb0100000, 0x31900000, 0xf0500000, 0x3d600000}, 0},
};

static void test_first_values(void **state)
{
    static const int at[5] = {0, 1, 16, 33, 255};
    for (size_t i = 0; i < sizeof first_values / sizeof first_values[0]; i++) {
        const struct first_values *t = &first_values[i];
        const size_t bytes = quant_row_bytes(t->type, RANDOM_N);
        struct encoded e = {.type = t->type, .dots_exact = !has_own_order(t->type)};
        uint8_t *const w = malloc(bytes);
        float f[VEC_ROW];
        uint64_t first = 0;
        vec_random_blocks(t->type, w, bytes);
        for (int b = 0; b < 8; b++) first = first << 8 | w[b];
        assert_int_equal(first, t->bytes);
        quant_type(t->type)->decode(w, f, VEC_ROW);
        for (int k = 0; k < 5; k++)
            if (bits(f[at[k]]) != t->weight[k]) fail_msg("%s: weight %d", quant_type(t->type)->name, at[k]);
        e.dot[0] = t->dot;
        if (t->dot) check_dots(&e, w, 1);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generator),         cmocka_unit_test(test_encoded),
        cmocka_unit_test(test_encoded_elsewhere), cmocka_unit_test(test_q8_0_own_activations),
        cmocka_unit_test(test_q8_k_activations),  cmocka_unit_test(test_debug_blocks),
        cmocka_unit_test(test_random_blocks),     cmocka_unit_test(test_first_values),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
