#include "demo_model.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

void demo_model_convert(const char *options, char path[DEMO_PATH_MAX])
{
    char command[1024], said[4096];
    strcpy(path, "/tmp/ds4_demo_XXXXXX");
    const int fd = mkstemp(path);
    if (fd < 0) fail_msg("no file in /tmp");
    close(fd);
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf convert --overwrite %s models/demo -o %s 2>&1", options,
             path);
    FILE *f = popen(command, "r");
    if (!f) fail_msg("cannot run %s", command);
    said[fread(said, 1, sizeof said - 1, f)] = 0;
    if (pclose(f) != 0) fail_msg("%s\n%s", command, said);
}
