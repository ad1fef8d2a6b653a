#include "runtime.h"
#include <limits.h>
#include "base/program.h"

static const struct option options[] = {
    {"-m", "--model", "FILE", "the model, a GGUF file; of a split one any part; again: its second file",
     OPTION_LIST(struct runtime_options, model, n_models)},
    {"-c", "--ctx", "N", "context in tokens (default: 32768, or the model's if that is less)",
     OPTION_INT(struct runtime_options, ctx, DS4_CTX_MIN, INT_MAX)},
    {"-t", "--threads", "N", "threads (default: one per physical core)",
     OPTION_INT(struct runtime_options, engine.threads, 1, 4096)},
    {"--memory", NULL, "NGB", "count on N GiB of memory and refuse what needs more (default: what is free now)",
     OPTION_GIB(struct runtime_options, engine.memory_limit)},
    {"--page-weights", NULL, NULL, "run a model that is larger than memory, reading it again and again",
     OPTION_SET(struct runtime_options, engine.page_weights, true), .rare = true},
    {"--prefill-chunk", NULL, "N", "most prompt tokens that are computed together (default: 1024)",
     OPTION_INT(struct runtime_options, engine.prefill_chunk, 1, 65536), .rare = true},
    {"--backend", NULL, "NAME", "cpu (default), or ref: the slow double precision reference",
     OPTION_TEXT(struct runtime_options, engine.backend), .rare = true},
    {"--isa", NULL, "NAME",
     "kernels of the cpu backend: scalar (portable C), avx2, avx512, neon, neon-dotprod, neon-i8mm (default: the "
     "best the processor has)",
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

void runtime_prepare(struct runtime_options *o, const char *program)
{
    o->program = program;
    o->engine.model_paths = o->model;
    o->engine.n_model_paths = o->n_models;
    o->engine.ctx = o->ctx;
    o->engine.sessions = 1;
    o->engine.log = log_line;
    o->engine.log_arg = o;
}
