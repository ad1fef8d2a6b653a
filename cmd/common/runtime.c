#include "runtime.h"
#include <limits.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/program.h"

enum { MOST_THREADS = 4096, SECONDS_BETWEEN = 2 };

/* A number of threads at *at, which moves behind it; 0: there is none. */
static int threads_at(const char **at)
{
    char *end;
    const long v = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : 0;
    if (v < 1 || v > MOST_THREADS) return 0;
    *at = end;
    return (int)v;
}

/* "N" or "N,M" */
static void take_threads(struct args *a, const char *word, void *target)
{
    struct ds4_options *const o = target;
    const char *const text = args_value(a, word), *at = text;
    if (!text) return;
    o->threads = threads_at(&at);
    const bool two = o->threads && *at == ',';
    if (two) at++;
    o->threads_decode = two ? threads_at(&at) : 0;
    if (!o->threads || (two && !o->threads_decode) || *at)
        args_mistake(a, "%s: '%s' is not a number of threads from 1 to %d, nor two such as 8,6", word, text,
                     MOST_THREADS);
}

static const struct option options[] = {
    {"-m", "--model", "FILE", "the model, a GGUF file; of a split one any part; again: its second file, or its draft",
     OPTION_LIST(struct runtime_options, model, n_models)},
    {"-c", "--ctx", "N", "context in tokens (default: 32768, or the model's if that is less)",
     OPTION_INT(struct runtime_options, ctx, DS4_CTX_MIN, INT_MAX)},
    {"-t", "--threads", "N[,M]",
     "threads, or N for prompts and M for answers (default: one per physical core, and for answers as many of them as "
     "read memory fastest)",
     OPTION_CALL(struct runtime_options, engine, take_threads)},
    {"--memory", NULL, "NGB", "count on N GiB of memory and refuse what needs more (default: what is free now)",
     OPTION_GIB(struct runtime_options, engine.memory_limit)},
    {"--page-weights", NULL, NULL, "run a model that is larger than memory, reading it again and again",
     OPTION_SET(struct runtime_options, engine.page_weights, true), .rare = true},
    {"--prefill-chunk", NULL, "N",
     "most prompt tokens that are computed together (default: 2048, with several sessions 1024, fewer if that takes "
     "much memory)",
     OPTION_INT(struct runtime_options, engine.prefill_chunk, 1, 65536), .rare = true},
    {"--backend", NULL, "NAME", "cpu (default), or ref: the slow double precision reference",
     OPTION_TEXT(struct runtime_options, engine.backend), .rare = true},
    {"--load", NULL, "auto|map|read",
     "where weights are: in the mapped file, or read into memory of their own at the start; auto: read where memory "
     "has "
     "several nodes",
     OPTION_CHOICE(struct runtime_options, engine.load), .initial = "auto", .rare = true},
    {"--numa", NULL, "auto|off",
     "where memory has several nodes, bind threads to cores and give each the rows of the weights that are near it",
     OPTION_CHOICE(struct runtime_options, engine.numa_off), .initial = "auto", .rare = true},
    {"--isa", NULL, "NAME",
     "kernels of the cpu backend: scalar (portable C), avx2, avxvnni, avx512, amx, neon, neon-dotprod, neon-i8mm "
     "(default: the best the processor has)",
     OPTION_TEXT(struct runtime_options, engine.isa), .rare = true},
    {"--kv-sim", NULL, "on|off", "the model's FP8/FP4 rounding of stored rows; off keeps rows in F32",
     OPTION_CHOICE(struct runtime_options, engine.kv_sim_off), .initial = "on", .rare = true},
    {"--effort-mapping", NULL, "file|preview|late",
     "how efforts of thinking are worded; file: as the model's file says",
     OPTION_CHOICE(struct runtime_options, engine.effort), .initial = "file", .rare = true},
    {"-v", "--verbose", NULL, "log what is going on", OPTION_SET(struct runtime_options, verbose, true), .rare = true},
};

const struct help_section runtime_section = {
    .topic = "runtime", .title = "Model, memory and speed", HELP_ROWS(options)};

static void log_line(void *arg, int level, const char *subject, const char *text)
{
    const struct runtime_options *o = arg;
    if (level <= (o->verbose ? 3 : 1)) program_say(o->program, "%s: %s", subject, text);
}

/* Where it takes longer than a moment. */
static void loading_line(void *arg, uint64_t done, uint64_t total)
{
    struct runtime_options *o = arg;
    const double now = clock_s(), gib = 1 << 30;
    if (o->loading_said == 0) o->loading_said = now;
    if (now - o->loading_said < SECONDS_BETWEEN) return;
    o->loading_said = now;
    program_say(o->program, "reading weights: %.1f of %.1f GiB", (double)done / gib, (double)total / gib);
}

void runtime_prepare(struct runtime_options *o, const char *program)
{
    o->program = program;
    o->engine.model_paths = o->model;
    o->engine.n_model_paths = o->n_models;
    o->engine.ctx = o->ctx;
    o->engine.sessions = 1;
    o->engine.log = log_line;
    o->engine.log_arg = o;
    o->engine.loading = loading_line;
}
