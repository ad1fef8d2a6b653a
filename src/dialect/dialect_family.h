/* What a family tells the loader: tables. A family costs rows here and a few functions that read shapes; the mechanism
 * (recognise, rename, derive, check, widen) is the same for all (spec dialects 1, 3, 4).
 *
 * Tensor names are stems: "attn_kv" stands for "blk.N.attn_kv.weight", a file may leave ".weight" away. */
#ifndef DIALECT_FAMILY_H
#define DIALECT_FAMILY_H
#include "dialect/canonical.h"

/* ---- tensors */

enum tensor_scope { SCOPE_BLOCK, SCOPE_MODEL };

/* Precision classes of spec dialects 13.2: which warning a coarse type earns. */
enum tensor_class {
    CLASS_PLAIN,
    CLASS_HYPER,  /* W1 */
    CLASS_ROUTER, /* W2 */
    CLASS_INDEX,  /* W3 */
    CLASS_MEMORY, /* W4 */
    CLASS_VECTOR, /* W6 */
    CLASS_EXPERT, /* W7 */
    CLASS_EDGE,   /* W7: embedding and output */
};

enum {
    TENSOR_SMALL = 1, /* becomes an F32 copy, unless it is a matrix of F16 or BF16 to multiply with */
    TENSOR_IDS = 2,   /* becomes an I32 copy */
    TENSOR_WIDER = 4, /* rows may be longer: the first columns count */
    TENSOR_OPTIONAL = 8,
    TENSOR_ALL_OR_NONE = 16, /* optional, but a hole if other blocks have one */
    TENSOR_TABLE = 32,       /* stays on disk: rows are read by position, never through the mapping */
    TENSOR_FOLDED = 64,      /* a vector that may be stored as rows */
    TENSOR_HALF = 128,       /* no tensor of the model: half of the columns of one */
};

struct tensor_alias {
    const char *stem;
    const char *dialect; /* whose name it is, for recognition; NULL: nobody's in particular */
};

struct tensor_row {
    const char *stem;
    const char *shape; /* "D H*d": a dimension is a product and quotient of names of the dim table and numbers */
    enum tensor_scope scope;
    enum tensor_class class;
    int flags;
    bool (*when)(const struct canonical *c, int layer); /* the block has such a tensor; NULL: every block */
    struct tensor_alias also[6];
    const char *suffix;    /* NULL: ".weight" */
    const char *halves[2]; /* the rows that may hold its first and its last columns instead (spec 4 T4); NULL: none */
};

/* One tensor that holds several, one behind the other in its rows (of each expert's; spec 4 T3). */
struct tensor_split {
    const char *stem;
    const char *part[3];
    bool even;          /* parts have as many rows each: the whole tells how many */
    const char *beside; /* only in blocks that have this tensor; NULL: in all */
};

/* A name in shapes: the value of a key, or a function. */
struct tensor_dim {
    const char *name;
    const char *key;
    int64_t (*value)(const struct canonical *c, int layer);
};

/* ---- parameters */

enum key_kind { KEY_INT, KEY_FLOAT, KEY_BOOL };

/* What stands in when neither key nor tensors give a value. */
enum key_rule {
    RULE_REQUIRED,  /* nothing: refusal R16 */
    RULE_PUBLISHED, /* constant of the published shapes: only when width and length are those of one ("const") */
    RULE_ANY,       /* constant for any shape, with a warning ("const!") */
    RULE_DEFAULT,   /* what absence means: said in the report */
    RULE_QUIET      /* the same for keys that no published file has: not said */
};

enum { KEY_PER_LAYER = 1, KEY_WINS = 2 };

struct key_row {
    const char *name;
    enum key_kind kind;
    int flags;           /* PER_LAYER: scalar or array; WINS: the key is believed where tensors say something else */
    const char *allowed; /* "1..65536", or a list "0 4 128": looked at before anything else */
    /* Value that the tensors tell. false: they do not say. from: what is read, for the report. */
    bool (*derive)(const struct canonical *c, int layer, double *v);
    const char *from;
    enum key_rule rule;
    double constant[2];                        /* by published shape (RULE_PUBLISHED), else [0]; as an F32 holds it */
    bool (*needed)(const struct canonical *c); /* false: the value is 0 where nothing gives one; NULL: always needed */
    /* True if the value changes what the trunk computes in that block; NULL: it does wherever it is needed. */
    bool (*matters)(const struct canonical *c, int layer);
    const char *also[2];
};

/* A list of whole numbers up to 2^64 that is not counted by layers. */
struct array_row {
    const char *name;
    bool optional;
    const char *sum_of; /* where missing: entry i is the sum of the entries of that list before i. NULL: no such rule */
};

/* ---- families */

struct published_shape {
    const char *name;
    int width, layers;
};

struct family_table {
    enum canonical_family id;
    const char *name;       /* "DeepSeek V4" */
    const char *publishers; /* forms of files that run, and who publishes them */
    const char *short_name; /* "deepseek4" */
    const char *prefix[4];  /* of keys, after the file's own architecture */
    struct published_shape published[2];
    const struct tensor_row *tensors;
    int n_tensors;
    const struct tensor_split *splits;
    int n_splits;
    const struct tensor_dim *dims;
    int n_dims;
    const struct key_row *keys; /* in this order: a function may read the keys above its own */
    int n_keys;
    const struct array_row *arrays;
    int n_arrays;
    bool binds_draft;                    /* draft blocks behind the trunk are part of the model, if they are whole */
    const char *key_width, *key_layers;  /* what is compared with published shapes */
    const char *key_draft;               /* blocks that key_layers may count in addition */
    const char *pre[3];                  /* tokenizer.ggml.pre: values that name the family's pre-tokenizer */
    const char *bos, *eos;               /* NULL: the family has none */
    const char *router, *experts, *used; /* expert count per block (spec 6.4): tensor, keys */
    /* Relations between the resolved values. */
    int (*validate)(const struct canonical *c, const struct canonical_options *opt, struct err *e);
    /* What values of small tensors show about their conversion, once all are bound: ERR_MODEL. NULL: nothing. */
    int (*look)(const struct canonical *c, struct err *e);
};

extern const struct family_table dialect_deepseek4, dialect_qwen38;

/* ---- what table functions may ask */

/* Shape of a tensor of the file under its canonical stem (no suffix), before anything is checked: dimension i, or 0 if
 * the tensor is missing. layer -1: not of a block. */
int64_t dialect_ne(const struct canonical *c, int layer, const char *stem, int i);
/* True if the block has a tensor whose stem begins so. */
bool dialect_has(const struct canonical *c, int layer, const char *stem_prefix);
/* Values of a bound tensor of the file, before copies are made; false: no such tensor is bound. */
bool dialect_values(const struct canonical *c, int layer, const char *stem, double *mean, double *largest);
/* Refusal R10. key: as in the table; what: "N is not a multiple of M"-like half sentence of what is allowed. */
int dialect_refuse_value(const struct canonical *c, struct err *e, const char *key, int64_t value, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
