/* The bar gives up its parts, the least important first, where the terminal is narrow. It uses no escape sequences. */
#include "progress.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/str.h"
#include "common/tty.h"

enum { FEWEST_TOKENS = 64, CELLS = 32, FEWEST_CELLS = 8 };
static const double redraw_s = 0.1;

void progress_begin(struct progress *p)
{
    *p = (struct progress){.terminal = isatty(fileno(stderr)), .told = -1, .begun = clock_s()};
}

/* "prefill [####....] 512/2048 tokens, 25 %, 71.0 t/s", in fewer than `columns` columns. */
static void bar(struct str *out, int done, int total, double rate, int columns)
{
    char count[40], speed[40] = "";
    const int percent = (int)(100.0 * done / total);
    snprintf(count, sizeof count, "%d/%d tokens, ", done, total);
    if (rate > 0) snprintf(speed, sizeof speed, ", %.1f t/s", rate);
    int left = columns - 1 - (int)strlen("prefill 100 %");
    const bool show_count = left >= (int)strlen(count),
               show_speed = (left -= show_count ? (int)strlen(count) : 0) >= 14;
    left -= show_speed ? 14 : 0;
    const int cells = left - 3 < CELLS ? left - 3 : CELLS;
    str_puts(out, "prefill ");
    if (cells >= FEWEST_CELLS) {
        str_puts(out, "[");
        for (int i = 0; i < cells; i++) str_puts(out, i < (int)((double)cells * done / total) ? "#" : ".");
        str_puts(out, "] ");
    }
    str_printf(out, "%s%d %%%s", show_count ? count : "", percent, show_speed ? speed : "");
    if (out->n >= (size_t)columns) str_clear(out);
}

/* What is erased stays on one row of a terminal that has become narrower. */
static int erased(const struct progress *p, int columns)
{
    return p->width < columns ? p->width : columns - 1;
}

static void draw(struct progress *p, int done, int total, double now)
{
    struct str text = {0};
    const int columns = tty_width(stderr);
    bar(&text, done, total, done / (now - p->begun + 1e-9), columns);
    const int width = (int)text.n, rest = erased(p, columns) - width;
    fprintf(stderr, "\r%s%*s", str_c(&text), rest > 0 ? rest : 0, "");
    p->width = width + (rest > 0 ? rest : 0);
    p->drawn = now;
    str_free(&text);
}

void progress_show(void *arg, int done, int total)
{
    struct progress *p = arg;
    const double now = clock_s();
    if (total < FEWEST_TOKENS) return;
    if (p->terminal && (p->drawn == 0 || now - p->drawn >= redraw_s)) draw(p, done, total, now);
    if (!p->terminal && done != p->told)
        fprintf(stderr, "processing %d input tokens: %d/%d (%d%%)\n", total, done, total, (int)(100.0 * done / total));
    p->told = done;
}

void progress_end(struct progress *p)
{
    if (p->width) fprintf(stderr, "\r%*s\r", erased(p, tty_width(stderr)), "");
    p->width = 0;
}
