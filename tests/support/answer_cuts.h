/* All the ways in which a text is cut into what a model says at a time. */
#ifndef SUPPORT_ANSWER_CUTS_H
#define SUPPORT_ANSWER_CUTS_H
#include <stdbool.h>
#include <stddef.h>

/* How many ways; all come from a fixed seed. */
struct answer_cut_counts {
    size_t bytes;       /* texts of up to so many bytes are cut byte by byte */
    size_t all_splits;  /* in texts of up to so many bytes every place is tried as the only cut; */
    bool markup;        /* in longer ones every place within markup and characters of several bytes, */
    size_t some_splits; /* and about so many others */
    int multi_splits;   /* ways with up to about 40 cuts */
};
extern const struct answer_cut_counts answer_cuts_full; /* all, 4 KiB, markup, 2000, 200 */

/* ends[n_ends]: offsets where pieces end, ascending; the last one is the end of the text. */
typedef void answer_cut(void *arg, const size_t *ends, size_t n_ends);
/* Calls cut for the text whole, byte by byte, split in two, and in several pieces. */
void answer_cuts(const char *text, size_t n, const struct answer_cut_counts *counts, answer_cut *cut, void *arg);

#endif
