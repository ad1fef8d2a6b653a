/* Cores and nodes from /sys. A processor that is offline has no folders there, one of a node without memory (or whose
 * memory our cgroup does not grant) counts to the nearest node that has some; a node without processors is nobody's. */
#include "base/topology.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/sys_text.h"
#include "base/sysinfo_internal.h"
#ifdef __linux__
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

/* ---------------------------------------------------------------- processors */

/* Clears the processors of which a lower hardware thread of the same core may be used, and those that are offline. */
static void keep_one_per_core(const char *root, bool *allowed, int n)
{
    char folder[512];
    struct str text = {0};
    bool *set = mem_alloc((size_t)n);
    snprintf(folder, sizeof folder, "%s/sys/devices/system/cpu", root);
    if (sys_text(folder, "online", &text)) {
        sys_list(str_c(&text), set, n);
        for (int c = 0; c < n; c++) allowed[c] &= set[c];
    }
    for (int c = n - 1; c >= 0; c--) {
        if (!allowed[c]) continue;
        snprintf(folder, sizeof folder, "%s/sys/devices/system/cpu/cpu%d/topology", root, c);
        memset(set, 0, (size_t)n);
        if (sys_text(folder, "thread_siblings_list", &text)) sys_list(str_c(&text), set, c);
        for (int b = 0; b < c && allowed[c]; b++) allowed[c] = !(set[b] && allowed[b]);
    }
    mem_free(set);
    str_free(&text);
}

/* ---------------------------------------------------------------- nodes */

struct nodes {
    const char *root;
    bool online[TOPOLOGY_NODES], memory[TOPOLOGY_NODES];
    int nearest[TOPOLOGY_NODES]; /* the node whose memory its processors use; -1: none */
};

static bool node_text(const struct nodes *y, int id, const char *name, struct str *text)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/sys/devices/system/node/node%d", y->root, id);
    return sys_text(folder, name, text);
}

/* "Node 0 MemTotal:  16384 kB" */
static bool has_memory(const struct nodes *y, int id)
{
    char word[40];
    struct str text = {0};
    uint64_t kib = 0;
    snprintf(word, sizeof word, "Node %d MemTotal:", id);
    const char *value = node_text(y, id, "meminfo", &text) ? sys_value(str_c(&text), word) : NULL;
    const bool some = value && sys_number(value, &kib) && kib > 0;
    str_free(&text);
    return some;
}

/* The line `distance` has a number for every node that is online, in their order; 10 is itself. */
static int nearest(const struct nodes *y, int id)
{
    struct str text = {0};
    int best = -1;
    uint64_t least = UINT64_MAX, d;
    const char *p = node_text(y, id, "distance", &text) ? str_c(&text) : "";
    for (int k = 0; k < TOPOLOGY_NODES; k++) {
        if (!y->online[k]) continue;
        const bool known = sys_number(p, &d);
        if (!known) d = k == id ? 0 : UINT64_MAX - 1;
        if (y->memory[k] && d < least) best = k, least = d;
        while (known && *p == ' ') p++;
        while (known && *p >= '0' && *p <= '9') p++;
    }
    str_free(&text);
    return best;
}

static void nodes_read(const char *root, struct nodes *y)
{
    char folder[512];
    struct str text = {0};
    bool granted[TOPOLOGY_NODES] = {0};
    *y = (struct nodes){.root = root};
    snprintf(folder, sizeof folder, "%s/proc/self", root);
    const char *list = sys_text(folder, "status", &text) ? sys_value(str_c(&text), "Mems_allowed_list:") : NULL;
    if (list)
        sys_list(list, granted, TOPOLOGY_NODES);
    else
        memset(granted, true, sizeof granted);
    snprintf(folder, sizeof folder, "%s/sys/devices/system/node", root);
    if (sys_text(folder, "online", &text)) sys_list(str_c(&text), y->online, TOPOLOGY_NODES);
    for (int k = 0; k < TOPOLOGY_NODES; k++) y->memory[k] = y->online[k] && granted[k] && has_memory(y, k);
    for (int k = 0; k < TOPOLOGY_NODES; k++) y->nearest[k] = y->online[k] ? nearest(y, k) : -1;
    str_free(&text);
}

/* The system's node of every processor [n], -1 where it does not say. */
static void node_of_cpus(const struct nodes *y, int *of, int n)
{
    struct str text = {0};
    bool *set = mem_alloc((size_t)n);
    for (int c = 0; c < n; c++) of[c] = -1;
    for (int k = 0; k < TOPOLOGY_NODES; k++) {
        memset(set, 0, (size_t)n);
        if (y->online[k] && node_text(y, k, "cpulist", &text)) sys_list(str_c(&text), set, n);
        for (int c = 0; c < n; c++)
            if (set[c]) of[c] = y->nearest[k];
    }
    mem_free(set);
    str_free(&text);
}

/* The index of a node among those that have cores of ours; unknown ones are the first. */
static int node_index(struct topology *t, int id)
{
    for (int i = 0; i < t->n_nodes; i++)
        if (t->node_id[i] == id || id < 0) return i;
    t->node_id[t->n_nodes] = id;
    return t->n_nodes++;
}

/* ---------------------------------------------------------------- all of it */

void topology_read_from(const char *root, const bool *allowed, int n_cpus, struct topology *t)
{
    struct nodes y;
    bool *use = mem_alloc((size_t)n_cpus);
    int *of = mem_alloc((size_t)n_cpus * sizeof *of);
    *t = (struct topology){.core = mem_alloc((size_t)(n_cpus + 1) * sizeof *t->core)};
    memcpy(use, allowed, (size_t)n_cpus);
    keep_one_per_core(root, use, n_cpus);
    nodes_read(root, &y);
    node_of_cpus(&y, of, n_cpus);
    for (int c = 0; c < n_cpus; c++)
        if (use[c]) t->core[t->n_cores++] = (struct topology_core){.cpu = c, .node = node_index(t, of[c])};
    if (!t->n_cores) t->core[t->n_cores++] = (struct topology_core){.cpu = -1, .node = node_index(t, -1)};
    const int quota = sysinfo_quota(root);
    t->threads = quota && quota < t->n_cores ? quota : t->n_cores;
    mem_free(use);
    mem_free(of);
}

bool topology_affinity(bool *allowed)
{
    memset(allowed, 0, TOPOLOGY_CPUS);
#ifdef __linux__
    unsigned long mask[TOPOLOGY_CPUS / (8 * sizeof(unsigned long))] = {0};
    const unsigned bits = 8 * sizeof mask[0];
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask)) return false;
    for (unsigned c = 0; c < TOPOLOGY_CPUS; c++) allowed[c] = mask[c / bits] >> (c % bits) & 1;
    return true;
#else
    return false;
#endif
}

#ifdef __APPLE__
static int cores_of_the_system(void)
{
    int n = 1;
    size_t size = sizeof n;
    if (sysctlbyname("hw.perflevel0.physicalcpu", &n, &size, NULL, 0) &&
        sysctlbyname("hw.physicalcpu", &n, &size, NULL, 0))
        n = 1;
    return n;
}
#endif

void topology_read(struct topology *t)
{
    bool *allowed = mem_alloc(TOPOLOGY_CPUS);
    topology_affinity(allowed);
#ifdef __APPLE__
    for (int c = 0; c < cores_of_the_system(); c++) allowed[c] = true;
#endif
    topology_read_from("", allowed, TOPOLOGY_CPUS, t);
    mem_free(allowed);
}

void topology_free(struct topology *t)
{
    mem_free(t->core);
    *t = (struct topology){0};
}

/* ---------------------------------------------------------------- places */

void topology_place(const struct topology *t, int n, struct topology_core *place)
{
    bool *taken = mem_alloc((size_t)t->n_cores);
    for (int i = 0, node = 0; i < n; i++, node = (node + 1) % t->n_nodes) {
        int at = t->n_cores;
        for (int k = 0; k < t->n_nodes && at == t->n_cores && i < t->n_cores; k++)
            for (at = 0; at < t->n_cores && (taken[at] || t->core[at].node != (node + k) % t->n_nodes);) at++;
        place[i] = (struct topology_core){.cpu = -1, .node = node};
        if (at == t->n_cores) continue;
        taken[at] = true;
        place[i] = t->core[at];
        node = place[i].node;
    }
    for (int i = 0; n > t->n_cores && i < n; i++) place[i].cpu = -1;
    mem_free(taken);
}

bool topology_prefer_memory(int node_id)
{
#if defined(__linux__) && defined(SYS_set_mempolicy)
    unsigned long mask = node_id >= 0 ? 1ul << node_id : 0;
    return syscall(SYS_set_mempolicy, node_id >= 0 ? MPOL_PREFERRED : MPOL_DEFAULT, node_id >= 0 ? &mask : NULL,
                   node_id >= 0 ? TOPOLOGY_NODES + 1 : 0) == 0;
#else
    return node_id < 0;
#endif
}
