/* Reading weights into memory instead of mapping them (ds4_options.load): which pages of which file, and near which
 * memory node. Rows of a matrix are cut among the nodes as its tasks are (pool_create_on): the k-th equal part of each
 * matrix, of stacked experts of each expert. Where such parts are smaller than huge pages they lie in small ones, near
 * the threads that read them. */
#include "engine/engine_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"

#define PIECE_BYTES ((uint64_t)8 << 20) /* that a task reads */
#define HUGE_FROM   ((uint64_t)4 << 20) /* parts of a matrix from here on are worth huge pages of 2 MiB */

/* ---------------------------------------------------------------- plan */

static int by_place(const void *a, const void *b)
{
    const struct tensor_view *x = *(const struct tensor_view *const *)a, *y = *(const struct tensor_view *const *)b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Tensors that lie in files and are used in memory, in their order there; *n of them, owned by the caller. */
static const struct tensor_view **tensors_of(const struct canonical *c, bool draft, int *n)
{
    const struct tensor_view **v = mem_try((size_t)(canonical_n_tensors(c) + 1) * sizeof *v);
    *n = 0;
    for (int i = 0; v && i < canonical_n_tensors(c); i++) {
        if (canonical_on_disk(c, i) || (!draft && canonical_of_draft(c, i))) continue;
        canonical_tensor_at(c, i, &v[*n]);
        if (v[*n]->file >= 0) ++*n;
    }
    if (v) qsort(v, (size_t)*n, sizeof *v, by_place);
    return v;
}

static void *grown(void *p, int n, size_t bytes)
{
    return n & (n - 1) ? p : mem_grow(p, (size_t)(n ? 2 * n : 1) * bytes);
}

/* The range is read, as far as it was not yet: behind the last piece, in pieces that end on their borders. */
static void add_range(struct load_plan *p, const struct canonical *c, struct load_piece r, bool huge)
{
    struct load_span *s = p->n_spans ? &p->span[p->n_spans - 1] : NULL;
    if (s && s->file == r.file && r.from < s->to) r.from = s->to;
    if (r.from >= r.to) return;
    if (!s || s->file != r.file || s->to != r.from || s->huge != huge) {
        p->span = grown(p->span, p->n_spans, sizeof *p->span);
        s = &p->span[p->n_spans++];
        *s = (struct load_span){.file = r.file, .from = r.from, .huge = huge};
    }
    s->to = r.to;
    p->bytes += r.to - r.from;
    /* Borders of addresses: no huge page is two threads'. */
    const uint64_t base = (uint64_t)(uintptr_t)file_map_data(canonical_file(c, r.file));
    while (r.from < r.to) {
        const uint64_t border = (base + r.from) / PIECE_BYTES * PIECE_BYTES + PIECE_BYTES - base;
        struct load_piece *last = p->n_pieces ? &p->piece[p->n_pieces - 1] : NULL;
        struct load_piece next = r;
        if (next.to > border) next.to = border;
        if (last && last->file == next.file && last->node == next.node && last->to == next.from &&
            (base + next.from) % PIECE_BYTES) {
            last->to = next.to;
        } else {
            p->piece = grown(p->piece, p->n_pieces, sizeof *p->piece);
            p->piece[p->n_pieces++] = next;
        }
        r.from = next.to;
    }
}

/* Pages with rows [row0, row1) of a slice of a tensor; a page that the rows before have too is theirs (add_range). */
static void add_rows(struct load_plan *p, const struct canonical *c, const struct tensor_view *v, uint64_t slice,
                     int64_t row0, int64_t row1, int node, bool huge)
{
    const struct file_map *m = canonical_file(c, v->file);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = v->offset + slice;
    const uint64_t from = (begin + (uint64_t)row0 * v->stride[1]) / page * page;
    const uint64_t to = file_load_border(m, begin + (uint64_t)row1 * v->stride[1]);
    add_range(p, c, (struct load_piece){.file = v->file, .node = node, .from = from, .to = to}, huge);
}

static void add_tensor(struct load_plan *p, const struct canonical *c, const struct tensor_view *v, int n_nodes)
{
    const int64_t R = v->ne[1];
    const bool huge = n_nodes == 1 || (uint64_t)R * v->stride[1] / (uint64_t)n_nodes >= HUGE_FROM;
    for (int64_t b = 0; b < v->ne[3]; b++)
        for (int64_t a = 0; a < v->ne[2]; a++)
            for (int k = 0; k < n_nodes; k++)
                add_rows(p, c, v, (uint64_t)a * v->stride[2] + (uint64_t)b * v->stride[3], R * k / n_nodes,
                         R * (k + 1) / n_nodes, k, huge);
}

static int by_node(const void *a, const void *b)
{
    const struct load_piece *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

int load_plan_make(const struct canonical *c, bool draft, int n_nodes, struct load_plan *p, struct err *e)
{
    int n;
    *p = (struct load_plan){0};
    const struct tensor_view **v = tensors_of(c, draft, &n);
    if (!v) return err_set(e, ERR_MEMORY, "no memory for a list of %d tensors", canonical_n_tensors(c));
    for (int i = 0; i < n; i++) add_tensor(p, c, v[i], n_nodes);
    mem_free(v);
    if (n_nodes > 1) qsort(p->piece, (size_t)p->n_pieces, sizeof *p->piece, by_node);
    return 0;
}

void load_plan_free(struct load_plan *p)
{
    mem_free(p->span);
    mem_free(p->piece);
    *p = (struct load_plan){0};
}

/* ---------------------------------------------------------------- reading */

struct load_job {
    const struct canonical *c;
    const struct load_plan *plan;
    const struct load_target *to;
    int *fd; /* [files], -1: nothing of it is read */
    bool *cached;
    atomic_uint_least64_t done;
    atomic_bool failed, unplaced;
    pthread_mutex_t lock;
    struct err err; /* the first, under the lock */
};

static void load_failed(struct load_job *j, const struct err *e)
{
    pthread_mutex_lock(&j->lock);
    if (!atomic_exchange(&j->failed, true)) j->err = *e;
    pthread_mutex_unlock(&j->lock);
}

static void read_piece(void *arg, int task, int thread)
{
    struct load_job *j = arg;
    const struct load_piece *p = &j->plan->piece[task];
    struct err e = {0};
    if (atomic_load(&j->failed)) return;
    if (j->to->node_id && !topology_prefer_memory(j->to->node_id[p->node])) atomic_store(&j->unplaced, true);
    if (file_load_read(canonical_file(j->c, p->file), j->fd[p->file], p->from, p->to, &e)) load_failed(j, &e);
    if (j->to->node_id) topology_prefer_memory(-1);
#ifdef POSIX_FADV_DONTNEED
    if (j->cached[p->file])
        posix_fadvise(j->fd[p->file], (off_t)p->from, (off_t)(p->to - p->from), POSIX_FADV_DONTNEED);
#endif
    const uint64_t done = atomic_fetch_add(&j->done, p->to - p->from) + (p->to - p->from);
    if (thread == 0 && j->to->progress) j->to->progress(j->to->arg, done, j->plan->bytes);
}

static int files_open(struct load_job *j, int n_files, struct err *e)
{
    for (int f = 0; f < n_files; f++) j->fd[f] = -1;
    for (int i = 0; i < j->plan->n_spans; i++) {
        const int f = j->plan->span[i].file;
        const struct file_map *m = canonical_file(j->c, f);
        if (j->fd[f] >= 0) continue;
        j->fd[f] = file_open_uncached(file_map_path(m), &j->cached[f]);
        if (j->fd[f] < 0) return err_set(e, ERR_IO, "%s: cannot open again: %s", file_map_path(m), strerror(errno));
        const int rc = file_check_same(m, j->fd[f], e);
        if (rc) return rc;
    }
    return 0;
}

static int spans_read(struct load_job *j, struct err *e)
{
    const struct load_plan *p = j->plan;
    for (int i = 0; i < p->n_spans; i++) {
        const struct load_span *s = &p->span[i];
        const int rc = file_load_begin(canonical_file(j->c, s->file), s->from, s->to, s->huge, e);
        if (rc) return rc;
    }
    if (j->to->pool)
        pool_run(j->to->pool, read_piece, j, p->n_pieces);
    else
        for (int i = 0; i < p->n_pieces; i++) read_piece(j, i, 0);
    if (atomic_load(&j->failed)) return err_set(e, j->err.code, "%s", j->err.msg);
    for (int i = 0; i < p->n_spans; i++)
        file_load_end(canonical_file(j->c, p->span[i].file), p->span[i].from, p->span[i].to);
    if (atomic_load(&j->unplaced))
        log_msg(LOG_WARN, "engine", "weights are not placed by memory nodes: the system does not permit it");
    return 0;
}

int load_plan_run(const struct canonical *c, const struct load_plan *p, const struct load_target *to, struct err *e)
{
    int n_files = 0;
    for (int i = 0; i < p->n_spans; i++)
        if (p->span[i].file >= n_files) n_files = p->span[i].file + 1;
    struct load_job j = {.c = c, .plan = p, .to = to};
    j.fd = mem_alloc((size_t)(n_files + 1) * sizeof *j.fd);
    j.cached = mem_alloc((size_t)(n_files + 1));
    pthread_mutex_init(&j.lock, NULL);
    int rc = files_open(&j, n_files, e);
    if (!rc) rc = spans_read(&j, e);
    for (int f = 0; f < n_files; f++)
        if (j.fd[f] >= 0) close(j.fd[f]);
    pthread_mutex_destroy(&j.lock);
    mem_free(j.fd);
    mem_free(j.cached);
    return rc;
}

int engine_load(struct ds4_engine *g, struct err *e)
{
    struct load_plan p;
    const int n_nodes = g->pool ? pool_nodes(g->pool) : 1;
    const struct load_target to = {.pool = g->pool,
                                   .node_id = n_nodes > 1 ? g->topology.node_id : NULL,
                                   .progress = g->loading,
                                   .arg = g->log_arg};
    int rc = load_plan_make(g->canonical, g->draft, n_nodes, &p, e);
    if (!rc) rc = load_plan_run(g->canonical, &p, &to, e);
    if (!rc)
        log_msg(LOG_INFO, "engine", "weights: %.2f GiB read into memory of %d node%s", (double)p.bytes / (1 << 30),
                n_nodes, n_nodes > 1 ? "s" : "");
    load_plan_free(&p);
    return rc;
}
