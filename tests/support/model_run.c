/* What the engine does for one session, without the engine. */
#include "model_run.h"
#include "base/mem.h"
#include "shadow_device.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void check(int rc, const struct err *e)
{
    if (rc) fail_msg("%s", e->msg);
}

static void check_stream(struct model_run *r)
{
    struct err e = {0};
    check(dev_error(r->stream, &e), &e);
}

static struct dev_buf *buffer(struct model_run *r, struct buf_desc d)
{
    struct dev_buf *b = r->dev->op->buf_create(r->dev, &d);
    if (!b) fail_msg("no buffer");
    return b;
}

void model_run_open(struct model_run *r, const char *path, const struct model_run_options *o)
{
    struct err e = {0};
    memset(r, 0, sizeof *r);
    r->rows_max = o->rows_max ? o->rows_max : 64;
    r->draft_max = 16;
    check(canonical_open(&path, 1, &(struct canonical_options){.kv_sim_off = o->kv_sim_off}, &r->canonical, &e), &e);
    check(pool_create(o->threads ? o->threads : 1, &r->pool, &e), &e);
    check(strcmp(o->backend, "shadow") ? dev_create(o->backend, r->pool, &r->dev, &e)
                                       : dev_shadow_create(r->pool, &r->dev, &e),
          &e);
    r->family = family_of(canonical_family(r->canonical));
    const struct plan plan = {.dev = r->dev};
    check(r->family->bind(
              r->canonical, &plan,
              &(struct bind_options){.kv_sim_off = o->kv_sim_off, .draft_max = r->draft_max, .draft = o->draft},
              &r->model, &e),
          &e);
    check(r->family->scratch_create(r->model, r->rows_max, 1, &r->scratch, &e), &e);
    check(r->family->state_create(r->model, o->ctx ? o->ctx : 4096, &r->state, &e), &e);
    r->stream = r->dev->op->stream_create(r->dev);
    r->n_vocab = r->family->n_vocab(r->model);
    struct buf_desc part[CARRY_PARTS];
    r->n_carry = r->family->carry(r->model, r->rows_max, part);
    for (int i = 0; i < r->n_carry; i++) r->carry[i] = buffer(r, part[i]);
    r->logits = buffer(r, (struct buf_desc){.kind = BUF_FLOAT, .rows = r->rows_max, .groups = 1, .width = r->n_vocab});
    int32_t **const arrays[] = {&r->token, &r->seg, &r->pos, &r->first, &r->last};
    for (int i = 0; i < 5; i++) *arrays[i] = mem_alloc((size_t)r->rows_max * sizeof(int32_t));
    r->rope_pos = mem_alloc((size_t)r->rows_max * 3 * sizeof(int32_t));
}

void model_run_close(struct model_run *r)
{
    int32_t *const arrays[] = {r->token, r->seg, r->pos, r->first, r->last, r->rope_pos};
    for (int i = 0; i < 6; i++) mem_free(arrays[i]);
    r->dev->op->buf_free(r->logits);
    for (int i = 0; i < r->n_carry; i++) r->dev->op->buf_free(r->carry[i]);
    r->dev->op->stream_free(r->stream);
    r->family->state_free(r->state);
    r->family->scratch_free(r->scratch);
    r->family->unbind(r->model);
    r->dev->op->free(r->dev);
    pool_free(r->pool);
    canonical_close(r->canonical);
}

void model_run_begin(struct model_run *r, const int32_t *ids, int n)
{
    struct err e = {0};
    const int pos0 = r->family->state_length(r->state);
    r->segment = (struct segment){.row0 = 0, .n = n, .pos0 = pos0, .bulk = n > r->draft_max};
    for (int i = 0; i < n; i++) {
        r->token[i] = ids[i];
        r->pos[i] = pos0 + i;
        for (int k = 0; k < 3; k++) r->rope_pos[3 * i + k] = r->rope ? r->rope[3 * (pos0 + i) + k] : pos0 + i;
    }
    r->step = (struct step){.stream = r->stream,
                            .rows = {.n = n,
                                     .token = r->token,
                                     .segment = r->seg,
                                     .pos = r->pos,
                                     .rope_pos = r->rope_pos,
                                     .raw_first = r->first,
                                     .raw_last = r->last,
                                     .n_segments = 1,
                                     .segments = &r->segment},
                            .state = &r->state,
                            .carry = r->carry,
                            .scratch = r->scratch};
    check(r->family->prepare(r->model, &r->step, &e), &e);
    r->family->embed(r->model, &r->step);
    check_stream(r);
}

void model_run_layer(struct model_run *r, int l)
{
    r->family->layer(r->model, &r->step, l);
    check_stream(r);
}

void model_run_head(struct model_run *r, double *logits)
{
    const int n = r->step.rows.n;
    int row[4096];
    for (int i = 0; i < n; i++) row[i] = i;
    r->family->head(r->model, &r->step, row, n, r->logits);
    r->dev->op->read_f64(r->stream, r->logits, 0, n, logits);
    check_stream(r);
}

void model_run_commit(struct model_run *r, int n)
{
    struct err e = {0};
    check(r->family->commit(r->model, &r->step, 0, n, &e), &e);
}

void model_run_all(struct model_run *r, const int32_t *ids, int n, int chunk, double *logits)
{
    for (int at = 0; at < n;) {
        const int k = n - at < chunk ? n - at : chunk;
        model_run_begin(r, ids + at, k);
        for (int l = 0; l < r->family->n_layers(r->model); l++) model_run_layer(r, l);
        if (logits) model_run_head(r, logits + (size_t)at * (size_t)r->n_vocab);
        model_run_commit(r, k);
        at += k;
    }
}
