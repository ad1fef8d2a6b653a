/* The process-wide log sink. The lock covers only the three settings: a sink may itself log. */
#include "base/log.h"
#include "base/str.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

struct log_state {
    log_sink *sink;
    void *arg;
    enum log_level max_level;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_state state = {NULL, NULL, LOG_INFO};

static struct log_state state_now(void)
{
    pthread_mutex_lock(&lock);
    const struct log_state s = state;
    pthread_mutex_unlock(&lock);
    return s;
}

void log_to(log_sink *sink, void *arg, enum log_level max_level)
{
    pthread_mutex_lock(&lock);
    state = (struct log_state){sink, arg, max_level};
    pthread_mutex_unlock(&lock);
}

void log_msg(enum log_level level, const char *subject, const char *fmt, ...)
{
    const struct log_state s = state_now();
    if (level > s.max_level) return;
    struct str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    text_defuse(text.p, text.n);
    if (s.sink)
        s.sink(s.arg, level, subject, str_c(&text));
    else
        fprintf(stderr, "%s: %s\n", subject, str_c(&text));
    str_free(&text);
}
