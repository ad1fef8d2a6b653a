/* What a check found out, for the two ways of telling it. */
#ifndef CHECK_INTERNAL_H
#define CHECK_INTERNAL_H
#include "check_file.h"
#include "dialect/canonical.h"
#include "base/str.h"
#include "ds4.h"
#include "file_census.h"
#include "gguf/gguf_scan.h"
#include "gguf/gguf_set.h"

struct check {
    const struct check_options *options;
    struct err why_not;           /* code 0: it will run */
    bool opens;                   /* nothing is wrong with the model's records */
    struct gguf_set *part;        /* what could be opened where the set could not; else NULL */
    struct canonical *model;      /* also of a model that is refused; NULL: no set of files */
    const struct gguf_set *files; /* the model's, or part; NULL: not even that */
    struct file_census census;
    bool scanned;
    struct gguf_scan scan;
    double scan_s;
    ds4_engine *engine; /* NULL: refused */
    struct ds4_memory_plan plan;
    double memory, disk; /* bytes per second; 0: not measured */
};

/* True if it needs no more memory than there is. */
bool check_fits(const struct check *c);

/* True if the flaw is in a tensor that every token goes through. */
bool check_is_vital(const struct check *c, const struct gguf_flaw *f);

/* Of a scan that found zeros: what they mean. */
void check_zeros_text(const struct check *c, struct str *out);

void check_print_text(const struct check *c);
void check_print_json(const struct check *c);

#endif
