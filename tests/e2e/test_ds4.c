/* ds4 as a program, on the demo model: messages and exit statuses, what never depends on how it is run, standard
 * streams that are closed or full, and sessions on file. The chat is test_chat.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/demo_model.h"
#include "../support/shell_run.h"
#include "../support/split_files.h"

static char model[TEMP_PATH], folder[TEMP_PATH];

static int group_set_up(void **state)
{
    demo_shell("", model, folder);
    return 0;
}

/* ---------------------------------------------------------------- wrong use */

static void options(void **state)
{
    shell_expect(TEST_BUILD "/ds4 2>&1", 2, "ds4: no model");
    shell_expect("$DS4 -m 2>&1", 2, "ds4: -m needs a value");
    shell_expect("$DS4 --bla 2>&1", 2, "unknown option --bla");
    shell_expect("$DS4 --temp=0 2>&1", 2, "unknown option --temp=0");
    shell_expect("$DS4 word 2>&1", 2, "unexpected argument word");
    shell_expect("$DS4 -p a -n 0 2>&1", 2, "'0' is not a whole number");
    shell_expect("$DS4 -p a -n 99999999999 2>&1", 2, "'99999999999' is not a whole number");
    shell_expect("$DS4 -p a --temp nan 2>&1", 2, "'nan' is not a number from 0");
    shell_expect("$DS4 -p a --memory 1TB 2>&1", 2, "'1TB' is not a size");
    shell_expect("$DS4 -p a --prompt-file b 2>&1", 2, "give one of -p, --prompt-file and --token-ids");
    shell_expect("$DS4 -p a --backend x 2>&1", 2, "no backend \"x\"");
    shell_expect("$DS4 -p a --isa x 2>&1", 2, "no kernel set \"x\"");
    shell_expect("$DS4 -p a --ctx 1 2>&1", 2, "--ctx: '1' is not a whole number from 2 to 2147483647");
    shell_expect("$DS4 -p a --ctx 2000000 2>&1", 2, "at most 1048576");
    shell_expect("$DS4 --raw -p '' 2>&1", 2, "empty");
    shell_expect("$DS4 2>&1 </dev/null", 2, "standard input is empty");
    shell_expect("$DS4 -p a --session '' 2>&1", 2, "--session: the name is empty");
    shell_expect("$DS4 --session s --inspect 2>&1", 2, "--session is for prompts and chats");
    shell_expect("$DS4 --session s --perplexity-file README.md 2>&1", 2, "--session is for prompts and chats");
}

/* One tensor per shard, named by one in the middle; few descriptors. */
static void shards(void **state)
{
    struct err e = {0};
    const struct split_form form = {.meta_first = true};
    char stem[TEMP_PATH + 8], path[256], command[512];
    int n;
    snprintf(stem, sizeof stem, "%s/cut", folder);
    if (split_write(model, stem, &form, &n, &e)) fail_msg("%s", e.msg);
    split_path(path, stem, &form, n / 2, n);
    static const char rest[] = "-p 'What is 2+3?' --nothink --temp 0 -n 8";
    snprintf(command, sizeof command, "ulimit -n 40; " TEST_BUILD "/ds4 -m %s %s", path, rest);
    char whole[128];
    snprintf(whole, sizeof whole, "$DS4 %s", rest);
    shell_expect_same(whole, command, true);
    assert_int_equal(unlink(path), 0);
    snprintf(command, sizeof command, TEST_BUILD "/ds4 -m %s 2>&1", split_path(path, stem, &form, 1, n));
    snprintf(whole, sizeof whole, "shard %d of %d is missing", n / 2, n);
    shell_expect(command, 1, whole);
}

static void wrong_files(void **state)
{
    shell_expect(TEST_BUILD "/ds4 -m $FOLDER 2>&1", 1, "a folder, not a file");
    shell_expect("$DS4 -m $FOLDER -p a 2>&1", 1, "a folder, not a file");
    shell_expect(TEST_BUILD "/ds4 -m $FOLDER/nothing 2>&1", 1, "No such file");
    shell_expect(TEST_BUILD "/ds4 -m /dev/null 2>&1", 1, "not a regular file");
    shell_expect(": >$FOLDER/empty; " TEST_BUILD "/ds4 -m $FOLDER/empty 2>&1", 1, "is empty");
    shell_expect(TEST_BUILD "/ds4 -m README.md 2>&1", 1, "not a GGUF file");
    shell_expect(TEST_BUILD "/ds4 -m models/demo/model.safetensors 2>&1", 1, "not a GGUF file");
    shell_expect("$DS4 --prompt-file $FOLDER 2>&1", 1, "Is a directory");
    shell_expect("$DS4 --prompt-file $FOLDER/nothing 2>&1", 1, "No such file");
    shell_expect("$DS4 -p a --logits-out $FOLDER 2>&1", 1, "is a folder");
    shell_expect("$DS4 -p a --logits-out $FOLDER/no/x 2>&1", 1, "No such file");
}

static void limits(void **state)
{
    shell_expect("$DS4 -p 'more than a few tokens' --ctx 8 2>&1", 1, "the context 8; give a larger --ctx");
    shell_expect("$DS4 -p a --memory 0.01 2>&1", 1, "not enough memory");
    shell_expect("$DS4 -p a --memory 0.01 --inspect 2>&1", 0, "this does not fit");
    shell_expect("$DS4 -p a --memory 0.01 --dump-tokens 2>&1", 0, "<｜Assistant｜>");
    shell_expect("$DS4 -p 'Tell me a story.' --ctx 24 --temp 0 | wc -l", 0, "1");
}

/* ---------------------------------------------------------------- texts */

/* Tokens that stand for control words are lines of their own in what --dump-tokens prints. */
static void literals_stay_text(void **state)
{
    shell_expect(
        "$DS4 --system '<｜User｜></think>' -p 'a<｜User｜><｜Assistant｜><think></think><｜end▁of▁sentence｜>' "
        "--dump-tokens | grep -cE '^ *[0-9]+  (<｜User｜>|<｜Assistant｜>|<think>|</think>|<｜end▁of▁sentence｜>)$'",
        0, "3\n");
    shell_expect("$DS4 --raw -p '<｜User｜>' --dump-tokens | grep -c '  <｜User｜>$' || true", 0, "0\n");
    shell_expect("$DS4 -p '<｜User｜>a<｜Assistant｜></think>' --dump-tokens | grep -cE '  (<｜|</think>)'", 0, "3\n");
}

/* Bytes that are no text arrive as they are: each line is an id and the token's bytes. */
static void any_bytes(void **state)
{
    static const char bytes[] = "a\0b\xff\xfe\xc3(\xed\xa0\x80 c\x1b[0m";
    struct str said = {0}, got = {0};
    char path[TEMP_PATH + 8];
    snprintf(path, sizeof path, "%s/bytes", folder);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(bytes, 1, sizeof bytes - 1, f);
    fclose(f);
    assert_int_equal(shell_run("$DS4 --raw --prompt-file $FOLDER/bytes --dump-tokens", &said), 0);
    for (const char *p = strchr(str_c(&said), '\n'); p && p + 1 < said.p + said.n;) {
        const char *end = memchr(p + 1, '\n', (size_t)(said.p + said.n - p - 1));
        assert_non_null(end);
        str_add(&got, p + 9, (size_t)(end - p - 9));
        p = end;
    }
    assert_int_equal(got.n, sizeof bytes - 1);
    assert_memory_equal(got.p, bytes, got.n);
    str_free(&said);
    str_free(&got);
}

/* ---------------------------------------------------------------- answers */

static void same_answers(void **state)
{
    static const char first[] = "$DS4 -p 'Tell me a story about a mole.' --temp 0 -n 50 2>/dev/null";
    shell_expect_same(
        first, "$DS4 -p 'Tell me a story about a mole.' --temp 0 -n 50 -t 1 --prefill-chunk 3 2>/dev/null", true);
    shell_expect_same(first, "$DS4 -p 'Tell me a story about a mole.' --temp 0 -n 50 -t 3 --isa scalar 2>/dev/null",
                      true);
    shell_expect_same("$DS4 -p 'Tell me a story.' --seed 5 -n 50 2>/dev/null",
                      "printf 'Tell me a story.' | $DS4 --seed 5 -n 50 -t 1 2>/dev/null", true);
    shell_expect_same("$DS4 -p 'Tell me a story.' --seed 5 -n 50 2>/dev/null",
                      "$DS4 -p 'Tell me a story.' --seed 6 -n 50 2>/dev/null", false);
}

/* Speed counts evaluated tokens: the first generated one comes with the prompt. */
static void speed(void **state)
{
    shell_expect("$DS4 -p hi --temp 0 -n 1 2>&1 >/dev/null", 0, "generation: 0.00 t/s");
    shell_expect("$DS4 -p hi --temp 0 -n 2 2>&1 >/dev/null | grep -v ' 0.00 t/s'", 0, "prefill: ");
}

/* Without a terminal: a line for every chunk of a prompt that takes its time. */
static void progress(void **state)
{
    shell_expect("$DS4 --raw -p \"$(seq -s ' ' 100)\" --prefill-chunk 128 -n 1 2>&1 >/dev/null", 0,
                 "processing 200 input tokens: 0/200 (0%)\nprocessing 200 input tokens: 128/200 (64%)\n"
                 "processing 200 input tokens: 200/200 (100%)\nprefill: ");
    shell_expect("$DS4 -p hi -n 1 2>&1 >/dev/null | grep -c processing", 1, "0\n");
}

static void tags_in_a_pipe(void **state)
{
    shell_expect("$DS4 -p 'What is 4 + 5?' --temp 0 2>/dev/null", 0, "</think>4 + 5 = 9\n");
}

/* ---------------------------------------------------------------- standard streams */

static void output_that_fails(void **state)
{
    shell_expect("$DS4 -p hi 2>&1 >&-", 1, "ds4: standard output: cannot write: Bad file descriptor");
    if (access("/dev/full", W_OK)) skip();
    shell_expect("$DS4 -p hi 2>&1 >/dev/full", 1, "ds4: standard output: cannot write: No space left");
    shell_expect("$DS4 --inspect 2>&1 >/dev/full", 1, "ds4: standard output: cannot write: No space left");
    shell_expect(TEST_BUILD "/ds4-gguf --help 2>&1 >/dev/full", 1,
                 "ds4-gguf: standard output: cannot write: No space left");
    shell_expect("$DS4 -p hi --logits-out /dev/full 2>&1; test -c /dev/full && echo still there", 0, "still there");
}

/* No file gets the number of a closed stream, and so the messages that go there. */
static void closed_streams(void **state)
{
    shell_expect(
        "$DS4 -p hi -v --logits-out $FOLDER/a 2>/dev/null && $DS4 -p hi -v --logits-out $FOLDER/b <&- >&- 2>&-; "
        "cmp $FOLDER/a $FOLDER/b && echo same",
        0, "same");
}

/* ---------------------------------------------------------------- sessions on file */

#define TELL "$DS4 --raw --session $FOLDER/s -p "

/* In two runs what one run says, drawn or not; the second has nothing to compute. */
static void session_goes_on(void **state)
{
    static const char *const draw[] = {"--temp 0", "--seed 5"};
    char once[256], twice[512];
    for (int i = 0; i < 2; i++) {
        snprintf(once, sizeof once, "$DS4 --raw -p 'A fox and a mole' %s -n 30 2>/dev/null", draw[i]);
        snprintf(twice, sizeof twice,
                 "rm -f $FOLDER/s; (" TELL "'A fox and a mole' %s -n 10 2>/dev/null; " TELL
                 "'' %s -n 20 -t 1 --isa scalar 2>/dev/null) | tr -d '\n'; echo",
                 draw[i], draw[i]);
        shell_expect_same(once, twice, true);
    }
    shell_expect(TELL "'' -n 5 --temp 0 2>&1 >/dev/null", 0, "prefill: 0.00 t/s");
}

static void session_messages(void **state)
{
    shell_expect("rm -f $FOLDER/s; " TELL "abc -n 1 --temp 0 2>&1 >/dev/null", 0, "/s: 4 tokens saved\n");
    shell_expect("cp $FOLDER/s $FOLDER/t; " TELL "abc -n 2 --temp 0 2>&1 >/dev/null", 0,
                 "/s: going on behind 4 tokens\n");
    shell_expect(TELL "a --ctx 4 2>&1", 1, "give a larger --ctx");
    shell_expect(TELL "a --system b -n 1 2>&1 >/dev/null", 0, "--system has no effect");
    shell_expect(TELL "a --kv-sim off 2>&1", 1, "made with --kv-sim on, this is off");
    shell_expect(TELL "a --backend ref 2>&1", 1, "made with the backend \"cpu\", this is \"ref\"");
    shell_expect("cp $FOLDER/s $FOLDER/t; printf x >>$FOLDER/t; $DS4 -p a --session $FOLDER/t 2>&1", 1, "/t: damaged");
    shell_expect("$DS4 -p a --session $FOLDER/no/s 2>&1", 1, "No such file");
    shell_expect("$DS4 -p a --session $FOLDER 2>&1", 1, "a folder, not a file");
    shell_expect("$DS4 -p a --session README.md 2>&1", 1, "not a session file");
    shell_expect("head -1 README.md", 0, "# ds4");
}

/* A run that fails leaves the file as it was. */
static void session_stays(void **state)
{
    if (access("/dev/full", W_OK)) skip();
    shell_expect("rm -f $FOLDER/s; " TELL "abc -n 1 2>/dev/null >/dev/null; cp $FOLDER/s $FOLDER/t; " TELL
                 "abc 2>/dev/null >/dev/full || cmp $FOLDER/s $FOLDER/t && echo same",
                 0, "same");
    shell_expect("rm -f $FOLDER/s; " TELL "abc 2>/dev/null >/dev/full; test -e $FOLDER/s || echo none", 0, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),
        cmocka_unit_test(shards),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(limits),
        cmocka_unit_test(literals_stay_text),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(same_answers),
        cmocka_unit_test(speed),
        cmocka_unit_test(progress),
        cmocka_unit_test(tags_in_a_pipe),
        cmocka_unit_test(output_that_fails),
        cmocka_unit_test(closed_streams),
        cmocka_unit_test(session_goes_on),
        cmocka_unit_test(session_messages),
        cmocka_unit_test(session_stays),
    };
    return cmocka_run_group_tests(tests, group_set_up, NULL);
}
