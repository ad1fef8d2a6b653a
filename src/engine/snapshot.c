/* Snapshots in memory. Layout, host byte order:
 *
 *   struct snapshot_header | tokens i32[length] | logits f32[n_vocab] if has_logits | rows | anchor part
 *
 * rows and anchor part are the family's bytes; their sizes follow from the length. A snapshot is taken back only by an
 * engine with the same fingerprint, and only whole: everything is checked first, and memory is taken before the first
 * byte of the session's state changes. */
#include "engine/engine_internal.h"
#include <inttypes.h>
#include <string.h>
#include "base/checksum.h"
#include "base/mem.h"

#define SNAPSHOT_MAGIC UINT64_C(0x3150414e53345344) /* "DS4SNAP1"; another byte order gives another number */

struct snapshot_header {
    uint64_t magic;
    uint64_t fingerprint; /* of model file, backend and options */
    uint64_t checksum;    /* of everything behind the header */
    struct session_sizes sizes;
};

static uint64_t checksum_of(const unsigned char *p, size_t n)
{
    struct checksum c = {0};
    checksum_add(&c, p, n);
    return checksum_value(&c);
}

/* ---------------------------------------------------------------- taking */

uint64_t ds4_session_bytes(const ds4_session *s)
{
    const struct session_sizes sizes = session_sizes(s);
    return session_parts(&sizes, sizeof(struct snapshot_header)).end;
}

int ds4_session_snapshot(ds4_session *s, void **data, size_t *n, struct ds4_error *e)
{
    struct err err = {0};
    const struct family *f = s->engine->family;
    *data = NULL, *n = 0;
    if (session_idle(s, &err)) return engine_error(e, &err);
    struct snapshot_header h = {
        .magic = SNAPSHOT_MAGIC, .fingerprint = s->engine->fingerprint, .sizes = session_sizes(s)};
    const struct session_parts p = session_parts(&h.sizes, sizeof h);
    unsigned char *out = mem_try(p.end);
    if (!out) {
        err_set(&err, ERR_MEMORY, "no memory for a snapshot of %" PRIu64 " bytes", p.end);
        return engine_error(e, &err);
    }
    memcpy(out + p.tokens, s->tokens, p.logits - p.tokens);
    if (s->have_logits) memcpy(out + p.logits, s->logits, p.rows - p.logits);
    f->rows_take(s->state, 0, h.sizes.rows_bytes, out + p.rows);
    f->anchor_take(s->state, out + p.anchor);
    h.checksum = checksum_of(out + p.tokens, p.end - p.tokens);
    memcpy(out, &h, sizeof h);
    *data = out, *n = p.end;
    return 0;
}

void ds4_free(void *p)
{
    mem_free(p);
}

/* ---------------------------------------------------------------- restoring */

static int header_check(const struct ds4_session *s, const struct snapshot_header *h, struct err *e)
{
    const struct ds4_engine *g = s->engine;
    if (h->magic != SNAPSHOT_MAGIC) return err_set(e, ERR_FORMAT, "this is not a snapshot of a session");
    if (h->fingerprint != g->fingerprint)
        return err_set(e, ERR_MODEL, "the snapshot was made with another model file, backend or rounding option");
    if (h->sizes.length > s->ctx)
        return err_set(e, ERR_LIMIT, "the snapshot holds %d tokens, the session has room for %d", (int)h->sizes.length,
                       s->ctx);
    if (!session_sizes_possible(g, &h->sizes)) return err_set(e, ERR_FORMAT, "the snapshot's header is damaged");
    return 0;
}

/* Checks everything; afterwards data can be used without further care. */
static int snapshot_check(const struct ds4_session *s, const unsigned char *data, size_t n, struct snapshot_header *h,
                          struct err *e)
{
    if (n < sizeof *h) return err_set(e, ERR_FORMAT, "a snapshot of %zu bytes is too short", n);
    memcpy(h, data, sizeof *h);
    const int rc = header_check(s, h, e);
    if (rc) return rc;
    const struct session_parts p = session_parts(&h->sizes, sizeof *h);
    if (p.end != n) return err_set(e, ERR_FORMAT, "the snapshot has %zu bytes, its header says %" PRIu64, n, p.end);
    if (checksum_of(data + p.tokens, n - p.tokens) != h->checksum)
        return err_set(e, ERR_FORMAT, "the snapshot is damaged: its checksum is wrong");
    for (int i = 0; i < h->sizes.length; i++) {
        int32_t id;
        memcpy(&id, data + p.tokens + (size_t)i * sizeof id, sizeof id);
        const int bad = session_check_tokens(s, &id, 1, e);
        if (bad) return bad;
    }
    return 0;
}

int ds4_session_restore(ds4_session *s, const void *data, size_t n, struct ds4_error *e)
{
    struct err err = {0};
    struct snapshot_header h;
    const struct family *f = s->engine->family;
    const unsigned char *from = data;
    int rc = session_idle(s, &err);
    if (rc == 0) rc = snapshot_check(s, data, n, &h, &err);
    const struct session_parts p = rc ? (struct session_parts){0} : session_parts(&h.sizes, sizeof h);
    if (rc == 0) rc = f->rows_restore(s->state, h.sizes.length, from + p.rows, &err);
    if (rc) return engine_error(e, &err);
    f->anchor_restore(s->state, h.sizes.length, from + p.anchor);
    session_replace(s, from + p.tokens, h.sizes.length, h.sizes.has_logits ? from + p.logits : NULL);
    return 0;
}
