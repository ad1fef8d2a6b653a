/* Memory and checked sizes. mem_alloc is for small, bounded sizes and ends the process through the handler when it
 * fails; mem_try is for everything whose size comes from a file, a model, a context or the network. */
#ifndef BASE_MEM_H
#define BASE_MEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes);         /* zeroed; never NULL */
void *mem_grow(void *p, size_t bytes); /* realloc; never NULL; new bytes undefined */
char *mem_strdup(const char *s);
void *mem_try(size_t bytes);                       /* zeroed, or NULL */
void *mem_try_aligned(size_t bytes, size_t align); /* zeroed, align a power of two; freed with mem_free; or NULL */
/* Not zeroed, align 64: the system clears each page when it is first used, by the thread that uses it. */
void *mem_try_scratch(size_t bytes);
void mem_free(void *p);                            /* NULL is fine */
/* What mem_alloc, mem_grow and mem_strdup call when memory is out: by default a line on stderr and abort(). fn must not
 * return; NULL brings the default back. */
void mem_on_failure(void (*fn)(size_t bytes));

/* Checked arithmetic: false (result untouched) on overflow. */
bool u64_mul(uint64_t a, uint64_t b, uint64_t *r);
bool u64_add(uint64_t a, uint64_t b, uint64_t *r);
bool u64_align_up(uint64_t a, uint64_t align, uint64_t *r); /* align a power of two */

/* Bytes of memory that the process may still use: the least of free memory of the machine and the limits of its
 * cgroups (v1 and v2). 0 if unknown. */
uint64_t mem_available(void);

#endif
