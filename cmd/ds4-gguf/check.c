/* ds4-gguf check: whether ds4 will run the model in these files, and what is odd about them. */
#include <limits.h>
#include "base/program.h"
#include "commands.h"
#include "common/check_file.h"
#include "ds4.h"

enum { MOST_FILES = 64 };

struct check_command {
    const char *paths[MOST_FILES];
    int n_paths, ctx, threads;
    bool json, headers;
};

static const struct option rows[] = {
    {"FILE", NULL, NULL, "a file, any shard of a split set, or several: those of one model",
     OPTION_LIST(struct check_command, paths, n_paths)},
    {"--json", NULL, NULL, "one JSON object instead of text", OPTION_SET(struct check_command, json, true)},
    {"--headers", NULL, NULL, "without reading the weights and measuring speeds: damage inside them stays unseen",
     OPTION_SET(struct check_command, headers, true)},
    {"-c", "--ctx", "N", "context of the memory plan, in tokens (default: 32768, or the model's if that is less)",
     OPTION_INT(struct check_command, ctx, DS4_CTX_MIN, INT_MAX)},
    {"-t", "--threads", "N", "threads (default: one per core)", OPTION_INT(struct check_command, threads, 1, 1024)},
};

const struct help_section check_section = {
    .topic = "check",
    .title = "whether ds4 will run a model, and what is odd about its files",
    .usage = "[options] FILE [FILE2 ...]",
    .text = "Tells what the model is and whose conversion; what was derived, assumed or ignored; sizes and "
            "types by group; warnings, numbered W1 to W12; the memory that it needs here and the speed to expect. All "
            "weights are read once, for scales and numbers that are NaN or infinite.\n"
            "The last line is 'will run', or 'will not run:' and why; the exit status is 0 or 1.",
    HELP_ROWS(rows)};

int command_check(int argc, char **argv)
{
    struct args a = {.program = "ds4-gguf check", .argv = argv, .argc = argc};
    struct check_command o = {0};
    int status;
    if (!option_scan(&a, &gguf_program, &check_section, &o, &status)) return status;
    if (!o.n_paths) args_mistake(&a, "no file given");
    if (a.bad) return 2;
    const struct check_options co = {.paths = o.paths,
                                     .n_paths = o.n_paths,
                                     .ctx = o.ctx,
                                     .threads = o.threads,
                                     .json = o.json,
                                     .headers = o.headers};
    return check_file(&co) ? 0 : 1;
}
