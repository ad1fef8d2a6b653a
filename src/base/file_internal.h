/* Shared by the file_*.c files. */
#ifndef BASE_FILE_INTERNAL_H
#define BASE_FILE_INTERNAL_H
#include "base/err.h"

/* ERR_IO "PATH: cannot WHAT: reason" from errno. */
int file_error(struct err *e, const char *path, const char *what);

#endif
