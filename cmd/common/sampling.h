/* Options of every program that lets a model answer: how tokens are chosen, and how much is thought before. */
#ifndef SAMPLING_H
#define SAMPLING_H
#include "ds4.h"
#include "help.h"

struct sampling_options {
    struct ds4_sampling draw; /* seed 0: none was given */
    enum ds4_think think;
};

extern const struct help_section sampling_section; /* fills struct sampling_options, think if an option says so */

/* A seed that no other run has, never 0. */
uint64_t sampling_seed(void);

#endif
