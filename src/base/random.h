/* Random bytes that nobody can guess, from the operating system. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H
#include <stddef.h>

void random_fill(void *bytes, size_t n);

#endif
