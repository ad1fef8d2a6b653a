#include "sampling.h"
#include <limits.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"

static const struct option options[] = {
    {"--think", NULL, NULL, "think before the answer (the default)",
     OPTION_SET(struct sampling_options, think, DS4_THINK_HIGH)},
    {"--think-max", NULL, NULL, "think as much as the model can; needs --ctx 393216 or more",
     OPTION_SET(struct sampling_options, think, DS4_THINK_MAX)},
    {"--nothink", NULL, NULL, "answer at once", OPTION_SET(struct sampling_options, think, DS4_THINK_OFF)},
    {"--temp", NULL, "F", "temperature, 0 to 100; 0: always the most probable token",
     OPTION_FLOAT(struct sampling_options, draw.temperature, 0, 100), .initial = "1"},
    {"--top-k", NULL, "N", "only the N most probable tokens; 0: all",
     OPTION_INT(struct sampling_options, draw.top_k, 0, INT_MAX), .initial = "0"},
    {"--top-p", NULL, "F", "only the most probable tokens that sum up to F",
     OPTION_FLOAT(struct sampling_options, draw.top_p, 0, 1), .initial = "1"},
    {"--min-p", NULL, "F", "only tokens at least F times as probable as the first",
     OPTION_FLOAT(struct sampling_options, draw.min_p, 0, 1), .initial = "0.05"},
    {"--seed", NULL, "N",
     "seed of the drawing, from 1: the same seed, the same answer (default: another one each time)",
     OPTION_SEED(struct sampling_options, draw.seed)},
};

const struct help_section sampling_section = {
    .topic = "sampling", .title = "Thinking and sampling", HELP_ROWS(options)};

uint64_t sampling_seed(void)
{
    const uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32 ^ clock_ns();
    return seed ? seed : 1;
}
