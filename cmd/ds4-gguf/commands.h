/* The commands of ds4-gguf. Each gets the words behind its name and returns the exit status: 0, 1 (failed) or 2 (wrong
 * use). */
#ifndef COMMANDS_H
#define COMMANDS_H

int command_convert(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_synth(int argc, char **argv);

#endif
