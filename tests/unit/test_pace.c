/* How large the pieces of a prompt are while an answer is written, for machines whose layers take what the tests say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "engine/pace.h"

enum { LAYERS = 5 };

/* A layer of n rows takes fixed + n * row seconds, the third one a little more. */
struct machine {
    double decode, fixed, row;
};

static double layer_s(const struct machine *m, int rows, int layer)
{
    return (m->fixed + rows * m->row) * (layer == 2 ? 1.1 : 1);
}

static void read_chunk(struct pace *p, const struct machine *m, int rows)
{
    for (int i = 0; i < LAYERS; i++) {
        pace_layer(p, rows, i, LAYERS, layer_s(m, rows, i));
        pace_decode(p, m->decode);
    }
}

/* The size that most pieces of a long prompt have in the end. */
static int settled(struct pace *p, const struct machine *m)
{
    int n[65536 + 1] = {0}, most = 0;
    for (int i = 0; i < 200; i++) {
        const int rows = pace_rows(p);
        read_chunk(p, m, rows);
        if (i >= 100 && ++n[rows] > n[most]) most = rows;
    }
    return most;
}

static int size_for(const struct machine *m, int chunk, int least)
{
    struct pace p;
    pace_init(&p, chunk, least);
    return settled(&p, m);
}

static void test_as_large_as_can_be(void **state)
{
    struct pace p;
    pace_init(&p, 512, 128);
    assert_int_equal(pace_rows(&p), 128); /* nothing is known */
    assert_int_equal(size_for(&(struct machine){0.001, 0, 0.00004}, 512, 128), 512);
    /* a large model: its decode steps take long as well */
    assert_int_equal(size_for(&(struct machine){0.300, 0.1, 0.0009}, 512, 128), 512);
}

static void test_small_enough(void **state)
{
    /* the layers' 42 ms against 2 * 1 + 20 */
    assert_int_equal(size_for(&(struct machine){0.001, 0, 0.00008}, 512, 128), 256);
    assert_int_equal(size_for(&(struct machine){0.001, 0, 0.00020}, 512, 128), 128);
    assert_int_equal(size_for(&(struct machine){0.001, 0, 0.01}, 512, 128), 128);
    assert_int_equal(size_for(&(struct machine){0.001, 0, 0.01}, 65536, 128), 128);
    assert_int_equal(size_for(&(struct machine){0.001, 0, 0.01}, 64, 128), 64);
    assert_int_equal(size_for(&(struct machine){0.001, 0, 0.01}, 200, 128), 200);
}

/* Where a layer costs nearly the same for any number of rows small pieces would only take longer. */
static void test_not_where_it_costs_more(void **state)
{
    assert_int_equal(size_for(&(struct machine){0.01, 0.2, 0.0001}, 512, 128), 512);
    /* half of it costs little more, a quarter too much */
    assert_int_equal(size_for(&(struct machine){0.001, 0.036, 0.0003}, 512, 128), 256);
}

/* What was measured once does not hold for ever. */
static void test_other_times(void **state)
{
    struct pace p;
    pace_init(&p, 512, 128);
    assert_int_equal(settled(&p, &(struct machine){0.001, 0, 0.0003}), 128);
    read_chunk(&p, &(struct machine){0.001, 0, 0.00001}, 512); /* a prompt alone: it is faster now */
    assert_int_equal(pace_rows(&p), 512);
    assert_int_equal(settled(&p, &(struct machine){0.001, 0, 0.001}), 128);
    /* once something else ran beside a half: it is tried again */
    pace_init(&p, 512, 256);
    read_chunk(&p, &(struct machine){0.001, 0, 0.0002}, 512);
    read_chunk(&p, &(struct machine){0.001, 0, 0.9}, 256);
    assert_int_equal(pace_rows(&p), 512);
    int pieces = 1;
    while (pace_rows(&p) == 512) pieces++;
    assert_in_range(pieces, 3, 20);
    assert_int_equal(settled(&p, &(struct machine){0.001, 0, 0.0002}), 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_large_as_can_be), cmocka_unit_test(test_small_enough),
                                       cmocka_unit_test(test_not_where_it_costs_more),
                                       cmocka_unit_test(test_other_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
