/* A list of what was made, walked at the end of the process that made it (not of its children). */
#include "temp_files.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 };
static char made[MOST][TEMP_PATH]; /* "": free */
static pid_t maker;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path);
}

int temp_remove(const char *path)
{
    for (int i = 0; i < MOST; i++)
        if (strcmp(made[i], path) == 0) made[i][0] = 0;
    return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_all(void)
{
    for (int i = 0; i < MOST && getpid() == maker; i++)
        if (made[i][0]) nftw(made[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void note(const char *path)
{
    int i = 0;
    if (!maker) atexit(remove_all);
    maker = getpid();
    while (i < MOST && made[i][0]) i++;
    if (i == MOST) abort();
    snprintf(made[i], TEMP_PATH, "%s", path);
}

void temp_file(char path[TEMP_PATH])
{
    snprintf(path, TEMP_PATH, "/tmp/ds4-test-XXXXXX");
    const int fd = mkstemp(path);
    if (fd < 0) abort();
    close(fd);
    note(path);
}

void temp_folder(char path[TEMP_PATH])
{
    snprintf(path, TEMP_PATH, "/tmp/ds4-test-XXXXXX");
    if (!mkdtemp(path)) abort();
    note(path);
}

void temp_put(const char *folder, const char *path, const char *text)
{
    char full[1000];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    for (char *p = full + strlen(folder) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(full, 0777);
    }
    FILE *f = fopen(full, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) abort();
}
