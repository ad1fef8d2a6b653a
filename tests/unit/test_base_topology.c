/* base/topology.h on trees of /proc and /sys as machines have them, and pools on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/temp_files.h"
#include "base/pool.h"
#include "base/reading.h"
#include "base/sysinfo_internal.h"
#include "base/topology.h"

enum { CPUS = 300 };

static char root[TEMP_PATH];
static bool allowed[CPUS];

static int make_root(void **state)
{
    temp_folder(root);
    memset(allowed, 0, sizeof allowed);
    return 0;
}

static int remove_root(void **state)
{
    return temp_remove(root);
}

static void put(const char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *text, const char *fmt, ...)
{
    char path[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    temp_put(root, path, text);
}

static void allow(int from, int to)
{
    for (int c = from; c <= to; c++) allowed[c] = true;
}

#define CPU  "sys/devices/system/cpu/"
#define NODE "sys/devices/system/node/"

static void put_node(int id, const char *cpus, int gib, const char *distance)
{
    char text[100];
    snprintf(text, sizeof text, "\nNode %d MemTotal:       %8d kB\nNode %d MemFree:  5 kB\n", id, gib << 20, id);
    put(text, NODE "node%d/meminfo", id);
    put(cpus, NODE "node%d/cpulist", id);
    put(distance, NODE "node%d/distance", id);
}

static void put_siblings(int a, int b)
{
    char text[40];
    snprintf(text, sizeof text, "%d,%d\n", a, b);
    put(text, CPU "cpu%d/topology/thread_siblings_list", a);
    put(text, CPU "cpu%d/topology/thread_siblings_list", b);
}

/* Two sockets of four cores with two threads each, as Linux numbers them: 0-3 and 8-11, 4-7 and 12-15. */
static void put_two_sockets(void)
{
    for (int c = 0; c < 8; c++) put_siblings(c, c + 8);
    put("0-15\n", CPU "online");
    put("0-1\n", NODE "online");
    put_node(0, "0-3,8-11\n", 64, "10 21\n");
    put_node(1, "4-7,12-15\n", 64, "21 10\n");
    allow(0, 15);
}

/* The cores and their nodes, as "0:0 1:0 | threads". */
static void topology_is(const char *want)
{
    struct topology t;
    char have[1000] = "";
    topology_read_from(root, allowed, CPUS, &t);
    for (int i = 0; i < t.n_cores; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%d:%d ", t.core[i].cpu, t.node_id[t.core[i].node]);
    snprintf(have + strlen(have), sizeof have - strlen(have), "| %d nodes, %d threads", t.n_nodes, t.threads);
    topology_free(&t);
    assert_string_equal(have, want);
}

static void nothing_known(void **state)
{
    topology_is("-1:-1 | 1 nodes, 1 threads");
    allow(3, 4);
    topology_is("3:-1 4:-1 | 1 nodes, 2 threads");
}

static void one_socket(void **state)
{
    for (int c = 0; c < 4; c++) put_siblings(c, c + 4);
    put("0\n", NODE "online");
    put_node(0, "0-7\n", 16, "10\n");
    allow(0, 7);
    topology_is("0:0 1:0 2:0 3:0 | 1 nodes, 4 threads");
    allowed[0] = allowed[1] = false; /* 4 and 5 stand for their cores now */
    topology_is("2:0 3:0 4:0 5:0 | 1 nodes, 4 threads");
    allowed[4] = false;
    topology_is("2:0 3:0 5:0 | 1 nodes, 3 threads");
    allowed[9] = true; /* no folder, no node: a core of its own on the first */
    topology_is("2:0 3:0 5:0 9:0 | 1 nodes, 4 threads");
    put("7-9\n", CPU "cpu9/topology/thread_siblings_list");
    topology_is("2:0 3:0 5:0 | 1 nodes, 3 threads");
}

static void two_sockets_with_two_threads_a_core(void **state)
{
    put_two_sockets();
    topology_is("0:0 1:0 2:0 3:0 4:1 5:1 6:1 7:1 | 2 nodes, 8 threads");
    memset(allowed, 0, sizeof allowed); /* taskset -c 4-7,12-15 */
    allow(4, 7), allow(12, 15);
    topology_is("4:1 5:1 6:1 7:1 | 1 nodes, 4 threads");
    memset(allowed, 0, sizeof allowed); /* taskset -c 0 */
    allow(0, 0);
    topology_is("0:0 | 1 nodes, 1 threads");
}

/* 1, 8 (whose sibling is 0) and all of the second socket but 6 were switched off: their folders are gone. */
static void offline_processors(void **state)
{
    put_two_sockets();
    put("0,2-3,6,9-11\n", CPU "online");
    put("0,2-3,9-11\n", NODE "node0/cpulist");
    put("6\n", NODE "node1/cpulist");
    topology_is("0:0 2:0 3:0 6:1 9:0 | 2 nodes, 5 threads");
}

/* Node 1 has processors and no memory, node 2 memory and no processors; 3 is nearer to 1 than 0 is. */
static void nodes_without_memory_or_processors(void **state)
{
    put("0-3\n", NODE "online");
    put_node(0, "0-1\n", 8, "10 21 17 31\n");
    put_node(1, "2-3\n", 0, "21 10 28 12\n");
    put_node(2, "\n", 128, "17 28 10 28\n");
    put_node(3, "4-5\n", 8, "31 12 28 10\n");
    allow(0, 5);
    topology_is("0:0 1:0 2:3 3:3 4:3 5:3 | 2 nodes, 6 threads");
    put("10 12\n", NODE "node1/distance"); /* cut off: what is not said is far */
    topology_is("0:0 1:0 2:0 3:0 4:3 5:3 | 2 nodes, 6 threads");
    put("Name:\tx\nMems_allowed:\t1\nMems_allowed_list:\t0\n", "proc/self/status"); /* a cpuset grants node 0 only */
    topology_is("0:0 1:0 2:0 3:0 4:0 5:0 | 1 nodes, 6 threads");
}

static void quotas(void **state)
{
    put_two_sockets();
    put("0::/pod/box\n", "proc/self/cgroup");
    put("max 100000\n", "sys/fs/cgroup/pod/box/cpu.max");
    put("600000 100000\n", "sys/fs/cgroup/pod/cpu.max"); /* of the group above */
    topology_is("0:0 1:0 2:0 3:0 4:1 5:1 6:1 7:1 | 2 nodes, 6 threads");
    put("100000 100000\n", "sys/fs/cgroup/pod/box/cpu.max");
    topology_is("0:0 1:0 2:0 3:0 4:1 5:1 6:1 7:1 | 2 nodes, 1 threads");
    put("5:cpu,cpuacct:/a\n", "proc/self/cgroup");
    put("250000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us");
    put("100000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us");
    topology_is("0:0 1:0 2:0 3:0 4:1 5:1 6:1 7:1 | 2 nodes, 2 threads");
}

/* "cpu/node" of each of n threads. */
static void places_are(const struct topology *t, int n, const char *want)
{
    struct topology_core place[20];
    char have[400] = "";
    topology_place(t, n, place);
    for (int i = 0; i < n; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%d/%d", i ? " " : "", place[i].cpu, place[i].node);
    assert_string_equal(have, want);
}

static void places(void **state)
{
    struct topology t;
    put_two_sockets();
    topology_read_from(root, allowed, CPUS, &t);
    places_are(&t, 1, "0/0");
    places_are(&t, 5, "0/0 4/1 1/0 5/1 2/0");
    places_are(&t, 8, "0/0 4/1 1/0 5/1 2/0 6/1 3/0 7/1");
    places_are(&t, 9, "-1/0 -1/1 -1/0 -1/1 -1/0 -1/1 -1/0 -1/1 -1/0");
    topology_free(&t);
    memset(allowed, 0, sizeof allowed);
    allow(0, 4);
    topology_read_from(root, allowed, CPUS, &t);
    places_are(&t, 5, "0/0 4/1 1/0 2/0 3/0");
    topology_free(&t);
}

/* ---------------------------------------------------------------- pools */

enum { TASKS = 64 };

struct job {
    int ran[TASKS], by[TASKS], cpu[TASKS];
    atomic_int arrived;
    int wait_for;
};

static void task(void *arg, int i, int thread)
{
    struct job *j = arg;
    j->ran[i]++;
    j->by[i] = thread;
    j->cpu[i] = sched_getcpu();
    if (!j->wait_for) return;
    atomic_fetch_add(&j->arrived, 1);
    while (atomic_load(&j->arrived) < j->wait_for) sched_yield();
}

/* Both nodes are this processor's. */
static void parts_go_to_the_nodes_of_the_threads(void **state)
{
    const int here = sched_getcpu();
    struct topology_core cores[] = {{here, 0}, {here, 1}};
    const struct topology t = {.core = cores, .n_cores = 2, .n_nodes = 2, .threads = 2};
    struct pool *p;
    struct err e = {0};
    assert_int_equal(pool_create_on(&t, 0, &p, &e), 0);
    assert_int_equal(pool_threads(p), 2);
    assert_int_equal(pool_nodes(p), 2);
    for (int rep = 0; rep < 20; rep++) {
        struct job j = {.wait_for = 2}; /* one task each */
        usleep(3000);                   /* the worker sleeps: else it may be about to help with the first part */
        pool_run(p, task, &j, 2);
        assert_true(j.by[0] == 0 && j.by[1] == 1 && j.cpu[1] == here);
        struct job all = {0};
        pool_run(p, task, &all, TASKS - rep);
        for (int i = 0; i < TASKS; i++) assert_int_equal(all.ran[i], i < TASKS - rep);
    }
    pool_free(p);
}

static void a_limit_keeps_threads_out(void **state)
{
    struct pool *p;
    struct err e = {0};
    assert_int_equal(pool_create(4, &p, &e), 0);
    assert_int_equal(pool_nodes(p), 1);
    for (int n = 4; n >= 0; n--) {
        struct job j = {.wait_for = n < 1 ? 1 : n};
        pool_limit(p, n);
        pool_run(p, task, &j, TASKS);
        for (int i = 0; i < TASKS; i++) assert_true(j.ran[i] == 1 && j.by[i] < (n < 1 ? 1 : n));
    }
    pool_limit(p, 100);
    struct job j = {.wait_for = 4};
    pool_run(p, task, &j, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(j.ran[i], 1);
    assert_int_equal(pool_threads(p), 4);
    pool_free(p);
}

/* Whatever it finds out, the pool is whole afterwards. */
static void the_fastest_number_of_threads_to_read(void **state)
{
    for (int n = 1; n <= 5; n++) {
        struct pool *p;
        struct err e = {0};
        assert_int_equal(pool_create(n, &p, &e), 0);
        const int best = reading_threads(p);
        assert_true(best >= (n + 1) / 2 && best <= n);
        struct job j = {.wait_for = n};
        pool_run(p, task, &j, n);
        pool_free(p);
    }
}

/* One word of every line, whatever the number of lines. */
static void every_line_is_read_once(void **state)
{
    enum { MOST = 41, WORDS = 8 };
    _Alignas(64) static uint64_t words[MOST * WORDS];
    for (int i = 0; i < MOST * WORDS; i++) words[i] = i % WORDS ? UINT64_MAX : UINT64_C(1) << (i / WORDS);
    for (size_t lines = 0; lines <= MOST; lines++)
        for (int way = 0; way < READING_WAYS; way++)
            assert_true(reading_sum((enum reading_way)way, words, lines * WORDS * sizeof *words) ==
                        (UINT64_C(1) << lines) - 1);
}

#define IN_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOT(nothing_known),
        IN_ROOT(one_socket),
        IN_ROOT(two_sockets_with_two_threads_a_core),
        IN_ROOT(offline_processors),
        IN_ROOT(nodes_without_memory_or_processors),
        IN_ROOT(quotas),
        IN_ROOT(places),
        cmocka_unit_test(parts_go_to_the_nodes_of_the_threads),
        cmocka_unit_test(a_limit_keeps_threads_out),
        cmocka_unit_test(the_fastest_number_of_threads_to_read),
        cmocka_unit_test(every_line_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
