/* posix_spawn and wait4; memory is counted by tests/preload/alloc_watch.c. */
#include "watched_run.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "temp_files.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer) || !defined(__GLIBC__)
enum { MEASURES = 0 };
#else
enum { MEASURES = 1 };
#endif

static char counts[TEMP_PATH]; /* the file that alloc_watch writes */

bool watched_measures(void)
{
    return MEASURES;
}

static void counts_write(const uint64_t v[2])
{
    if (!counts[0]) temp_file(counts);
    const int fd = open(counts, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, v, 16) == 16);
    close(fd);
}

static void counts_read(struct watched *w)
{
    uint64_t v[2] = {0};
    const int fd = open(counts, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, v, 16) == 16);
    close(fd);
    w->largest = v[0], w->peak = v[1];
}

/* The environment, with what makes the program measure itself. */
static char **environment(void)
{
    static char file[TEMP_PATH + 16], library[] = "LD_PRELOAD=" TEST_BUILD "/tests/preload/alloc_watch.so";
    static char *list[1000];
    size_t n = 0;
    if (!MEASURES) return environ;
    snprintf(file, sizeof file, "ALLOC_WATCH=%s", counts);
    for (char **p = environ; *p && n < sizeof list / sizeof *list - 3; p++) list[n++] = *p;
    list[n] = file, list[n + 1] = library, list[n + 2] = NULL;
    return list;
}

static pid_t start(const char *const argv[], int errors)
{
    posix_spawn_file_actions_t a;
    pid_t child;
    assert_int_equal(posix_spawn_file_actions_init(&a), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&a, 1, "/dev/null", O_WRONLY, 0), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&a, errors, 2), 0);
    assert_int_equal(posix_spawn(&child, argv[0], &a, NULL, (char *const *)(uintptr_t)argv, environment()), 0);
    posix_spawn_file_actions_destroy(&a);
    return child;
}

/* Until the program closes its standard error; false: it was still at it. */
static bool listen_to(int fd, int seconds, struct str *said)
{
    const uint64_t end = clock_ns() + (uint64_t)seconds * 1000000000u;
    char part[4096];
    for (;;) {
        const uint64_t now = clock_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= end || poll(&p, 1, (int)((end - now) / 1000000) + 1) == 0) return false;
        const ssize_t n = read(fd, part, sizeof part);
        if (n <= 0) return true;
        str_add(said, part, (size_t)n);
    }
}

void watched_run(const char *const argv[], int seconds, struct watched *w)
{
    int ends[2], status;
    struct rusage used;
    str_clear(&w->errors);
    if (MEASURES) counts_write((uint64_t[2]){0});
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = start(argv, ends[1]);
    close(ends[1]);
    const bool ended = listen_to(ends[0], seconds, &w->errors);
    close(ends[0]);
    if (!ended) kill(child, SIGKILL);
    assert_int_equal(wait4(child, &status, 0, &used), child);
    w->status = !ended ? -2 : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    w->cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
             1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    w->largest = w->peak = 0;
    if (MEASURES) counts_read(w);
}

void watched_free(struct watched *w)
{
    str_free(&w->errors);
}
