/* The file that a command writes. */
#ifndef OUTPUT_H
#define OUTPUT_H
#include <stdbool.h>
#include "base/err.h"

/* An error if there is something by that name which may not be replaced; before any work is done. */
int output_check(const char *path, bool overwrite, struct err *e);

#endif
