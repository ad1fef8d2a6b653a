/* ds4-gguf: makes and looks at model files. */
#include <stdio.h>
#include <string.h>
#include "base/program.h"
#include "commands.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"convert", command_convert, "a folder of safetensors to a GGUF file"},
    {"inspect", command_inspect, "metadata, tensors, sizes and memory plan of a GGUF file"},
    {"synth", command_synth, "a valid model of random weights, for tests and measurements"},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void usage(FILE *f)
{
    fprintf(f, "ds4-gguf: makes and looks at model files\n\nUsage: ds4-gguf COMMAND ...\n\n");
    for (int i = 0; i < N_COMMANDS; i++) fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(f, "\nds4-gguf COMMAND --help tells more.\n");
}

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) return commands[i].run(argc - 2, argv + 2);
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0) {
        usage(stdout);
        return 0;
    }
    if (*name) program_say("ds4-gguf", "unknown command %s", name);
    usage(stderr);
    return 2;
}

int main(int argc, char **argv)
{
    program_begin("ds4-gguf");
    return program_end("ds4-gguf", run(argc, argv));
}
