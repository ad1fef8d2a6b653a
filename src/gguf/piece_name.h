/* Raw pieces of one file, as split and its like cut it: "m.gguf.part2of3", "m.gguf.ab", "m.gguf-split-b", "m.gguf.002",
 * "xab" (spec dialects 2.1). Put behind one another in the order of their names they are the file again. */
#ifndef GGUF_PIECE_NAME_H
#define GGUF_PIECE_NAME_H
#include <stdbool.h>
#include "base/str.h"

/* For the path of a piece what it is and what to do, a clause that begins with "is": the shell command that joins the
 * pieces, and which of them are missing in its folder. False: it is not so named. */
bool piece_name_tell(const char *path, struct str *what);

#endif
