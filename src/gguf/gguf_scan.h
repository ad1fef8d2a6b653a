/* Reads all tensors of a file set once, as fast as the disk gives them, and looks at every scale and plain number
 * (quant/quant_sound.h), and for zeros where weights should be: what a download that was not finished leaves in a file
 * that was made at its full size. */
#ifndef GGUF_SCAN_H
#define GGUF_SCAN_H
#include "base/pool.h"
#include "gguf/gguf_set.h"

/* A tensor with a NaN or an infinity. */
struct gguf_flaw {
    int file; /* of the set */
    const struct gguf_tensor *tensor;
    int64_t row; /* the first */
};

/* Zero bytes in places: runs of 1 MiB or more, through whatever tensors they go, and whole tensors that no model has so
 * (of a block type, or the gains of a norm). Not counted are whole matrices of a tensor of several (experts that were
 * cut away) and the last rows of a vocabulary (padding). */
struct gguf_zeros {
    uint64_t bytes; /* in all places; a run is measured in steps of 4 KiB. 0: there is none */
    int places;
    int file; /* the first place: file of the set, byte of the file, and the tensor there */
    uint64_t at;
    const struct gguf_tensor *tensor;
};

struct gguf_scan {
    uint64_t bytes;          /* that were read */
    struct gguf_flaw *flaws; /* owned: gguf_scan_free; in the order of the files */
    int n_flaws;
    struct gguf_zeros zeros;
};

/* Bytes that a scan of the set reads: whole numbers, and types whose blocks are not known, are left out. */
uint64_t gguf_scan_bytes(const struct gguf_set *s);
/* With how many threads a scan is fastest where `cores` can compute: most of them wait for the disk. */
int gguf_scan_threads(int cores);
/* progress (may be NULL) is told of n more bytes, of that tensor, on the caller's thread. ERR_IO names the file and the
 * byte that could not be read. */
int gguf_set_scan(const struct gguf_set *s, struct pool *p,
                  void (*progress)(void *arg, const struct gguf_tensor *t, uint64_t n), void *arg,
                  struct gguf_scan *out, struct err *e);
void gguf_scan_free(struct gguf_scan *s);

#endif
