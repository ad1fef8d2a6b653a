/* Put under a program with LD_PRELOAD: notes how much memory it asks for. ALLOC_WATCH names a file of two u64, which
 * this keeps up to date while the program runs: the largest single request (malloc and its relatives, anonymous
 * mmap), and the most bytes of the heap in use at once. glibc only; elsewhere it does nothing. */
#include <stdint.h>
#include <stdlib.h>
#if defined(__linux__) && defined(__GLIBC__)
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own, behind the names that are taken over here. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static _Atomic uint64_t *note; /* [2], in the file; NULL: not watching */
static _Atomic int64_t in_use;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("ALLOC_WATCH");
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *p = (void *)syscall(SYS_mmap, NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED) note = p;
    close(fd);
}

static void raise_to(_Atomic uint64_t *most, uint64_t n)
{
    uint64_t old = atomic_load(most);
    while (old < n && !atomic_compare_exchange_weak(most, &old, n)) {
    }
}

static void *asked(size_t n, void *p)
{
    if (note) raise_to(&note[0], n);
    if (!p) return p;
    const int64_t now = atomic_fetch_add(&in_use, (int64_t)malloc_usable_size(p)) + (int64_t)malloc_usable_size(p);
    if (note && now > 0) raise_to(&note[1], (uint64_t)now);
    return p;
}

static size_t product(size_t n, size_t bytes)
{
    return bytes && n > SIZE_MAX / bytes ? SIZE_MAX : n * bytes;
}

void *malloc(size_t n)
{
    return asked(n, __libc_malloc(n));
}

void *calloc(size_t n, size_t bytes)
{
    return asked(product(n, bytes), __libc_calloc(n, bytes));
}

void free(void *p)
{
    if (p) atomic_fetch_sub(&in_use, (int64_t)malloc_usable_size(p));
    __libc_free(p);
}

void *realloc(void *p, size_t n)
{
    const int64_t old = p ? (int64_t)malloc_usable_size(p) : 0;
    void *const q = __libc_realloc(p, n);
    if (q || n == 0) atomic_fetch_sub(&in_use, old);
    return asked(n, q);
}

void *reallocarray(void *p, size_t n, size_t bytes)
{
    if (product(n, bytes) != SIZE_MAX) return realloc(p, n * bytes);
    asked(SIZE_MAX, NULL);
    errno = ENOMEM;
    return NULL;
}

void *memalign(size_t align, size_t n)
{
    return asked(n, __libc_memalign(align, n));
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    void *const q = memalign(align, n);
    if (q) *p = q;
    return q ? 0 : ENOMEM;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if ((flags & MAP_ANONYMOUS) && prot != PROT_NONE) asked(n, NULL); /* else addresses, and no memory behind them */
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
    return mmap(at, n, prot, flags, fd, offset);
}
#else
extern int alloc_watch_does_nothing;
int alloc_watch_does_nothing;
#endif
