#include "base/random.h"
#include <sys/random.h>

void random_fill(void *bytes, size_t n)
{
    char *p = bytes;
    while (n) {
        const ssize_t got = getrandom(p, n, 0);
        if (got > 0) p += got, n -= (size_t)got;
    }
}
