/* The lines of the doctor's report: "name", blanks to column 16, text. */
#include "doctor.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "base/pool.h"
#include "base/str.h"
#include "base/sysinfo.h"
#include "common/measure.h"
#include "common/failure.h"

static void line(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("%-16s", name);
    vprintf(fmt, ap);
    putchar('\n');
    fflush(stdout); /* the next line may need a second */
    va_end(ap);
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (1 << 30);
}

/* ---------------------------------------------------------------- what the system says */

static void processor_lines(const struct sysinfo *s, int threads)
{
    struct str text = {0};
    str_printf(&text, "%d online", s->processors);
    if (s->allowed)
        str_printf(&text, ", %d in the affinity mask on %d cores of %d memory node%s", s->allowed, s->cores, s->nodes,
                   s->nodes > 1 ? "s" : "");
    if (s->quota)
        str_printf(&text, ", cgroup quota %d", s->quota);
    else
        str_puts(&text, ", no cgroup quota");
    line("processors", "%s; %d thread%s used", str_c(&text), threads, threads > 1 ? "s are" : " is");
    str_clear(&text);
    for (int i = 0; i < QUANT_ISA_COUNT; i++)
        if (quant_isa_usable((enum quant_isa)i))
            str_printf(&text, "%s%s", text.n ? ", " : "", quant_isa_name((enum quant_isa)i));
    line("kernels", "%s; best: %s", str_c(&text), quant_isa_name(quant_isa_best()));
    str_free(&text);
}

static void memory_lines(const struct sysinfo *s)
{
    if (s->group_left == UINT64_MAX)
        line("memory", "%.2f GiB, %.2f available, no cgroup limit", gib(s->memory), gib(s->memory_free));
    else
        line("memory", "%.2f GiB, %.2f available, cgroup limits leave %.2f", gib(s->memory), gib(s->memory_free),
             gib(s->group_left));
    line("huge pages", "transparent: %s; reserved: %" PRIu64 " of %" PRIu64 " KiB, %" PRIu64 " free",
         *s->transparent ? s->transparent : "unknown", s->huge_total, s->huge_page >> 10, s->huge_free);
}

/* ---------------------------------------------------------------- what is measured */

/* Bytes per second of memory; 0 if it could not be measured. */
static double speed_lines(struct pool *p, const struct sysinfo *s)
{
    const int threads = pool_threads(p);
    const char *plural = threads > 1 ? "s" : "", *best = quant_isa_name(quant_isa_best());
    struct err e = {0};
    double memory = 0, products = 0;
    const uint64_t bytes = measure_probe_bytes(s);
    if (measure_memory(p, bytes, &memory, &e))
        line("memory read", "not measured: %s", e.msg);
    else
        line("memory read", "%.2f GB/s with %d thread%s (%" PRIu64 " MiB)", memory * 1e-9, threads, plural,
             bytes >> 20);
    err_clear(&e);
    if (measure_products(p, quant_isa_best(), &products, &e))
        line("int8 products", "not measured: %s", e.msg);
    else
        line("int8 products", "%.2f thousand million multiply-adds/s with %d thread%s (%s, Q8_0)", products * 1e-9,
             threads, plural, best);
    return memory;
}

/* Bytes per second of the disk; 0 if it could not be measured. */
static double disk_line(struct pool *p, const char *path)
{
    struct disk_speed d;
    struct err e = {0};
    if (measure_disk(p, path, &d, &e)) return line("disk read", "not measured: %s", e.msg), 0;
    line("disk read", "%.2f GB/s (%.1f MiB of the model's file%s)", d.bytes_per_s * 1e-9, (double)d.bytes / (1 << 20),
         d.cached ? "; perhaps from the system's cache" : "");
    return d.bytes_per_s;
}

/* ---------------------------------------------------------------- what that means for a model */

static void model_lines(const ds4_engine *g, double memory, double disk)
{
    struct ds4_model_info info;
    struct ds4_memory_plan p;
    ds4_engine_info(g, &info);
    ds4_engine_plan(g, &p);
    const bool fits = !p.available || p.total <= p.available;
    const double active = (double)p.active;
    line("model", "%s (%s), %d layers, routed experts of %d bits", info.name, info.family, info.n_layers,
         info.quant_bits);
    line("memory needed", "%.2f GiB for %d tokens of context, %.2f available%s", gib(p.total), p.ctx, gib(p.available),
         fits ? "" : ": this does not fit");
    line("active weights", "%.6f GB per token of an answer, of %.6f", active * 1e-9, (double)(p.weights) * 1e-9);
    if (memory > 0 && active > 0)
        line("decode limit", "%.2f t/s: memory read / active weights", memory / active);
    else
        line("decode limit", "unknown: the speed of memory was not measured");
    if (!fits && disk > 0 && active > 0)
        line("from disk", "%.2f t/s where no weight is in memory: disk read / active weights", disk / active);
}

static int model_open(const struct options *o, ds4_engine **g, struct ds4_error *e)
{
    struct ds4_options eo = o->runtime.engine;
    eo.report_only = true;
    return ds4_engine_open(&eo, g, e);
}

int doctor_run(const struct options *o, struct ds4_error *e)
{
    struct sysinfo s;
    struct pool *p;
    struct err err = {0};
    ds4_engine *g = NULL;
    int rc = o->runtime.n_models ? model_open(o, &g, e) : 0;
    if (rc) return rc;
    if (pool_create(o->runtime.engine.threads, &p, &err)) {
        ds4_engine_close(g);
        return failure_of(e, &err);
    }
    sysinfo_read("", &s);
    processor_lines(&s, pool_threads(p));
    memory_lines(&s);
    const double memory = speed_lines(p, &s);
    if (g) model_lines(g, memory, disk_line(p, o->runtime.model[0]));
    pool_free(p);
    ds4_engine_close(g);
    return 0;
}
