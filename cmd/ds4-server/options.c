/* The tables of ds4-server's options, from which both parsing and help come. */
#include "options.h"
#include <limits.h>
#include <string.h>
#include "common/option_scan.h"

static const struct option serving_rows[] = {
    {"--sessions", NULL, "N", "answers at the same time; memory for N + 1 histories is planned at the start",
     OPTION_INT(struct options, sessions, 1, 256), .initial = "1"},
    {"-n", "--tokens", "N", "most tokens of an answer, where a request does not say",
     OPTION_INT(struct options, n_tokens, 1, INT_MAX), .initial = "393216"},
    {"--time-limit", NULL, "S", "seconds that an answer may take; then it ends as if cut by its token limit",
     OPTION_INT(struct options, time_limit, 1, 86400), .rare = true},
    {"--repetition-guard", NULL, NULL,
     "end an answer, as if cut by its token limit, that repeats the same 1 to 64 tokens for more than 1024",
     OPTION_SET(struct options, repetition_guard, true), .rare = true},
    {"--tool-memory-max-ids", NULL, "N",
     "tool calls that are remembered as they were sampled, so that no history is read again; 0: none",
     OPTION_INT(struct options, tool_ids, 0, INT_MAX), .initial = "100000", .rare = true},
    {"--scripted", NULL, "FILE", "no model: say what a script says (for tests of clients)",
     OPTION_TEXT(struct options, scripted), .rare = true},
    {"--trace", NULL, "FILE",
     "append every request, as it came, to a journal that tools/replay can send again; keys and cookies are left out, "
     "but "
     "not what people write",
     OPTION_OUT(struct options, trace), .rare = true},
    {"--quiet", NULL, NULL, "no line per request", OPTION_SET(struct options, quiet, true), .rare = true},
};

static const struct option network_rows[] = {
    {"--host", NULL, "ADDRESS", "address or name to listen on, may be repeated (default: 127.0.0.1)",
     OPTION_LIST(struct options, host, n_hosts)},
    {"--port", NULL, "N", "0: any free one", OPTION_INT(struct options, port, 0, 65535), .initial = "8000"},
    {"--unix", NULL, "PATH", "listen on a Unix socket (alone unless --host is given)",
     OPTION_TEXT(struct options, unix_path), .rare = true},
    {"--api-key", NULL, "KEY", "clients must send this key, as a bearer token or x-api-key",
     OPTION_TEXT(struct options, api_key)},
    {"--api-key-file", NULL, "FILE", "the same with the keys of a file, one a line",
     OPTION_TEXT(struct options, api_key_file)},
    {"--cors", NULL, NULL, "pages of any origin may ask, and read the answers", OPTION_SET(struct options, cors, true),
     .rare = true},
    {"--allow-origin", NULL, "ORIGIN", "pages of this origin may, may be repeated",
     OPTION_LIST(struct options, allow_origin, n_allow_origins), .rare = true},
    {"--allow-host", NULL, "NAME", "a name by which a client on this machine may call the server, may be repeated",
     OPTION_LIST(struct options, allow_host, n_allow_hosts), .rare = true},
};

static const struct help_section serving_section = {
    .topic = "serving",
    .title = "Serving",
    .text =
        "The APIs: OpenAI chat completions, completions and responses, Anthropic messages; /v1/models, /health, "
        "/metrics, /props, and a page to chat at /. One line per request goes to standard error. SIGTERM or Ctrl-C "
        "lets "
        "running answers end, a second one does not; status 3: the device has failed, and a supervisor should start "
        "the program again.",
    HELP_ROWS(serving_rows)};

static const struct help_section network_section = {
    .topic = "network",
    .title = "Who can ask",
    .text = "Without options only programs of this machine. Give a key when other machines can reach the server.",
    HELP_ROWS(network_rows)};

static const struct help_part parts[] = {
    {&runtime_section, offsetof(struct options, runtime)},
    {&serving_section},
    {&network_section},
    {&help_on_help},
    {&help_on_status},
    {&help_on_environment},
};

static const struct help_example examples[] = {
    {NULL, "ds4-server -m model.gguf --ctx 131072 --sessions 2"},
    {"network", "ds4-server -m model.gguf --host 0.0.0.0 --api-key-file keys.txt"},
};

static const struct help_program program = {
    .name = "ds4-server",
    .summary = "serve a model behind the APIs that programs speak",
    .usage = "-m FILE [options]",
    .see_also = "ds4(1), ds4-gguf(1)",
    .parts = parts,
    .n_parts = sizeof parts / sizeof parts[0],
    .examples = examples,
    .n_examples = sizeof examples / sizeof examples[0],
};

/* As clients could send it: a word of printable ASCII. */
static bool is_word(const char *s)
{
    for (const char *p = s; *p; p++)
        if (*p <= ' ' || *p > '~') return false;
    return *s != 0;
}

static bool is_origin(const char *s)
{
    const char *const host = strstr(s, "://");
    if (!strcmp(s, "*") || !strcmp(s, "null")) return true;
    return is_word(s) && host && host > s && host[3] && !strpbrk(host + 3, "/?#");
}

/* Words that no request could ever match would refuse everybody without saying why. */
static void check_words(struct args *a, const struct options *o)
{
    if (o->api_key && !is_word(o->api_key))
        args_mistake(a, "--api-key: a key is needed, of printable characters without spaces");
    for (int i = 0; i < o->n_allow_hosts; i++)
        if (!is_word(o->allow_host[i]) || strpbrk(o->allow_host[i], "/?#"))
            args_mistake(a, "--allow-host: '%s' is no name of a host", o->allow_host[i]);
    for (int i = 0; i < o->n_allow_origins; i++)
        if (!is_origin(o->allow_origin[i]))
            args_mistake(a, "--allow-origin: '%s' is no origin such as https://app.example", o->allow_origin[i]);
}

bool options_parse(int argc, char **argv, struct options *o, int *status)
{
    struct args a = {.program = program.name, .argv = argv, .argc = argc, .at = 1};
    *o = (struct options){0};
    if (!option_scan(&a, &program, NULL, o, status)) return false;
    if (o->scripted && o->runtime.n_models)
        args_mistake(&a, "give one of --scripted and -m");
    else if (!o->scripted && !o->runtime.n_models)
        args_mistake(&a, "no model; give one with -m FILE (see ds4-server --help)");
    if (!a.bad) check_words(&a, o);
    *status = 2;
    return !a.bad;
}
