/* Device cpu: attention over more selected rows than a task keeps decoded. Many queries at once (each task decodes what
 * it needs, tile by tile) give the bits of one query at a time (rows decoded in advance), on one thread or three. What
 * the op quantises is what act_quant makes of its result. */
#include "device_kit.h"

enum {
    WIDTH = 24,
    HEADS = 4,
    WINDOW = 8,
    STORED = 1300,
    CHOSEN = 1100,
    QUERIES = 40,
    RATIO = 4,
    POS0 = STORED * RATIO
};

static const struct row_format format = {.kind = ROWFMT_F32, .width = WIDTH};

static struct buf_desc act_of(int T)
{
    return (struct buf_desc){.kind = BUF_ACT, .rows = T, .groups = 1, .width = HEADS * WIDTH, .act = ACT_Q8_0};
}

/* Values of all rows, drawn once. */
struct scene {
    float q[QUERIES * HEADS * WIDTH], sinks[HEADS];
    double raw[QUERIES * WIDTH], before[WINDOW * WIDTH], stored[STORED * WIDTH];
    int32_t chosen[QUERIES * (1 + CHOSEN)];
};

static struct scene *scene_make(struct kit *k)
{
    struct scene *s = kit_memory(k, sizeof *s);
    for (int i = 0; i < QUERIES * HEADS * WIDTH; i++) s->q[i] = kit_value(k);
    for (int i = 0; i < HEADS; i++) s->sinks[i] = kit_value(k);
    for (int i = 0; i < QUERIES * WIDTH; i++) s->raw[i] = kit_value(k);
    for (int i = 0; i < WINDOW * WIDTH; i++) s->before[i] = kit_value(k);
    for (int i = 0; i < STORED * WIDTH; i++) s->stored[i] = kit_value(k);
    for (int i = 0; i < QUERIES; i++) {
        int32_t *list = s->chosen + i * (1 + CHOSEN);
        list[0] = CHOSEN;
        for (int c = 0, at = 1; at <= CHOSEN; c++) /* skips a row now and then while enough are left */
            if (STORED - c == CHOSEN - (at - 1) || kit_bits(k) % 8) list[at++] = c;
    }
    return s;
}

struct session {
    struct dev_ring *ring;
    struct dev_store *store;
    struct dev_mat *sinks;
};

static struct session session_make(struct kit *k, const struct scene *s)
{
    struct session n = {.ring = kit_ring(k, format, WINDOW, QUERIES),
                        .store = kit_store(k, format),
                        .sinks = kit_vector(k, HEADS, s->sinks)};
    k->op->ring_put(n.ring, POS0 - WINDOW, WINDOW, kit_encoded(k, &format, WINDOW, s->before));
    assert_int_equal(k->op->store_reserve(n.store, 0, STORED), 0);
    k->op->store_put(n.store, 0, STORED, kit_encoded(k, &format, STORED, s->stored));
    return n;
}

/* The same products of the rows and of what the op made of them. */
static void check_quantised(struct kit *k, const struct dev_buf *rows, struct dev_buf *act, int T)
{
    struct dev_buf *const coded = kit_buf(k, act_of(T)), *const y[2] = {kit_floats(k, T, 1, 5), kit_floats(k, T, 1, 5)};
    struct dev_mat *const w = kit_mat(k, QT_Q8_0, HEADS * WIDTH, 5, NULL);
    float got[2][QUERIES * 5];
    k->op->act_quant(k->stream, &(struct act_quant_args){.x = rows, .out = coded, .n = T});
    for (int i = 0; i < 2; i++) {
        k->op->matmul(k->stream, &(struct matmul_args){.w = w, .x = i ? act : coded, .out = y[i], .n = T});
        kit_check(k);
        k->op->read_f32(k->stream, y[i], 0, T, got[i]);
    }
    assert_memory_equal(got[0], got[1], (size_t)T * 5 * sizeof(float));
}

/* Queries [i0, i1) in one step that starts at the segment's first row. */
static void attend(struct kit *k, const struct scene *s, const struct session *n, int i0, int i1, float *out)
{
    const int T = i1 - i0;
    int32_t token[QUERIES] = {0}, segment[QUERIES] = {0}, pos[QUERIES], rope[3 * QUERIES] = {0}, first[QUERIES],
            last[QUERIES];
    for (int i = 0; i < T; i++) {
        pos[i] = last[i] = POS0 + i0 + i;
        first[i] = pos[i] - WINDOW + 1;
    }
    const struct segment seg = {.n = T, .pos0 = POS0 + i0};
    const struct rows rows = {T, token, segment, pos, rope, first, last, 1, &seg};
    float raw[QUERIES * WIDTH];
    for (int i = 0; i < T * WIDTH; i++) raw[i] = (float)s->raw[i0 * WIDTH + i];
    struct dev_buf *x = kit_filled(k, T, 1, WIDTH, raw), *y = kit_floats(k, T, HEADS, WIDTH);
    struct dev_buf *packed =
        kit_buf(k, (struct buf_desc){.kind = BUF_PACKED, .rows = T, .groups = 1, .width = WIDTH, .fmt = format});
    struct dev_buf *act = kit_buf(k, act_of(T));
    k->op->set_rows(k->stream, &rows);
    k->op->pack(k->stream, &(struct pack_args){.x = x, .out = packed, .n = T});
    struct dev_buf *only = kit_buf(k, act_of(T));
    struct attention_args a = {.q = kit_filled(k, T, HEADS, WIDTH, s->q + i0 * HEADS * WIDTH),
                               .raw = packed,
                               .ring = &n->ring,
                               .store = &n->store,
                               .ratio = RATIO,
                               .selected = kit_ints(k, T, 1 + CHOSEN, s->chosen + i0 * (1 + CHOSEN)),
                               .sinks = n->sinks,
                               .scale = 0.2,
                               .out = y,
                               .act = act,
                               .n = T};
    k->op->attention(k->stream, &a);
    a.out = NULL, a.act = only;
    k->op->attention(k->stream, &a);
    k->op->ring_write(k->stream, &(struct ring_write_args){.x = packed, .ring = &n->ring});
    kit_check(k);
    k->op->read_f32(k->stream, y, 0, T, out + i0 * HEADS * WIDTH);
    check_quantised(k, y, act, T);
    check_quantised(k, y, only, T);
}

static void run(int threads, bool at_once, float *out)
{
    static struct kit k;
    struct pool *pool;
    struct dev *dev;
    assert_int_equal(pool_create(threads, &pool, NULL), 0);
    assert_int_equal(dev_cpu_create(pool, quant_isa_best(), &dev, NULL), 0);
    kit_open(&k, dev, 5);
    const struct scene *s = scene_make(&k);
    const struct session n = session_make(&k, s);
    if (at_once) attend(&k, s, &n, 0, QUERIES, out);
    for (int i = 0; !at_once && i < QUERIES; i++) attend(&k, s, &n, i, i + 1, out);
    kit_close(&k);
    dev->op->free(dev);
    pool_free(pool);
}

static void many_selected_rows(void **state)
{
    static float one[QUERIES * HEADS * WIDTH], all[QUERIES * HEADS * WIDTH];
    run(1, false, one);
    run(1, true, all);
    assert_memory_equal(one, all, sizeof one);
    run(3, true, all);
    assert_memory_equal(one, all, sizeof one);
    run(3, false, all);
    assert_memory_equal(one, all, sizeof one);
    for (int i = 0; i < QUERIES * HEADS * WIDTH; i++) assert_true(one[i] == one[i] && one[i] != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_selected_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
