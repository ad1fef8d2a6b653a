/* Resident experts: which bytes a ticket gives, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "experts/experts.h"

static uint8_t bytes[4096];

/* `rows` rows of `row_bytes` bytes in each of n matrices, from byte `at` on. */
static struct tensor_view stacked(uint64_t at, int64_t rows, uint64_t row_bytes, int64_t n)
{
    return (struct tensor_view){.type = 0,
                                .ne = {(int64_t)row_bytes / 4, rows, n, 1},
                                .stride = {0, row_bytes, row_bytes * (uint64_t)rows, 0},
                                .data = bytes + at,
                                .offset = 10000 + at};
}

static struct expert_layer layer_of(int64_t n)
{
    return (struct expert_layer){stacked(0, 3, 8, n), stacked(1000, 3, 8, n), stacked(2000, 2, 12, n)};
}

static void test_slices(void **state)
{
    (void)state;
    const struct expert_layer layers[] = {layer_of(4), layer_of(2)};
    struct experts *x;
    struct experts_ticket *t;
    struct expert e;
    assert_int_equal(experts_open_resident(layers, 2, &x, NULL), 0);
    assert_int_equal(experts_count(x, 0), 4);
    assert_int_equal(experts_count(x, 1), 2);
    assert_ptr_equal(experts_layer(x, 1)->up.data, bytes + 1000);
    assert_null(experts_layer(x, 2));
    assert_int_equal(experts_want(x, 0, (const int32_t[]){1, 3}, 2, &t, NULL), 0);
    assert_int_equal(experts_get(t, 3, &e, NULL), 0);
    assert_ptr_equal(e.gate.data, bytes + 3 * 24);
    assert_ptr_equal(e.up.data, bytes + 1000 + 3 * 24);
    assert_ptr_equal(e.down.data, bytes + 2000 + 3 * 24);
    assert_int_equal(e.down.offset, 12000 + 3 * 24);
    assert_int_equal(e.down.ne[0], 3);
    assert_int_equal(e.down.ne[1], 2);
    assert_int_equal(e.down.ne[2], 1);
    experts_done(t);
    experts_close(x);
}

static void test_refused(void **state)
{
    (void)state;
    struct expert_layer layers[] = {layer_of(4), {.gate = {.data = NULL}}};
    struct experts *x;
    struct experts_ticket *t;
    struct expert e;
    struct err err = {0};
    assert_int_equal(experts_open_resident(layers, 2, &x, NULL), 0);
    assert_int_equal(experts_want(x, 0, (const int32_t[]){0, 4}, 2, &t, &err), ERR_MODEL);
    assert_non_null(strstr(err.msg, "expert 4"));
    assert_int_equal(experts_want(x, 0, (const int32_t[]){-1}, 1, &t, NULL), ERR_MODEL);
    assert_int_equal(experts_want(x, 1, (const int32_t[]){0}, 1, &t, NULL), ERR_MODEL); /* a layer without experts */
    assert_int_equal(experts_want(x, 2, (const int32_t[]){0}, 1, &t, NULL), ERR_ARG);
    assert_int_equal(experts_want(x, 0, (const int32_t[]){0}, 1, &t, NULL), 0);
    assert_int_equal(experts_get(t, 7, &e, NULL), ERR_MODEL);
    experts_close(x);
    layers[0].down.ne[2] = 3;
    assert_int_equal(experts_open_resident(layers, 2, &x, NULL), ERR_MODEL);
    assert_null(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
