/* The memory plan: what model, buffers and sessions need, against what there is. Checked before anything large is
 * allocated, and for every session again, so that memory is refused with advice and not found missing later. */
#include "engine_internal.h"
#include <inttypes.h>

struct engine_shape engine_shape(int sessions, int prefill_chunk)
{
    struct engine_shape s = {.decode_segments = sessions < DECODE_ROWS ? sessions : DECODE_ROWS};
    s.decode_rows = s.decode_segments * DRAFT_MAX < DECODE_ROWS ? s.decode_segments * DRAFT_MAX : DECODE_ROWS;
    s.rows = prefill_chunk > s.decode_rows ? prefill_chunk : s.decode_rows;
    s.segments = s.decode_segments;
    s.logits_rows = s.decode_segments > DRAFT_MAX ? s.decode_segments : DRAFT_MAX;
    return s;
}

uint64_t engine_session_bytes(const struct ds4_engine *g, int ctx)
{
    const uint64_t logits = (uint64_t)g->n_vocab * sizeof(float) * (1 + DRAFT_MAX);
    return sizeof(struct ds4_session) + (uint64_t)ctx * sizeof(int32_t) + logits + batch_bytes(DRAFT_MAX, 1) +
           g->family->state_bytes(g->model, ctx);
}

/* Goes through the layers of steps of up to ctx tokens: of a prefill chunk, and of a decode step of long sessions. */
struct work_walk {
    int l;
    bool decode;
    struct moe_args moe;
    struct work_desc d;
};

static bool work_next(const struct ds4_engine *g, int ctx, struct work_walk *w)
{
    const struct engine_shape s = engine_shape(g->plan.sessions, g->prefill_chunk);
    const int chunk = g->prefill_chunk < ctx ? g->prefill_chunk : ctx;
    if (!w->decode && g->family->work(g->model, w->l++, chunk, 1, ctx, &w->moe, &w->d)) return true;
    if (!w->decode) w->l = 0;
    w->decode = true;
    return g->family->work(g->model, w->l++, s.decode_rows, s.decode_segments, ctx, &w->moe, &w->d);
}

/* Working space of the device. */
static uint64_t work_bytes(const struct ds4_engine *g, int ctx)
{
    struct work_space most = {0};
    for (struct work_walk w = {0}; work_next(g, ctx, &w);) g->dev->op->work(g->dev, &w.d, &most);
    return most.shared + (uint64_t)most.threads * most.thread;
}

void ds4_engine_warm(ds4_engine *g)
{
    if (!g->dev->op->warm) return;
    for (struct work_walk w = {0}; work_next(g, g->plan.ctx, &w);) g->dev->op->warm(g->stream, &w.d);
    g->dev->op->warm(g->stream, NULL);
}

bool ds4_engine_settle(ds4_engine *g, int seconds)
{
    return huge_wait(g->huge, seconds);
}

static uint64_t buffer_bytes(const struct ds4_engine *g, int sessions)
{
    const struct engine_shape s = engine_shape(sessions, g->prefill_chunk);
    const struct buf_desc logits = {.kind = BUF_FLOAT, .rows = s.logits_rows, .groups = 1, .width = g->n_vocab};
    const struct dev_ops *op = g->dev->op;
    return g->family->scratch_bytes(g->model, s.rows, s.segments) + carry_bytes(g, s.decode_rows) +
           carry_bytes(g, g->prefill_chunk) + op->buf_bytes(g->dev, &logits) +
           batch_bytes(s.decode_rows, s.decode_segments) + batch_bytes(g->prefill_chunk, 1);
}

static void weight_bytes(const struct ds4_engine *g, struct ds4_memory_plan *p)
{
    p->weights = p->weights_own = 0;
    for (int i = 0; g->canonical && i < canonical_n_tensors(g->canonical); i++) {
        const struct tensor_view *v;
        canonical_tensor_at(g->canonical, i, &v);
        if (canonical_on_disk(g->canonical, i) || (!g->draft && canonical_of_draft(g->canonical, i))) continue;
        *(v->file < 0 ? &p->weights_own : &p->weights) += tensor_view_bytes(v);
        if (v->ne[2] == 1) p->weights_own += g->dev->op->mat_bytes(g->dev, v);
    }
}

int engine_quant_bits(const struct ds4_engine *g)
{
    double bits = 0, values = 0;
    for (int i = 0; g->canonical && i < canonical_n_tensors(g->canonical); i++) {
        const struct tensor_view *v;
        canonical_tensor_at(g->canonical, i, &v);
        if (v->ne[2] == 1) continue;
        bits += 8 * (double)tensor_view_bytes(v);
        values += (double)v->ne[0] * (double)v->ne[1] * (double)v->ne[2];
    }
    return values > 0 ? (int)(bits / values) : 0;
}

/* What must be in memory beside sessions of ctx tokens. */
static uint64_t base_bytes(const struct ds4_engine *g, int ctx)
{
    const struct ds4_memory_plan *p = &g->plan;
    return (g->page_weights ? 0 : p->weights) + p->weights_own + buffer_bytes(g, p->sessions) + work_bytes(g, ctx);
}

uint64_t engine_session_promise(const struct ds4_engine *g, int ctx)
{
    const uint64_t planned = work_bytes(g, g->plan.ctx), work = work_bytes(g, ctx);
    return engine_session_bytes(g, ctx) + g->anchor_bytes + (work > planned ? work - planned : 0);
}

/* ---------------------------------------------------------------- refusal and advice */

static double gib(uint64_t bytes)
{
    return (double)bytes / (1 << 30);
}

/* Largest context (a multiple of 256) with which the planned number of sessions fits; 0: none. */
static int fitting_ctx(const struct ds4_engine *g)
{
    const struct ds4_memory_plan *p = &g->plan;
    int low = 0, high = p->ctx / 256;
    while (low < high) {
        const int mid = low + (high - low + 1) / 2;
        const uint64_t each = engine_session_bytes(g, mid * 256) + p->anchors;
        if (base_bytes(g, mid * 256) + (uint64_t)p->sessions * each <= p->available)
            low = mid;
        else
            high = mid - 1;
    }
    return low * 256;
}

static void advice(const struct ds4_engine *g, struct str *out)
{
    const struct ds4_memory_plan *p = &g->plan;
    const uint64_t base = base_bytes(g, p->ctx), each = p->session + p->anchors;
    if (base > p->available) {
        str_puts(out, "a smaller quantisation of the model would help");
        if (!g->page_weights)
            str_puts(out,
                     ", or to page the weights (--page-weights: they are then read from disk again and again, slowly)");
        else
            str_puts(out, ", or a smaller --prefill-chunk");
        return;
    }
    const int ctx = fitting_ctx(g);
    const uint64_t sessions = (p->available - base) / each;
    if (ctx) str_printf(out, "a context of %d tokens would fit", ctx);
    if (sessions)
        str_printf(out, "%s%" PRIu64 " session%s would fit", ctx ? "; " : "", sessions, sessions > 1 ? "s" : "");
    if (!ctx && !sessions)
        str_printf(out, "fewer rewind points (%.2f GiB a session now) or a smaller quantisation would help",
                   gib(p->anchors));
}

static int refuse(const struct ds4_engine *g, struct err *e)
{
    const struct ds4_memory_plan *p = &g->plan;
    struct str text = {0};
    advice(g, &text);
    const int rc =
        err_set(e, ERR_MEMORY,
                "not enough memory: %.2f GiB are needed (weights %.2f, scratch %.2f, %d session%s of %d tokens with "
                "%.2f each), %.2f GiB are available; %s",
                gib(p->total), gib((g->page_weights ? 0 : p->weights) + p->weights_own), gib(p->scratch), p->sessions,
                p->sessions > 1 ? "s" : "", p->ctx, gib(p->session + p->anchors), gib(p->available), str_c(&text));
    str_free(&text);
    return rc;
}

static bool fits(const struct ds4_memory_plan *p)
{
    return !p->available || p->total <= p->available;
}

/* Everything in it that depends on the context. */
static void plan_context(const struct ds4_engine *g, int ctx, struct ds4_memory_plan *p)
{
    struct ds4_cost last;
    ds4_engine_cost(g, ctx - 1, ctx, &last);
    p->ctx = ctx;
    p->active = last.weights;
    p->scratch = buffer_bytes(g, p->sessions) + work_bytes(g, ctx);
    p->session = engine_session_bytes(g, ctx);
    p->anchors = g->anchor_bytes;
    p->total = base_bytes(g, ctx) + (uint64_t)p->sessions * (p->session + p->anchors);
}

void ds4_engine_cost(const ds4_engine *g, int from, int to, struct ds4_cost *cost)
{
    struct family_cost c = {0};
    if (g->canonical) g->family->cost(g->model, g->canonical, from, to, &c);
    *cost = (struct ds4_cost){.weights = c.bytes, .int8 = c.int8, .f32 = c.f32, .attention = c.attention};
}

void ds4_engine_plan_for(const ds4_engine *g, int ctx, struct ds4_memory_plan *plan)
{
    *plan = g->plan;
    plan_context(g, ctx, plan);
}

/* Large chunks read prompts faster: each expert's weights are unpacked once for more rows. With more than two sessions
 * (one at work, and a history that the next goes on from) others wait for a layer of somebody's chunk. Models with wide
 * rows get smaller ones where their scratch memory would be more than a sixteenth of what is available, and machines
 * whose memory is short. */
enum { CHUNK_ALONE = 2048, CHUNK_SHARED = 1024, CHUNK_LEAST = 256, SCRATCH_ALWAYS = 704 << 20, SCRATCH_PART = 16 };

static bool chunk_fits(const struct ds4_memory_plan *p)
{
    return fits(p) && (p->scratch <= SCRATCH_ALWAYS || p->scratch <= p->available / SCRATCH_PART);
}

static void chunk_choose(struct ds4_engine *g)
{
    struct ds4_memory_plan *p = &g->plan;
    g->prefill_chunk = p->sessions > 2 ? CHUNK_SHARED : CHUNK_ALONE;
    plan_context(g, p->ctx, p);
    while (!chunk_fits(p) && g->prefill_chunk > CHUNK_LEAST) {
        g->prefill_chunk /= 2;
        plan_context(g, p->ctx, p);
    }
}

int engine_plan_make(struct ds4_engine *g, struct err *e)
{
    struct ds4_memory_plan *p = &g->plan;
    weight_bytes(g, p);
    if (g->prefill_chunk)
        plan_context(g, p->ctx, p);
    else
        chunk_choose(g);
    return fits(p) || g->report_only ? 0 : refuse(g, e);
}

int engine_promise(struct ds4_engine *g, uint64_t bytes, struct err *e)
{
    const uint64_t used = base_bytes(g, g->plan.ctx) + g->promised, available = g->plan.available;
    if (available && used + bytes > available)
        return err_set(e, ERR_MEMORY,
                       "one session more needs %.2f GiB, but only %.2f of %.2f GiB are left; a smaller context, or "
                       "ending another session, would help",
                       gib(bytes), gib(available > used ? available - used : 0), gib(available));
    g->promised += bytes;
    return 0;
}

void engine_plan_text(const struct ds4_engine *g, struct str *out)
{
    const struct ds4_memory_plan *p = &g->plan;
    str_printf(out, "weights %.3f GiB%s, widened copies %.3f, scratch %.3f\n", gib(p->weights),
               g->page_weights            ? " (paged)"
               : g->load == DS4_LOAD_READ ? " (read into memory)"
                                          : "",
               gib(p->weights_own), gib(p->scratch));
    str_printf(out, "%d session%s of %d tokens: %.3f GiB each, up to %.3f more for rewind points\n", p->sessions,
               p->sessions > 1 ? "s" : "", p->ctx, gib(p->session), gib(p->anchors));
    str_printf(out, "memory needed %.3f GiB", gib(p->total));
    if (p->available) str_printf(out, ", available %.3f GiB", gib(p->available));
    str_puts(out, "\n");
    if (fits(p)) return;
    str_puts(out, "this does not fit: ");
    advice(g, out);
    str_puts(out, "\n");
}
