/* Standard streams, messages and the end of a program. */
#include "base/program.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program_name = "ds4"; /* for what ends the program from anywhere */

static void hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        /* The lowest free number is fd; opened the wrong way round, so that use fails with EBADF. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
    }
}

/* Other threads may be at work, so nothing is cleaned up. */
static void out_of_memory(size_t bytes)
{
    program_say(program_name, "out of memory: %zu bytes were asked for", bytes);
    _exit(1);
}

void program_begin(const char *name)
{
    program_name = name;
    hold_streams();
    signal(SIGXFSZ, SIG_IGN);
    mem_on_failure(out_of_memory);
}

void program_say(const char *name, const char *fmt, ...)
{
    struct err e = {0};
    va_list ap;
    va_start(ap, fmt);
    err_vset(&e, ERR_ARG, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s: %s\n", name, e.msg);
}

int program_failed(const char *name, const struct err *e)
{
    program_say(name, "%s", e->msg);
    return e->code == ERR_ARG ? 2 : 1;
}

int program_end(const char *name, int status)
{
    const int lost = ferror(stdout);
    errno = 0;
    if (!fflush(stdout) && !lost) return status;
    if (status) return status;
    program_say(name, "standard output: cannot write%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
    return 1;
}
