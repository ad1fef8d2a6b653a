/* Atomic replacement: a temporary file beside the target, fsync, rename, fsync of the folder. What is no file (a
 * device, a pipe) is never replaced: it is written to. */
#include "base/file.h"
#include "base/file_internal.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20, MAX_TRIES = 1000 };

struct file_writer {
    int fd;
    char *path, *temp; /* temp NULL: path is no file and is written to directly */
    uint64_t at;       /* bytes accepted so far */
    uint8_t *buffer;   /* [BUFFER_BYTES], n_buffered not written yet */
    size_t n_buffered;
    struct err failed; /* the first failure; commit returns it */
};

/* Opens a file of a name that nobody has, with the mode of the target if there is one (NULL: there is none). */
static int open_temp(struct file_writer *w, const struct stat *target)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        struct str name = {0};
        str_printf(&name, "%s.tmp-%ld-%d", w->path, (long)getpid(), i);
        w->fd = open(str_c(&name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        const int why = errno;
        if (w->fd >= 0) w->temp = mem_strdup(str_c(&name));
        str_free(&name);
        if (w->fd >= 0) return target ? fchmod(w->fd, target->st_mode & 0777) : 0;
        errno = why;
        if (why != EEXIST) break;
    }
    return -1;
}

static void writer_free(struct file_writer *w)
{
    mem_free(w->buffer);
    mem_free(w->path);
    mem_free(w->temp);
    mem_free(w);
}

/* A link stays; the file that it names is replaced. */
static void follow_links(struct file_writer *w)
{
    char *real = realpath(w->path, NULL);
    if (!real) return;
    mem_free(w->path);
    w->path = mem_strdup(real);
    free(real);
}

static int open_target(struct file_writer *w, struct err *e)
{
    struct stat st;
    const bool exists = !stat(w->path, &st);
    if (exists && S_ISDIR(st.st_mode)) return err_set(e, ERR_IO, "%s: is a folder, not a file to write", w->path);
    if (exists && !S_ISREG(st.st_mode)) {
        w->fd = open(w->path, O_WRONLY | O_CLOEXEC);
        return w->fd < 0 ? file_error(e, w->path, "open") : 0;
    }
    if (exists) follow_links(w);
    return open_temp(w, exists ? &st : NULL) ? file_error(e, w->path, "create a file beside it to write to") : 0;
}

int file_writer_open(const char *path, struct file_writer **out, struct err *e)
{
    *out = NULL;
    struct file_writer *w = mem_alloc(sizeof *w);
    w->fd = -1;
    w->path = mem_strdup(path);
    w->buffer = mem_alloc(BUFFER_BYTES);
    const int rc = open_target(w, e);
    if (rc)
        file_writer_abort(w);
    else
        *out = w;
    return rc;
}

static int write_all(struct file_writer *w, const uint8_t *p, size_t n)
{
    while (n) {
        const ssize_t put = write(w->fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return file_error(&w->failed, w->path, "write");
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

static int flush_buffer(struct file_writer *w)
{
    const size_t n = w->n_buffered;
    w->n_buffered = 0;
    return write_all(w, w->buffer, n);
}

static int report(const struct file_writer *w, struct err *e)
{
    return err_set(e, w->failed.code, "%s", w->failed.msg);
}

int file_writer_put(struct file_writer *w, const void *data, size_t n, struct err *e)
{
    if (w->failed.code) return report(w, e);
    w->at += n;
    int rc = 0;
    if (n > BUFFER_BYTES - w->n_buffered) rc = flush_buffer(w);
    if (!rc && n >= BUFFER_BYTES) {
        rc = write_all(w, data, n);
    } else if (!rc && n) {
        memcpy(w->buffer + w->n_buffered, data, n);
        w->n_buffered += n;
    }
    return rc ? report(w, e) : 0;
}

uint64_t file_writer_at(const struct file_writer *w)
{
    return w->at;
}

/* Makes the rename itself durable. Some file systems cannot sync a folder; the file's bytes are safe by then. */
static void sync_folder(const char *path)
{
    struct str folder = {0};
    const char *slash = strrchr(path, '/');
    str_add(&folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    const int fd = open(str_c(&folder), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    str_free(&folder);
}

static int finish(struct file_writer *w)
{
    if (w->failed.code || flush_buffer(w)) return w->failed.code;
    if (w->temp && fsync(w->fd)) return file_error(&w->failed, w->path, "write");
    const int rc = close(w->fd);
    w->fd = -1;
    if (rc) return file_error(&w->failed, w->path, "write");
    if (w->temp && rename(w->temp, w->path)) return file_error(&w->failed, w->path, "replace");
    return 0;
}

int file_writer_commit(struct file_writer *w, struct err *e)
{
    if (finish(w)) {
        const int rc = report(w, e);
        file_writer_abort(w);
        return rc;
    }
    if (w->temp) sync_folder(w->path);
    writer_free(w);
    return 0;
}

void file_writer_abort(struct file_writer *w)
{
    if (!w) return;
    if (w->fd >= 0) close(w->fd);
    if (w->temp) unlink(w->temp);
    writer_free(w);
}
