/* The commands of ds4-gguf. Each gets the words behind its name and returns the exit status: 0, 1 (failed) or 2 (wrong
 * use); its section says what it does and takes. */
#ifndef COMMANDS_H
#define COMMANDS_H
#include "common/option_scan.h"

extern const struct help_program gguf_program;
extern const struct help_section check_section, convert_section, inspect_section, synth_section;

int command_check(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_synth(int argc, char **argv);

#endif
