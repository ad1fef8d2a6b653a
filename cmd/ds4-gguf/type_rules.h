/* Which type every tensor of a converted file gets: options, rules of the family, what fits a row. */
#ifndef TYPE_RULES_H
#define TYPE_RULES_H
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "layout.h"

enum { TYPE_RULES_MAX = 64, TYPE_KEEP = -1 };

enum { TYPE_RANDOM = -2 }; /* of rules for synth: another type for every tensor */

struct type_rules {
    bool made_up; /* types are those that synth can fill, and "random" is one; else those that can be encoded */
    int dense, experts, embedding; /* enum qtype, or TYPE_KEEP */
    struct {
        regex_t regex;
        char *text; /* owned */
        int type;
        bool hit;
    } rule[TYPE_RULES_MAX]; /* the first that matches a name decides */
    int n_rules;
};

void type_rules_free(struct type_rules *r);
/* Number of a type that can be written; ERR_ARG names those that can. */
int type_rules_parse(const char *name, int *type, struct err *e);
/* Adds "REGEX=TYPE" (an extended regular expression, searched in the name). */
int type_rules_add(struct type_rules *r, const char *spec, struct err *e);
/* What the rules say of a tensor, or TYPE_KEEP. */
int type_rules_find(struct type_rules *r, const struct layout_tensor *t);

/* The type for a tensor whose source is exact in exact_type. pads: rows may become longer (type_rules_pad). *fallback:
 * the type that was asked for, where its blocks do not fit the rows and another one was taken; else TYPE_KEEP. */
uint32_t type_rules_pick(struct type_rules *r, struct layout_tensor *t, uint32_t exact_type, bool pads, int *fallback);
/* The type itself if its blocks fit the tensor's rows, else Q8_0 or F16. */
uint32_t type_rules_fit(uint32_t type, const struct layout_tensor *t);
/* Q2_K rows of routed experts that do not fill whole blocks become longer, with `logical` values (a multiple of 16) and
 * zeros behind them (spec qwen38 2.2, 8). */
void type_rules_pad(uint32_t type, struct layout_tensor *t);
/* Says on stderr that tensor `at` did not get the wanted type: once per kind of tensor. noted: one per tensor, false at
 * first. */
void type_rules_note(const struct layout_tensor *tensors, int at, uint32_t wanted_type, uint32_t taken, bool *noted);
/* ERR_ARG for a rule that decided no tensor. */
int type_rules_all_hit(const struct type_rules *r, struct err *e);

#endif
