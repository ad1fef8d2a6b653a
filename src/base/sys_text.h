/* Small text files of /proc, /sys and the cgroup trees. */
#ifndef BASE_SYS_TEXT_H
#define BASE_SYS_TEXT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

/* Reads folder/name into s; false if it cannot be read (s is empty then, or what could be read). */
bool sys_text(const char *folder, const char *name, struct str *s);
/* A number behind blanks; false: there is none ("max", "-1"). */
bool sys_number(const char *p, uint64_t *v);
/* The number in folder/name; false: the file is missing, or sys_number says so. */
bool sys_number_in(const char *folder, const char *name, uint64_t *v);
/* What follows word at the start of a line of text, behind blanks; NULL: no such line. */
const char *sys_value(const char *text, const char *word);
/* Sets the places of a list ("0-3,8") below n in has[n]; what comes behind a mistake is left out. */
void sys_list(const char *list, bool *has, int n);

#endif
