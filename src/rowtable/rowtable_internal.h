/* Shared by the files of this folder. A gather is done in slices: up to SLICE_MOST rows that one reader takes, puts in
 * the order of the file and reads. */
#ifndef ROWTABLE_INTERNAL_H
#define ROWTABLE_INTERNAL_H
#include "quant/quant.h"
#include "rowtable/rowtable.h"

enum { SLICE_MOST = 256, ROW_MOST = 16384 };

/* Where the rows are, and how they are decoded. */
struct row_file {
    int fd;
    char *path, *name;
    quant_row_fn *decode;
    int64_t width;
    uint64_t rows, stride, offset;
    size_t row_bytes;
};

/* Rows id[i] go to out[place[i] * width ..); the same row may come several times in a row. */
struct row_slice {
    int n;
    uint32_t id[SLICE_MOST], place[SLICE_MOST];
    float *out;
};

/* Decodes the bytes of row id[i] to its place. */
void row_put(const struct row_file *f, const struct row_slice *s, int i, const void *bytes);
/* ERR_IO: the row could not be read because of `code` (an errno; 0: the file ends before). */
int row_failed(const struct row_file *f, uint32_t id, int code, struct err *e);

/* Reads a slice row by row. */
int rows_pread(const struct row_file *f, const struct row_slice *s, struct err *e);

/* Reads a slice with all its rows under way at once. A ring belongs to one thread. */
struct row_ring;
struct row_ring *row_ring_create(const struct row_file *f); /* NULL: this build or this system has none */
void row_ring_free(struct row_ring *r);
int rows_ring(struct row_ring *r, const struct row_file *f, const struct row_slice *s, struct err *e);

enum rowtable_means { ROWTABLE_BEST, ROWTABLE_THREADS };
/* rowtable_open with a choice of means. */
int rowtable_open_by(enum rowtable_means means, const struct file_map *file, const char *name,
                     const struct tensor_view *view, struct rowtable **out, struct err *e);

#endif
