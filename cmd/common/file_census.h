/* Where the bytes of a model are: sizes and types of its tensors by what they are for, as their names tell. */
#ifndef FILE_CENSUS_H
#define FILE_CENSUS_H
#include "gguf/gguf_set.h"

enum census_group {
    CENSUS_EMBEDDING,
    CENSUS_TABLES,
    CENSUS_DENSE,
    CENSUS_SHARED,
    CENSUS_ROUTED,
    CENSUS_HEAD,
    CENSUS_DRAFT,
    CENSUS_OTHER,
    CENSUS_GROUPS
};
enum { CENSUS_MOST_TYPES = 32 };

struct census_sum {
    uint64_t n, bytes, n_unknown; /* unknown: tensors whose size the reader does not know */
    int n_types;
    struct {
        uint32_t type;    /* of quant, or the number in the file */
        const char *name; /* of quant's type, or of another program's; NULL: of nobody's that is known */
        uint64_t n;
    } types[CENSUS_MOST_TYPES];
};

struct file_census {
    struct census_sum group[CENSUS_GROUPS], all;
    uint64_t file_bytes;
    int n_files;
};

/* n_layers: blocks of the trunk, those behind it are a draft's; 0: unknown. */
void file_census_take(struct file_census *c, const struct gguf_set *set, int n_layers);
const char *file_census_name(enum census_group g);
/* A line per group that has tensors, one for all, and the sizes, on standard output. */
void file_census_print(const struct file_census *c);

struct str;
/* "Q8_0", "IQ4_K", or "type 499". */
void census_type_name(struct str *out, const struct census_sum *s, int i);

#endif
