/* The line is rewritten at most five times a second and never longer than the terminal is wide. */
#include "work_progress.h"
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/str.h"

enum { USUAL_COLUMNS = 80 };

static int columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : USUAL_COLUMNS;
}

void work_progress_begin(struct work_progress *p, uint64_t total_bytes)
{
    *p = (struct work_progress){.on = isatty(STDERR_FILENO), .total = total_bytes, .start = clock_s()};
}

static void show(const struct work_progress *p, const char *what, double seconds)
{
    const double done = (double)p->done, rate = seconds > 0 ? done / seconds : 0;
    struct str s = {0};
    const bool large = p->total >= 1000000000;
    str_printf(&s, "%d %% of %.1f %s", (int)(100 * done / (double)p->total), (double)p->total * (large ? 1e-9 : 1e-6),
               large ? "GB" : "MB");
    if (seconds > 1 && rate > 0)
        str_printf(&s, ", %.0f MB/s, %.0f s left", rate * 1e-6, ((double)p->total - done) / rate);
    str_printf(&s, ": %s", what);
    const int room = columns() - 1;
    fprintf(stderr, "\r%.*s\033[K", room > 0 ? room : 0, str_c(&s));
    str_free(&s);
}

void work_progress_add(struct work_progress *p, const char *what, uint64_t n)
{
    const double now = clock_s();
    p->done += n;
    if (!p->on || !p->total || (p->shown > 0 && now - p->shown < 0.2)) return;
    show(p, what, now - p->start);
    p->shown = now;
}

void work_progress_end(struct work_progress *p)
{
    if (p->on && p->shown > 0) fputs("\r\033[K", stderr);
    p->on = false;
}
