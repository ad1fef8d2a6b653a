/* Names of the shards of a split set, "PREFIX-00002-of-00005.gguf" (spec dialects 2.1). */
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

/* A name that was changed behind its numbers, as browsers and copying do, "m-00002-of-00003 (1).gguf": what it should
 * be. False: it holds no numbers of a shard. */
bool shard_name_own(const char *path, struct str *own);
/* Path of a file in the same folder that has the name of shard no up to its numbers, and not behind them. */
bool shard_name_stray(const struct shard_name *s, int no, struct str *path);

/* True of names that downloads have until they are finished. */
bool name_is_unfinished(const char *path);

/* The name behind folders. */
const char *last_part(const char *path);
/* What cannot be looked at, and a link to nothing, is taken to be there: opening it tells why. */
bool part_is_there(const char *path);

#endif
