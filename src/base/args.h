/* Left-to-right scan of a command line (spec cli-and-tools 1): no "--opt=value", later occurrences win. Mistakes are
 * printed as "PROGRAM: ..." and remembered in bad; the caller ends with exit status 2. */
#ifndef BASE_ARGS_H
#define BASE_ARGS_H
#include <stdbool.h>
#include <stdint.h>

struct args {
    const char *program; /* "ds4-gguf convert" */
    char **argv;
    int argc, at;
    bool bad;
};

/* The next word, or NULL at the end or after a mistake. */
const char *args_next(struct args *a);
/* The word after option, or NULL and a mistake. */
const char *args_value(struct args *a, const char *option);
/* The whole word after option as a number in [min, max]; min after a mistake. */
int64_t args_int(struct args *a, const char *option, int64_t min, int64_t max);
double args_float(struct args *a, const char *option, double min, double max); /* finite */
uint64_t args_seed(struct args *a, const char *option);                        /* from 1 to all that 64 bits hold */
/* "12", "12GB" or "1.5gb": GiB, as bytes; 0 after a mistake. */
uint64_t args_gib(struct args *a, const char *option);
void args_mistake(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
