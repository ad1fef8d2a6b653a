/* The steps of a check. Each is taken as far as the file was understood, whatever the ones before it found; the first
 * reason not to run is the one that is told last. */
#include "check_file.h"
#include <inttypes.h>
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sysinfo.h"
#include "check_internal.h"
#include "measure.h"
#include "work_progress.h"

static void no_log(void *arg, int level, const char *subject, const char *text)
{
}

/* ---- files and model */

static void open_model(struct check *c)
{
    const struct check_options *o = c->options;
    const struct canonical_options co = {.look = true, .scanned = true, .refused_too = true};
    c->opens = canonical_open(o->paths, o->n_paths, &co, &c->model, &c->why_not) == 0;
    if (c->model)
        c->files = canonical_files(c->model);
    else if (gguf_set_open_part(o->paths[0], &c->part, NULL) == 0)
        c->files = c->part;
    const bool known = c->model && canonical_is_known(c->model);
    if (c->files) file_census_take(&c->census, c->files, known ? canonical_n_layers(c->model) : 0);
}

/* ---- damage inside tensors */

static void tell(void *arg, const struct gguf_tensor *t, uint64_t n)
{
    struct str name = {0};
    str_add(&name, t->name.p, (size_t)t->name.n);
    text_defuse(name.p, name.n);
    work_progress_add(arg, str_c(&name), n);
    str_free(&name);
}

bool check_is_vital(const struct check *c, const struct gguf_flaw *f)
{
    return c->model && canonical_is_vital(c->model, f->tensor);
}

static void refuse_flaws(struct check *c)
{
    for (int i = 0; i < c->scan.n_flaws; i++) {
        const struct gguf_flaw *f = &c->scan.flaws[i];
        if (!check_is_vital(c, f)) continue;
        err_set(&c->why_not, ERR_MODEL,
                "%s: %.*s holds NaN or Inf in row %lld: " CANONICAL_VITAL_DAMAGE CANONICAL_DAMAGE_REMEDY,
                gguf_path(gguf_set_file(c->files, f->file)), (int)(f->tensor->name.n < 200 ? f->tensor->name.n : 200),
                f->tensor->name.p, (long long)f->row);
        return;
    }
}

/* Zeros are told before what follows from them. */
static void refuse_zeros(struct check *c)
{
    const struct gguf_zeros *z = &c->scan.zeros;
    struct str text = {0};
    if (!z->bytes) return;
    check_zeros_text(c, &text);
    err_set(&c->why_not, ERR_MODEL, "%s: %s", gguf_path(gguf_set_file(c->files, z->file)), str_c(&text));
    str_free(&text);
}

void check_zeros_text(const struct check *c, struct str *out)
{
    const struct gguf_zeros *z = &c->scan.zeros;
    str_printf(out, "%" PRIu64 " bytes of zeros ", z->bytes);
    if (z->places > 1) str_printf(out, "in %d places, the first ", z->places);
    str_printf(out, "from byte %" PRIu64 " on (%.*s): the download was not finished; continue it or get it again",
               z->at, (int)(z->tensor->name.n < 200 ? z->tensor->name.n : 200), z->tensor->name.p);
}

static void scan_files(struct check *c, const struct pool *computing)
{
    struct work_progress progress;
    struct err e = {0};
    struct pool *readers = NULL;
    const double start = clock_s();
    if (c->options->headers || !c->files || !computing) return;
    int rc = pool_create(gguf_scan_threads(pool_threads(computing)), &readers, &e);
    work_progress_begin(&progress, gguf_scan_bytes(c->files));
    if (rc == 0) rc = gguf_set_scan(c->files, readers, tell, &progress, &c->scan, &e);
    work_progress_end(&progress);
    pool_free(readers);
    c->scan_s = clock_s() - start;
    c->scanned = rc == 0;
    if (rc) err_set(&c->why_not, rc, "%s", e.msg);
    if (rc == 0) refuse_zeros(c);
    if (rc == 0) refuse_flaws(c);
}

/* ---- this machine */

static void open_engine(struct check *c)
{
    const struct check_options *o = c->options;
    const struct ds4_options eo = {.model_paths = o->paths,
                                   .n_model_paths = o->n_paths,
                                   .ctx = o->ctx,
                                   .threads = o->threads,
                                   .memory_limit = o->memory,
                                   .page_weights = o->page_weights,
                                   .report_only = true,
                                   .headers_only = o->headers,
                                   .log = no_log};
    struct ds4_error e = {0};
    c->plan.available = o->memory ? o->memory : mem_available();
    if (!c->opens) return;
    if (ds4_engine_open(&eo, &c->engine, &e))
        err_set(&c->why_not, e.code, "%s", e.message);
    else
        ds4_engine_plan(c->engine, &c->plan);
}

bool check_fits(const struct check *c)
{
    return !c->plan.available || c->plan.total <= c->plan.available;
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (1 << 30);
}

/* The largest half, quarter ... of the context that fits; 0: not even a small one. */
static int context_that_fits(const struct check *c)
{
    struct ds4_memory_plan p = c->plan;
    for (int ctx = c->plan.ctx / 2; ctx >= 512; ctx /= 2) {
        ds4_engine_plan_for(c->engine, ctx, &p);
        if (p.total <= c->plan.available) return ctx;
    }
    return 0;
}

static void refuse_memory(struct check *c)
{
    const struct ds4_memory_plan *p = &c->plan;
    const uint64_t weights = p->weights + p->weights_own;
    struct str what = {0};
    const int ctx = context_that_fits(c);
    if (ctx)
        str_printf(&what, "the context of %d tokens is too large: --ctx %d would fit", p->ctx, ctx);
    else if (2 * weights > p->total)
        str_printf(&what,
                   "the weights take %.2f GiB, too much for any --ctx: a smaller quantisation would help, or "
                   "--page-weights, with which the weights are read from disk again and again",
                   gib(weights));
    else
        str_printf(&what,
                   "it is neither the weights, which take %.2f GiB, nor the context, but what computing needs: close "
                   "other programs, or give a larger --memory",
                   gib(weights));
    err_set(&c->why_not, ERR_MEMORY, "this machine has too little memory: %.2f GiB are needed, %.2f available; %s",
            gib(p->total), gib(p->available), str_c(&what));
    str_free(&what);
}

static void look_at_machine(struct check *c, struct pool *p)
{
    struct sysinfo s;
    struct disk_speed d;
    const bool measured = !c->options->headers; /* what is asked for records alone costs no memory and no time */
    if (!c->engine) return;
    sysinfo_read("", &s);
    if (measured) measure_memory(p, measure_probe_bytes(&s), &c->memory, NULL);
    if (check_fits(c)) return;
    if (measured && measure_disk(p, c->options->paths[0], &d, NULL) == 0) c->disk = d.bytes_per_s;
    refuse_memory(c);
}

bool check_file(const struct check_options *o)
{
    struct check c = {.options = o};
    struct pool *p = NULL;
    struct err e = {0};
    open_model(&c);
    if (c.files && pool_create(o->threads, &p, &e)) err_set(&c.why_not, e.code, "%s", e.msg);
    scan_files(&c, p);
    open_engine(&c);
    if (p) look_at_machine(&c, p);
    if (o->json)
        check_print_json(&c);
    else
        check_print_text(&c);
    const bool runs = !c.why_not.code;
    ds4_engine_close(c.engine);
    pool_free(p);
    gguf_scan_free(&c.scan);
    canonical_close(c.model);
    gguf_set_close(c.part);
    return runs;
}
