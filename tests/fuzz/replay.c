/* Runs a fuzz target over its corpus, tests/fuzz/corpus/NAME/ (NAME from the program's own name, replay_NAME), and over
 * a few inputs cut short and the empty one. Reports in the form that tests/run.sh adds up. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A copy of exactly n bytes, so that a sanitizer sees every read past the end. */
static void run(const char *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy) abort();
    if (n) memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static int run_file(const char *path)
{
    struct err e = {0};
    char *data = NULL;
    size_t n = 0;
    if (file_read(path, 64u << 20, &data, &n, &e)) {
        printf("%s\n", e.msg);
        return -1;
    }
    run(data, n);
    for (size_t cut = 1; cut < n; cut *= 3) run(data, n - cut);
    mem_free(data);
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = strstr(argv[0], "replay_");
    if (!name) return 2;
    name += strlen("replay_");
    struct str path = {0};
    str_printf(&path, "tests/fuzz/corpus/%s", name);
    int passed = 1, failed = 0;
    run("", 0);
    DIR *d = opendir(str_c(&path));
    for (struct dirent *f; d && (f = readdir(d));) {
        if (f->d_name[0] == '.') continue;
        str_clear(&path);
        str_printf(&path, "tests/fuzz/corpus/%s/%s", name, f->d_name);
        if (run_file(str_c(&path)) == 0)
            passed++;
        else
            failed++;
    }
    if (d) closedir(d);
    str_free(&path);
    printf("[  PASSED  ] %d test(s).\n", passed);
    if (failed) printf("[  FAILED  ] %d test(s)\n", failed);
    return failed ? 1 : 0;
}
