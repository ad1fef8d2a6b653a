/* The judge's operations for recurrent layers, memory, streams and rotation by halves against written-down values (spec
 * qwen38 12). */
#include <math.h>
#include "ref_kit.h"

static void expect(struct kit *k, struct dev_buf *b, int row, const double *want, int n)
{
    double got[64];
    k->op->read_f64(k->stream, b, row, 1, got);
    kit_check(k);
    close_to(got, want, n, 1.01e-6);
}

/* A session alone from position 0 on. */
static void rows_of(struct kit *k, struct step *st, int n)
{
    const struct history h = {.n = n, .count = {n}, .slack = 4};
    step_make(st, &h, 0, n);
    k->op->set_rows(k->stream, &st->rows);
}

/* ---------------------------------------------------------------- delta net, 12.1 */

/* Hk 1, Hv 2, Dl 2, Kc 2. Channels q0 q1 k0 k1 | v of head 0 | v of head 1. */
struct net {
    struct kit k;
    struct step st;
    struct dev_buf *u, *c, *z, *b, *a, *o;
    struct dev_ring *ring;
    struct dev_scan *scan;
};

static const double u_rows[2][8] = {{1, -1, 2, 1, 1, 2, -1, 0.5}, {0.5, 1, -1, 1, 2, -1, 1, 1}};
static const double z_rows[2][4] = {{0, 1, -1, 2}, {1, 1, 0, -2}};
static const double b_rows[2][2] = {{0, 1}, {-1, 2}}, a_rows[2][2] = {{1, 0}, {0, 25}};

static void net_open(struct net *t, int row0, int n)
{
    t->u = doubles(&t->k, n, 1, 8, u_rows[row0]);
    t->z = doubles(&t->k, n, 2, 2, z_rows[row0]);
    t->b = doubles(&t->k, n, 1, 2, b_rows[row0]);
    t->a = doubles(&t->k, n, 1, 2, a_rows[row0]);
    t->c = kit_floats(&t->k, n, 1, 8);
    t->o = kit_floats(&t->k, n, 2, 2);
}

static void net_run(struct net *t, int n)
{
    const struct dev_ops *op = t->k.op;
    struct dev_stream *s = t->k.stream;
    struct kit *k = &t->k;
    const float taps[16] = {0.5f, 1, 0.5f, 1, 0.5f, 1, 0.5f, 1, 0.5f, 1, 0.5f, 1, 0.5f, 1, 0.5f, 1};
    struct dev_mat *conv = kit_mat(k, QT_F32, 2, 8, taps), *rate = kit_vector(k, 2, (const float[]){-1, -0.5f});
    struct dev_mat *dt = kit_vector(k, 2, (const float[]){0.5f, -1}), *gain = kit_vector(k, 2, (const float[]){1, 2});
    op->conv(s, &(struct conv_args){
                    .x = t->u, .out = t->c, .weight = conv, .taps = 2, .dilation = 1, .silu = true, .ring = &t->ring});
    op->element(
        s, &(struct element_args){.kind = ELEMENT_SIGMOID, .x = t->b, .out = t->b, .scale = 1, .factor = 1, .n = n});
    op->decay(s, &(struct decay_args){.x = t->a, .out = t->a, .a = rate, .bias = dt, .n = n});
    op->delta_scan(
        s,
        &(struct delta_scan_args){
            .x = t->c, .decay = t->a, .beta = t->b, .eps = 1e-6, .scale = 1 / sqrt(2), .scan = &t->scan, .out = t->o});
    op->rms_norm(s, &(struct rms_norm_args){
                        .x = t->o, .out = t->o, .weight = gain, .eps = 1e-6, .groups = 2, .width = 2, .n = n});
    op->element(s, &(struct element_args){.kind = ELEMENT_GATE, .x = t->o, .y = t->z, .out = t->o, .n = n});
}

static void state_is(struct net *t, const double want[8])
{
    double got[8];
    t->k.op->scan_get(t->scan, got);
    close_to(got, want, 8, 1.01e-6);
}

static void test_delta_net(void **state)
{
    static const double first[8] = {0.337611, 0.813524, 0.140108, 0.337611, -0.181595, 0.210149, -0.075362, 0.087212};
    static const double second[8] = {0.127462, 0.307139, 0.660020, 0.093182, -0.000001, 0.000001, 0.274130, 0.855804};
    static const double c[2][8] = {{0.731059, -0.268941, 1.761594, 0.731059, 0.731059, 1.761594, -0.268941, 0.311230},
                                   {0.731059, 0.311230, 0, 1.226362, 2.310355, 0, 0.311230, 0.971625}};
    static const double o[2][4] = {{0.271034, 1.909810, -0.248669, 1.884917}, {0.788097, 1.338325, 0.215698, 0.321082}};
    struct net t;
    ref_open(&t.k);
    t.ring = kit_ring(&t.k, kit_format(ROWFMT_F32, 8, 0), 1, 4);
    const struct scan_desc d = {.key_heads = 1, .value_heads = 2, .width = 2, .slack = 4};
    t.scan = kit_own(&t.k, KIT_SCAN, t.k.op->scan_create(t.k.dev, &d));
    rows_of(&t.k, &t.st, 2);
    net_open(&t, 0, 2);
    net_run(&t, 2);
    for (int i = 0; i < 2; i++) {
        expect(&t.k, t.c, i, c[i], 8);
        expect(&t.k, t.o, i, o[i], 4);
    }
    expect(&t.k, t.a, 0, (const double[]){0.182426, 0.855020}, 2);
    state_is(&t, (const double[8]){0}); /* nothing is committed */
    t.k.op->scan_replay(t.k.stream, t.scan, 0, 1);
    state_is(&t, first);
    t.k.op->scan_replay(t.k.stream, t.scan, 1, 2);
    state_is(&t, second);
    t.k.op->scan_flip(t.scan);
    state_is(&t, second);
    ref_close(&t.k);
}

/* ---------------------------------------------------------------- gates and streams, 12.3 */

static void test_memory_gate(void **state)
{
    static const double g[6] = {0, 1e-8, -1e-8, 0.25, -4, 9};
    static const double want[6] = {0.5, 0.500250, 0.499750, 0.622459, 0.119203, 0.952574};
    const double ones[6] = {1, 1, 1, 1, 1, 1};
    struct kit k;
    ref_open(&k);
    struct dev_buf *key = doubles(&k, 6, 1, 1, g), *one = doubles(&k, 6, 1, 1, ones), *out = kit_floats(&k, 6, 1, 1);
    k.op->memory_gate(
        k.stream, &(struct memory_gate_args){.key = key, .query = one, .value = one, .out = out, .streams = 1, .n = 6});
    for (int i = 0; i < 6; i++) expect(&k, out, i, &want[i], 1);
    ref_close(&k);
}

static void test_streams(void **state)
{
    struct kit k;
    ref_open(&k);
    struct dev_buf *R = doubles(&k, 1, 2, 2, (const double[]){1, 2, 3, -1}), *x = kit_floats(&k, 1, 2, 2);
    struct dev_buf *a = kit_floats(&k, 1, 1, 1), *g = kit_floats(&k, 1, 2, 2), *m = kit_floats(&k, 1, 1, 2);
    struct dev_buf *w = kit_floats(&k, 1, 1, 2), *y = doubles(&k, 1, 1, 2, (const double[]){1, -1});
    struct dev_mat *gain = kit_vector(&k, 4, (const float[]){1, 1, 1, 1});
    struct dev_mat *down = kit_mat(&k, QT_F32, 4, 1, (const float[]){1, 0, 0, 1});
    struct dev_mat *up = kit_mat(&k, QT_F32, 1, 4, (const float[]){0.5f, 1, -1, 0});
    struct dev_mat *inject = kit_mat(&k, QT_F32, 4, 2, (const float[]){1, 1, 0, 0, 0, 0, 1, -1});
    const struct dev_ops *op = k.op;
    op->rms_norm(k.stream,
                 &(struct rms_norm_args){
                     .x = R, .out = x, .weight = gain, .eps = 1e-6, .groups = 2, .width = 2, .each = true, .n = 1});
    expect(&k, x, 0, (const double[]){0.632455, 1.264911, 1.341641, -0.447214}, 4);
    op->matmul(k.stream, &(struct matmul_args){.w = down, .x = x, .out = a, .n = 1});
    op->element(k.stream, &(struct element_args){.kind = ELEMENT_SILU, .x = a, .out = a, .scale = 0.5, .n = 1});
    expect(&k, a, 0, (const double[]){0.048454}, 1);
    op->matmul(k.stream, &(struct matmul_args){.w = up, .x = a, .out = g, .n = 1});
    op->element(k.stream, &(struct element_args){.kind = ELEMENT_GATE, .x = x, .y = g, .out = g, .n = 1});
    op->hc_reduce(k.stream, &(struct hc_reduce_args){.x = g, .out = m, .streams = 2, .n = 1});
    expect(&k, m, 0, (const double[]){0.487315, 0.212084}, 2);
    op->matmul(k.stream, &(struct matmul_args){.w = inject, .x = x, .out = w, .n = 1});
    op->element(k.stream,
                &(struct element_args){.kind = ELEMENT_SIGMOID, .x = w, .out = w, .scale = 0.5, .factor = 2, .n = 1});
    expect(&k, w, 0, (const double[]){1.441701, 1.419606}, 2);
    op->hc_expand(k.stream, &(struct hc_expand_args){.y = y, .gates = w, .x = R, .streams = 2, .apart = true, .n = 1});
    expect(&k, R, 0, (const double[]){2.441701, 0.558299, 4.419606, -2.419606}, 4);
    ref_close(&k);
}

/* ---------------------------------------------------------------- rotation, 12.4 */

static void test_rotation(void **state)
{
    static const double x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const double want[10] = {-1.695593, -1.121388, 2.503053, 3.975982, -4.808842,
                                    6.224346,  7.192686,  8.011964, 9,        10};
    const struct rope_desc d = {.freq = (const double[]){1, 0.1, 0.01, 0.001},
                                .pairs = 4,
                                .axis = (const uint8_t[]){0, 1, 2, 0},
                                .halves = true};
    struct kit k;
    struct step st;
    ref_open(&k);
    rows_of(&k, &st, 1);
    st.rope_pos[0] = 3, st.rope_pos[1] = 5, st.rope_pos[2] = 7;
    struct dev_buf *b = doubles(&k, 1, 1, 10, x);
    struct dev_rope *rope = kit_own(&k, KIT_ROPE, k.op->rope_create(k.dev, &d));
    k.op->rope(k.stream, &(struct rope_args){.x = b, .rope = rope, .groups = 1, .width = 10, .n = 1});
    expect(&k, b, 0, want, 10);
    ref_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delta_net),
        cmocka_unit_test(test_memory_gate),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_rotation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
