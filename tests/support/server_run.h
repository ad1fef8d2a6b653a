/* ds4-server as a program beside the test, on a free port. All functions fail the running test, those that start and
 * end it with what it printed. */
#ifndef SERVER_RUN_H
#define SERVER_RUN_H
#include "http_kit.h"
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

#define SERVER_JSON "Content-Type: application/json\r\n"

/* A request on a connection of its own; *a is replaced. */
void server_post(const struct server_run *s, const char *path, const char *body, struct http_answer *a);
void server_get(const struct server_run *s, const char *path, struct http_answer *a);
/* The answer must have this status, and this in its body. */
void server_said(const struct http_answer *a, int status, const char *part);
/* A new connection, on which the request was sent. */
int server_send(const struct server_run *s, const char *path, const char *body);

#endif
