/* Rows one by one with positioned reads. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "rowtable/rowtable_internal.h"

void row_put(const struct row_file *f, const struct row_slice *s, int i, const void *bytes)
{
    f->decode(bytes, s->out + (int64_t)s->place[i] * f->width, f->width);
}

int row_failed(const struct row_file *f, uint32_t id, int code, struct err *e)
{
    return err_set(e, ERR_IO, "%s: %s: cannot read row %" PRIu32 ", %zu bytes at offset %" PRIu64 ": %s", f->path,
                   f->name, id, f->row_bytes, f->offset + id * f->stride,
                   code ? strerror(code) : "the file is shorter than when it was opened");
}

static int read_row(const struct row_file *f, uint32_t id, uint8_t *bytes, struct err *e)
{
    size_t have = 0;
    while (have < f->row_bytes) {
        const ssize_t got = pread(f->fd, bytes + have, f->row_bytes - have, (off_t)(f->offset + id * f->stride + have));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return row_failed(f, id, got < 0 ? errno : 0, e);
        have += (size_t)got;
    }
    return 0;
}

int rows_pread(const struct row_file *f, const struct row_slice *s, struct err *e)
{
    _Alignas(64) uint8_t bytes[ROW_MOST];
    int rc = 0;
    for (int i = 0; i < s->n && rc == 0; i++) {
        if (i == 0 || s->id[i] != s->id[i - 1]) rc = read_row(f, s->id[i], bytes, e);
        if (rc == 0) row_put(f, s, i, bytes);
    }
    return rc;
}
