/* Inside of the answer parser: how one family spells the tags of a tool block. */
#ifndef TEXT_ANSWER_SYNTAX_H
#define TEXT_ANSWER_SYNTAX_H
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

/* A tag, and the longest look ahead for one: what is longer is no tag. */
enum { ANSWER_TAG_BYTES = 512 };

enum answer_tag_kind {
    TAG_NONE, /* no tag of this syntax, or a broken one */
    TAG_MORE, /* the bytes end before that is known */
    TAG_BLOCK,
    TAG_BLOCK_END,
    TAG_CALL,
    TAG_CALL_END,
    TAG_PARAM,
    TAG_PARAM_END
};

enum answer_value_type { VALUE_UNSAID, VALUE_STRING, VALUE_JSON };

/* How the tags of one block are spelled: what stands between '<' (or '</') and the name of the element. */
struct answer_spelling {
    char marker[32];
    size_t n;
};

struct answer_tag {
    enum answer_tag_kind kind;
    size_t n;   /* bytes of the tag */
    bool exact; /* spelled like the tag that opened the block; only such a tag is one wherever it stands */
    struct answer_spelling spelling;
    const char *name; /* TAG_CALL, TAG_PARAM: as written, in the bytes of the tag */
    size_t n_name;
    enum answer_value_type type; /* TAG_PARAM */
};

struct answer_syntax {
    const char *think_open, *think_close;
    const char *block, *call, *param; /* names of the elements */
    const char *forced_call[2];       /* around the name of a tool that must be called */
    bool newlines;      /* the frame puts a newline around reasoning, text and values: it is not part of them */
    bool typed;         /* the types of values follow from the schema; a tag says nothing */
    bool call_in_block; /* one call in a block, and further blocks behind it */

    /* Reads the tag at p[0] == '<' of n >= 1 bytes. like: spelling of the block, NULL while none is open. */
    void (*tag)(const struct answer_spelling *like, const char *p, size_t n, struct answer_tag *t);
    /* Appends what the name in a tag means. */
    void (*name)(const char *p, size_t n, struct str *out);
    /* p[0] == '&': appends what an escaped end of a value stands for and returns its length; 0: there is none; -1: the
     * bytes end before that is known. */
    int (*escape)(const struct answer_spelling *like, const char *p, size_t n, struct str *out);
};

/* 1: p starts with text; -1: p[0..n) is the beginning of text; 0: neither. */
int answer_literal(const char *p, size_t n, const char *text, size_t n_text);
bool answer_space(char c);
/* The first byte of p[at..n) that is no white space, or n. */
size_t answer_skip_space(const char *p, size_t at, size_t n);

#endif
