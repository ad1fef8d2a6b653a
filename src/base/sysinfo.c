/* Reading /proc, /sys and the cgroup trees.
 *
 * /proc/self/cgroup names the process's group per hierarchy: "0::/a/b" (v2), "5:memory:/a/b" (v1). The limits of all
 * groups on the way from there up to the mount point apply. Inside a container the named path may not exist below the
 * mount point; then the folders that do exist hold the limits, so missing ones are passed over. */
#include "base/sysinfo_internal.h"
#include "base/sysinfo.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif
#ifdef __APPLE__
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif

enum { MAX_CPUS = 8192, MAX_TEXT = 1 << 16 };

/* Reads a small text file into s; false if it cannot be read. */
static bool read_text(const char *path, struct str *s)
{
    str_clear(s);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    char buf[1024];
    size_t n;
    while (s->n < MAX_TEXT && (n = fread(buf, 1, sizeof buf, f)) > 0) str_add(s, buf, n);
    const bool ok = !ferror(f);
    fclose(f);
    return ok;
}

/* Reads folder/name. */
static bool read_in(const char *folder, const char *name, struct str *s)
{
    struct str path = {0};
    str_printf(&path, "%s/%s", folder, name);
    const bool ok = read_text(str_c(&path), s);
    str_free(&path);
    return ok;
}

static bool parse_u64(const char *p, uint64_t *v)
{
    while (*p == ' ' || *p == '\t') p++;
    if (*p < '0' || *p > '9') return false;
    *v = strtoull(p, NULL, 10);
    return true;
}

/* The number in folder/name; false if the file is missing or holds a word such as "max" or "-1". */
static bool read_u64_in(const char *folder, const char *name, uint64_t *v)
{
    struct str s = {0};
    const bool ok = read_in(folder, name, &s) && parse_u64(str_c(&s), v);
    str_free(&s);
    return ok;
}

/* The number that follows word at the start of a line of text. */
static bool find_u64(const char *text, const char *word, uint64_t *v)
{
    const size_t n = strlen(word);
    for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (!strncmp(p, word, n) && (p[n] == ' ' || p[n] == '\t')) return parse_u64(p + n, v);
    return false;
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
    if (read_in(root, "proc/self/cgroup", &text)) {
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
    if (read_in(folder, "memory.stat", &s)) {
        find_u64(str_c(&s), v2 ? "inactive_file" : "total_inactive_file", &inactive);
        find_u64(str_c(&s), v2 ? "active_file" : "total_active_file", &active);
    }
    str_free(&s);
    return inactive + active;
}

static void memory_group(void *arg, const char *folder, bool v2)
{
    uint64_t limit = UINT64_MAX, v, used = 0;
    if (read_u64_in(folder, v2 ? "memory.max" : "memory.limit_in_bytes", &v)) lower(&limit, v);
    if (v2 && read_u64_in(folder, "memory.high", &v)) lower(&limit, v);
    if (limit == UINT64_MAX) return;
    read_u64_in(folder, v2 ? "memory.current" : "memory.usage_in_bytes", &used);
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
    const bool ok = read_in(root, "proc/meminfo", &s) && find_u64(str_c(&s), "MemAvailable:", &kib);
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

/* True if a processor below cpu in list ("0-3,8") is allowed: then cpu's core is counted there. */
static bool lower_sibling(const char *list, int cpu, const bool *allowed)
{
    for (const char *p = list; *p >= '0' && *p <= '9';) {
        char *end;
        const long a = strtol(p, &end, 10);
        const long b = *end == '-' ? strtol(end + 1, &end, 10) : a;
        for (long c = a; c <= b && c < cpu; c++)
            if (c >= 0 && allowed[c]) return true;
        p = *end == ',' ? end + 1 : "";
    }
    return false;
}

int sysinfo_cores(const char *root, const bool *allowed, int n_cpus)
{
    struct str path = {0}, list = {0};
    int cores = 0;
    for (int c = 0; c < n_cpus; c++) {
        if (!allowed[c]) continue;
        str_clear(&path);
        str_printf(&path, "%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", root, c);
        cores += !(read_text(str_c(&path), &list) && lower_sibling(str_c(&list), c, allowed));
    }
    str_free(&path);
    str_free(&list);
    return cores;
}

static void quota_group(void *arg, const char *folder, bool v2)
{
    uint64_t quota = 0, period = 0;
    struct str s = {0};
    bool ok;
    if (v2) {
        ok = read_in(folder, "cpu.max", &s) && parse_u64(str_c(&s), &quota);
        ok = ok && strchr(s.p, ' ') && parse_u64(strchr(s.p, ' '), &period);
    } else {
        ok = read_u64_in(folder, "cpu.cfs_quota_us", &quota) && read_u64_in(folder, "cpu.cfs_period_us", &period);
    }
    str_free(&s);
    if (ok && quota && period) lower(arg, quota >= period ? quota / period : 1);
}

int sysinfo_quota(const char *root)
{
    uint64_t least = UINT64_MAX;
    walk_groups(root, "cpu", quota_group, &least);
    return least > MAX_CPUS ? 0 : (int)least;
}

#ifndef __APPLE__
/* Fills allowed[MAX_CPUS] from the affinity mask. */
static bool affinity(bool *allowed)
{
#ifdef __linux__
    unsigned long mask[MAX_CPUS / (8 * sizeof(unsigned long))] = {0};
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask)) return false;
    const unsigned bits = 8 * sizeof mask[0];
    for (unsigned c = 0; c < MAX_CPUS; c++) allowed[c] = mask[c / bits] >> (c % bits) & 1;
    return true;
#else
    return false;
#endif
}
#endif

int sysinfo_threads(const char *root)
{
    int n = 1;
#ifdef __APPLE__
    size_t size = sizeof n;
    if (sysctlbyname("hw.perflevel0.physicalcpu", &n, &size, NULL, 0) &&
        sysctlbyname("hw.physicalcpu", &n, &size, NULL, 0))
        n = 1;
#else
    bool allowed[MAX_CPUS];
    if (affinity(allowed)) n = sysinfo_cores(root, allowed, MAX_CPUS);
#endif
    const int quota = sysinfo_quota(root);
    if (quota && quota < n) n = quota;
    return n > 0 ? n : 1;
}

/* ---------------------------------------------------------------- for reports */

/* The word in brackets of "always [madvise] never". */
static void chosen_word(const char *root, const char *name, char *word, size_t size)
{
    struct str s = {0};
    const char *p = read_in(root, name, &s) ? strchr(str_c(&s), '[') : NULL;
    const size_t n = p ? strcspn(p + 1, "]") : 0;
    if (n && n < size) memcpy(word, p + 1, n), word[n] = 0;
    str_free(&s);
}

static void read_meminfo(const char *root, struct sysinfo *r)
{
    struct str s = {0};
    uint64_t kib = 0, page = 0;
    if (read_in(root, "proc/meminfo", &s)) {
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
#ifndef __APPLE__
    bool allowed[MAX_CPUS] = {0};
    if (affinity(allowed)) {
        for (int c = 0; c < MAX_CPUS; c++) r->allowed += allowed[c];
        r->cores = sysinfo_cores(root, allowed, MAX_CPUS);
    }
#endif
    r->quota = sysinfo_quota(root);
    machine_memory(root, &r->memory_free);
    read_meminfo(root, r);
    walk_groups(root, "memory", memory_group, &r->group_left);
    if (r->memory && r->group_left >= r->memory) r->group_left = UINT64_MAX; /* how v1 says "none" */
    chosen_word(root, "sys/kernel/mm/transparent_hugepage/enabled", r->transparent, sizeof r->transparent);
}
