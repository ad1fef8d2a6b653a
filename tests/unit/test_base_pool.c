/* base/pool.h and base/clock.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/pool.h"

enum { N_TASKS = 300, MAX_THREADS = 8 };

/* ran and owner are plain memory: the thread sanitizer sees any task that two threads run, and any job whose results
 * are not visible to the caller. */
struct job {
    int ran[N_TASKS];
    int n_threads;
    int per_thread[MAX_THREADS];
    atomic_int bad_thread;
};

static void count(void *arg, int task, int thread)
{
    struct job *j = arg;
    j->ran[task]++;
    if (thread < 0 || thread >= j->n_threads)
        atomic_store(&j->bad_thread, 1);
    else
        j->per_thread[thread]++;
}

static void run_and_check(struct pool *p, int n_tasks)
{
    struct job j = {.n_threads = pool_threads(p)};
    pool_run(p, count, &j, n_tasks);
    int sum = 0;
    for (int i = 0; i < N_TASKS; i++) assert_int_equal(j.ran[i], i < n_tasks);
    for (int t = 0; t < MAX_THREADS; t++) sum += j.per_thread[t];
    assert_int_equal(sum, n_tasks);
    assert_int_equal(atomic_load(&j.bad_thread), 0);
}

static void every_task_runs_once(void **state)
{
    for (int n = 1; n <= MAX_THREADS; n++) {
        struct err e = {0};
        struct pool *p;
        assert_int_equal(pool_create(n, &p, &e), 0);
        assert_int_equal(pool_threads(p), n);
        for (int rep = 0; rep < 40; rep++)
            for (int tasks = 0; tasks <= 5; tasks++) run_and_check(p, tasks);
        run_and_check(p, N_TASKS);
        pool_free(p);
    }
    pool_free(NULL);
}

static void pause_us(long us)
{
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

/* Jobs after pauses of all lengths around the time workers spin: some find them awake, some asleep, some on the way. */
static void jobs_find_sleeping_workers(void **state)
{
    struct err e = {0};
    struct pool *p;
    assert_int_equal(pool_create(4, &p, &e), 0);
    for (int i = 0; i < 150; i++) {
        pause_us(i * 2);
        run_and_check(p, 1 + i % 9);
    }
    pool_free(p);
}

static void wait_for_both(void *arg, int task, int thread)
{
    atomic_int *arrived = arg;
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < 2) pause_us(20);
    if (task == 1) pause_us(2000); /* the other thread goes to sleep meanwhile */
}

/* Two tasks that wait for each other end only if two threads run them, also when both sides sleep in between. */
static void tasks_run_at_the_same_time(void **state)
{
    struct err e = {0};
    struct pool *p;
    assert_int_equal(pool_create(2, &p, &e), 0);
    for (int i = 0; i < 20; i++) {
        atomic_int arrived = 0;
        pool_run(p, wait_for_both, &arrived, 2);
        assert_int_equal(atomic_load(&arrived), 2);
    }
    pool_free(p);
}

static void unused_pools_can_be_freed(void **state)
{
    for (int i = 0; i < 30; i++) {
        struct err e = {0};
        struct pool *p;
        assert_int_equal(pool_create(1 + i % 4, &p, &e), 0);
        pause_us(i * 10);
        pool_free(p);
    }
}

static void thread_count_is_checked(void **state)
{
    struct err e = {0};
    struct pool *p;
    assert_int_equal(pool_create(-1, &p, &e), ERR_ARG);
    assert_null(p);
    assert_non_null(strstr(e.msg, "-1 threads"));
    err_clear(&e);
    assert_int_equal(pool_create(0, &p, &e), 0);
    assert_int_equal(pool_threads(p), pool_default_threads());
    pool_free(p);
}

static void clock_goes_forward(void **state)
{
    const uint64_t a = clock_ns();
    const double s = clock_s();
    pause_us(2000);
    assert_true(clock_ns() - a >= 2000000);
    const double d = clock_s() - s;
    assert_true(d >= 0.0019 && d < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),       cmocka_unit_test(jobs_find_sleeping_workers),
        cmocka_unit_test(tasks_run_at_the_same_time), cmocka_unit_test(unused_pools_can_be_freed),
        cmocka_unit_test(thread_count_is_checked),    cmocka_unit_test(clock_goes_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
