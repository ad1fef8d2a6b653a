/* The cpu device leaves work that nobody wants any more in the middle of an op. */
#include <stdatomic.h>
#include "base/pool.h"
#include "device_kit.h"

enum { K = 256, ROWS = 4096, N = 64 };
struct patience {
    atomic_int asked;
    int until; /* questions answered with "go on" */
};

static bool unwanted(const void *arg)
{
    struct patience *p = (struct patience *)(uintptr_t)arg;
    return atomic_fetch_add(&p->asked, 1) >= p->until;
}

struct problem {
    struct pool *pool;
    struct dev *dev;
    struct kit kit;
    struct matmul_args args;
};

static void problem_make(struct problem *p, int threads)
{
    struct err e = {0};
    assert_int_equal(pool_create(threads, &p->pool, &e), 0);
    assert_int_equal(dev_create("cpu", p->pool, &p->dev, &e), 0);
    kit_open(&p->kit, p->dev, 5);
    struct dev_buf *x = kit_filled(&p->kit, N, 1, K, kit_values(&p->kit, (int64_t)N * K, 1));
    p->args = (struct matmul_args){.w = kit_mat(&p->kit, QT_F32, K, ROWS, kit_values(&p->kit, (int64_t)K * ROWS, 1)),
                                   .x = x,
                                   .out = kit_floats(&p->kit, N, 1, ROWS),
                                   .n = N};
}

static void problem_free(struct problem *p)
{
    kit_close(&p->kit);
    p->dev->op->free(p->dev);
    pool_free(p->pool);
}

static void check_leaves(int threads)
{
    struct problem p;
    struct patience patience = {.until = 2};
    static float want[N * ROWS], got[N * ROWS];
    problem_make(&p, threads);
    p.kit.op->matmul(p.kit.stream, &p.args);
    p.kit.op->read_f32(p.kit.stream, p.args.out, 0, N, want);
    kit_check(&p.kit);

    p.kit.stream->unwanted = unwanted;
    p.kit.stream->unwanted_arg = &patience;
    p.kit.op->matmul(p.kit.stream, &p.args);
    struct err e = {0};
    assert_int_equal(dev_error(p.kit.stream, &e), ERR_CANCELLED);
    const int asked = atomic_load(&patience.asked);
    assert_in_range(asked, 3, 2 + threads);  /* each thread may be told once */
    p.kit.op->matmul(p.kit.stream, &p.args); /* and nothing begins after that */
    assert_int_equal(atomic_load(&patience.asked), asked);

    dev_clear(p.kit.stream);
    patience.until = INT32_MAX;
    p.kit.op->matmul(p.kit.stream, &p.args);
    p.kit.op->read_f32(p.kit.stream, p.args.out, 0, N, got);
    kit_check(&p.kit);
    assert_memory_equal(got, want, sizeof want);
    assert_true(atomic_load(&patience.asked) > asked + 2);
    problem_free(&p);
}

static void test_leaves(void **state)
{
    check_leaves(1);
    check_leaves(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_leaves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
