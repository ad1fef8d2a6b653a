/* Help of all programs: what the pages hold and how they look in a pipe and on terminals, that help and parsing agree,
 * wrong use, manual pages, installation. Expected layouts and colours are those of spec cli-and-tools 2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ds4.h"
#include "../support/shell_run.h"
#include "../support/temp_files.h"

#define DS4    TEST_BUILD "/ds4"
#define GGUF   TEST_BUILD "/ds4-gguf"
#define SERVER TEST_BUILD "/ds4-server"
#define BENCH  TEST_BUILD "/ds4-bench"

static const char *const programs[] = {DS4, GGUF, SERVER, BENCH};
enum { N_PROGRAMS = sizeof programs / sizeof programs[0] };

/* Every page of every program, as words behind it. */
static const struct {
    const char *program, *words;
} pages[] = {
    {DS4, "--help"},
    {DS4, "--help all"},
    {DS4, "--help runtime"},
    {DS4, "--help prompt"},
    {DS4, "--help sampling"},
    {DS4, "--help sessions"},
    {DS4, "--help commands"},
    {DS4, "--help diagnostics"},
    {DS4, "--help status"},
    {GGUF, "--help"},
    {GGUF, "--help all"},
    {GGUF, "--help convert"},
    {GGUF, "--help inspect"},
    {GGUF, "--help synth"},
    {GGUF, "--help status"},
    {SERVER, "--help"},
    {SERVER, "--help all"},
    {SERVER, "--help serving"},
    {SERVER, "--help network"},
    {BENCH, "--help"},
    {BENCH, "--help all"},
    {BENCH, "--help measuring"},
    {BENCH, "--help results"},
};
enum { N_PAGES = sizeof pages / sizeof pages[0] };

/* The standard output of a command that must succeed. */
static void output(struct str *said, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void output(struct str *said, const char *fmt, ...)
{
    struct str line = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&line, fmt, ap);
    va_end(ap);
    if (shell_run(str_c(&line), said)) fail_msg("%s\nfailed:\n%s", str_c(&line), str_c(said));
    str_free(&line);
}

/* Runs a shell command on a terminal of so many columns; what it shows, without the carriage returns, goes to *said.
 * Skips the test where no pseudo terminal can be had. */
static void on_terminal(struct str *said, int columns, const char *command)
{
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    const int fd = posix_openpt(O_RDWR | O_NOCTTY);
    const char *name = fd >= 0 && !grantpt(fd) && !unlockpt(fd) ? ptsname(fd) : NULL;
    if (!name || access(name, R_OK | W_OK)) {
        if (fd >= 0) close(fd);
        skip();
    }
    assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
    const int other = open(name, O_RDWR | O_NOCTTY);
    assert_true(other >= 0);
    const pid_t pid = fork();
    if (!pid) {
        dup2(other, STDOUT_FILENO);
        close(fd);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(other);
    str_clear(said);
    char bytes[4096];
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < n; i++)
            if (bytes[i] != '\r') str_add(said, &bytes[i], 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(fd);
}

/* Columns of the longest line; escape sequences take none. */
static int widest(const char *text)
{
    int most = 0, n = 0;
    for (; *text; text++) {
        if (*text == '\033')
            text = strchr(text, 'm');
        else if (*text == '\n')
            n = 0;
        else if (++n > most)
            most = n;
    }
    return most;
}

/* The words alone, a blank between them: no colours, line ends, separators, or backslashes of continued commands. */
static void squeeze(struct str *out, const char *text)
{
    str_clear(out);
    for (; *text; text++) {
        if (!strncmp(text, "\033[38;5;240m|", 12))
            text += 11;
        else if (*text == '\033')
            text = strchr(text, 'm');
        else if (!strncmp(text, " \\\n", 3))
            text++;
        else if (!isspace((unsigned char)*text))
            str_add(out, text, 1);
        else if (out->n && out->p[out->n - 1] != ' ')
            str_puts(out, " ");
    }
}

static void expect_part(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void expect_no_part(const char *text, const char *part)
{
    if (strstr(text, part)) fail_msg("\"%s\" is in:\n%s", part, text);
}

static void expect_equal(const char *a, const char *b)
{
    if (strcmp(a, b) != 0) fail_msg("these differ:\n%s\n----\n%s", a, b);
}

/* ---------------------------------------------------------------- pages in a pipe */

/* Plain text of 80 columns: nothing but printable ASCII, no blanks at line ends, no empty lines in a row. */
static void plain_pages(void **state)
{
    struct str said = {0};
    for (int i = 0; i < N_PAGES; i++) {
        output(&said, "TERM=xterm %s %s 2>&1", pages[i].program, pages[i].words);
        const char *text = str_c(&said);
        assert_true(said.n > 0 && strlen(text) == said.n);
        for (size_t k = 0; k < said.n; k++)
            if (text[k] != '\n' && (text[k] < 32 || text[k] > 126)) fail_msg("byte %d in:\n%s", text[k], text);
        if (widest(text) > 80) fail_msg("%d columns:\n%s", widest(text), text);
        assert_int_equal(text[said.n - 1], '\n');
        expect_no_part(text, " \n");
        expect_no_part(text, "\n\n\n");
    }
    str_free(&said);
}

/* Names in 30 columns; longer ones on a line of their own, with the text 6 columns in below. */
static void plain_rows(void **state)
{
    struct str said = {0};
    output(&said, DS4 " --help runtime");
    expect_part(str_c(&said), "\n  -m, --model FILE               the model, ");
    expect_part(str_c(&said), "\n  -v, --verbose                  log ");
    expect_part(str_c(&said), "\n  --effort-mapping file|preview|late\n      how ");
    expect_part(str_c(&said), "\n                                 ");
    output(&said, DS4 " --help");
    expect_part(str_c(&said), "\n  Thinking and sampling     --help sampling\n");
    expect_part(str_c(&said), "\n  Everything                --help all\n");
    str_free(&said);
}

/* The first page: in this order, the runtime section in short. */
static void first_page(void **state)
{
    static const char *const parts[] = {
        "ds4 - ",         "\nUsage: ds4 ", "\nModel, memory and speed:\n", "\nPrompt and answer:\n",
        "\nMore help:\n", "\nExamples:\n"};
    struct str said = {0};
    output(&said, DS4 " --help");
    const char *at = str_c(&said);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        expect_part(at, parts[i]);
        at = strstr(at, parts[i]) + 1;
    }
    expect_part(str_c(&said), "\n  --temp F ");
    expect_no_part(str_c(&said), "--prefill-chunk");
    str_free(&said);
}

/* A topic has its section and its examples only; `all` has everything. */
static void topics(void **state)
{
    struct str said = {0}, all = {0};
    output(&all, DS4 " --help all");
    output(&said, DS4 " --help sampling");
    expect_part(str_c(&said), "Thinking and sampling:\n");
    expect_part(str_c(&said), "\n  --min-p F ");
    expect_part(str_c(&said), "\nExamples:\n  ds4 ");
    expect_part(str_c(&said), " --seed 5\n");
    expect_no_part(str_c(&said), "--model");
    expect_no_part(str_c(&said), "--inspect");
    expect_part(str_c(&all), "\n  --min-p F ");
    expect_part(str_c(&all), " --seed 5\n");
    expect_part(str_c(&all), "\n  --prefill-chunk N ");
    expect_part(str_c(&all), "\n  --decode-consistency N ");
    expect_part(str_c(&all), "\n  143 ");
    expect_part(str_c(&all), "\n  ~/.ds4_history                 lines ");
    output(&said, DS4 " --help commands");
    expect_part(str_c(&said), "\n  /ctx [N]                       show ");
    expect_part(str_c(&said), "\n  Ctrl-D                         leave");
    output(&all, GGUF " --help all");
    expect_part(str_c(&all), "\nUsage: ds4-gguf convert ");
    expect_part(str_c(&all), "\n  --preset NAME ");
    str_free(&said);
    str_free(&all);
}

/* Help ends the scan where it stands; its topic is the next word unless that is an option. */
static void places_of_help(void **state)
{
    static const struct {
        const char *one, *other;
    } same[] = {
        {DS4 " --help", DS4 " -h"},
        {DS4 " --help", DS4 " -m x --help"},
        {DS4 " --help", DS4 " --help --no-such"},
        {DS4 " --help runtime", DS4 " --nothink -h runtime --temp 5000"},
        {GGUF " --help synth", GGUF " synth --help"},
        {GGUF " --help synth", GGUF " synth --quant q2 -h -o x"},
        {GGUF " --help inspect", GGUF " synth --help inspect"},
        {GGUF " --help all", GGUF " convert --help all"},
    };
    struct str said[2] = {{0}, {0}};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        output(&said[0], "%s", same[i].one);
        output(&said[1], "%s", same[i].other);
        expect_equal(str_c(&said[0]), str_c(&said[1]));
    }
    str_free(&said[0]);
    str_free(&said[1]);
}

/* One line, wherever it is asked for; nothing else is done. */
static void versions(void **state)
{
    static const char *const words[] = {"--version", "--version --no-such", "-m x --version", "-m /no/such --version"};
    struct str said = {0}, want = {0};
    for (int i = 0; i < N_PROGRAMS; i++) {
        str_clear(&want);
        str_printf(&want, "%s " DS4_VERSION "\n", strrchr(programs[i], '/') + 1);
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            if (!strcmp(programs[i], GGUF) && words[k][1] == 'm') continue;
            output(&said, "%s %s 2>&1", programs[i], words[k]);
            expect_equal(str_c(&said), str_c(&want));
        }
    }
    output(&said, GGUF " synth -o x --version 2>&1");
    expect_equal(str_c(&said), "ds4-gguf " DS4_VERSION "\n");
    str_free(&said);
    str_free(&want);
}

/* ---------------------------------------------------------------- pages on a terminal */

/* Without colours: the same words in other lines. */
static void widths(void **state)
{
    static const int columns[] = {40, 200};
    struct str said = {0}, words = {0}, shown = {0}, line = {0};
    for (int i = 0; i < N_PAGES; i++) {
        output(&said, "%s %s", pages[i].program, pages[i].words);
        squeeze(&words, str_c(&said));
        for (int k = 0; k < 2; k++) {
            str_clear(&line);
            str_printf(&line, "TERM=dumb %s %s", pages[i].program, pages[i].words);
            on_terminal(&said, columns[k], str_c(&line));
            squeeze(&shown, str_c(&said));
            expect_equal(str_c(&words), str_c(&shown));
            expect_no_part(str_c(&said), "\033");
            if (widest(str_c(&said)) > columns[k]) fail_msg("%d columns:\n%s", widest(str_c(&said)), str_c(&said));
        }
    }
    for (int n = 41; n < 100; n++) { /* a long command, broken wherever it may be */
        on_terminal(&said, n, "TERM=dumb " GGUF " --help convert");
        if (widest(str_c(&said)) > n) fail_msg("%d columns:\n%s", widest(str_c(&said)), str_c(&said));
    }
    on_terminal(&said, 200, "TERM=dumb " DS4 " --help all");
    assert_in_range(widest(str_c(&said)), 150, 200);
    on_terminal(&said, 0, "TERM=dumb " DS4 " --help all");
    assert_in_range(widest(str_c(&said)), 70, 80);
    str_free(&said);
    str_free(&words);
    str_free(&shown);
    str_free(&line);
}

static void colours(void **state)
{
    struct str said = {0}, words = {0}, shown = {0};
    on_terminal(&said, 100, "unset NO_COLOR; TERM=xterm " DS4 " --help runtime");
    expect_part(str_c(&said), "\033[1;38;5;250mModel, memory and speed:\033[0m\n");
    expect_part(str_c(&said), "\n  \033[38;5;81m-m,\033[0m \033[38;5;81m--model\033[0m \033[1;38;5;231mFILE\033[0m "
                              "\033[38;5;240m|\033[0m \033[38;5;252mthe model, ");
    expect_part(str_c(&said), "\033[38;5;81m--page-weights\033[0m \033[38;5;240m|\033[0m ");
    output(&words, DS4 " --help runtime");
    squeeze(&shown, str_c(&words));
    squeeze(&words, str_c(&said));
    expect_equal(str_c(&words), str_c(&shown));
    on_terminal(&said, 100, "unset NO_COLOR; TERM=xterm " DS4 " --help sessions");
    expect_part(str_c(&said), "\n\033[38;5;179mA session file ");
    on_terminal(&said, 100, "unset NO_COLOR; TERM=xterm " DS4 " --help commands");
    expect_part(str_c(&said), "\033[1;38;5;203mInteractive commands:\033[0m\n");
    expect_part(str_c(&said), "\n  \033[38;5;81m/read\033[0m \033[1;38;5;231mFILE\033[0m \033[38;5;240m|\033[0m ");
    on_terminal(&said, 100, "unset NO_COLOR; TERM=xterm " DS4 " --help");
    expect_part(str_c(&said), "\n  \033[38;5;81mModel, memory and speed\033[0m   --help runtime\n");
    expect_part(str_c(&said), "\n  \033[38;5;114mPrompt and answer\033[0m         --help prompt\n");
    expect_part(str_c(&said), "\033[1;38;5;203m");
    on_terminal(&said, 40, "unset NO_COLOR; TERM=xterm " DS4 " --help all");
    assert_in_range(widest(str_c(&said)), 36, 40);
    str_free(&said);
    str_free(&words);
    str_free(&shown);
}

static void no_colours(void **state)
{
    static const struct {
        const char *environment;
        bool colour;
    } cases[] = {
        {"NO_COLOR= TERM=xterm", true},   {"-u NO_COLOR TERM=vt220", true}, {"NO_COLOR=1 TERM=xterm", false},
        {"NO_COLOR=0 TERM=xterm", false}, {"-u NO_COLOR TERM=dumb", false}, {"-u NO_COLOR TERM=", false},
        {"-u NO_COLOR -u TERM", false},
    };
    struct str said = {0}, line = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str_clear(&line);
        str_printf(&line, "env %s " GGUF " --help convert", cases[i].environment);
        on_terminal(&said, 80, str_c(&line));
        if ((strchr(str_c(&said), '\033') != NULL) != cases[i].colour) fail_msg("%s:\n%s", str_c(&line), str_c(&said));
        if (!cases[i].colour) expect_part(str_c(&said), "\n  -o, --out FILE                 the file ");
    }
    str_free(&said);
    str_free(&line);
}

/* ---------------------------------------------------------------- help and parsing */

/* The commands whose options the pages with a usage of their own list; "": of the program itself. */
static const struct {
    const char *program, *command, *page;
} parsers[] = {{DS4, "", "all"},
               {GGUF, "convert", "convert"},
               {GGUF, "inspect", "inspect"},
               {GGUF, "synth", "synth"},
               {SERVER, "", "all"}};
enum { N_PARSERS = sizeof parsers / sizeof parsers[0] };

static void expect_error(const char *command, const char *message)
{
    struct str said = {0}, line = {0};
    str_printf(&line, "%s 2>&1 </dev/null | head -1; exit 0", command);
    output(&said, "%s", str_c(&line));
    expect_part(str_c(&said), message);
    str_free(&said);
    str_free(&line);
}

/* An option as a page spells it. */
static void check_option(int parser, const char *name, bool value)
{
    struct str command = {0}, message = {0};
    str_printf(&command, "%s %s %s", parsers[parser].program, parsers[parser].command, name);
    if (!value) str_puts(&command, " --no-such");
    str_printf(&message, value ? "%s needs a value\n" : "unknown option --no-such\n", name);
    expect_error(str_c(&command), str_c(&message));
    str_free(&command);
    str_free(&message);
}

/* Takes the words of a line that begins with two blanks and a dash: options and what may be the name of a value.
 * Returns the number of options. */
static int check_row(int parser, const char *line)
{
    char name[2][40] = {"", ""};
    int n = 0;
    for (const char *p = line + 2; *p == '-' && n < 2; n++) {
        const int length = (int)strcspn(p, ", \n");
        snprintf(name[n], sizeof name[n], "%.*s", length, p);
        p += length;
        if (*p == ',') p++;
        if (*p == ' ') p++;
        if (*p != '-' && (!strcmp(name[n], "--help") || !strcmp(name[n], "--version"))) return n + 1;
        if (*p != '-')
            for (int i = 0; i <= n; i++) check_option(parser, name[i], *p != ' ' && *p != '\n');
    }
    return n;
}

/* Every option on a page is known to the parser, with a value or without as the page says. */
static void options_of_help(void **state)
{
    static const int least[N_PARSERS] = {45, 11, 0, 10, 26};
    struct str said = {0};
    for (int i = 0; i < N_PARSERS; i++) {
        int n = 0;
        output(&said, "%s --help %s", parsers[i].program, parsers[i].page);
        for (const char *p = str_c(&said); p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
            if (!strncmp(p, "  -", 3)) n += check_row(i, p);
        if (n < least[i]) fail_msg("only %d options in:\n%s", n, str_c(&said));
    }
    str_free(&said);
}

/* Every word anywhere in help that looks like an option is one, in a row. */
static void words_of_help(void **state)
{
    struct str said = {0}, word = {0};
    for (int i = 0; i < N_PROGRAMS; i++) {
        output(&said, "%s --help all", programs[i]);
        for (const char *p = str_c(&said); (p = strstr(p, "--")); p += word.n - 3) {
            str_clear(&word);
            str_puts(&word, "\n  ");
            str_add(&word, p, 2 + strspn(p + 2, "abcdefghijklmnopqrstuvwxyz0123456789-"));
            if (strstr(str_c(&said), str_c(&word))) continue;
            memcpy(word.p, " , ", 3);
            expect_part(str_c(&said), str_c(&word) + 1);
        }
    }
    str_free(&said);
    str_free(&word);
}

/* Options that other texts and programs rely on. */
static void options_known(void **state)
{
    static const char *const names[] = {"-m, --model FILE",
                                        "-c, --ctx N",
                                        "-t, --threads N[,M]",
                                        "--load auto|map|read",
                                        "--numa auto|off",
                                        "--memory NGB",
                                        "--page-weights",
                                        "--prefill-chunk N",
                                        "--backend NAME",
                                        "--isa NAME",
                                        "--kv-sim on|off",
                                        "-v, --verbose",
                                        "-p, --prompt TEXT",
                                        "--prompt-file FILE",
                                        "-sys, --system TEXT",
                                        "-n, --tokens N",
                                        "--raw, --raw-prompt",
                                        "--token-ids LIST",
                                        "--session NAME",
                                        "--think",
                                        "--think-max",
                                        "--nothink",
                                        "--temp F",
                                        "--top-k N",
                                        "--top-p F",
                                        "--min-p F",
                                        "--seed N",
                                        "--inspect",
                                        "--doctor",
                                        "--dump-tokens",
                                        "--perplexity-file FILE",
                                        "--decode-consistency N",
                                        "--logits-out FILE",
                                        "--dump-logits FILE",
                                        "--dump-logprobs FILE",
                                        "--logprobs-top-k N",
                                        "-h, --help [TOPIC]"};
    struct str said = {0}, row = {0};
    output(&said, DS4 " --help all");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        str_clear(&row);
        str_printf(&row, "\n  %s ", names[i]);
        expect_part(str_c(&said), str_c(&row));
    }
    str_free(&said);
    str_free(&row);
}

/* ---------------------------------------------------------------- wrong use */

/* One sentence, nothing on standard output, status 2. */
static void values(void **state)
{
    static const struct {
        const char *words, *message;
    } cases[] = {
        {"-n 0", "-n: '0' is not a whole number from 1 to 2147483647"},
        {"-n 1.5", "-n: '1.5' is not a whole number"},
        {"--tokens 5x", "--tokens: '5x' is not a whole number"},
        {"-c 1", "-c: '1' is not a whole number from 2"},
        {"-t 4097", "-t: '4097' is not a number of threads from 1 to 4096, nor two such as 8,6"},
        {"-t 4294967297", "-t: '4294967297' is not a number of threads"},
        {"-t 2,", "-t: '2,' is not a number of threads"},
        {"-t 2,0", "-t: '2,0' is not a number of threads"},
        {"-t 2,3,4", "-t: '2,3,4' is not a number of threads"},
        {"-t -2", "-t: '-2' is not a number of threads"},
        {"--prefill-chunk 0", "'0' is not a whole number from 1 to 65536"},
        {"--top-k -1", "'-1' is not a whole number from 0"},
        {"--temp 100.1", "'100.1' is not a number from 0 to 100"},
        {"--temp nan", "'nan' is not a number"},
        {"--top-p 1.1", "'1.1' is not a number from 0 to 1"},
        {"--min-p -0.1", "'-0.1' is not a number from 0 to 1"},
        {"--seed 0", "'0' is not a whole number from 1 to 18446744073709551615"},
        {"--seed 18446744073709551616", "'18446744073709551616' is not a whole number"},
        {"--memory 0", "'0' is not a size such as 12GB"},
        {"--kv-sim o", "--kv-sim: 'o' is none of on|off"},
        {"--kv-sim 'on|off'", "'on|off' is none of on|off"},
        {"--effort-mapping ''", "'' is none of file|preview|late"},
        {"--logprobs-top-k 129", "'129' is not a whole number from 1 to 128"},
        {"--decode-consistency -1", "'-1' is not a whole number from 0"},
        {"$(yes -- '-m x' | head -65)", "-m: more than 64"},
        {"word", "unexpected argument word; see ds4 --help"},
        {"-m", "-m needs a value"},
        {"", "no model; give one with -m FILE"},
    };
    struct str line = {0}, said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str_clear(&line);
        str_printf(&line, DS4 " %s 2>&1 >/dev/full </dev/null", cases[i].words);
        const int status = shell_run(str_c(&line), &said);
        if (status != 2) fail_msg("%d: %s", status, str_c(&line));
        expect_part(str_c(&said), "ds4: ");
        expect_part(str_c(&said), cases[i].message);
        if (strchr(str_c(&said), '\n') != str_c(&said) + said.n - 1) fail_msg("more than a line:\n%s", str_c(&said));
    }
    str_free(&line);
    str_free(&said);
}

/* Words that no request could ever match. */
static void words_of_the_server(void **state)
{
    static const struct {
        const char *words, *message;
    } cases[] = {
        {"--api-key ''", "--api-key: a key is needed"},
        {"--api-key 'a b'", "--api-key: a key is needed"},
        {"--allow-host ''", "--allow-host: '' is no name"},
        {"--allow-host http://a", "--allow-host: 'http://a' is no name"},
        {"--allow-origin bad", "--allow-origin: 'bad' is no origin"},
        {"--allow-origin http://a/b", "'http://a/b' is no origin"},
        {"--allow-origin http://", "'http://' is no origin"},
        {"--allow-origin '*' --allow-origin null --allow-origin http://a:1 --allow-host a:1 --api-key k --allow-host "
         "''",
         "--allow-host: '' is no name"},
    };
    struct str line = {0}, said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str_clear(&line);
        str_printf(&line, SERVER " -m x %s 2>&1", cases[i].words);
        assert_int_equal(shell_run(str_c(&line), &said), 2);
        expect_part(str_c(&said), "ds4-server: ");
        expect_part(str_c(&said), cases[i].message);
        if (strchr(str_c(&said), '\n') != str_c(&said) + said.n - 1) fail_msg("more than a line:\n%s", str_c(&said));
    }
    str_free(&line);
    str_free(&said);
}

/* What a program writes is never a file named "-". */
static void no_output_named_dash(void **state)
{
    static const struct {
        const char *program, *words, *option;
    } cases[] = {
        {DS4, "-m x -p a --session -", "--session"},
        {DS4, "-m x -p a --logits-out -", "--logits-out"},
        {DS4, "-m x -p a --dump-logits -", "--dump-logits"},
        {DS4, "-m x -p a --dump-logprobs -", "--dump-logprobs"},
        {GGUF, "synth -o -", "-o"},
        {GGUF, "convert x --out -", "--out"},
        {SERVER, "-m x --trace -", "--trace"},
        {BENCH, "-m x --prompt-file x --csv -", "--csv"},
    };
    struct str line = {0}, said = {0}, want = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str_clear(&line);
        str_clear(&want);
        str_printf(&line, "%s %s 2>&1", cases[i].program, cases[i].words);
        str_printf(&want, ": %s: '-' names no file; ", cases[i].option);
        assert_int_equal(shell_run(str_c(&line), &said), 2);
        expect_part(str_c(&said), str_c(&want));
        if (strchr(str_c(&said), '\n') != str_c(&said) + said.n - 1) fail_msg("more than a line:\n%s", str_c(&said));
        assert_int_equal(access("-", F_OK), -1);
    }
    /* what the sentence says instead */
    output(&said, GGUF " synth --preset tiny --quant q8 -o /dev/stdout 2>/dev/null | head -c 4");
    expect_equal(str_c(&said), "GGUF");
    str_free(&line);
    str_free(&said);
    str_free(&want);
}

/* An unknown word: the message, then the page that knows better; all of it on standard error. */
static void unknown_words(void **state)
{
    static const struct {
        const char *command, *message, *page;
    } cases[] = {
        {DS4 " --no-such", "ds4: unknown option --no-such\n", DS4 " --help"},
        {DS4 " -m x --temp=0", "ds4: unknown option --temp=0\n", DS4 " --help"},
        {DS4 " -mx", "ds4: unknown option -mx\n", DS4 " --help"},
        {DS4 " --help no-such", "ds4: no help on no-such\n", DS4 " --help"},
        {GGUF, "ds4-gguf: no command\n", GGUF " --help"},
        {GGUF " no-such", "ds4-gguf: unknown command no-such\n", GGUF " --help"},
        {GGUF " --no-such", "ds4-gguf: unknown option --no-such\n", GGUF " --help"},
        {GGUF " convert --layers 4", "ds4-gguf convert: unknown option --layers\n", GGUF " convert --help"},
        {GGUF " synth --help no-such", "ds4-gguf synth: no help on no-such\n", GGUF " synth --help"},
    };
    struct str line = {0}, said = {0}, page = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str_clear(&line);
        str_printf(&line, "%s 2>&1 >/dev/full", cases[i].command);
        assert_int_equal(shell_run(str_c(&line), &said), 2);
        output(&page, "printf '%s'; %s", cases[i].message, cases[i].page);
        expect_equal(str_c(&said), str_c(&page));
    }
    str_free(&line);
    str_free(&said);
    str_free(&page);
}

/* ---------------------------------------------------------------- manual pages, installation */

static bool have(const char *program)
{
    struct str line = {0}, said = {0};
    str_printf(&line, "command -v %s", program);
    const bool found = !shell_run(str_c(&line), &said);
    if (!found) print_message("skipped: there is no %s\n", program);
    str_free(&line);
    str_free(&said);
    return found;
}

/* Valid roff, which says what the pages say: every row, the chapters of a manual page. */
static void manual_pages(void **state)
{
    static const char *const chapters[] = {"NAME",        "SYNOPSIS",    "DESCRIPTION", "OPTIONS",
                                           "EXIT STATUS", "ENVIRONMENT", "EXAMPLES",    "SEE ALSO"};
    if (!have("groff")) skip();
    struct str said = {0}, help = {0}, part = {0};
    for (int i = 0; i < N_PROGRAMS; i++) {
        output(&said, "%s --help man | groff -man -ww -z 2>&1", programs[i]);
        expect_equal(str_c(&said), "");
        output(&said, "%s --help man | groff -man -Tascii -rLL=200n -P-cbou", programs[i]);
        for (size_t k = 0; k < sizeof chapters / sizeof chapters[0]; k++) {
            str_clear(&part);
            str_printf(&part, "\n%s\n", chapters[k]);
            expect_part(str_c(&said), str_c(&part));
        }
        output(&help, "%s --help all | grep '^  -'", programs[i]);
        for (const char *p = str_c(&help); *p; p = strchr(p, '\n') + 1) {
            str_clear(&part);
            str_puts(&part, "\n       ");
            str_add(&part, p + 2, (size_t)(strstr(p + 2, "  ") ? strstr(p + 2, "  ") - p - 2 : 0));
            if (memchr(str_c(&part) + 1, '\n', part.n - 1)) continue;
            expect_part(str_c(&said), str_c(&part));
        }
    }
    output(&said, DS4 " --help man | groff -man -Tascii -rLL=200n -P-cbou");
    expect_part(str_c(&said), "\n       --effort-mapping file|preview|late\n");
    expect_part(str_c(&said), "\nINTERACTIVE COMMANDS\n");
    expect_part(str_c(&said), "\n       /read FILE\n");
    expect_part(str_c(&said), "\nFILES\n       ~/.ds4_history\n");
    expect_part(str_c(&said), "ds4 -m model.gguf -p \"Why is the sky blue?\" --nothink --temp 0\n");
    str_free(&said);
    str_free(&help);
    str_free(&part);
}

static void installation(void **state)
{
    char folder[TEMP_PATH];
    struct str said = {0};
    if (!have("make")) skip();
    temp_folder(folder);
    static const char make[] = "env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s BUILD=" TEST_BUILD " PREFIX=/usr";
    output(
        &said,
        "%s DESTDIR='%s/a b' install 2>&1 && cd '%s/a b' && find * -type f | sort && usr/bin/ds4 --help | head -1 && "
        "head -2 usr/share/man/man1/ds4-gguf.1",
        make, folder, folder);
    expect_equal(
        str_c(&said),
        "usr/bin/ds4\nusr/bin/ds4-bench\nusr/bin/ds4-gguf\nusr/bin/ds4-server\nusr/share/man/man1/ds4-bench.1\n"
        "usr/share/man/man1/ds4-gguf.1\n"
        "usr/share/man/man1/ds4-server.1\nusr/share/man/man1/ds4.1\n"
        "ds4 - talk to a big mixture-of-experts model\n.TH DS4\\-GGUF 1 \"\" \"ds4-gguf " DS4_VERSION "\"\n.nh\n");
    output(&said, "%s DESTDIR='%s/a b' uninstall 2>&1 && find '%s/a b' -type f", make, folder, folder);
    expect_equal(str_c(&said), "");
    temp_remove(folder);
    str_free(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_pages),
        cmocka_unit_test(plain_rows),
        cmocka_unit_test(first_page),
        cmocka_unit_test(topics),
        cmocka_unit_test(places_of_help),
        cmocka_unit_test(versions),
        cmocka_unit_test(widths),
        cmocka_unit_test(colours),
        cmocka_unit_test(no_colours),
        cmocka_unit_test(options_of_help),
        cmocka_unit_test(words_of_help),
        cmocka_unit_test(options_known),
        cmocka_unit_test(values),
        cmocka_unit_test(words_of_the_server),
        cmocka_unit_test(no_output_named_dash),
        cmocka_unit_test(unknown_words),
        cmocka_unit_test(manual_pages),
        cmocka_unit_test(installation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
