/* ds4 --check-file and ds4-gguf check: everything about the files of a model that can be told before it is run. What
 * the loader makes of it, sizes and types by group, a look at every scale and plain number, memory and speed on this
 * machine, and whether it will run. */
#ifndef CHECK_FILE_H
#define CHECK_FILE_H
#include <stdbool.h>
#include <stdint.h>

struct check_options {
    const char *const *paths; /* of one model, as for ds4_options.model_paths */
    int n_paths;
    int ctx, threads; /* 0: as ds4 */
    uint64_t memory;  /* bytes to count on; 0: what is free now */
    bool page_weights;
    bool json;    /* one JSON object instead of text */
    bool headers; /* weights are not read, and speeds not measured */
};

/* Prints to standard output. True if the model will run with these files on this machine: else the last line says why
 * not. */
bool check_file(const struct check_options *o);

#endif
