/* The canonical model while it is made, and the steps that make it, in the order in which canonical_open takes them. */
#ifndef DIALECT_INTERNAL_H
#define DIALECT_INTERNAL_H
#include "base/pile.h"
#include "base/strmap.h"
#include <stdarg.h>
#include "dialect/dialect_family.h"
#include "gguf/gguf_set.h"

enum { DIALECT_MAX_BLOCKS = 4096, DIALECT_NAME = 80 };

/* A tensor under its canonical name: of the file first, bound once its shape and type are good. */
struct source {
    char name[DIALECT_NAME]; /* with suffix */
    const struct gguf_tensor *t;
    int file;
    int row;   /* of the family's tensor table */
    int layer; /* -1: not of a block */
    int part;  /* -1: whole; else which part of a split tensor */
    const struct tensor_split *split;
    const struct source
        *last; /* t and file have the first half of the columns, this one the others; NULL: they have all */
    bool bound;
    struct tensor_view view;
    void *copy; /* owned; what view.data points into, if not the file */
};

struct value {
    const struct gguf_kv *kv; /* what the file says, if it was asked */
    enum origin origin;
    int n; /* 1, or the number of layers */
    double *v;
};

struct array {
    const struct gguf_kv *kv;
    int n;
    uint64_t *v;
};

/* What is told behind the reason of a refusal: dialect_advice.c. */
enum dialect_advice {
    ADVICE_OTHER_FILE,
    ADVICE_CONVERSION, /* another one, since the file is as it was made */
    ADVICE_TYPES,      /* another one, since few programs read its types */
    ADVICE_SAID        /* nothing: the reason says what to do */
};

struct canonical {
    const struct family_table *family;
    struct gguf_set *set;
    const struct gguf **files; /* those of the set */
    int n_files;
    char *arch, *name;
    const char *dialect;
    bool look, headers_only, scanned; /* of the options */
    bool thorough;                    /* the load goes on behind what the model is refused for, */
    struct err refused;               /* which is the first of that */
    enum dialect_advice advice;       /* that goes with the first */
    bool partial;                     /* blocks are in another file: what else is missing may be there too */
    int n_layers;
    int n_draft;                             /* blocks behind the trunk that are bound */
    const struct published_shape *published; /* NULL: none has this width and length */

    struct pile sources; /* struct source */
    int *bound;          /* the sources that are bound, in order; made last */
    int n_bound;
    struct strmap *by_name; /* canonical name without suffix -> index */
    struct value *values;   /* [family->n_keys]; v NULL until resolved */
    struct array *arrays;   /* [family->n_arrays] */
    const struct gguf_kv *tokens, *merges;

    struct pile notes[NOTE_COUNT]; /* struct note */
    int n_renamed, split_kinds;    /* bits 1 << index of the family's splits */
};

struct note {
    char *text; /* owned */
    const char *id;
};

static inline struct source *source_at(const struct canonical *c, uint64_t i)
{
    return pile_at(&c->sources, i);
}

/* dialect_recognise.c: family and role of the files; the trunk's length, and the draft's; whose dialect it is. */
int dialect_recognise(struct canonical *c, struct err *e);
int dialect_trunk(struct canonical *c, struct err *e);
const char *dialect_whose(const struct canonical *c);
/* Number N of "blk.N.rest" and rest; -1 if the name is of no block. */
int64_t dialect_block(const struct gguf_str *name, struct gguf_str *rest);

/* dialect_side.c: refusals of what is not a language model by itself. */
int dialect_refuse_side_file(const struct canonical *c, struct err *e);
int dialect_refuse_draft(const struct canonical *c, struct err *e);
/* True if the only tensor is the family's table. */
bool dialect_is_table_alone(const struct canonical *c);
int dialect_refuse_table(const struct canonical *c, struct err *e);
/* True if there should be a table and there is none. */
bool dialect_lacks_table(const struct canonical *c);

/* dialect_advice.c: how several files of one model are given. */
#define DIALECT_GIVE_BOTH "give both: -m FIRST -m SECOND (to check them: --check-file FIRST --check-file SECOND)"
/* For the refusal that comes next, if it is the first. */
void dialect_advise(struct canonical *c, enum dialect_advice advice);
/* Adds to the reason why the model is refused what to get instead. */
void dialect_add_advice(const struct canonical *c, struct err *e);

/* dialect_names.c */
int dialect_map_names(struct canonical *c, struct err *e);
const struct source *dialect_find(const struct canonical *c, int layer, const char *stem);
/* The row of a stem that the table has. */
int dialect_row(const struct family_table *f, const char *stem);
/* One more, which stands for a tensor of two files' tensors; NULL: out of memory. */
struct source *dialect_add_joined(struct canonical *c, const struct source *first, const struct source *last,
                                  const struct tensor_row *row, int layer, struct err *e);
/* "blk.3.attn_kv.weight" of a row. */
void dialect_name(char name[DIALECT_NAME], const struct tensor_row *row, int layer);
/* " (also looked for a, b)" or nothing. */
void dialect_also(struct str *out, const struct tensor_row *row, int layer);

/* dialect_arrays.c */
int dialect_read_arrays(struct canonical *c, struct err *e);
void dialect_free_arrays(struct canonical *c);
uint64_t dialect_digest_arrays(const struct canonical *c, uint64_t h);
/* FNV-1a of n bytes more. */
uint64_t dialect_digest(uint64_t h, const void *data, size_t n);

/* dialect_keys.c */
int dialect_resolve_keys(struct canonical *c, struct err *e);
/* The same from given values, where there is no file. */
int dialect_take_keys(struct canonical *c, const struct canonical_given *given, int n, struct err *e);
const struct value *dialect_value(const struct canonical *c, const char *key);
/* The file's record of a key of the family, under any of the prefixes; NULL: none. */
const struct gguf_kv *dialect_key(const struct canonical *c, const char *name);

/* dialect_shape.c: expected shape of a row at a layer; how a tensor's shape compares with it. */
int dialect_shape(const struct canonical *c, const struct tensor_row *row, int layer, int64_t ne[4]);
/* Which dimension of a row's shape is the number of the block's experts; -1: none. */
int dialect_shape_experts(const struct canonical *c, const struct tensor_row *row);
bool dialect_shape_fits(const struct canonical *c, const struct source *s, const int64_t want[4], int flags);
/* Rows of a split tensor in front of the source's part, and in all; of a whole one 0 and want[1]. */
void dialect_shape_parts(const struct canonical *c, const struct source *s, const int64_t want[4], int64_t *before,
                         int64_t *all);
void dialect_shape_text(char text[96], const int64_t ne[4]);

/* dialect_scan.c: first row of a tensor in which a scale or plain float is NaN or infinite, as far as is looked;
 * -1: none. */
int64_t dialect_scan(const struct canonical *c, const struct source *s);
/* A quantised tensor of zeros only, as no model has one; false where dialect_scan does not look. */
bool dialect_is_void(const struct canonical *c, const struct source *s);
/* The same for a bound tensor, of which every value is decoded. */
int64_t dialect_scan_values(const struct source *s);

/* dialect_forks.c: "type 139 (IQ4_K, 4.50 bits a weight), which only ik_llama.cpp can read", of a tensor whose type is
 * not ggml's. */
enum { FORK_TEXT = 160 };
void dialect_fork(const struct canonical *c, const struct source *s, char text[FORK_TEXT]);

/* What the model is refused for, with rc and e: the same rc, or 0 where all of that is wanted; it is then a note, and
 * kept if it is the first (dialect_notes.c). */
int dialect_refused(struct canonical *c, int rc, struct err *e);

/* dialect_bind.c */
/* True if every token goes through such a tensor: an unsound value there is refused (spec 13.2 W8). */
bool dialect_is_vital(const struct canonical *c, const struct tensor_row *row);
int dialect_bind(struct canonical *c, struct err *e);
/* Where parameters are unknown and with them shapes: notes which tensors are missing. */
void dialect_note_missing(struct canonical *c);

/* dialect_vocab.c */
int dialect_check_vocabulary(struct canonical *c, struct err *e);

/* dialect_text.c */
bool dialect_is(const struct gguf_str *s, const char *text);
bool dialect_begins(const struct gguf_str *s, const char *start);
bool dialect_ends(const struct gguf_str *s, const char *end);
bool dialect_contains(const struct gguf_str *s, const char *part);
/* The last part of a path. */
const char *dialect_file_name(const char *path);
/* The text of a record; false if there is none (kv NULL) or it is no string. */
bool dialect_text(const struct gguf_kv *kv, struct gguf_str *s);
bool dialect_text_is(const struct gguf_kv *kv, const char *text);
bool dialect_text_has(const struct gguf_kv *kv, const char *part);

/* dialect_notes.c */
void dialect_note(struct canonical *c, enum canonical_note kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* id: of the table of warnings, or "". */
void dialect_warn(struct canonical *c, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void dialect_free_notes(struct canonical *c);

/* dialect_shards.c: warns of a file that seems to be of another quantisation than the others. */
void dialect_warn_shards(struct canonical *c);

/* dialect_report.c */
/* Warnings of spec 13.2 that types and keys alone show. */
void dialect_warn_precision(struct canonical *c);
void dialect_note_keys(struct canonical *c);

#endif
