/* Device cpu: selections out of a long index are the k best scores, of equal ones the lower rows, whatever the order in
 * which they come; one query at a time and many at once, on one thread or three, in rows of halves and of floats. */
#include <math.h>
#include <stdlib.h>
#include "device_kit.h"

enum { WIDTH = 16, STORED = 20000, QUERIES = 12, POS0 = STORED - QUERIES, MOST_K = 600 };

/* Score of row i: it is the first value of the row, and of the query. */
static float rising(struct kit *k, int i)
{
    return (float)(i / 8);
}

static float falling(struct kit *k, int i)
{
    return (float)((STORED - i) / 8);
}

static float mixed(struct kit *k, int i)
{
    return kit_value(k);
}

/* Most are 0, as where no head of a query likes a block. */
static float rare(struct kit *k, int i)
{
    return kit_bits(k) % 100 ? -1 : (float)(kit_bits(k) % 7);
}

static float equal(struct kit *k, int i)
{
    return 3;
}

static float endless(struct kit *k, int i)
{
    return kit_bits(k) % 2000 ? 1 : INFINITY;
}

static int by_score(const void *a, const void *b)
{
    const float *x = *(float *const *)a, *y = *(float *const *)b;
    return *x != *y ? (*x < *y) - (*x > *y) : (x > y) - (x < y);
}

static int by_place(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* The definition: all scores sorted. */
static void best_of(const float *score, int n, int k, int32_t *out)
{
    static const float *order[STORED];
    for (int i = 0; i < n; i++) order[i] = score + i;
    qsort(order, (size_t)n, sizeof *order, by_score);
    for (int i = 0; i < k; i++) out[i] = (int32_t)(order[i] - score);
    qsort(out, (size_t)k, sizeof *out, by_place);
}

/* Queries [i0, i1) -> their selections. weight: of all scores, also a negative one. */
static void select_rows(struct kit *k, struct dev_store *store, int top_k, float weight, int i0, int i1, int32_t *out)
{
    const int T = i1 - i0;
    int32_t token[QUERIES] = {0}, segment[QUERIES] = {0}, pos[QUERIES], rope[3 * QUERIES] = {0};
    float q[QUERIES * WIDTH] = {0}, w[QUERIES];
    for (int i = 0; i < T; i++) pos[i] = POS0 + i0 + i, q[i * WIDTH] = 1, w[i] = weight;
    const struct segment seg = {.n = T, .pos0 = POS0 + i0};
    const struct rows rows = {T, token, segment, pos, rope, pos, pos, 1, &seg};
    struct dev_buf *got = kit_ints(k, T, 1 + top_k, NULL);
    k->op->set_rows(k->stream, &rows);
    k->op->select(k->stream, &(struct select_args){.q = kit_filled(k, T, 1, WIDTH, q),
                                                   .weight = kit_filled(k, T, 1, 1, w),
                                                   .scale = 1,
                                                   .store = &store,
                                                   .ratio = 1,
                                                   .top_k = top_k,
                                                   .out = got,
                                                   .n = T});
    kit_check(k);
    k->op->read_i32(k->stream, got, 0, T, out);
}

static void check(struct kit *k, struct dev_store *store, const float *score, int top_k, float weight)
{
    static int32_t got[QUERIES * (1 + MOST_K)], one[1 + MOST_K], want[MOST_K];
    static float weighted[STORED];
    for (int i = 0; i < STORED; i++) weighted[i] = weight * (score[i] > 0 ? score[i] : 0);
    select_rows(k, store, top_k, weight, 0, QUERIES, got);
    for (int i = 0; i < QUERIES; i++) {
        const int32_t *const list = got + i * (1 + top_k);
        best_of(weighted, POS0 + i + 1, top_k, want);
        assert_int_equal(list[0], top_k);
        assert_memory_equal(list + 1, want, (size_t)top_k * sizeof *want);
        select_rows(k, store, top_k, weight, i, i + 1, one);
        assert_memory_equal(one, list, (size_t)(1 + top_k) * sizeof *one);
    }
}

static void long_index(enum row_format_kind kind, int threads)
{
    static struct kit k;
    static float score[STORED];
    static float (*const orders[])(struct kit *, int) = {rising, falling, mixed, rare, equal, endless};
    const struct row_format format = {.kind = kind, .width = WIDTH};
    struct pool *pool;
    struct dev *dev;
    assert_int_equal(pool_create(threads, &pool, NULL), 0);
    assert_int_equal(dev_cpu_create(pool, quant_isa_best(), &dev, NULL), 0);
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        kit_open(&k, dev, 7);
        struct dev_store *store = kit_store(&k, format);
        uint8_t *row = kit_memory(&k, k.op->row_bytes(dev, &format));
        assert_int_equal(k.op->store_reserve(store, 0, STORED), 0);
        for (int i = 0; i < STORED; i++) {
            double values[WIDTH] = {0};
            score[i] = f16_to_f32(f32_to_f16(orders[o](&k, i)));
            values[0] = score[i];
            k.op->row_encode(dev, &format, values, row);
            k.op->store_put(store, i, 1, row);
        }
        check(&k, store, score, 1, 1);
        check(&k, store, score, 37, 0.5f);
        check(&k, store, score, MOST_K, -1);
        kit_close(&k);
    }
    dev->op->free(dev);
    pool_free(pool);
}

static void halves(void **state)
{
    long_index(ROWFMT_F16, 1);
    long_index(ROWFMT_F16, 3);
}

static void floats(void **state)
{
    long_index(ROWFMT_F32, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves), cmocka_unit_test(floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
