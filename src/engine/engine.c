/* A loaded model: opening, checking, closing, and what is told about it. */
#include "engine_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "base/mem.h"
#include "base/reading.h"
#include "base/topology.h"

#define SAME_CODE(name) ((int)DS4_E_##name == (int)ERR_##name)
_Static_assert(SAME_CODE(ARG) && SAME_CODE(IO) && SAME_CODE(FORMAT) && SAME_CODE(MODEL) && SAME_CODE(MEMORY) &&
                   SAME_CODE(CANCELLED) && SAME_CODE(LIMIT) && SAME_CODE(DEVICE),
               "the codes of ds4.h are those of base");
_Static_assert(sizeof(((struct ds4_error *)0)->message) == sizeof(((struct err *)0)->msg), "messages fit");

int engine_error(struct ds4_error *e, const struct err *err)
{
    if (e) {
        e->code = err->code;
        memcpy(e->message, err->msg, sizeof e->message);
    }
    return err->code;
}

/* ---------------------------------------------------------------- options */

enum { PREFILL_CHUNK_MAX = 65536, CTX = 32768, SESSIONS_MAX = 4096 };
#define ANCHOR_BYTES ((uint64_t)256 << 20)

static int or_default(int v, int otherwise)
{
    return v ? v : otherwise;
}

static int options_take(struct ds4_engine *g, const struct ds4_options *o, struct err *e)
{
    const char *backend = o->backend ? o->backend : "cpu";
    if (strcmp(backend, "cpu") && strcmp(backend, "ref"))
        return err_set(e, ERR_ARG, "no backend \"%s\": there are cpu and ref", backend);
    if (o->threads < 0 || o->threads > 4096) return err_set(e, ERR_ARG, "%d threads: 0 to 4096", o->threads);
    if (o->threads_decode < 0 || o->threads_decode > 4096)
        return err_set(e, ERR_ARG, "%d threads for decode steps: 0 to 4096", o->threads_decode);
    if (o->prefill_chunk < 0 || o->prefill_chunk > PREFILL_CHUNK_MAX)
        return err_set(e, ERR_ARG, "a prefill chunk of %d tokens: 0 to %d", o->prefill_chunk, PREFILL_CHUNK_MAX);
    if (o->sessions < 0 || o->sessions > SESSIONS_MAX)
        return err_set(e, ERR_ARG, "%d sessions: 0 to %d", o->sessions, SESSIONS_MAX);
    if (o->ctx && o->ctx < DS4_CTX_MIN)
        return err_set(e, ERR_ARG, "a context of %d tokens: at least %d", o->ctx, DS4_CTX_MIN);
    if (o->load == DS4_LOAD_READ && o->page_weights)
        return err_set(e, ERR_ARG, "weights cannot be read into memory and paged: --load read or --page-weights");
    strcpy(g->backend, backend);
    g->load = o->load;
    g->isa = "";
    g->effort = o->effort;
    g->kv_sim_off = o->kv_sim_off;
    g->draft = o->draft;
    g->page_weights = o->page_weights;
    g->report_only = o->report_only;
    g->prefill_chunk = o->prefill_chunk; /* 0: the plan chooses */
    g->anchor_bytes = o->anchor_bytes ? o->anchor_bytes : ANCHOR_BYTES;
    g->plan.sessions = or_default(o->sessions, 1);
    g->plan.ctx = or_default(o->ctx, CTX);
    g->plan.available = o->memory_limit ? o->memory_limit : mem_available();
    return 0;
}

static void log_bridge(void *arg, enum log_level level, const char *subject, const char *text)
{
    const struct ds4_engine *g = arg;
    g->log(g->log_arg, (int)level, subject, text);
}

static void log_connect(struct ds4_engine *g, const struct ds4_options *o)
{
    g->log = o->log, g->log_arg = o->log_arg, g->loading = o->loading;
    if (g->log)
        log_to(log_bridge, g, LOG_DEBUG);
    else
        log_to(NULL, NULL, LOG_WARN);
}

/* ---------------------------------------------------------------- device and model */

static int isa_of(const char *name, enum quant_isa *isa, struct err *e)
{
    if (!name) {
        *isa = quant_isa_best();
        return 0;
    }
    for (int i = 0; i < QUANT_ISA_COUNT; i++) {
        *isa = (enum quant_isa)i;
        if (strcmp(quant_isa_name(*isa), name)) continue;
        if (quant_isa_usable(*isa)) return 0;
        return err_set(e, ERR_ARG, "this processor has no %s%s", name,
                       *isa == QUANT_AMX ? ", or the system does not give it to this process" : "");
    }
    char have[128];
    int n = 0;
    for (int i = 0; i < QUANT_ISA_COUNT; i++)
        if (quant_isa_usable((enum quant_isa)i))
            n += snprintf(have + n, sizeof have - (size_t)n, "%s%s", n ? ", " : "", quant_isa_name((enum quant_isa)i));
    return err_set(e, ERR_ARG, "no kernel set \"%s\"; this processor has %s", name, have);
}

/* Threads, and which of them work when. */
static int threads_start(struct ds4_engine *g, const struct ds4_options *o, struct err *e)
{
    const int most = o->threads && o->threads_decode > o->threads ? o->threads_decode : o->threads;
    topology_read(&g->topology);
    const int rc = pool_create_on(o->numa_off ? NULL : &g->topology, most, &g->pool, e);
    if (rc) return rc;
    g->threads = or_default(o->threads, pool_threads(g->pool));
    if (o->threads)
        g->threads_decode = or_default(o->threads_decode, o->threads);
    else
        g->threads_decode = g->report_only ? g->threads : reading_threads(g->pool);
    log_msg(LOG_INFO, "engine", "threads: %d for prompts, %d for decode steps%s; memory nodes: %d", g->threads,
            g->threads_decode, o->threads ? "" : " (measured)", pool_nodes(g->pool));
    return 0;
}

static int device_open(struct ds4_engine *g, const struct ds4_options *o, struct err *e)
{
    if (!strcmp(g->backend, "ref")) return dev_ref_create(&g->dev, e);
    enum quant_isa isa;
    int rc = isa_of(o->isa, &isa, e);
    if (rc == 0) rc = threads_start(g, o, e);
    if (rc == 0) rc = dev_cpu_create(g->pool, isa, &g->dev, e);
    if (rc == 0) g->isa = quant_isa_name(isa);
    return rc;
}

static int family_bind(struct ds4_engine *g, struct err *e)
{
    g->family = family_of(canonical_family(g->canonical));
    if (!g->family) return err_set(e, ERR_MODEL, "this build has no such model family");
    const struct plan plan = {.dev = g->dev};
    const struct bind_options bo = {.kv_sim_off = g->kv_sim_off, .draft_max = DRAFT_MAX, .draft = g->draft};
    const int rc = engine_text_open(g, e);
    return rc ? rc : g->family->bind(g->canonical, &plan, &bo, &g->model, e);
}

static int model_open(struct ds4_engine *g, const struct ds4_options *o, struct err *e)
{
    if (o->n_model_paths < 1 || !o->model_paths) return err_set(e, ERR_ARG, "no model file is given");
    const struct canonical_options co = {
        .kv_sim_off = g->kv_sim_off, .look = g->report_only, .headers_only = o->headers_only};
    const int rc = canonical_open(o->model_paths, o->n_model_paths, &co, &g->canonical, e);
    return rc ? rc : canonical_refusal(g->canonical, family_bind(g, e), e);
}

int engine_ctx_max(const struct ds4_engine *g)
{
    const int64_t n = g->canonical ? canonical_int(g->canonical, "context_length") : INT32_MAX;
    return n > INT32_MAX ? INT32_MAX : (int)n;
}

/* A context larger than the model's is cut to it for the plan, if it was not asked for. */
static int context_check(struct ds4_engine *g, const struct ds4_options *o, struct err *e)
{
    const int most = engine_ctx_max(g);
    if (g->plan.ctx <= most) return 0;
    if (o->ctx) return err_set(e, ERR_ARG, "a context of %d tokens: the model is made for at most %d", o->ctx, most);
    g->plan.ctx = most;
    return 0;
}

/* ---------------------------------------------------------------- fingerprint */

static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t tensor_identity(const struct ds4_engine *g, int i)
{
    const struct tensor_view *v;
    const char *name = canonical_tensor_at(g->canonical, i, &v);
    const uint64_t bytes = tensor_view_bytes(v);
    uint64_t h = mix(UINT64_C(0xcbf29ce484222325), name, strlen(name));
    h = mix(h, v->ne, sizeof v->ne);
    h = mix(h, &v->type, sizeof v->type);
    return canonical_on_disk(g->canonical, i) ? h : mix(h, v->data, bytes < 64 ? (size_t)bytes : 64);
}

/* Parameters; names, types, shapes and first bytes of all tensors that are used, in whatever order they come. */
static uint64_t identity(const struct ds4_engine *g)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    h = mix(h, g->family->name, strlen(g->family->name));
    h = mix(h, &(int32_t[]){g->n_vocab, g->n_layers - engine_has_draft(g)}, 2 * sizeof(int32_t));
    const uint64_t parameters = g->canonical ? canonical_digest(g->canonical) : 0;
    h = mix(h, &parameters, sizeof parameters);
    uint64_t tensors = 0;
    for (int i = 0; g->canonical && i < canonical_n_tensors(g->canonical); i++)
        if (engine_has_draft(g) || !canonical_of_draft(g->canonical, i)) tensors += tensor_identity(g, i);
    return mix(h, &tensors, sizeof tensors);
}

/* The identity, and what else changes stored rows. */
static uint64_t fingerprint(const struct ds4_engine *g)
{
    const uint64_t h = mix(g->identity, g->backend, strlen(g->backend));
    return mix(h, &(int32_t){g->kv_sim_off + 2 * engine_has_draft(g)}, sizeof(int32_t));
}

/* ---------------------------------------------------------------- buffers */

static int buffers_create(struct ds4_engine *g, struct err *e)
{
    const struct engine_shape s = engine_shape(g->plan.sessions, g->prefill_chunk);
    const struct dev_ops *op = g->dev->op;
    const struct buf_desc logits = {.kind = BUF_FLOAT, .rows = s.logits_rows, .groups = 1, .width = g->n_vocab};
    g->stream = op->stream_create(g->dev);
    g->logits = op->buf_create(g->dev, &logits);
    if (!g->stream || !g->logits)
        return err_set(e, ERR_MEMORY, "no memory for the buffers of steps of %d rows", s.rows);
    int rc = carry_create(g, s.decode_rows, &g->carry_decode, e);
    if (rc == 0) rc = carry_create(g, g->prefill_chunk, &g->carry_sweep, e);
    if (rc == 0) rc = g->family->scratch_create(g->model, s.rows, s.segments, &g->scratch, e);
    if (rc == 0) rc = batch_create(g, &g->decode, s.decode_rows, s.decode_segments, &g->carry_decode, e);
    if (rc == 0) rc = batch_create(g, &g->sweep, g->prefill_chunk, 1, &g->carry_sweep, e);
    return rc;
}

/* What the loader found, once a load: a line each, its warnings as warnings (spec dialects 1.3, 13). */
static void report_log(const char *report)
{
    static const char warning[] = "warning: ";
    for (const char *line = report, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const bool warns = !strncmp(line, warning, sizeof warning - 1);
        const char *text = warns ? line + sizeof warning - 1 : line;
        log_msg(warns ? LOG_WARN : LOG_INFO, "model", "%.*s", (int)(end - text), text);
    }
}

static void report_write(struct ds4_engine *g)
{
    if (g->canonical) canonical_report(g->canonical, &g->report);
    if (g->bpe && bpe_n_idle_merges(g->bpe))
        str_printf(&g->report, "warning: %zu of %" PRIu64 " merges name texts that the vocabulary lacks: ignored\n",
                   bpe_n_idle_merges(g->bpe), canonical_merges(g->canonical)->count);
    if (g->canonical && !g->report_only) report_log(str_c(&g->report));
    g->family->describe(g->model, &g->report);
    engine_plan_text(g, &g->report);
}

int engine_assemble(struct ds4_engine *g, struct err *e)
{
    g->n_layers = g->family->n_layers(g->model);
    g->n_vocab = g->family->n_vocab(g->model);
    const int rc = engine_plan_make(g, e);
    if (rc) return rc;
    pace_init(&g->pace, g->prefill_chunk, ANCHOR_STEP);
    report_write(g);
    if (g->report_only) return 0;
    g->identity = identity(g);
    g->fingerprint = fingerprint(g);
    log_msg(LOG_INFO, "engine", "memory: %.2f GiB needed, %.2f available, %d session%s of %d tokens",
            (double)g->plan.total / (1 << 30), (double)g->plan.available / (1 << 30), g->plan.sessions,
            g->plan.sessions > 1 ? "s" : "", g->plan.ctx);
    const int made = buffers_create(g, e);
    if (made == 0) engine_weights_map(g);
    return made;
}

/* What AUTO means here. Paged weights stay in their files, which the system can drop pages of. */
static void load_choose(struct ds4_engine *g)
{
    const bool several = g->pool && pool_nodes(g->pool) > 1;
    if (g->load == DS4_LOAD_AUTO) g->load = several && !g->page_weights ? DS4_LOAD_READ : DS4_LOAD_MAP;
}

/* ---------------------------------------------------------------- open and close */

int ds4_engine_open(const struct ds4_options *o, ds4_engine **out, struct ds4_error *e)
{
    struct err err = {0};
    struct ds4_engine *g = mem_alloc(sizeof *g);
    *out = NULL;
    log_connect(g, o);
    int rc = options_take(g, o, &err);
    if (rc == 0) rc = device_open(g, o, &err);
    if (rc == 0) rc = model_open(g, o, &err);
    if (rc == 0) rc = context_check(g, o, &err);
    if (rc == 0) load_choose(g);
    if (rc == 0) rc = canonical_refusal(g->canonical, engine_assemble(g, &err), &err);
    if (rc == 0 && g->load == DS4_LOAD_READ && !g->report_only)
        rc = canonical_refusal(g->canonical, engine_load(g, &err), &err);
    if (rc == 0 && !g->report_only) g->huge = huge_start(g);
    if (rc) {
        ds4_engine_close(g);
        return engine_error(e, &err);
    }
    *out = g;
    return 0;
}

void ds4_engine_close(ds4_engine *g)
{
    if (!g) return;
    huge_end(g->huge);
    batch_free(&g->decode);
    batch_free(&g->sweep);
    if (g->scratch) g->family->scratch_free(g->scratch);
    if (g->logits) g->dev->op->buf_free(g->logits);
    carry_free(g, &g->carry_sweep);
    carry_free(g, &g->carry_decode);
    if (g->stream) g->dev->op->stream_free(g->stream);
    if (g->model) g->family->unbind(g->model);
    if (g->bpe) bpe_free(g->bpe);
    if (g->canonical) canonical_close(g->canonical);
    if (g->dev) g->dev->op->free(g->dev);
    if (g->pool) pool_free(g->pool);
    topology_free(&g->topology);
    if (g->log) log_to(NULL, NULL, LOG_WARN);
    str_free(&g->report);
    mem_free(g->session);
    mem_free(g);
}

/* ---------------------------------------------------------------- what is told */

void ds4_engine_info(const ds4_engine *g, struct ds4_model_info *info)
{
    *info = (struct ds4_model_info){
        .name = g->canonical ? canonical_name(g->canonical) : g->family->name,
        .family = g->family->name,
        .dialect = g->canonical ? canonical_dialect(g->canonical) : "",
        .backend = g->backend,
        .isa = g->isa,
        .n_layers = g->n_layers,
        .n_vocab = g->n_vocab,
        .ctx_max = engine_ctx_max(g),
        .threads = g->pool ? g->threads : 1,
        .threads_decode = g->pool ? g->threads_decode : 1,
        .numa_nodes = g->pool ? pool_nodes(g->pool) : 1,
        .weights_read = g->load == DS4_LOAD_READ,
        .prefill_chunk = g->prefill_chunk,
        .draft_max = DRAFT_MAX,
        .draft = engine_has_draft(g),
        .quant_bits = engine_quant_bits(g),
    };
}

void ds4_engine_plan(const ds4_engine *g, struct ds4_memory_plan *plan)
{
    *plan = g->plan;
}

const char *ds4_engine_report(const ds4_engine *g)
{
    return str_c(&g->report);
}
