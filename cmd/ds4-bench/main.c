/* ds4-bench: how fast a model reads and writes on this machine. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/program.h"
#include "bench.h"
#include "common/failure.h"

/* The text as tokens, as many as will be read. */
static int read_text(const struct options *o, const ds4_engine *g, struct ds4_tokens *t, struct ds4_error *e)
{
    struct err err = {0};
    char *text;
    size_t n;
    const char *const path = o->prompt_file ? o->prompt_file : o->chat_prompt_file;
    if (file_read(path, UINT64_C(1) << 30, &text, &n, &err)) return failure_of(e, &err);
    const struct ds4_message m[] = {{.role = DS4_SYSTEM, .text = o->system, .n_text = strlen(o->system)},
                                    {.role = DS4_USER, .text = text, .n_text = n}};
    const int rc = o->prompt_file ? ds4_tokenize(g, text, n, false, t, e)
                                  : ds4_chat_tokens(g, m, 2, DS4_THINK_OFF, o->ctx_alloc, t, NULL, e);
    mem_free(text);
    if (rc) return rc;
    const size_t wanted = (size_t)o->frontiers.max + (o->teacher_forced ? (size_t)o->n_tokens : 0);
    if (t->n < wanted)
        return failure(e, DS4_E_LIMIT, "%s has %zu tokens, and %zu are needed; give a longer text or less --ctx-max",
                       path, t->n, wanted);
    return 0;
}

static int check_folder(const char *path, struct ds4_error *e)
{
    struct stat st;
    if (path && (stat(path, &st) || !S_ISDIR(st.st_mode)))
        return failure(e, DS4_E_IO, "%s is no folder that exists", path);
    return 0;
}

static void say_memory(const ds4_engine *g)
{
    struct ds4_memory_plan p;
    ds4_engine_plan(g, &p);
    fprintf(stderr, "ds4-bench: planned: %.2f GiB of weights, %.2f GiB of working space, %d histories of %.2f GiB\n",
            (double)(p.weights + p.weights_own) / (1 << 30), (double)p.scratch / (1 << 30), p.sessions,
            (double)(p.session + p.anchors) / (1 << 30));
}

/* measured: bytes that the measurement of the memory has for itself, from its first look on */
static void say_peak_memory(uint64_t measured)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) == 0)
        fprintf(stderr,
                "ds4-bench: most memory used, the model's file included: %.2f GiB (without %.2f of the measurement)\n",
                ((double)u.ru_maxrss * 1024 - (double)measured) / (1 << 30), (double)measured / (1 << 30));
}

static int measure(const struct options *o, ds4_engine *g, FILE *csv, struct bench_rows *rows, struct ds4_error *e)
{
    struct ds4_model_info info;
    struct machine m;
    struct err err = {0};
    struct bench b = {.o = o, .engine = g, .machine = &m, .csv = csv};
    uint64_t measured = 0;
    ds4_engine_info(g, &info);
    int rc = read_text(o, g, &b.text, e);
    if (!rc && machine_open(&m, o->runtime.model[0], &info, &err)) rc = failure_of(e, &err);
    if (!rc) {
        say_memory(g);
        rc = bench_run(&b, rows, e);
        measured = machine_bytes(&m);
        machine_close(&m);
    }
    ds4_tokens_free(&b.text);
    if (!rc) say_peak_memory(measured);
    return rc;
}

/* What is measured is how fast the model is in the long run. */
static void settle(ds4_engine *g)
{
    enum { SOON = 2, ONE_HOUR = 3600 };
    if (ds4_engine_settle(g, SOON)) return;
    program_say("ds4-bench", "the weights are being brought into huge pages");
    ds4_engine_settle(g, ONE_HOUR);
}

static int run(struct options *o, FILE *csv, struct bench_rows *rows, struct ds4_error *e)
{
    ds4_engine *g;
    int rc = check_folder(o->dump_logits_dir, e);
    if (rc) return rc;
    o->runtime.ctx = o->ctx_alloc;
    runtime_prepare(&o->runtime, "ds4-bench");
    o->runtime.engine.sessions = o->sessions + 1;
    rc = ds4_engine_open(&o->runtime.engine, &g, e);
    if (rc) return rc;
    ds4_engine_warm(g);
    settle(g);
    rc = measure(o, g, csv, rows, e);
    ds4_engine_close(g);
    return rc;
}

static int start(struct options *o)
{
    struct bench_rows rows = {0}, before = {0};
    struct err err = {0};
    struct ds4_error e = {0};
    if (o->compare && bench_rows_read(o->compare, &before, &err)) return program_failed("ds4-bench", &err);
    FILE *const csv = o->csv ? fopen(o->csv, "w") : stdout;
    int rc = csv ? run(o, csv, &rows, &e) : failure(&e, DS4_E_IO, "%s cannot be written", o->csv);
    if (csv && csv != stdout && fclose(csv) && !rc) rc = failure(&e, DS4_E_IO, "%s cannot be written", o->csv);
    if (!rc && o->compare) bench_rows_compare(stderr, &rows, &before);
    if (rc) program_say("ds4-bench", "%s", e.message);
    bench_rows_free(&rows);
    bench_rows_free(&before);
    return rc == 0 ? 0 : rc == DS4_E_ARG ? 2 : 1;
}

int main(int argc, char **argv)
{
    static struct options o;
    int status;
    program_begin("ds4-bench");
    if (options_parse(argc, argv, &o, &status)) status = start(&o);
    return program_end("ds4-bench", status);
}
