/* Reading /proc, /sys and the cgroup trees.
 *
 * /proc/self/cgroup names the process's group per hierarchy: "0::/a/b" (v2), "5:memory:/a/b" (v1). The limits of all
 * groups on the way from there up to the mount point apply. Inside a container the named path may not exist below the
 * mount point; then the folders that do exist hold the limits, so missing ones are passed over. */
#include "base/sysinfo.h"
#include <string.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/str.h"
#include "base/sys_text.h"
#include "base/sysinfo_internal.h"
#include "base/topology.h"
#ifdef __APPLE__
#include <mach/mach.h>
#endif

/* The number that follows word at the start of a line of text. */
static bool find_u64(const char *text, const char *word, uint64_t *v)
{
    const char *value = sys_value(text, word);
    return value && sys_number(value, v);
}

typedef void group_fn(void *arg, const char *folder, bool v2);

/* Calls fn for base + group and every folder above it up to base. */
static void walk_up(const char *base, const char *group, bool v2, group_fn *fn, void *arg)
{
    struct str path = {0};
    str_puts(&path, base);
    const size_t n_base = path.n;
    if (!strstr(group, "/..")) str_puts(&path, group);
    for (;;) {
        while (path.n > n_base && path.p[path.n - 1] == '/') path.p[--path.n] = 0;
        fn(arg, path.p, v2);
        if (path.n <= n_base) break;
        while (path.n > n_base && path.p[path.n - 1] != '/') path.p[--path.n] = 0;
    }
    str_free(&path);
}

static bool list_has(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && !strncmp(p, word, n)) return true;
    return false;
}

/* One line "id:controllers:path" of /proc/self/cgroup. */
static void walk_line(const char *root, char *line, const char *controller, group_fn *fn, void *arg)
{
    char *list = strchr(line, ':');
    char *group = list ? strchr(list + 1, ':') : NULL;
    if (!group) return;
    list++;
    *group++ = 0;
    const bool v2 = !*list;
    if (!v2 && !list_has(list, controller)) return;
    const char *const mounts[2] = {v2 ? "" : controller, v2 ? "unified" : list};
    const int n_mounts = !v2 && !strcmp(list, controller) ? 1 : 2;
    for (int i = 0; i < n_mounts; i++) {
        struct str base = {0};
        str_printf(&base, "%s/sys/fs/cgroup%s%s", root, *mounts[i] ? "/" : "", mounts[i]);
        walk_up(str_c(&base), group, v2, fn, arg);
        str_free(&base);
    }
}

/* Calls fn for every existing or possible group folder above this process that has the controller. */
static void walk_groups(const char *root, const char *controller, group_fn *fn, void *arg)
{
    struct str text = {0};
    if (sys_text(root, "proc/self/cgroup", &text)) {
        char *save = NULL;
        for (char *line = strtok_r(text.p, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            walk_line(root, line, controller, fn, arg);
    }
    str_free(&text);
}

static void lower(uint64_t *least, uint64_t v)
{
    if (v < *least) *least = v;
}

/* Page cache counts as usage of a group but is given back under pressure. */
static uint64_t group_file_cache(const char *folder, bool v2)
{
    struct str s = {0};
    uint64_t inactive = 0, active = 0;
    if (sys_text(folder, "memory.stat", &s)) {
        find_u64(str_c(&s), v2 ? "inactive_file" : "total_inactive_file", &inactive);
        find_u64(str_c(&s), v2 ? "active_file" : "total_active_file", &active);
    }
    str_free(&s);
    return inactive + active;
}

static void memory_group(void *arg, const char *folder, bool v2)
{
    uint64_t limit = UINT64_MAX, v, used = 0;
    if (sys_number_in(folder, v2 ? "memory.max" : "memory.limit_in_bytes", &v)) lower(&limit, v);
    if (v2 && sys_number_in(folder, "memory.high", &v)) lower(&limit, v);
    if (limit == UINT64_MAX) return;
    sys_number_in(folder, v2 ? "memory.current" : "memory.usage_in_bytes", &used);
    const uint64_t cache = group_file_cache(folder, v2);
    used = used > cache ? used - cache : 0;
    lower(arg, limit > used ? limit - used : 0);
}

static bool machine_memory(const char *root, uint64_t *bytes)
{
#ifdef __APPLE__
    vm_statistics64_data_t vm;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&vm, &n) != KERN_SUCCESS) return false;
    *bytes = ((uint64_t)vm.free_count + vm.inactive_count + vm.purgeable_count) * vm_page_size;
    return true;
#else
    struct str s = {0};
    uint64_t kib = 0;
    const bool ok = sys_text(root, "proc/meminfo", &s) && find_u64(str_c(&s), "MemAvailable:", &kib);
    str_free(&s);
    *bytes = kib * 1024;
    return ok;
#endif
}

uint64_t sysinfo_memory(const char *root)
{
    uint64_t least = UINT64_MAX, v;
    if (machine_memory(root, &v)) lower(&least, v);
    walk_groups(root, "memory", memory_group, &least);
    return least == UINT64_MAX ? 0 : least;
}

static void quota_group(void *arg, const char *folder, bool v2)
{
    uint64_t quota = 0, period = 0;
    struct str s = {0};
    bool ok;
    if (v2) {
        ok = sys_text(folder, "cpu.max", &s) && sys_number(str_c(&s), &quota);
        ok = ok && strchr(s.p, ' ') && sys_number(strchr(s.p, ' '), &period);
    } else {
        ok = sys_number_in(folder, "cpu.cfs_quota_us", &quota) && sys_number_in(folder, "cpu.cfs_period_us", &period);
    }
    str_free(&s);
    if (ok && quota && period) lower(arg, quota >= period ? quota / period : 1);
}

int sysinfo_quota(const char *root)
{
    uint64_t least = UINT64_MAX;
    walk_groups(root, "cpu", quota_group, &least);
    return least > TOPOLOGY_CPUS ? 0 : (int)least;
}

/* ---------------------------------------------------------------- for reports */

/* The word in brackets of "always [madvise] never". */
static void chosen_word(const char *root, const char *name, char *word, size_t size)
{
    struct str s = {0};
    const char *p = sys_text(root, name, &s) ? strchr(str_c(&s), '[') : NULL;
    const size_t n = p ? strcspn(p + 1, "]") : 0;
    if (n && n < size) memcpy(word, p + 1, n), word[n] = 0;
    str_free(&s);
}

static void read_meminfo(const char *root, struct sysinfo *r)
{
    struct str s = {0};
    uint64_t kib = 0, page = 0;
    if (sys_text(root, "proc/meminfo", &s)) {
        if (find_u64(str_c(&s), "MemTotal:", &kib)) r->memory = kib * 1024;
        if (find_u64(str_c(&s), "Hugepagesize:", &page)) r->huge_page = page * 1024;
        find_u64(str_c(&s), "HugePages_Total:", &r->huge_total);
        find_u64(str_c(&s), "HugePages_Free:", &r->huge_free);
    }
    str_free(&s);
}

void sysinfo_read(const char *root, struct sysinfo *r)
{
    *r = (struct sysinfo){.processors = (int)sysconf(_SC_NPROCESSORS_ONLN), .group_left = UINT64_MAX};
    struct topology t;
    bool *allowed = mem_alloc(TOPOLOGY_CPUS);
    if (topology_affinity(allowed)) {
        for (int c = 0; c < TOPOLOGY_CPUS; c++) r->allowed += allowed[c];
        topology_read_from(root, allowed, TOPOLOGY_CPUS, &t);
        r->cores = t.n_cores;
        r->nodes = t.n_nodes;
        topology_free(&t);
    }
    mem_free(allowed);
    r->quota = sysinfo_quota(root);
    machine_memory(root, &r->memory_free);
    read_meminfo(root, r);
    walk_groups(root, "memory", memory_group, &r->group_left);
    if (r->memory && r->group_left >= r->memory) r->group_left = UINT64_MAX; /* how v1 says "none" */
    chosen_word(root, "sys/kernel/mm/transparent_hugepage/enabled", r->transparent, sizeof r->transparent);
}
