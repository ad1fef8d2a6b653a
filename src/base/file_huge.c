/* Huge pages of the system's cache under a mapping (Linux). What another program wrote or read lies in the cache in
 * pages of 4 to some hundred KiB; only a fault of a mapping that asks for huge pages reads whole ones (ext4 since Linux
 * 6.16, xfs and others before), and only where the file and its addresses have the same borders (file_map.c). Every
 * access to small ones costs the processor a walk through page tables; in a virtual machine each is dear: two threads
 * of an AMD EPYC (Zen 5, virtual) read the same 13 GB at 18 GB/s in small pages and at 60 in huge ones. */
#include "base/file.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__linux__) && defined(MADV_HUGEPAGE)
#include <sys/ioctl.h>

/* The ioctl of /proc/self/pagemap since Linux 6.7, as not every system's headers have it. */
struct pm_region {
    uint64_t start, end, categories;
};
struct pm_scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
enum { PM_PRESENT = 1 << 3, PM_HUGE = 1 << 6, COLLAPSE = 25 /* MADV_COLLAPSE, since Linux 6.1 */ };
#define PM_SCAN _IOWR('f', 16, struct pm_scan)

void file_huge_ask(const struct file_map *m, uint64_t from, uint64_t to)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), down = from / page * page;
    if (from < to) madvise((void *)(uintptr_t)(file_map_data(m) + down), (size_t)(to - down), MADV_HUGEPAGE);
}

int file_huge_open(void)
{
    return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

static void *place(const struct file_map *m, uint64_t at)
{
    return (void *)(uintptr_t)(file_map_data(m) + at);
}

/* Of a piece that is mapped: in one page; false too where the system cannot say. */
static bool mapped_small(int tables, const struct file_map *m, uint64_t at)
{
    const uint64_t p = (uint64_t)(uintptr_t)place(m, at);
    struct pm_region r = {0};
    struct pm_scan s = {.size = sizeof s, .start = p, .end = p + FILE_HUGE_BYTES, .vec_len = 1};
    s.vec = (uint64_t)(uintptr_t)&r;
    s.category_inverted = PM_HUGE;
    s.category_mask = s.return_mask = PM_PRESENT | PM_HUGE;
    return ioctl(tables, PM_SCAN, &s) > 0;
}

/* How much of a piece the system's cache has. */
static enum { NOTHING, SOME, ALL } cached(const struct file_map *m, uint64_t at)
{
    unsigned char page[FILE_HUGE_BYTES / 4096];
    const size_t n = (size_t)(FILE_HUGE_BYTES / (uint64_t)sysconf(_SC_PAGESIZE));
    size_t there = 0;
    if (mincore(place(m, at), FILE_HUGE_BYTES, page)) return NOTHING;
    for (size_t i = 0; i < n; i++) there += page[i] & 1;
    return there == n ? ALL : there ? SOME : NOTHING;
}

void file_huge_read(const struct file_map *m, uint64_t from, uint64_t to)
{
    const uint64_t whole = file_map_size(m) / FILE_HUGE_BYTES * FILE_HUGE_BYTES;
    for (uint64_t at = from / FILE_HUGE_BYTES * FILE_HUGE_BYTES; at < to && at < whole; at += FILE_HUGE_BYTES)
        if (cached(m, at) == NOTHING) file_map_populate(m, at, FILE_HUGE_BYTES);
}

enum file_huge file_huge_look(int tables, const struct file_map *m, uint64_t at)
{
    switch (cached(m, at)) {
    case NOTHING:
        return FILE_HUGE_ABSENT;
    case SOME:
        return FILE_HUGE_SMALL;
    case ALL:
        break;
    }
    file_map_populate(m, at, FILE_HUGE_BYTES);
    return mapped_small(tables, m, at) ? FILE_HUGE_SMALL : FILE_HUGE_WHOLE;
}

bool file_huge_make(int tables, const struct file_map *m, int fd, uint64_t at)
{
    void *const p = place(m, at);
    const off_t off = (off_t)at, n = (off_t)FILE_HUGE_BYTES;
    if (madvise(p, FILE_HUGE_BYTES, COLLAPSE)) {
        sync_file_range(fd, off, n, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        madvise(p, FILE_HUGE_BYTES, MADV_DONTNEED);
        posix_fadvise(fd, off, n, POSIX_FADV_DONTNEED);
        file_map_populate(m, at, FILE_HUGE_BYTES);
    }
    return !mapped_small(tables, m, at);
}
#else
void file_huge_ask(const struct file_map *m, uint64_t from, uint64_t to)
{
}

int file_huge_open(void)
{
    return -1;
}

void file_huge_read(const struct file_map *m, uint64_t from, uint64_t to)
{
}

enum file_huge file_huge_look(int tables, const struct file_map *m, uint64_t at)
{
    return FILE_HUGE_ABSENT;
}

bool file_huge_make(int tables, const struct file_map *m, int fd, uint64_t at)
{
    return false;
}
#endif
