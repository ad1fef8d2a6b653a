/* Gathers and their readers.
 *
 * A table has readers that sleep until there is a gather with rows that nobody has taken; each takes a slice, reads it
 * without the lock, and comes back. Who waits for a gather takes slices of it too. A gather is over when it has left
 * the queue (all rows taken, or stopped) and no slice of it is being read. Readers own nothing but their ring and their
 * stack; they start with the first gather. Where not one can be started, the waiting thread reads alone. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/thread.h"
#include "rowtable/rowtable_internal.h"

/* A disk wants many requests under way: threads have one each, a ring has a slice of them. */
enum { MOST_READERS = 16, RING_READERS = 2 };

struct rowtable_gather {
    struct rowtable *t;
    const uint32_t *ids;
    float *out;
    size_t n, taken;
    int running; /* slices that are being read */
    bool queued;
    struct err failed; /* the first failure */
    struct rowtable_gather *next;
};

struct reader {
    pthread_t id;
    struct rowtable *t;
    struct row_ring *ring; /* NULL: threads */
};

struct rowtable {
    struct row_file file;
    struct reader reader[MOST_READERS];
    int n_readers, most_readers;
    struct row_ring *first_ring; /* made at once, to see whether there are rings; the first reader's */
    pthread_mutex_t lock;
    pthread_cond_t work, over;
    struct rowtable_gather *queue; /* in the order of their starts */
    struct rowtable_gather *spare; /* ended ones, to be used again: no allocation per step */
    bool quit;
};

/* ------------------------------------------------------------------------------------------------ opening */

static int check_view(const struct file_map *file, const char *name, const struct tensor_view *v, struct err *e)
{
    const struct quant_type *const type = quant_type(v->type);
    const char *const path = file_map_path(file);
    if (!type || !type->decode)
        return err_set(e, ERR_MODEL, "%s: %s: rows of type %s cannot be decoded", path, name,
                       type ? type->name : "unknown to this program");
    const size_t row_bytes = quant_row_bytes(v->type, v->ne[0]);
    if (row_bytes == 0 || row_bytes > ROW_MOST)
        return err_set(e, ERR_MODEL,
                       "%s: %s: rows of %" PRId64 " values of type %s cannot be read (whole blocks of "
                       "%d values, at most %d bytes)",
                       path, name, v->ne[0], type->name, type->block, ROW_MOST);
    if (v->ne[1] < 1 || v->ne[1] > UINT32_MAX || v->stride[1] < row_bytes)
        return err_set(e, ERR_MODEL,
                       "%s: %s: %" PRId64 " rows, %" PRIu64 " bytes apart; 1 to 2^32 - 1 rows of %zu "
                       "bytes are possible",
                       path, name, v->ne[1], v->stride[1], row_bytes);
    uint64_t end;
    if (!u64_mul((uint64_t)v->ne[1] - 1, v->stride[1], &end) || !u64_add(end, v->offset, &end) ||
        !u64_add(end, row_bytes, &end) || end > file_map_size(file))
        return err_set(e, ERR_IO, "%s: %s: the file ends before its last row", path, name);
    return 0;
}

/* The file that is mapped, opened again: nothing is read ahead, and nothing that was read is kept for long. */
static int open_again(const struct file_map *file, int *out, struct err *e)
{
    const char *const path = file_map_path(file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return err_set(e, ERR_IO, "%s: cannot open again: %s", path, strerror(errno));
    const int rc = file_check_same(file, fd, e);
    if (rc) {
        close(fd);
        return rc;
    }
#ifdef F_NOCACHE
    fcntl(fd, F_NOCACHE, 1);
    fcntl(fd, F_RDAHEAD, 0);
#endif
#ifdef POSIX_FADV_RANDOM
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    posix_fadvise(fd, 0, 0, POSIX_FADV_NOREUSE);
#endif
    *out = fd;
    return 0;
}

int rowtable_open_by(enum rowtable_means means, const struct file_map *file, const char *name,
                     const struct tensor_view *v, struct rowtable **out, struct err *e)
{
    int fd = -1;
    *out = NULL;
    int rc = check_view(file, name, v, e);
    if (rc == 0) rc = open_again(file, &fd, e);
    if (rc != 0) return rc;
    struct rowtable *const t = mem_alloc(sizeof *t);
    t->file = (struct row_file){.fd = fd,
                                .path = mem_strdup(file_map_path(file)),
                                .name = mem_strdup(name),
                                .decode = quant_type(v->type)->decode,
                                .width = v->ne[0],
                                .rows = (uint64_t)v->ne[1],
                                .stride = v->stride[1],
                                .offset = v->offset,
                                .row_bytes = quant_row_bytes(v->type, v->ne[0])};
    file_map_release(file, v->offset, (t->file.rows - 1) * t->file.stride + t->file.row_bytes);
    if (means == ROWTABLE_BEST) t->first_ring = row_ring_create(&t->file);
    t->most_readers = t->first_ring ? RING_READERS : MOST_READERS;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->over, NULL);
    *out = t;
    return 0;
}

int rowtable_open(const struct file_map *file, const char *name, const struct tensor_view *view, struct rowtable **out,
                  struct err *e)
{
    return rowtable_open_by(ROWTABLE_BEST, file, name, view, out, e);
}

int64_t rowtable_width(const struct rowtable *t)
{
    return t->file.width;
}

uint64_t rowtable_rows(const struct rowtable *t)
{
    return t->file.rows;
}

const char *rowtable_way(const struct rowtable *t)
{
    return t->first_ring ? "io_uring" : "threads";
}

/* ------------------------------------------------------------------------------------------------ slices */

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Rows [at, at + n) of a gather in the order of the file: the same row once. */
static void slice_fill(struct row_slice *s, const struct rowtable_gather *g, size_t at, int n)
{
    uint64_t key[SLICE_MOST];
    for (int i = 0; i < n; i++) key[i] = (uint64_t)g->ids[at + (size_t)i] << 32 | (uint32_t)i;
    if (n > 1) qsort(key, (size_t)n, sizeof *key, by_id);
    s->n = n;
    s->out = g->out + at * (size_t)g->t->file.width;
    for (int i = 0; i < n; i++) {
        s->id[i] = (uint32_t)(key[i] >> 32);
        s->place[i] = (uint32_t)key[i];
    }
}

static void leave_queue(struct rowtable_gather *g)
{
    struct rowtable_gather **p = &g->t->queue;
    while (g->queued && *p != g) p = &(*p)->next;
    if (g->queued) *p = g->next;
    g->queued = false;
}

static bool is_over(const struct rowtable_gather *g)
{
    return !g->queued && g->running == 0;
}

/* With the lock held: takes a slice of a queued gather, reads it without the lock. Few rows are shared by the readers,
 * of many each takes whole slices. */
static void read_slice(struct rowtable_gather *g, struct row_ring *ring)
{
    struct rowtable *const t = g->t;
    struct row_slice s;
    struct err failed = {0};
    const size_t at = g->taken, left = g->n - at;
    const size_t fair = ring ? SLICE_MOST : (g->n + MOST_READERS - 1) / MOST_READERS;
    const size_t share = fair < SLICE_MOST ? fair : SLICE_MOST;
    const int n = (int)(left < share ? left : share);
    g->taken += (size_t)n;
    if (g->taken == g->n) leave_queue(g);
    g->running++;
    pthread_mutex_unlock(&t->lock);
    slice_fill(&s, g, at, n);
    const int rc = ring ? rows_ring(ring, &t->file, &s, &failed) : rows_pread(&t->file, &s, &failed);
    pthread_mutex_lock(&t->lock);
    g->running--;
    if (rc != 0) {
        err_set(&g->failed, rc, "%s", failed.msg);
        leave_queue(g);
    }
    if (is_over(g)) pthread_cond_broadcast(&t->over);
}

/* ------------------------------------------------------------------------------------------------ readers */

static void *reader_run(void *arg)
{
    struct reader *const r = arg;
    struct rowtable *const t = r->t;
    pthread_mutex_lock(&t->lock);
    while (!t->quit) {
        if (t->queue)
            read_slice(t->queue, r->ring);
        else
            pthread_cond_wait(&t->work, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* With the lock held. */
static void start_readers(struct rowtable *t)
{
    while (t->n_readers < t->most_readers) {
        struct reader *const r = &t->reader[t->n_readers];
        *r = (struct reader){.t = t};
        if (t->first_ring) r->ring = t->n_readers == 0 ? t->first_ring : row_ring_create(&t->file);
        if (thread_start(&r->id, reader_run, r) != 0) {
            if (r->ring != t->first_ring) row_ring_free(r->ring);
            break;
        }
        t->n_readers++;
    }
    t->most_readers = t->n_readers; /* what cannot be started now is not tried again */
}

void rowtable_close(struct rowtable *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->quit = true;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->n_readers; i++) {
        pthread_join(t->reader[i].id, NULL);
        if (t->reader[i].ring != t->first_ring) row_ring_free(t->reader[i].ring);
    }
    row_ring_free(t->first_ring);
    while (t->spare) {
        struct rowtable_gather *const g = t->spare;
        t->spare = g->next;
        mem_free(g);
    }
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->over);
    pthread_mutex_destroy(&t->lock);
    close(t->file.fd);
    mem_free(t->file.path);
    mem_free(t->file.name);
    mem_free(t);
}

/* ------------------------------------------------------------------------------------------------ gathers */

static struct rowtable_gather *enqueue(struct rowtable *t, const uint32_t *ids, size_t n, float *out)
{
    struct rowtable_gather *g = t->spare;
    if (g)
        t->spare = g->next;
    else
        g = mem_alloc(sizeof *g);
    *g = (struct rowtable_gather){.t = t, .ids = ids, .out = out, .n = n, .queued = n > 0};
    struct rowtable_gather **p = &t->queue;
    while (*p) p = &(*p)->next;
    if (n > 0) *p = g;
    return g;
}

int rowtable_start(struct rowtable *t, const uint32_t *ids, size_t n, float *out, struct rowtable_gather **g,
                   struct err *e)
{
    *g = NULL;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= t->file.rows)
            return err_set(e, ERR_MODEL, "%s: %s: row %" PRIu32 " is asked for, there are %" PRIu64, t->file.path,
                           t->file.name, ids[i], t->file.rows);
    pthread_mutex_lock(&t->lock);
    if (n > 0 && t->n_readers < t->most_readers) start_readers(t);
    *g = enqueue(t, ids, n, out);
    if (n > 1)
        pthread_cond_broadcast(&t->work);
    else if (n > 0)
        pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
    return 0;
}

/* With the lock held. */
static void end(struct rowtable_gather *g)
{
    while (!is_over(g)) pthread_cond_wait(&g->t->over, &g->t->lock);
    g->next = g->t->spare;
    g->t->spare = g;
}

int rowtable_wait(struct rowtable_gather *g, struct err *e)
{
    struct rowtable *const t = g->t;
    pthread_mutex_lock(&t->lock);
    while (g->queued) read_slice(g, NULL);
    end(g);
    const struct err failed = g->failed;
    pthread_mutex_unlock(&t->lock);
    return failed.code ? err_set(e, failed.code, "%s", failed.msg) : 0;
}

void rowtable_cancel(struct rowtable_gather *g)
{
    if (!g) return;
    struct rowtable *const t = g->t;
    pthread_mutex_lock(&t->lock);
    leave_queue(g);
    end(g);
    pthread_mutex_unlock(&t->lock);
}
