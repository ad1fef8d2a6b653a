/* ds4-server as a program beside the test, on a free port. All functions fail the running test with what it printed. */
#ifndef SERVER_RUN_H
#define SERVER_RUN_H
#include "shell_run.h"
#include "temp_files.h"

struct server_run {
    struct shell_child child;
    int port;
    char script[TEMP_PATH]; /* of --scripted, removed at the end; "": none */
};

/* Starts `ds4-server what --port 0 options` and waits until it listens. */
void server_run_start(struct server_run *s, const char *what, const char *options);
/* The same with --scripted and these lines. */
void server_run_script(struct server_run *s, const char *lines, const char *options);
/* Writes lines into a new temporary file. */
void server_run_write(char path[TEMP_PATH], const char *lines);
/* Waits for its end with this status. */
void server_run_ended(struct server_run *s, int status);
/* Ends it with SIGTERM. */
void server_run_stop(struct server_run *s);

#endif
