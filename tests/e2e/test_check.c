/* ds4 --check-file and ds4-gguf check as programs: what they tell of a good file in any form, each warning by its
 * number, and of files that do not run why not and what to do, in one sentence that needs no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../support/dialect_forms.h"
#include "../support/forge.h"
#include "../support/shell_run.h"
#include "../support/split_files.h"
#include "../support/synth_model.h"
#include "../support/synth_qwen38.h"
#include "../support/temp_files.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define DS4      TEST_BUILD "/ds4 "
#define CHECK    TEST_BUILD "/ds4-gguf check "
/* What the last line ends with where the model is known and the file is not what it should be. */
#define INSTEAD "; get another file of " V4_FORMS

#define FAULTY "; that is a fault of its conversion, and downloading it again does not help: get another file of "
#define OTHER_PROGRAM                                                                                                  \
    ", which this version does not run; it runs DeepSeek V4 and Qwen3.8 Flash Next: get a file of one of them, or "    \
    "run this one with another program, such as llama.cpp"
#define V4_FORMS   "DeepSeek V4, in llama.cpp's form (unsloth, bartowski, ggml-org, AtomicChat) or ds4's (antirez)"
#define QWEN_FORMS "Qwen3.8 Flash Next, in llama.cpp's form (unsloth, ggml-org, ISTA-DASLab) or ds4's (ivanfioravanti)"
#define DAMAGED                                                                                                        \
    "the file is damaged, and every token goes through this; get it again, or another publisher's if it comes out "    \
    "the same"

enum { PATH_BYTES = TEMP_PATH + 40 };
static char folder[TEMP_PATH], base[PATH_BYTES], qwen[PATH_BYTES], file[PATH_BYTES];

static struct synth_shape shape_of_tests(void)
{
    struct synth_shape s = synth_tiny();
    s.rest = s.embed = QT_F16;
    s.dense = QT_Q8_0;
    s.gate = s.up = QT_Q4_0;
    s.down = QT_MXFP4;
    return s;
}

static int set_up(void **state)
{
    const struct synth_shape s = shape_of_tests();
    struct synth_qwen38 q = synth_qwen38_tiny();
    struct err e = {0};
    q.draft = true;
    temp_folder(folder);
    snprintf(base, sizeof base, "%s/base.gguf", folder);
    snprintf(qwen, sizeof qwen, "%s/qwen.gguf", folder);
    snprintf(file, sizeof file, "%s/file.gguf", folder);
    setenv("BASE", base, 1);
    return synth_deepseek4(base, &s, &e) || synth_qwen38_write(qwen, &q, &e);
}

static int tear_down(void **state)
{
    return temp_remove(folder);
}

/* Runs the check, expects the status and that it ends with the line; "FOLDER" in it stands for the folder. */
static void check_ends(const char *command, const char *path, int status, const char *last, struct str *said)
{
    struct str line = {0}, want = {0};
    str_printf(&line, "%s%s 2>&1", command, path);
    const int got = shell_run(str_c(&line), said);
    const char *mark = strstr(last, "FOLDER");
    str_printf(&want, "%.*s%s%s\n", (int)(mark ? mark - last : (long)strlen(last)), last, mark ? folder : "",
               mark ? mark + 6 : "");
    const size_t n = want.n;
    const bool ends = said->n >= n && strcmp(said->p + said->n - n, want.p) == 0 &&
                      (said->n == n || said->p[said->n - n - 1] == '\n');
    if (got != status || !ends) fail_msg("%s: status %d, not \"%s\":\n%s", str_c(&line), got, want.p, str_c(said));
    str_free(&line);
    str_free(&want);
}

static void has(const struct str *said, const char *part)
{
    if (!strstr(str_c(said), part)) fail_msg("no \"%s\" in\n%s", part, str_c(said));
}

/* ---------------------------------------------------------------- files that run */

static void good_file(void **state)
{
    struct str said = {0};
    for (int i = 0; i < 2; i++) {
        check_ends(i ? CHECK : DS4 "--check-file ", base, 0, "will run", &said);
        has(&said, "files           1 file, ");
        has(&said, "DeepSeek V4, 4 layers\n");
        has(&said, "dialect         ds4\n");
        assert_null(strstr(str_c(&said), "ignored")); /* rope.scaling.type is looked at */
        has(&said, "\nrouted experts         12 ");
        has(&said, "\ndamage          none: no NaN or Inf in the scales and plain numbers of ");
        has(&said, "\nmemory          ");
        has(&said, "\nspeed           up to ");
    }
    check_ends(CHECK "--headers ", base, 0, "will run", &said);
    assert_null(strstr(str_c(&said), "damage"));
    assert_null(strstr(str_c(&said), "speed"));
    check_ends(DS4 "--ctx 4096 --check-file ", base, 0, "will run", &said);
    has(&said, " needed for 4096 tokens of context");
    str_free(&said);
}

static void other_form(void **state)
{
    struct str said = {0};
    struct err e = {0};
    if (dialect_form_write(base, file, FORM_IK, WIDTHS_KEPT, &e)) fail_msg("%s", e.msg);
    check_ends(CHECK, file, 0, "will run", &said);
    has(&said, "\ndialect         ik_llama.cpp\n");
    has(&said, "\nrenamed         ");
    has(&said, " tensors: hc_head_fn");
    has(&said, "\nderived         ");
    has(&said, "vocab_size 288 (token_embd)");
    has(&said, "\nwarning W9      key ");
    str_free(&said);
}

static void any_shard(void **state)
{
    static const struct split_form form = {.n = 3};
    char stem[PATH_BYTES], path[256];
    struct str said = {0};
    struct err e = {0};
    int n;
    snprintf(stem, sizeof stem, "%s/good", folder);
    if (split_write(base, stem, &form, &n, &e)) fail_msg("%s", e.msg);
    check_ends(CHECK, split_path(path, stem, &form, 2, n), 0, "will run", &said);
    has(&said, "files           3 shards, ");
    has(&said, "good-00001-of-00003.gguf, good-00002-of-00003.gguf, good-00003-of-00003.gguf\n");
    str_free(&said);
}

/* ---------------------------------------------------------------- JSON */

static json_t *checked(const char *path, int status)
{
    struct str said = {0}, line = {0};
    json_error_t e;
    str_printf(&line, CHECK "--json %s 2>/dev/null", path);
    assert_int_equal(shell_run(str_c(&line), &said), status);
    json_t *j = json_loads(str_c(&said), 0, &e);
    if (!j) fail_msg("%s in\n%s", e.text, str_c(&said));
    assert_int_equal(json_is_true(json_object_get(j, "will_run")), status == 0);
    str_free(&said);
    str_free(&line);
    return j;
}

static void as_json(void **state)
{
    json_t *j = checked(base, 0);
    assert_string_equal(json_string_value(json_object_get(j, "family")), "DeepSeek V4");
    assert_string_equal(json_string_value(json_object_get(j, "dialect")), "ds4");
    assert_int_equal(json_integer_value(json_object_get(j, "layers")), 4);
    json_t *routed = json_object_get(json_object_get(j, "census"), "routed experts");
    assert_int_equal(json_integer_value(json_object_get(routed, "tensors")), 12);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(routed, "types"), "MXFP4")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "scan"), "damaged_tensors")), 0);
    assert_true(json_is_true(json_object_get(json_object_get(j, "memory"), "fits")));
    assert_int_equal(json_array_size(json_object_get(j, "warnings")), 0);
    json_decref(j);
    j = checked("README.md", 1);
    assert_non_null(strstr(json_string_value(json_object_get(j, "why_not")), "not a GGUF file"));
    json_decref(j);
}

/* ---------------------------------------------------------------- warnings by number */

static bool has_warning(const json_t *j, const char *id)
{
    size_t i;
    json_t *w;
    json_array_foreach(json_object_get(j, "warnings"), i, w)
    {
        const char *is = json_string_value(json_object_get(w, "id"));
        if (is && strcmp(is, id) == 0) return true;
    }
    return false;
}

static void warns(const char *path, const char *const *ids, size_t n)
{
    json_t *j = checked(path, 0);
    for (size_t i = 0; i < n; i++)
        if (!has_warning(j, ids[i])) fail_msg("no %s in\n%s", ids[i], json_dumps(j, JSON_INDENT(1)));
    json_decref(j);
}

static void precision(void **state)
{
    static const char *const small[] = {"W1", "W2", "W3", "W6"}, *const experts[] = {"W7"}, *const gates[] = {"W4"};
    struct synth_shape s = synth_tiny();
    struct synth_qwen38 q = synth_qwen38_tiny();
    struct err e = {0};
    s.rest = QT_Q4_0;
    s.d = 96; /* rows of every matrix fill blocks of 32 */
    s.r = 32;
    if (synth_deepseek4(file, &s, &e)) fail_msg("%s", e.msg);
    warns(file, small, COUNT(small));
    s = synth_wide();
    s.gate = s.up = s.down = QT_IQ2_XXS;
    if (synth_deepseek4(file, &s, &e)) fail_msg("%s", e.msg);
    warns(file, experts, COUNT(experts));
    q.type = QT_Q4_0, q.rho = 32;
    if (synth_qwen38_write(file, &q, &e)) fail_msg("%s", e.msg);
    warns(file, gates, COUNT(gates));
}

static void oddities(void **state)
{
    static const struct forge_edit damaged[] = {{T_POKE, "blk.3.ffn_down_exps.weight", 0xFF, .at = 17 * 50, .n = 1},
                                                {FORGE_END}};
    static const struct forge_edit other_key[] = {{KEY_NUM, "deepseek4.expert_count", 5, .type = GGUF_U32},
                                                  {FORGE_END}};
    static const struct forge_edit half_draft[] = {{T_DROP, "blk.4.nextn.enorm"}, {FORGE_END}};
    struct str said = {0};
    static const char *const w8[] = {"W8"}, *const w9[] = {"W9"}, *const w12[] = {"W12"};
    forge_write(base, file, damaged, 2);
    warns(file, w8, 1);
    check_ends(CHECK, file, 0,
               "will run, but the file is damaged (W8): answers that meet the damage stop; get it again, or another "
               "publisher's if it comes out the same",
               &said);
    str_free(&said);
    forge_write(base, file, other_key, 2);
    warns(file, w9, 1);
    forge_write(qwen, file, half_draft, 2);
    warns(file, w12, 1);
}

/* ---------------------------------------------------------------- files that do not run */

static void write_text(const char *name, const char *text)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

#define BOTH "give both: -m FIRST -m SECOND (to check them: --check-file FIRST --check-file SECOND)"

static const struct broken {
    const char *what;
    struct forge_edit edits[FORGE_MOST];
    const char *last; /* line, without "will not run: " */
} broken[] = {
    {"a download that was cut off",
     {{CUT, .at = PART_END, .v = (uint64_t)-1000}},
     "FOLDER/file.gguf: header says 756480 bytes, file has 755480: the download is incomplete: continue it; if that "
     "changes nothing, get it again (tensor \"blk.3.ffn_down_shexp.weight\", bytes 752128 to 756479, is the first that "
     "is not whole)"},
    {"another family",
     {{KEY_TEXT, "general.architecture", .text = "glm5next"}},
     "FOLDER/file.gguf is a GLM 5.3 Flash model" OTHER_PROGRAM},
    {"an older family",
     {{KEY_TEXT, "general.architecture", .text = "deepseek2"}},
     "FOLDER/file.gguf is a DeepSeek V2, V3 or R1 (or Kimi K2) model" OTHER_PROGRAM},
    {"a family that nobody told of",
     {{KEY_TEXT, "general.architecture", .text = "mamba9"}},
     "FOLDER/file.gguf is a model of architecture \"mamba9\"" OTHER_PROGRAM},
    {"a version of the family",
     {{KEY_TEXT, "general.architecture", .text = "deepseek41"}},
     "FOLDER/file.gguf is a DeepSeek V4.1 model" OTHER_PROGRAM},
    {"a type of a fork",
     {{T_TYPE, "blk.2.ffn_down_exps.weight", 139}},
     "FOLDER/file.gguf: blk.2.ffn_down_exps.weight has type 139 (IQ4_K, 4.25 bits a weight), which only ik_llama.cpp "
     "can read; get another quantisation (Q2_K, UD-Q2_K_XL, IQ2_XXS, Q4_K_M, Q8_0 ...) of " V4_FORMS
     ", or run this file with the program that it was made for"},
    {"an image encoder",
     {{KEY_TEXT, "general.architecture", .text = "clip"}},
     "FOLDER/file.gguf is a vision encoder, and this version reads text only; give the language model that it belongs "
     "to"},
    {"a draft",
     {{KEY_TEXT, "general.architecture", .text = "deepseek4-dspark"}},
     "FOLDER/file.gguf is a DSpark draft of DeepSeek V4, which this version does not use; run the model itself, which "
     "gives the same answers without it"},
    {"fewer experts than the table of words names",
     {{T_POKE, "blk.0.ffn_gate_tid2eid.weight", 77, .at = 400, .n = 4}},
     "FOLDER/file.gguf: blk.0.ffn_gate_tid2eid.weight: hash routing names expert 77 of 8: experts were cut away "
     "(pruned) and this table still sends words to them" FAULTY V4_FORMS},
    {"more experts used than there are",
     {{KEY_NUM, "deepseek4.expert_used_count", 16, .type = GGUF_U32}},
     "FOLDER/file.gguf: deepseek4.expert_used_count = 16, but the model has 8 experts: the key is wrong" FAULTY
         V4_FORMS},
    {"tokens that the model does not know",
     {{KEY_TEXTS, "tokenizer.ggml.tokens", 1, 293, .text = "t"}, {KEY_DROP, "tokenizer.ggml.token_type"}},
     "FOLDER/file.gguf: the tokenizer has 293 tokens but the model knows 288: tokens were added to it and not to the "
     "model (tokenizer.ggml.tokens, token_embd.weight: 288 embedding rows)" FAULTY V4_FORMS},
    {"half of the blocks",
     {{KEY_NUM, "deepseek4.block_count", 8, .type = GGUF_U32}, {T_DROP, "output"}},
     "FOLDER/file.gguf: blk.4 to blk.7 are missing: the model has 8 blocks (deepseek4.block_count), and this is a part "
     "of it; get the file with the others, too, and " BOTH
     "; or, if there is no such file, the key is wrong: get another "
     "publisher's"},
    {"the other half of the blocks",
     {{T_DROP, "blk.0."}, {T_DROP, "blk.1."}, {T_DROP, "token_embd"}},
     "FOLDER/file.gguf has no blk.0: its blocks are 2 to 3, which is a part of a model; get the file with those "
     "before, too, and " BOTH},
    {"no embedding",
     {{T_DROP, "token_embd"}, {KEY_DROP, "deepseek4.vocab_size"}},
     "FOLDER/file.gguf: token_embd.weight is missing" INSTEAD},
    {"two keys less",
     {{KEY_DROP, "deepseek4.attention.sliding_window"}, {KEY_DROP, "deepseek4.expert_weights_scale"}},
     "FOLDER/file.gguf: deepseek4.attention.sliding_window is missing and cannot be derived for this shape; and 1 "
     "more (above)" INSTEAD},
    {"a tensor that is missing",
     {{T_DROP, "blk.2.attn_q_b"}},
     "FOLDER/file.gguf: blk.2.attn_q_b.weight is missing" INSTEAD},
    {"damage where it spoils everything",
     {{T_POKE, "blk.2.ffn_gate_inp.weight", 0x7c00, .at = 0, .n = 2}},
     "FOLDER/file.gguf: blk.2.ffn_gate_inp.weight holds NaN or Inf in row 0: " DAMAGED},
    {"damage in attention",
     {{T_POKE, "blk.1.attn_kv.weight", 0x7c00, .at = 0, .n = 2}},
     "FOLDER/file.gguf: blk.1.attn_kv.weight holds NaN or Inf in row 0: " DAMAGED},
    {"damage in a shared expert",
     {{T_POKE, "blk.3.ffn_down_shexp.weight", 0x7c00, .at = 0, .n = 2}},
     "FOLDER/file.gguf: blk.3.ffn_down_shexp.weight holds NaN or Inf in row 0: " DAMAGED},
    {"damage in the head",
     {{T_POKE, "output.weight", 0x7c00, .at = 0, .n = 2}},
     "FOLDER/file.gguf: output.weight holds NaN or Inf in row 0: " DAMAGED},
    {"no tokenizer",
     {{KEY_DROP, "tokenizer.ggml.tokens"}},
     "FOLDER/file.gguf: no tokenizer in this file: tokenizer.ggml.tokens is missing" INSTEAD},
};

static void broken_files(void **state)
{
    struct str said = {0}, last = {0};
    for (size_t i = 0; i < COUNT(broken); i++) {
        forge_write(base, file, broken[i].edits, FORGE_MOST);
        str_clear(&last);
        str_printf(&last, "will not run: %s", broken[i].last);
        for (int k = 0; k < 2; k++) check_ends(k ? CHECK : DS4 "--check-file ", file, 1, str_c(&last), &said);
    }
    str_free(&said);
    str_free(&last);
}

/* The whole text of a check that ends so. */
static void refused(const char *last, struct str *said)
{
    struct str line = {0};
    str_printf(&line, "will not run: FOLDER/file.gguf: %s" INSTEAD, last);
    check_ends(CHECK, file, 1, str_c(&line), said);
    str_free(&line);
}

/* Everything that is missing is told, keys and tensors, by kinds; the weights are looked at all the same, and what
 * their memory needs is told. */
static void all_problems(void **state)
{
    static const struct forge_edit holes[] = {{T_DROP, "blk.2.attn_"}, {FORGE_END}};
    static const struct forge_edit many[] = {{KEY_DROP, "deepseek4.attention.sliding_window"},
                                             {KEY_DROP, "deepseek4.rope.dimension_count"},
                                             {KEY_NUM, "deepseek4.expert_gating_func", 2, .type = GGUF_U32},
                                             {KEY_DROP, "tokenizer.ggml.merges"},
                                             {T_DROP, "blk.1.attn_q_b"},
                                             {T_DROP, "blk.3.attn_q_b"},
                                             {T_POKE, "blk.3.ffn_down_exps.weight", 0xFF, .at = 17 * 50, .n = 1},
                                             {FORGE_END}};
    static const char *const told[] = {
        "\nproblem         deepseek4.rope.dimension_count is missing and cannot be derived for this shape\n",
        "\nproblem         deepseek4.attention.sliding_window is missing and cannot be derived for this shape\n",
        "\nproblem         deepseek4.expert_gating_func = 2 is not supported (only 4)\n",
        "\nproblem         no tokenizer in this file: tokenizer.ggml.merges is missing\n",
        "\nproblem         blk.1.attn_q_b.weight is missing, and so is that of 1 more block up to blk.3\n",
        "\nwarning W8      blk.3.ffn_down_exps.weight holds NaN or Inf in row 25: the file is damaged, and an answer "
        "that "
        "meets this stops\n",
        "\nmemory          0.00 GiB of weights, "};
    struct str said = {0};
    int n = 0;
    shell_expect(CHECK "FOLDER 2>&1", 1, "cannot open");
    forge_write(base, file, many, COUNT(many));
    refused("deepseek4.rope.dimension_count is missing and cannot be derived for this shape; and 4 more (above)",
            &said);
    for (size_t i = 0; i < COUNT(told); i++) has(&said, told[i]);
    forge_write(base, file, holes, 2);
    refused("blk.2.attn_norm.weight is missing; and 8 more (above)", &said);
    for (const char *p = str_c(&said); (p = strstr(p, "\nproblem         blk.2.attn_")); p++) n++;
    assert_int_equal(n, 9);
    str_free(&said);
}

/* What is no model at all, and sets that are not whole. */
static void not_models(void **state)
{
    static const struct split_form form = {.n = 3};
    char stem[PATH_BYTES], path[256], other[256];
    struct str said = {0};
    struct err e = {0};
    int n;
    write_text("page.gguf", "\n<!DOCTYPE html>\n<html><body>Access to this model is restricted</body></html>\n");
    snprintf(file, sizeof file, "%s/page.gguf", folder);
    check_ends(CHECK, file, 1,
               "will not run: FOLDER/page.gguf: not a GGUF file: it is a web page: the server sent that in place of "
               "the file; look at the page, and download again",
               &said);
    write_text("lfs.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    snprintf(file, sizeof file, "%s/lfs.gguf", folder);
    check_ends(CHECK, file, 1,
               "will not run: FOLDER/lfs.gguf: not a GGUF file: it is Git LFS's note of where the file is: fetch the "
               "file itself (git lfs pull)",
               &said);
    write_text("answer.gguf", "Entry not found");
    snprintf(file, sizeof file, "%s/answer.gguf", folder);
    check_ends(
        CHECK, file, 1,
        "will not run: FOLDER/answer.gguf: not a GGUF file: it is a server's message: 'Entry not found': look at "
        "the address (repository, branch and file name) and download again",
        &said);
    assert_null(strstr(str_c(&said), "memory"));
    write_text("big.gguf.ab", "any bytes\1 of the middle of a file");
    snprintf(file, sizeof file, "%s/big.gguf.ab", folder);
    check_ends(
        CHECK, file, 1,
        "will not run: FOLDER/big.gguf.ab is piece 2 of a file that was cut; big.gguf.aa is missing: get it into "
        "the same folder, and join all: cat big.gguf.aa big.gguf.ab > big.gguf",
        &said);
    write_text("big.gguf.aa", "the beginning");
    check_ends(DS4 "--check-file ", file, 1,
               "will not run: FOLDER/big.gguf.ab is piece 2 of 2 of a file that was cut; join them, in their folder: "
               "cat big.gguf.aa big.gguf.ab > big.gguf",
               &said);
    snprintf(stem, sizeof stem, "%s/set", folder);
    if (split_write(base, stem, &form, &n, &e)) fail_msg("%s", e.msg);
    assert_int_equal(unlink(split_path(path, stem, &form, 2, n)), 0);
    check_ends(CHECK, split_path(path, stem, &form, 1, n), 1,
               "will not run: FOLDER/set-00002-of-00003.gguf: shard 2 of 3 is missing; get it into the same folder",
               &said);
    has(&said, "set-00001-of-00003.gguf (only this shard was looked at)\n");
    assert_null(strstr(str_c(&said), "memory"));
    assert_null(strstr(str_c(&said), "group "));
    assert_int_equal(link(split_path(path, stem, &form, 3, n), split_path(other, stem, &form, 2, n)), 0);
    check_ends(CHECK, split_path(path, stem, &form, 1, n), 1,
               "will not run: FOLDER/set-00003-of-00003.gguf: shards 2 and 3 are the same file "
               "(set-00002-of-00003.gguf)",
               &said);
    snprintf(file, sizeof file, "%s/file.gguf", folder);
    str_free(&said);
}

/* A problem that the last line tells has no line of its own; keys that are ignored are named, up to three. */
static void in_short(void **state)
{
    static const struct forge_edit edits[] = {
        {T_DROP, "blk.2.attn_q_b"}, {KEY_FILL, .text = "deepseek4.odd", .n = 5}, {FORGE_END}};
    struct str said = {0};
    forge_write(base, file, edits, 3);
    refused("blk.2.attn_q_b.weight is missing", &said);
    assert_null(strstr(str_c(&said), "\nproblem"));
    forge_write(base, file, edits + 1, 2);
    check_ends(CHECK, file, 0, "will run", &said);
    has(&said, "\nignored         key deepseek4.");
    has(&said, "key deepseek4.odd0, key deepseek4.odd1, key deepseek4.odd2, 2 more keys\n");
    str_free(&said);
}

/* The table has the name of a type that only another program reads, as the sentence has it. */
static void fork_type(void **state)
{
    static const struct forge_edit edits[] = {{T_TYPE, "blk.2.ffn_down_exps.weight", 139},
                                              {T_TYPE, "blk.3.ffn_down_exps.weight", 499}};
    struct str said = {0}, line = {0};
    forge_write(base, file, edits, COUNT(edits));
    str_printf(&line, CHECK "%s", file);
    assert_int_equal(shell_run(str_c(&line), &said), 1);
    has(&said, ", IQ4_K 1, type 499 1\n");
    str_clear(&line);
    str_printf(&line, TEST_BUILD "/ds4-gguf inspect %s | grep -F 'blk.2.ffn_down_exps.weight'", file);
    shell_expect(str_c(&line), 0, " IQ4_K ");
    json_t *j = checked(file, 1), *routed = json_object_get(json_object_get(j, "census"), "routed experts");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(routed, "types"), "IQ4_K")), 1);
    json_decref(j);
    str_free(&line);
    str_free(&said);
}

/* Many tensors with one fault are one problem: text, JSON and a start say the same sentence. */
static void pruned_in_part(void **state)
{
    static const struct forge_edit edits[] = {{T_DIM, "blk.2.ffn_gate_exps.weight", 6, .at = 2},
                                              {T_DIM, "blk.2.ffn_up_exps.weight", 6, .at = 2},
                                              {T_DIM, "blk.2.ffn_down_exps.weight", 6, .at = 2},
                                              {T_DIM, "blk.3.ffn_gate_exps.weight", 6, .at = 2}};
    static const char sentence[] = "blk.2 has 6 experts in ffn_gate_exps and 8 in its router, and so differ 3 more "
                                   "tensors: pruned only in part" FAULTY V4_FORMS;
    struct str said = {0}, line = {0};
    forge_write(base, file, edits, COUNT(edits));
    str_printf(&line, "will not run: FOLDER/file.gguf: %s", sentence);
    check_ends(CHECK, file, 1, str_c(&line), &said);
    assert_null(strstr(str_c(&said), "\nproblem"));
    json_t *j = checked(file, 1);
    assert_non_null(strstr(json_string_value(json_object_get(j, "why_not")), sentence));
    json_decref(j);
    str_clear(&line);
    str_printf(&line, "ds4: FOLDER/file.gguf: %s", sentence);
    check_ends(DS4 "-p hi -m ", file, 1, str_c(&line), &said);
    str_free(&line);
    str_free(&said);
}

/* Files of the other family, of which a check needs to look at values. */
static void of_qwen(void **state)
{
    static const struct {
        struct forge_edit edit;
        const char *last;
    } cases[] = {
        {{T_POKE, "blk.0.hc_attn_norm.weight", 0, .at = 0, .n = 1024},
         "norm weights of this file are not stored as 1+w: those of blk.0.hc_attn_norm.weight lie around 0, "
         "where 1 is right" FAULTY QWEN_FORMS},
        {{T_POKE, "blk.0.ssm_a", 0x3f, .at = 3, .n = 1},
         "blk.0.ssm_a holds positive values; expected -exp(A_log)" FAULTY QWEN_FORMS},
        {{T_DROP, "per_layer_token_embd"},
         "per_layer_token_embd.weight (also looked for ple_ngram_embd) is missing: this is the n-gram table, which is "
         "published in a file of its own; get that from the same place and give it second: -m MODEL -m TABLE (to check "
         "them: --check-file MODEL --check-file TABLE)"},
    };
    struct str said = {0}, last = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        forge_write(qwen, file, &cases[i].edit, 1);
        str_clear(&last);
        str_printf(&last, "will not run: FOLDER/file.gguf: %s", cases[i].last);
        check_ends(CHECK, file, 1, str_c(&last), &said);
    }
    str_free(&said);
    str_free(&last);
}

/* What a download leaves that was not finished in a file of its full size. */
static void unfinished(void **state)
{
    struct str said = {0};
    static const struct forge_edit norm = {T_POKE, "blk.2.attn_norm.weight", 0, .at = 0, .n = 256};
    static const struct forge_edit biases = {T_POKE, "blk.2.exp_probs_b.bias", 0, .at = 0, .n = 32};
    char last[300];
    struct gguf *g;
    struct err e = {0};
    forge_write(base, file, &norm, 1);
    if (gguf_open(file, &g, &e)) fail_msg("%s", e.msg);
    snprintf(
        last, sizeof last,
        "will not run: FOLDER/file.gguf: 256 bytes of zeros from byte %llu on (blk.2.attn_norm.weight): the download "
        "was not finished; continue it or get it again",
        (unsigned long long)gguf_tensor_find(g, "blk.2.attn_norm.weight", 22)->offset);
    gguf_close(g);
    check_ends(CHECK, file, 1, last, &said);
    has(&said, "\ndamage          zeros in the scales");
    assert_null(strstr(str_c(&said), "\nproblem ")); /* the last line tells it */
    forge_write(base, file, &biases, 1);
    check_ends(CHECK, file, 0, "will run", &said);
    str_free(&said);
}

static void does_not_fit(const char *options, const char *why)
{
    struct str said = {0}, line = {0};
    str_printf(&line, DS4 "%s --check-file %s", options, base);
    assert_int_equal(shell_run(str_c(&line), &said), 1);
    has(&said, ": this does not fit\n");
    has(&said, "\nwill not run: this machine has too little memory: ");
    has(&said, why);
    str_free(&said);
    str_free(&line);
}

/* What is too much is told: the context, with one that fits, or what stays in memory with any. */
static void too_large(void **state)
{
    struct str said = {0};
    char options[60];
    does_not_fit("--memory 0.01",
                 "; it is neither the weights, which take 0.00 GiB, nor the context, but what computing needs");
    assert_int_equal(shell_run(DS4 "--json --ctx 1048576 --check-file $BASE", &said), 0);
    json_t *j = json_loads(str_c(&said), 0, NULL);
    const json_int_t needed = json_integer_value(json_object_get(json_object_get(j, "memory"), "needed"));
    snprintf(options, sizeof options, "--ctx 1048576 --memory %.5f", 0.85 * (double)needed / (1 << 30));
    does_not_fit(options, " available; the context of 1048576 tokens is too large: --ctx ");
    json_decref(j);
    str_free(&said);
}

static void wrong_use(void **state)
{
    shell_expect(CHECK "2>&1", 2, "no file given");
    shell_expect(DS4 "--check-file x -m y 2>&1", 2, "leave out -m");
    shell_expect(DS4 "-m y --json 2>&1", 2, "--json is for --check-file");
    shell_expect(DS4 "--check-file x --session y 2>&1", 2, "--session is for prompts and chats");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file),    cmocka_unit_test(other_form),     cmocka_unit_test(any_shard),
        cmocka_unit_test(as_json),      cmocka_unit_test(precision),      cmocka_unit_test(oddities),
        cmocka_unit_test(broken_files), cmocka_unit_test(all_problems),   cmocka_unit_test(not_models),
        cmocka_unit_test(in_short),     cmocka_unit_test(pruned_in_part), cmocka_unit_test(fork_type),
        cmocka_unit_test(of_qwen),      cmocka_unit_test(unfinished),     cmocka_unit_test(too_large),
        cmocka_unit_test(wrong_use),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
