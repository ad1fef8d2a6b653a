/* One line per request. */
#include <stdio.h>
#include "base/clock.h"
#include "base/log.h"
#include "serve/scheduler_internal.h"

static double rate(int tokens, double seconds)
{
    return seconds > 0 ? tokens / seconds : 0;
}

void request_log(const struct scheduler *s, const struct slot *t, const char *finish)
{
    const struct job *j = t->job;
    const struct usage *u = &t->usage;
    const int read = slot_read(t);
    char part[40] = "";
    if (!t->answering) snprintf(part, sizeof part, "%d more ", read);
    const double now = clock_s(), read_s = t->answering ? t->read_s : now - j->placed;
    log_msg(LOG_INFO, "request",
            "%s #%llu: queued %.0f ms, prompt %d tokens, %d cached (%s), %sread at %.1f t/s, answer %d tokens (%d "
            "reasoning) at %.1f t/s, %s",
            j->ask.who, (unsigned long long)j->number, 1e3 * (j->placed - j->arrived), u->prompt, u->cached, t->why,
            part, rate(read, read_s), u->completion, u->reasoning,
            t->answering ? rate(u->completion, now - t->began) : 0, finish);
}
