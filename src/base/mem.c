/* Allocation and checked sizes. */
#include "base/mem.h"
#include "base/sysinfo_internal.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef void failure_fn(size_t bytes);

static void failure_default(size_t bytes)
{
    fprintf(stderr, "out of memory: %zu bytes were asked for\n", bytes);
    abort();
}

static _Atomic(failure_fn *) on_failure = failure_default;

void mem_on_failure(void (*fn)(size_t bytes))
{
    atomic_store(&on_failure, fn ? fn : failure_default);
}

static void *checked(void *p, size_t bytes)
{
    if (!p) {
        atomic_load (&on_failure)(bytes);
        abort();
    }
    return p;
}

void *mem_alloc(size_t bytes)
{
    return checked(mem_try(bytes), bytes);
}

void *mem_grow(void *p, size_t bytes)
{
    return checked(bytes <= PTRDIFF_MAX ? realloc(p, bytes ? bytes : 1) : NULL, bytes);
}

char *mem_strdup(const char *s)
{
    const size_t n = strlen(s) + 1;
    return memcpy(mem_alloc(n), s, n);
}

void *mem_try(size_t bytes)
{
    return bytes <= PTRDIFF_MAX ? calloc(1, bytes ? bytes : 1) : NULL;
}

/* Large blocks lie on huge pages where the system gives them: fewer faults, and addresses are found without a walk
 * through the page tables. What lies before the first and behind the last whole huge page stays as it is. */
static void ask_for_huge_pages(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { HUGE_PAGE = 2 << 20 };
    const uintptr_t begin = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    const uintptr_t end = ((uintptr_t)p + bytes) / HUGE_PAGE * HUGE_PAGE;
    if (bytes >= 2 * HUGE_PAGE && begin < end)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* refused: as before */
#endif
}

static void *aligned(size_t bytes, size_t align)
{
    void *p = NULL;
    if (align < sizeof(void *)) align = sizeof(void *);
    if (bytes > PTRDIFF_MAX || posix_memalign(&p, align, bytes ? bytes : 1)) return NULL;
    ask_for_huge_pages(p, bytes);
    return p;
}

void *mem_try_aligned(size_t bytes, size_t align)
{
    void *const p = aligned(bytes, align);
    return p ? memset(p, 0, bytes) : NULL;
}

void *mem_try_scratch(size_t bytes)
{
    return aligned(bytes, 64);
}

void mem_free(void *p)
{
    free(p);
}

bool u64_mul(uint64_t a, uint64_t b, uint64_t *r)
{
    if (b && a > UINT64_MAX / b) return false;
    *r = a * b;
    return true;
}

bool u64_add(uint64_t a, uint64_t b, uint64_t *r)
{
    if (a > UINT64_MAX - b) return false;
    *r = a + b;
    return true;
}

bool u64_align_up(uint64_t a, uint64_t align, uint64_t *r)
{
    if (a > UINT64_MAX - (align - 1)) return false;
    *r = (a + (align - 1)) & ~(align - 1);
    return true;
}

uint64_t mem_available(void)
{
    return sysinfo_memory("");
}
