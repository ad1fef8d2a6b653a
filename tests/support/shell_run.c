/* popen and what comes out of it. */
#include "shell_run.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

int shell_run(const char *command, struct str *said)
{
    char part[4096];
    FILE *p = popen(command, "r");
    assert_non_null(p);
    str_clear(said);
    for (size_t n; (n = fread(part, 1, sizeof part, p)) > 0;) str_add(said, part, n);
    const int status = pclose(p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void shell_expect(const char *command, int status, const char *part)
{
    struct str said = {0};
    const int got = shell_run(command, &said);
    if (got != status || !strstr(str_c(&said), part))
        fail_msg("%s\n%d instead of %d, \"%s\" in:\n%s", command, got, status, part, str_c(&said));
    str_free(&said);
}
