/* Put under a program with LD_PRELOAD: positioned reads that touch a range of a file's offsets fail, come short or take
 * long, as of a disk that dies. READ_FAULT is "KIND FROM TO": kind eio, short (one byte less than is asked for, while
 * there are two), end (nothing is there any more) or slow (a millisecond more). There is no io_uring then, whose reads
 * would not come by here. A test may be built with this file (READ_FAULT_INSIDE) and set the range itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum read_fault_kind { READ_FAULT_NONE, READ_FAULT_EIO, READ_FAULT_SHORT, READ_FAULT_END, READ_FAULT_SLOW };
static _Atomic int read_fault_kind;
static _Atomic long long read_fault_from, read_fault_to;
static _Atomic long read_fault_reads; /* in the range */

__attribute__((constructor)) static void read_fault_begin(void)
{
    static const char *const kinds[] = {"none", "eio", "short", "end", "slow"};
    const char *text = getenv("READ_FAULT");
    char kind[8];
    long long from, to;
    if (!text || sscanf(text, "%7s %lld %lld", kind, &from, &to) != 3) return;
    atomic_store(&read_fault_from, from);
    atomic_store(&read_fault_to, to);
    for (int i = 0; i < 5; i++)
        if (strcmp(kind, kinds[i]) == 0) atomic_store(&read_fault_kind, i);
}

static ssize_t faulty_read(int fd, void *p, size_t n, off_t at)
{
    const int kind = atomic_load(&read_fault_kind);
    if (kind != READ_FAULT_NONE && at < atomic_load(&read_fault_to) &&
        at + (long long)n > atomic_load(&read_fault_from)) {
        atomic_fetch_add(&read_fault_reads, 1);
        if (kind == READ_FAULT_EIO) return errno = EIO, -1;
        if (kind == READ_FAULT_END) return 0;
        if (kind == READ_FAULT_SHORT && n > 1) n--;
        if (kind == READ_FAULT_SLOW) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return (ssize_t)syscall(SYS_pread64, fd, p, n, at);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    return faulty_read(fd, p, n, at);
}

#ifdef __GLIBC__
ssize_t pread64(int fd, void *p, size_t n, off64_t at)
{
    return faulty_read(fd, p, n, at);
}
#endif

#ifndef READ_FAULT_INSIDE
/* Where liburing is used, a library that is loaded too. */
int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);
int io_uring_queue_init(unsigned entries, void *ring, unsigned flags)
{
    return -ENOSYS;
}
#endif
