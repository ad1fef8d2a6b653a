/* Whole reads, and the sentence for what the system refuses. */
#include "base/file.h"
#include "base/file_internal.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_error(struct err *e, const char *path, const char *what)
{
    return err_set(e, ERR_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* Names in a download's cache are links into a folder "blobs", which has the files once they are whole. */
int file_open_error(struct err *e, const char *path)
{
    char to[1024];
    const int why = errno;
    const ssize_t n = why == ENOENT ? readlink(path, to, sizeof to - 1) : -1;
    errno = why;
    if (n < 0) return file_error(e, path, "open");
    to[n] = 0;
    return err_set(e, ERR_IO, "%s is a link to %s, which is not there: %s", path, to,
                   strstr(to, "blobs/") ? "its download was not finished, or the cache was cleared; download it again"
                                        : "put the file there, or make the link anew");
}

bool file_same(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Buffer of the growing text; one byte beyond n stays free for the zero. */
struct buffer {
    char *p;
    size_t n, cap;
};

static int buffer_widen(struct buffer *b, size_t cap, const char *path, struct err *e)
{
    char *const wider = mem_try(cap);
    if (!wider) return err_set(e, ERR_MEMORY, "%s: no memory for %zu bytes", path, cap);
    if (b->n) memcpy(wider, b->p, b->n);
    mem_free(b->p);
    b->p = wider;
    b->cap = cap;
    return 0;
}

static int too_long(const char *path, uint64_t max, struct err *e)
{
    return err_set(e, ERR_LIMIT, "%s: longer than %" PRIu64 " bytes, the most that is read here", path, max);
}

/* A first size that holds a regular file at once. A file may grow; one that is too long already is not read. */
static int first_cap(int fd, const char *path, uint64_t max, size_t *cap, struct err *e)
{
    struct stat st;
    uint64_t want = 1 << 16;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uint64_t)st.st_size > max) return too_long(path, max, e);
        want = (uint64_t)st.st_size + 2;
    }
    *cap = (size_t)(want - 2 < max ? want : max + 2);
    return 0;
}

static int read_all(int fd, const char *path, uint64_t max, struct buffer *b, struct err *e)
{
    size_t cap = 0;
    int rc = first_cap(fd, path, max, &cap, e);
    if (!rc) rc = buffer_widen(b, cap, path, e);
    while (!rc) {
        if (b->n + 1 == b->cap) rc = buffer_widen(b, b->cap * 2, path, e);
        if (rc) break;
        const ssize_t got = read(fd, b->p + b->n, b->cap - b->n - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return file_error(e, path, "read");
        if (!got) break;
        b->n += (size_t)got;
        if (b->n > max) return too_long(path, max, e);
    }
    if (!rc) b->p[b->n] = 0;
    return rc;
}

int file_read(const char *path, uint64_t max, char **data, size_t *n, struct err *e)
{
    const bool is_stdin = !strcmp(path, "-");
    const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    *data = NULL;
    *n = 0;
    if (fd < 0) return file_open_error(e, path);
    if (max > PTRDIFF_MAX / 4) max = PTRDIFF_MAX / 4;
    struct buffer b = {0};
    const int rc = read_all(fd, is_stdin ? "standard input" : path, max, &b, e);
    if (!is_stdin) close(fd);
    if (rc) {
        mem_free(b.p);
        return rc;
    }
    *data = b.p;
    *n = b.n;
    return 0;
}
