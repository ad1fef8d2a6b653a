/* The machine and what of it this process may use, for reports. */
#ifndef BASE_SYSINFO_H
#define BASE_SYSINFO_H
#include <stdint.h>

/* 0 or "" where the system does not say. */
struct sysinfo {
    int processors;                 /* online */
    int allowed;                    /* of them in the affinity mask */
    int cores;                      /* physical cores of these */
    int nodes;                      /* with memory and cores of these */
    int quota;                      /* whole processors that cgroups grant; 0: no quota */
    uint64_t memory;                /* bytes of the machine */
    uint64_t memory_free;           /* bytes of it that programs may still take */
    uint64_t group_left;            /* bytes that the memory limits of cgroups still grant; UINT64_MAX: no limit */
    char transparent[16];           /* transparent huge pages: always, madvise, never */
    uint64_t huge_page;             /* bytes of a huge page */
    uint64_t huge_total, huge_free; /* reserved huge pages */
};

/* root is put in front of /proc and /sys: "", or a made-up tree in tests. */
void sysinfo_read(const char *root, struct sysinfo *r);

#endif
