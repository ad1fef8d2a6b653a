/* The table of options, from which both parsing and help come. */
#include "options.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/args.h"
#include "base/clock.h"
#include "base/program.h"
#include "dump_json.h"

/* Every option: its names, the name of its value (NULL: a switch), what help says. */
enum option_id {
    O_MODEL,
    O_PROMPT,
    O_PROMPT_FILE,
    O_SYSTEM,
    O_RAW,
    O_SESSION,
    O_TOKENS,
    O_THINK,
    O_THINK_MAX,
    O_NOTHINK,
    O_EFFORT,
    O_TEMP,
    O_TOP_K,
    O_TOP_P,
    O_MIN_P,
    O_SEED,
    O_CTX,
    O_MEMORY,
    O_PAGE,
    O_THREADS,
    O_CHUNK,
    O_BACKEND,
    O_ISA,
    O_KV_SIM,
    O_PERPLEXITY,
    O_CONSISTENCY,
    O_DOCTOR,
    O_INSPECT,
    O_DUMP_TOKENS,
    O_TOKEN_IDS,
    O_LOGITS_OUT,
    O_DUMP_LOGITS,
    O_DUMP_LOGPROBS,
    O_TOP_LOGPROBS,
    O_VERBOSE,
    O_HELP,
    O_COUNT
};

struct option {
    const char *name, *other, *value, *help;
    const char *title; /* stands above the option in help: it begins a group */
};

static const struct option table[O_COUNT] = {
    [O_MODEL] = {"-m", "--model", "FILE", "the model, a GGUF file; of a split one any part; again: its second file",
                 "Model and prompt"},
    [O_PROMPT] = {"-p", "--prompt", "TEXT", "answer this and leave"},
    [O_PROMPT_FILE] = {"--prompt-file", NULL, "FILE", "the same with the text of a file (-: standard input)"},
    [O_SYSTEM] = {"-sys", "--system", "TEXT", "system text (\"You are a helpful assistant\"; empty: none)"},
    [O_RAW] = {"--raw", "--raw-prompt", NULL, "go on with the prompt as plain text, without a chat frame"},
    [O_SESSION] = {"--session", NULL, "NAME", "resume from this file if it exists, and save to it at the end"},
    [O_TOKENS] = {"-n", "--tokens", "N", "most tokens of an answer (50000)", "Answer"},
    [O_THINK] = {"--think", NULL, NULL, "think before the answer (default)"},
    [O_THINK_MAX] = {"--think-max", NULL, NULL, "think as much as the model can; needs --ctx 393216 or more"},
    [O_NOTHINK] = {"--nothink", NULL, NULL, "answer at once"},
    [O_EFFORT] = {"--effort-mapping", NULL, "NAME", "how efforts are worded: file (as the file says), preview, late"},
    [O_TEMP] = {"--temp", NULL, "F", "temperature (1); 0: always the most probable token"},
    [O_TOP_K] = {"--top-k", NULL, "N", "only the N most probable tokens (0: all)"},
    [O_TOP_P] = {"--top-p", NULL, "F", "only the most probable tokens that sum up to F (1)"},
    [O_MIN_P] = {"--min-p", NULL, "F", "only tokens at least F times as probable as the first (0.05)"},
    [O_SEED] = {"--seed", NULL, "N", "seed of the drawing (from the clock): the same seed, the same answer"},
    [O_CTX] = {"-c", "--ctx", "N", "context in tokens (32768, or the model's if that is less)", "Memory and speed"},
    [O_MEMORY] = {"--memory", NULL, "NGB", "count on N GiB of memory (what is free now): refuse what needs more"},
    [O_PAGE] = {"--page-weights", NULL, NULL, "run a model that is larger than memory, reading it again and again"},
    [O_THREADS] = {"-t", "--threads", "N", "threads (one per physical core)"},
    [O_CHUNK] = {"--prefill-chunk", NULL, "N", "most prompt tokens that are computed together (512)"},
    [O_BACKEND] = {"--backend", NULL, "NAME", "cpu (default), or ref: the slow double precision reference"},
    [O_ISA] = {"--isa", NULL, "NAME", "kernels of the cpu backend (the best the processor has); scalar: portable C"},
    [O_KV_SIM] = {"--kv-sim", NULL, "on|off",
                  "the model's FP8/FP4 rounding of stored rows (on); off keeps rows in F32"},
    [O_PERPLEXITY] = {"--perplexity-file", NULL, "FILE",
                      "print how probable a text is; -n: most tokens that are scored", "Checking model and machine"},
    [O_CONSISTENCY] = {"--decode-consistency", NULL, "N",
                       "compare N tokens computed one by one with the same tokens as one prompt"},
    [O_DOCTOR] = {"--doctor", NULL, NULL, "measure the machine, with -m also what to expect of the model"},
    [O_INSPECT] = {"--inspect", NULL, NULL, "print what the file is and the memory plan, and leave", "Looking closer"},
    [O_DUMP_TOKENS] = {"--dump-tokens", NULL, NULL, "print the tokens of the prompt as they would be sent, and leave"},
    [O_TOKEN_IDS] = {"--token-ids", NULL, "LIST", "evaluate these token ids (\"0,5,6\") instead of a prompt"},
    [O_LOGITS_OUT] = {"--logits-out", NULL, "FILE",
                      "write the logits after every prompt token: float32 [tokens][vocabulary]"},
    [O_DUMP_LOGITS] = {"--dump-logits", NULL, "FILE", "write the logits after the prompt as JSON"},
    [O_DUMP_LOGPROBS] = {"--dump-logprobs", NULL, "FILE",
                         "write a greedy answer (-n) with the most probable tokens of each step as JSON"},
    [O_TOP_LOGPROBS] = {"--logprobs-top-k", NULL, "N", "how many of them (20; at most 128)"},
    [O_VERBOSE] = {"-v", "--verbose", NULL, "log what is going on"},
    [O_HELP] = {"-h", "--help", NULL, "this text"},
};

static const char
    help_top[] = "ds4 - talk to a DeepSeek V4 model\n"
                 "\n"
                 "Usage: ds4 -m FILE [-p TEXT | --prompt-file FILE] [options]\n"
                 "\n"
                 "Without a prompt: a chat on a terminal; else standard input is the prompt.\n",
    help_end[] =
        "\n"
        "The answer goes to standard output, everything else to standard error. Exit status: 0 done, 1 failed,\n"
        "2 wrong use. A prompt that begins with the model's own marks, such as <｜User｜>, is sent as it is.\n"
        "\n"
        "A session file holds a conversation with all that was computed for it: the next run answers at once. It is\n"
        "for the same model file, --backend and --kv-sim, and is written anew at the end of a run that added to it.\n"
        "\n"
        "Examples:\n"
        "  ds4 -m model.gguf\n"
        "  ds4 -m model.gguf -p \"Why is the sky blue?\" --nothink --temp 0\n"
        "  ds4 -m model.gguf --session talk.ds4s\n"
        "  ds4 -m model.gguf --inspect\n"
        "  ds4 -m model.gguf --doctor\n";

static enum option_id option_find(const char *word)
{
    for (int i = 0; i < O_COUNT; i++)
        if (!strcmp(word, table[i].name) || (table[i].other && !strcmp(word, table[i].other))) return (enum option_id)i;
    return O_COUNT;
}

void options_help(void)
{
    fputs(help_top, stdout);
    for (int i = 0; i < O_COUNT; i++) {
        const struct option *o = &table[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s%s", o->name, o->other ? ", " : "", o->other ? o->other : "",
                 o->value ? " " : "", o->value ? o->value : "");
        if (o->title) printf("\n%s:\n", o->title);
        printf("  %-24s %s\n", left, o->help);
    }
    fputs(help_end, stdout);
}

/* The position of the word behind an option in a list. */
static int word_of(struct args *a, const char *option, const char *const *words, int n)
{
    const char *v = args_value(a, option);
    for (int i = 0; v && i < n; i++)
        if (!strcmp(v, words[i])) return i;
    if (v)
        args_mistake(a, "%s: '%s' is none of %s, %s%s%s", option, v, words[0], words[1], n > 2 ? ", " : "",
                     n > 2 ? words[2] : "");
    return 0;
}

static void take_model(struct args *a, struct options *o, const char *word)
{
    const char *v = args_value(a, word);
    if (o->n_models == OPTIONS_MAX_MODELS)
        args_mistake(a, "more than %d model files", OPTIONS_MAX_MODELS);
    else if (v)
        o->model[o->n_models++] = v;
}

static void take_sampling(struct args *a, struct options *o, enum option_id id, const char *word)
{
    switch (id) {
    case O_TEMP:
        o->sampling.temperature = (float)args_float(a, word, 0, 100);
        break;
    case O_TOP_K:
        o->sampling.top_k = (int)args_int(a, word, 0, INT32_MAX);
        break;
    case O_TOP_P:
        o->sampling.top_p = (float)args_float(a, word, 0, 1);
        break;
    case O_MIN_P:
        o->sampling.min_p = (float)args_float(a, word, 0, 1);
        break;
    default:
        o->sampling.seed = args_u64(a, word);
        break;
    }
}

static void take_diagnostic(struct args *a, struct options *o, enum option_id id, const char *word)
{
    switch (id) {
    case O_DUMP_LOGITS:
        o->dump_logits = args_value(a, word);
        break;
    case O_DUMP_LOGPROBS:
        o->dump_logprobs = args_value(a, word);
        break;
    case O_TOP_LOGPROBS:
        o->logprobs_top_k = (int)args_int(a, word, 1, DUMP_TOP_MAX);
        break;
    case O_PERPLEXITY:
        o->perplexity_file = args_value(a, word);
        break;
    default:
        o->decode_consistency = (int)args_int(a, word, 0, INT32_MAX);
        break;
    }
}

static void take(struct args *a, struct options *o, enum option_id id, const char *word)
{
    static const char *const efforts[] = {"file", "preview", "late"}, *const switches[] = {"on", "off"};
    switch (id) {
    case O_MODEL:
        take_model(a, o, word);
        break;
    case O_PROMPT:
        o->prompt = args_value(a, word);
        break;
    case O_PROMPT_FILE:
        o->prompt_file = args_value(a, word);
        break;
    case O_SYSTEM:
        o->system = args_value(a, word);
        o->system_given = true;
        break;
    case O_RAW:
        o->raw = true;
        break;
    case O_SESSION:
        o->session = args_value(a, word);
        break;
    case O_TOKENS:
        o->n_tokens = (int)args_int(a, word, 1, INT32_MAX);
        break;
    case O_TEMP:
    case O_TOP_K:
    case O_TOP_P:
    case O_MIN_P:
    case O_SEED:
        take_sampling(a, o, id, word);
        break;
    case O_THINK:
        o->think = DS4_THINK_HIGH;
        break;
    case O_THINK_MAX:
        o->think = DS4_THINK_MAX;
        break;
    case O_NOTHINK:
        o->think = DS4_THINK_OFF;
        break;
    case O_EFFORT:
        o->engine.effort = (enum ds4_effort)word_of(a, word, efforts, 3);
        break;
    case O_CTX:
        o->ctx = (int)args_int(a, word, 1, INT32_MAX);
        break;
    case O_MEMORY:
        o->engine.memory_limit = args_gib(a, word);
        break;
    case O_THREADS:
        o->engine.threads = (int)args_int(a, word, 1, 4096);
        break;
    case O_BACKEND:
        o->engine.backend = args_value(a, word);
        break;
    case O_ISA:
        o->engine.isa = args_value(a, word);
        break;
    case O_CHUNK:
        o->engine.prefill_chunk = (int)args_int(a, word, 1, 65536);
        break;
    case O_PAGE:
        o->engine.page_weights = true;
        break;
    case O_KV_SIM:
        o->engine.kv_sim_off = word_of(a, word, switches, 2) == 1;
        break;
    case O_INSPECT:
        o->inspect = true;
        break;
    case O_DUMP_TOKENS:
        o->dump_tokens = true;
        break;
    case O_TOKEN_IDS:
        o->token_ids = args_value(a, word);
        break;
    case O_LOGITS_OUT:
        o->logits_out = args_value(a, word);
        break;
    case O_DUMP_LOGITS:
    case O_DUMP_LOGPROBS:
    case O_TOP_LOGPROBS:
    case O_PERPLEXITY:
    case O_CONSISTENCY:
        take_diagnostic(a, o, id, word);
        break;
    case O_DOCTOR:
        o->doctor = true;
        break;
    case O_VERBOSE:
        o->verbose = true;
        break;
    case O_HELP:
        o->help = true;
        break;
    case O_COUNT:
        args_unknown(a, word);
        break;
    }
}

bool options_look(const struct options *o)
{
    return o->inspect || o->doctor || o->dump_tokens || o->logits_out || o->dump_logits || o->dump_logprobs ||
           o->perplexity_file || o->decode_consistency >= 0;
}

static void check(struct args *a, const struct options *o)
{
    const int prompts = (o->prompt != NULL) + (o->prompt_file != NULL) + (o->token_ids != NULL);
    if (prompts > 1)
        args_mistake(a, "give one of -p, --prompt-file and --token-ids");
    else if (prompts && o->perplexity_file)
        args_mistake(a, "--perplexity-file takes no prompt");
    else if (o->session && (o->inspect || o->doctor || o->perplexity_file))
        args_mistake(a, "--session is for prompts and chats; leave it out to look at a model, a machine or a text");
    else if (o->session && !*o->session)
        args_mistake(a, "--session: the name is empty");
    else if (!o->n_models && !o->doctor)
        args_mistake(a, "no model; give one with -m FILE (see ds4 --help)");
}

int options_parse(int argc, char **argv, struct options *o)
{
    struct args a = {.program = "ds4", .argv = argv, .argc = argc, .at = 1};
    *o = (struct options){.system = "You are a helpful assistant",
                          .n_tokens = 50000,
                          .think = DS4_THINK_HIGH,
                          .logprobs_top_k = 20,
                          .decode_consistency = -1,
                          .sampling = {.temperature = 1, .top_p = 1, .min_p = 0.05f}};
    o->sampling.seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32 ^ clock_ns();
    for (const char *word; (word = args_next(&a));) take(&a, o, option_find(word), word);
    if (!a.bad && !o->help) check(&a, o);
    return a.bad ? 2 : 0;
}

void options_note_thinking(const struct options *o, enum ds4_think used)
{
    if (used == o->think) return;
    program_say("ds4", "a context of %d tokens is too small for --think-max (see --help); thinking as usual", o->ctx);
}
