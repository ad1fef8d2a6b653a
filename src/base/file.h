/* Files: read-only mappings, whole reads, atomic replacement.
 *
 * A mapping can lose pages while it is used (the file is truncated, the disk fails). One process-wide SIGBUS handler
 * replaces such a page with zeros and marks the mapping as lost; users look at file_map_lost at their boundaries and
 * turn it into an error of the step. */
#ifndef BASE_FILE_H
#define BASE_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct file_map;

/* Maps a regular file read-only as a whole. An empty file is an error; a pipe is one at once, without waiting. */
int file_map_open(const char *path, struct file_map **out, struct err *e);
void file_map_close(struct file_map *m);
const uint8_t *file_map_data(const struct file_map *m);
uint64_t file_map_size(const struct file_map *m);
const char *file_map_path(const struct file_map *m);
/* Device and inode: equal for two mappings of one file, whatever links led to it. */
void file_map_id(const struct file_map *m, uint64_t id[2]);
/* True, and the offset of the first lost page, if a page of the mapping could not be read since it was opened. */
bool file_map_lost(const struct file_map *m, uint64_t *offset);
/* Asks the system to read a range ahead. */
void file_map_willneed(const struct file_map *m, uint64_t offset, uint64_t n);
/* Puts the pages of a range, read if need be, into the page tables, so that nobody stops at them later. False: the
 * system cannot do that. */
bool file_map_populate(const struct file_map *m, uint64_t offset, uint64_t n);
/* Takes the whole pages inside a range out of the mapping, for good: they are read by other means. Nothing else comes
 * to their addresses; whoever reads there is killed by a signal. */
void file_map_release(const struct file_map *m, uint64_t offset, uint64_t n);

/* Opens a file so that reads go past the system's cache, where that can be done (else *cached: reads may come from
 * memory). Reads must then begin and end on borders of 4096 bytes, in the file and in memory. -1 and errno: it cannot
 * be opened. */
int file_open_uncached(const char *path, bool *cached);
/* ERR_IO unless fd is the file of the mapping, and as long as then. */
int file_check_same(const struct file_map *m, int fd, struct err *e);

/* Parts of a mapping as memory of their own. Ranges [from, to) of offsets begin and end on borders of pages
 * (file_load_border: the next one); to may be the one behind the file's end.
 * begin: the range is zeros from now on, that can be written to, in huge pages where the system has them, or in none.
 * read: fills a range that was begun, from a descriptor of the file (file_open_uncached). Several threads may read
 * ranges of one file. Errors name file and offset: it ended, or could not be read. end: nothing writes any more. */
uint64_t file_load_border(const struct file_map *m, uint64_t offset);
int file_load_begin(const struct file_map *m, uint64_t from, uint64_t to, bool huge, struct err *e);
int file_load_read(const struct file_map *m, int fd, uint64_t from, uint64_t to, struct err *e);
void file_load_end(const struct file_map *m, uint64_t from, uint64_t to);

/* Huge pages of the system's cache under a mapping (file_huge.c). Pieces are of FILE_HUGE_BYTES and begin at multiples
 * of them; they lie in the file as a whole.
 * ask: what is read from the disk from now on comes in huge pages, where system and file system can do that.
 * read: reads the pieces in a range of what was asked for of which the cache has nothing; a disk is faster at that
 * than at reading ahead by the system's measure. Pages that cannot be read are left.
 * open: a descriptor, to be closed, of this process's page tables; -1: the system cannot say what lies in them. It is
 * what `tables` is below.
 * look: where a piece is that was asked for; it is mapped, if the cache has all of it. make: has the system put it into
 * a huge page, from the cache or else by reading it from the disk again; fd is open on the file. False: it is in small
 * ones still, as another process has it mapped, or memory is short of huge ones. Both may be called while others read
 * the mapping. */
#define FILE_HUGE_BYTES ((uint64_t)2 << 20)
enum file_huge { FILE_HUGE_ABSENT, FILE_HUGE_SMALL, FILE_HUGE_WHOLE };
void file_huge_ask(const struct file_map *m, uint64_t from, uint64_t to);
void file_huge_read(const struct file_map *m, uint64_t from, uint64_t to);
int file_huge_open(void);
enum file_huge file_huge_look(int tables, const struct file_map *m, uint64_t at);
bool file_huge_make(int tables, const struct file_map *m, int fd, uint64_t at);

/* Reads a whole file (at most max bytes) into memory that the caller frees with mem_free; a zero byte follows. path "-"
 * is stdin. */
int file_read(const char *path, uint64_t max, char **data, size_t *n, struct err *e);

/* True if both names lead to one file that exists. */
bool file_same(const char *a, const char *b);

/* Replaces path atomically: writes go to a temporary file in the same folder, commit flushes, fsyncs and renames. Links
 * are followed; a device or a pipe is written to directly. A folder is an error at once (ERR_IO), as is a file that
 * this process has mapped (ERR_ARG): nobody means to write over a model that is in use. */
struct file_writer;
int file_writer_open(const char *path, struct file_writer **out, struct err *e);
int file_writer_put(struct file_writer *w, const void *data, size_t n, struct err *e);
uint64_t file_writer_at(const struct file_writer *w);         /* bytes written so far */
int file_writer_commit(struct file_writer *w, struct err *e); /* closes and frees w, also on error */
void file_writer_abort(struct file_writer *w);                /* removes the temporary file, frees w; NULL is fine */

#endif
