/* Parts of a mapped file in memory of their own, at the same addresses: huge pages instead of the page cache's small
 * ones, and on the memory node that the reading thread prefers. Whoever holds a pointer into the mapping keeps it. */
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file_internal.h"
#include "base/mem.h"

enum { SECTOR = 4096 };
static const uint64_t huge_bytes = (uint64_t)2 << 20;

static uint64_t page_size(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t file_load_border(const struct file_map *m, uint64_t offset)
{
    return (offset + page_size() - 1) / page_size() * page_size();
}

/* ---------------------------------------------------------------- opening again */

int file_open_uncached(const char *path, bool *cached)
{
    int fd = -1;
#ifdef O_DIRECT
    fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    char *probe = fd >= 0 ? mem_try_aligned(SECTOR, SECTOR) : NULL;
    if (fd >= 0 && (!probe || pread(fd, probe, SECTOR, 0) < 0)) close(fd), fd = -1;
    mem_free(probe);
#endif
    *cached = fd < 0;
    if (fd < 0) fd = open(path, O_RDONLY | O_CLOEXEC);
#ifdef F_NOCACHE
    if (fd >= 0) *cached = fcntl(fd, F_NOCACHE, 1) != 0;
#endif
    return fd;
}

int file_check_same(const struct file_map *m, int fd, struct err *e)
{
    struct stat st;
    uint64_t id[2];
    file_map_id(m, id);
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_dev == id[0] && (uint64_t)st.st_ino == id[1] &&
        (uint64_t)st.st_size == file_map_size(m))
        return 0;
    return err_set(e, ERR_IO, "%s: is not the file any more that was opened: it was replaced or changed",
                   file_map_path(m));
}

/* ---------------------------------------------------------------- memory */

static void *place(const struct file_map *m, uint64_t offset)
{
    return (void *)(uintptr_t)(file_map_data(m) + offset);
}

/* Reserved huge pages for what fills whole ones of [from, to). */
static void take_reserved(uint8_t *from, uint8_t *to)
{
#ifdef MAP_HUGETLB
    uint8_t *const a = from + (huge_bytes - (uintptr_t)from % huge_bytes) % huge_bytes;
    uint8_t *const b = to - (uintptr_t)to % huge_bytes;
    const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (b <= a || to < from) return;
    void *const trial = mmap(NULL, (size_t)(b - a), prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (trial == MAP_FAILED) return;
    munmap(trial, (size_t)(b - a));
    if (mmap(a, (size_t)(b - a), prot, flags | MAP_HUGETLB, -1, 0) == MAP_FAILED)
        mmap(a, (size_t)(b - a), prot, flags, -1, 0);
#endif
}

int file_load_begin(const struct file_map *m, uint64_t from, uint64_t to, bool huge, struct err *e)
{
    uint8_t *const p = place(m, from);
    const size_t n = (size_t)(to - from);
    if (mmap(p, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return err_set(e, ERR_MEMORY, "%s: no memory for %zu bytes of it at offset %" PRIu64, file_map_path(m), n,
                       from);
    if (huge) take_reserved(p, p + n);
#ifdef MADV_HUGEPAGE
    madvise(p, n, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* reserved pages refuse it */
#endif
    return 0;
}

/* From here on reads may begin and end anywhere. */
static void read_cached(int fd)
{
#ifdef O_DIRECT
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) fcntl(fd, F_SETFL, flags & ~O_DIRECT);
#endif
}

int file_load_read(const struct file_map *m, int fd, uint64_t from, uint64_t to, struct err *e)
{
    const uint64_t end = to < file_map_size(m) ? to : file_map_size(m);
    for (uint64_t at = from; at < end;) {
        const ssize_t n = pread(fd, place(m, at), (size_t)(to - at), (off_t)at); /* whole sectors at the file's end */
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return err_set(e, ERR_IO, "%s: cannot read at offset %" PRIu64 ": %s", file_map_path(m), at,
                           strerror(errno));
        if (n == 0)
            return err_set(e, ERR_IO, "%s: damaged: it ends at offset %" PRIu64 ", before its last tensor",
                           file_map_path(m), at);
        at += (uint64_t)n;
        if (at < end) read_cached(fd);
    }
    return 0;
}

void file_load_end(const struct file_map *m, uint64_t from, uint64_t to)
{
    mprotect(place(m, from), (size_t)(to - from), PROT_READ);
}
