/* Big tables of which a step needs a few rows: never mapped, never held. Rows are read by id with positioned reads, in
 * the background, and decoded to floats by the table's type. Knows neither hashes nor families.
 *
 * Reads go through io_uring where the build has liburing and the system allows it, else through threads; the floats are
 * the same. The file is advised that places are random and pages not wanted again, so that a table larger than memory
 * does not push the weights out of it. What a table itself holds stays below ROWTABLE_MEMORY, whatever is asked for. */
#ifndef ROWTABLE_ROWTABLE_H
#define ROWTABLE_ROWTABLE_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/file.h"
#include "gguf/tensor_view.h"

enum { ROWTABLE_MEMORY = 16 << 20 };

struct rowtable;
struct rowtable_gather; /* one that is under way */

/* Opens the rows of a 2-D view: ne[0] values each, ne[1] rows, stride[1] bytes apart, from view->offset of the mapped
 * file. view->data is not used, and whole pages of the rows are taken out of the mapping for good (file_map_release).
 * name: the tensor's, for messages. ERR_MODEL: a type that cannot be decoded, by its name; no rows or more than
 * 2^32 - 1; a row of more than 16 KB. ERR_IO: the file cannot be opened again, is another one by now, or ends before
 * the last row. */
int rowtable_open(const struct file_map *file, const char *name, const struct tensor_view *view, struct rowtable **out,
                  struct err *e);
/* No gather may be under way. NULL is fine. */
void rowtable_close(struct rowtable *t);
int64_t rowtable_width(const struct rowtable *t); /* values of a row */
uint64_t rowtable_rows(const struct rowtable *t);
const char *rowtable_way(const struct rowtable *t); /* "io_uring" or "threads" */

/* Starts reading row ids[i] to out[i * width ..), for i < n. ids and out are the caller's and stay untouched until
 * rowtable_wait or rowtable_cancel. Several gathers, of several threads, may be under way. An id beyond the table:
 * ERR_MODEL, and nothing is started. */
int rowtable_start(struct rowtable *t, const uint32_t *ids, size_t n, float *out, struct rowtable_gather **g,
                   struct err *e);
/* Waits until all rows are there, helping to read them; ends g. ERR_IO with file, row and reason if one could not be
 * read: out is then undefined, and the table may be used again. */
int rowtable_wait(struct rowtable_gather *g, struct err *e);
/* Stops reading; when it returns, nothing writes to out any more. Ends g. NULL is fine. */
void rowtable_cancel(struct rowtable_gather *g);

#endif
