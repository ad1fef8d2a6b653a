/* Programs on broken files: every one is refused with exit status 1 and one line that names the file, the field, what
 * it is and what is allowed; in less than a second of processor time, and without a single request for more memory than
 * the file is long (or 1 MiB), or more than 8 times as much in all. Files that only look odd run as the good one does,
 * bit for bit.
 *
 * "test_hostile write FOLDER" writes all files into a folder instead, for other programs to be tried on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../support/hostile_cases.h"
#include "../support/split_files.h"
#include "../support/temp_files.h"
#include "../support/watched_run.h"
#include "base/file.h"
#include "base/mem.h"
#include "gguf/gguf.h"

enum { N_IDS = 16, LONGEST_S = 60, FEWEST = 8, MOST_TIMES = 8 };
#define NUM(key, t, x)                                                                                                 \
    {                                                                                                                  \
        KEY_NUM, key, .type = GGUF_##t, .v = (x)                                                                       \
    }
#define LEAST_LIMIT (UINT64_C(1) << 20)

static char folder[TEMP_PATH], base[HOSTILE_BASES][TEMP_PATH + 16], file[TEMP_PATH + 16], out[TEMP_PATH + 16];
static char ids[N_IDS * 4 + 1];
static struct watched ran;
static int n_wrong;
static bool said; /* what is wrong with this run has begun to be told */

/* ---- what is wrong with a run; all of it is told before the test fails, with the message once */

__attribute__((format(printf, 3, 4))) static void wrong(const struct hostile_case *c, const char *program,
                                                        const char *fmt, ...)
{
    char text[2000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!said) print_error("%s %s, %s said: %.1000s\n", c->kind, c->name, program, str_c(&ran.errors));
    print_error("    %s\n", text);
    said = true;
    n_wrong++;
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

/* The message without the file's own name, in which words could be found as well. */
static const char *without_path(const char *message)
{
    static char text[4096];
    const char *at = strstr(message, file);
    snprintf(text, sizeof text, "%.*s%s", (int)(at ? at - message : 0), message, at ? at + strlen(file) : message);
    return text;
}

static void check_words(const struct hostile_case *c, const char *program)
{
    const char *message = without_path(str_c(&ran.errors));
    for (int i = 0; i < 3 && c->says[i]; i++)
        if (!strstr(message, c->says[i])) wrong(c, program, "no \"%s\"", c->says[i]);
}

/* size: of the file, or of all files of a set. */
static void check_refusal(const struct hostile_case *c, const char *program, uint64_t size)
{
    const char *message = str_c(&ran.errors), *end = strchr(message, '\n');
    const uint64_t limit = size > LEAST_LIMIT ? size : LEAST_LIMIT;
    if (ran.status != 1) wrong(c, program, "exit status %d", ran.status);
    if (!end || end[1]) wrong(c, program, "not one line");
    if (!strstr(message, file)) wrong(c, program, "does not name the file");
    check_words(c, program);
    if (!watched_measures()) return;
    if (ran.largest > limit)
        wrong(c, program, "asked for %llu bytes at once, the file has %llu", (unsigned long long)ran.largest,
              (unsigned long long)size);
    if (ran.peak > MOST_TIMES * limit) wrong(c, program, "had %llu bytes of heap", (unsigned long long)ran.peak);
    if (ran.cpu > 1) wrong(c, program, "took %.2f s", ran.cpu);
}

/* ---- runs */

static void run_ds4(const char *path)
{
    const char *const argv[] = {TEST_BUILD "/ds4", "-m", path, "--token-ids", ids, "--logits-out", out, "-c", "64",
                                "--prefill-chunk", "16", "-t", "1",           NULL};
    said = false;
    watched_run(argv, LONGEST_S, &ran);
}

static void run_ds4_inspect(void)
{
    const char *const argv[] = {TEST_BUILD "/ds4", "-m", file, "--inspect", NULL};
    said = false;
    watched_run(argv, LONGEST_S, &ran);
}

static void run_gguf_inspect(void)
{
    const char *const argv[] = {TEST_BUILD "/ds4-gguf", "inspect", file, NULL};
    said = false;
    watched_run(argv, LONGEST_S, &ran);
}

/* first: the base is the first one; with others only what depends on it is run. */
static void run_broken(const struct hostile_case *c, bool first)
{
    run_ds4(file);
    check_refusal(c, "ds4", size_of(file));
    if (first && c->flags & HOSTILE_HEADER) {
        run_gguf_inspect();
        check_refusal(c, "ds4-gguf inspect", size_of(file));
    } else if (first) {
        run_ds4_inspect();
        check_refusal(c, "ds4 --inspect", size_of(file));
    }
}

static void read_logits(char **data, size_t *n)
{
    struct err e = {0};
    if (file_read(out, 1 << 24, data, n, &e)) fail_msg("%s", e.msg);
}

static void run_good(const struct hostile_case *c, bool first, const char *want, size_t n_want)
{
    char *got;
    size_t n;
    unlink(out);
    run_ds4(file);
    if (ran.status != 0) {
        wrong(c, "ds4", "exit status %d", ran.status);
        return;
    }
    check_words(c, "ds4");
    read_logits(&got, &n);
    const bool same = n == n_want && memcmp(got, want, n) == 0;
    if (n != n_want || same == ((c->flags & HOSTILE_WORSE) != 0))
        wrong(c, "ds4", same ? "the same logits" : "other logits");
    mem_free(got);
    if (!first) return;
    run_gguf_inspect();
    if (ran.status != 0) wrong(c, "ds4-gguf inspect", "exit status %d", ran.status);
}

/* Logits of the file as it is. */
static void run_base(enum hostile_base b, char **want, size_t *n)
{
    forge_write(base[b], file, NULL, 0);
    assert_int_equal(size_of(file), size_of(base[b]));
    run_ds4(file);
    assert_int_equal(ran.status, 0);
    read_logits(want, n);
    assert_int_equal(*n, (size_t)N_IDS * 288 * sizeof(float));
}

/* ---- one kind of cases; *state: its name */

static void run_kind(void **state)
{
    const char *kind = *state;
    char *want;
    size_t n_want;
    n_wrong = 0;
    snprintf(file, sizeof file, "%s/m.gguf", folder);
    for (int b = 0; b < HOSTILE_BASES; b++) {
        int n = 0;
        run_base((enum hostile_base)b, &want, &n_want);
        for (int i = 0; i < hostile_n_cases; i++) {
            const struct hostile_case *c = &hostile_cases[i];
            if (strcmp(c->kind, kind) != 0 || !hostile_applies(c, (enum hostile_base)b)) continue;
            forge_write(base[b], file, c->edits, FORGE_MOST);
            if (c->flags & HOSTILE_GOOD)
                run_good(c, b == HOSTILE_MIXED, want, n_want);
            else
                run_broken(c, b == HOSTILE_MIXED);
            n++;
        }
        mem_free(want);
        if (b == HOSTILE_MIXED) assert_true(n >= FEWEST);
    }
    if (n_wrong) fail_msg("%d wrong", n_wrong);
}

/* ---- split sets: one shard of three is changed, another one or none is named */

enum { N_SHARDS = 3 };

static const struct split_case {
    int shard;
    struct hostile_case change;
} split_cases[] = {
    {2, {"split", "count_0", {NUM("split.count", U16, 0)}, {"-00002-of", "2 of 0", "2 of 3"}}},
    {1, {"split", "count_65536", {NUM("split.count", U32, 65536)}, {"-00001-of", "split.count = 65536", "0 to 65535"}}},
    {3,
     {"split",
      "count_2_60",
      {NUM("split.count", U64, UINT64_C(1) << 60)},
      {"-00003-of", "split.count = 1152921504606846976", "0 to 65535"}}},
    {3, {"split", "count_4", {NUM("split.count", U16, 4)}, {"-00003-of", "3 of 4", "3 of 3"}}},
    {2,
     {"split", "count_minus_1", {NUM("split.count", I16, 0xffff)}, {"-00002-of", "split.count\" is -1", "at least 0"}}},
    {1,
     {"split",
      "count_is_text",
      {{KEY_TEXT, "split.count", .text = "3"}},
      {"-00001-of", "split.count\" is string", "an integer"}}},
    {2, {"split", "number_of_another", {NUM("split.no", U16, 2)}, {"-00002-of", "3 of 3", "2 of 3"}}},
    {2, {"split", "number_3", {NUM("split.no", U16, 3)}, {"-00002-of", "4 of 3", "2 of 3"}}},
    {3, {"split", "number_65535", {NUM("split.no", U16, 65535)}, {"-00003-of", "split.no = 65535", "0 to 65534"}}},
    {1,
     {"split",
      "number_is_a_float",
      {{KEY_REAL, "split.no", .type = GGUF_F32}},
      {"-00001-of", "split.no\" is f32", "an integer"}}},
    {1, {"split", "tensors_7", {NUM("split.tensors.count", I32, 7)}, {"-00001-of", "of 7 tensors"}}},
    {1,
     {"split",
      "tensors_minus_1",
      {NUM("split.tensors.count", I32, UINT32_MAX)},
      {"-00001-of", "split.tensors.count\" is -1", "at least 0"}}},
    {2,
     {"split",
      "tensors_2_60",
      {{HEAD, .at = 8, .n = 8, .v = UINT64_C(1) << 60}},
      {"-00002-of", "n_tensors = 1152921504606846976", "at most"}}},
    {3, {"split", "alignment_3", {NUM("general.alignment", U32, 3)}, {"-00003-of", "alignment 3", "power of two"}}},
    {3, {"split", "last_byte", {{CUT, .at = PART_END, .v = UINT64_MAX}}, {"-00003-of", "file has", "incomplete"}}},
    {2, {"split", "empty", {{CUT, .at = PART_HEADER}}, {"-00002-of", "the file is empty"}}},
    {2, {"split", "no_tensors", {{T_DROP, ""}, {NO_DATA}}, {"-00001-of", "shards hold", "tensors"}}},
};
enum { N_SPLIT_CASES = sizeof split_cases / sizeof *split_cases };

static void run_split(void **state)
{
    static const struct split_form form = {.n = N_SHARDS};
    char stem[TEMP_PATH + 16], path[256], spare[TEMP_PATH + 16];
    struct err e = {0};
    int n;
    uint64_t size = 0;
    n_wrong = 0;
    snprintf(stem, sizeof stem, "%s/set", folder);
    snprintf(spare, sizeof spare, "%s/spare", folder);
    snprintf(file, sizeof file, "%s", stem); /* what every message names */
    if (split_write(base[HOSTILE_MIXED], stem, &form, &n, &e)) fail_msg("%s", e.msg);
    for (int i = 1; i <= N_SHARDS; i++) size += size_of(split_path(path, stem, &form, i, N_SHARDS));
    run_ds4(path);
    assert_int_equal(ran.status, 0);
    for (int i = 0; i < N_SPLIT_CASES; i++) {
        const struct split_case *c = &split_cases[i];
        assert_int_equal(rename(split_path(path, stem, &form, c->shard, N_SHARDS), spare), 0);
        forge_write(spare, path, c->change.edits, FORGE_MOST);
        for (int named = 1; named <= N_SHARDS; named += 2) {
            run_ds4(split_path(path, stem, &form, named, N_SHARDS));
            check_refusal(&c->change, "ds4", size);
        }
        assert_int_equal(rename(spare, split_path(path, stem, &form, c->shard, N_SHARDS)), 0);
    }
    if (n_wrong) fail_msg("%d wrong", n_wrong);
}

/* A name that speaks of more shards than there can be, or of many that are not there. */
static void run_names(void **state)
{
    static const struct hostile_case most = {"names", "999999", .says = {"one of 999999 shards", "at most 65535"}};
    static const struct hostile_case many = {
        "names", "65535", .says = {": shards 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 65524 more of 65535 are missing"}};
    char path[TEMP_PATH + 64];
    n_wrong = 0;
    snprintf(file, sizeof file, "%s/n", folder);
    snprintf(path, sizeof path, "%s/n-000001-of-999999.gguf", folder);
    forge_write(base[HOSTILE_MIXED], path, NULL, 0);
    run_ds4(path);
    check_refusal(&most, "ds4", size_of(path));
    snprintf(path, sizeof path, "%s/n-00001-of-65535.gguf", folder);
    forge_write(base[HOSTILE_MIXED], path, NULL, 0);
    run_ds4(path);
    check_refusal(&many, "ds4", size_of(path));
    if (n_wrong) fail_msg("%d wrong", n_wrong);
}

/* Names of what is no file at all. */
static void run_no_files(void **state)
{
    static const struct hostile_case cases[] = {
        {"no file", "pipe", .says = {"not a regular file"}},
        {"no file", "folder", .says = {"a folder, not a file", "give the model's .gguf file"}},
        {"no file", "loop of links", .says = {"cannot open", "symbolic links"}},
        {"no file", "link to nothing", .says = {"is a link to ../../blobs/aa, which is not there"}},
        {"no file", "nothing", .says = {"cannot open", "No such file"}},
    };
    n_wrong = 0;
    for (int i = 0; i < 5; i++) {
        snprintf(file, sizeof file, "%s/no%d", folder, i);
        if (i == 0) assert_int_equal(mkfifo(file, 0600), 0);
        if (i == 1) assert_int_equal(mkdir(file, 0700), 0);
        if (i == 2) assert_int_equal(symlink(file, file), 0);
        if (i == 3) assert_int_equal(symlink("../../blobs/aa", file), 0);
        run_ds4(file);
        check_refusal(&cases[i], "ds4", 0);
        run_gguf_inspect();
        check_refusal(&cases[i], "ds4-gguf inspect", 0);
    }
    if (n_wrong) fail_msg("%d wrong", n_wrong);
}

#define KIND(name)                                                                                                     \
    {                                                                                                                  \
#name, run_kind, NULL, NULL, (void *)(uintptr_t) #name                                                         \
    }

static const struct CMUnitTest tests[] = {
    KIND(dims),
    KIND(counts),
    KIND(keys),
    KIND(types),
    KIND(arrays),
    KIND(lengths),
    KIND(places),
    KIND(cut),
    KIND(tensors),
    KIND(values),
    KIND(files),
    KIND(vocabulary),
    KIND(widths),
    KIND(layers),
    KIND(derived),
    KIND(overruled),
    KIND(ignored),
    KIND(words),
    KIND(damage),
    KIND(layout),
    cmocka_unit_test(run_split),
    cmocka_unit_test(run_names),
    cmocka_unit_test(run_no_files),
};
enum { N_TESTS = sizeof tests / sizeof *tests };

/* ---- the corpus by hand */

/* Every case belongs to a test, and no two have one name. */
static void check_table(void)
{
    for (int i = 0; i < hostile_n_cases; i++) {
        int k = 0;
        while (k < N_TESTS && strcmp(hostile_cases[i].kind, tests[k].name) != 0) k++;
        if (k == N_TESTS) fail_msg("no test runs %s", hostile_cases[i].kind);
        for (int j = 0; j < i; j++)
            if (!strcmp(hostile_cases[i].kind, hostile_cases[j].kind) &&
                !strcmp(hostile_cases[i].name, hostile_cases[j].name))
                fail_msg("%s %s is there twice", hostile_cases[i].kind, hostile_cases[i].name);
    }
}

static int write_all(const char *to)
{
    struct err e = {0};
    char from[512], path[512];
    for (int b = 0; b < HOSTILE_BASES; b++) {
        const char *form = hostile_base_name((enum hostile_base)b);
        snprintf(from, sizeof from, "%s/%s.gguf", to, form);
        if (hostile_base_write((enum hostile_base)b, from, &e)) {
            fprintf(stderr, "%s\n", e.msg);
            return 1;
        }
        for (int i = 0; i < hostile_n_cases; i++) {
            const struct hostile_case *c = &hostile_cases[i];
            if (!hostile_applies(c, (enum hostile_base)b)) continue;
            snprintf(path, sizeof path, "%s/%s-%s-%s-%s.gguf", to, c->flags & HOSTILE_GOOD ? "good" : "broken", form,
                     c->kind, c->name);
            forge_write(from, path, c->edits, FORGE_MOST);
        }
    }
    return 0;
}

static int set_up(void **state)
{
    struct err e = {0};
    temp_folder(folder);
    snprintf(out, sizeof out, "%s/logits", folder);
    for (int b = 0; b < HOSTILE_BASES; b++) {
        snprintf(base[b], sizeof base[b], "%s/%s", folder, hostile_base_name((enum hostile_base)b));
        if (hostile_base_write((enum hostile_base)b, base[b], &e)) fail_msg("%s", e.msg);
    }
    size_t n = 0;
    for (int i = 0; i < N_IDS; i++) n += (size_t)sprintf(ids + n, "%s%d", i ? "," : "", (i * 37 + i * i) % 288);
    check_table();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0) return write_all(argv[2]);
    const int rc = cmocka_run_group_tests(tests, set_up, NULL);
    watched_free(&ran);
    return rc;
}
