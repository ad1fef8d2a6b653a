/* What goes wrong around the programs: one sentence on stderr, the right exit status, and nothing left under the name
 * of what was to be written. docs/failures.md shows the sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../support/demo_model.h"
#include "../support/forge.h"
#include "../support/http_kit.h"
#include "../support/server_run.h"
#include "../support/shell_run.h"
#include "../support/synth_model.h"
#include "base/file.h"
#include "base/mem.h"

static char model[TEMP_PATH], folder[TEMP_PATH];
static struct str seen; /* "STATUS LINE" of every failure */
static bool all_seen = true;

/* $FOLDER has files to stumble over; $OUT is for what the programs write, $BAD a name that a terminal would obey, $LONG
 * one that no system takes. */
static int group_set_up(void **state)
{
    static char name[5001];
    char out[TEMP_PATH + 8];
    struct str said = {0};
    struct err e = {0};
    const struct synth_shape shape = synth_tiny();
    demo_shell("-c 4096", model, folder);
    snprintf(out, sizeof out, "%s/tiny", folder);
    if (synth_deepseek4(out, &shape, &e)) fail_msg("%s", e.msg);
    snprintf(out, sizeof out, "%s/out", folder);
    memset(name, 'n', sizeof name - 1);
    setenv("OUT", out, 1);
    setenv("BAD", "a\nb\033[31m\177\233c", 1);
    setenv("LONG", name, 1);
    const int rc =
        shell_run("set -e; cd $FOLDER; mkdir out empty_folder; : >empty; mkfifo pipe; printf 'hi there' >prompt;"
                  "sed s/deepseek4/llamallam/ $MODEL >other_family; truncate -s 2G huge; echo 0 >exists; head -c 700 "
                  "$OLDPWD/README.md >text; printf '\\1\\2\\3\\4 and more than a header has' >bytes; cp bytes "
                  "m.gguf.aa; cp bytes "
                  "m.gguf.ab; printf 'Entry not found' >answer; truncate -s 4096 zeros; head -c 1000000 $MODEL >begun; "
                  "mkdir models; touch "
                  "models/b.gguf models/a.gguf models/mmproj.gguf models/0; ln -s ../../blobs/aa cached; ln -s "
                  "elsewhere/m.gguf moved",
                  &said);
    assert_int_equal(rc, 0);
    shell_expect("$DS4 --raw -p 'A fox' --temp 0 -n 3 --session $FOLDER/session 2>&1", 0, "saved");
    str_free(&said);
    return 0;
}

/* What programs also tell on stderr: notes and progress. */
static bool is_told(const char *line)
{
    static const char *const told[] = {"ds4-gguf: note: ", "processing ", "prefill: "};
    for (int i = 0; i < 3; i++)
        if (!strncmp(line, told[i], strlen(told[i]))) return true;
    return false;
}

/* Beside that one line of printable UTF-8, which begins with the program's name and has part in it. */
static void check_sentence(const char *command, int status, const char *text, const char *part)
{
    while (is_told(text)) text += strcspn(text, "\n") + 1;
    const size_t n = strcspn(text, "\n");
    const bool named = !strncmp(text, "ds4: ", 5) || !strncmp(text, "ds4-gguf: ", 10) || !strncmp(text, "ds4-gguf ", 9);
    bool plain = true;
    for (size_t i = 0; i < n; i++) plain = plain && !iscntrl((unsigned char)text[i]) && (unsigned char)text[i] != 0x9B;
    if (!named || !plain || !strstr(text, part) || strstr(text, part) > text + n || n > 1100)
        fail_msg("%s\n\"%s\" is not in the sentence: %s", command, part, text);
    if (text[n] != '\n' || text[n + 1]) fail_msg("%s\nmore than a line: %s", command, text);
    str_printf(&seen, "%d %.*s", status, (int)n + 1, text);
}

/* The command fails with that status and that sentence; what it printed to standard output does not matter. Nothing is
 * left in $OUT. */
static void fails(const char *command, int status, const char *part)
{
    struct str line = {0}, said = {0};
    str_printf(&line, "( %s ) 2>&1 >/dev/null", command);
    const int got = shell_run(str_c(&line), &said);
    if (got != status) fail_msg("%s\n%d instead of %d: %s", command, got, status, str_c(&said));
    check_sentence(command, status, str_c(&said), part);
    if (shell_run("test -z \"$(ls -A $OUT)\"", &said)) fail_msg("%s\nleft a file", command);
    str_free(&line);
    str_free(&said);
}

struct failure {
    const char *command;
    int status;
    const char *part;
};

/* Skips a test that this machine cannot play. */
static void missing(const char *what)
{
    print_message("skipped: %s\n", what);
    all_seen = false;
    skip();
}

static void all_fail(const struct failure *f, size_t n)
{
    for (size_t i = 0; i < n; i++) fails(f[i].command, f[i].status, f[i].part);
}
#define ALL_FAIL(table) all_fail(table, sizeof(table) / sizeof *(table))

/* ---------------------------------------------------------------- files that are read */

/* Every program that opens a model says the same of what is none. */
static void what_is_no_model(void **state)
{
    static const char *const programs[] = {TEST_BUILD "/ds4 -p hi -m", TEST_BUILD "/ds4 --inspect -m",
                                           TEST_BUILD "/ds4 --doctor -m", "$GGUF inspect"};
    static const struct failure models[] = {
        {"$FOLDER/nothing", 1, "nothing: cannot open: No such file or directory"},
        {"$FOLDER", 1, ": a folder, not a file, and no .gguf file is in it; give the model's .gguf file"},
        {"$FOLDER/models", 1, "models: a folder, not a file; give a .gguf file in it, such as a.gguf"},
        {"models/demo", 1,
         "models/demo: a folder, not a file; it holds a checkpoint: ds4-gguf convert models/demo -o model.gguf makes "
         "a model of it"},
        {"$FOLDER/cached", 1,
         "cached is a link to ../../blobs/aa, which is not there: its download was not finished, or the cache was "
         "cleared; download it again"},
        {"$FOLDER/moved", 1,
         "moved is a link to elsewhere/m.gguf, which is not there: put the file there, or make the link anew"},
        {"$FOLDER/pipe", 1, "pipe: not a regular file"},
        {"/dev/zero", 1, "/dev/zero: not a regular file"},
        {"/dev/null", 1, "/dev/null: not a regular file"},
        {"/dev/stdin <$FOLDER/models", 1, "a folder, not a file; give a .gguf file in it"},
        {"$FOLDER/empty", 1, "empty: the file is empty: the download did not begin; get it again"},
        {"README.md", 1, "README.md: not a GGUF file: it is a text that begins with '"},
        {"$FOLDER/bytes", 1, "bytes: not a GGUF file: it begins with bytes 01 02 03 04, not \"GGUF\""},
        {"$FOLDER/answer", 1, "answer: not a GGUF file: it is a server's message: 'Entry not found'"},
        {"$FOLDER/zeros", 1, "zeros: not a GGUF file: it begins with zeros"},
        {"$FOLDER/begun", 1,
         ": the download is incomplete: continue it; if that changes nothing, get it again (tensor"},
        {"$FOLDER/m.gguf.ab", 1, "m.gguf.ab is piece 2 of 2 of a file that was cut; join them, in their folder: cat "},
        {"src/serve/page/index.html", 1, "index.html: not a GGUF file: it is a web page"},
        {"README.md/model", 1, "cannot open: Not a directory"},
        {"$LONG", 1, "cannot open: File name too long"},
        {"\"$BAD\"", 1, "a?b?[31m??c: cannot open: No such file or directory"},
    };
    char command[300];
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++)
        for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
            snprintf(command, sizeof command, "%s %s", programs[p], models[i].command);
            fails(command, models[i].status, models[i].part);
        }
    fails(TEST_BUILD "/ds4 -p hi -m $FOLDER/other_family", 1, "which this version does not run; it runs DeepSeek V4");
}

static void other_inputs(void **state)
{
    static const struct failure table[] = {
        {"$DS4 --prompt-file $FOLDER/nothing", 1, "nothing: cannot open: No such file or directory"},
        {"$DS4 --prompt-file $FOLDER", 1, "cannot read: Is a directory"},
        {"$DS4 --prompt-file $FOLDER/moved", 1, "moved is a link to elsewhere/m.gguf, which is not there"},
        {"$DS4 --prompt-file $FOLDER/huge", 1, "huge: longer than 1073741824 bytes, the most that is read here"},
        {"$DS4 <$FOLDER", 1, "standard input: cannot read: Is a directory"},
        {"$DS4 <&-", 1, "standard input: cannot read: Bad file descriptor"},
        {"$DS4 </dev/null", 2, "no prompt: standard input is empty; give -p TEXT or --prompt-file FILE"},
        {"$DS4 --raw --prompt-file $FOLDER/empty", 2, "an empty prompt"},
        {"$DS4 --raw --prompt-file $FOLDER/empty --logits-out $OUT/x", 2, "an empty prompt"},
        {"$DS4 --token-ids 1,2048", 2, "--token-ids: '2048' is not an id from 0 to 2047"},
        {"$DS4 --token-ids \"$BAD\"", 2, "--token-ids: 'a?b?[31m??c' is not an id"},
        {"$DS4 --perplexity-file $FOLDER/nothing", 1, "No such file or directory"},
        {"$DS4 --perplexity-file $FOLDER/prompt", 1, "more than 32 are needed"},
        {"$DS4 -p hi --session $FOLDER/prompt", 1, "prompt: not a session file of ds4"},
        {"$DS4 -p hi --session $FOLDER/pipe", 1, "pipe: not a regular file"},
        {"$DS4 -p hi --session $FOLDER/nothing --dump-tokens", 1, "cannot open: No such file or directory"},
        {TEST_BUILD "/ds4 -m $FOLDER/tiny -p hi --session $FOLDER/session", 1,
         "session: the session was made with another model file"},
        {"$GGUF convert $FOLDER/nothing -o $OUT/x", 1, "cannot open: No such file or directory"},
        {"$GGUF convert $FOLDER/empty_folder -o $OUT/x", 1, "model.safetensors: cannot open: No such file"},
        {"$GGUF convert README.md -o $OUT/x", 1, "cannot open: Not a directory"},
        {"$GGUF convert \"$BAD\" -o $OUT/x", 1, "a?b?[31m??c/model.safetensors: cannot open"},
    };
    ALL_FAIL(table);
}

/* ---------------------------------------------------------------- wrong use */

static void wrong_use(void **state)
{
    static const struct failure table[] = {
        {TEST_BUILD "/ds4 -p hi", 2, "no model; give one with -m FILE"},
        {"$DS4 -p", 2, "-p needs a value"},
        {"$DS4 -p hi -n none", 2, "-n: 'none' is not a whole number from 1"},
        {"$DS4 -p hi -n \"$BAD\"", 2, "-n: 'a?b?[31m??c' is not a whole number"},
        {"$DS4 -p hi -t 4097", 2, "-t: '4097' is not a number of threads from 1 to 4096, nor two such as 8,6"},
        {"$DS4 -p hi --load read --page-weights", 2,
         "weights cannot be read into memory and paged: --load read or --page-weights"},
        {"$DS4 -p hi --ctx 2000000", 2, "the model is made for at most 1048576"},
        {"$DS4 -p hi --prompt-file $FOLDER/prompt", 2, "give one of -p, --prompt-file and --token-ids"},
        {"$DS4 -p hi --backend \"$BAD\"", 2, "no backend \"a?b?[31m??c\""},
        {"$GGUF synth --preset tiny --quant q8", 2, "no output file given"},
        {"$GGUF synth --preset tiny --quant q8 -o -", 2, "-o: '-' names no file; "},
        {"$GGUF convert models/demo -o $OUT/x --type \"$BAD\"", 2, "'a?b?[31m??c' is not REGEX=TYPE"},
        {"$GGUF convert models/demo -o $OUT/x --type nothing=q8_0", 2, "decides no tensor"},
    };
    ALL_FAIL(table);
}

/* An unknown word is answered with a sentence, and help may follow. */
static void unknown_words(void **state)
{
    static const char *const programs[] = {"$DS4 --nonsense",          "$DS4 \"$BAD\"",
                                           "$GGUF nonsense",           "$GGUF \"$BAD\"",
                                           "$GGUF inspect --nonsense", "$GGUF synth \"$BAD\""};
    struct str said = {0}, line = {0};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        str_clear(&line);
        str_printf(&line, "%s 2>&1 >/dev/null", programs[i]);
        assert_int_equal(shell_run(str_c(&line), &said), 2);
        said.p[strcspn(said.p, "\n") + 1] = 0;
        check_sentence(programs[i], 2, str_c(&said), strchr(programs[i], '"') ? "a?b?[31m??c" : "nonsense");
    }
    str_free(&said);
    str_free(&line);
}

/* ---------------------------------------------------------------- files that are written */

/* Everything that writes a file, up to its name. */
static const char *const writers[] = {
    "$DS4 --raw --prompt-file $FOLDER/text --logits-out",
    "$DS4 -p hi --dump-logits",
    "$DS4 -p hi --dump-logprobs",
    "$DS4 -p hi --temp 0 -n 3 --session",
    "$GGUF synth --preset tiny --quant q8 -o",
    "$GGUF convert models/demo -o",
};
enum { N_WRITERS = sizeof writers / sizeof *writers };

static void writers_fail(const char *before, const char *name, const char *part)
{
    char command[500];
    for (int i = 0; i < N_WRITERS; i++) {
        snprintf(command, sizeof command, "%s %s %s", before, writers[i], name);
        fails(command, 1, part);
    }
}

static void places_that_are_none(void **state)
{
    writers_fail("", "$OUT/no/x", "/no/x: cannot create a file beside it to write to: No such file or directory");
    writers_fail("", "README.md/x", "Not a directory");
    writers_fail("", "$OUT/$LONG", "File name too long");
    writers_fail("", "\"$OUT/no/$BAD\"", "no/a?b?[31m??c: cannot create");
    for (int i = 0; i < N_WRITERS; i++) {
        char command[300];
        snprintf(command, sizeof command, "%s $FOLDER", writers[i]);
        if (!strstr(writers[i], "--session")) fails(command, 1, ": is a folder, not a file to write");
    }
    fails("$DS4 -p hi --session $FOLDER", 1, ": a folder, not a file");
}

/* What is read is never written over. */
static void outputs_that_are_inputs(void **state)
{
    static const struct failure table[] = {
        {"$DS4 -p hi --logits-out $MODEL", 2, "is one of the files that are read here; give another name to write to"},
        {"$DS4 -p hi --dump-logits $MODEL", 2, "is one of the files that are read here"},
        {"ln -s $MODEL $FOLDER/link; $DS4 -p hi --dump-logprobs $FOLDER/link", 2, "link: is one of the files"},
        {"$DS4 -p hi --session $MODEL", 1, ": not a session file of ds4"},
        {"$DS4 --prompt-file $FOLDER/prompt --logits-out $FOLDER/prompt", 2, "is to be read and to be written"},
        {"$DS4 -p hi --session $FOLDER/session --dump-logits $FOLDER/session", 2, "is to be read and to be written"},
        {"$GGUF synth --preset tiny --quant q8 -o $FOLDER/exists", 1, "exists; --overwrite replaces it"},
        {"$GGUF convert models/demo -o $FOLDER/exists", 1, "exists; --overwrite replaces it"},
        {"$GGUF convert models/demo --overwrite -o models/demo/config.json", 2,
         "is one of the files to be converted; give another name"},
    };
    ALL_FAIL(table);
    shell_expect("head -c 4 $MODEL; cat $FOLDER/prompt $FOLDER/exists; head -c 8 $FOLDER/session", 0,
                 "GGUFhi there0\nDS4 SESS");
}

static void files_that_grow_too_large(void **state)
{
    writers_fail("ulimit -f 0;", "$OUT/x", "/x: cannot write: File too large");
    writers_fail("ulimit -f 16;", "$OUT/x", "/x: cannot write: File too large");
}

static void full_devices(void **state)
{
    if (access("/dev/full", W_OK)) missing("/dev/full");
    static const struct failure table[] = {
        {"$DS4 -p hi --logits-out /dev/full", 1, "/dev/full: cannot write: No space left on device"},
        {"$DS4 -p hi --dump-logits /dev/full", 1, "/dev/full: cannot write: No space left on device"},
        {"$DS4 -p hi --dump-logprobs /dev/full", 1, "/dev/full: cannot write: No space left on device"},
        {"$DS4 -p hi --session /dev/full", 1, "/dev/full: not a regular file"},
        {"$GGUF synth --preset tiny --quant q8 -o /dev/full", 1, "/dev/full: cannot write: No space left on device"},
    };
    ALL_FAIL(table);
    shell_expect("test -c /dev/full && echo there", 0, "there");
}

/* True if commands can be given a small disk of their own, which goes away with them. */
static bool have_small_disks(void)
{
    struct str said = {0};
    setenv("SMALL", "mount -t tmpfs -o size=64k none $OUT", 1);
    const bool have = !shell_run("unshare -m sh -c \"$SMALL\" 2>/dev/null", &said);
    str_free(&said);
    return have;
}

static void full_disk(void **state)
{
    char command[600];
    if (!have_small_disks()) missing("no disk can be mounted here");
    for (int i = 0; i < N_WRITERS; i++) {
        /* What is left is told on the disk itself, before it goes away. */
        snprintf(command, sizeof command,
                 "unshare -m sh -c \"$SMALL\"'; dd if=/dev/zero of=$OUT/fill bs=1k count=60 2>/dev/null; "
                 "%s $OUT/x; echo $? $(ls -A $OUT)' 2>$FOLDER/said | tail -1 >$FOLDER/rest; tail -1 $FOLDER/said >&2; "
                 "test \"$(cat $FOLDER/rest)\" = '1 fill' && exit 1",
                 writers[i]);
        fails(command, 1, "/x: cannot write: No space left on device");
    }
}

/* ---------------------------------------------------------------- standard streams */

static void output_streams(void **state)
{
    static const char *const printers[] = {"$DS4 -p hi",
                                           "$DS4 --inspect",
                                           "$DS4 -p hi --dump-tokens",
                                           "$DS4 --help",
                                           "$DS4 -p hi --decode-consistency 1",
                                           "$GGUF inspect $MODEL",
                                           "$GGUF --help"};
    char command[300];
    const bool full = access("/dev/full", W_OK) == 0;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    dup2(ends[1], 9); /* a pipe that nobody reads */
    for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
        snprintf(command, sizeof command, "( %s ) >&-", printers[i]);
        fails(command, 1, "standard output: cannot write: Bad file descriptor");
        snprintf(command, sizeof command, "trap '' PIPE; ( %s ) >&9", printers[i]);
        fails(command, 1, "standard output: cannot write: Broken pipe");
        snprintf(command, sizeof command, "( %s ) >/dev/full", printers[i]);
        if (full) fails(command, 1, "standard output: cannot write: No space left on device");
    }
    close(ends[1]);
    close(9);
}

/* A message that cannot be delivered changes nothing else. */
static void no_place_for_messages(void **state)
{
    static const char *const streams[] = {"2>&-", "2>/dev/full", "<&- 2>&-"};
    char command[300];
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, "$DS4 -p 'What is 4 + 5?' --temp 0 %s", streams[i]);
        shell_expect(command, 0, "4 + 5 = 9\n");
        snprintf(command, sizeof command, "$DS4 -p hi -m $FOLDER/nothing %s", streams[i]);
        shell_expect(command, 1, "");
        snprintf(command, sizeof command, "$DS4 -n 0 %s", streams[i]);
        shell_expect(command, 2, "");
    }
}

/* Surroundings that look odd and are not. */
static void what_does_not_fail(void **state)
{
    shell_expect("$DS4 -p 'What is 4 + 5?' --temp 0 </dev/null 2>/dev/null | cat", 0, "4 + 5 = 9\n");
    shell_expect("env -i $DS4 -p 'What is 4 + 5?' --temp 0 2>/dev/null", 0, "4 + 5 = 9\n");
    shell_expect("TMPDIR=/nowhere HOME=/nowhere $DS4 -p 'What is 4 + 5?' --temp 0 2>/dev/null", 0, "4 + 5 = 9\n");
    shell_expect("$DS4 --prompt-file $FOLDER/empty --temp 0 -n 2 2>&1 >/dev/null", 0, "prefill");
    shell_expect("printf 'a\\0b\\377' | $DS4 --temp 0 -n 2 2>&1 >/dev/null", 0, "prefill");
    shell_expect("$GGUF synth --preset tiny --quant q8 -o /dev/null 2>&1", 0, "wrote /dev/null");
    shell_expect("$DS4 -p hi --session \"$OUT/$BAD\" -n 2 --temp 0 2>&1 >/dev/null; rm \"$OUT/$BAD\"", 0,
                 "out/a?b?[31m??c: ");
}

/* ---------------------------------------------------------------- damage that shows when it is used */

/* The embedding of the word that every prompt begins with has a weight that is no number: an answer ends with an error,
 * in the chat and from the server, instead of following some token. */
static void damaged_word(void **state)
{
    static const char says[] = "which is no number to choose by: weights of its file are damaged; get the file again";
    static const uint64_t values[] = {0x7f80, 0xff80, 0x7fc0}; /* BF16: infinite of both signs, NaN */
    char bad[TEMP_PATH], command[300], what[TEMP_PATH + 10];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const struct forge_edit edit = {T_POKE, "token_embd.weight", values[i], .at = 0, .n = 2};
        temp_file(bad);
        forge_write(model, bad, &edit, 1);
        snprintf(command, sizeof command,
                 TEST_BUILD "/ds4 -m %s -p hi -n 20 2>$FOLDER/told; r=$?; tail -n 1 $FOLDER/told >&2; exit $r", bad);
        fails(command, 1, says);
        snprintf(command, sizeof command, TEST_BUILD "/ds4 -m %s -p hi --dump-logits /dev/stdout -c 64 2>&1", bad);
        shell_expect(command, 0, "null"); /* the diagnostics show it */
        struct server_run s;
        struct http_answer a = {0};
        snprintf(what, sizeof what, "-m %s", bad);
        server_run_start(&s, what, "--ctx 512 --threads 2");
        for (int k = 0; k < 2; k++) { /* it goes on with the next request */
            http_client_ask_at(s.port, "POST", "/v1/chat/completions", "Content-Type: application/json\r\n",
                               "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}", &a);
            if (a.status != 500 || !strstr(str_c(&a.body), says)) fail_msg("%d: %s", a.status, str_c(&a.body));
        }
        http_answer_free(&a);
        server_run_stop(&s);
        temp_remove(bad);
    }
}

/* ---------------------------------------------------------------- limits of the system */

/* Files and folders that somebody else may not touch. Root may, so root gives up its rights. */
static void without_permission(void **state)
{
    struct str said = {0};
    setenv("NOBODY", geteuid() ? "" : "setpriv --reuid 65534 --regid 65534 --clear-groups", 1);
    if (shell_run("chmod 755 $FOLDER; chmod 644 $MODEL; chmod 777 $OUT; $NOBODY $DS4 --raw -p a --dump-tokens 2>&1",
                  &said)) {
        str_free(&said);
        missing("nobody cannot run " TEST_BUILD "/ds4 here");
    }
    static const struct failure table[] = {
        {"$NOBODY " TEST_BUILD "/ds4 -p hi -m $FOLDER/closed", 1, "closed: cannot open: Permission denied"},
        {"$NOBODY $GGUF inspect $FOLDER/closed", 1, "closed: cannot open: Permission denied"},
        {"$NOBODY $DS4 --prompt-file $FOLDER/closed", 1, "closed: cannot open: Permission denied"},
        {"$NOBODY $DS4 -p hi --session $FOLDER/closed", 1, "closed: cannot open: Permission denied"},
        {"$NOBODY $DS4 -p hi --session $FOLDER/sealed/s", 1,
         "sealed/s: cannot create a file beside it to write to: Permission denied"},
        {"$NOBODY $DS4 -p hi --logits-out $FOLDER/still", 1, "still: cannot write to it: Permission denied"},
        {"$NOBODY $DS4 -p hi --session $FOLDER/session", 1, "session: cannot write to it: Permission denied"},
        {"$NOBODY $GGUF synth --preset tiny --quant q8 --overwrite -o $FOLDER/still", 1, "still: cannot write to it"},
        {"$NOBODY $DS4 -p hi --logits-out $FOLDER/sealed/x", 1, "sealed/x: cannot create a file beside it"},
        {"$NOBODY $DS4 -p hi --dump-logits $FOLDER/sealed/x", 1, "sealed/x: cannot create a file beside it"},
        {"$NOBODY $DS4 -p hi --dump-logprobs $FOLDER/sealed/x", 1, "sealed/x: cannot create a file beside it"},
        {"$NOBODY $GGUF synth --preset tiny --quant q8 -o $FOLDER/sealed/x", 1, "sealed/x: cannot create a file"},
    };
    assert_int_equal(shell_run("cd $FOLDER; chmod 777 .; chmod 444 session; cp prompt still; chmod 444 still; cp empty "
                               "closed; chmod 0 closed; mkdir sealed; chmod 555 sealed",
                               &said),
                     0);
    ALL_FAIL(table);
    if (!geteuid())
        fails("prlimit --nproc=9 $NOBODY $DS4 -p hi -t 64", 1, "the system's limit of threads or memory is reached");
    str_free(&said);
}

static void too_little(void **state)
{
    static const struct failure table[] = {
        {"$DS4 -p hi --memory 0.01", 1, "not enough memory: "},
        {"$DS4 -p hi --ctx 8", 1, "the prompt has 10 tokens, the context 8; give a larger --ctx"},
        {"$DS4 --raw --prompt-file $MODEL", 1, "the prompt has at least "},
        {"$DS4 -p hi --ctx 40 --decode-consistency 100", 1, "do not fit the context 40; give a larger --ctx"},
    };
    ALL_FAIL(table);
}

/* Whatever the address space is too small for is told, by the program or by the system's loader. */
static void little_address_space(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    missing("a sanitizer needs all of the address space");
#endif
    static const char *const programs[] = {"$DS4 -p hi -n 3 --temp 0", "$GGUF synth --preset tiny --quant q2 -o $OUT/x",
                                           "$GGUF convert models/demo -o $OUT/x", "$GGUF inspect $MODEL"};
    struct str said = {0}, line = {0};
    int failed = 0;
    for (int p = 0; p < 4; p++)
        for (int kib = 4000; kib < 100000; kib += kib / 4) {
            /* where the system cannot even start it, it ends by a signal or by what the loader says */
            str_clear(&line);
            str_printf(&line, "ulimit -v %d; exec %.*s --version >/dev/null 2>&1", kib, (int)strcspn(programs[p], " "),
                       programs[p]);
            if (shell_run(str_c(&line), &said)) continue;
            str_clear(&line);
            str_printf(&line, "rm -f $OUT/x; ulimit -v %d; exec %s 2>&1 >/dev/null", kib, programs[p]);
            const int rc = shell_run(str_c(&line), &said);
            if (rc != 0 && rc != 1) fail_msg("%s\nstatus %d: %s", str_c(&line), rc, str_c(&said));
            if (rc != 1) continue;
            failed++;
            const char *last = strstr(str_c(&said), " left out\n");
            check_sentence(str_c(&line), 1, last ? last + 10 : str_c(&said), "");
            shell_expect("test -e $OUT/x || echo none", 0, "none");
        }
    assert_true(failed > 12);
    shell_expect("rm -f $OUT/x; echo", 0, "");
    str_free(&said);
    str_free(&line);
}

/* ---------------------------------------------------------------- signals */

/* Nothing is in $OUT, or a whole file by the name x: the program was ready before the signal came. */
static void check_left(int status)
{
    struct str said = {0};
    assert_int_equal(shell_run("ls -A $OUT", &said), 0);
    if (status < 0 ? said.n != 0 : strcmp(str_c(&said), "x\n") != 0) fail_msg("%d, left: %s", status, str_c(&said));
    assert_int_equal(shell_run("rm -f $OUT/x", &said), 0);
    str_free(&said);
}

/* A signal once the program says something leaves nothing behind. */
static void stopped(const char *command, const char *when, int signal_number)
{
    struct shell_child c;
    shell_start(&c, command);
    if (!shell_await(&c, when)) fail_msg("%s\nended with %d: %s", command, shell_end(&c), str_c(&c.said));
    kill(c.pid, signal_number);
    const int status = shell_end(&c);
    if (status != 0 && status != -signal_number) fail_msg("%s\n%d: %s", command, status, str_c(&c.said));
    check_left(status);
    str_free(&c.said);
}

static void signals_that_end(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
    for (int i = 0; i < 4; i++) {
        stopped("$GGUF convert -v models/demo -o $OUT/x", "[   30", numbers[i]);
        stopped("$DS4 -v --raw --prompt-file README.md --logits-out $OUT/x", "ds4: ", numbers[i]);
        if (numbers[i] != SIGINT)
            stopped("$DS4 --raw --prompt-file README.md -t 1 --session $OUT/x", "processing ", numbers[i]);
    }
}

/* Ctrl-C ends an answer, which is saved then as far as it went, and the program, as it does without an answer. */
static void interrupts(void **state)
{
    struct shell_child c;
    shell_start(&c, "$DS4 --raw --prompt-file README.md -t 1 --prefill-chunk 64 --session $OUT/x");
    assert_true(shell_await(&c, "processing "));
    kill(c.pid, SIGINT);
    assert_int_equal(shell_end(&c), -SIGINT);
    assert_non_null(strstr(str_c(&c.said), "ds4: interrupted before the answer began; nothing is saved\n"));
    assert_int_equal(access("$OUT/x", F_OK), -1);
    str_free(&c.said);
    shell_start(&c, "$DS4 --raw -p 'Once upon a time' --backend ref --session $OUT/x");
    assert_true(shell_await(&c, "a"));
    kill(c.pid, SIGINT);
    assert_int_equal(shell_end(&c), -SIGINT);
    assert_non_null(strstr(str_c(&c.said), "tokens saved\nds4: interrupted\n"));
    str_free(&c.said);
    shell_expect("rm $OUT/x && echo gone", 0, "gone");
}

/* One that the program was started without stays so: as for a background job of a script. */
static void ignored_interrupt(void **state)
{
    struct shell_child c;
    shell_start(&c, "sh -c 'trap \"\" INT; exec $DS4 --raw -p \"Once upon a time\" --temp 0 -n 40 --backend ref'");
    assert_true(shell_await(&c, "a"));
    kill(c.pid, SIGINT);
    assert_int_equal(shell_end(&c), 0);
    const char *speed = strstr(str_c(&c.said), "prefill: ");
    assert_non_null(speed);
    assert_true(speed - str_c(&c.said) > 60); /* all 40 tokens */
    str_free(&c.said);
}

/* ---------------------------------------------------------------- what is written about it */

/* Whether a failure was seen that has this status and sentence; in the sentence NAME and N stand for anything. */
static bool is_seen(int status, const char *sentence, size_t n)
{
    struct str pattern = {0}, line = {0};
    bool found = false;
    str_printf(&pattern, "%d ds4*: ", status);
    for (size_t i = 0; i < n; i++) {
        const bool word = i == 0 || !isalnum((unsigned char)sentence[i - 1]);
        const size_t stands = word && !strncmp(sentence + i, "NAME", 4)                                ? 4
                              : word && sentence[i] == 'N' && !isalnum((unsigned char)sentence[i + 1]) ? 1
                                                                                                       : 0;
        if (!stands && strchr("*?[\\", sentence[i])) str_puts(&pattern, "\\");
        str_add(&pattern, stands ? "*" : sentence + i, 1);
        if (stands) i += stands - 1;
    }
    for (const char *p = str_c(&seen); *p && !found; p += strcspn(p, "\n") + 1) {
        str_clear(&line);
        str_add(&line, p, strcspn(p, "\n"));
        found = fnmatch(str_c(&pattern), str_c(&line), 0) == 0;
    }
    str_free(&pattern);
    str_free(&line);
    return found;
}

/* Every sentence in the tables of docs/failures.md came, with its status. */
static void the_page_is_true(void **state)
{
    char *page;
    size_t n;
    struct err e = {0};
    int rows = 0;
    if (!all_seen) skip();
    if (file_read("docs/failures.md", 1 << 20, &page, &n, &e)) fail_msg("%s", e.msg);
    for (const char *p = page; (p = strstr(p, "\n| ")); p++) {
        const char *begin = strchr(p + 3, '`');
        if ((p[3] != '1' && p[3] != '2') || !begin || p[5] != '|' || begin != p + 7) continue;
        const size_t length = strcspn(begin + 1, "`");
        if (!is_seen(p[3] - '0', begin + 1, length)) fail_msg("never seen: %.*s", (int)length, begin + 1);
        rows++;
    }
    assert_true(rows > 30);
    mem_free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_model),
        cmocka_unit_test(other_inputs),
        cmocka_unit_test(wrong_use),
        cmocka_unit_test(unknown_words),
        cmocka_unit_test(places_that_are_none),
        cmocka_unit_test(outputs_that_are_inputs),
        cmocka_unit_test(files_that_grow_too_large),
        cmocka_unit_test(full_devices),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(output_streams),
        cmocka_unit_test(no_place_for_messages),
        cmocka_unit_test(what_does_not_fail),
        cmocka_unit_test(damaged_word),
        cmocka_unit_test(without_permission),
        cmocka_unit_test(too_little),
        cmocka_unit_test(little_address_space),
        cmocka_unit_test(signals_that_end),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(ignored_interrupt),
        cmocka_unit_test(the_page_is_true),
    };
    return cmocka_run_group_tests(tests, group_set_up, NULL);
}
