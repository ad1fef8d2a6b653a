#include "line_history.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/program.h"
#include "base/str.h"
#include "text/utf8.h"

static void complain(struct line_history *h, const char *reason)
{
    if (!h->failed) program_say("ds4", "%s: %s; what is typed is not kept for the next time", h->path, reason);
    h->failed = true;
}

/* ---------------------------------------------------------------- entries as lines */

static void encode(const char *text, struct str *line)
{
    for (; *text; text++) {
        if (*text == '\n')
            str_puts(line, "\\n");
        else if (*text == '\\')
            str_puts(line, "\\\\");
        else
            str_add(line, text, 1);
    }
    str_puts(line, "\n");
}

/* Whole UTF-8 without zero bytes, whatever is in the file: the editor loses other texts. */
static void decode(const char *line, size_t n, struct str *text)
{
    struct utf8_stream u = {0};
    str_clear(text);
    for (size_t i = 0; i < n; i++) {
        const bool pair = line[i] == '\\' && i + 1 < n && (line[i + 1] == 'n' || line[i + 1] == '\\');
        i += pair;
        const char c = pair && line[i] == 'n' ? '\n' : line[i] ? line[i] : '?';
        utf8_feed(&u, &c, 1, text);
    }
    utf8_end(&u, text);
}

/* ---------------------------------------------------------------- the file */

static void enter(struct line_history *h, const char *text)
{
    HistEvent event;
    history(h->entries, &event, H_ENTER, text);
}

static size_t count_lines(const char *p, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += p[i] == '\n';
    return count;
}

/* Where the last entries begin. */
static size_t last_entries(const char *p, size_t n)
{
    size_t lines = count_lines(p, n), at = 0;
    for (; lines > LINE_HISTORY_ENTRIES; lines--) at = (size_t)((char *)memchr(p + at, '\n', n - at) - p) + 1;
    return at;
}

static void rewrite(struct line_history *h, const char *p, size_t n)
{
    struct err e = {0};
    struct file_writer *w;
    if (file_writer_open(h->path, &w, &e)) return;
    if (file_writer_put(w, p, n, &e))
        file_writer_abort(w);
    else
        file_writer_commit(w, &e);
}

/* Cuts the file; its entries become ours if wanted. Without a file there is nothing to do, and what cannot be read will
 * be told when it is written to. */
static void read_and_cut(struct line_history *h, bool take)
{
    struct stat st;
    struct err e = {0};
    struct str text = {0};
    char *p;
    size_t n;
    if (stat(h->path, &st) || !S_ISREG(st.st_mode) || file_read(h->path, UINT64_C(1) << 30, &p, &n, &e)) return;
    const size_t from = last_entries(p, n);
    for (size_t at = from; take && at < n;) {
        const char *end = memchr(p + at, '\n', n - at);
        const size_t length = end ? (size_t)(end - (p + at)) : n - at;
        decode(p + at, length, &text);
        if (text.n) enter(h, str_c(&text));
        at += length + 1;
    }
    if (from) rewrite(h, p + from, n - from);
    str_free(&text);
    mem_free(p);
}

static int append(const char *path, const struct str *line)
{
    struct stat st;
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    int rc = fstat(fd, &st);
    if (!rc && !S_ISREG(st.st_mode)) errno = EINVAL, rc = -1;
    if (!rc && (st.st_mode & 0777) != 0600) rc = fchmod(fd, 0600);
    if (!rc && write(fd, line->p, line->n) != (ssize_t)line->n) rc = -1;
    const int why = errno;
    close(fd);
    errno = why;
    return rc;
}

/* ---------------------------------------------------------------- all of it */

void line_history_open(struct line_history *h)
{
    HistEvent event;
    struct str path = {0};
    const char *home = getenv("HOME");
    str_printf(&path, "%s%s.ds4_history", home ? home : "", home && *home ? "/" : "");
    *h = (struct line_history){.entries = history_init(), .path = mem_strdup(str_c(&path))};
    str_free(&path);
    history(h->entries, &event, H_SETSIZE, LINE_HISTORY_ENTRIES);
    history(h->entries, &event, H_SETUNIQUE, 1);
    read_and_cut(h, true);
}

void line_history_add(struct line_history *h, const char *text)
{
    HistEvent last;
    struct str line = {0};
    if (!history(h->entries, &last, H_FIRST) && !strcmp(last.str, text)) return;
    enter(h, text);
    encode(text, &line);
    if (append(h->path, &line)) complain(h, strerror(errno));
    str_free(&line);
}

void line_history_close(struct line_history *h)
{
    read_and_cut(h, false);
    history_end(h->entries);
    mem_free(h->path);
}
