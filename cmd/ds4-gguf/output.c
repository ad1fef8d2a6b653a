#include "output.h"
#include <sys/stat.h>

int output_check(const char *path, bool overwrite, struct err *e)
{
    struct stat st;
    if (stat(path, &st)) return 0;
    if (S_ISDIR(st.st_mode)) return err_set(e, ERR_IO, "%s: is a folder, not a file to write", path);
    return overwrite || !S_ISREG(st.st_mode) ? 0 : err_set(e, ERR_IO, "%s exists; --overwrite replaces it", path);
}
