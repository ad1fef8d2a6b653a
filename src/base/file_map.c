/* Read-only mappings and the SIGBUS handler.
 *
 * The handler sees mappings through a table of fixed size whose fields are lock-free atomics: a slot is in use while
 * begin != 0. Writers (open, close) hold a lock among themselves; the handler takes none, allocates nothing and calls
 * only mmap and sigaction. */
#include "base/file.h"
#include "base/file_internal.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

/* Models come in up to some thousands of shards. */
enum { MAX_MAPS = 16384 };

struct map_slot {
    atomic_uintptr_t begin, end;
    atomic_uintptr_t lost; /* 1 + lowest lost offset; 0: none */
    uint64_t id[2];        /* of the file; for those who hold the lock */
};

struct file_map {
    const uint8_t *data;
    uint64_t size, id[2];
    char *path;
    struct map_slot *slot;
};

static struct map_slot slots[MAX_MAPS];
static atomic_int n_slots; /* slots[n_slots..] have never been used */
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous;
static uintptr_t page_bytes;

static void note_lost(struct map_slot *s, uintptr_t offset)
{
    uintptr_t old = atomic_load(&s->lost);
    while ((!old || old > offset + 1) && !atomic_compare_exchange_weak(&s->lost, &old, offset + 1)) {
    }
}

/* Linux: the system call itself. A wrapper may do more, and the thread sanitizer's takes the new page for a write that
 * races with other threads' reads of the lost one. */
static bool map_zeros(uintptr_t page)
{
    const int prot = PROT_READ, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#if defined(__linux__) && defined(SYS_mmap)
    return syscall(SYS_mmap, page, page_bytes, prot, flags, -1, 0) != -1;
#else
    return mmap((void *)page, page_bytes, prot, flags, -1, 0) != MAP_FAILED;
#endif
}

/* Puts a page of zeros where addr is; false if addr lies in no mapping of ours. */
static bool replace_page(uintptr_t addr)
{
    const int n = atomic_load(&n_slots);
    for (int i = 0; i < n; i++) {
        const uintptr_t begin = atomic_load(&slots[i].begin);
        if (!begin || addr < begin || addr >= atomic_load(&slots[i].end)) continue;
        const uintptr_t page = addr & ~(page_bytes - 1);
        if (!map_zeros(page)) return false;
        note_lost(&slots[i], page - begin);
        return true;
    }
    return false;
}

/* A fault elsewhere happens again after the return and then meets the action that was installed before ours; a SIGBUS
 * that was sent (si_code <= 0) has to be sent again. */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    const int saved = errno;
    if (info->si_code <= 0 || !replace_page((uintptr_t)info->si_addr)) {
        sigaction(SIGBUS, &previous, NULL);
        if (info->si_code <= 0) raise(sig);
    }
    errno = saved;
}

/* Whoever else installed a handler since the last mapping gets what is not ours. */
static void install_handler(void)
{
    struct sigaction now, a = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGBUS, NULL, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigbus) return;
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    previous = now;
    sigemptyset(&a.sa_mask);
    sigaction(SIGBUS, &a, NULL);
}

static struct map_slot *slot_take(const void *data, uint64_t size, const uint64_t id[2])
{
    struct map_slot *s = NULL;
    pthread_mutex_lock(&slots_lock);
    install_handler();
    const int n = atomic_load(&n_slots);
    for (int i = 0; i < n && !s; i++)
        if (!atomic_load(&slots[i].begin)) s = &slots[i];
    if (!s && n < MAX_MAPS) {
        s = &slots[n];
        atomic_store(&n_slots, n + 1);
    }
    if (s) {
        memcpy(s->id, id, sizeof s->id);
        atomic_store(&s->lost, 0);
        atomic_store(&s->end, (uintptr_t)data + (uintptr_t)size);
        atomic_store(&s->begin, (uintptr_t)data);
    }
    pthread_mutex_unlock(&slots_lock);
    return s;
}

static void id_of(const struct stat *st, uint64_t id[2])
{
    id[0] = (uint64_t)st->st_dev;
    id[1] = (uint64_t)st->st_ino;
}

bool file_is_mapped(const struct stat *st)
{
    bool found = false;
    uint64_t id[2];
    id_of(st, id);
    pthread_mutex_lock(&slots_lock);
    const int n = atomic_load(&n_slots);
    for (int i = 0; i < n && !found; i++) found = atomic_load(&slots[i].begin) && !memcmp(slots[i].id, id, sizeof id);
    pthread_mutex_unlock(&slots_lock);
    return found;
}

/* Size and identity of the open file; checks that it can be mapped. */
static int check_file(int fd, const char *path, uint64_t *size, uint64_t id[2], struct err *e)
{
    struct stat st;
    if (fstat(fd, &st)) return file_error(e, path, "stat");
    if (S_ISDIR(st.st_mode)) return err_set(e, ERR_IO, "%s: a folder, not a file", path);
    if (!S_ISREG(st.st_mode)) return err_set(e, ERR_IO, "%s: not a regular file", path);
    if (st.st_size <= 0) return err_set(e, ERR_IO, "%s: the file is empty", path);
    *size = (uint64_t)st.st_size;
    id_of(&st, id);
    if (*size > SIZE_MAX / 2) return err_set(e, ERR_IO, "%s: too large for this machine's address space", path);
    return 0;
}

/* A place in address space, not memory, for so many bytes where huge pages can be; MAP_FAILED. */
static uint8_t *find_place(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), huge = (size_t)FILE_HUGE_BYTES;
    const size_t pages = (size + page - 1) / page * page;
    uint8_t *const all = mmap(NULL, pages + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return all;
    const size_t skip = (huge - (uintptr_t)all % huge) % huge;
    if (skip) munmap(all, skip);
    munmap(all + skip + pages, huge - skip);
    return all + skip;
}

/* At an address that has the file's borders of huge pages. Most file systems see to that by themselves. */
static void *map_aligned(int fd, size_t size)
{
    void *const data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED || size < FILE_HUGE_BYTES || (uintptr_t)data % FILE_HUGE_BYTES == 0) return data;
    void *const place = find_place(size);
    if (place == MAP_FAILED) return data;
    if (mmap(place, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(place, size);
        return data;
    }
    munmap(data, size);
    return place;
}

static int map_fd(int fd, const char *path, struct file_map **out, struct err *e)
{
    uint64_t size = 0, id[2] = {0};
    const int rc = check_file(fd, path, &size, id, e);
    if (rc) return rc;
    void *data = map_aligned(fd, (size_t)size);
    if (data == MAP_FAILED) return file_error(e, path, "map");
    struct map_slot *slot = slot_take(data, size, id);
    if (!slot) {
        munmap(data, (size_t)size);
        return err_set(e, ERR_LIMIT, "%s: more than %d files are mapped", path, MAX_MAPS);
    }
    struct file_map *m = mem_alloc(sizeof *m);
    *m = (struct file_map){.data = data, .size = size, .id = {id[0], id[1]}, .path = mem_strdup(path), .slot = slot};
    *out = m;
    return 0;
}

int file_map_open(const char *path, struct file_map **out, struct err *e)
{
    *out = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    if (fd < 0) return file_open_error(e, path);
    const int rc = map_fd(fd, path, out, e);
    close(fd);
    return rc;
}

void file_map_close(struct file_map *m)
{
    if (!m) return;
    /* Before the address range can be given to somebody else. */
    atomic_store(&m->slot->begin, 0);
    munmap((void *)(uintptr_t)m->data, (size_t)m->size);
    mem_free(m->path);
    mem_free(m);
}

const uint8_t *file_map_data(const struct file_map *m)
{
    return m->data;
}

uint64_t file_map_size(const struct file_map *m)
{
    return m->size;
}

const char *file_map_path(const struct file_map *m)
{
    return m->path;
}

void file_map_id(const struct file_map *m, uint64_t id[2])
{
    id[0] = m->id[0];
    id[1] = m->id[1];
}

bool file_map_lost(const struct file_map *m, uint64_t *offset)
{
    const uintptr_t lost = atomic_load(&m->slot->lost);
    if (lost && offset) *offset = lost - 1;
    return lost != 0;
}

static bool advise(const struct file_map *m, uint64_t offset, uint64_t n, int advice)
{
    if (offset >= m->size || !n) return true;
    if (n > m->size - offset) n = m->size - offset;
    const uint64_t down = offset & (page_bytes - 1);
    return madvise((void *)(uintptr_t)(m->data + offset - down), (size_t)(n + down), advice) == 0;
}

void file_map_willneed(const struct file_map *m, uint64_t offset, uint64_t n)
{
    advise(m, offset, n, MADV_WILLNEED);
}

bool file_map_populate(const struct file_map *m, uint64_t offset, uint64_t n)
{
#ifdef __linux__
    enum { POPULATE_READ = 22 }; /* since Linux 5.14; not every system's header names it */
    return advise(m, offset, n, POPULATE_READ);
#else
    return false;
#endif
}

/* The bytes behind the end of the file belong to its last page. */
void file_map_release(const struct file_map *m, uint64_t offset, uint64_t n)
{
    if (offset >= m->size) return;
    const uint64_t begin = (offset + page_bytes - 1) & ~(uint64_t)(page_bytes - 1);
    uint64_t end = n > m->size - offset ? m->size : offset + n;
    if (end < m->size) end &= ~(uint64_t)(page_bytes - 1);
    if (begin >= end) return;
    void *const at = (void *)(uintptr_t)(m->data + begin);
    mmap(at, (size_t)(end - begin), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
