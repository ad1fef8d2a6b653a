/* ds4-gguf inspect as a program: sizes by group and the plan against numbers that were counted by hand or that others
 * published; file sets by any part, other dialects, files that ds4 cannot run; nothing but headers is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../support/dialect_forms.h"
#include "../support/shell_run.h"
#include "../support/split_files.h"
#include "../support/synth_model.h"
#include "../support/temp_files.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define INSPECT  TEST_BUILD "/ds4-gguf inspect "

static char folder[TEMP_PATH], tiny[TEMP_PATH + 16], base[TEMP_PATH + 16], edited[TEMP_PATH + 16];

/* tiny: a file of ds4-gguf synth; base: the model that tests of dialects write again. */
static int set_up(void **state)
{
    char command[256];
    struct synth_shape s = synth_tiny();
    struct err e = {0};
    temp_folder(folder);
    snprintf(tiny, sizeof tiny, "%s/tiny.gguf", folder);
    snprintf(base, sizeof base, "%s/base.gguf", folder);
    snprintf(edited, sizeof edited, "%s/edited.gguf", folder);
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf synth --preset tiny --quant q2 -o %s 2>/dev/null", tiny);
    return system(command) || synth_deepseek4(base, &s, &e);
}

static int tear_down(void **state)
{
    return temp_remove(folder);
}

/* What inspect says about a file, on both streams; options stand in front. */
static void inspect(const char *options, const char *path, int status, struct str *said)
{
    struct str command = {0};
    str_printf(&command, INSPECT "%s %s 2>&1", options, path);
    const int got = shell_run(str_c(&command), said);
    if (got != status) fail_msg("%s: %d\n%s", str_c(&command), got, str_c(said));
    str_free(&command);
}

static void has(const struct str *said, const char *part)
{
    if (!strstr(str_c(said), part)) fail_msg("no \"%s\" in\n%s", part, str_c(said));
}

static void has_not(const struct str *said, const char *part)
{
    if (strstr(str_c(said), part)) fail_msg("\"%s\" in\n%s", part, str_c(said));
}

struct group {
    long long n, bytes;
    char types[200];
};

/* A line of the table; all zero if there is none. */
static struct group group_of(const struct str *said, const char *name)
{
    struct group g = {0};
    const char *table = strstr(str_c(said), "group           "), *line = table ? strstr(table, name) : NULL;
    double gb, share;
    if (!table) fail_msg("no table in\n%s", str_c(said));
    while (line && line[-1] != '\n') line = strstr(line + 1, name);
    if (!line) return g;
    const int got =
        sscanf(line + strlen(name), " %lld %lld %lf GB %lf %% %199[^\n]", &g.n, &g.bytes, &gb, &share, g.types);
    assert_int_equal(got, 5);
    return g;
}

static void group_is(const struct str *said, const char *name, long long n, long long bytes, const char *types)
{
    const struct group g = group_of(said, name);
    if (g.n != n || g.bytes != bytes || (types && strcmp(g.types, types)))
        fail_msg("%s: %lld tensors of %lld bytes (%s) in\n%s", name, g.n, g.bytes, g.types, str_c(said));
}

/* ---------------------------------------------------------------- numbers */

/* tiny as q2 (shapes: spec deepseek-v4 2.3; bytes: spec gguf-and-quants 2.1), by hand. Blocks of every layer: two
 * stream mixers 2 x 49152 + 2 x 96 + 2 x 12, norms 1024 + 1024 + 256 + 320, sinks 16, projections 17408 + 21760 +
 * 21760 + 10880 + 17408, router 4096. A hash table in the first, biases of 32 bytes in the others. */
enum {
    EVERY = 98304 + 192 + 24 + 2624 + 16 + 89216 + 4096,
    INDEXED = 163840 + 1280 + 320 + 8192 + 1024 + 65536 + 512 + 128, /* layers 1 and 3 */
    COMPRESSED = 81920 + 20480 + 320,                                /* layer 2 */
    HASH = 2 * 1024 * 4,
    DENSE = 4 * EVERY + HASH + 3 * 32 + 2 * INDEXED + COMPRESSED,
    EMBEDDING = 1024 * 256 * 2,
    SHARED = 4 * 3 * 256 * 256 / 32 * 34,
    ROUTED = 4 * 8 * (256 * 256 / 256) * (66 + 66 + 84),
    HEAD = 1024 * 256 / 32 * 34 + 1024 + 1024 * 4 * 2 + 16 + 4,
    /* F16 in the file, F32 where they are used: position biases. */
    WIDER = 2 * (1280 + 512) + 20480,
    /* One row of tables by token, 2 of 8 experts. */
    ACTIVE = DENSE + SHARED + HEAD + WIDER - HASH + HASH / 1024 + EMBEDDING / 1024 + ROUTED / 4
};

static void sizes_and_plan(void **state)
{
    struct str said = {0};
    char active[96];
    inspect("", tiny, 0, &said);
    group_is(&said, "embedding", 1, EMBEDDING, "F16 1");
    group_is(&said, "dense", 96, DENSE, "F16 31, F32 44, Q8_0 20, I32 1");
    group_is(&said, "shared experts", 12, SHARED, "Q8_0 12");
    group_is(&said, "routed experts", 12, ROUTED, "IQ2_XXS 8, Q2_K 4");
    group_is(&said, "head", 5, HEAD, "F32 3, Q8_0 1, F16 1");
    group_is(&said, "all", 126, (long long)EMBEDDING + DENSE + SHARED + ROUTED + HEAD, NULL);
    group_is(&said, "draft", 0, 0, NULL);
    has(&said, "deepseek4.expert_used_count = 2\n");
    has(&said, "blk.3.ffn_down_exps.weight               Q2_K     [256, 256, 8] 172032 bytes at ");
    has(&said, "\n1 session of 32768 tokens: ");
    has(&said, "\nmemory needed ");
    snprintf(active, sizeof active, "a token of an answer reads %d bytes of weights (0.003 GB)\n", ACTIVE);
    has(&said, active);
    inspect("--summary --ctx 4096", tiny, 0, &said);
    has(&said, "\n1 session of 4096 tokens: ");
    has_not(&said, "deepseek4.expert_used_count");
    has_not(&said, " bytes at ");
    group_is(&said, "routed experts", 12, ROUTED, NULL);
    str_free(&said);
}

/* Files of the published sizes of which only the headers are there. Sizes: spec gguf-and-quants 6.2 (for Flash, what
 * the published file holds without the padding behind vectors of 3, 1 and 4 numbers; routed experts: weights times
 * bits). */
static void published_sizes(void **state)
{
    static const struct {
        const char *preset, *quant;
        int n_tensors;
        long long file, all, routed; /* file: at least as large as it would be; all 0: not published */
    } cases[] = {
        {"flash", "q2", 1328, 90000000000, 8801386560 + 77913391104 - (43 * 2 * 20 + 28 + 16), 77913391104},
        {"flash", "q4", 1328, 170000000000, 8801386560 + 2 * 77913391104 - 1764, 277025390592 * 9 / 16},
        {"flash", "mxfp4", 1328, 160000000000, 8801386560 + 147169738752 - 1764, 277025390592 * 17 / 32},
        {"pro", "q2", 1894, 470000000000, 0, 1547396186112 * 9 / 32},
    };
    struct str said = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char command[300], path[TEMP_PATH + 16];
        struct rusage use;
        int status;
        snprintf(path, sizeof path, "%s/big.gguf", folder);
        snprintf(command, sizeof command,
                 TEST_BUILD "/ds4-gguf synth --preset %s --quant %s -o /dev/stdout 2>/dev/null | head -c 9000000 > %s",
                 cases[i].preset, cases[i].quant, path);
        assert_int_equal(shell_run(command, &said), 0);
        assert_int_equal(truncate(path, cases[i].file), 0); /* a hole: it takes no room */
        inspect("--summary", path, 0, &said);
        group_is(&said, "routed experts", 3 * (cases[i].n_tensors == 1328 ? 43 : 61), cases[i].routed, NULL);
        const struct group all = group_of(&said, "all");
        assert_int_equal(all.n, cases[i].n_tensors);
        assert_true(!cases[i].all || all.bytes == cases[i].all);
        has(&said, "a token of an answer reads ");
        const pid_t pid = fork();
        if (!pid) {
            dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
            execl(TEST_BUILD "/ds4-gguf", "ds4-gguf", "inspect", path, (char *)NULL);
            _exit(127);
        }
        assert_int_equal(wait4(pid, &status, 0, &use), pid);
        assert_int_equal(status, 0);
        print_message("%s %s: %ld kB, %ld ms\n", cases[i].preset, cases[i].quant, use.ru_maxrss,
                      (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
                          (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000);
        assert_true(use.ru_maxrss < 250000); /* pages of the file count, too */
        assert_true(use.ru_utime.tv_sec + use.ru_stime.tv_sec < 5);
        unlink(path);
    }
    str_free(&said);
}

/* ---------------------------------------------------------------- file sets and dialects */

static void split_by_any_part(void **state)
{
    static const struct split_form forms[] = {{.n = 3}, {.n = 4, .meta_first = true}, {.n = 2, .align = 4096}};
    struct str said = {0};
    for (size_t i = 0; i < COUNT(forms); i++) {
        char stem[TEMP_PATH + 16], path[256], files[32];
        struct err e = {0};
        int n;
        snprintf(stem, sizeof stem, "%s/set%d", folder, (int)i);
        assert_int_equal(split_write(tiny, stem, &forms[i], &n, &e), 0);
        snprintf(files, sizeof files, ", %d files of ", n);
        for (int part = 1; part <= n; part++) {
            inspect("", split_path(path, stem, &forms[i], part, n), 0, &said);
            group_is(&said, "all", 126, (long long)EMBEDDING + DENSE + SHARED + ROUTED + HEAD, NULL);
            group_is(&said, "dense", 96, DENSE, NULL);
            has(&said, files);
            has(&said, "deepseek4.expert_used_count = 2\n");
            has(&said, "a token of an answer reads ");
            for (int k = 1; k <= n; k++) {
                struct str line = {0};
                str_printf(&line, "\n%s:\n", split_path(path, stem, &forms[i], k, n));
                has(&said, str_c(&line));
                str_free(&line);
            }
        }
    }
    str_free(&said);
}

/* What is there is shown, then what is missing is said. */
static void incomplete_set(void **state)
{
    static const struct split_form form = {.n = 3};
    struct str said = {0};
    char stem[TEMP_PATH + 16], path[256];
    struct err e = {0};
    int n;
    snprintf(stem, sizeof stem, "%s/holed", folder);
    assert_int_equal(split_write(tiny, stem, &form, &n, &e), 0);
    assert_int_equal(unlink(split_path(path, stem, &form, 3, n)), 0);
    inspect("", split_path(path, stem, &form, 2, n), 1, &said);
    has(&said, "split.no = 1\n");
    group_is(&said, "all", 42, group_of(&said, "all").bytes, NULL);
    has(&said, "ds4-gguf inspect: ");
    has(&said, "shard 3 of 3 is missing");
    has_not(&said, "memory needed");
    str_free(&said);
}

static void two_files(void **state)
{
    static const struct split_form form = {.n = 2, .full = true};
    struct str said = {0}, both = {0};
    char stem[TEMP_PATH + 16], path[256];
    struct err e = {0};
    int n;
    snprintf(stem, sizeof stem, "%s/half", folder);
    assert_int_equal(split_write(tiny, stem, &form, &n, &e), 0);
    for (int i = 1; i <= n; i++) str_printf(&both, "%s ", split_path(path, stem, &form, i, n));
    inspect("--summary", str_c(&both), 0, &said);
    group_is(&said, "all", 126, (long long)EMBEDDING + DENSE + SHARED + ROUTED + HEAD, NULL);
    has(&said, "a token of an answer reads ");
    str_free(&said);
    str_free(&both);
}

/* The groups do not depend on whose names the tensors have. */
static void dialects_have_the_same_groups(void **state)
{
    static const char *const names[] = {"embedding", "dense", "shared experts", "routed experts", "head"};
    struct str said = {0};
    struct group want[COUNT(names)];
    for (int form = 0; form <= FORM_HOLE; form++) {
        struct err e = {0};
        if (form == FORM_HOLE) continue;
        assert_int_equal(dialect_form_write(base, edited, (enum dialect_form)form, WIDTHS_KEPT, &e), 0);
        inspect("--summary", edited, 0, &said);
        has(&said, "a token of an answer reads ");
        for (size_t i = 0; i < COUNT(names); i++) {
            const struct group g = group_of(&said, names[i]);
            if (form == FORM_DS4) want[i] = g;
            assert_true(g.bytes > 0);
            if (g.bytes != want[i].bytes)
                fail_msg("%s, %s: %lld bytes, not %lld\n%s", dialect_form_name((enum dialect_form)form), names[i],
                         g.bytes, want[i].bytes, str_c(&said));
        }
        assert_int_equal(group_of(&said, "draft").bytes > 0, form == FORM_MERGED);
    }
    str_free(&said);
}

/* ---------------------------------------------------------------- what cannot run */

static void edit(struct form_edit change)
{
    struct err e = {0};
    if (dialect_form_edit(base, edited, &change, 1, &e)) fail_msg("%s", e.msg);
}

static void shown_without_plan(const char *why)
{
    struct str said = {0};
    inspect("", edited, 0, &said);
    assert_true(group_of(&said, "routed experts").bytes > 0);
    has(&said, " bytes at ");
    const char *last = strstr(str_c(&said), "\nno memory plan, ds4 cannot run this: ");
    if (!last || !strstr(last, why) || strchr(last + 1, '\n')[1]) fail_msg("\"%s\" in\n%s", why, str_c(&said));
    str_free(&said);
}

static void not_to_be_run(void **state)
{
    struct err e = {0};
    edit((struct form_edit){EDIT_TEXT, "general.architecture", .text = "llama"});
    shown_without_plan("is a Llama (or Mistral) model, which this version does not run");
    edit((struct form_edit){EDIT_DROP, "general.architecture"});
    shown_without_plan("has no general.architecture");
    edit((struct form_edit){EDIT_TEXT, "general.architecture", .text = "glm-dsa"});
    shown_without_plan("is a GLM 5 model, which this version does not run");
    edit((struct form_edit){EDIT_U32, "deepseek4.expert_used_count", 99});
    shown_without_plan("deepseek4.expert_used_count = 99, but the model has 8 experts");
    assert_int_equal(dialect_form_write(base, edited, FORM_HOLE, WIDTHS_KEPT, &e), 0);
    shown_without_plan("is missing");
}

/* Damage inside tensors is seen where they are read: ds4 does, inspect looks at headers alone. */
static void weights_are_not_read(void **state)
{
    static const struct form_edit damages[] = {{EDIT_POKE, "blk.1.attn_norm.weight", 0x7fc00000},
                                               {EDIT_POKE, "blk.0.ffn_gate_tid2eid.weight", 1000000}};
    static const char *const says[] = {"blk.1.attn_norm.weight holds NaN or Inf", "hash routing names expert 1000000"};
    struct str said = {0}, whole = {0};
    inspect("--summary", base, 0, &whole);
    for (size_t i = 0; i < COUNT(damages); i++) {
        char command[256];
        edit(damages[i]);
        inspect("--summary", edited, 0, &said);
        assert_string_equal(strstr(str_c(&said), "a token"), strstr(str_c(&whole), "a token"));
        snprintf(command, sizeof command, TEST_BUILD "/ds4 -m %s --inspect 2>&1", edited);
        shell_expect(command, 1, says[i]);
    }
    str_free(&said);
    str_free(&whole);
}

static void wrong_use(void **state)
{
    struct str said = {0};
    inspect("", "", 2, &said);
    has(&said, "no file given");
    inspect("--all", tiny, 2, &said);
    has(&said, "unknown option --all");
    inspect("--ctx 1", tiny, 2, &said);
    has(&said, "--ctx: '1' is not a whole number from 2 to");
    inspect("--ctx 2000000", tiny, 2, &said);
    has(&said, "a context of 2000000 tokens: the model is made for at most 1048576");
    inspect("", "/etc/hosts", 1, &said);
    has(&said, "ds4-gguf inspect: /etc/hosts: ");
    inspect("", "/nowhere.gguf", 1, &said);
    has(&said, "/nowhere.gguf");
    inspect("", folder, 1, &said);
    has(&said, folder);
    str_free(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_plan),    cmocka_unit_test(published_sizes),
        cmocka_unit_test(split_by_any_part), cmocka_unit_test(incomplete_set),
        cmocka_unit_test(two_files),         cmocka_unit_test(dialects_have_the_same_groups),
        cmocka_unit_test(not_to_be_run),     cmocka_unit_test(weights_are_not_read),
        cmocka_unit_test(wrong_use),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
