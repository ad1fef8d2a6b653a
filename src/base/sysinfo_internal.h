/* What the machine and its limits grant this process. root is put in front of every path (/proc, /sys) that is read:
 * "" for the machine itself, a folder with a made-up tree in tests. */
#ifndef BASE_SYSINFO_INTERNAL_H
#define BASE_SYSINFO_INTERNAL_H
#include <stdbool.h>
#include <stdint.h>

/* Bytes that may still be allocated: the least of MemAvailable and, for every cgroup (v1, v2) above the process,
 * limit - usage + page cache of files. 0 if nothing is known. */
uint64_t sysinfo_memory(const char *root);

/* Physical cores among the processors allowed[0..n_cpus): hardware threads of one core count once. */
int sysinfo_cores(const char *root, const bool *allowed, int n_cpus);

/* Whole processors that the tightest cgroup cpu quota grants, rounded down, at least 1; 0: no quota. */
int sysinfo_quota(const char *root);

/* min(cores within the affinity mask, quota), at least 1. */
int sysinfo_threads(const char *root);

#endif
