/* Standard streams that are closed or full. */
#include "base/std_streams.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void std_streams_hold(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        /* The lowest free number is fd; opened the wrong way round, so that use fails with EBADF. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
    }
}

int std_streams_end(const char *program, int status)
{
    const int lost = ferror(stdout);
    errno = 0;
    if (!fflush(stdout) && !lost) return status;
    if (status) return status;
    fprintf(stderr, "%s: standard output: cannot write%s%s\n", program, errno ? ": " : "",
            errno ? strerror(errno) : "");
    return 1;
}
