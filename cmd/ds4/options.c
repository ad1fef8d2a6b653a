/* The tables of ds4's options, from which both parsing and help come. */
#include "options.h"
#include <limits.h>
#include <string.h>
#include "base/program.h"
#include "chat_commands.h"
#include "common/option_scan.h"
#include "dump_json.h"
#include "lookahead.h"

#define SYSTEM_TEXT "You are a helpful assistant"

static const struct option prompt_rows[] = {
    {"-p", "--prompt", "TEXT", "answer this and leave", OPTION_TEXT(struct options, prompt)},
    {"--prompt-file", NULL, "FILE", "the same with the text of a file; -: standard input",
     OPTION_TEXT(struct options, prompt_file)},
    {"-sys", "--system", "TEXT", "system text; empty: none (default: " SYSTEM_TEXT ")",
     OPTION_TEXT(struct options, system)},
    {"-n", "--tokens", "N", "most tokens of an answer", OPTION_INT(struct options, n_tokens, 1, INT_MAX),
     .initial = "50000"},
    {"--draft", NULL, "N", "tokens that a draft block inside the model guesses ahead: the same answer in fewer steps",
     OPTION_INT(struct options, n_draft, 0, LOOKAHEAD_MOST), .initial = "0", .rare = true},
    {"--raw", "--raw-prompt", NULL, "go on with the prompt as plain text, without a chat frame",
     OPTION_SET(struct options, raw, true)},
    {"--token-ids", NULL, "LIST", "evaluate these token ids (\"0,5,6\") instead of a prompt",
     OPTION_TEXT(struct options, token_ids), .rare = true},
};

static const struct option session_rows[] = {
    {"--session", NULL, "NAME", "resume from this file if it exists, and save to it at the end",
     OPTION_OUT(struct options, session)},
};

static const struct option diagnostic_rows[] = {
    {"--inspect", NULL, NULL, "print what the file is and the memory plan, and leave",
     OPTION_SET(struct options, inspect, true)},
    {"--check-file", NULL, "FILE",
     "tell what the model in the file is, whether it is whole and will run here, and leave; again for the second file "
     "of a model",
     OPTION_LIST(struct options, check_file, n_check_files)},
    {"--json", NULL, NULL, "with --check-file: as JSON", OPTION_SET(struct options, json, true), .rare = true},
    {"--doctor", NULL, NULL, "measure the machine, with -m also what to expect of the model",
     OPTION_SET(struct options, doctor, true)},
    {"--dump-tokens", NULL, NULL, "print the tokens of the prompt as they would be sent, and leave",
     OPTION_SET(struct options, dump_tokens, true), .rare = true},
    {"--perplexity-file", NULL, "FILE", "print how probable a text is; -n: most tokens that are scored",
     OPTION_TEXT(struct options, perplexity_file), .rare = true},
    {"--decode-consistency", NULL, "N", "compare N tokens computed one by one with the same tokens as one prompt",
     OPTION_INT(struct options, decode_consistency, 0, INT_MAX), .rare = true},
    {"--logits-out", NULL, "FILE", "write the logits after every prompt token: float32 [tokens][vocabulary]",
     OPTION_OUT(struct options, logits_out), .rare = true},
    {"--dump-logits", NULL, "FILE", "write the logits after the prompt as JSON",
     OPTION_OUT(struct options, dump_logits), .rare = true},
    {"--dump-logprobs", NULL, "FILE", "write a greedy answer (-n) with the most probable tokens of each step as JSON",
     OPTION_OUT(struct options, dump_logprobs), .rare = true},
    {"--logprobs-top-k", NULL, "N", "how many of them, at most 128",
     OPTION_INT(struct options, logprobs_top_k, 1, DUMP_TOP_MAX), .initial = "20", .rare = true},
};

static const struct help_section prompt_section = {
    .topic = "prompt",
    .title = "Prompt and answer",
    .text = "The answer goes to standard output, everything else to standard error. A prompt that begins with the "
            "model's own marks of a chat is sent as it is.",
    HELP_ROWS(prompt_rows)};

static const struct help_section session_section = {
    .topic = "sessions",
    .title = "Sessions on file",
    .text =
        "A session file holds a conversation with all that was computed for it: the next run answers at once. It is "
        "for the same model file, --backend and --kv-sim, and for --draft or none as when it was saved, and is written "
        "anew at the end of a run that added to it.",
    HELP_ROWS(session_rows)};

static bool chat_row(int i, struct option *row)
{
    if (i >= chat_n_commands) return false;
    const struct chat_command *c = &chat_commands[i];
    *row = (struct option){.name = c->name, .value = c->argument, .text = c->help};
    return true;
}

static const struct help_section chat_section = {
    .topic = "commands",
    .title = "Interactive commands",
    .text = "In a chat a line is a question, or one of these. Typed lines are kept in ~/.ds4_history.",
    .row = chat_row,
    .rare = true};

static const struct option file_rows[] = {
    {"~/.ds4_history", NULL, NULL,
     "lines typed in the chat, the last 512; where HOME is not set, .ds4_history in the current folder"},
};

static const struct help_section file_section = {.title = "Files", HELP_ROWS(file_rows), .rare = true};

static const struct help_section diagnostic_section = {
    .topic = "diagnostics",
    .title = "Checks and diagnostics",
    .text =
        "Of several the first one in this order is done: --check-file, --doctor, --dump-tokens, --inspect, "
        "--perplexity-file, "
        "--logits-out, --dump-logits, --dump-logprobs, --decode-consistency. The last one ends with status 1 if the "
        "most probable token is not the same.",
    HELP_ROWS(diagnostic_rows)};

static const struct help_part parts[] = {
    {&runtime_section, offsetof(struct options, runtime)},
    {&prompt_section},
    {&sampling_section, offsetof(struct options, sampling)},
    {&session_section},
    {&chat_section},
    {&diagnostic_section},
    {&help_on_help},
    {&help_on_status},
    {&help_on_environment},
    {&file_section},
};

static const struct help_example examples[] = {
    {NULL, "ds4 -m model.gguf"},
    {NULL, "ds4 -m model.gguf -p \"Why is the sky blue?\" --nothink --temp 0"},
    {"runtime", "ds4 -m model-00001-of-00017.gguf --ctx 100000 --memory 64GB"},
    {"prompt", "ds4 -m model.gguf --prompt-file question.txt -n 1000 >answer.txt"},
    {"sampling", "ds4 -m model.gguf -p \"Tell me a story.\" --temp 0.7 --min-p 0.1 --seed 5"},
    {"sessions", "ds4 -m model.gguf --session talk.ds4s"},
    {"diagnostics", "ds4 -m model.gguf --inspect"},
    {"diagnostics", "ds4 --check-file model.gguf"},
    {"diagnostics", "ds4 -m model.gguf --doctor"},
};

static const struct help_program program = {
    .name = "ds4",
    .summary = "talk to a big mixture-of-experts model",
    .usage = "-m FILE [-p TEXT | --prompt-file FILE] [options]",
    .text = "Without a prompt: a chat on a terminal; else standard input is the prompt.",
    .see_also = "ds4-gguf(1)",
    .parts = parts,
    .n_parts = sizeof parts / sizeof parts[0],
    .examples = examples,
    .n_examples = sizeof examples / sizeof examples[0],
};

bool options_look(const struct options *o)
{
    return o->n_check_files || o->inspect || o->doctor || o->dump_tokens || o->logits_out || o->dump_logits ||
           o->dump_logprobs || o->perplexity_file || o->decode_consistency >= 0;
}

static void check(struct args *a, const struct options *o)
{
    const int prompts = (o->prompt != NULL) + (o->prompt_file != NULL) + (o->token_ids != NULL);
    if (prompts > 1)
        args_mistake(a, "give one of -p, --prompt-file and --token-ids");
    else if (prompts && o->perplexity_file)
        args_mistake(a, "--perplexity-file takes no prompt");
    else if (o->session && (o->n_check_files || o->inspect || o->doctor || o->perplexity_file))
        args_mistake(a, "--session is for prompts and chats; leave it out to look at a model, a machine or a text");
    else if (o->session && !*o->session)
        args_mistake(a, "--session: the name is empty");
    else if (o->n_check_files && o->runtime.n_models)
        args_mistake(a, "--check-file names the model itself; leave out -m");
    else if (o->json && !o->n_check_files)
        args_mistake(a, "--json is for --check-file FILE");
    else if (!o->runtime.n_models && !o->doctor && !o->n_check_files)
        args_mistake(a, "no model; give one with -m FILE (see ds4 --help)");
}

bool options_parse(int argc, char **argv, struct options *o, int *status)
{
    struct args a = {.program = program.name, .argv = argv, .argc = argc, .at = 1};
    *o = (struct options){.sampling = {.think = DS4_THINK_HIGH}, .decode_consistency = -1};
    if (!option_scan(&a, &program, NULL, o, status)) return false;
    o->system_given = o->system != NULL;
    if (!o->system) o->system = SYSTEM_TEXT;
    if (!o->sampling.draw.seed) o->sampling.draw.seed = sampling_seed();
    check(&a, o);
    *status = 2;
    return !a.bad;
}

void options_note_thinking(const struct options *o, enum ds4_think used)
{
    if (used == o->sampling.think) return;
    program_say("ds4", "a context of %d tokens is too small for --think-max (see --help); thinking as usual",
                o->runtime.ctx);
}
