/* Names of files that are parts of something: shards of a split set, "PREFIX-00002-of-00005.gguf", and raw pieces of
 * one file, "NAME.gguf.part2of3" (spec dialects 2.1). */
#ifndef GGUF_SHARD_NAME_H
#define GGUF_SHARD_NAME_H
#include <stdbool.h>
#include "base/str.h"

struct shard_name {
    const char *path;     /* as given to shard_name_parse */
    int stem;             /* its bytes before the number, with folder and hyphen */
    int no, n;            /* 1 <= no <= n */
    int width, n_width;   /* digits of no and n as written, 1 to 6 */
    const char *from_end; /* "-of-00005.gguf" in path */
};

/* False: path is not so named. */
bool shard_name_parse(const char *path, struct shard_name *s);
/* Path of shard no of the same set in the same folder: padded like the given one, or unpadded, or padded like the
 * count, whichever is there. False, with the first of them: none is. */
bool shard_name_sibling(const struct shard_name *s, int no, struct str *path);

/* For the path of a raw piece: its number ("" if it has none) and a shell command that joins all pieces. False: it is
 * none. */
bool piece_name_parse(const char *path, char number[8], struct str *command);

#endif
