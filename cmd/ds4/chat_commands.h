/* What one can type in the chat besides questions: a table for help. */
#ifndef CHAT_COMMANDS_H
#define CHAT_COMMANDS_H

struct chat_command {
    const char *name, *argument; /* NULL: there is none */
    const char *help;
};
extern const struct chat_command chat_commands[];
extern const int chat_n_commands;

#endif
