/* The physical cores that this process may use, and the memory nodes they are near to. */
#ifndef BASE_TOPOLOGY_H
#define BASE_TOPOLOGY_H
#include <stdbool.h>

enum { TOPOLOGY_NODES = 64, TOPOLOGY_CPUS = 8192 };

struct topology_core {
    int cpu;  /* one hardware thread of the core, as the system numbers it */
    int node; /* 0 .. n_nodes-1 */
};

struct topology {
    struct topology_core *core;  /* [n_cores] by cpu, owned */
    int n_cores;                 /* at least 1 */
    int n_nodes;                 /* that have cores and memory of ours; at least 1 */
    int node_id[TOPOLOGY_NODES]; /* how the system numbers them; -1: it does not say */
    int threads;                 /* that make sense: a core each, or what the cgroups' quota grants if that is less */
};

/* Of this machine: affinity mask, cgroup quotas and sets of nodes respected. */
void topology_read(struct topology *t);
void topology_free(struct topology *t);

/* Places of n threads: every beginning of the list is spread over the nodes as evenly as their cores allow. More
 * threads than cores: cpu is -1, the system may move them. place[n]. */
void topology_place(const struct topology *t, int n, struct topology_core *place);

/* New memory of the calling thread comes from that node of the system's while it has some; -1: from where the thread
 * runs, as at first. False: the system does not do that. */
bool topology_prefer_memory(int node_id);

#endif
