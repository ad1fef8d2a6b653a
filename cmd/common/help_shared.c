/* Sections of help that all programs have. */
#include "help.h"

static const struct option on_help[] = {
    {"-h", "--help", "[TOPIC]", "print help, on a TOPIC or the most needed", .kind = OPTION_HELP},
    {"--version", NULL, NULL, "print the program's name and version", .kind = OPTION_VERSION},
};

static const struct option on_status[] = {
    {"0", NULL, NULL, "done, or help or the version that was asked for"},
    {"1", NULL, NULL, "failed: a file, a model, memory, the machine, or output that cannot be written"},
    {"2", NULL, NULL, "wrong use: an option, its value, or what is missing"},
    {"130", NULL, NULL, "ended by Ctrl-C; as a shell says it, 128 and the number of the signal"},
    {"143", NULL, NULL, "ended by kill"},
};

static const struct option on_environment[] = {
    {"NO_COLOR", NULL, NULL, "set to anything: no colours"},
    {"TERM", NULL, NULL, "the terminal; none or \"dumb\": no colours"},
};

const struct help_section help_on_help = {.title = "Help", HELP_ROWS(on_help)};
const struct help_section help_on_status = {
    .topic = "status",
    .title = "Exit status",
    .text = "What goes wrong is said in one sentence on standard error, \"PROGRAM: what, where, what to do\".",
    HELP_ROWS(on_status),
    .rare = true};
const struct help_section help_on_environment = {.title = "Environment",
                                                 .text = "No variable changes what is computed; options do.",
                                                 HELP_ROWS(on_environment),
                                                 .rare = true};
