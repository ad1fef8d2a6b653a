#include "serve/journal.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/http_parse.h"
#include "text/json_text.h"
#include "text/utf8.h"

struct journal {
    char *path;
    char **key;
    size_t n_keys;
    pthread_mutex_t lock; /* of what follows */
    int fd;
    bool torn;   /* the last line may be there in part only */
    bool warned; /* that it cannot be written */
};

struct journal_entry {
    struct journal *journal;
    struct str line;     /* the members that are known when the request comes */
    double begun, first; /* s; first: of the first byte that was told, 0: none */
    size_t told;
};

/* ---------------------------------------------------------------- the file */

static int open_file(const char *path, int *fd, struct err *e)
{
    struct stat st;
    *fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0) return err_set(e, ERR_IO, "%s: cannot be opened for the journal: %s", path, strerror(errno));
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077) && fchmod(*fd, 0600)) {
        close(*fd);
        return err_set(e, ERR_IO, "%s: others can read it, and that cannot be changed: %s", path, strerror(errno));
    }
    return 0;
}

int journal_open(const char *path, const char *const *keys, size_t n_keys, struct journal **out, struct err *e)
{
    int fd;
    *out = NULL;
    if (open_file(path, &fd, e)) return e->code;
    struct journal *j = mem_alloc(sizeof *j);
    *j = (struct journal){.path = mem_strdup(path), .fd = fd};
    j->key = mem_alloc((n_keys + 1) * sizeof *j->key);
    for (; j->n_keys < n_keys; j->n_keys++) j->key[j->n_keys] = mem_strdup(keys[j->n_keys]);
    pthread_mutex_init(&j->lock, NULL);
    *out = j;
    return 0;
}

void journal_close(struct journal *j)
{
    if (!j) return;
    for (size_t i = 0; i < j->n_keys; i++) mem_free(j->key[i]);
    mem_free(j->key);
    mem_free(j->path);
    close(j->fd);
    pthread_mutex_destroy(&j->lock);
    mem_free(j);
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        const ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* A full disk must not end the serving: it is told once, and later lines are tried again. */
static void put_line(struct journal *j, const struct str *line)
{
    pthread_mutex_lock(&j->lock);
    bool good = !j->torn || write_all(j->fd, "\n", 1);
    good = good && write_all(j->fd, line->p, line->n);
    if (!good && !j->warned)
        log_msg(LOG_WARN, "journal", "%s cannot be written (%s); requests are missing from it from now on", j->path,
                strerror(errno));
    j->warned = j->warned || !good;
    j->torn = !good;
    pthread_mutex_unlock(&j->lock);
}

/* ---------------------------------------------------------------- members */

static void put_bytes(struct str *out, const char *name, const char *p, size_t n)
{
    if (utf8_valid_run(p, n) == n) {
        str_printf(out, ",\"%s\":", name);
        json_text_quote(out, p, n);
        return;
    }
    str_printf(out, ",\"%s_base64\":\"", name);
    base64_encode(out, p, n);
    str_puts(out, "\"");
}

/* Whatever may let somebody in. */
static bool is_secret(const struct journal *j, const char *name, const char *value)
{
    static const char *const words[] = {"auth", "key", "cookie", "token", "secret", "passw", "credential"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(name, words[i])) return true;
    for (size_t i = 0; i < j->n_keys; i++)
        if (strstr(value, j->key[i])) return true;
    return false;
}

static void put_headers(const struct journal *j, const struct http_head *head, struct str *out)
{
    const char *comma = "";
    str_puts(out, ",\"headers\":{");
    for (size_t i = 0; i < head->n_field; i++) {
        const char *name = http_head_text(head, head->field[i].name),
                   *value = http_head_text(head, head->field[i].value);
        if (is_secret(j, name, value)) continue;
        str_puts(out, comma);
        json_text_quote(out, name, strlen(name));
        str_puts(out, ":");
        json_text_quote(out, value, strlen(value));
        comma = ",";
    }
    str_puts(out, "}");
}

/* ---------------------------------------------------------------- entries */

struct journal_entry *journal_begin(struct journal *j, const struct http_request *q)
{
    if (!j) return NULL;
    struct journal_entry *e = mem_alloc(sizeof *e);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *e = (struct journal_entry){.journal = j, .begun = clock_s()};
    str_printf(&e->line, "{\"time\":%lld.%06ld,\"method\":", (long long)now.tv_sec, now.tv_nsec / 1000);
    json_text_quote(&e->line, q->method, strlen(q->method));
    str_puts(&e->line, ",\"path\":"); /* without the query, where people put keys */
    json_text_quote(&e->line, q->path, strlen(q->path));
    put_headers(j, q->head, &e->line);
    put_bytes(&e->line, "body", q->body ? q->body : "", q->n_body);
    return e;
}

void journal_told(struct journal_entry *e, size_t n)
{
    if (!e || !n) return;
    if (!e->told) e->first = clock_s();
    e->told += n;
}

void journal_end(struct journal_entry *e, int status, const char *how)
{
    if (!e) return;
    struct str *line = &e->line;
    if (status)
        str_printf(line, ",\"status\":%d", status);
    else
        str_puts(line, ",\"status\":null");
    str_printf(line, ",\"answer\":{\"bytes\":%zu,\"seconds\":%.6f", e->told, clock_s() - e->begun);
    if (e->told) str_printf(line, ",\"first_seconds\":%.6f", e->first - e->begun);
    str_printf(line, ",\"end\":\"%s\"}}\n", how);
    put_line(e->journal, line);
    str_free(line);
    mem_free(e);
}
