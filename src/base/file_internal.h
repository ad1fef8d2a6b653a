/* Shared by the file_*.c files. */
#ifndef BASE_FILE_INTERNAL_H
#define BASE_FILE_INTERNAL_H
#include <stdbool.h>
#include <sys/stat.h>
#include "base/err.h"

/* ERR_IO "PATH: cannot WHAT: reason" from errno. */
int file_error(struct err *e, const char *path, const char *what);
/* The same of opening, where errno says why it failed: a link to nothing is told as that. */
int file_open_error(struct err *e, const char *path);
/* True if the file of that status is mapped (file_map_open) by this process now. */
bool file_is_mapped(const struct stat *st);

#endif
