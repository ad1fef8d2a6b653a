/* Rings and stores of every device: where rows land, what a bulk step keeps, who shares what. */
#include "device_kit.h"

static const char *const device_names[] = {"ref", "cpu"};

/* Runs one check on every device. */
static void on_devices(void (*check)(struct kit *k))
{
    struct pool *pool;
    assert_int_equal(pool_create(1, &pool, NULL), 0);
    for (size_t i = 0; i < sizeof device_names / sizeof *device_names; i++) {
        struct dev *d;
        struct err e = {0};
        struct kit k;
        if (dev_create(device_names[i], pool, &d, &e)) fail_msg("%s: %s", device_names[i], e.msg);
        kit_open(&k, d, 1);
        check(&k);
        kit_check(&k);
        kit_close(&k);
        d->op->free(d);
    }
    pool_free(pool);
}

static const struct row_format one = {.kind = ROWFMT_F32, .width = 1};

/* n rows of one value: first, first + 1, ... */
static void *counted(struct kit *k, int n, int first)
{
    double *x = kit_memory(k, (size_t)n * sizeof *x);
    for (int i = 0; i < n; i++) x[i] = first + i;
    return kit_encoded(k, &one, n, x);
}

static void ring_holds(struct kit *k, const struct dev_ring *r, int32_t pos, int n, int first)
{
    const double *got = kit_ring_values(k, r, &one, pos, n);
    for (int i = 0; i < n; i++)
        if (got[i] != first + i)
            fail_msg("%s: position %d holds %g instead of %d", k->op->name, pos + i, got[i], first + i);
}

/* Writes positions pos .. pos+n-1 of one session with values first ... in one step. */
static void ring_step(struct kit *k, struct dev_ring *r, int32_t pos, int n, int first, bool bulk)
{
    const struct history h = {.count = {n}, .start = {pos}, .window = 1, .slack = bulk ? 0 : n};
    struct step st;
    step_make(&st, &h, 0, n);
    float x[KIT_ROWS];
    for (int i = 0; i < n; i++) x[i] = (float)(first + i);
    k->op->set_rows(k->stream, &st.rows);
    k->op->ring_write(k->stream, &(struct ring_write_args){.x = kit_filled(k, n, 1, 1, x), .ring = &r});
}

/* ---------------------------------------------------------------- rings */

static void ring_in_place(struct kit *k)
{
    struct dev_ring *r = kit_ring(k, one, 4, 3);
    ring_step(k, r, 0, 3, 100, false);
    ring_step(k, r, 3, 3, 103, false);
    ring_holds(k, r, 2, 4, 102);
    ring_step(k, r, 6, 3, 106, false); /* drafts: only one row is kept ... */
    ring_holds(k, r, 2, 4, 102);       /* ... and nothing that the committed length needs is lost */
    ring_step(k, r, 7, 2, 207, false);
    ring_holds(k, r, 3, 4, 103);
    ring_holds(k, r, 7, 2, 207);
}

static void ring_bulk(struct kit *k)
{
    struct dev_ring *r = kit_ring(k, one, 4, 2);
    ring_step(k, r, 0, 20, 0, true);
    ring_holds(k, r, 0, 1, 0); /* untouched: zero */
    k->op->ring_flip(r);
    ring_holds(k, r, 16, 4, 16);
    ring_step(k, r, 20, 3, 120, true); /* shorter than the span: row 19 is carried over */
    ring_holds(k, r, 16, 4, 16);       /* not committed yet */
    k->op->ring_flip(r);
    ring_holds(k, r, 19, 1, 19);
    ring_holds(k, r, 20, 3, 120);
    ring_step(k, r, 23, 10, 300, true); /* dropped: no flip */
    ring_step(k, r, 23, 2, 23, false);
    ring_holds(k, r, 21, 2, 121);
    ring_holds(k, r, 23, 2, 23);
}

/* At the start of a session there is nothing to carry over. */
static void ring_bulk_first(struct kit *k)
{
    struct dev_ring *r = kit_ring(k, one, 8, 1);
    ring_step(k, r, 0, 1, 5, false);
    ring_step(k, r, 1, 4, 6, true);
    k->op->ring_flip(r);
    ring_holds(k, r, 0, 5, 5);
}

static void ring_bytes(struct kit *k)
{
    struct dev_ring *a = kit_ring(k, one, 4, 2), *b = kit_ring(k, one, 4, 2), *other = kit_ring(k, one, 5, 2);
    k->op->ring_put(a, 9, 4, counted(k, 4, 9));
    ring_holds(k, a, 9, 4, 9);
    ring_step(k, b, 13, 9, 50, true);
    k->op->ring_flip(b);
    assert_int_equal(k->op->ring_copy(b, a), 0);
    ring_holds(k, b, 9, 4, 9);
    ring_step(k, b, 13, 1, 13, false);
    ring_holds(k, a, 9, 4, 9); /* a copy, not a share */
    ring_holds(k, b, 10, 4, 10);
    assert_int_equal(k->op->ring_copy(other, a), ERR_ARG);
}

/* More rows than the slack cannot be written in place. */
static void ring_too_long(struct kit *k)
{
    struct dev_ring *r = kit_ring(k, one, 4, 2);
    ring_step(k, r, 0, 3, 0, false);
    assert_int_equal(dev_error(k->stream, NULL), ERR_ARG);
    dev_clear(k->stream);
}

/* ---------------------------------------------------------------- stores */

static void store_holds(struct kit *k, const struct dev_store *st, int64_t row, int n, int first)
{
    const double *got = kit_store_values(k, st, &one, row, n);
    for (int i = 0; i < n; i++)
        if (got[i] != first + i)
            fail_msg("%s: row %d holds %g instead of %d", k->op->name, (int)row + i, got[i], first + i);
}

static void store_write(struct kit *k, struct dev_store *st, int64_t row, int n, int first)
{
    assert_int_equal(k->op->store_reserve(st, row, row + n), 0);
    k->op->store_put(st, row, n, counted(k, n, first));
}

static void store_rows(struct kit *k)
{
    struct dev_store *st = kit_store(k, one);
    assert_int_equal(k->op->store_reserve(st, 5, 5), 0);
    store_write(k, st, 0, 3000, 0);
    store_holds(k, st, 0, 3000, 0);
    store_write(k, st, 1020, 8, 7000); /* across a border of segments */
    store_holds(k, st, 1016, 4, 1016);
    store_holds(k, st, 1020, 8, 7000);
    store_holds(k, st, 1028, 1972, 1028);
}

static void store_share(struct kit *k)
{
    struct dev_store *a = kit_store(k, one), *b = kit_store(k, one), *c = kit_store(k, one);
    store_write(k, a, 0, 2500, 0);
    store_write(k, b, 0, 1500, 9000); /* replaced by the share */
    assert_int_equal(k->op->store_share(b, a, 2100), 0);
    assert_int_equal(k->op->store_share(c, b, 2048), 0);
    store_holds(k, b, 0, 2100, 0);
    store_holds(k, c, 0, 2048, 0);
    store_write(k, b, 2100, 10, 5000); /* the tail is b's own */
    store_holds(k, a, 2100, 400, 2100);
    store_write(k, a, 1000, 100, 8000); /* shared segments are copied first */
    store_holds(k, a, 990, 10, 990);
    store_holds(k, a, 1000, 100, 8000);
    store_holds(k, a, 1100, 1000, 1100);
    store_holds(k, b, 0, 2100, 0);
    store_holds(k, c, 0, 2048, 0);
    store_write(k, b, 0, 1, -1); /* b gives up its share, c keeps the old rows */
    store_holds(k, c, 0, 2048, 0);
    store_holds(k, b, 1, 2099, 1);
    assert_int_equal(k->op->store_share(c, a, 0), 0);
    store_write(k, c, 0, 4, 40);
    store_holds(k, c, 0, 4, 40);
}

/* A store outlives the one that it shares with. */
static void store_owner_leaves(struct kit *k)
{
    struct dev_store *heir = kit_store(k, one), *a = k->op->store_create(k->dev, &one);
    assert_non_null(a);
    store_write(k, a, 0, 1200, 0);
    assert_int_equal(k->op->store_share(heir, a, 1100), 0);
    k->op->store_free(a);
    store_holds(k, heir, 0, 1100, 0);
    store_write(k, heir, 1023, 2, 60);
    store_holds(k, heir, 1020, 3, 1020);
    store_holds(k, heir, 1023, 2, 60);
}

static void store_share_refused(struct kit *k)
{
    const struct row_format wide = {.kind = ROWFMT_F32, .width = 2};
    struct dev_store *a = kit_store(k, one), *b = kit_store(k, one), *w = kit_store(k, wide);
    store_write(k, a, 0, 10, 0);
    assert_int_equal(k->op->store_share(w, a, 10), ERR_ARG);
    assert_int_equal(k->op->store_share(b, a, 1025), ERR_ARG); /* more segments than there are */
}

/* Both devices hold the same values in every format. */
static void encoded_rows(struct kit *k)
{
    const struct row_format fp8 = kit_format(ROWFMT_FP8, 130, 128), fp4 = kit_format(ROWFMT_FP4, 64, 0);
    double x[130], got[130];
    for (int i = 0; i < 130; i++) x[i] = e4m3_to_f32((uint8_t)(i % 120)) * (i < 64 ? 1 : 0x1p-7);
    x[1] = 448; /* scales 1 and 2^-7 */
    x[100] = -448 * 0x1p-7;
    x[128] = 0x1p-24;
    x[129] = -65504;
    kit_decoded(k, &fp8, kit_encoded(k, &fp8, 1, x), 1, got);
    for (int i = 0; i < 130; i++)
        if (got[i] != x[i]) fail_msg("%s: FP8 value %d: %g became %g", k->op->name, i, x[i], got[i]);
    for (int i = 0; i < 64; i++) x[i] = e2m1_to_f32((uint8_t)(i % 16)) * (i < 32 ? 0x1p10 : 0x1p-10);
    kit_decoded(k, &fp4, kit_encoded(k, &fp4, 1, x), 1, got);
    for (int i = 0; i < 64; i++)
        if (got[i] != x[i]) fail_msg("%s: FP4 value %d: %g became %g", k->op->name, i, x[i], got[i]);
}

/* Buffers keep what they hold when the device warms up, however many of them came and went. */
static void warm_keeps(struct kit *k)
{
    enum { BUFS = 5, ROWS = 3, WIDTH = 1 << 19 };
    const struct buf_desc d = {.kind = BUF_FLOAT, .rows = ROWS, .groups = 1, .width = WIDTH};
    struct dev_buf *b[BUFS];
    float *const x = kit_memory(k, WIDTH * sizeof *x);
    double *const got = kit_memory(k, WIDTH * sizeof *got);
    for (int i = 0; i < BUFS; i++) {
        assert_non_null(b[i] = k->op->buf_create(k->dev, &d));
        for (int j = 0; j < WIDTH; j++) x[j] = (float)(i + j % 1000);
        for (int r = 0; r < ROWS; r++) k->op->write_f32(k->stream, b[i], r, 1, x);
    }
    static const int order[BUFS] = {2, 0, 4, 1, 3};
    for (int n = 0; n < BUFS; n++) {
        if (k->op->warm) k->op->warm(k->stream, NULL);
        for (int i = n; i < BUFS; i++)
            for (int r = 0; r < ROWS; r++) {
                k->op->read_f64(k->stream, b[order[i]], r, 1, got);
                for (int j = 0; j < WIDTH; j++) assert_true(got[j] == order[i] + j % 1000);
            }
        k->op->buf_free(b[order[n]]);
    }
}

#define DEVICE_TEST(check)                                                                                             \
    static void test_##check(void **state)                                                                             \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        on_devices(check);                                                                                             \
    }
DEVICE_TEST(ring_in_place)
DEVICE_TEST(ring_bulk)
DEVICE_TEST(ring_bulk_first)
DEVICE_TEST(ring_bytes)
DEVICE_TEST(ring_too_long)
DEVICE_TEST(store_rows)
DEVICE_TEST(store_share)
DEVICE_TEST(store_owner_leaves)
DEVICE_TEST(store_share_refused)
DEVICE_TEST(encoded_rows)
DEVICE_TEST(warm_keeps)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_in_place),       cmocka_unit_test(test_ring_bulk),
        cmocka_unit_test(test_ring_bulk_first),     cmocka_unit_test(test_ring_bytes),
        cmocka_unit_test(test_ring_too_long),       cmocka_unit_test(test_store_rows),
        cmocka_unit_test(test_store_share),         cmocka_unit_test(test_store_owner_leaves),
        cmocka_unit_test(test_store_share_refused), cmocka_unit_test(test_encoded_rows),
        cmocka_unit_test(test_warm_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
