/* Writes a canonical file again in the forms of other makers (spec dialects 6, 10, 11): the same model
 * under other names, with other keys, in another layout. What a form is, is written here apart from the tables of the
 * loader. */
#ifndef DIALECT_FORMS_H
#define DIALECT_FORMS_H
#include <stdint.h>
#include "base/err.h"

enum dialect_form {
    FORM_DS4,    /* as it is */
    FORM_LC,     /* llama.cpp: no vocab_size, a clamp for the shared expert */
    FORM_BARE,   /* the same without every key that can be rebuilt */
    FORM_IK,     /* ik_llama.cpp's first conversions: about twenty other names, eight keys missing */
    FORM_EARLY,  /* early forks: architecture deepseek-v4, other names and keys, a 3-D output projection */
    FORM_FUSED,  /* gate and up of the experts in one tensor */
    FORM_MERGED, /* with the block of a draft behind the trunk */
    FORM_HOLE,   /* a tensor is missing: to be refused */
    /* of Qwen3.8 */
    FORM_QWEN_LC,     /* llama.cpp: kinds of blocks by keys, ratios by block, 0 for the draft's; norms as rows */
    FORM_QWEN_BARE,   /* the same without every key that can be rebuilt */
    FORM_QWEN_FUSED,  /* gate and up of the experts in one tensor */
    FORM_QWEN_HALVES, /* the draft's projection as two tensors */
    FORM_QWEN_FIRST,  /* and names without a block for all that goes around the draft's */
    FORM_QWEN_REST,   /* without the n-gram table and its keys, */
    FORM_QWEN_TABLE,  /* which are in this file of their own */
    FORM_COUNT
};

enum form_widths {
    WIDTHS_KEPT,
    WIDTHS_WIDE,  /* integer keys and arrays as u64 */
    WIDTHS_SIGNED /* as i32 */
};

const char *dialect_form_name(enum dialect_form form);
int dialect_form_write(const char *from, const char *to, enum dialect_form form, enum form_widths widths,
                       struct err *e);

/* One change of a file, for files that a loader must refuse, correct or comment on. */
struct form_edit {
    enum form_edit_kind {
        EDIT_U32,        /* key = number */
        EDIT_F32,        /* key = real */
        EDIT_F32S,       /* key = array of `number` times real */
        EDIT_I32S,       /* key = array of `number` zeros, the last one = real */
        EDIT_TEXT,       /* key = text */
        EDIT_TEXTS,      /* key = array of `number` times text */
        EDIT_DROP,       /* no such key */
        EDIT_NO_TENSORS, /* none whose name begins so */
        EDIT_NAME,       /* tensor renamed to text */
        EDIT_NE,         /* dimension `index` of the tensor = number; its data stays if it is long enough, else zeros */
        EDIT_POKE,       /* the tensor's four bytes number `index` = number */
        EDIT_ZERO,       /* all bytes of the tensor = 0 */
        EDIT_I64,        /* a tensor of I32 as I64 */
        EDIT_VALUES,     /* a tensor as F32, with the values that its type stands for */
    } kind;
    const char *name; /* of the key or tensor, as in the file */
    int64_t number;
    double real;
    const char *text;
    int index;
};

int dialect_form_edit(const char *from, const char *to, const struct form_edit *edits, int n, struct err *e);

#endif
