/* base/mem.h, and the machine's limits read from made-up trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../support/temp_files.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/sysinfo.h"
#include "base/sysinfo_internal.h"

static void arithmetic_refuses_overflow(void **state)
{
    uint64_t r = 5;
    assert_true(u64_mul(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &r));
    assert_true(r == UINT64_C(0xFFFFFFFF00000000));
    assert_false(u64_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &r));
    assert_true(u64_mul(UINT64_MAX, 1, &r) && r == UINT64_MAX);
    assert_true(u64_mul(0, UINT64_MAX, &r) && r == 0);
    assert_true(u64_mul(UINT64_MAX, 0, &r) && r == 0);
    assert_true(u64_add(UINT64_MAX - 1, 1, &r) && r == UINT64_MAX);
    assert_false(u64_add(UINT64_MAX, 1, &r));
    assert_true(u64_align_up(33, 32, &r) && r == 64);
    assert_true(u64_align_up(64, 32, &r) && r == 64);
    assert_true(u64_align_up(UINT64_MAX - 31, 32, &r) && r == UINT64_MAX - 31);
    assert_false(u64_align_up(UINT64_MAX - 30, 32, &r));
    assert_true(r == UINT64_MAX - 31);
}

static void memory_is_zeroed_and_aligned(void **state)
{
    for (size_t align = 1; align <= 4096; align *= 2) {
        unsigned char *p = mem_try_aligned(1000, align);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        for (int i = 0; i < 1000; i++) assert_int_equal(p[i], 0);
        mem_free(p);
    }
    assert_null(mem_try(SIZE_MAX));
    assert_null(mem_try_aligned(SIZE_MAX, 64));
    for (size_t bytes = 1; bytes < 100 << 20; bytes *= 8) { /* large ones on huge pages */
        unsigned char *p = mem_try_scratch(bytes);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        p[0] = p[bytes - 1] = 1;
        mem_free(p);
        p = mem_try_aligned(bytes, 64);
        assert_non_null(p);
        assert_int_equal(p[0] + p[bytes - 1], 0);
        mem_free(p);
    }
    assert_null(mem_try_scratch(SIZE_MAX));
    char *s = mem_strdup("text");
    s = mem_grow(s, 100);
    assert_string_equal(s, "text");
    mem_free(s);
    mem_free(NULL);
    void *none = mem_try(0);
    assert_non_null(none);
    mem_free(none);
}

static jmp_buf failed;
static size_t failed_bytes;

static void on_failure(size_t bytes)
{
    failed_bytes = bytes;
    longjmp(failed, 1);
}

static void failure_goes_to_the_handler(void **state)
{
    mem_on_failure(on_failure);
    if (!setjmp(failed)) {
        mem_alloc(SIZE_MAX - 7);
        fail();
    }
    assert_true(failed_bytes == SIZE_MAX - 7);
    mem_on_failure(NULL);
}

static char root[TEMP_PATH];

static int make_root(void **state)
{
    temp_folder(root);
    return 0;
}

static int remove_root(void **state)
{
    return temp_remove(root);
}

static void put(const char *path, const char *text)
{
    temp_put(root, path, text);
}

#define CG "sys/fs/cgroup/"

static void nothing_known_is_zero(void **state)
{
    assert_true(sysinfo_memory(root) == 0);
    assert_int_equal(sysinfo_quota(root), 0);
}

static void memory_of_the_machine(void **state)
{
    put("proc/meminfo", "MemTotal:       16000 kB\nMemFree:   100 kB\nMemAvailable:    8000 kB\n");
    assert_true(sysinfo_memory(root) == 8000 * 1024);
}

/* The tightest group on the way up counts; file cache is not usage; "max" is no limit. */
static void memory_of_cgroup_v2(void **state)
{
    put("proc/meminfo", "MemAvailable:    8000 kB\n");
    put("proc/self/cgroup", "0::/a/b\n");
    put(CG "a/b/memory.max", "max\n");
    put(CG "a/b/memory.current", "1000\n");
    assert_true(sysinfo_memory(root) == 8000 * 1024);
    put(CG "a/memory.max", "1000000\n");
    put(CG "a/memory.current", "700000\n");
    assert_true(sysinfo_memory(root) == 300000);
    put(CG "a/memory.stat", "anon 5\ninactive_file 40000\nactive_file 60000\nslab 3\n");
    assert_true(sysinfo_memory(root) == 400000);
    put(CG "a/b/memory.high", "50000\n");
    assert_true(sysinfo_memory(root) == 49000);
    put(CG "a/b/memory.current", "60000\n");
    assert_true(sysinfo_memory(root) == 0);
}

/* A container sees its own group at the mount point while the line names the path on the host. */
static void memory_of_cgroup_v1_in_a_container(void **state)
{
    put("proc/meminfo", "MemAvailable:    8000 kB\n");
    put("proc/self/cgroup", "12:cpu,cpuacct:/docker/x\n7:memory:/docker/x\n1:name=systemd:/\n");
    put(CG "memory/memory.limit_in_bytes", "2000000\n");
    put(CG "memory/memory.usage_in_bytes", "500000\n");
    put(CG "memory/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\ntotal_active_file 0\n");
    assert_true(sysinfo_memory(root) == 1600000);
    put(CG "memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(sysinfo_memory(root) == 8000 * 1024);
}

static void quota_v2(void **state)
{
    put("proc/self/cgroup", "0::/s/t\n");
    put(CG "s/t/cpu.max", "max 100000\n");
    assert_int_equal(sysinfo_quota(root), 0);
    put(CG "s/cpu.max", "350000 100000\n");
    assert_int_equal(sysinfo_quota(root), 3);
    put(CG "s/t/cpu.max", "50000 100000\n");
    assert_int_equal(sysinfo_quota(root), 1);
}

static void quota_v1(void **state)
{
    put("proc/self/cgroup", "4:cpu,cpuacct:/s\n3:cpuset:/s\n");
    put(CG "cpu,cpuacct/s/cpu.cfs_quota_us", "-1\n");
    put(CG "cpu,cpuacct/s/cpu.cfs_period_us", "100000\n");
    assert_int_equal(sysinfo_quota(root), 0);
    put(CG "cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
    put(CG "cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(sysinfo_quota(root), 4);
    put(CG "cpu/s/cpu.cfs_quota_us", "200000\n");
    put(CG "cpu/s/cpu.cfs_period_us", "100000\n");
    assert_int_equal(sysinfo_quota(root), 2);
}

/* A report of a made-up machine; a limit beyond its memory is none. */
static void report_of_the_machine(void **state)
{
    struct sysinfo r;
    sysinfo_read(root, &r);
    assert_true(r.processors >= 1 && r.allowed >= 1 && r.cores >= 1 && r.cores <= r.allowed);
    assert_true(r.memory == 0 && r.memory_free == 0 && r.group_left == UINT64_MAX && r.huge_page == 0);
    assert_string_equal(r.transparent, "");
    put("proc/meminfo", "MemTotal:       16000 kB\nMemAvailable:    8000 kB\nHugePages_Total:      7\n"
                        "HugePages_Free:       5\nHugepagesize:      2048 kB\n");
    put("proc/self/cgroup", "7:memory:/x\n4:cpu:/x\n");
    put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put(CG "memory/x/memory.limit_in_bytes", "9223372036854771712\n");
    put(CG "cpu/x/cpu.cfs_quota_us", "400000\n");
    put(CG "cpu/x/cpu.cfs_period_us", "100000\n");
    sysinfo_read(root, &r);
    assert_true(r.memory == 16000 * 1024 && r.memory_free == 8000 * 1024 && r.group_left == UINT64_MAX);
    assert_true(r.huge_page == 2048 * 1024 && r.huge_total == 7 && r.huge_free == 5);
    assert_int_equal(r.quota, 4);
    assert_string_equal(r.transparent, "madvise");
    put(CG "memory/x/memory.limit_in_bytes", "2000000\n");
    put(CG "memory/x/memory.usage_in_bytes", "500000\n");
    sysinfo_read(root, &r);
    assert_true(r.group_left == 1500000);
}

static void this_machine_has_memory_and_a_core(void **state)
{
    assert_true(mem_available() > 0);
    assert_true(pool_default_threads() >= 1);
    assert_true(pool_default_threads() <= sysconf(_SC_NPROCESSORS_CONF));
}

#define IN_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_refuses_overflow),
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(failure_goes_to_the_handler),
        IN_ROOT(nothing_known_is_zero),
        IN_ROOT(memory_of_the_machine),
        IN_ROOT(memory_of_cgroup_v2),
        IN_ROOT(memory_of_cgroup_v1_in_a_container),
        IN_ROOT(quota_v2),
        IN_ROOT(quota_v1),
        IN_ROOT(report_of_the_machine),
        cmocka_unit_test(this_machine_has_memory_and_a_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
