/* One loop moves bytes between program and emulator until a condition holds. */
#include "terminal_kit.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"

static const double patience_s = 60; /* a loaded machine, sanitizers */

/* ---------------------------------------------------------------- the emulator */

static void add_cell(const VTermScreenCell *cell, struct str *out)
{
    for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell->chars[i] && cell->chars[i] != UINT32_MAX; i++) {
        const uint32_t c = cell->chars[i];
        char bytes[4];
        int n = 0;
        if (c < 0x80) bytes[n++] = (char)c;
        if (c >= 0x80 && c < 0x800) bytes[n++] = (char)(0xC0 | c >> 6);
        if (c >= 0x800 && c < 0x10000) bytes[n++] = (char)(0xE0 | c >> 12);
        if (c >= 0x10000) bytes[n++] = (char)(0xF0 | c >> 18), bytes[n++] = (char)(0x80 | (c >> 12 & 0x3F));
        if (c >= 0x800) bytes[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        if (c >= 0x80) bytes[n++] = (char)(0x80 | (c & 0x3F));
        str_add(out, bytes, (size_t)n);
    }
    if (!cell->chars[0]) str_puts(out, " ");
}

static void trim(struct str *s)
{
    while (s->n && s->p[s->n - 1] == ' ') s->p[--s->n] = 0;
}

static void add_row(struct terminal *t, int row, struct str *out)
{
    for (int column = 0; column < t->columns; column++) {
        VTermScreenCell cell;
        vterm_screen_get_cell(t->screen, (VTermPos){row, column}, &cell);
        add_cell(&cell, out);
        if (cell.width > 1) column += cell.width - 1;
    }
    trim(out);
}

static int on_line_above(int columns, const VTermScreenCell *cells, void *user)
{
    struct terminal *t = user;
    for (int i = 0; i < columns; i++) {
        add_cell(&cells[i], &t->above);
        if (cells[i].width > 1) i += cells[i].width - 1;
    }
    trim(&t->above);
    str_puts(&t->above, "\n");
    return 1;
}

static int on_property(VTermProp property, VTermValue *value, void *user)
{
    struct terminal *t = user;
    if (property == VTERM_PROP_CURSORVISIBLE) t->cursor_hidden = !value->boolean;
    return 1;
}

static void on_keys(const char *bytes, size_t n, void *user)
{
    struct terminal *t = user;
    str_add(&t->keys, bytes, n);
}

static void emulator_start(struct terminal *t)
{
    static const VTermScreenCallbacks callbacks = {.sb_pushline = on_line_above, .settermprop = on_property};
    t->vt = vterm_new(t->rows, t->columns);
    vterm_set_utf8(t->vt, 1);
    vterm_output_set_callback(t->vt, on_keys, t);
    t->screen = vterm_obtain_screen(t->vt);
    vterm_screen_set_callbacks(t->screen, &callbacks, t);
    vterm_screen_reset(t->screen, 1);
    vterm_state_set_bold_highbright(vterm_obtain_state(t->vt), 0);
}

const char *terminal_text(struct terminal *t)
{
    static struct str text;
    str_clear(&text);
    str_add(&text, str_c(&t->above), t->above.n);
    for (int row = 0; row < t->rows; row++) {
        add_row(t, row, &text);
        str_puts(&text, "\n");
    }
    return str_c(&text);
}

/* Messages of cmocka are cut off after a thousand characters. */
static void print_screen(struct terminal *t)
{
    const char *p = terminal_text(t), *end = p + strlen(p);
    while (end > p && end[-1] == '\n') end--;
    for (const char *line_end; p < end; p = line_end + 1) {
        line_end = memchr(p, '\n', (size_t)(end - p));
        line_end = line_end ? line_end : end;
        print_error("| %.*s\n", (int)(line_end - p), p);
    }
}

const char *terminal_cursor_row(struct terminal *t)
{
    static struct str text;
    VTermPos at;
    vterm_state_get_cursorpos(vterm_obtain_state(t->vt), &at);
    str_clear(&text);
    add_row(t, at.row, &text);
    return str_c(&text);
}

static const char *style_of(const VTermScreenCell *cell)
{
    static char style[32];
    const int n =
        snprintf(style, sizeof style, "%s%s%s%s", cell->attrs.bold ? ";1" : "", cell->attrs.italic ? ";3" : "",
                 cell->attrs.underline ? ";4" : "", cell->attrs.reverse ? ";7" : "");
    const int colour = VTERM_COLOR_IS_INDEXED(&cell->fg) ? cell->fg.indexed.idx : -1;
    if (!VTERM_COLOR_IS_DEFAULT_FG(&cell->fg))
        snprintf(style + n, sizeof style - (size_t)n, ";%d", colour < 8 ? 30 + colour : 90 + colour - 8);
    return *style ? style + 1 : style;
}

const char *terminal_style(struct terminal *t, const char *text)
{
    for (int row = 0; row < t->rows; row++)
        for (int column = 0; column < t->columns; column++) {
            struct str from = {0};
            VTermScreenCell first, cell;
            vterm_screen_get_cell(t->screen, (VTermPos){row, column}, &first);
            for (int i = column; i < t->columns && from.n < strlen(text); i++) {
                vterm_screen_get_cell(t->screen, (VTermPos){row, i}, &cell);
                add_cell(&cell, &from);
            }
            const bool here = !strcmp(str_c(&from), text);
            str_free(&from);
            if (here) return style_of(&first);
        }
    print_screen(t);
    fail_msg("\"%s\" is not in the window", text);
    return "";
}

bool terminal_wants_pastes(struct terminal *t)
{
    str_clear(&t->keys);
    vterm_keyboard_start_paste(t->vt);
    const bool wants = t->keys.n > 0;
    str_clear(&t->keys);
    return wants;
}

/* ---------------------------------------------------------------- the program */

static void run(const char *const *argv, const char *const *changes)
{
    setpgid(0, 0);
    tcsetpgrp(STDIN_FILENO, getpid());
    signal(SIGTTOU, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    unsetenv("LC_ALL");
    unsetenv("LC_CTYPE");
    unsetenv("NO_COLOR");
    setenv("LANG", "C", 1);
    setenv("TERM", "xterm-256color", 1);
    for (; changes && *changes; changes++) putenv((char *)(uintptr_t)*changes);
    execvp(*argv, (char **)(uintptr_t)argv);
    _exit(127);
}

static void tell(int fd, int news)
{
    if (write(fd, &news, sizeof news) != sizeof news) _exit(1);
}

/* Leads the session: tells the program's number, then how it stopped or ended, and stays until it is let go. */
static void keep_session(const char *name, int news, int keep, const char *const *argv, const char *const *changes)
{
    int status = 0;
    char byte;
    setsid();
    const int fd = open(name, O_RDWR);
    ioctl(fd, TIOCSCTTY, 0);
    for (int i = 0; i < 3; i++) dup2(fd, i);
    close(fd);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    const pid_t pid = fork();
    if (pid < 0) _exit(1);
    if (!pid) run(argv, changes);
    tell(news, (int)pid);
    do {
        if (waitpid(pid, &status, WUNTRACED) == pid) tell(news, status);
    } while (!WIFEXITED(status) && !WIFSIGNALED(status));
    while (read(keep, &byte, 1) > 0) continue;
    _exit(0);
}

static int ask(const struct terminal *t)
{
    int news = 0;
    assert_int_equal(read(t->news, &news, sizeof news), sizeof news);
    return news;
}

static void pipe_make(int ends[2])
{
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
}

void terminal_start(struct terminal *t, int rows, int columns, const char *const *argv, const char *const *changes)
{
    int news[2], keep[2];
    *t = (struct terminal){.rows = rows, .columns = columns, .fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    const char *name = t->fd >= 0 && !grantpt(t->fd) && !unlockpt(t->fd) ? ptsname(t->fd) : NULL;
    t->slave = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
    if (t->slave < 0) {
        if (t->fd >= 0) close(t->fd);
        skip();
    }
    assert_int_equal(tcgetattr(t->slave, &t->before), 0);
    fcntl(t->fd, F_SETFL, O_NONBLOCK);
    pipe_make(news);
    pipe_make(keep);
    emulator_start(t);
    terminal_resize(t, rows, columns);
    t->keeper = fork();
    assert_true(t->keeper >= 0);
    if (!t->keeper) {
        close(t->fd);
        close(t->slave);
        close(keep[1]);
        keep_session(name, news[1], keep[0], argv, changes);
    }
    close(news[1]);
    close(keep[0]);
    t->news = news[0];
    t->keep = keep[1];
    t->pid = (pid_t)ask(t);
}

void terminal_resize(struct terminal *t, int rows, int columns)
{
    const struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    t->rows = rows, t->columns = columns;
    vterm_set_size(t->vt, rows, columns);
    assert_int_equal(ioctl(t->fd, TIOCSWINSZ, &size), 0);
}

/* ---------------------------------------------------------------- moving bytes */

/* True if there was something. */
static bool take_output(struct terminal *t)
{
    char bytes[4096];
    const ssize_t n = read(t->fd, bytes, sizeof bytes);
    if (n > 0) vterm_input_write(t->vt, bytes, (size_t)n);
    return n > 0;
}

static void send_keys(struct terminal *t)
{
    const ssize_t n = write(t->fd, t->keys.p, t->keys.n);
    if (n <= 0) return;
    t->keys.n -= (size_t)n;
    memmove(t->keys.p, t->keys.p + n, t->keys.n);
}

static void take_news(struct terminal *t)
{
    const int status = ask(t);
    t->stopped = WIFSTOPPED(status);
    t->ended = !t->stopped;
    t->status = status;
}

/* Waits for output, room for keys, or news of the program; false when it has ended and all output is taken. */
static bool move(struct terminal *t, double until)
{
    struct pollfd p[2] = {{.fd = t->fd, .events = POLLIN}, {.fd = t->news, .events = POLLIN}};
    const double left = until - clock_s();
    if (t->keys.n) p[0].events |= POLLOUT;
    poll(p, t->ended ? 1 : 2, t->ended || left < 0 ? 0 : (int)(left * 1000) + 1);
    if (p[0].revents & POLLOUT && t->keys.n) send_keys(t);
    const bool some = p[0].revents & POLLIN && take_output(t);
    if (!t->ended && p[1].revents) take_news(t);
    return some || !t->ended;
}

static bool shows(struct terminal *t, const char *text)
{
    return strstr(terminal_text(t), text) != NULL;
}

/* Until done(t, what, count) or the end of patience. */
static void await(struct terminal *t, bool (*done)(struct terminal *, const char *, int), const char *what, int count,
                  const char *wanted)
{
    const double until = clock_s() + patience_s;
    bool alive = true;
    while (!done(t, what, count)) {
        if (!alive || clock_s() > until) {
            print_screen(t);
            fail_msg("\"%s\"%s%s", what, wanted, alive ? "" : " before the program ended");
        }
        alive = move(t, until);
    }
}

static bool is_shown(struct terminal *t, const char *text, int count)
{
    const char *p = terminal_text(t);
    while (count && (p = strstr(p, text))) p += strlen(text), count--;
    return !count;
}

static bool is_gone(struct terminal *t, const char *text, int count)
{
    return !shows(t, text);
}

static bool is_row(struct terminal *t, const char *row, int count)
{
    return !strcmp(terminal_cursor_row(t), row);
}

static bool wants_pastes(struct terminal *t, const char *what, int count)
{
    return terminal_wants_pastes(t);
}

static bool is_stopped(struct terminal *t, const char *what, int count)
{
    return t->stopped;
}

static bool is_sent(struct terminal *t, const char *what, int count)
{
    return !t->keys.n;
}

void terminal_await(struct terminal *t, const char *text)
{
    await(t, is_shown, text, 1, " did not come");
}

void terminal_await_count(struct terminal *t, const char *text, int count)
{
    await(t, is_shown, text, count, " did not come so often");
}

void terminal_await_gone(struct terminal *t, const char *text)
{
    await(t, is_gone, text, 0, " did not go away");
}

void terminal_await_row(struct terminal *t, const char *row)
{
    await(t, is_row, row, 0, " did not become the row of the cursor");
}

void terminal_await_pastes(struct terminal *t)
{
    await(t, wants_pastes, "the wish for marked pastes", 0, " did not come");
}

void terminal_await_stop(struct terminal *t)
{
    await(t, is_stopped, "a stop", 0, " did not come");
    t->stopped = false;
}

void terminal_expect(struct terminal *t, const char *text)
{
    if (shows(t, text)) return;
    print_screen(t);
    fail_msg("no \"%s\"", text);
}

void terminal_expect_not(struct terminal *t, const char *text)
{
    if (!shows(t, text)) return;
    print_screen(t);
    fail_msg("\"%s\" is there", text);
}

void terminal_type(struct terminal *t, const char *text)
{
    str_puts(&t->keys, text);
    await(t, is_sent, "keys", 0, " were not taken");
}

void terminal_send_paste(struct terminal *t, const char *text)
{
    vterm_keyboard_start_paste(t->vt);
    for (; *text; text++) str_add(&t->keys, *text == '\n' ? "\r" : text, 1);
    vterm_keyboard_end_paste(t->vt);
    await(t, is_sent, "the paste", 0, " was not taken");
}

/* ---------------------------------------------------------------- the end */

static void check_modes(const struct terminal *t)
{
    struct termios now;
    assert_int_equal(tcgetattr(t->slave, &now), 0);
    assert_int_equal(now.c_iflag, t->before.c_iflag);
    assert_int_equal(now.c_oflag, t->before.c_oflag);
    assert_int_equal(now.c_cflag, t->before.c_cflag);
    assert_int_equal(now.c_lflag, t->before.c_lflag);
    assert_memory_equal(now.c_cc, t->before.c_cc, sizeof now.c_cc);
}

static void check_pen(struct terminal *t)
{
    static const VTermAttr flags[] = {VTERM_ATTR_BOLD, VTERM_ATTR_UNDERLINE, VTERM_ATTR_ITALIC, VTERM_ATTR_REVERSE};
    VTermState *state = vterm_obtain_state(t->vt);
    VTermValue v;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        vterm_state_get_penattr(state, flags[i], &v);
        assert_int_equal(v.number, 0);
    }
    vterm_state_get_penattr(state, VTERM_ATTR_FOREGROUND, &v);
    assert_true(VTERM_COLOR_IS_DEFAULT_FG(&v.color));
}

void terminal_expect_restored(struct terminal *t)
{
    check_modes(t);
    check_pen(t);
    assert_false(terminal_wants_pastes(t));
    assert_false(t->cursor_hidden);
}

int terminal_end(struct terminal *t)
{
    const double until = clock_s() + patience_s;
    while (move(t, until)) {
        if (clock_s() < until) continue;
        print_screen(t);
        fail_msg("the program does not end");
    }
    terminal_expect_restored(t);
    close(t->keep);
    assert_int_equal(waitpid(t->keeper, NULL, 0), t->keeper);
    vterm_free(t->vt);
    close(t->fd);
    close(t->slave);
    close(t->news);
    str_free(&t->above);
    str_free(&t->keys);
    return t->status;
}
