/* Files are read and not touched through their mappings: threads take pieces of some megabytes in the order of the
 * file, which is what a disk is best at, and a page that cannot be read is an error with a place. The mapping has the
 * system fetch a piece before, in huge pages: 13.4 GB that were in no cache took 6.1, 8.6 and 10.8 s so, in turn with
 * 10.2, 7.5 and 32.8 by its own reading ahead of 128 KiB (2 cores of an AMD EPYC, Zen 5, virtual disk, other work
 * beside). Threads wait for the disk most of the time, so there are three for a core: 13.5 GB that were in no cache,
 * two cores of an Intel Xeon (Granite Rapids, virtual disk), in turn: 8.9 and 9.2 s with one for a core, 8.4 and 8.2
 * with two, 8.0 and 8.0 with three. One file is open at a time. */
#include "gguf/gguf_scan.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"
#include "quant/quant.h"
#include "quant/quant_sound.h"

/* A thread's buffer stays in its cache; a batch ends with a word about progress. */
enum { PIECE_BYTES = 4 << 20, READ_BYTES = 256 << 10, BATCH = 32, READERS = 3 /* for a core */ };
/* Zeros are looked for in steps. A piece has room for three long runs besides those at its ends. */
enum { STEP = 4 << 10, LONG_RUN = 1 << 20, MOST_RUNS = 5 };

/* Zero bytes of a file, through one tensor or several. */
struct zero_run {
    uint64_t at, end;
    const struct gguf_tensor *first, *last;
    bool whole; /* all of a tensor that cannot be zero lies in it */
};

struct piece {
    const struct gguf_tensor *t;
    int64_t block, n;  /* blocks of the tensor */
    int64_t unsound;   /* the first, or -1 */
    uint64_t error_at; /* where reading failed, with error */
    int error;         /* errno; -1: the file ended */
    int n_runs;        /* of zeros: those that are long, or begin or end with the piece */
    struct zero_run run[MOST_RUNS];
};

struct scan {
    const struct gguf *g;
    int fd;
    uint8_t **buffer; /* [threads] */
    struct piece piece[BATCH];
    int n;
    struct zero_run run; /* the last one, which may go on */
};

static bool is_scanned(const struct gguf_tensor *t)
{
    return t->bytes > 0 && quant_can_be_unsound(t->type);
}

/* 0, or errno; -1: the file ends before. *at moves on. */
static int read_all(int fd, uint8_t *to, uint64_t n, uint64_t *at)
{
    while (n > 0) {
        const ssize_t got = pread(fd, to, (size_t)n, (off_t)*at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 ? errno : -1;
        to += got, n -= (uint64_t)got, *at += (uint64_t)got;
    }
    return 0;
}

/* ---- zeros */

static bool is_zero(const uint8_t *p, uint64_t n)
{
    return p[0] == 0 && memcmp(p, p + 1, (size_t)n - 1) == 0;
}

static uint64_t piece_begin(const struct piece *p)
{
    return p->t->offset + (uint64_t)p->block * quant_type(p->t->type)->block_bytes;
}

static uint64_t piece_end(const struct piece *p)
{
    return piece_begin(p) + (uint64_t)p->n * quant_type(p->t->type)->block_bytes;
}

/* A run that has ended is dropped if it is short and not at the piece's begin. */
static void end_run(struct piece *p)
{
    if (p->n_runs == 0) return;
    const struct zero_run *r = &p->run[p->n_runs - 1];
    if (r->end - r->at < LONG_RUN && r->at != piece_begin(p)) p->n_runs--;
}

/* n bytes of the file from `at` on, which follow on those before. */
static void find_zeros(struct piece *p, const uint8_t *data, uint64_t at, uint64_t n)
{
    for (uint64_t i = 0; i < n; i += STEP) {
        const uint64_t part = n - i < STEP ? n - i : STEP;
        struct zero_run *r = p->n_runs ? &p->run[p->n_runs - 1] : NULL;
        if (!is_zero(data + i, part)) continue;
        if (r && r->end == at + i) {
            r->end += part;
            continue;
        }
        end_run(p);
        if (p->n_runs == MOST_RUNS) continue;
        p->run[p->n_runs++] = (struct zero_run){at + i, at + i + part, p->t, p->t, false};
    }
}

static bool begins(const struct gguf_str *name, const char *text)
{
    return name->n >= strlen(text) && memcmp(name->p, text, strlen(text)) == 0;
}

static bool cannot_be_zero(const struct gguf_tensor *t)
{
    static const char norm[] = "norm.weight";
    const size_t n = strlen(norm);
    return quant_type(t->type)->block > 1 || (t->name.n >= n && memcmp(t->name.p + t->name.n - n, norm, n) == 0);
}

static bool is_near(uint64_t a, uint64_t b)
{
    return a - b < STEP || b - a < STEP;
}

/* Whole matrices of several, or the last rows of a vocabulary. */
static bool is_meant(const struct zero_run *r)
{
    const struct gguf_tensor *t = r->first;
    const uint64_t end = t->offset + t->bytes;
    if (t != r->last || r->whole) return false;
    if (t->ne[2] > 1) {
        const uint64_t matrix = t->bytes / t->ne[2], from = (r->at - t->offset + matrix / 2) / matrix,
                       to = (r->end - t->offset + matrix / 2) / matrix;
        return to > from && to - from < t->ne[2] && is_near(r->at, t->offset + from * matrix) &&
               is_near(r->end, t->offset + to * matrix);
    }
    const bool vocabulary = begins(&t->name, "token_embd.") || begins(&t->name, "output.");
    return vocabulary && is_near(r->end, end) && r->end - r->at < t->bytes / 64;
}

/* Counts the run that has ended. */
static void count_run(struct scan *s, int file, struct gguf_zeros *out)
{
    const struct zero_run *r = &s->run;
    if (r->first && (r->whole || r->end - r->at >= LONG_RUN) && !is_meant(r)) {
        if (out->places++ == 0) out->file = file, out->at = r->at, out->tensor = r->first;
        out->bytes += r->end - r->at;
    }
    s->run = (struct zero_run){0};
}

/* The padding between two tensors is zero too. */
static void add_runs(struct scan *s, int file, const struct piece *p, struct gguf_zeros *out)
{
    for (int i = 0; i < p->n_runs; i++) {
        const struct zero_run *r = &p->run[i];
        const bool follows = s->run.first && r->at == piece_begin(p) &&
                             r->at - s->run.end < (s->run.last == p->t ? 1 : STEP) &&
                             (s->run.last == p->t || s->run.end == s->run.last->offset + s->run.last->bytes);
        if (!follows) count_run(s, file, out);
        if (!follows) s->run = *r;
        s->run.end = r->end, s->run.last = p->t;
    }
    const uint64_t end = p->t->offset + p->t->bytes;
    if (piece_end(p) == end && s->run.first && s->run.at <= p->t->offset && s->run.end == end && cannot_be_zero(p->t))
        s->run.whole = true;
}

/* ---- pieces */

static void scan_piece(void *arg, int task, int thread)
{
    struct scan *s = arg;
    struct piece *p = &s->piece[task];
    const size_t bytes = quant_type(p->t->type)->block_bytes;
    const int64_t most = READ_BYTES / (int64_t)bytes;
    uint64_t at = p->t->offset + (uint64_t)p->block * bytes;
    p->unsound = -1;
    file_huge_read(gguf_map(s->g), at, at + (uint64_t)p->n * bytes);
    for (int64_t i = 0; i < p->n && p->unsound < 0 && !p->error; i += most) {
        const int64_t n = p->n - i < most ? p->n - i : most;
        p->error = read_all(s->fd, s->buffer[thread], (uint64_t)n * bytes, &at);
        p->error_at = at;
        if (!p->error) find_zeros(p, s->buffer[thread], at - (uint64_t)n * bytes, (uint64_t)n * bytes);
        const int64_t bad = p->error ? -1 : quant_first_unsound(p->t->type, s->buffer[thread], n);
        if (bad >= 0) p->unsound = p->block + i + bad;
    }
    if (p->n_runs && p->run[p->n_runs - 1].end != at) end_run(p);
}

/* The first flaw of a tensor counts. */
static int note_flaw(struct gguf_scan *out, int file, const struct piece *p, struct err *e)
{
    if (p->unsound < 0 || (out->n_flaws && out->flaws[out->n_flaws - 1].tensor == p->t)) return 0;
    if ((out->n_flaws & (out->n_flaws - 1)) == 0) { /* full: lengths are powers of two */
        struct gguf_flaw *wider = mem_try((size_t)(out->n_flaws ? 2 * out->n_flaws : 1) * sizeof *wider);
        if (!wider) return err_set(e, ERR_MEMORY, "no memory for a list of damaged tensors");
        if (out->n_flaws) memcpy(wider, out->flaws, (size_t)out->n_flaws * sizeof *wider);
        mem_free(out->flaws);
        out->flaws = wider;
    }
    const int64_t blocks_of_row = (int64_t)p->t->ne[0] / quant_type(p->t->type)->block;
    out->flaws[out->n_flaws++] = (struct gguf_flaw){file, p->t, p->unsound / blocks_of_row};
    return 0;
}

static int refuse_read(const struct scan *s, const struct piece *p, struct err *e)
{
    return err_set(e, ERR_IO, "%s: cannot read byte %" PRIu64 ": %s", gguf_path(s->g), p->error_at,
                   p->error < 0 ? "the file ends before" : strerror(p->error));
}

struct teller {
    void (*progress)(void *arg, const struct gguf_tensor *t, uint64_t n);
    void *arg;
};

static int run_batch(struct scan *s, struct pool *pool, int file, const struct teller *tell, struct gguf_scan *out,
                     struct err *e)
{
    int rc = 0;
    uint64_t bytes = 0;
    if (!s->n) return 0;
    pool_run(pool, scan_piece, s, s->n);
    for (int i = 0; i < s->n && rc == 0; i++) {
        const struct piece *p = &s->piece[i];
        if (p->error) return refuse_read(s, p, e);
        bytes += (uint64_t)p->n * quant_type(p->t->type)->block_bytes;
        add_runs(s, file, p, &out->zeros);
        rc = note_flaw(out, file, p, e);
    }
    out->bytes += bytes;
    if (tell->progress) tell->progress(tell->arg, s->piece[s->n - 1].t, bytes);
    s->n = 0;
    return rc;
}

static int scan_tensor(struct scan *s, const struct gguf_tensor *t, struct pool *pool, int file,
                       const struct teller *tell, struct gguf_scan *out, struct err *e)
{
    const int64_t bytes = quant_type(t->type)->block_bytes, all = (int64_t)t->bytes / bytes;
    const int64_t most = PIECE_BYTES / bytes;
    int rc = 0;
    for (int64_t i = 0; i < all && rc == 0; i += most) {
        s->piece[s->n++] = (struct piece){.t = t, .block = i, .n = all - i < most ? all - i : most};
        if (s->n == BATCH) rc = run_batch(s, pool, file, tell, out, e);
    }
    return rc;
}

/* ---- tensors in the order of their bytes */

static int by_offset(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a, *y = *(const struct gguf_tensor *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int scan_file(struct scan *s, struct pool *pool, int file, const struct teller *tell, struct gguf_scan *out,
                     struct err *e)
{
    const uint64_t n = gguf_n_tensors(s->g);
    const struct gguf_tensor **order = mem_try((size_t)(n + 1) * sizeof *order);
    if (!order) return err_set(e, ERR_MEMORY, "no memory for a list of tensors");
    int rc = 0;
    for (uint64_t i = 0; i < n; i++) order[i] = gguf_tensor_at(s->g, i);
    qsort(order, (size_t)n, sizeof *order, by_offset);
    s->fd = open(gguf_path(s->g), O_RDONLY | O_CLOEXEC);
    if (s->fd < 0) rc = err_set(e, ERR_IO, "%s: cannot open: %s", gguf_path(s->g), strerror(errno));
    if (rc == 0) posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    file_huge_ask(gguf_map(s->g), 0, file_map_size(gguf_map(s->g)));
    for (uint64_t i = 0; i < n && rc == 0; i++)
        if (is_scanned(order[i])) rc = scan_tensor(s, order[i], pool, file, tell, out, e);
    if (rc == 0) rc = run_batch(s, pool, file, tell, out, e);
    count_run(s, file, &out->zeros);
    if (s->fd >= 0) close(s->fd);
    mem_free(order);
    return rc;
}

uint64_t gguf_scan_bytes(const struct gguf_set *s)
{
    uint64_t bytes = 0;
    for (int f = 0; f < gguf_set_n_files(s); f++)
        for (uint64_t i = 0; i < gguf_n_tensors(gguf_set_file(s, f)); i++) {
            const struct gguf_tensor *t = gguf_tensor_at(gguf_set_file(s, f), i);
            if (is_scanned(t)) bytes += t->bytes;
        }
    return bytes;
}

int gguf_scan_threads(int cores)
{
    return cores < BATCH / READERS ? READERS * cores : BATCH;
}

int gguf_set_scan(const struct gguf_set *set, struct pool *pool,
                  void (*progress)(void *arg, const struct gguf_tensor *t, uint64_t n), void *arg,
                  struct gguf_scan *out, struct err *e)
{
    const struct teller tell = {progress, arg};
    const int threads = pool_threads(pool);
    struct scan s = {.buffer = mem_alloc((size_t)threads * sizeof *s.buffer)};
    int rc = 0;
    *out = (struct gguf_scan){0};
    for (int i = 0; i < threads && rc == 0; i++)
        if (!(s.buffer[i] = mem_try_aligned(READ_BYTES, 4096)))
            rc = err_set(e, ERR_MEMORY, "no memory to read files with");
    for (int f = 0; f < gguf_set_n_files(set) && rc == 0; f++) {
        s.g = gguf_set_file(set, f);
        rc = scan_file(&s, pool, f, &tell, out, e);
    }
    for (int i = 0; i < threads; i++) mem_free(s.buffer[i]);
    mem_free(s.buffer);
    return rc;
}

void gguf_scan_free(struct gguf_scan *s)
{
    mem_free(s->flaws);
    *s = (struct gguf_scan){0};
}
