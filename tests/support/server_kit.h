/* ds4-server of this build as a program beside the test, on a free port, and requests to it. All functions fail the
 * running test if something else comes than was asked for. One that still runs when the test program ends is killed. */
#ifndef SERVER_KIT_H
#define SERVER_KIT_H
#include "http_kit.h"
#include "shell_run.h"
#include "temp_files.h"

struct server_kit {
    struct shell_child child;
    int port;
    char script[TEMP_PATH];
};

/* A temporary file with these lines. */
void server_script(char path[TEMP_PATH], const char *lines);
/* With a script of these lines (docs/scripted-engine.md), or with the options that name a model. */
void server_start(struct server_kit *s, const char *lines, const char *options);
void server_start_with(struct server_kit *s, const char *model, const char *options);
/* Waits for its end, with that exit status. Sanitizers end programs with others if they have found something. */
void server_ended(struct server_kit *s, int status);
/* SIGTERM, and the end with status 0. */
void server_stop(struct server_kit *s);

#define SERVER_JSON "Content-Type: application/json\r\n"
void server_post(const struct server_kit *s, const char *path, const char *body, struct http_answer *a);
void server_get(const struct server_kit *s, const char *path, struct http_answer *a);
/* The answer has that status, and part in its body. */
void server_said(const struct http_answer *a, int status, const char *part);

#endif
