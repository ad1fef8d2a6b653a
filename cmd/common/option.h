/* Options as data: one row says how an option is spelled, what it takes, where its value goes and what help says of it.
 * Parsing (option_scan.h) and help (help.h) both come from the rows. */
#ifndef OPTION_H
#define OPTION_H
#include <stdbool.h>
#include <stddef.h>
#include "base/args.h"

enum option_kind {
    OPTION_SHOWN, /* a row for readers: help explains it, nothing parses it */
    OPTION_SET,
    OPTION_CHOICE,
    OPTION_INT,
    OPTION_FLOAT,
    OPTION_SEED,
    OPTION_GIB,
    OPTION_TEXT,
    OPTION_OUT,
    OPTION_LIST,
    OPTION_CALL,
    OPTION_HELP,
    OPTION_VERSION
};

struct option {
    const char *name;  /* "-m"; without a dash an operand, "FILE" */
    const char *other; /* "--model", or NULL */
    const char *value; /* its argument, "N" or "on|off"; NULL: none */
    const char *text;  /* for help: plain ASCII, one sentence without its full stop */
    /* The rest comes from one of the macros below. */
    enum option_kind kind;
    size_t at;       /* of the target, in the structure that the options of a section fill */
    size_t bytes;    /* of the target of SET and CHOICE */
    size_t count_at; /* LIST: of the int that counts */
    int set;         /* SET */
    double min, max; /* INT, FLOAT; LIST: max words */
    void (*take)(struct args *a, const char *word, void *target); /* CALL: takes the value with args_value */
    const char *initial; /* the value without the option, as one would type it; help shows it. NULL: the caller's */
    bool rare;           /* not on the first page of help */
};

/* The offset of a field that must have the type. */
#define OPTION_AT(type, field, of) (offsetof(type, field) + 0 * sizeof _Generic(((type *)0)->field, of : 1))
#define OPTION_BYTES(type, field)  sizeof(((type *)0)->field)

/* A switch: the bool, int or enum becomes that. */
#define OPTION_SET(type, field, to)                                                                                    \
    .kind = OPTION_SET, .at = offsetof(type, field), .bytes = OPTION_BYTES(type, field), .set = (to)
/* One of the words in value ("on|off"): the bool, int or enum becomes its place among them, from 0. */
#define OPTION_CHOICE(type, field)                                                                                     \
    .kind = OPTION_CHOICE, .at = offsetof(type, field), .bytes = OPTION_BYTES(type, field)
#define OPTION_INT(type, field, least, most)                                                                           \
    .kind = OPTION_INT, .at = OPTION_AT(type, field, int), .min = (least), .max = (most)
#define OPTION_FLOAT(type, field, least, most)                                                                         \
    .kind = OPTION_FLOAT, .at = OPTION_AT(type, field, float), .min = (least), .max = (most)
#define OPTION_SEED(type, field) .kind = OPTION_SEED, .at = OPTION_AT(type, field, uint64_t)
#define OPTION_GIB(type, field)  .kind = OPTION_GIB, .at = OPTION_AT(type, field, uint64_t)
#define OPTION_TEXT(type, field) .kind = OPTION_TEXT, .at = OPTION_AT(type, field, const char *)
/* The name of a file that will be written: "-" is a mistake. */
#define OPTION_OUT(type, field) .kind = OPTION_OUT, .at = OPTION_AT(type, field, const char *)
/* Words of an option or operand that may be repeated: an array of const char * and the int that counts them. */
#define OPTION_LIST(type, field, count)                                                                                \
    .kind = OPTION_LIST, .at = offsetof(type, field), .count_at = OPTION_AT(type, count, int),                         \
    .max = OPTION_BYTES(type, field) / sizeof(char *)
/* Something else; function as take above. */
#define OPTION_CALL(type, field, function) .kind = OPTION_CALL, .at = offsetof(type, field), .take = (function)
/* -h, --help [TOPIC] and --version themselves have .kind = OPTION_HELP and OPTION_VERSION. */

#endif
