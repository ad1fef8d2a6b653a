/* Rows of a slice under way at once, by io_uring. Without liburing there is no ring, and threads read. */
#include "rowtable/rowtable_internal.h"
#ifdef HAVE_LIBURING
#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include "base/mem.h"

struct row_ring {
    struct io_uring uring;
    int depth;                 /* rows that fit into the buffer */
    size_t pitch;              /* bytes of the buffer per row */
    unsigned have[SLICE_MOST]; /* bytes of a row that are there */
    int first_of[SLICE_MOST];  /* place in the slice of the row that a slot reads */
    uint8_t *buffer;           /* [depth][pitch] */
    bool broken;               /* waiting failed: requests may be under way, whose answers nobody takes */
};

enum { BUFFER_BYTES = 256 << 10 };

struct row_ring *row_ring_create(const struct row_file *f)
{
    struct row_ring *r = mem_alloc(sizeof *r);
    r->pitch = (f->row_bytes + 63) / 64 * 64;
    r->depth = (int)(BUFFER_BYTES / r->pitch);
    if (r->depth > SLICE_MOST) r->depth = SLICE_MOST;
    r->buffer = mem_try_aligned((size_t)r->depth * r->pitch, 64);
    if (r->buffer && io_uring_queue_init((unsigned)r->depth, &r->uring, 0) == 0) return r;
    mem_free(r->buffer);
    mem_free(r);
    return NULL;
}

void row_ring_free(struct row_ring *r)
{
    if (!r) return;
    io_uring_queue_exit(&r->uring);
    if (!r->broken) mem_free(r->buffer); /* else what is under way may still write to it */
    mem_free(r);
}

/* Asks for what a slot's row lacks. There is room: at most `depth` requests are under way. */
static void ask(struct row_ring *r, const struct row_file *f, const struct row_slice *s, int slot)
{
    const unsigned have = r->have[slot];
    struct io_uring_sqe *const q = io_uring_get_sqe(&r->uring);
    io_uring_prep_read(q, f->fd, r->buffer + (size_t)slot * r->pitch + have, (unsigned)f->row_bytes - have,
                       f->offset + s->id[r->first_of[slot]] * f->stride + have);
    io_uring_sqe_set_data64(q, (uint64_t)slot);
}

/* One answer. 0, 1: the slot's row is there, or a failure; *slot. A process that is stopped and goes on (Ctrl-Z, a
 * debugger) comes back from its wait with the number of requests and without an answer: signals that are blocked do not
 * prevent that. */
static int answer(struct row_ring *r, const struct row_file *f, const struct row_slice *s, int *slot, struct err *e)
{
    struct io_uring_cqe *c;
    int rc;
    do {
        rc = io_uring_submit_and_wait(&r->uring, 1);
        if (rc >= 0) rc = io_uring_peek_cqe(&r->uring, &c);
    } while (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
    if (rc < 0) {
        r->broken = true;
        return row_failed(f, s->id[r->first_of[0]], -rc, e);
    }
    *slot = (int)io_uring_cqe_get_data64(c);
    const int got = c->res;
    io_uring_cqe_seen(&r->uring, c);
    if (got > 0) r->have[*slot] += (unsigned)got;
    if (r->have[*slot] == f->row_bytes) return 1;
    if (got <= 0 && got != -EINTR && got != -EAGAIN) return row_failed(f, s->id[r->first_of[*slot]], -got, e);
    ask(r, f, s, *slot);
    return 0;
}

static void put_all(const struct row_ring *r, const struct row_file *f, const struct row_slice *s, int slot)
{
    const int first = r->first_of[slot];
    for (int i = first; i < s->n && s->id[i] == s->id[first]; i++)
        row_put(f, s, i, r->buffer + (size_t)slot * r->pitch);
}

/* Takes the answers of the `left` requests that are under way, so that nothing writes to the buffer any more. */
static int collect(struct row_ring *r, const struct row_file *f, const struct row_slice *s, int left, struct err *e)
{
    int rc = 0;
    while (left > 0 && !r->broken) {
        int slot = 0;
        const int got = answer(r, f, s, &slot, e);
        if (got > 0 && rc == 0) put_all(r, f, s, slot);
        if (got < 0) rc = got;
        left -= got != 0;
    }
    return rc;
}

int rows_ring(struct row_ring *r, const struct row_file *f, const struct row_slice *s, struct err *e)
{
    int rc = 0;
    if (r->broken) return rows_pread(f, s, e);
    for (int i = 0; i < s->n && rc == 0;) {
        int n = 0;
        for (; i < s->n && n < r->depth; i++) {
            if (n > 0 && s->id[i] == s->id[i - 1]) continue;
            r->first_of[n] = i;
            r->have[n] = 0;
            ask(r, f, s, n++);
        }
        while (i < s->n && s->id[i] == s->id[i - 1]) i++; /* put together with the last row */
        rc = collect(r, f, s, n, e);
    }
    return rc;
}
#else
struct row_ring *row_ring_create(const struct row_file *f)
{
    return NULL;
}

void row_ring_free(struct row_ring *r)
{
}

int rows_ring(struct row_ring *r, const struct row_file *f, const struct row_slice *s, struct err *e)
{
    return rows_pread(f, s, e);
}
#endif
