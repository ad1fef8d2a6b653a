/* A session on file and SIGKILL: whenever a run is killed, the file is the one before the run or the one after it, and
 * what goes on from it has the bits of a process that was never interrupted. What is no such file is refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../support/demo_model.h"
#include "../support/shell_run.h"
#include "../support/synth_model.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#define SOME_TEXT                                                                                                      \
    "Once there was a fox who lived with a mole. One day the fox found 12 + 7 apples; \"look,\" said the mole. "
/* The run that is killed: a prompt of some hundred tokens behind the stored ones, and an answer. */
#define SECOND_RUN                                                                                                     \
    "$DS4 --raw --prompt-file $FOLDER/text --temp 0 -n 10 --prefill-chunk 64 -t 1 --session $FOLDER/home/s"
#define FIRST_RUN "$DS4 --raw -p 'A fox and a mole' --temp 0 -n 20 -t 2 --session $FOLDER/home/s"

static char model[TEMP_PATH], folder[TEMP_PATH];

struct file_bytes {
    char *p;
    size_t n;
};
static struct file_bytes before, after; /* the file at the start of the second run and at its end */

static const char *in_folder(const char *name)
{
    static char path[TEMP_PATH + 40];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static struct file_bytes read_bytes(const char *name)
{
    struct file_bytes b;
    struct err e = {0};
    if (file_read(in_folder(name), 1 << 28, &b.p, &b.n, &e)) fail_msg("%s", e.msg);
    return b;
}

static void write_bytes(const char *name, const char *p, size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static bool same_bytes(struct file_bytes a, struct file_bytes b)
{
    return a.n == b.n && !memcmp(a.p, b.p, a.n);
}

static int group_set_up(void **state)
{
    demo_shell("-c 4096", model, folder);
    shell_expect("mkdir $FOLDER/home; for i in 1 2 3 4 5 6 7 8 9; do printf '%s' '" SOME_TEXT
                 "'; done >$FOLDER/text; echo",
                 0, "");
    shell_expect(FIRST_RUN " 2>&1", 0, "tokens saved");
    before = read_bytes("home/s");
    shell_expect(SECOND_RUN " 2>&1", 0, "tokens saved");
    after = read_bytes("home/s");
    assert_true(after.n > before.n + 100000);
    return 0;
}

static int group_tear_down(void **state)
{
    mem_free(before.p);
    mem_free(after.p);
    return 0;
}

/* ---------------------------------------------------------------- kills */

static int n_old, n_new;

/* Lets the second run get as far as `when` says (NULL: at once) and some more, and kills it. */
static void kill_one(const char *when, uint64_t more_ns)
{
    struct shell_child c;
    struct str left = {0};
    write_bytes("home/s", before.p, before.n);
    shell_start(&c, SECOND_RUN);
    if (when && !shell_await(&c, when)) fail_msg("ended without \"%s\"", when);
    nanosleep(&(struct timespec){.tv_nsec = (long)more_ns}, NULL);
    kill(c.pid, SIGKILL);
    const int status = shell_end(&c);
    if (status != 0 && status != -SIGKILL) fail_msg("%d: %s", status, str_c(&c.said));
    const struct file_bytes now = read_bytes("home/s");
    const bool old = same_bytes(now, before), new = same_bytes(now, after);
    if (!old && !new) fail_msg("killed behind \"%s\": a file of %zu bytes that is neither", when ? when : "", now.n);
    n_old += old;
    n_new += new;
    mem_free(now.p);
    /* The new file has a name beside the old one while it takes its place, and only then. */
    shell_run("ls -A $FOLDER/home | grep -vx s; rm -f $FOLDER/home/s.tmp-*", &left);
    if (left.n && (!old || strncmp(str_c(&left), "s.tmp-", 6))) fail_msg("left behind: %s", str_c(&left));
    str_free(&left);
    str_free(&c.said);
}

/* Every phase, and the save itself, which begins when the speed has been told: its length is measured, and cut into
 * steps. Where the machine is slow just then a kill comes earlier in the run than planned; it must be right all the
 * same. */
static void killed_at_any_moment(void **state)
{
    enum { STEPS = 12 };
    static const char *const phases[] = {NULL, "processing ", "64/", "%)\n", "(100%)", "generation: "};
    struct shell_child c;
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) kill_one(phases[i], 0);
    write_bytes("home/s", before.p, before.n);
    shell_start(&c, SECOND_RUN);
    assert_true(shell_await(&c, "generation: "));
    const uint64_t t0 = clock_ns();
    assert_true(shell_await(&c, "saved"));
    uint64_t save_ns = clock_ns() - t0;
    assert_int_equal(shell_end(&c), 0);
    str_free(&c.said);
    if (save_ns > 100000000) save_ns = 100000000;
    for (int i = 0; i < STEPS; i++) kill_one("generation: ", save_ns * (uint64_t)i / (STEPS - 2));
    assert_true(n_old > 3);
    print_message("old %d, new %d; the file took %.1f ms\n", n_old, n_new, 1e-6 * (double)save_ns);
}

/* ---------------------------------------------------------------- going on */

/* The last row of a file of logits. */
static struct file_bytes last_row(const char *name)
{
    enum { ROW = 2048 * sizeof(float) };
    struct file_bytes b = read_bytes(name);
    assert_true(b.n >= ROW && b.n % ROW == 0);
    memmove(b.p, b.p + b.n - ROW, ROW);
    b.n = ROW;
    return b;
}

/* The stored logits, and those of the same tokens in one process that knows no session. */
static void same_logits(const struct file_bytes *file)
{
    struct str ids = {0}, command = {0};
    write_bytes("home/s", file->p, file->n);
    assert_int_equal(
        shell_run("$DS4 --raw -p '' --session $FOLDER/home/s --dump-tokens 2>/dev/null | head -1 | tr -d '[] \n'",
                  &ids),
        0);
    shell_expect("$DS4 --raw -p '' --session $FOLDER/home/s --logits-out $FOLDER/stored 2>&1", 0, "going on behind");
    str_printf(&command, "$DS4 --token-ids %s --logits-out $FOLDER/fresh -t 1 --prefill-chunk 7 2>&1", str_c(&ids));
    shell_expect(str_c(&command), 0, "");
    const struct file_bytes a = last_row("stored"), b = last_row("fresh");
    assert_true(same_bytes(a, b));
    /* And with one token more. */
    shell_expect("$DS4 --token-ids 17 --session $FOLDER/home/s --logits-out $FOLDER/stored 2>&1", 0, "");
    str_clear(&command);
    str_printf(&command, "$DS4 --token-ids %s,17 --logits-out $FOLDER/fresh 2>&1", str_c(&ids));
    shell_expect(str_c(&command), 0, "");
    const struct file_bytes c = last_row("stored"), d = last_row("fresh");
    assert_true(same_bytes(c, d));
    assert_false(same_bytes(a, c));
    mem_free(a.p), mem_free(b.p), mem_free(c.p), mem_free(d.p);
    /* Looking has not changed it. */
    const struct file_bytes now = read_bytes("home/s");
    assert_true(same_bytes(now, *file));
    mem_free(now.p);
    str_free(&ids);
    str_free(&command);
}

static void goes_on_as_uninterrupted(void **state)
{
    same_logits(&before);
    same_logits(&after);
    shell_expect("$DS4 --raw -p '' --session $FOLDER/home/s --decode-consistency 4 2>&1", 0, "largest difference 0 ");
}

/* A run that was killed can be made again: in the end the file is that of one run. */
static void a_second_try(void **state)
{
    kill_one("%)\n", 0);
    write_bytes("home/s", before.p, before.n);
    shell_expect(SECOND_RUN " 2>&1", 0, "tokens saved");
    const struct file_bytes now = read_bytes("home/s");
    assert_true(same_bytes(now, after));
    mem_free(now.p);
}

/* ---------------------------------------------------------------- refusals */

/* Refused by name with status 1 and one sentence, and left alone. */
static void refused(const char *program, const char *part)
{
    struct str said = {0}, command = {0};
    const struct file_bytes was = read_bytes("home/s");
    str_printf(&command, "%s --raw -p a -n 1 --session $FOLDER/home/s 2>&1", program);
    const int status = shell_run(str_c(&command), &said);
    if (status != 1 || !strstr(str_c(&said), "/home/s: ") || !strstr(str_c(&said), part) ||
        strchr(str_c(&said), '\n') != said.p + said.n - 1)
        fail_msg("%d, \"%s\" in: %s", status, part, str_c(&said));
    const struct file_bytes now = read_bytes("home/s");
    assert_true(same_bytes(now, was));
    mem_free(was.p);
    mem_free(now.p);
    str_free(&said);
    str_free(&command);
}

/* Where the parts begin (docs/sessions.md). */
static void damaged_files(void **state)
{
    int32_t n_tokens, n_vocab;
    uint64_t rows_bytes;
    memcpy(&n_tokens, after.p + 12, sizeof n_tokens);
    memcpy(&n_vocab, after.p + 16, sizeof n_vocab);
    memcpy(&rows_bytes, after.p + 40, sizeof rows_bytes);
    const size_t tokens = 112, logits = tokens + 4 * (size_t)n_tokens, rows = logits + 4 * (size_t)n_vocab,
                 anchor = rows + (size_t)rows_bytes, sum = after.n - 8;
    assert_true(rows < anchor && anchor < sum);
    const struct {
        size_t at;
        const char *part;
    } flips[] = {{0, "not a session file of ds4"},
                 {8, "version"},
                 {12, "the checksum of its header"},
                 {30, "the checksum of its header"},
                 {111, "the checksum of its header"},
                 {tokens, "the checksum of its contents"},
                 {logits, "the checksum of its contents"},
                 {rows + 5, "the checksum of its contents"},
                 {anchor - 1, "the checksum of its contents"},
                 {anchor, "the checksum of its contents"},
                 {sum - 1, "the checksum of its contents"},
                 {sum, "the checksum of its contents"},
                 {sum + 7, "the checksum of its contents"}};
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        after.p[flips[i].at] ^= 0x20;
        write_bytes("home/s", after.p, after.n);
        after.p[flips[i].at] ^= 0x20;
        refused("$DS4", flips[i].part);
    }
    const size_t lengths[] = {0, 1, 8, 11, 12, 111, 112, logits, rows, anchor, sum, after.n - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        write_bytes("home/s", after.p, lengths[i]);
        refused("$DS4", lengths[i] == 0 ? "the file is empty" : lengths[i] < 12 ? "not a session file" : "cut off");
    }
}

static void another_model(void **state)
{
    struct err e = {0};
    const struct synth_shape shape = synth_tiny();
    if (synth_deepseek4(in_folder("tiny"), &shape, &e)) fail_msg("%s", e.msg);
    write_bytes("home/s", after.p, after.n);
    refused(TEST_BUILD "/ds4 -m $FOLDER/tiny -c 4096", "made with another model file");
    refused("$DS4 --kv-sim off", "made with --kv-sim on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_any_moment), cmocka_unit_test(goes_on_as_uninterrupted),
        cmocka_unit_test(a_second_try),         cmocka_unit_test(damaged_files),
        cmocka_unit_test(another_model),
    };
    return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
