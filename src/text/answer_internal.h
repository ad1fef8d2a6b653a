/* Inside of the answer parser: its state. answer.c reads prose, answer_block.c the structure of a tool block,
 * answer_value.c the values of parameters, answer_call.c makes calls of them. All bytes that may still be looked at
 * again stand in `in`; every reader has a position there, gives up (READ_MORE) where further bytes could change what it
 * decides, and comes back to the same place. So nothing depends on how the bytes arrived. */
#ifndef TEXT_ANSWER_INTERNAL_H
#define TEXT_ANSWER_INTERNAL_H
#include "base/str.h"
#include "text/answer.h"
#include "text/answer_syntax.h"
#include "text/chat.h"
#include "text/code_spans.h"
#include "text/tool_types.h"
#include "text/utf8.h"

enum read_result {
    READ_ON,   /* one step was made */
    READ_MORE, /* further bytes are needed */
    READ_FAIL, /* this is no tool block: it stays what it stood in */
    READ_OVER  /* the answer is over */
};

/* A call as it is put together. Held until it is certain that it will be valid, then sent as it grows. */
struct answer_call {
    const struct chat_tool *tool;
    struct tool_types types;
    struct str arguments; /* not sent yet */
    bool sent;            /* ANSWER_CALL_BEGIN is out: the call must become valid now */
    bool open_string;     /* the last string lacks its closing quote */
    bool has_member;      /* of a custom tool: its input */
};

/* The value that is being read. Positions are offsets in `in`. */
struct answer_value {
    struct str key;
    enum answer_value_type type;
    bool raw;        /* its text must be whole before it says what it is: collected in `text` */
    struct str text; /* see raw */
    struct utf8_stream utf8;
    size_t start, at;                            /* first byte, next byte to look at */
    size_t done;                                 /* bytes before it are part of the arguments, or of `text` */
    size_t solid;                                /* what was read up to `at`, without newlines at the end */
    bool begun, crlf;                            /* the newline ahead of it was looked for; it was CR LF */
    bool in_string, escape;                      /* VALUE_JSON: inside a string of it, behind a backslash */
    enum { LOOK_NOT, LOOK_END, LOOK_TAIL } look; /* does the value end at `at`? See answer_value.c */
    size_t look_at;
    bool tail_block; /* LOOK_TAIL: the end of the block was among what was seen */
    bool end_seen;   /* holds the end of a call or block: its own end may be missing */
    size_t openers;  /* suspicious parameter tags inside that no escaped end has followed */
};

struct answer_block {
    bool open;
    bool thinking; /* it stands in reasoning: nothing of it is sent before it is complete */
    enum { IN_BLOCK, AFTER_BLOCK, IN_CALL, IN_VALUE, IN_LOOSE, IN_OBJECT, IN_JUNK } state;
    size_t start, tag; /* where the white space before it starts, and its first tag */
    size_t pos;        /* next byte to read */
    size_t failed_at;  /* READ_FAIL: no other block starts before it */
    struct answer_spelling spelling;
    struct answer_call call;
    struct answer_value value;
    bool in_object; /* the parameter is an object made of parameters; the value is a member of it */
    struct str object, object_key;
    struct answer_call *held; /* complete calls of a block in reasoning */
    size_t n_held, cap_held;
    bool spare;  /* complete calls behind the one that is wanted were left out */
    size_t stop; /* where the end tag starts in whose middle the turn ends, 0: none */
    size_t end;  /* behind the last complete call, and the block's end if there was one */
    /* what is missing at `end`: ends of the parameter, of the call, of the block */
    struct answer_lacking {
        bool param, call, block;
    } lacks;
    struct answer_lacking at_turn_end; /* what will be missing if the turn ends inside the call */
};

struct answer {
    struct answer_options o;
    answer_sink *sink;
    void *arg;
    struct str in;
    size_t from, pos;  /* first byte that was not given out, next one to look at */
    size_t quiet;      /* no block starts before it */
    bool failed;       /* what opened like a block was none: a call without a block may be a part of that */
    bool reasoning;    /* where `pos` is */
    bool fresh;        /* nothing but white space since reasoning or text started */
    bool think_opened; /* no think tag opens reasoning any more */
    bool ended, limit; /* no bytes will follow those in `in`; because of a limit */
    bool over, cut;    /* nothing more is read; a call was cut by the limit */
    struct code_spans code;
    struct utf8_stream utf8; /* of what is given out as reasoning or text */
    struct answer_block block;
    size_t n_calls;           /* sent and complete */
    size_t text_end;          /* what follows in `in` is the block of the calls */
    struct str piece, quoted; /* scratch */
    struct str out;           /* events of one kind that were not sent yet */
    enum answer_kind out_kind;
    struct str note, replay;
};

/* answer.c */
void answer_put(struct answer *a, enum answer_kind kind, const char *bytes, size_t n);
void answer_end_prose(struct answer *a); /* calls follow; the white space before them is thrown away */
void answer_remark(struct answer *a, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* the first counts */

/* answer_block.c */
void block_open(struct answer *a, const struct answer_tag *first);
enum read_result block_read(struct answer *a);
enum read_result block_at_limit(struct answer *a); /* no more bytes because of a limit: READ_FAIL or READ_OVER */
enum read_result block_broken(struct answer *a,
                              size_t at); /* the call cannot become valid because of what is at `at` */
void block_free(struct answer *a);
void block_replay(struct answer *a); /* makes a->replay */
/* The tag at in[at]; no TAG_MORE at the end of the turn. */
struct answer_tag block_tag(const struct answer *a, size_t at);
/* In the middle of an end tag of element, spelled like the block: at least two bytes of it are the last ones. */
bool block_partial_end(const struct answer *a, size_t at, const char *element);
bool block_turn_ended(const struct answer *a); /* `in` is all there will be, by the model's own will */

/* answer_value.c */
enum read_result value_open(struct answer *a, const struct answer_tag *tag);
enum read_result value_read(struct answer *a);
enum read_result value_read_loose(struct answer *a);
bool value_is_syntax(const struct answer *a);

/* answer_call.c */
void call_open(struct answer *a, const struct chat_tool *tool);
void call_send(struct answer *a); /* from now on it is sent as it grows */
/* Adds to the arguments or, inside of one, to the object: the key of a member; more of the string that was begun; a
 * whole value (JSON). */
void call_key(struct answer *a);
void call_string(struct answer *a, const char *bytes, size_t n);
void call_json(struct answer *a, struct json_text value);
void call_end_string(struct answer *a);
void call_pass_on(struct answer *a);                           /* sends what may be sent */
bool call_complete(struct answer *a);                          /* false: a custom tool without its input */
void call_deliver(struct answer *a, struct answer_call *call); /* sends all that was not sent, and the end */
void call_free(struct answer_call *call);

#endif
