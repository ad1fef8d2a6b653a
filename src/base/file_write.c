/* Atomic replacement: a temporary file beside the target, fsync, rename, fsync of the folder. Where the system can, the
 * temporary file has no name until it is complete, so that an interrupted process leaves nothing. What is no file (a
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

enum { BUFFER_BYTES = 1 << 20, MAX_TRIES = 1000, MAX_NAME = 200 /* bytes of the target's name */ };

struct file_writer {
    int fd;
    char *shown;       /* the name as it was given, for messages; path: with links followed */
    char *path, *temp; /* temp: name of the temporary file, NULL if it has none */
    bool unnamed;      /* a temporary file without a name yet; neither: path is no file and is written to directly */
    uint64_t at;       /* bytes accepted so far */
    uint8_t *buffer;   /* [BUFFER_BYTES], n_buffered not written yet */
    size_t n_buffered;
    struct err failed; /* the first failure; commit returns it */
};

static void folder_of(const char *path, struct str *folder)
{
    const char *slash = strrchr(path, '/');
    str_add(folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
}

/* The way to a file that has no name. */
static void open_file_path(const struct file_writer *w, char path[40])
{
    snprintf(path, 40, "/proc/self/fd/%d", w->fd);
}

/* A file without a name. Not every file system has them, and to name it takes /proc. */
static bool open_unnamed(struct file_writer *w)
{
#ifdef O_TMPFILE
    char self[40];
    struct str folder = {0};
    folder_of(w->path, &folder);
    w->fd = open(str_c(&folder), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    str_free(&folder);
    if (w->fd < 0) return false;
    open_file_path(w, self);
    w->unnamed = access(self, F_OK) == 0;
    if (w->unnamed) return true;
    close(w->fd);
    w->fd = -1;
#endif
    return false;
}

static int create_named(struct file_writer *w, const char *name)
{
    w->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return w->fd < 0 ? -1 : 0;
}

static int name_unnamed(struct file_writer *w, const char *name)
{
    char self[40];
    open_file_path(w, self);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Calls make for names beside the target until it finds one that nobody has. */
static int take_name(struct file_writer *w, int (*make)(struct file_writer *w, const char *name))
{
    const char *slash = strrchr(w->path, '/'), *base = slash ? slash + 1 : w->path;
    for (int i = 0; i < MAX_TRIES; i++) {
        struct str name = {0};
        str_add(&name, w->path, (size_t)(base - w->path));
        str_printf(&name, "%.*s.tmp-%ld-%d", MAX_NAME, base, (long)getpid(), i);
        const int rc = make(w, str_c(&name)), why = errno;
        if (!rc) w->temp = mem_strdup(str_c(&name));
        str_free(&name);
        if (!rc) return 0;
        errno = why;
        if (why != EEXIST) break;
    }
    return -1;
}

/* With owner and mode of the target if there is one (NULL: there is none). Only root can give files away. */
static int open_temp(struct file_writer *w, const struct stat *target)
{
    if (!open_unnamed(w) && take_name(w, create_named)) return -1;
    if (!target) return 0;
    if (fchown(w->fd, target->st_uid, target->st_gid)) errno = 0;
    return fchmod(w->fd, target->st_mode & 0777);
}

static void writer_free(struct file_writer *w)
{
    mem_free(w->buffer);
    mem_free(w->shown);
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
    if (!exists && errno != ENOENT) return file_error(e, w->shown, "create"); /* it would fail at the end */
    if (exists && S_ISDIR(st.st_mode)) return err_set(e, ERR_IO, "%s: is a folder, not a file to write", w->shown);
    if (exists && file_is_mapped(&st))
        return err_set(e, ERR_ARG, "%s: is one of the files that are read here; give another name to write to",
                       w->shown);
    if (exists && !S_ISREG(st.st_mode)) {
        w->fd = open(w->path, O_WRONLY | O_CLOEXEC);
        return w->fd < 0 ? file_error(e, w->shown, "open") : 0;
    }
    if (exists && access(w->path, W_OK)) return file_error(e, w->shown, "write to it"); /* it could be replaced */
    if (exists) follow_links(w);
    return open_temp(w, exists ? &st : NULL) ? file_error(e, w->shown, "create a file beside it to write to") : 0;
}

int file_writer_open(const char *path, struct file_writer **out, struct err *e)
{
    *out = NULL;
    struct file_writer *w = mem_alloc(sizeof *w);
    w->fd = -1;
    w->path = mem_strdup(path);
    w->shown = mem_strdup(path);
    w->buffer = mem_try(BUFFER_BYTES);
    const int rc = w->buffer ? open_target(w, e) : err_set(e, ERR_MEMORY, "%s: no memory to write to it", path);
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
        if (put < 0) return file_error(&w->failed, w->shown, "write");
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
    folder_of(path, &folder);
    const int fd = open(str_c(&folder), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    str_free(&folder);
}

/* A file without a name gets that of the target at once where nobody has it. Where it has to replace something it has a
 * name beside it for as long as a rename takes: a process that is killed just then leaves it there. */
static int publish_unnamed(struct file_writer *w)
{
    if (!name_unnamed(w, w->path)) return 0;
    if (take_name(w, name_unnamed)) return file_error(&w->failed, w->shown, "create");
    return rename(w->temp, w->path) ? file_error(&w->failed, w->shown, "replace") : 0;
}

static int finish(struct file_writer *w)
{
    if (w->failed.code || flush_buffer(w)) return w->failed.code;
    if ((w->temp || w->unnamed) && fsync(w->fd)) return file_error(&w->failed, w->shown, "write");
    if (w->unnamed) return publish_unnamed(w);
    const int rc = close(w->fd);
    w->fd = -1;
    if (rc) return file_error(&w->failed, w->shown, "write");
    return w->temp && rename(w->temp, w->path) ? file_error(&w->failed, w->shown, "replace") : 0;
}

int file_writer_commit(struct file_writer *w, struct err *e)
{
    if (finish(w)) {
        const int rc = report(w, e);
        file_writer_abort(w);
        return rc;
    }
    if (w->temp || w->unnamed) sync_folder(w->path);
    if (w->fd >= 0) close(w->fd);
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
