/* tests/run.sh: what counts as a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../support/shell_run.h"
#include "../support/temp_files.h"

#define ENDS "echo '[  PASSED  ] 3 test(s).'"

/* Runs tests/run.sh over programs that are given as shell commands; its last line and exit status are those expected.
 */
static void expect(const char *const *programs, int n, const char *last, int status)
{
    char folder[TEMP_PATH];
    struct str command = {0}, said = {0};
    temp_folder(folder);
    str_puts(&command, "TEST_SECONDS=1 tests/run.sh");
    for (int i = 0; i < n; i++) {
        char path[TEMP_PATH + 16];
        snprintf(path, sizeof path, "%s/%d", folder, i);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "#!/bin/sh\n%s\n", programs[i]);
        fclose(f);
        assert_int_equal(chmod(path, 0700), 0);
        str_printf(&command, " %s", path);
    }
    const int rc = shell_run(str_c(&command), &said);
    str_free(&command);
    assert_int_equal(temp_remove(folder), 0);
    assert_true(said.n >= strlen(last));
    assert_string_equal(said.p + said.n - strlen(last), last);
    assert_int_equal(rc, status);
    str_free(&said);
}

static void all_pass(void **state)
{
    static const char *const programs[] = {ENDS, ENDS, ENDS "; echo '[  SKIPPED ] 2 test(s), listed below:'"};
    expect(programs, 2, "6 passed, 0 failed\n", 0);
    expect(programs, 3, "9 passed, 0 failed, 2 skipped\n", 0);
}

static void no_test_at_all(void **state)
{
    static const char *const programs[] = {"true", "echo '[  PASSED  ] 0 test(s).'", ENDS};
    expect(NULL, 0, "0 passed, 0 failed\n", 1);
    expect(programs, 3, "3 passed, 2 failed\n", 1);
}

static void bad_ends(void **state)
{
    static const char *const programs[] = {"kill -SEGV $$", ENDS "; exit 1", ENDS "; kill -ABRT $$",
                                           ENDS "; echo '[  FAILED  ] 2 test(s), listed below:'; exit 2", ENDS};
    expect(programs, 5, "12 passed, 5 failed\n", 1);
}

static void a_program_that_hangs(void **state)
{
    static const char *const programs[] = {ENDS "; exec sleep 60", ENDS};
    if (system("timeout --foreground 9 true 2>/dev/null")) skip();
    expect(programs, 2, "6 passed, 1 failed\n", 1);
}

static void a_program_that_asks(void **state)
{
    static const char *const programs[] = {"read x; " ENDS};
    expect(programs, 1, "3 passed, 0 failed\n", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pass),
        cmocka_unit_test(no_test_at_all),
        cmocka_unit_test(bad_ends),
        cmocka_unit_test(a_program_that_hangs),
        cmocka_unit_test(a_program_that_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
