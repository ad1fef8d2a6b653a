/* ds4-gguf: makes and looks at model files. */
#include <stdio.h>
#include <string.h>
#include "base/program.h"
#include "commands.h"

static const struct command {
    const struct help_section *section;
    int (*run)(int argc, char **argv);
} commands[] = {
    {&check_section, command_check},
    {&convert_section, command_convert},
    {&inspect_section, command_inspect},
    {&synth_section, command_synth},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static const struct help_part parts[] = {{&check_section}, {&convert_section}, {&inspect_section},    {&synth_section},
                                         {&help_on_help},  {&help_on_status},  {&help_on_environment}};

static const struct help_example examples[] = {
    {NULL, "ds4-gguf inspect model.gguf"},
    {"check", "ds4-gguf check big-00001-of-00017.gguf"},
    {"convert", "ds4-gguf convert DeepSeek-V4-Flash -o flash-q2.gguf --dense q8_0 --embedding f16 "
                "--type 'ffn_down_exps=q2_k' --experts iq2_xxs"},
    {"inspect", "ds4-gguf inspect --summary big-00001-of-00017.gguf"},
    {"synth", "ds4-gguf synth --preset flash --layers 4 --quant q2 -o flash4.gguf"},
    {"synth", "ds4-gguf synth --preset tiny --quant q8 --set expert_count=64 --set attention.sliding_window=32 "
              "-o m.gguf"},
};

const struct help_program gguf_program = {.name = "ds4-gguf",
                                          .summary = "makes and looks at model files",
                                          .usage = "COMMAND [options]",
                                          .text = "GGUF is the format of the model files that ds4 runs.",
                                          .see_also = "ds4(1)",
                                          .parts = parts,
                                          .n_parts = sizeof parts / sizeof parts[0],
                                          .examples = examples,
                                          .n_examples = sizeof examples / sizeof examples[0]};

static int run(int argc, char **argv)
{
    struct args a = {.program = gguf_program.name, .argv = argv, .argc = argc, .at = 1};
    int status = 2;
    for (int i = 0; i < N_COMMANDS && argc > 1; i++)
        if (strcmp(argv[1], commands[i].section->topic) == 0) return commands[i].run(argc - 2, argv + 2);
    if (argc > 1 && argv[1][0] == '-')
        option_scan(&a, &gguf_program, NULL, NULL, &status);
    else
        option_mistake(&a, &gguf_program, NULL, argc > 1 ? "unknown command " : "no command", argc > 1 ? argv[1] : "");
    return status;
}

int main(int argc, char **argv)
{
    program_begin("ds4-gguf");
    return program_end("ds4-gguf", run(argc, argv));
}
