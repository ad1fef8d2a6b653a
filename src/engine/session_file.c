/* Sessions on file. Layout, little endian:
 *
 *   struct file_header | tokens i32[length] | logits f32[n_vocab] if has_logits | rows | anchor part | checksum u64
 *
 * rows and anchor part are the family's bytes as in a snapshot; the last eight bytes are the checksum of everything
 * before them. The header has one of its own, so that another model is told from a damaged file without reading all of
 * it. The file is written piece by piece, and read through a mapping into a new state that takes the place of the
 * session's when all has gone well. */
#include "engine/engine_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/checksum.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "session files are memory as it lies, and little endian"
#endif

static const char MAGIC[8] = "DS4 SESS";
enum { VERSION = 1, PIECE_BYTES = 1 << 20 /* larger than any row */ };

struct file_header {
    char magic[8];
    uint32_t version; /* magic and version stay where they are in all versions */
    int32_t length, n_vocab, has_logits;
    uint64_t bytes;    /* of the file */
    uint64_t identity; /* of the model */
    uint64_t rows_bytes, anchor_bytes;
    char backend[16], isa[16]; /* zero padded; all kernel sets of a backend give the same bits, so isa is for readers */
    int32_t ctx;               /* of the session that was saved, for readers */
    int32_t kv_sim;            /* 1: stored rows are rounded */
    int32_t draft;             /* 1: rows of a draft block are there too */
    uint32_t reserved;         /* 0 */
    uint64_t checksum;         /* of the header before it */
};
_Static_assert(sizeof(struct file_header) == 112, "no padding, and whatever follows is aligned");

static struct session_sizes sizes_of(const struct file_header *h)
{
    return (struct session_sizes){.length = h->length,
                                  .n_vocab = h->n_vocab,
                                  .has_logits = h->has_logits,
                                  .rows_bytes = h->rows_bytes,
                                  .anchor_bytes = h->anchor_bytes};
}

static struct session_parts parts_of(const struct file_header *h)
{
    const struct session_sizes z = sizes_of(h);
    return session_parts(&z, sizeof *h);
}

static uint64_t header_checksum(const struct file_header *h)
{
    struct checksum c = {0};
    checksum_add(&c, h, offsetof(struct file_header, checksum));
    return checksum_value(&c);
}

/* ---------------------------------------------------------------- saving */

static struct file_header header_of(const struct ds4_session *s)
{
    const struct ds4_engine *g = s->engine;
    const struct session_sizes z = session_sizes(s);
    struct file_header h = {.version = VERSION,
                            .length = z.length,
                            .n_vocab = z.n_vocab,
                            .has_logits = z.has_logits,
                            .identity = g->identity,
                            .rows_bytes = z.rows_bytes,
                            .anchor_bytes = z.anchor_bytes,
                            .ctx = s->ctx,
                            .kv_sim = !g->kv_sim_off,
                            .draft = engine_has_draft(g)};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    snprintf(h.backend, sizeof h.backend, "%s", g->backend);
    snprintf(h.isa, sizeof h.isa, "%s", g->isa);
    h.bytes = parts_of(&h).end + sizeof(uint64_t);
    h.checksum = header_checksum(&h);
    return h;
}

/* A file that is being written, and the checksum so far. */
struct sink {
    struct file_writer *w;
    struct checksum sum;
};

static int put(struct sink *k, const void *data, size_t n, struct err *e)
{
    checksum_add(&k->sum, data, n);
    return file_writer_put(k->w, data, n, e);
}

/* Rows and anchor part by way of buf (cap bytes, room for the anchor part). */
static int put_state(struct sink *k, const struct ds4_session *s, const struct file_header *h, void *buf, size_t cap,
                     struct err *e)
{
    const struct family *f = s->engine->family;
    size_t at = 0;
    int rc = 0;
    while (!rc && at < h->rows_bytes) {
        const size_t n = f->rows_take(s->state, at, cap, buf);
        at += n;
        rc = n ? put(k, buf, n, e) : err_set(e, ERR_MEMORY, "a stored row is longer than %zu bytes", cap);
    }
    if (rc) return rc;
    f->anchor_take(s->state, buf);
    return put(k, buf, h->anchor_bytes, e);
}

static int put_session(struct sink *k, const struct ds4_session *s, void *buf, size_t cap, struct err *e)
{
    const struct file_header h = header_of(s);
    int rc = put(k, &h, sizeof h, e);
    if (!rc) rc = put(k, s->tokens, (size_t)s->length * sizeof *s->tokens, e);
    if (!rc && s->have_logits) rc = put(k, s->logits, (size_t)h.n_vocab * sizeof *s->logits, e);
    if (!rc) rc = put_state(k, s, &h, buf, cap, e);
    const uint64_t sum = checksum_value(&k->sum);
    return rc ? rc : file_writer_put(k->w, &sum, sizeof sum, e);
}

int ds4_session_save(ds4_session *s, const char *path, struct ds4_error *e)
{
    struct err err = {0};
    struct sink k = {0};
    int rc = session_idle(s, &err);
    if (rc) return engine_error(e, &err);
    size_t cap = s->engine->family->anchor_bytes(s->state);
    if (cap < PIECE_BYTES) cap = PIECE_BYTES;
    void *buf = mem_try(cap);
    if (!buf) rc = err_set(&err, ERR_MEMORY, "%s: no memory to save a session: %zu bytes", path, cap);
    if (!rc) rc = file_writer_open(path, &k.w, &err);
    if (!rc) rc = put_session(&k, s, buf, cap, &err);
    if (rc)
        file_writer_abort(k.w);
    else
        rc = file_writer_commit(k.w, &err);
    mem_free(buf);
    return rc ? engine_error(e, &err) : 0;
}

/* ---------------------------------------------------------------- loading */

/* A file, and what its header says. */
struct source {
    struct file_map *map;
    const char *path;
    const uint8_t *data;
    uint64_t n;
    struct file_header h;
    struct session_parts at;
};

/* The header itself is whole. */
static int header_read(struct source *f, struct err *e)
{
    struct file_header *h = &f->h;
    memcpy(h, f->data, f->n < sizeof *h ? (size_t)f->n : sizeof *h);
    if (f->n < offsetof(struct file_header, length) || memcmp(h->magic, MAGIC, sizeof h->magic))
        return err_set(e, ERR_FORMAT, "%s: not a session file of ds4", f->path);
    if (h->version != VERSION)
        return err_set(e, ERR_FORMAT, "%s: a session file of version %" PRIu32 "; this ds4 reads version %d", f->path,
                       h->version, VERSION);
    if (f->n < sizeof *h)
        return err_set(e, ERR_FORMAT, "%s: cut off: %" PRIu64 " bytes are less than a header", f->path, f->n);
    if (h->checksum != header_checksum(h))
        return err_set(e, ERR_FORMAT, "%s: damaged: the checksum of its header is wrong", f->path);
    if (f->n != h->bytes)
        return err_set(e, ERR_FORMAT, "%s: %s: it has %" PRIu64 " bytes of %" PRIu64, f->path,
                       f->n < h->bytes ? "cut off" : "damaged", f->n, h->bytes);
    return 0;
}

/* It fits this session. */
static int header_fits(const struct source *f, const struct ds4_session *s, struct err *e)
{
    const struct ds4_engine *g = s->engine;
    const struct file_header *h = &f->h;
    const struct session_sizes z = sizes_of(h);
    if (h->draft != engine_has_draft(g))
        return err_set(e, ERR_MODEL, "%s: the session was made with%s --draft, this is with%s it", f->path,
                       h->draft ? "" : "out", h->draft ? "out" : "");
    if (h->identity != g->identity)
        return err_set(e, ERR_MODEL, "%s: the session was made with another model file", f->path);
    if (strncmp(h->backend, g->backend, sizeof h->backend))
        return err_set(e, ERR_MODEL, "%s: the session was made with the backend \"%.16s\", this is \"%s\"", f->path,
                       h->backend, g->backend);
    if (h->kv_sim != !g->kv_sim_off)
        return err_set(e, ERR_MODEL, "%s: the session was made with --kv-sim %s, this is %s", f->path,
                       h->kv_sim ? "on" : "off", g->kv_sim_off ? "off" : "on");
    if (h->length > s->ctx)
        return err_set(e, ERR_LIMIT, "%s: the session has %d tokens, the context room for %d; give a larger --ctx",
                       f->path, (int)h->length, s->ctx);
    if (!session_sizes_possible(g, &z) || h->reserved || h->bytes != parts_of(h).end + sizeof(uint64_t))
        return err_set(e, ERR_FORMAT, "%s: the sizes in its header are not those of %d tokens", f->path,
                       (int)h->length);
    return 0;
}

/* What stands behind the header is whole too, and its tokens are of the vocabulary. */
static int contents_check(const struct source *f, const struct ds4_session *s, struct err *e)
{
    struct checksum c = {0};
    struct err why = {0};
    uint64_t stored, lost;
    checksum_add(&c, f->data, f->at.end);
    memcpy(&stored, f->data + f->at.end, sizeof stored);
    if (file_map_lost(f->map, &lost))
        return err_set(e, ERR_IO, "%s: cannot be read from byte %" PRIu64 " on", f->path, lost);
    if (stored != checksum_value(&c))
        return err_set(e, ERR_FORMAT, "%s: damaged: the checksum of its contents is wrong", f->path);
    if (session_check_tokens(s, (const int32_t *)(const void *)(f->data + f->at.tokens), f->h.length, &why))
        return err_set(e, ERR_FORMAT, "%s: damaged: %s", f->path, why.msg);
    return 0;
}

/* A state of the file's rows and anchor part. */
static int state_read(const struct source *f, const struct ds4_session *s, void **state, struct err *e)
{
    const struct ds4_engine *g = s->engine;
    int rc = g->family->state_create(g->model, s->ctx, state, e);
    if (!rc) rc = g->family->rows_restore(*state, f->h.length, f->data + f->at.rows, e);
    if (rc) return rc;
    g->family->anchor_restore(*state, f->h.length, f->data + f->at.anchor);
    return 0;
}

static int load(struct ds4_session *s, struct source *f, struct err *e)
{
    const struct family *family = s->engine->family;
    void *state = NULL;
    uint64_t lost;
    int rc = header_read(f, e);
    if (!rc) rc = header_fits(f, s, e);
    if (rc) return rc;
    f->at = parts_of(&f->h);
    rc = contents_check(f, s, e);
    if (!rc) rc = state_read(f, s, &state, e);
    if (!rc && file_map_lost(f->map, &lost))
        rc = err_set(e, ERR_IO, "%s: cannot be read from byte %" PRIu64 " on", f->path, lost);
    if (rc) {
        family->state_free(state);
        return rc;
    }
    family->state_free(s->state);
    s->state = state;
    session_replace(s, f->data + f->at.tokens, f->h.length, f->h.has_logits ? f->data + f->at.logits : NULL);
    log_msg(LOG_INFO, "session", "%s: %d tokens, made by %.16s %.16s with a context of %d", f->path, (int)f->h.length,
            f->h.backend, f->h.isa, (int)f->h.ctx);
    return 0;
}

int ds4_session_load(ds4_session *s, const char *path, struct ds4_error *e)
{
    struct err err = {0};
    struct source f = {.path = path};
    int rc = session_idle(s, &err);
    if (!rc) rc = file_map_open(path, &f.map, &err);
    if (rc) return engine_error(e, &err);
    f.data = file_map_data(f.map);
    f.n = file_map_size(f.map);
    rc = load(s, &f, &err);
    file_map_close(f.map);
    return rc ? engine_error(e, &err) : 0;
}
