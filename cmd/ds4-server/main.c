/* ds4-server: a model behind HTTP. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"
#include "base/program.h"
#include "options.h"
#include "serve/scripted.h"
#include "serve/served_engine.h"
#include "serve/server.h"

enum { DEFAULT_CTX = 32768 };

static struct server *serving; /* for the signal handler */

/* The first signal lets running answers end, the second one ends the program. */
static void on_signal(int number)
{
    static volatile sig_atomic_t before;
    if (before) _exit(128 + number);
    before = 1;
    server_stop(serving);
}

static void catch_signals(struct server *s)
{
    serving = s;
    const struct sigaction a = {.sa_handler = on_signal};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void log_line(void *arg, enum log_level level, const char *subject, const char *text)
{
    const struct options *o = arg;
    const enum log_level most = o->runtime.verbose ? LOG_DEBUG : o->quiet ? LOG_WARN : LOG_INFO;
    if (level <= most) fprintf(stderr, "ds4-server: %s: %s\n", subject, text);
}

/* All keys; the list and its strings are the caller's. */
static int read_keys(const struct options *o, char ***keys, size_t *n, struct err *e)
{
    *keys = NULL;
    *n = 0;
    if (o->api_key_file && http_keys_read(o->api_key_file, keys, n, e)) return e->code;
    if (!o->api_key) return 0;
    *keys = mem_grow(*keys, (*n + 1) * sizeof **keys);
    (*keys)[(*n)++] = mem_strdup(o->api_key);
    return 0;
}

static int serve_model(const struct options *o, const struct served *model, const char *backend, int ctx, struct err *e)
{
    static const char *const any[] = {"*"};
    char **keys;
    size_t n_keys;
    struct server *s;
    int rc = read_keys(o, &keys, &n_keys, e), status = 1;
    const struct server_options so = {.model = *model,
                                      .backend = backend,
                                      .sessions = o->sessions,
                                      .ctx = ctx,
                                      .max_tokens = o->n_tokens,
                                      .time_limit = o->time_limit,
                                      .repetition_guard = o->repetition_guard,
                                      .tool_ids = (size_t)o->tool_ids,
                                      .journal = o->trace,
                                      .http = {.hosts = o->host,
                                               .n_hosts = (size_t)o->n_hosts,
                                               .port = o->port,
                                               .unix_path = o->unix_path,
                                               .keys = (const char *const *)keys,
                                               .n_keys = n_keys,
                                               .allow_hosts = o->allow_host,
                                               .n_allow_hosts = (size_t)o->n_allow_hosts,
                                               .allow_origins = o->cors ? any : o->allow_origin,
                                               .n_allow_origins = o->cors ? 1 : (size_t)o->n_allow_origins}};
    if (rc == 0) rc = server_open(&so, &s, e);
    if (rc == 0) {
        catch_signals(s);
        for (size_t i = 0; http_address(server_http(s), i); i++)
            fprintf(stderr, "ds4-server: listening on %s\n", http_address(server_http(s), i));
        status = server_run(s);
        server_close(s);
    }
    for (size_t i = 0; i < n_keys; i++) mem_free(keys[i]);
    mem_free(keys);
    return status;
}

static int serve_script(const struct options *o, struct err *e)
{
    struct served model;
    const int ctx = o->runtime.ctx ? o->runtime.ctx : DEFAULT_CTX;
    const struct scripted_options so = {
        .path = o->scripted, .ctx = ctx, .prefill_chunk = o->runtime.engine.prefill_chunk, .sessions = o->sessions};
    if (scripted_open(&so, &model, e)) return 2;
    const int status = serve_model(o, &model, "scripted", ctx, e);
    scripted_close(&model);
    return status;
}

static int serve_engine(struct options *o, struct err *e)
{
    ds4_engine *g;
    struct served model;
    struct ds4_error why = {0};
    struct ds4_memory_plan plan;
    struct ds4_model_info info;
    runtime_prepare(&o->runtime, "ds4-server");
    /* the server keeps a history more than it has answers, and copies one at times */
    o->runtime.engine.sessions = o->sessions + 1;
    if (ds4_engine_open(&o->runtime.engine, &g, &why)) return err_set(e, why.code, "%s", why.message), 1;
    ds4_engine_warm(g);
    ds4_engine_plan(g, &plan);
    ds4_engine_info(g, &info);
    log_to(log_line, o, LOG_DEBUG);
    served_engine_open(g, o->sessions, plan.ctx, &model);
    const int status = serve_model(o, &model, info.backend, plan.ctx, e);
    served_engine_close(&model);
    ds4_engine_close(g);
    return status;
}

static int start(struct options *o)
{
    struct err e = {0};
    log_to(log_line, o, LOG_DEBUG);
    const int status = o->scripted ? serve_script(o, &e) : serve_engine(o, &e);
    if (e.code) fprintf(stderr, "ds4-server: %s\n", e.msg);
    return status;
}

int main(int argc, char **argv)
{
    static struct options o;
    int status;
    program_begin("ds4-server");
    if (options_parse(argc, argv, &o, &status)) status = start(&o);
    return program_end("ds4-server", status);
}
