/* The chat of ds4 on a terminal, with the demo model: what is to be seen on the screen, the exact list of tokens behind
 * it, and the terminal after every way out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../support/demo_model.h"
#include "../support/shell_run.h"
#include "../support/terminal_kit.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

static char model[TEMP_PATH], home[TEMP_PATH], home_is[TEMP_PATH + 8];

static int group_set_up(void **state)
{
    demo_model_convert("", model);
    temp_folder(home);
    snprintf(home_is, sizeof home_is, "HOME=%s", home);
    return 0;
}

/* ---------------------------------------------------------------- a chat */

struct chat {
    struct terminal t;
    int answers, saved; /* so far */
};

enum { MOST_WORDS = 32 };

/* ds4 with the demo model and these options; change: of the environment, or NULL. */
static void start_with(struct chat *c, int rows, int columns, const char *change, const char *const *options)
{
    const char *argv[MOST_WORDS] = {TEST_BUILD "/ds4", "-m", model, "--temp", "0", "-n", "200"};
    const char *const changes[] = {home_is, change, NULL};
    for (int i = 7; (argv[i] = *options); i++, options++) assert_true(i + 1 < MOST_WORDS);
    *c = (struct chat){0};
    terminal_start(&c->t, rows, columns, argv, changes);
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void start(struct chat *c, const char *const *options)
{
    start_with(c, 50, 100, NULL, options);
    terminal_await_row(&c->t, "ds4>");
}

static void await_answer(struct chat *c)
{
    terminal_await_count(&c->t, ", context: ", ++c->answers);
    terminal_await_row(&c->t, "ds4>");
}

static void ask(struct chat *c, const char *question)
{
    terminal_type(&c->t, question);
    terminal_type(&c->t, "\r");
    await_answer(c);
}

/* A command, and what is shown then. */
static void command(struct chat *c, const char *line, const char *shown)
{
    terminal_type(&c->t, line);
    terminal_type(&c->t, "\r");
    terminal_await(&c->t, shown);
    terminal_await_row(&c->t, "ds4>");
}

static void type_interrupt(struct chat *c)
{
    terminal_type(&c->t, "\003");
}

static void expect_exit(struct chat *c, int status)
{
    const int got = terminal_end(&c->t);
    if (!WIFEXITED(got) || WEXITSTATUS(got) != status) fail_msg("ended with %x instead of exit status %d", got, status);
}

static void expect_death(struct chat *c, int number)
{
    const int got = terminal_end(&c->t);
    if (!WIFSIGNALED(got) || WTERMSIG(got) != number) fail_msg("ended with %x instead of signal %d", got, number);
}

static void leave(struct chat *c)
{
    terminal_type(&c->t, "\004");
    expect_exit(c, 0);
}

/* Portable kernels compute about 25 tokens a second: a story takes seconds, and is long from its end when it is seen
 * to begin. */
#define SLOWLY "--isa", "scalar", "--prefill-chunk", "16"

/* ---------------------------------------------------------------- lists of tokens */

#define BOS      "<｜begin▁of▁sentence｜>"
#define EOS      "<｜end▁of▁sentence｜>"
#define USER     "<｜User｜>"
#define ASSIST   "<｜Assistant｜>"
#define THINK    "<think>"
#define ENDTHINK "</think>"
/* Stands for the whole piece of the golden file that begins so. */
#define EFFORT "Reasoning Effort: "
#define STORY  "There once was a hungry fox"

struct piece {
    char *text;
    int32_t *ids;
    size_t n;
};
static struct piece pieces[32];

static void pieces_read(void)
{
    FILE *f = demo_text_open("tests/golden/demo_chat.txt");
    char word[16];
    for (struct piece *p = pieces; demo_text_word(f, word); p++) {
        size_t bytes = 0;
        assert_true(!strcmp(word, "piece") && fscanf(f, "%zu", &bytes) == 1);
        p->text = demo_text_bytes(f, bytes);
        assert_int_equal(fscanf(f, "%zu", &p->n), 1);
        p->ids = mem_alloc(p->n * sizeof *p->ids);
        for (size_t i = 0; i < p->n; i++) assert_int_equal(fscanf(f, "%d", &p->ids[i]), 1);
    }
    fclose(f);
}

static const struct piece *piece(const char *text)
{
    const bool beginning = !strcmp(text, EFFORT) || !strcmp(text, STORY);
    if (!pieces[0].text) pieces_read();
    for (const struct piece *p = pieces; p->text; p++)
        if (beginning ? !strncmp(p->text, text, strlen(text)) : !strcmp(p->text, text)) return p;
    fail_msg("no piece \"%s\"", text);
    return NULL;
}

/* The tokens of a session file, as docs/sessions.md describes it; to be freed with mem_free. */
static int32_t *tokens_of(const char *name, size_t *n)
{
    char path[TEMP_PATH + 32], *bytes;
    size_t size;
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s", home, name);
    if (file_read(path, 64 << 20, &bytes, &size, &e)) fail_msg("%s", e.msg);
    int32_t count;
    memcpy(&count, bytes + 12, sizeof count);
    assert_true(112 + (size_t)count * sizeof count <= size);
    int32_t *ids = mem_alloc((size_t)count * sizeof *ids);
    memcpy(ids, bytes + 112, (size_t)count * sizeof *ids);
    *n = (size_t)count;
    mem_free(bytes);
    return ids;
}

static void fail_at(const char *name, size_t at, const char *text, const int32_t *ids, size_t n)
{
    struct str got = {0};
    for (size_t i = 0; i < n; i++) str_printf(&got, " %d", ids[i]);
    fail_msg("%s: no \"%s\" at token %zu of%s", name, text, at, str_c(&got));
}

/* /save, and the file has these pieces, the list ending with NULL. The last may be cut short if that is said. */
static void expect_tokens_until(struct chat *c, bool cut, const char *const *list)
{
    char line[32];
    size_t n, at = 0;
    snprintf(line, sizeof line, "/save ~/save%d\r", c->saved);
    terminal_type(&c->t, line);
    terminal_await_count(&c->t, " tokens saved", ++c->saved);
    terminal_await_row(&c->t, "ds4>");
    snprintf(line, sizeof line, "save%d", c->saved - 1);
    int32_t *ids = tokens_of(line, &n);
    for (; *list; list++) {
        const struct piece *p = piece(*list);
        size_t length = p->n;
        if (cut && !list[1] && length > n - at) length = n - at;
        if (!length || length > n - at || memcmp(ids + at, p->ids, length * sizeof *ids))
            fail_at(line, at, *list, ids, n);
        at += length;
    }
    if (at != n) fail_at(line, at, "end", ids, n);
    mem_free(ids);
}

#define EXPECT_TOKENS(c, ...)     expect_tokens_until(c, false, ((const char *const[]){__VA_ARGS__, NULL}))
#define EXPECT_TOKENS_CUT(c, ...) expect_tokens_until(c, true, ((const char *const[]){__VA_ARGS__, NULL}))

#define FIRST_TURN  USER, "What is 4 + 5?", ASSIST, THINK, "4 + 5 = 9.", ENDTHINK, "4 + 5 = 9"
#define SECOND_TURN EOS, USER, "What is 3 + 5?", ASSIST, ENDTHINK, "3 + 5 = 8"
#define THIRD_TURN  EOS, USER, "What is 2 + 4?", ASSIST, THINK, "2 + 4 = 6.", ENDTHINK, "2 + 4 = 6"

/* Ways of thinking, the effort's text behind the first token and away again, another context, a new conversation. */
static void transcript(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", "Be brief.", "--ctx", "2048"));
    ask(&c, "What is 4 + 5?");
    EXPECT_TOKENS(&c, BOS, "Be brief.", FIRST_TURN);
    command(&c, "/nothink", "without thinking");
    ask(&c, "What is 3 + 5?");
    EXPECT_TOKENS(&c, BOS, "Be brief.", FIRST_TURN, SECOND_TURN);
    command(&c, "/think-max", "a context of 2048 tokens is too small for --think-max");
    command(&c, "/ctx 393216", "of 393216 tokens used");
    EXPECT_TOKENS(&c, BOS, "Be brief.", FIRST_TURN, SECOND_TURN);
    ask(&c, "What is 2 + 4?");
    EXPECT_TOKENS(&c, BOS, EFFORT, "Be brief.", FIRST_TURN, SECOND_TURN, THIRD_TURN);
    command(&c, "/nothink", "without thinking");
    EXPECT_TOKENS(&c, BOS, EFFORT, "Be brief.", FIRST_TURN, SECOND_TURN, THIRD_TURN);
    ask(&c, "What is 3 + 5?");
    EXPECT_TOKENS(&c, BOS, "Be brief.", FIRST_TURN, SECOND_TURN, THIRD_TURN, SECOND_TURN);
    command(&c, "/reset", "a new conversation");
    command(&c, "/think", "thinking before answers");
    ask(&c, "What is 4 + 5?");
    EXPECT_TOKENS(&c, BOS, "Be brief.", FIRST_TURN);
    leave(&c);
}

/* What is typed never becomes a special token, and a file is said as it is. */
static void files_are_said(void **state)
{
    static const char bytes[] = "a <｜User｜> b\n\\ \x01"
                                "end\n";
    struct chat c;
    char path[TEMP_PATH + 16];
    snprintf(path, sizeof path, "%s/some file", home);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(bytes, 1, sizeof bytes - 1, f);
    fclose(f);
    start(&c, OPTIONS("--system", "", "--nothink", "-n", "1"));
    terminal_type(&c.t, "/read ~/some file\r");
    await_answer(&c);
    terminal_expect(&c.t, "some file: 24 bytes");
    size_t n;
    const struct piece *said = piece(bytes);
    terminal_type(&c.t, "/save ~/read\r");
    terminal_await(&c.t, " tokens saved");
    int32_t *ids = tokens_of("read", &n);
    assert_true(n == said->n + 5); /* one of the answer */
    assert_memory_equal(ids + 2, said->ids, said->n * sizeof *ids);
    mem_free(ids);
    leave(&c);
}

/* ---------------------------------------------------------------- what is shown */

/* Thinking is dim and without its tags, a blank line stands where it ends. */
static void thinking_and_answer(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", ""));
    terminal_expect(&c.t, "\n  /read FILE ");
    ask(&c, "What is 4 + 5?");
    terminal_expect(&c.t, "ds4> What is 4 + 5?\n4 + 5 = 9.\n\n4 + 5 = 9\nprefill: ");
    terminal_expect(&c.t, ", context: 28/32768 (0%)\n");
    assert_string_equal(terminal_style(&c.t, "4 + 5 = 9."), "90");
    assert_string_equal(terminal_style(&c.t, "4 + 5 = 9 "), "");
    leave(&c);
}

static void no_colours(void **state)
{
    static const char *const without[] = {"NO_COLOR=1", "TERM=dumb", "TERM"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        struct chat c;
        start_with(&c, 50, 100, without[i], OPTIONS("--system", ""));
        terminal_await_row(&c.t, "ds4>");
        assert_int_equal(terminal_wants_pastes(&c.t), i == 0);
        ask(&c, "What is 4 + 5?");
        terminal_expect(&c.t, "4 + 5 = 9.\n\n4 + 5 = 9\n");
        assert_string_equal(terminal_style(&c.t, "4 + 5 = 9."), "");
        leave(&c);
    }
}

/* What the model may say at a very high temperature, backquotes and broken characters in it: the terminal shows the
 * text that a pipe gets, with colours. */
static void colours_change_no_text(void **state)
{
    struct str piped = {0}, want = {0};
    struct terminal t;
    char line[512];
    const char *const argv[] = {TEST_BUILD "/ds4", "-m", model, "--raw", "-p", "# List\n", "--temp", "6",
                                "--seed",          "19", "-n",  "120",   NULL};
    snprintf(line, sizeof line, TEST_BUILD "/ds4 -m %s --raw -p '# List\n' --temp 6 --seed 19 -n 120 2>/dev/null",
             model);
    assert_int_equal(shell_run(line, &piped), 0);
    for (size_t i = 0; i < piped.n; i++) {
        const char c = piped.p[i];
        while (c == '\n' && want.n && want.p[want.n - 1] == ' ') want.n--;
        str_add(&want, (unsigned char)c < 32 && c != '\n' ? "?" : &c, 1);
    }
    terminal_start(&t, 20, 500, argv, NULL);
    terminal_await(&t, "generation: ");
    if (strncmp(terminal_text(&t), str_c(&want), want.n))
        fail_msg("\n%s\ninstead of\n%s", terminal_text(&t), str_c(&want));
    assert_string_equal(terminal_style(&t, "rian wro"), "36");
    assert_string_equal(terminal_style(&t, ".Count It M Olga"), "");
    assert_int_equal(terminal_end(&t), 0);
    str_free(&piped);
    str_free(&want);
}

/* The chat with its messages in a file: only there a prefill leaves a trace, if it has 64 tokens or more. */
static void start_logged(struct chat *c, const char *before, const char *options)
{
    char line[512];
    const char *const argv[] = {"sh", "-c", line, NULL}, *const changes[] = {home_is, NULL};
    snprintf(line, sizeof line,
             "P=$PWD; %s exec $P/" TEST_BUILD "/ds4 -m %s --system '' --temp 0 --nothink %s 2>%s/log", before, model,
             options, home);
    *c = (struct chat){0};
    terminal_start(&c->t, 50, 100, argv, changes);
    terminal_await_row(&c->t, "ds4>");
}

static void type_and_await_prompts(struct chat *c, const char *lines, int prompts)
{
    terminal_type(&c->t, lines);
    terminal_await_count(&c->t, "\nds4>", prompts);
    terminal_await_row(&c->t, "ds4>");
}

/* ---------------------------------------------------------------- typing */

static void editing(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", "", "--nothink"));
    terminal_type(&c.t, "half a line");
    terminal_await_row(&c.t, "ds4> half a line");
    type_interrupt(&c); /* clears it */
    terminal_await_row(&c.t, "ds4>");
    type_interrupt(&c);
    terminal_await(&c.t, "(Ctrl-D or /quit leaves)");
    terminal_type(&c.t, "Grüße 日本 \xff");
    terminal_await_row(&c.t, "ds4> Grüße 日本 \xef\xbf\xbd");
    terminal_type(&c.t, "\025What is 4 + 9?\033[D\0105"); /* Ctrl-U, left, backspace */
    terminal_await_row(&c.t, "ds4> What is 4 + 5?");
    ask(&c, "");
    terminal_expect(&c.t, "\n4 + 5 = 9\n");
    /* more than one line by hand: a backslash at the end, Alt-Enter */
    terminal_type(&c.t, "one\\\r");
    terminal_await_row(&c.t, "...>");
    terminal_type(&c.t, "two\033\rthree");
    terminal_await_row(&c.t, "three");
    ask(&c, "");
    terminal_type(&c.t, "\033[A");
    terminal_await(&c.t, "ds4> one\ntwo\nthree\n");
    terminal_type(&c.t, "\033[A\033[Ax"); /* to its first line */
    terminal_await(&c.t, "ds4> onex\ntwo\nthree\n");
    type_interrupt(&c);
    terminal_await_row(&c.t, "ds4>");
    terminal_type(&c.t, "/read CONTRIB\t"); /* names of files */
    terminal_await_row(&c.t, "ds4> /read CONTRIBUTING.md");
    type_interrupt(&c);
    terminal_await_row(&c.t, "ds4>");
    terminal_type(&c.t, "a\tb"); /* elsewhere a tab is one */
    terminal_await_row(&c.t, "ds4> a  b");
    type_interrupt(&c);
    leave(&c);
}
/* Line ends in a paste do not submit, whatever they are; it is quick also where it is long, and can be cleared. */
static void pastes(void **state)
{
    struct chat c;
    struct str much = {0};
    start(&c, OPTIONS("--system", "", "--nothink", "-n", "1"));
    assert_true(terminal_wants_pastes(&c.t));
    terminal_send_paste(&c.t, "one\ntwo 日本\n\tthree");
    terminal_await(&c.t, "ds4> one\ntwo 日本\n        three");
    ask(&c, "");
    size_t n;
    const struct piece *said = piece("one\ntwo 日本\n\tthree");
    command(&c, "/save ~/pasted", "pasted: ");
    int32_t *ids = tokens_of("pasted", &n);
    assert_memory_equal(ids + 2, said->ids, said->n * sizeof *ids);
    mem_free(ids);
    terminal_type(&c.t, "\033[200~four\r\nfive\nsix\rseven\033[201~");
    terminal_await(&c.t, "ds4> four\nfive\nsix\nseven");
    type_interrupt(&c);
    terminal_await_row(&c.t, "ds4>");
    for (int i = 0; i < 2500; i++) str_printf(&much, "line %d of a text that is very long\n", i);
    str_puts(&much, "end of it");
    terminal_send_paste(&c.t, str_c(&much));
    terminal_await_row(&c.t, "end of it");
    terminal_type(&c.t, "!");
    terminal_await_row(&c.t, "end of it!");
    command(&c, "", "of the context of 32768 tokens");
    leave(&c);
    str_free(&much);
}

/* The line is drawn anew for the new width, the answer goes on. */
static void windows_change(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", "", "--nothink"));
    terminal_type(&c.t, "0123456789 0123456789 0123456789 0123456789");
    terminal_await_row(&c.t, "ds4> 0123456789 0123456789 0123456789 0123456789");
    terminal_resize(&c.t, 50, 30);
    terminal_await(&c.t, "\nds4> 0123456789 0123456789 012\n3456789 0123456789\n");
    terminal_type(&c.t, " a");
    terminal_await_row(&c.t, "3456789 0123456789 a");
    terminal_resize(&c.t, 50, 80);
    terminal_await_row(&c.t, "ds4> 0123456789 0123456789 0123456789 0123456789 a");
    terminal_type(&c.t, "\025Tell me a story about a fox who lost a lamp.\r");
    terminal_await(&c.t, "There once");
    terminal_resize(&c.t, 20, 60);
    await_answer(&c);
    terminal_expect(&c.t, "friends make hard things easy.\n");
    leave(&c);
}

/* Lines still arrive where there is no room to edit them. */
static void narrow_windows(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", ""));
    terminal_resize(&c.t, 2, 2);
    terminal_type(&c.t, "What is 4 + 5?\r");
    terminal_await(&c.t, "\n=\n9");
    terminal_await(&c.t, "\nds\n4>");
    terminal_type(&c.t, "Grüße 日本\r");
    terminal_await_count(&c.t, "\nds\n4>", 2);
    terminal_resize(&c.t, 24, 80);
    terminal_type(&c.t, "What is 2 + 4?\r");
    terminal_await(&c.t, "2 + 4 = 6\nprefill");
    terminal_await_row(&c.t, "ds4>");
    terminal_resize(&c.t, 24, 8);
    terminal_type(&c.t, "What is 2 + 4?\004");
    terminal_type(&c.t, "\r\004\004");
    expect_exit(&c, 0);
}

/* What is typed while an answer comes is not shown then, and read afterwards. */
static void typed_ahead(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", "", "--nothink", "-n", "16", SLOWLY));
    terminal_type(&c.t, "Who are you?\r");
    terminal_await(&c.t, "I am");
    terminal_type(&c.t, "What is 4 + 5?\r\004");
    terminal_await_count(&c.t, ", context: ", 2);
    terminal_expect(&c.t, "\nds4: the answer ends here, after 16 tokens (-n)\nprefill");
    terminal_expect(&c.t, "ds4> What is 4 + 5?\n4 + 5 = 9\n");
    expect_exit(&c, 0);
}

static void history_of_lines(void **state)
{
    struct chat c;
    struct stat st;
    char path[TEMP_PATH + 16], line[3 * TEMP_PATH + 64];
    snprintf(path, sizeof path, "%s/.ds4_history", home);
    unlink(path);
    start(&c, OPTIONS("--nothink"));
    command(&c, "/nothink", "without thinking");
    command(&c, "/nothink", "without thinking"); /* once in the file */
    terminal_send_paste(&c.t, "/back\\slash\nin two lines");
    ask(&c, "");
    assert_int_equal(stat(path, &st), 0); /* at once */
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(line, sizeof line, "cat %s", path);
    shell_expect(line, 0, "/nothink\n/back\\\\slash\\nin two lines\n");
    leave(&c);
    start(&c, OPTIONS("--nothink"));
    terminal_type(&c.t, "\033[A");
    terminal_await(&c.t, "ds4> /back\\slash\nin two lines\n");
    terminal_type(&c.t, "\033[A\033[A");
    terminal_await_row(&c.t, "ds4> /nothink");
    type_interrupt(&c);
    terminal_await_row(&c.t, "ds4>");
    leave(&c);
    /* 512 are kept, whatever is in them */
    snprintf(line, sizeof line, "seq 600 >>%s; printf 'a\\377b\\000c\\n' >>%s", path, path);
    shell_expect(line, 0, "");
    start(&c, OPTIONS("--nothink"));
    terminal_type(&c.t, "\033[A");
    terminal_await_row(&c.t, "ds4> a\xef\xbf\xbd"
                             "b?c");
    type_interrupt(&c);
    leave(&c);
    snprintf(line, sizeof line, "wc -l <%s; head -n 1 %s", path, path);
    shell_expect(line, 0, "512\n90\n");
    /* a file that cannot be written: said once */
    snprintf(line, sizeof line, "rm %s; mkdir %s", path, path);
    shell_expect(line, 0, "");
    start(&c, OPTIONS("--nothink"));
    command(&c, "/think", ".ds4_history: Is a directory; what is typed is not kept");
    command(&c, "/nothink", "without thinking");
    terminal_await_count(&c.t, "ds4_history", 1);
    leave(&c);
    rmdir(path);
    /* without HOME it lies here */
    start_logged(&c, "cd $HOME; unset HOME;", "");
    type_and_await_prompts(&c, "/think\r", 2);
    leave(&c);
    snprintf(line, sizeof line, "cat %s", path);
    shell_expect(line, 0, "/think\n");
}

/* ---------------------------------------------------------------- commands */

static void commands(void **state)
{
    struct chat c;
    char path[TEMP_PATH + 16];
    start(&c, OPTIONS("--system", "", "--ctx", "256"));
    snprintf(path, sizeof path, "%s/empty", home);
    fclose(fopen(path, "w"));
    command(&c, "/help", "ds4> /help\n  /help ");
    command(&c, "/foo bar", "ds4: unknown command /foo; /help lists them");
    command(&c, "/think now", "ds4: /think takes no argument");
    command(&c, "/think-max", "too small for --think-max");
    command(&c, "/ctx 1", "ds4: a context has 2 to 1048576 tokens");
    command(&c, "/ctx many", "ds4: /ctx: 'many' is not a number of tokens");
    command(&c, "/save ~/nothing", "ds4: nothing has been said yet");
    command(&c, "/save", "ds4: /save: give the name of a file");
    command(&c, "/load ~/nothing", "nothing: cannot open: No such file");
    command(&c, "/load ~/empty", "empty: the file is empty");
    command(&c, "/read", "ds4: /read: give the name of a file");
    command(&c, "/read ~/nothing", "nothing: cannot open: No such file");
    command(&c, "/read ~", "ds4: ~: cannot open: No such file");
    command(&c, "/read ~/", "Is a directory");
    command(&c, "/read ~/empty", "empty: is empty");
    command(&c, "/read README.md", "of the context of 256 tokens");
    command(&c, "/read models/demo/model.safetensors", "README");
    ask(&c, " /what is 4 + 5?"); /* a blank makes it a message */
    terminal_type(&c.t, "/quit\r");
    expect_exit(&c, 0);
}
/* Little room: said, refused, and made. */
static void context_fills(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", "", "--nothink", "--ctx", "64"));
    ask(&c, "What is 4 + 5?");
    terminal_expect(&c.t, ", context: 19/64 (29%)\nds4>");
    ask(&c, "Tell me a story about a fox who lost a lamp.");
    terminal_expect(&c.t, "ds4: the answer ends here: the context of 64 tokens is full");
    terminal_expect(&c.t, ", context: 64/64 (100%)");
    command(&c, "What is 3 + 5?", "of the context of 64 tokens 0 are left; /ctx N makes it larger");
    command(&c, "/ctx 90", "context: 64 of 90 tokens used\nmemory: 0.");
    command(&c, "/ctx 64", "the conversation has 64 tokens, which a context of 64 does not hold");
    ask(&c, "What is 3 + 5?");
    terminal_expect(&c.t, "ds4: the context is nearly full, ");
    command(&c, "/reset", "a new conversation");
    ask(&c, "What is 3 + 5?");
    terminal_expect(&c.t, ", context: 19/90 (21%)\nds4>");
    leave(&c);
}

/* ---------------------------------------------------------------- conversations on file */

static void expect_prefills(const char *yes_or_no)
{
    char line[TEMP_PATH + 64];
    snprintf(line, sizeof line, "grep -q processing %s/log && echo yes || echo no", home);
    shell_expect(line, 0, yes_or_no);
}

/* /save, then in another run /load: the past is not computed again, nor is it with another context, and the
 * conversation goes on as if it had never been left. */
static void saved_and_loaded(void **state)
{
    static const char many[] =
        "one two three four five six seven eight nine ten eleven twelve one two three four five six "
        "seven eight nine ten eleven twelve one two three four five six seven eight\r";
    struct chat c;
    size_t n[2];
    int32_t *ids[2];
    start_logged(&c, "", "-n 20");
    type_and_await_prompts(&c, many, 2);
    expect_prefills("yes");
    type_and_await_prompts(&c, "/save ~/left\r", 3);
    type_and_await_prompts(&c, "What is 4 + 5?\r/save ~/stayed\r", 5);
    leave(&c);
    start_logged(&c, "", "-n 20");
    type_and_await_prompts(&c, "What is 3 + 5?\r/load ~/left\r", 3);
    type_and_await_prompts(&c, "/load ~/log\r/load ~/nothing\r", 5); /* which leave the conversation as it is */
    type_and_await_prompts(&c, "/ctx 4096\rWhat is 4 + 5?\r/save ~/returned\r", 8);
    leave(&c);
    expect_prefills("no");
    ids[0] = tokens_of("stayed", &n[0]);
    ids[1] = tokens_of("returned", &n[1]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(ids[0], ids[1], n[0] * sizeof *ids[0]);
    mem_free(ids[0]);
    mem_free(ids[1]);
}

/* --session: two turns of one chat, a chat for each, and two single answers leave the same bytes. */
static void session_of_a_chat(void **state)
{
    struct chat c;
    char path[TEMP_PATH + 16], line[5 * TEMP_PATH + 256];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/chat%d", home, i);
        start(&c, OPTIONS("--system", "", "--session", path));
        ask(&c, "What is 4 + 5?");
        if (i) {
            leave(&c);
            start(&c, OPTIONS("--system", "", "--session", path));
            terminal_expect(&c.t, "going on behind 28 tokens");
        }
        ask(&c, "What is 3 + 5?");
        leave(&c);
    }
    snprintf(line, sizeof line,
             "cd %s; for q in 4 3; do $OLDPWD/" TEST_BUILD "/ds4 -m %s --session single --system '' --temp 0 -n 200 -p "
             "\"What is $q + 5?\" 2>/dev/null; done; cmp chat0 chat1 && cmp chat0 single && echo same",
             home, model);
    shell_expect(line, 0, "same");
}

/* A chat in which nothing is said leaves no file, nor one that was begun anew; one that was loaded leaves its own. */
static void session_of_silence(void **state)
{
    struct chat c;
    char path[TEMP_PATH + 16], line[2 * TEMP_PATH + 64];
    snprintf(path, sizeof path, "%s/silence", home);
    start(&c, OPTIONS("--session", path));
    leave(&c);
    assert_int_equal(access(path, F_OK), -1);
    start(&c, OPTIONS("--system", "", "--session", path));
    ask(&c, "What is 4 + 5?");
    command(&c, "/save ~/other", "28 tokens saved");
    command(&c, "/reset", "a new conversation");
    leave(&c);
    assert_int_equal(access(path, F_OK), -1);
    start(&c, OPTIONS("--session", path));
    command(&c, "/load ~/other", "going on behind 28 tokens of a context of 32768");
    leave(&c);
    snprintf(line, sizeof line, "cmp %s %s/other && echo same", path, home);
    shell_expect(line, 0, "same");
}

/* ---------------------------------------------------------------- interrupts */

/* What there is of an answer stays and is closed with the next turn; what was not answered at all is not kept. */
static void interrupted_answers(void **state)
{
    struct chat c;
    char words[1200] = "many words";
    for (int i = 0; i < 40; i++) strcat(words, " and a fox and a mole");
    start(&c, OPTIONS("--system", "", "--nothink", SLOWLY));
    terminal_type(&c.t, "Tell me a story about a fox who lost a lamp.\r");
    terminal_await(&c.t, "There once");
    type_interrupt(&c);
    await_answer(&c);
    terminal_expect(&c.t, "interrupted; what there is of the answer is kept");
    terminal_expect_not(&c.t, "easy.");
    EXPECT_TOKENS_CUT(&c, BOS, USER, "Tell me a story about a fox who lost a lamp.", ASSIST, ENDTHINK, STORY);
    /* prefill */
    terminal_send_paste(&c.t, words);
    terminal_type(&c.t, "\r");
    terminal_await(&c.t, "prefill [");
    terminal_await(&c.t, " %, ");
    type_interrupt(&c);
    terminal_await(&c.t, "interrupted; as if it had not been said");
    terminal_await_row(&c.t, "ds4>");
    terminal_expect_not(&c.t, "prefill [");
    EXPECT_TOKENS_CUT(&c, BOS, USER, "Tell me a story about a fox who lost a lamp.", ASSIST, ENDTHINK, STORY);
    leave(&c);
}

/* In thinking, and in the load of a model: there the program ends as by any SIGINT. */
static void interrupted_thinking(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", "", SLOWLY));
    terminal_type(&c.t, "What can you do?\r");
    terminal_await(&c.t, "The user");
    type_interrupt(&c);
    await_answer(&c);
    terminal_expect(&c.t, "interrupted; what there is of the answer is kept");
    terminal_expect_not(&c.t, "I can tell");
    ask(&c, "/nothink\rWhat is 4 + 5?");
    terminal_type(&c.t, "/exit\r");
    expect_exit(&c, 0);
}

static void interrupted_load(void **state)
{
    for (int tries = 0; tries < 50; tries++) {
        struct chat c;
        start_with(&c, 50, 200, NULL, OPTIONS("-v"));
        terminal_await(&c.t, "ds4: ");
        kill(c.t.pid, SIGSTOP);
        terminal_await_stop(&c.t);
        const bool loaded = strstr(terminal_text(&c.t), "Type a question") != NULL;
        type_interrupt(&c);
        kill(c.t.pid, SIGCONT);
        if (!loaded) {
            expect_death(&c, SIGINT);
            return;
        }
        leave(&c);
    }
    fail_msg("the load was always over too early");
}

/* Ended by another signal: while a line is typed, in thinking, in the answer. */
static void killed(void **state)
{
    static const int numbers[] = {SIGTERM, SIGHUP, SIGQUIT};
    struct chat c;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        start(&c, OPTIONS("--system", ""));
        terminal_type(&c.t, "half a line");
        terminal_await_row(&c.t, "ds4> half a line");
        kill(c.t.pid, numbers[i]);
        expect_death(&c, numbers[i]);
    }
    start(&c, OPTIONS("--system", "", SLOWLY));
    terminal_type(&c.t, "What can you do?\r");
    terminal_await(&c.t, "The user");
    kill(c.t.pid, SIGTERM);
    expect_death(&c, SIGTERM);
}

/* Ctrl-Z gives the terminal back; afterwards line and answer go on, thinking as dim as before. */
static void stopped(void **state)
{
    struct chat c;
    start(&c, OPTIONS("--system", "", SLOWLY));
    terminal_type(&c.t, "What can you");
    terminal_await_row(&c.t, "ds4> What can you");
    terminal_type(&c.t, "\032");
    terminal_await_stop(&c.t);
    terminal_expect_restored(&c.t);
    kill(c.t.pid, SIGCONT);
    terminal_await_pastes(&c.t);
    terminal_type(&c.t, " do?");
    terminal_await_row(&c.t, "ds4> What can you do?");
    terminal_type(&c.t, "\r");
    terminal_await(&c.t, "The user");
    terminal_type(&c.t, "\032");
    terminal_await_stop(&c.t);
    terminal_expect_restored(&c.t);
    kill(c.t.pid, SIGCONT);
    terminal_await(&c.t, "list my skills.");
    assert_string_equal(terminal_style(&c.t, "skills"), "90");
    type_interrupt(&c);
    await_answer(&c);
    leave(&c);
}

/* A single answer that is not finished ends as by SIGINT, which is 130 in a shell; it is saved as far as it went. */
static void interrupted_single_answer(void **state)
{
    struct chat c;
    char path[TEMP_PATH + 16];
    size_t n;
    snprintf(path, sizeof path, "%s/single", home);
    start_with(&c, 50, 100, NULL,
               OPTIONS(SLOWLY, "--system", "", "--nothink", "--session", path, "-p",
                       "Tell me a story about a fox who lost a lamp."));
    terminal_await(&c.t, "There once");
    type_interrupt(&c);
    terminal_await(&c.t, "ds4: interrupted");
    expect_death(&c, SIGINT);
    mem_free(tokens_of("single", &n));
    assert_in_range(n, 17, 140);
}

/* What `make demo` ends with: the chat adds rightly, as it invites to. Without thinking the model says 90 here. */
static void demo(void **state)
{
    const char *const argv[] = {"tools/demo.sh", TEST_BUILD "/ds4", model, NULL}, *const changes[] = {home_is, NULL};
    struct chat c = {0};
    terminal_start(&c.t, 50, 100, argv, changes);
    terminal_await(&c.t, "Your turn");
    terminal_await_row(&c.t, "ds4>");
    ask(&c, "What is 64 + 29?");
    terminal_expect(&c.t, "64 + 29 = 93");
    leave(&c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demo),
        cmocka_unit_test(transcript),
        cmocka_unit_test(files_are_said),
        cmocka_unit_test(thinking_and_answer),
        cmocka_unit_test(no_colours),
        cmocka_unit_test(colours_change_no_text),
        cmocka_unit_test(editing),
        cmocka_unit_test(pastes),
        cmocka_unit_test(windows_change),
        cmocka_unit_test(narrow_windows),
        cmocka_unit_test(typed_ahead),
        cmocka_unit_test(history_of_lines),
        cmocka_unit_test(commands),
        cmocka_unit_test(context_fills),
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(session_of_a_chat),
        cmocka_unit_test(session_of_silence),
        cmocka_unit_test(interrupted_answers),
        cmocka_unit_test(interrupted_thinking),
        cmocka_unit_test(interrupted_load),
        cmocka_unit_test(killed),
        cmocka_unit_test(stopped),
        cmocka_unit_test(interrupted_single_answer),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, group_set_up, NULL);
}
