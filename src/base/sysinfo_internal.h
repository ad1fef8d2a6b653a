/* What the machine and its limits grant this process. root is put in front of every path (/proc, /sys) that is read:
 * "" for the machine itself, a folder with a made-up tree in tests. */
#ifndef BASE_SYSINFO_INTERNAL_H
#define BASE_SYSINFO_INTERNAL_H
#include <stdbool.h>
#include <stdint.h>

/* Bytes that may still be allocated: the least of MemAvailable and, for every cgroup (v1, v2) above the process,
 * limit - usage + page cache of files. 0 if nothing is known. */
uint64_t sysinfo_memory(const char *root);

/* What topology_read does, of the processors allowed[0..n_cpus). */
struct topology;
void topology_read_from(const char *root, const bool *allowed, int n_cpus, struct topology *t);
/* The affinity mask as allowed[TOPOLOGY_CPUS]; false: the system does not say. */
bool topology_affinity(bool *allowed);

/* Whole processors that the tightest cgroup cpu quota grants, rounded down, at least 1; 0: no quota. */
int sysinfo_quota(const char *root);

#endif
