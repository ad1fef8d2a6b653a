/* The tables of ds4-bench's options, from which both parsing and help come. */
#include "options.h"
#include <limits.h>
#include "common/option_scan.h"

static const struct option measure_rows[] = {
    {"--prompt-file", NULL, "FILE", "text that is read into the context as it is",
     OPTION_TEXT(struct options, prompt_file)},
    {"--chat-prompt-file", NULL, "FILE", "text that is read as a message of the user, without thinking",
     OPTION_TEXT(struct options, chat_prompt_file)},
    {"-sys", "--system", "TEXT", "system text of the chat form", OPTION_TEXT(struct options, system),
     .initial = "You are a helpful assistant.", .rare = true},
    {"--ctx-start", NULL, "N", "first length of the context", OPTION_INT(struct options, frontiers.start, 1, INT_MAX),
     .initial = "2048"},
    {"--ctx-max", NULL, "N", "last length of the context", OPTION_INT(struct options, frontiers.max, 1, INT_MAX),
     .initial = "32768"},
    {"--step-incr", NULL, "N", "from one length to the next",
     OPTION_INT(struct options, frontiers.increment, 1, INT_MAX), .initial = "2048"},
    {"--step-mul", NULL, "F", "above 1: a length is F times the one before",
     OPTION_FLOAT(struct options, frontiers.mul, 1, 1e6), .initial = "1"},
    {"-n", "--gen-tokens", "N", "tokens that are decoded at every length; 0: none",
     OPTION_INT(struct options, n_tokens, 0, INT_MAX), .initial = "128"},
    {"--tokens", NULL, "N", "the same", OPTION_INT(struct options, n_tokens, 0, INT_MAX), .rare = true},
    {"--sessions", NULL, "N", "histories that decode together; gen_tps counts the tokens of all",
     OPTION_INT(struct options, sessions, 1, 256), .initial = "1"},
    {"--teacher-forced-decode", NULL, NULL, "decode the text's own tokens instead of the most probable ones",
     OPTION_SET(struct options, teacher_forced, true), .rare = true},
    {"--ctx-alloc", NULL, "N", "context of the sessions (default: --ctx-max, -n and one more)",
     OPTION_INT(struct options, ctx_alloc, 1, INT_MAX), .rare = true},
};

static const struct option result_rows[] = {
    {"--csv", NULL, "FILE", "where the rows go (default: standard output)", OPTION_OUT(struct options, csv)},
    {"--compare", NULL, "OLD.csv", "at the end, each speed beside that of an earlier run",
     OPTION_TEXT(struct options, compare)},
    {"--dump-frontier-logits-dir", NULL, "DIR", "write the logits of every length to DIR/frontier_NNNNNN.logits.json",
     OPTION_TEXT(struct options, dump_logits_dir), .rare = true},
};

static const struct help_section measure_section = {
    .topic = "measuring",
    .title = "Measuring",
    .text =
        "At each length of the context the new part of the text is read (prefill), then tokens are decoded, whose "
        "history is dropped again. Before and between, the machine itself is measured: what its threads read from the "
        "memory that holds the model, and multiply without any memory. For each length a line says which share of that "
        "the model's own products and weights were. Other programs that run meanwhile make all of "
        "it slower; the line `machine' says how far its measurements lie apart, and how much more than one thread two "
        "do.",
    HELP_ROWS(measure_rows)};

static const struct help_section result_section = {
    .topic = "results",
    .title = "Results",
    .text =
        "One row per length: ctx_tokens, prefill_tokens, prefill_tps, gen_tokens, gen_tps, gen_first_ms, "
        "gen_steady_tokens, gen_steady_tps, kvcache_bytes (of one history). Everything else goes to standard error.",
    HELP_ROWS(result_rows)};

static const struct help_part parts[] = {
    {&runtime_section, offsetof(struct options, runtime)},
    {&measure_section},
    {&result_section},
    {&help_on_help},
    {&help_on_status},
    {&help_on_environment},
};

static const struct help_example examples[] = {
    {NULL, "ds4-bench -m model.gguf --prompt-file novel.txt --ctx-max 8192 --csv new.csv"},
    {"results", "ds4-bench -m model.gguf --prompt-file novel.txt --compare new.csv"},
};

static const struct help_program program = {
    .name = "ds4-bench",
    .summary = "measure how fast a model reads and writes",
    .usage = "-m FILE --prompt-file FILE [options]",
    .see_also = "ds4(1), ds4-gguf(1)",
    .parts = parts,
    .n_parts = sizeof parts / sizeof parts[0],
    .examples = examples,
    .n_examples = sizeof examples / sizeof examples[0],
};

static void check(struct args *a, struct options *o)
{
    const int64_t most = (int64_t)o->frontiers.max + o->n_tokens;
    if (!o->runtime.n_models)
        args_mistake(a, "no model; give one with -m FILE (see ds4-bench --help)");
    else if (!o->prompt_file == !o->chat_prompt_file)
        args_mistake(a, "give one of --prompt-file and --chat-prompt-file");
    else if (o->frontiers.start > o->frontiers.max)
        args_mistake(a, "--ctx-start %d is above --ctx-max %d", o->frontiers.start, o->frontiers.max);
    else if (most >= INT_MAX)
        args_mistake(a, "--ctx-max %d and -n %d are too much together", o->frontiers.max, o->n_tokens);
    else if (o->ctx_alloc && o->ctx_alloc <= most)
        args_mistake(a, "--ctx-alloc %d must be above --ctx-max and -n together, %lld", o->ctx_alloc, (long long)most);
    else if (o->runtime.ctx)
        args_mistake(a, "the context is set with --ctx-alloc here, not with -c");
    if (!o->ctx_alloc) o->ctx_alloc = (int)most + 1;
}

bool options_parse(int argc, char **argv, struct options *o, int *status)
{
    struct args a = {.program = program.name, .argv = argv, .argc = argc, .at = 1};
    *o = (struct options){0};
    if (!option_scan(&a, &program, NULL, o, status)) return false;
    check(&a, o);
    *status = 2;
    return !a.bad;
}
