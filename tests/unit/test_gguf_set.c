/* File sets (spec dialects 2.1): a model cut in every way is the model of the single file, whichever part is named;
 * what is no set is refused by name (13.3 R3, R4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "../support/canonical_same.h"
#include "../support/dialect_forms.h"
#include "../support/split_files.h"
#include "../support/synth_model.h"
#include "../support/temp_files.h"
#include "gguf/gguf_set.h"
#include "gguf/shard_name.h"
#include "quant/quant.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define V4       "deepseek4."

static char folder[TEMP_PATH], base[TEMP_PATH + 16];

/* A fresh folder's "model" each: shards of one test are no siblings of another's. */
static void new_stem(char stem[TEMP_PATH + 16])
{
    static int turn;
    char made[TEMP_PATH + 8];
    snprintf(made, sizeof made, "%s/%d", folder, turn++);
    assert_int_equal(mkdir(made, 0700), 0);
    snprintf(stem, TEMP_PATH + 16, "%s/model", made);
}

static int set_up(void **state)
{
    struct synth_shape s = synth_tiny();
    struct err e = {0};
    s.rest = s.embed = QT_F16;
    s.dense = QT_Q8_0;
    temp_folder(folder);
    snprintf(base, sizeof base, "%s/base.gguf", folder);
    return synth_deepseek4(base, &s, &e);
}

static struct canonical *opened(const char *const *paths, int n)
{
    struct canonical *c;
    struct err e = {0};
    if (canonical_open(paths, n, NULL, &c, &e)) fail_msg("%s: %s", paths[0], e.msg);
    return c;
}

static void says(const char *const *paths, int n, const char *part)
{
    struct gguf_set *s = NULL;
    struct err e = {0};
    const int rc = gguf_set_open(paths, n, &s, &e);
    if (rc == 0) fail_msg("not refused: %s", part);
    assert_null(s);
    assert_int_equal(rc, e.code);
    if (!strstr(e.msg, part)) fail_msg("\"%s\" does not say \"%s\"", e.msg, part);
    if (!strstr(e.msg, folder)) fail_msg("\"%s\" names no file", e.msg);
}

static void refused(const char *path, const char *part)
{
    says(&path, 1, part);
}

static void reports(const struct canonical *c, const char *part)
{
    struct str s = {0};
    canonical_report(c, &s);
    if (!strstr(str_c(&s), part)) fail_msg("no \"%s\" in\n%s", part, str_c(&s));
    str_free(&s);
}

static int cut(const char *stem, const struct split_form *form)
{
    struct err e = {0};
    int n;
    if (split_write(base, stem, form, &n, &e)) fail_msg("%s", e.msg);
    return n;
}

static void edit(const char *path, const struct form_edit *x)
{
    struct err e = {0};
    char edited[256 + 8];
    snprintf(edited, sizeof edited, "%s.edited", path); /* a file that is read is not written to */
    if (dialect_form_edit(path, edited, x, 1, &e)) fail_msg("%s", e.msg);
    assert_int_equal(rename(edited, path), 0);
}

/* ---- names */

static void test_names(void **state)
{
    static const struct {
        const char *path;
        int no, n, width, n_width;
    } good[] = {
        {"m-00002-of-00005.gguf", 2, 5, 5, 5},
        {"a/b-of-3/m-1-of-9.gguf", 1, 9, 1, 1},
        {"m-000010-of-999999.gguf", 10, 999999, 6, 6},
        {"m-01-of-01-02-of-12.gguf", 2, 12, 2, 2},
        {"m--7-of-0008.gguf", 7, 8, 1, 4},
    };
    static const char *const bad[] = {
        "m.gguf",
        "m-0-of-3.gguf",
        "m-4-of-3.gguf",
        "m-0000001-of-0000003.gguf",
        "m-1-of-2.bin",
        "m1-of-2.gguf",
        "m-1of-2.gguf",
        "m-1-of-.gguf",
        "m--of-2.gguf",
        "1-of-2.gguf",
        "m-1-of-2/x.gguf",
        "m-1-of-2.gguf.part1",
        "",
    };
    struct shard_name s;
    for (size_t i = 0; i < COUNT(good); i++) {
        if (!shard_name_parse(good[i].path, &s)) fail_msg("%s", good[i].path);
        assert_int_equal(s.no, good[i].no);
        assert_int_equal(s.n, good[i].n);
        assert_int_equal(s.width, good[i].width);
        assert_int_equal(s.n_width, good[i].n_width);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (shard_name_parse(bad[i], &s)) fail_msg("%s", bad[i]);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Writes the pieces, a list with blanks between, names behind the stem; what is said of the first. */
static void piece_says(const char *pieces, const char *says)
{
    char stem[TEMP_PATH + 16], path[256], first[256] = "";
    new_stem(stem);
    for (const char *p = pieces; *p; p += strspn(p, " ")) {
        const int n = (int)strcspn(p, " ");
        snprintf(path, sizeof path, "%s%.*s", stem, n, p);
        write_text(path, "any bytes\1 of a model, 24 at least");
        if (!*first) snprintf(first, sizeof first, "%s", path);
        p += n;
    }
    refused(first, says);
}

/* How a file was cut is seen by the names beside it: the line that joins the pieces, or those that are missing. */
static void test_raw_pieces(void **state)
{
#define JOIN "of a file that was cut; join them, in their folder: cat "
    static const struct {
        const char *pieces, *says;
    } cases[] = {
        {".gguf.part2of3 .gguf.part1of3 .gguf.part3of3",
         "model.gguf.part2of3 is piece 2 of 3 " JOIN "model.gguf.part1of3 model.gguf.part2of3 model.gguf.part3of3 > "
         "model.gguf"},
        {".gguf.part2of3",
         "is piece 2 of 3 of a file that was cut; model.gguf.part1of3 and model.gguf.part3of3 are missing: "
         "get them into the same folder, and join all: cat model.gguf.part1of3 "},
        {".part2 .part1", "is piece 2 of 2 " JOIN "model.part1 model.part2 > model.gguf"},
        {".part7 .part8 .part9 .part10 .part11", "model.part1, model.part2, model.part3, model.part4, model.part5 and "
                                                 "model.part6 are missing: get them into the same "
                                                 "folder, and join all: cat model.part{1..11} > model.gguf"},
        {".gguf.part02of12", "cat model.gguf.part[0-9][0-9]of12 > model.gguf"},
        {".gguf.aa .gguf.ab .gguf.ac",
         "model.gguf.aa is piece 1 of 3 " JOIN "model.gguf.aa model.gguf.ab model.gguf.ac > model.gguf"},
        {".gguf.ab .gguf.aa", "model.gguf.ab is piece 2 of 2 " JOIN "model.gguf.aa model.gguf.ab > model.gguf"},
        {".gguf.ac .gguf.aa .gguf.ad", "is piece 3 of a file that was cut; model.gguf.ab is missing: get it into the "
                                       "same folder, and join all: cat model.gguf.aa model.gguf.ab model.gguf.ac "
                                       "model.gguf.ad > model.gguf"},
        {".gguf.aa", "is piece 1 of a file that was cut; no other piece is beside it: get the others, from "
                     "model.gguf.ab on, into the same folder, and join all: cat model.gguf.[a-z][a-z] > model.gguf"},
        {".ggufaa .ggufab", "cat model.ggufaa model.ggufab > model.gguf"},
        {".gguf-split-b .gguf-split-a", "is piece 2 of 2 " JOIN "model.gguf-split-a model.gguf-split-b > model.gguf"},
        {".gguf.001 .gguf.002", "is piece 1 of 2 " JOIN "model.gguf.001 model.gguf.002 > model.gguf"},
        {".gguf.01 .gguf.00", "is piece 2 of 2 " JOIN "model.gguf.00 model.gguf.01 > model.gguf"},
        {".7z.002 .7z.001", "is piece 2 of 2 " JOIN "model.7z.001 model.7z.002 > model.7z"},
        {".gguf.aa .gguf.ab .gguf.ac .gguf.ad .gguf.ae .gguf.af .gguf.ag",
         "is piece 1 of 7 " JOIN "model.gguf.[a-z][a-z] > model.gguf"},
        {"(1)'s.gguf.aa (1)'s.gguf.ab",
         "cat 'model(1)'\\''s.gguf.aa' 'model(1)'\\''s.gguf.ab' > 'model(1)'\\''s.gguf'"},
        /* what is none */
        {".particle", "not a GGUF file: it begins with bytes"},
        {".gguf.gz", "not a GGUF file: it begins with bytes"},
        {".gguf.1", "not a GGUF file: it begins with bytes"},
        {".bin", "not a GGUF file: it begins with bytes"},
        {".gguf.part", "(a download that is not finished, as its name says)"},
        {".gguf.crdownload", "(a download that is not finished, as its name says)"},
    };
    char stem[TEMP_PATH + 16], path[256];
    for (size_t i = 0; i < COUNT(cases); i++) piece_says(cases[i].pieces, cases[i].says);
    new_stem(stem);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%.*sxa%c", (int)(strlen(stem) - 5), stem, 'a' + i);
        write_text(path, "any bytes\1 of a model, 24 at least");
    }
    refused(path, "is piece 2 of 2 " JOIN "xaa xab > model.gguf");
}

/* Pieces of the model, bytes long but for the last, by their ends. */
static void cut_pieces(const char *stem, const char *const *ends, int n, size_t bytes)
{
    char path[256];
    FILE *from = fopen(base, "rb");
    assert_non_null(from);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s.gguf%s", stem, ends[i]);
        FILE *to = fopen(path, "wb");
        assert_non_null(to);
        for (size_t k = 0; k < bytes; k++) {
            const int c = getc(from);
            if (c != EOF) putc(c, to);
        }
        assert_int_equal(fclose(to), 0);
    }
    fclose(from);
}

/* The records in the first piece tell how long the whole is: too few pieces are not joined, nor is one that is cut. */
static void test_short_pieces(void **state)
{
#define CUT "of a file that was cut; "
    static const char *const letters[] = {".aa", ".ab", ".ac"}, *const parts[] = {".part1of3", ".part2of3",
                                                                                  ".part3of3"};
    char stem[TEMP_PATH + 16], first[256], other[256], says_so[400];
    struct stat whole;
    assert_int_equal(stat(base, &whole), 0);
    const int all = (int)whole.st_size, piece = all / 3 + 1;
    new_stem(stem);
    cut_pieces(stem, letters, 3, (size_t)piece);
    snprintf(first, sizeof first, "%s.gguf.aa", stem);
    refused(first,
            "is piece 1 of 3 " CUT "join them, in their folder: cat model.gguf.aa model.gguf.ab model.gguf.ac >");
    snprintf(other, sizeof other, "%s.gguf.ac", stem);
    unlink(other);
    snprintf(says_so, sizeof says_so,
             "is piece 1 " CUT "the pieces here have %d of %d bytes: get model.gguf.ac and what follows into the same "
             "folder, and join all: cat model.gguf.aa model.gguf.ab model.gguf.ac > model.gguf",
             2 * piece, all);
    refused(first, says_so);
    assert_int_equal(symlink("nowhere", other), 0); /* is not there either */
    refused(first, says_so);
    snprintf(other, sizeof other, "%s.gguf.ab", stem);
    assert_int_equal(truncate(other, piece - 100), 0);
    snprintf(says_so, sizeof says_so,
             "is piece 2 " CUT "the pieces here have %d of %d bytes, and model.gguf.ab is shorter than the first: "
             "continue its download, and join all: cat model.gguf.aa model.gguf.ab model.gguf.ac > model.gguf",
             2 * piece - 100, all);
    refused(other, says_so);
    unlink(other);
    snprintf(says_so, sizeof says_so,
             "is piece 1 " CUT "the pieces here have %d of %d bytes: get model.gguf.ab and what", piece, all);
    refused(first, says_so);
    cut_pieces(stem, parts, 3, (size_t)piece - 100);
    snprintf(first, sizeof first, "%s.gguf.part3of3", stem);
    snprintf(says_so, sizeof says_so,
             "is piece 3 of 3 " CUT "the pieces here have %d of %d bytes: get again what is smaller than where it was "
             "published, and join all: cat model.gguf.part1of3 ",
             3 * (piece - 100), all);
    refused(first, says_so);
}

/* ---- every way to cut */

static const struct split_form forms[] = {
    {.n = 2},
    {.n = 5, .meta_first = true},
    {.n = 3, .link_last = true},
    {.n = 4, .no_keys = true, .digits = 3},
    {.n = 12, .digits = 1, .wide_keys = true},
    {.n = 4, .digits = 6, .align = 16384},
    {.meta_first = true},
    {.n = 0, .align = 4096, .link_last = true},
};

static void test_every_cut(void **state)
{
    const char *single = base;
    struct canonical *want = opened(&single, 1);
    for (size_t k = 0; k < COUNT(forms); k++) {
        char stem[TEMP_PATH + 16], path[256], shards[32];
        new_stem(stem);
        const int n = cut(stem, &forms[k]);
        for (int i = 1; i <= n; i += n > 20 ? n / 3 : 1) {
            const char *named = split_path(path, stem, &forms[k], i, n);
            struct canonical *c = opened(&named, 1);
            canonical_same_tensors(want, c);
            canonical_same_tensors(c, want);
            assert_true(canonical_digest(c) == canonical_digest(want));
            assert_string_equal(canonical_name(c), canonical_name(want));
            snprintf(shards, sizeof shards, " dialect), %d shards, ", n);
            reports(c, shards);
            assert_false(canonical_damaged(c, NULL));
            canonical_close(c);
        }
    }
    canonical_close(want);
}

static int open_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (; d && readdir(d);) n++;
    if (d) closedir(d);
    return n;
}

/* One tensor per file, as many files as are published, with few descriptors. */
static void test_thousands(void **state)
{
    struct synth_shape s = synth_tiny();
    struct rlimit old, few;
    struct err e = {0};
    char stem[TEMP_PATH + 16], path[256];
    const struct split_form form = {.meta_first = true};
    int n;
    s.L = 60, s.E = 2, s.F = 32, s.D = 32, s.V = 288;
    for (int i = 0; i < s.L; i++) s.ratios[i] = i < 2 ? 0 : i % 2 ? 128 : 4;
    new_stem(stem);
    snprintf(path, sizeof path, "%s.gguf", stem);
    if (synth_deepseek4(path, &s, &e)) fail_msg("%s", e.msg);
    const char *single = path;
    struct canonical *want = opened(&single, 1);
    if (split_write(path, stem, &form, &n, &e)) fail_msg("%s", e.msg);
    assert_true(n >= 1500);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 256;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    const int before = open_descriptors();
    const char *named = split_path(path, stem, &form, 777, n);
    struct canonical *c = opened(&named, 1);
    assert_int_equal(open_descriptors(), before);
    canonical_same_tensors(want, c);
    canonical_close(c);
    canonical_close(want);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

/* ---- metadata */

static void test_metadata(void **state)
{
    const struct split_form form = {.n = 3};
    char stem[TEMP_PATH + 16], path[3][256];
    const struct form_edit moved = {EDIT_DROP, V4 "rope.freq_base"}, there = {EDIT_F32, V4 "rope.freq_base", 0, 12345},
                           other = {EDIT_TEXT, "general.name", .text = "of another rung"},
                           ours = {EDIT_TEXT, "general.name", .text = "ours"},
                           same = {EDIT_U32, V4 "embedding_length", 64}, count = {EDIT_U32, "split.tensors.count", 7};
    new_stem(stem);
    cut(stem, &form);
    for (int i = 0; i < 3; i++) split_path(path[i], stem, &form, i + 1, 3);
    edit(path[0], &moved);
    edit(path[0], &ours);
    edit(path[2], &there);
    edit(path[1], &other);
    edit(path[1], &same);
    edit(path[2], &count);
    const char *named = path[1];
    struct canonical *c = opened(&named, 1);
    assert_true(canonical_float(c, "rope.freq_base") == 12345);
    assert_int_equal(canonical_origin(c, "rope.freq_base"), ORIGIN_KEY);
    assert_string_equal(canonical_name(c), "ours");
    reports(c, "warning: 1 key of other files differs from the first file's and is ignored: general.name in "
               "model-00002-of-00003.gguf\n");
    reports(c, "warning: model-00003-of-00003.gguf counts 7 tensors in all shards, the first shard ");
    canonical_close(c);
}

/* ---- what is no set */

/* One change of a shard of three; how the set is refused then. */
static const struct {
    int shard;
    struct form_edit edit;
    const char *says;
} wrongs[] = {
    {2,
     {EDIT_U32, "split.count", 4},
     "shard 2 says it is 2 of 4, its name says 2 of 3: it is from another set, or was renamed; get shard 2 of this "
     "set"},
    {2, {EDIT_U32, "split.no", 2}, "shard 2 says it is 3 of 3"},
    {3, {EDIT_U32, "split.count", 1}, "shard 3 says it is 3 of 1"},
    {2, {EDIT_U32, "split.count", 0}, "shard 2 says it is 2 of 0, its name says 2 of 3"},
    {1, {EDIT_U32, "split.count", 65536}, "split.count = 65536 is not supported (only 0 to 65535)"},
    {2, {EDIT_U32, "split.no", 65535}, "split.no = 65535 is not supported (only 0 to 65534)"},
    {1, {EDIT_I32S, "split.count", 1, 3}, "key split.count is an array"},
    {1, {EDIT_F32, "split.no", 0, 0}, "split.no"},
    {3, {EDIT_NO_TENSORS, "blk.3.attn_q_a."}, " tensors; one is from another download"},
    {1, {EDIT_U32, "split.tensors.count", 7}, " of 7 tensors; one is from another download"},
};

static void test_wrong_shards(void **state)
{
    const struct split_form form = {.n = 3};
    char path[256];
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        char stem[TEMP_PATH + 16];
        new_stem(stem);
        cut(stem, &form);
        edit(split_path(path, stem, &form, wrongs[i].shard, 3), &wrongs[i].edit);
        for (int named = 1; named <= 3; named++) refused(split_path(path, stem, &form, named, 3), wrongs[i].says);
    }
}

/* Shards of two quantisations whose splits are alike: the model runs, and which shard is the other's is said. */
static void test_two_rungs(void **state)
{
    const struct split_form form = {.n = 3};
    struct synth_shape s = synth_tiny();
    char stem[2][TEMP_PATH + 16], path[256], other[256], whole[TEMP_PATH + 16];
    const char *const one = path;
    struct str report = {0};
    struct err e = {0};
    int n;
    s.L = 15, s.rest = QT_F16;
    for (int l = 0; l < s.L; l++) s.ratios[l] = l % 3 ? 4 : 0;
    snprintf(whole, sizeof whole, "%s/rung.gguf", folder);
    for (int i = 0; i < 2; i++) {
        new_stem(stem[i]);
        s.gate = s.up = i ? QT_Q4_0 : QT_Q8_0, s.down = i ? QT_MXFP4 : QT_F16;
        if (synth_deepseek4(whole, &s, &e) || split_write(whole, stem[i], &form, &n, &e)) fail_msg("%s", e.msg);
    }
    struct canonical *c = opened((split_path(path, stem[0], &form, 1, n), &one), 1);
    canonical_report(c, &report);
    assert_null(strstr(str_c(&report), "another download"));
    canonical_close(c);
    assert_int_equal(rename(split_path(other, stem[1], &form, 2, n), split_path(path, stem[0], &form, 2, n)), 0);
    c = opened(&one, 1);
    reports(c, "model-00002-of-00003.gguf has experts of other types (MXFP4) than the other files (F16): one is from "
               "another download, unless the model was quantised so");
    canonical_close(c);
    str_free(&report);
}

static void test_duplicate(void **state)
{
    const struct split_form form = {.n = 3};
    char stem[TEMP_PATH + 16], path[256], name[128], says_so[200];
    struct gguf *g;
    struct err e = {0};
    new_stem(stem);
    cut(stem, &form);
    assert_int_equal(gguf_open(split_path(path, stem, &form, 3, 3), &g, &e), 0);
    const struct gguf_str s = gguf_tensor_at(g, 0)->name;
    snprintf(name, sizeof name, "%.*s", (int)s.n, s.p);
    gguf_close(g);
    const struct form_edit twice = {EDIT_NAME, name, .text = "token_embd.weight"};
    edit(path, &twice);
    snprintf(says_so, sizeof says_so, "tensor token_embd.weight is in two shards: %s-00001-of-00003.gguf and ", stem);
    refused(path, says_so);
    refused(path, "-00003-of-00003.gguf: one is of another download; get both again from one folder");
}

static void test_missing(void **state)
{
    const struct split_form form = {.n = 5};
    char stem[TEMP_PATH + 16], path[256], whole[300], link_says[400];
    new_stem(stem);
    cut(stem, &form);
    unlink(split_path(path, stem, &form, 2, 5));
    snprintf(whole, sizeof whole, "%s: shard 2 of 5 is missing", path);
    refused(split_path(path, stem, &form, 4, 5), whole);
    unlink(split_path(path, stem, &form, 3, 5));
    refused(split_path(path, stem, &form, 1, 5), "shards 2 and 3 of 5 are missing; get them into the same folder");
    unlink(split_path(path, stem, &form, 5, 5));
    refused(split_path(path, stem, &form, 1, 5), "shards 2, 3 and 5 of 5 are missing");
    for (int i = 2; i <= 5; i += 3)
        assert_int_equal(link(split_path(path, stem, &form, 1, 5), split_path(whole, stem, &form, i, 5)), 0);
    assert_int_equal(symlink("../../blobs/aa", split_path(whole, stem, &form, 3, 5)), 0);
    snprintf(link_says, sizeof link_says, "%s is a link to ../../blobs/aa, which is not there: its download", whole);
    refused(path, link_says);
}

static void test_same_file(void **state)
{
    const struct split_form form = {.n = 3};
    char stem[TEMP_PATH + 16], path[2][256];
    new_stem(stem);
    cut(stem, &form);
    split_path(path[0], stem, &form, 2, 3);
    unlink(split_path(path[1], stem, &form, 3, 3));
    assert_int_equal(symlink(path[0], path[1]), 0);
    refused(path[0], "shards 2 and 3 are the same file (model-00002-of-00003.gguf)");
    unlink(path[1]);
    assert_int_equal(link(path[0], path[1]), 0);
    refused(path[0], "shards 2 and 3 are the same file");
}

static void test_other_name(void **state)
{
    const struct split_form form = {.n = 3};
    char stem[TEMP_PATH + 16], path[256];
    const char *two[2] = {base, path};
    new_stem(stem);
    cut(stem, &form);
    split_path(path, stem, &form, 1, 3);
    says(two, 2, "split.count says it is one of 3 shards; give one shard alone");
    assert_int_equal(rename(path, stem), 0);
    refused(stem,
            "split.count says it is one of 3 shards, but it is not named so, and the others are found by their names: "
            "give all of them the names that they were published under, such as \"model-00001-of-00003.gguf\"");
}

/* What browsers make of a name: the right one is told, for the file that is given and for one that is missing. */
static void test_changed_name(void **state)
{
    static const struct {
        const char *end, *alone, *missed;
    } ends[] = {
        {" (1).gguf",
         "a shard of 3, whose name was changed, and the others are found by it: rename it to "
         "\"model-00002-of-00003.gguf\"",
         "shard 2 of 3 is missing, and \"model-00002-of-00003 (1).gguf\" lies there: rename that to "
         "\"model-00002-of-00003.gguf\""},
        {".gguf.1", "rename it to \"model-00002-of-00003.gguf\"",
         "\"model-00002-of-00003.gguf.1\" lies there: rename that to \"model-00002-of-00003.gguf\""},
        {".gguf.crdownload", "rename it to \"model-00002-of-00003.gguf\"",
         "shard 2 of 3 is missing; the download of model-00002-of-00003.gguf.crdownload is not finished: continue it"},
    };
    const struct split_form form = {.n = 3};
    char stem[TEMP_PATH + 16], path[256], changed[300], first[256];
    for (size_t i = 0; i < COUNT(ends); i++) {
        new_stem(stem);
        cut(stem, &form);
        split_path(path, stem, &form, 2, 3);
        snprintf(changed, sizeof changed, "%.*s%s", (int)strlen(path) - 5, path, ends[i].end);
        assert_int_equal(rename(path, changed), 0);
        refused(changed, ends[i].alone);
        refused(split_path(first, stem, &form, 1, 3), ends[i].missed);
    }
    assert_int_equal(link(changed, path), 0);
    refused(changed, "a copy of a shard of 3; give the one with the right name: \"model-00002-of-00003.gguf\"");
}

/* cat makes no model of shards, whatever the file is called. */
static void test_joined_shards(void **state)
{
    const struct split_form form = {.n = 3};
    char stem[TEMP_PATH + 16], path[256], whole[2][256], says_so[300];
    struct stat first;
    new_stem(stem);
    cut(stem, &form);
    snprintf(whole[0], sizeof whole[0], "%s.gguf", stem);
    snprintf(whole[1], sizeof whole[1], "%s_joined-00001-of-00003.gguf", stem);
    assert_int_equal(stat(split_path(path, stem, &form, 1, 3), &first), 0);
    snprintf(says_so, sizeof says_so,
             "shards of a split model were joined with cat: behind the tensors of the first, at byte %llu, another "
             "GGUF header stands; shards cannot be joined so: get all 3 as files of their own and give any of them, or "
             "join those with llama.cpp's gguf-split --merge",
             (unsigned long long)first.st_size);
    for (int k = 0; k < 2; k++) {
        FILE *to = fopen(whole[k], "wb");
        assert_non_null(to);
        for (int i = 1; i <= 3; i++) {
            int c;
            FILE *from = fopen(split_path(path, stem, &form, i, 3), "rb");
            assert_non_null(from);
            while ((c = getc(from)) != EOF) putc(c, to);
            fclose(from);
        }
        assert_int_equal(fclose(to), 0);
        refused(whole[k], says_so);
    }
}

/* A sibling's own fault names that file. */
static void test_broken_shard(void **state)
{
    const struct split_form form = {.n = 3};
    char stem[TEMP_PATH + 16], path[256], whole[300];
    new_stem(stem);
    cut(stem, &form);
    assert_int_equal(truncate(split_path(path, stem, &form, 3, 3), 4096), 0);
    snprintf(whole, sizeof whole, "%s: header says ", path);
    refused(split_path(path, stem, &form, 1, 3), whole);
}

/* ---- two whole files */

static void test_pair(void **state)
{
    const struct split_form form = {.n = 2, .full = true};
    char stem[TEMP_PATH + 16], path[2][256];
    const char *single = base, *pair[2] = {path[0], path[1]}, *turned[2] = {path[1], path[0]},
               *same[2] = {path[0], path[0]}, *overlap[2] = {base, path[1]};
    const struct form_edit shape = {EDIT_U32, V4 "expert_used_count", 3},
                           arch = {EDIT_TEXT, "general.architecture", .text = "llama"},
                           name = {EDIT_TEXT, "general.name", .text = "second"};
    new_stem(stem);
    cut(stem, &form);
    for (int i = 0; i < 2; i++) {
        char from[256];
        split_path(from, stem, &form, i + 1, 2);
        snprintf(path[i], sizeof path[i], "%s-Layers%d.gguf", stem, i);
        assert_int_equal(rename(from, path[i]), 0);
    }
    edit(path[1], &name);
    struct canonical *want = opened(&single, 1), *c = opened(pair, 2), *d = opened(turned, 2);
    canonical_same_tensors(want, c);
    canonical_same_tensors(want, d);
    assert_true(canonical_digest(c) == canonical_digest(want));
    assert_string_equal(canonical_name(c), canonical_name(want));
    assert_string_equal(canonical_name(d), "second");
    reports(c, " dialect), 2 files, ");
    canonical_close(want);
    canonical_close(c);
    canonical_close(d);
    says(same, 2, "files 1 and 2 are the same file");
    says(overlap, 2, "is in two files");
    says(overlap, 2,
         "Layers1.gguf: one is of another download, or each is a whole model; give one of them, or get both again from "
         "one folder");
    edit(path[1], &shape);
    says(pair, 2, "are not of one model: key " V4 "expert_used_count differs; give the files of one");
    edit(path[1], &arch);
    says(turned, 2, "are not of one model: general.architecture differs; give the files of one");
}

/* What lies beside a model, named with it: first or second. */
static void test_side_files(void **state)
{
    static const struct {
        struct form_edit edit;
        const char *says;
    } sides[] = {
        {{EDIT_TEXT, "general.architecture", .text = "clip"}, "is a vision encoder, and this version reads text only"},
        {{EDIT_TEXT, "general.architecture", .text = "qwen4exp-vision"}, "is a vision encoder, and this version reads"},
        {{EDIT_TEXT, "general.type", .text = "mmproj"}, "is a vision encoder, and this version reads text only"},
        {{EDIT_TEXT, "general.type", .text = "imatrix"}, "is an importance matrix, which is for making models"},
        {{EDIT_TEXT, "general.type", .text = "adapter"}, "is an adapter, which this version does not use"},
        {{EDIT_TEXT, "general.architecture", .text = "deepseek4_mtp_support"},
         "is an MTP draft of DeepSeek V4, which this version does not use"},
        {{EDIT_TEXT, "general.architecture", .text = "dflash"}, "is a DFlash draft, which this version does not use"},
    };
    char stem[TEMP_PATH + 16], path[300], whole[500];
    struct err e = {0};
    new_stem(stem);
    snprintf(path, sizeof path, "%s-beside.gguf", stem);
    const char *behind[2] = {base, path}, *before[2] = {path, base};
    for (size_t i = 0; i < COUNT(sides); i++) {
        if (dialect_form_edit(base, path, &sides[i].edit, 1, &e)) fail_msg("%s", e.msg);
        snprintf(whole, sizeof whole, "%s %s", path, sides[i].says);
        for (int k = 0; k < 2; k++) {
            says(k ? before : behind, 2, whole);
            says(k ? before : behind, 2, ": leave it out");
        }
    }
}

/* A shard alone, to be looked at. */
static void test_part(void **state)
{
    const struct split_form form = {.n = 3};
    char stem[TEMP_PATH + 16], path[256];
    struct gguf_set *s, *whole;
    struct err e = {0};
    const char *single = base;
    new_stem(stem);
    cut(stem, &form);
    assert_int_equal(gguf_set_open(&single, 1, &whole, &e), 0);
    uint64_t n = 0;
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(gguf_set_open_part(split_path(path, stem, &form, i, 3), &s, &e), 0);
        assert_int_equal(gguf_set_n_files(s), 1);
        assert_string_equal(gguf_path(gguf_set_file(s, 0)), path);
        assert_int_equal(gguf_set_kv_find(s, "general.architecture") != NULL, i == 1);
        n += gguf_set_n_tensors(s);
        gguf_set_close(s);
    }
    assert_int_equal(n, gguf_set_n_tensors(whole));
    gguf_set_close(whole);
    assert_int_equal(gguf_set_open_part("/nowhere", &s, &e), ERR_IO);
    assert_null(s);
}

/* ---- damage of any of the files */

static void test_damage(void **state)
{
    const struct split_form form = {.n = 4};
    char stem[TEMP_PATH + 16], path[256];
    struct err e = {0};
    volatile uint8_t sum = 0;
    new_stem(stem);
    cut(stem, &form);
    const char *named = split_path(path, stem, &form, 1, 4);
    struct canonical *c = opened(&named, 1);
    assert_false(canonical_damaged(c, &e));
    assert_int_equal(truncate(split_path(path, stem, &form, 3, 4), 0), 0);
    for (int i = 0; i < canonical_n_tensors(c); i++) {
        const struct tensor_view *v;
        canonical_tensor_at(c, i, &v);
        if (v->file == 2) sum = (uint8_t)(sum + v->data[0]);
    }
    assert_true(canonical_damaged(c, &e));
    assert_non_null(strstr(e.msg, path));
    canonical_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_part),          cmocka_unit_test(test_side_files),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_raw_pieces),    cmocka_unit_test(test_short_pieces), cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_thousands),     cmocka_unit_test(test_metadata),     cmocka_unit_test(test_wrong_shards),
        cmocka_unit_test(test_two_rungs),     cmocka_unit_test(test_duplicate),    cmocka_unit_test(test_missing),
        cmocka_unit_test(test_same_file),     cmocka_unit_test(test_other_name),   cmocka_unit_test(test_changed_name),
        cmocka_unit_test(test_joined_shards), cmocka_unit_test(test_broken_shard), cmocka_unit_test(test_pair),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
