/* Handlers only set flags, call functions that POSIX allows there, and write into a pipe that terminal_wait looks at:
 * any thread may run them. */
#include "terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static struct termios found, quiet; /* of standard input */
static bool have_modes;             /* it is a terminal */
static volatile sig_atomic_t mode, pasting, coloured;
static volatile sig_atomic_t interrupted, resized, resumes;
static ds4_session *volatile cancelled_by_interrupt;
static int wake[2] = {-1, -1};

/* A process in the background that touches the terminal is stopped. */
static bool in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void set_modes(const struct termios *t)
{
    while (tcsetattr(STDIN_FILENO, TCSADRAIN, t) && errno == EINTR) continue;
}

static void send(const char *sequence)
{
    if (write(STDOUT_FILENO, sequence, strlen(sequence)) < 0) return;
}

void terminal_give_back(void)
{
    if (have_modes && mode != TERMINAL_AS_FOUND && in_foreground()) tcsetattr(STDIN_FILENO, TCSANOW, &found);
    if (coloured) send("\033[0m");
    if (pasting) send("\033[?2004l");
    coloured = pasting = 0;
}

/* ---------------------------------------------------------------- signals */

static void wake_up(void)
{
    const int why = errno;
    if (write(wake[1], "", 1) < 0) errno = why;
}

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
    ds4_session *s = cancelled_by_interrupt;
    if (s) ds4_session_cancel(s);
    wake_up();
}

/* Lets the signal do what it does to a program that does not know it: at once if it is not blocked here. */
static void surrender(int number)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t one;
    sigaction(number, &usual, NULL);
    raise(number);
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static void on_end(int number)
{
    if (mode == TERMINAL_EDITED && in_foreground()) send("\n");
    terminal_give_back();
    surrender(number);
}

static void resume(void)
{
    if (have_modes && mode == TERMINAL_QUIET && in_foreground()) tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
    resumes++;
    wake_up();
}

static void on_continue(int number)
{
    const int why = errno;
    (void)number;
    resume();
    errno = why;
}

/* Where no shell is there to continue it, the process is not stopped either. */
static void on_stop(int number)
{
    const int why = errno;
    struct sigaction mine;
    sigaction(number, NULL, &mine);
    terminal_give_back();
    surrender(number);
    sigaction(number, &mine, NULL);
    resume();
    errno = why;
}

static void on_resize(int number)
{
    (void)number;
    resized = 1;
    wake_up();
}

static void handle(int number, void (*handler)(int))
{
    const struct sigaction ours = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;
    if (!sigaction(number, NULL, &old) && old.sa_handler != SIG_IGN) sigaction(number, &ours, NULL);
}

void terminal_begin(void)
{
    static const int ends[] = {SIGTERM, SIGHUP, SIGQUIT, SIGABRT};
    have_modes = !tcgetattr(STDIN_FILENO, &found);
    quiet = found;
    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    quiet.c_cc[VMIN] = 1, quiet.c_cc[VTIME] = 0;
    if (pipe(wake)) wake[0] = wake[1] = -1;
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
        fcntl(wake[i], F_SETFL, O_NONBLOCK);
    }
    atexit(terminal_give_back);
    handle(SIGINT, on_interrupt);
    handle(SIGTSTP, on_stop);
    handle(SIGCONT, on_continue);
    handle(SIGWINCH, on_resize);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) handle(ends[i], on_end);
}

void terminal_die_of_interrupt(void)
{
    terminal_give_back();
    surrender(SIGINT);
    _exit(1);
}

bool terminal_interrupted(void)
{
    return interrupted;
}

void terminal_forget_interrupt(void)
{
    interrupted = 0;
}

void terminal_interrupt_cancels(ds4_session *s)
{
    cancelled_by_interrupt = s;
}

/* ---------------------------------------------------------------- modes */

void terminal_mode(enum terminal_mode wanted)
{
    if (!have_modes) return;
    mode = wanted;
    if (wanted != TERMINAL_EDITED) set_modes(wanted == TERMINAL_QUIET ? &quiet : &found);
}

void terminal_paste(bool bracketed)
{
    pasting = true;
    fputs(bracketed ? "\033[?2004h" : "\033[?2004l", stdout);
    fflush(stdout);
    pasting = bracketed;
}

void terminal_coloured(bool on)
{
    coloured = on;
}

int terminal_resumes(void)
{
    return resumes;
}

/* ---------------------------------------------------------------- waiting */

enum terminal_event terminal_wait(void)
{
    static int seen;
    for (char bytes[64];;) {
        struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = wake[0], .events = POLLIN}};
        if (interrupted) return TERMINAL_INTERRUPT;
        if (seen != resumes) return seen = resumes, TERMINAL_RESUMED;
        if (resized) return resized = 0, TERMINAL_RESIZED;
        if (poll(p, 2, -1) < 0) continue;
        if (p[1].revents & POLLIN && read(wake[0], bytes, sizeof bytes) > 0) continue;
        /* Keys behind a Ctrl-C came with it, but after it. */
        if (!interrupted) return TERMINAL_KEYS;
    }
}
