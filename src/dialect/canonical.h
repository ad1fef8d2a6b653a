/* A model in canonical form: whatever names, keys and layouts the publisher of a file chose, what stands behind this
 * door asks for canonical tensor names and canonical parameters only (spec dialects). Names of tensors and keys are
 * those of the family's spec ("blk.3.attn_kv.weight", "attention.head_count" without prefix).
 *
 * A canonical model is immutable; it owns the open files and the widened copies of small tensors (spec 4 T7). */
#ifndef DIALECT_CANONICAL_H
#define DIALECT_CANONICAL_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"
#include "gguf/gguf.h"
#include "gguf/tensor_view.h"

enum canonical_family { CANONICAL_DEEPSEEK4, CANONICAL_QWEN38, CANONICAL_FAMILY_COUNT };

/* Where a parameter's value comes from (spec 1.3). */
enum origin { ORIGIN_KEY, ORIGIN_ALIAS, ORIGIN_TENSOR, ORIGIN_CONSTANT, ORIGIN_DEFAULT };

struct canonical;

struct canonical_options {
    bool look;         /* to be described only: small tensors are not copied (their views have no data), large ones are
                          not read */
    bool headers_only; /* with look: of no tensor any byte is read, so damage inside tensors stays unseen */
    bool scanned;      /* NaN and Inf are looked for elsewhere (gguf/gguf_scan.h): not here */
    bool refused_too;  /* a model that is refused is given out all the same, as far as it was understood: for its notes
                          and canonical_files, and to be closed. All that it is refused for is looked for, not the
                          first alone */
    bool kv_sim_off;   /* the FP8 and FP4 roundings of the row store will not be used: shapes that they cannot block are
                          fine */
};

struct gguf_set;

/* Opens the files of one model (gguf_set_open: a file, any shard of a split set, or a list), recognises family and
 * dialect, maps names, derives and checks. On error e holds one sentence of the refusal table (spec 13.3). opt NULL =
 * all zero. */
int canonical_open(const char *const *paths, int n_paths, const struct canonical_options *opt, struct canonical **out,
                   struct err *e);
void canonical_close(struct canonical *c);

/* False: of a refused model (refused_too) not even the family was made out; then none of the functions on the model
 * itself may be called. Of others the parts after which it was refused are missing. */
bool canonical_is_known(const struct canonical *c);
enum canonical_family canonical_family(const struct canonical *c);
const char *canonical_title(const struct canonical *c); /* "DeepSeek V4 Flash", or the family's name */
const char *
canonical_dialect(const struct canonical *c);          /* "ds4", "llama.cpp", ...; NULL: refused before it was clear */
const char *canonical_name(const struct canonical *c); /* general.name, or the file name */
int canonical_n_layers(const struct canonical *c);     /* trunk length L */
int canonical_n_blocks(const struct canonical *c);     /* L and the draft blocks that are bound behind the trunk */
bool canonical_has_file(const struct canonical *c);    /* false in canonical_check */

/* A tensor by canonical name; NULL if the model has none. The printf form serves "blk.%d.attn_kv.weight". */
const struct tensor_view *canonical_tensor(const struct canonical *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, but a missing tensor or another shape (ne, trailing ones stripped) is a refusal R9 naming aliases tried. */
const struct tensor_view *canonical_need(const struct canonical *c, struct err *e, int n_dims, const int64_t *ne,
                                         const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Parameters. Every key of the family's table has a value once canonical_open succeeded; asking for another key is a
 * programming error (assert). *_at: any quantity at a block of the model; asked without a layer, a per-layer quantity
 * gives the largest of its values. */
int64_t canonical_int(const struct canonical *c, const char *key);
double canonical_float(const struct canonical *c, const char *key);
bool canonical_bool(const struct canonical *c, const char *key);
int64_t canonical_int_at(const struct canonical *c, const char *key, int layer);
double canonical_float_at(const struct canonical *c, const char *key, int layer);
/* A list of the family's table; NULL and *n = 0 if an optional one is missing. */
const uint64_t *canonical_array(const struct canonical *c, const char *key, int *n);
/* A hash of all parameters that change what the trunk computes: equal in every form of the same weights. */
uint64_t canonical_digest(const struct canonical *c);
enum origin canonical_origin(const struct canonical *c, const char *key);

/* Vocabulary arrays of the file (string arrays, lengths already checked against the embedding). */
const struct gguf_kv *canonical_tokens(const struct canonical *c);
const struct gguf_kv *canonical_merges(const struct canonical *c);
/* The checkpoint's mapping of reasoning effort (spec 6.3): true if it is the later one ("0731"), *known false if the
 * file does not say. */
bool canonical_late_effort(const struct canonical *c, bool *known);

/* Every tensor, in file order, for inspection and the memory plan. */
int canonical_n_tensors(const struct canonical *c);
const char *canonical_tensor_at(const struct canonical *c, int i, const struct tensor_view **view);
/* True if its rows stay on disk and are read by position: nobody may touch its data. */
bool canonical_on_disk(const struct canonical *c, int i);
/* True if it is of a draft block behind the trunk. */
bool canonical_of_draft(const struct canonical *c, int i);
/* The mapped file of a view (view->file). */
const struct file_map *canonical_file(const struct canonical *c, int file);
/* Bytes of a view's payload. */
uint64_t tensor_view_bytes(const struct tensor_view *v);

/* Parameters of a file that is yet to be written: by key, one value for all layers or one for each. */
struct canonical_given {
    const char *key; /* of the family's table */
    const double *v;
    int n;
};
/* Looks at them as canonical_open does at those of a file: allowed values, lists that are long enough, relations. What
 * is not given has the value that stands in for a missing key. ERR_MODEL names the key. n_layers: as given for the
 * number of blocks. */
int canonical_check(enum canonical_family f, int n_layers, const struct canonical_given *given, int n,
                    const struct canonical_options *opt, struct err *e);

/* True if a page of one of the model's files was lost while it was used (file truncated, disk error): sets e. */
bool canonical_damaged(const struct canonical *c, struct err *e);
/* What the user is told when a load ends with rc and e, which are the model's fault (both 0: it went well): the message
 * begins with the model's path; a damaged file is the reason for whatever else went wrong. Returns the code. */
int canonical_refusal(const struct canonical *c, int rc, struct err *e);

/* What was decided about a file and what is odd about it, item by item (spec 13.1, 13.2). */
enum canonical_note {
    NOTE_DERIVED, /* parameters that tensors tell, or of which the file has more than is used */
    NOTE_DEFAULT, /* parameters that nothing in the file tells */
    NOTE_RENAMED, /* tensors with other names: the first few */
    NOTE_SPLIT,   /* tensors that hold two */
    NOTE_IGNORED,
    NOTE_WARNING,
    NOTE_PROBLEM, /* what the model is refused for; the message of the refusal has the first of them */
    NOTE_COUNT
};
/* Note i of a kind; NULL behind the last. *id (may be NULL): of a warning, the number that the specification gives it,
 * "W3", or "". */
const char *canonical_note(const struct canonical *c, enum canonical_note kind, int i, const char **id);
/* Tensors with other names, all of them. */
int canonical_n_renamed(const struct canonical *c);
/* The files themselves; valid as long as the model. */
const struct gguf_set *canonical_files(const struct canonical *c);
/* What follows from a NaN or Inf in weights, and what to do: of a vital tensor, which the model is refused for, and of
 * another, which is warned about. */
#define CANONICAL_DAMAGE_REMEDY "; get it again, or another publisher's if it comes out the same"
#define CANONICAL_VITAL_DAMAGE  "the file is damaged, and every token goes through this"
#define CANONICAL_DAMAGE        "the file is damaged, and an answer that meets this stops"
/* True if every token goes through the tensor of the files. False: it may never be met (a routed expert, a row that is
 * looked up), or the model does not use the tensor. */
bool canonical_is_vital(const struct canonical *c, const struct gguf_tensor *t);
/* Name of a tensor's type that is not ggml's, by its number and its size in the file; NULL: nobody's that is known. */
const char *canonical_fork_type(const struct gguf *g, const struct gguf_tensor *t);
/* Average bits of a weight of the routed experts; 0: there are none. */
double canonical_expert_bits(const struct canonical *c);

/* Short report of spec 13.1, one item a line: dialect, renamed, derived, defaulted, ignored, warnings. */
void canonical_report(const struct canonical *c, struct str *out);

#endif
