/* GGUF files that no writer would make: a good file is taken apart into bytes (header, one string of bytes for each
 * record, the data), edits change bytes of the parts, and what comes out is put together again with the counts of the
 * header and the padding before the data made right. No rule of the format is kept that an edit does not keep. */
#ifndef FORGE_H
#define FORGE_H
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

enum { FORGE_MOST = 4 }; /* edits of a list */

/* Fields: name: key or tensor; v: value as bits; n: count; text. What is not there fails the running test, except that
 * KEY_* with a value adds a record that is missing. */
struct forge_edit {
    enum forge_kind {
        FORGE_END, /* no edit */
        /* the whole file */
        HEAD,    /* at: offset in the header of 24 bytes, n: width of the number v */
        CUT,     /* ends with byte v of the part that `at` names (enum forge_part); negative: before it */
        PREFIX,  /* text of n bytes in front of everything */
        APPEND,  /* n bytes of value v behind everything */
        NO_DATA, /* nothing behind the records, not even padding */
        ALIGN,   /* padding before the data up to a multiple of v, and with SPACED of every tensor */
        SPACED,  /* tensors' data laid out anew, v bytes between two of them */
        TURNED,  /* the records of tensors in the opposite order */
        /* metadata */
        KEY_NUM,    /* value v of type `type` */
        KEY_REAL,   /* value `real` of type F32 or F64 */
        KEY_TEXT,   /* string of the n first bytes of text, over and over; n 0: text itself */
        KEY_ARRAY,  /* n numbers v of type `type` */
        KEY_REALS,  /* n numbers `real` of type F32 or F64 */
        KEY_TEXTS,  /* n strings text; with v: text and a running number from 0 */
        KEY_LAST,   /* the last number of the array = v */
        KEY_ITEM,   /* string `at` of the array = text, as with KEY_TEXT */
        KEY_INNER,  /* the field that says the length of string `at` of the array = v */
        KEY_KEEP,   /* the array ends after its first n elements */
        KEY_TYPE,   /* the field that says the type of the value = v */
        KEY_ELEM,   /* the field that says the type of elements = v */
        KEY_COUNT,  /* the field that says the count of elements or the length of a string = v */
        KEY_LENGTH, /* the field that says the length of the key = v */
        KEY_POKE,   /* n bytes of v at byte `at` of the record */
        KEY_NAME,   /* another key: text, as with KEY_TEXT */
        KEY_DROP,   /* no such record */
        KEY_AGAIN,  /* a copy of the record behind all others */
        KEY_FILL,   /* n records of one byte: text and a running number */
        KEY_WIDEN,  /* every number of the value becomes one of type `type` */
        /* tensors: fields of the record */
        T_LENGTH, /* of the name */
        T_NDIMS,
        T_DIM, /* number `at` */
        T_TYPE,
        T_OFFSET,
        T_ONTO, /* offset: that of tensor `text` + v */
        /* tensors */
        T_SHAPE, /* n dims, from the four 16-bit parts of v, lowest first */
        T_NAME,  /* another name: text, as with KEY_TEXT */
        T_DROP,  /* none whose name begins so */
        T_AGAIN, /* a copy of the record behind all others */
        T_NEW,   /* a record behind all others: type `type`, one value, its data behind all others */
        T_POKE,  /* data: n bytes of v at byte `at` */
    } kind;
    const char *name;
    uint64_t v;
    uint64_t n;
    int at;
    int type; /* enum gguf_type; tensors: enum qtype */
    double real;
    const char *text;
};

enum forge_part { PART_HEADER, PART_KEYS, PART_TENSORS, PART_DATA, PART_END };

/* 16-bit parts of T_SHAPE's v. */
#define FORGE_DIMS(a, b, c, d) ((uint64_t)(a) | (uint64_t)(b) << 16 | (uint64_t)(c) << 32 | (uint64_t)(d) << 48)

/* The file `from` with up to n edits (until FORGE_END), written to `to`. Fails the running test if it cannot. */
void forge_write(const char *from, const char *to, const struct forge_edit *edits, int n);

#endif
