#include "chat_commands.h"
#include <stddef.h>

const struct chat_command chat_commands[] = {
    {"Ctrl-C", NULL, "stop the answer; while a line is typed: drop it"},
    {"Ctrl-D", NULL, "leave; a session file is saved then"},
};
const int chat_n_commands = sizeof chat_commands / sizeof *chat_commands;
