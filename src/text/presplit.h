/* Pre-tokenizers: cut text into the pieces inside which byte-level BPE merges. A pre-tokenizer is a sequence of
 * patterns; each isolates its matches, and a later one works only inside the pieces that the earlier ones left (what
 * lies between two matches is a piece too). The patterns see characters (PCRE2 with UTF and Unicode properties); one
 * that is younger than the Unicode version of the PCRE2 library counts as unassigned.
 *
 * Bytes that are not UTF-8: each unbroken run of them is a piece of its own, and the text on either side is cut as if
 * it stood alone. The pieces in order are the text, byte for byte. */
#ifndef TEXT_PRESPLIT_H
#define TEXT_PRESPLIT_H
#include <stddef.h>
#include "base/err.h"

enum pretokenizer {
    PRETOKENIZER_JOYAI,  /* spec deepseek-v4 1.1: three isolating splits, then bytes */
    PRETOKENIZER_QWEN35, /* spec qwen38 6: one split, then bytes; text is taken as it is, not normalised */
    PRETOKENIZER_COUNT
};

struct presplit; /* immutable; may be used by several threads at once */

/* Receives one piece; anything but 0 ends the run, which returns it. */
typedef int presplit_piece(void *arg, const char *piece, size_t n, struct err *e);

int presplit_create(enum pretokenizer kind, struct presplit **out, struct err *e);
void presplit_free(struct presplit *s);
/* Calls piece() for every piece of text in order. 0, what piece() returned, or ERR_MEMORY. Linear in n. */
int presplit_run(const struct presplit *s, const char *text, size_t n, presplit_piece *piece, void *arg, struct err *e);

#endif
