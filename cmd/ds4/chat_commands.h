/* What one can type in the chat besides questions: one table, from which the chat runs commands, and its /help and the
 * program's help print. */
#ifndef CHAT_COMMANDS_H
#define CHAT_COMMANDS_H
#include <stdbool.h>
#include <stdio.h>
#include "conversation.h"

/* What a command may do beside changing the conversation. */
struct chat_request {
    char *say; /* what the user says next, to be freed with mem_free; NULL: nothing */
    size_t n_say;
    bool leave;
};

struct chat_command {
    const char *name, *argument; /* NULL: there is none; in brackets: it can be left out */
    const char *help;
    /* 0, or an error: then nothing has changed. argument: "" where there is none. NULL: not a command but a key */
    int (*run)(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e);
};
extern const struct chat_command chat_commands[];
extern const int chat_n_commands;

/* The table as help. */
void chat_commands_print(FILE *f);
/* True if the text is a command: one line that begins with a slash. */
bool chat_is_command(const char *text, size_t n);
/* Runs it. An unknown one is an error. */
int chat_command(struct conversation *c, const char *text, struct chat_request *r, struct ds4_error *e);

#endif
