/* ds4-gguf synth as a program: the same bytes on any number of threads, values of the right size, shapes and keys as
 * set, models that run, memory that does not grow with the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../support/model_run.h"
#include "../support/quant_vectors.h"
#include "../support/shell_run.h"
#include "../support/temp_files.h"
#include "base/file.h"
#include "base/mem.h"
#include "dialect/canonical.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

static char folder[TEMP_PATH];

static int set_up(void **state)
{
    temp_folder(folder);
    return 0;
}

static int tear_down(void **state)
{
    return temp_remove(folder);
}

/* Writes FOLDER/name and puts its path into path. */
static void synth(const char *name, const char *options, char path[128])
{
    char command[512];
    snprintf(path, 128, "%s/%s.gguf", folder, name);
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf synth --preset tiny %s -o %s 2>/dev/null", options, path);
    assert_int_equal(system(command), 0);
}

static uint64_t checksum(const char *path)
{
    char *data;
    size_t n;
    struct err e = {0};
    assert_int_equal(file_read(path, 1 << 26, &data, &n, &e), 0);
    const uint64_t sum = vec_fnv(data, n);
    mem_free(data);
    return sum;
}

/* The threads share rows of small models in another way each. */
static void same_bytes_on_any_threads(void **state)
{
    static const char *const options[] = {"--quant q2", "--quant mxfp4 --router zipf", "--quant f16 --seed 2"};
    uint64_t seen[3];
    for (size_t i = 0; i < 3; i++) {
        for (int threads = 1; threads <= 8; threads += threads == 1 ? 1 : 3) {
            char option[96], path[128];
            snprintf(option, sizeof option, "--overwrite %s --threads %d", options[i], threads);
            synth("threads", option, path);
            if (threads == 1) seen[i] = checksum(path);
            assert_true(checksum(path) == seen[i]);
        }
        for (size_t k = 0; k < i; k++) assert_true(seen[k] != seen[i]);
    }
}

/* Speeds of different days are compared on these files: they are to stay what they were when the first were measured.
 */
static void same_bytes_as_ever(void **state)
{
    char path[128];
    synth("ever", "--quant q2", path);
    assert_true(checksum(path) == UINT64_C(0x03d6352cf4499a85));
}

/* Mean and mean square of a tensor's values, all finite; and no row is like the one before. */
static void statistics(const struct gguf *g, const char *name, double *mean, double *square)
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name, strlen(name));
    if (!t) fail_msg("no tensor %s", name);
    const size_t row_bytes = quant_row_bytes(t->type, (int64_t)t->ne[0]), n_rows = (size_t)(t->ne[1] * t->ne[2]);
    const uint8_t *row = gguf_data(g) + t->offset;
    float *x = malloc(t->ne[0] * sizeof *x);
    assert_non_null(x);
    *mean = *square = 0;
    for (size_t r = 0; r < n_rows; r++, row += row_bytes) {
        if (r > 0) assert_memory_not_equal(row, row - row_bytes, row_bytes);
        quant_type(t->type)->decode(row, x, (int64_t)t->ne[0]);
        for (uint64_t i = 0; i < t->ne[0]; i++) {
            assert_true(isfinite(x[i]));
            *mean += x[i];
            *square += (double)x[i] * x[i];
        }
    }
    *mean /= (double)n_rows * (double)t->ne[0];
    *square /= (double)n_rows * (double)t->ne[0];
    free(x);
}

/* Matrices: mean 0 and variance 1 / row length, so that a product keeps the size of its input. */
static void values_keep_the_size(void **state)
{
    static const char *const quants[] = {"q2", "q4", "q8", "mxfp4", "f16"};
    static const struct {
        const char *name;
        double k;
    } matrices[] = {{"output.weight", 256},
                    {"blk.1.attn_q_b.weight", 64},
                    {"blk.0.attn_output_a.weight", 160},
                    {"blk.2.ffn_gate_exps.weight", 256},
                    {"blk.3.ffn_down_exps.weight", 256},
                    {"blk.1.ffn_up_shexp.weight", 256},
                    {"blk.1.ffn_gate_inp.weight", 256}};
    for (size_t q = 0; q < sizeof quants / sizeof quants[0]; q++) {
        char option[32], path[128];
        double mean, square;
        struct gguf *g;
        struct err e = {0};
        snprintf(option, sizeof option, "--quant %s", quants[q]);
        synth(quants[q], option, path);
        assert_int_equal(gguf_open(path, &g, &e), 0);
        for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
            statistics(g, matrices[i].name, &mean, &square);
            const double ratio = square * matrices[i].k;
            if (ratio < 0.9 || ratio > 1.1 || fabs(mean) * sqrt(matrices[i].k) > 0.05)
                fail_msg("%s %s: variance %g of what it should be, mean %g", quants[q], matrices[i].name, ratio, mean);
        }
        statistics(g, "blk.2.attn_norm.weight", &mean, &square);
        assert_true(fabs(mean - 1) < 0.05);
        gguf_close(g);
    }
}

static void experts_of_a_token_differ(void **state)
{
    static const char *const routers[] = {"uniform", "zipf"};
    for (int r = 0; r < 2; r++) {
        char path[128], option[64];
        struct gguf *g;
        struct err e = {0};
        snprintf(option, sizeof option, "--quant q2 --router %s", routers[r]);
        synth(routers[r], option, path);
        assert_int_equal(gguf_open(path, &g, &e), 0);
        const struct gguf_tensor *t = gguf_tensor_find(g, "blk.0.ffn_gate_tid2eid.weight", 29);
        assert_non_null(t);
        int seen[8] = {0};
        for (uint64_t row = 0; row < t->ne[1]; row++) {
            int32_t id[2];
            memcpy(id, gguf_data(g) + t->offset + row * sizeof id, sizeof id);
            assert_true(id[0] != id[1] && id[0] >= 0 && id[0] < 8 && id[1] >= 0 && id[1] < 8);
            seen[id[0]]++, seen[id[1]]++;
        }
        for (int i = 0; i < 8; i++) assert_true(seen[i] > 0);
        gguf_close(g);
    }
}

static void is_recognised(void **state)
{
    char path[128];
    const char *paths[] = {path};
    struct canonical *c;
    struct err e = {0};
    synth("model", "--quant q2 --layers 6", path);
    if (canonical_open(paths, 1, NULL, &c, &e)) fail_msg("%s", e.msg);
    assert_int_equal(canonical_n_layers(c), 6);
    assert_int_equal(canonical_int_at(c, "attention.compress_ratios", 5), 4);
    canonical_close(c);
}

/* ---------------------------------------------------------------- --set */

/* A key of each kind of shape, a tensor that follows it, and the tensor's shape by hand (spec deepseek-v4 2.3): tiny
 * has D 256, H 4, d 80, Rq 64, Ro 32, G 2, E 8, K 2, F 256, IH 2, ID 32, n 4, V 1024 and ratios 0 4 128 4. */
static const struct shape_case {
    const char *key, *value, *tensor;
    uint64_t ne[3];
} shape_cases[] = {
    {"block_count", "6", "blk.5.indexer.proj.weight", {256, 2, 1}},
    {"embedding_length", "512", "blk.0.attn_q_a.weight", {512, 64, 1}},
    {"vocab_size", "273", "token_embd.weight", {256, 273, 1}},
    {"attention.head_count", "8", "blk.0.attn_q_b.weight", {64, 640, 1}},
    {"attention.key_length", "144", "blk.0.attn_kv.weight", {256, 144, 1}},
    {"attention.q_lora_rank", "96", "blk.0.attn_q_b.weight", {96, 320, 1}},
    {"attention.output_lora_rank", "64", "blk.0.attn_output_b.weight", {128, 256, 1}},
    {"attention.output_group_count", "4", "blk.0.attn_output_a.weight", {80, 128, 1}},
    {"attention.compress_ratios", "128,0,4,4", "blk.0.attn_compressor_ape.weight", {80, 128, 1}},
    {"attention.compress_ratios", "4", "blk.0.attn_compressor_kv.weight", {256, 160, 1}},
    {"attention.overlap_ratio", "128", "blk.2.indexer_compressor_ape.weight", {64, 128, 1}},
    {"attention.indexer.head_count", "4", "blk.1.indexer.attn_q_b.weight", {64, 128, 1}},
    {"attention.indexer.key_length", "64", "blk.1.indexer_compressor_kv.weight", {256, 128, 1}},
    {"expert_count", "12", "blk.3.ffn_up_exps.weight", {256, 256, 12}},
    {"expert_used_count", "3", "blk.0.ffn_gate_tid2eid.weight", {3, 1024, 1}},
    {"expert_feed_forward_length", "512", "blk.3.ffn_down_exps.weight", {512, 256, 8}},
    {"expert_shared_count", "2", "blk.0.ffn_gate_shexp.weight", {256, 512, 1}},
    {"expert_shared_feed_forward_length", "320", "blk.0.ffn_down_shexp.weight", {320, 256, 1}},
    {"hash_layer_count", "2", "blk.1.ffn_gate_tid2eid.weight", {2, 1024, 1}},
    {"hyper_connection.count", "2", "blk.0.hc_attn_fn.weight", {512, 8, 1}},
};

/* The file's key says it, under the prefix or without, the tensor has the shape, and the model runs. */
static void shapes_follow_keys(void **state)
{
    for (size_t i = 0; i < sizeof shape_cases / sizeof *shape_cases; i++) {
        const struct shape_case *c = &shape_cases[i];
        char option[160], path[128], key[96], command[300];
        struct gguf *g;
        struct err e = {0};
        int64_t said;
        snprintf(option, sizeof option, "--overwrite --quant q8 --set %s%s=%s", i % 2 ? "deepseek4." : "", c->key,
                 c->value);
        synth("shape", option, path);
        assert_int_equal(gguf_open(path, &g, &e), 0);
        const struct gguf_tensor *t = gguf_tensor_find(g, c->tensor, strlen(c->tensor));
        if (!t) fail_msg("%s: no %s", option, c->tensor);
        for (int d = 0; d < 3; d++)
            if (t->ne[d] != c->ne[d]) fail_msg("%s: %s[%d] is %d", option, c->tensor, d, (int)t->ne[d]);
        snprintf(key, sizeof key, "deepseek4.%s", c->key);
        const struct gguf_kv *kv = gguf_kv_find(g, key);
        assert_true(kv && gguf_i64(kv, 0, &said, &e) == 0 && said == atoi(c->value));
        gguf_close(g);
        snprintf(command, sizeof command, TEST_BUILD "/ds4 -m %s --raw -p abcdefghij -n 2 --temp 0 2>&1", path);
        shell_expect(command, 0, "prefill: ");
    }
}

/* Values that no tensor shows. */
static void values_as_set(void **state)
{
    static const char options[] = "--overwrite --quant f16 --set attention.sliding_window=32 "
                                  "--set attention.indexer.top_k=7 --set deepseek4.rope.freq_base=5000.5 "
                                  "--set rope.scaling.type=none --set swiglu_clamp_exp=1,2,3,4.5,9 "
                                  "--set swiglu_clamp_shexp=6 --set attention.kv_sim_block=0 "
                                  "--set attention.indexer.hadamard=false --set expert_weights_scale=1 "
                                  "--set expert_weights_scale=2.25 --layers 3 --set block_count=4";
    char path[128];
    const char *paths[] = {path};
    struct canonical *c;
    struct err e = {0};
    synth("values", options, path);
    if (canonical_open(paths, 1, NULL, &c, &e)) fail_msg("%s", e.msg);
    assert_int_equal(canonical_n_layers(c), 4); /* the last one counts */
    assert_int_equal(canonical_int(c, "attention.sliding_window"), 32);
    assert_int_equal(canonical_int(c, "attention.indexer.top_k"), 7);
    assert_true(canonical_float(c, "rope.freq_base") == 5000.5);
    assert_true(canonical_float(c, "rope.scaling.factor") == 1);
    assert_true(canonical_float_at(c, "swiglu_clamp_exp", 1) == 2);
    assert_true(canonical_float_at(c, "swiglu_clamp_exp", 3) == 4.5);
    assert_true(canonical_float_at(c, "swiglu_clamp_shexp", 3) == 6);
    assert_int_equal(canonical_int(c, "attention.kv_sim_block"), 0);
    assert_false(canonical_bool(c, "attention.indexer.hadamard"));
    assert_true(canonical_float(c, "expert_weights_scale") == 2.25);
    canonical_close(c);
}

static void check_text(const struct gguf *g, const char *key, const char *text)
{
    struct gguf_str s;
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    assert_true(kv && kv->type == GGUF_STRING && gguf_string(kv, 0, &s, NULL) == 0);
    assert_true(s.n == strlen(text) && memcmp(s.p, text, (size_t)s.n) == 0);
}

static void keys_of_the_user(void **state)
{
    char path[128];
    struct gguf *g;
    struct err e = {0};
    int64_t v;
    double f;
    bool b;
    synth("keys",
          "--quant q8 --set general.name='a name' --set general.author=str:me=you --set my.u=u32:1 "
          "--set my.u=u32:4294967295 --set my.i=i32:-5 --set my.f=f32:0.25 --set my.b=bool:true",
          path);
    assert_int_equal(gguf_open(path, &g, &e), 0);
    check_text(g, "general.name", "a name");
    check_text(g, "general.author", "me=you");
    assert_true(gguf_i64(gguf_kv_find(g, "my.u"), 0, &v, &e) == 0 && v == 4294967295);
    assert_true(gguf_i64(gguf_kv_find(g, "my.i"), 0, &v, &e) == 0 && v == -5);
    assert_true(gguf_f64(gguf_kv_find(g, "my.f"), 0, &f, &e) == 0 && f == 0.25);
    assert_true(gguf_bool(gguf_kv_find(g, "my.b"), 0, &b, &e) == 0 && b);
    gguf_close(g);
}

/* One sentence and a status; nothing is written. */
static void refusals(void **state)
{
    static const struct shell_refusal cases[] = {
        {"--set attention.head_count=6 --set attention.output_group_count=4", 1,
         "tiny: attention.output_group_count = 4 is not supported (only a divisor of the 6 heads)"},
        {"--set rope.dimension_count=15", 1, "rope.dimension_count = 15 is not supported (only an even number"},
        {"--set attention.key_length=72", 1, "attention.key_length = 72 is not supported (only 16 plus a multiple"},
        {"--set attention.value_length=96", 1, "attention.value_length = 96 is not supported (only 80"},
        {"--set attention.indexer.key_length=48", 1, "only a power of two"},
        {"--set expert_used_count=9", 1, "expert_used_count = 9, but the model has 8 experts"},
        {"--dialect nobody", 2,
         "--dialect: 'nobody' is none of those of deepseek4 (ds4, llama.cpp, ik_llama.cpp, early)"},
        {"--types nothing=q8_0", 2, "--types nothing=q8_0 decides no tensor"},
        {"--types _exps=q9_0", 2, "type q9_0 cannot be written; known: random F32"},
        {"--types _exps", 2, "'_exps' is not REGEX=TYPE"},
        {"--set expert_count=0", 1, "expert_count = 0 is not supported (only 1 to 65536)"},
        {"--set hash_layer_count=5", 1, "hash_layer_count = 5 is not supported (only 0 to the 4 blocks)"},
        {"--set attention.compress_ratios=0,4,64,4", 1,
         "attention.compress_ratios[2] = 64 is not supported (only 0, 4"},
        {"--set attention.compress_ratios=0,4", 1, "attention.compress_ratios has 2 entries for 4 blocks"},
        {"--set swiglu_clamp_exp=1,2,3 --layers 5", 1, "swiglu_clamp_exp has 3 entries for 5 blocks"},
        {"--set expert_gating_func=1", 1, "expert_gating_func = 1 is not supported (only 4)"},
        {"--set expert_weights_norm=false", 1, "expert_weights_norm = false is not supported (only true)"},
        {"--set vocab_size=272", 1, "vocab_size = 272 is not supported (only from 273 on"},
        {"--layers 5000", 1, "block_count = 5000 is not supported (only 1 to 4096)"},
        {"--layers x", 2, "--layers: block_count: 'x' is not a whole number from 0"},
        {"--set expert_count=-1", 2, "expert_count: '-1' is not a whole number"},
        {"--set expert_count=1.5", 2, "expert_count: '1.5' is not a whole number"},
        {"--set rope.freq_base=nan", 2, "rope.freq_base: 'nan' is not a number"},
        {"--set attention.compress_ratios=0,", 2, "'0,' is not a list"},
        {"--set attention.indexer.hadamard=1", 2, "'1' is not true or false"},
        {"--set rope.scaling.type=linear", 2, "'linear' is not yarn or none"},
        {"--set expert_count", 2, "'expert_count' is not KEY=VALUE"},
        {"--set =1", 2, "a key has 1 to 127 letters"},
        {"--set head_cout=4", 2, "there is no key head_cout; near it are attention.head_count, "},
        {"--set layers=4", 2, "near it are nextn_predict_layers, hash_layer_count"},
        {"--set my.key=u32:-1", 2, "my.key: '-1' is no value of type u32"},
        {"--set split.count=u32:3", 2, "split.count cannot be set"},
        {"--set general.architecture=str:llama", 2, "general.architecture cannot be set"},
        {"--router pareto", 2, "'pareto' is none of uniform|zipf"},
        {"--quant q3", 2, "'q3' is not q2, q4, q8, mxfp4 or f16"},
        {"--preset huge", 2, "'huge' is not tiny, flash or pro"},
    };
    char command[512], out[128];
    snprintf(out, sizeof out, "%s/refused.gguf", folder);
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf synth --preset tiny --quant q8 -o %s", out);
    shell_refuses(command, out, cases, sizeof cases / sizeof *cases);
}

/* Every type that can be multiplied can be made up, with values that keep the size of what passes through. */
static void every_type(void **state)
{
    int n = 0;
    for (uint32_t type = 0; type < 64; type++) {
        const struct quant_type *q = quant_type(type);
        char options[96], path[128], rule[32];
        double mean, square;
        struct gguf *g;
        struct err e = {0};
        if (!q || !q->decode || type == QT_I32 || type == QT_Q8_1 || type == QT_Q8_K) continue;
        snprintf(rule, sizeof rule, "%s", q->name);
        snprintf(options, sizeof options, "--quant q8 --overwrite --types '_exps=%s'", rule);
        synth("type", options, path);
        if (gguf_open(path, &g, &e)) fail_msg("%s", e.msg);
        assert_int_equal(gguf_tensor_find(g, "blk.1.ffn_up_exps.weight", 24)->type, type);
        assert_int_equal(gguf_tensor_find(g, "blk.1.attn_q_b.weight", 21)->type, QT_Q8_0);
        statistics(g, "blk.1.ffn_up_exps.weight", &mean, &square);
        if (fabs(mean) > 0.01 || fabs(square * 256 - 1) > 0.2) fail_msg("%s: %g, %g", q->name, mean, square * 256);
        gguf_close(g);
        n++;
    }
    assert_true(n >= 25);
}

/* The first rule that fits decides; "random" takes many types, by the seed. */
static void types_by_rules(void **state)
{
    char path[128];
    struct gguf *g;
    struct err e = {0};
    uint64_t kinds = 0;
    int n = 0;
    synth("rules", "--quant q8 --types 'blk.2.ffn_up_exps=q4_k,_exps=random' --types attn_q=q5_0", path);
    if (gguf_open(path, &g, &e)) fail_msg("%s", e.msg);
    assert_int_equal(gguf_tensor_find(g, "blk.2.ffn_up_exps.weight", 24)->type, QT_Q4_K);
    assert_int_equal(gguf_tensor_find(g, "blk.2.attn_q_a.weight", 21)->type, QT_Q5_0);
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        if (t->n_dims == 3) kinds |= UINT64_C(1) << t->type;
        if (t->n_dims == 1) assert_int_equal(t->type, QT_F32);
    }
    for (; kinds; kinds &= kinds - 1) n++;
    assert_true(n >= 6);
    gguf_close(g);
}

/* The logits after a few tokens, as bytes; the caller frees them. */
static char *logits_of(const char *path, size_t *n)
{
    char command[400], out[128], *data = NULL;
    struct err e = {0};
    snprintf(out, sizeof out, "%s/logits", folder);
    snprintf(command, sizeof command,
             TEST_BUILD "/ds4 -m %s --token-ids 1,20,300,4,5 --logits-out %s -c 32 -t 1 2>/dev/null", path, out);
    if (system(command) || file_read(out, 1 << 22, &data, n, &e)) fail_msg("%s: no logits", path);
    return data;
}

static void same_logits(const char *a, const char *b)
{
    size_t n, m;
    char *x = logits_of(a, &n), *y = logits_of(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    mem_free(x);
    mem_free(y);
}

/* Another maker's names and keys, and shards: the same values. */
static void dialects_and_shards(void **state)
{
    static const char *const forms[][2] = {
        {"", "llama.cpp"}, {"", "ik_llama.cpp"}, {"", "early"}, {"--arch qwen4exp", "llama.cpp"}};
    char path[128], other[128], options[160];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(options, sizeof options, "%s --quant q8 --overwrite --types .=random", forms[i][0]);
        synth("as_ds4", options, path);
        snprintf(options, sizeof options, "%s --quant q8 --overwrite --types .=random --dialect %s", forms[i][0],
                 forms[i][1]);
        synth("other", options, other);
        assert_true(checksum(path) != checksum(other));
        same_logits(path, other);
        snprintf(options, sizeof options, "%s --quant q8 --overwrite --types .=random --split 7", forms[i][0]);
        synth("shards", options, other);
        snprintf(other, sizeof other, "%s/shards-00004-of-00007.gguf", folder);
        same_logits(path, other);
    }
}

/* One line, of however many shards. */
static void shards_are_told_once(void **state)
{
    struct str line = {0}, said = {0}, want = {0};
    str_printf(&line, TEST_BUILD "/ds4-gguf synth --preset tiny --quant q8 --split 40 -o %s/many.gguf 2>&1", folder);
    assert_int_equal(shell_run(str_c(&line), &said), 0);
    str_printf(&want, "ds4-gguf: wrote %s/many-00001-of-00040.gguf to %s/many-00040-of-00040.gguf, 40 shards, ", folder,
               folder);
    if (strncmp(str_c(&said), str_c(&want), want.n) || strchr(str_c(&said), '\n') != said.p + said.n - 1)
        fail_msg("%s", str_c(&said));
    str_free(&want);
    str_free(&said);
    str_free(&line);
}

/* A file's records with data of our own: by way of the records alone, too, and of a file that was cut off. */
static void like_a_file(void **state)
{
    char path[128], other[128], headers[128], command[900];
    struct gguf *a, *b;
    struct err e = {0};
    synth("real", "--quant q2 --arch qwen4exp --seed 7", path);
    snprintf(headers, sizeof headers, "%s/headers.gguf", folder);
    snprintf(other, sizeof other, "%s/like.gguf", folder);
    snprintf(command, sizeof command,
             TEST_BUILD "/ds4-gguf synth --like %s --headers -o %s 2>/dev/null && " TEST_BUILD
                        "/ds4-gguf synth --like %s -o %s 2>/dev/null",
             path, headers, headers, other);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command,
             TEST_BUILD "/ds4-gguf inspect %s 2>&1 | grep -F 'headers.gguf: it has records but no weights, as ds4-gguf "
                        "synth --headers writes them: ds4-gguf synth --like FILE makes a whole file of it, "
                        "with random weights; if it is a download, continue it'",
             headers);
    shell_expect(command, 0, "ds4-gguf");
    if (gguf_open(path, &a, &e) || gguf_open(other, &b, &e)) fail_msg("%s", e.msg);
    assert_int_equal(gguf_data_start(a), gguf_data_start(b));
    assert_memory_equal(gguf_data(a), gguf_data(b), gguf_data_start(a));
    assert_true(gguf_size(b) <= gguf_size(a) && gguf_size(b) + 32 > gguf_size(a));
    for (uint64_t i = 0; i < gguf_n_tensors(a); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(a, i);
        if (t->bytes > 8) assert_memory_not_equal(gguf_data(a) + t->offset, gguf_data(b) + t->offset, t->bytes);
    }
    gguf_close(a);
    gguf_close(b);
    size_t n;
    mem_free(logits_of(other, &n)); /* it runs */
    assert_int_equal(truncate(path, 900000), 0);
    const uint64_t whole = checksum(other);
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf synth --overwrite --like %s -o %s 2>/dev/null", path,
             other);
    assert_int_equal(system(command), 0);
    assert_true(checksum(other) == whole);
    shell_expect(TEST_BUILD "/ds4-gguf synth --like x --preset tiny -o y 2>&1", 2, "--like takes shapes and types");
    shell_expect(TEST_BUILD "/ds4-gguf synth --headers -o y 2>&1", 2, "--headers is for --like FILE");
}

/* Rows that do not fill blocks get the type that the converter takes, and a note. */
static void rows_that_do_not_fit(void **state)
{
    char command[300], path[128];
    struct gguf *g;
    struct err e = {0};
    snprintf(path, sizeof path, "%s/fit.gguf", folder);
    snprintf(command, sizeof command,
             TEST_BUILD "/ds4-gguf synth --preset tiny --quant q2 --set expert_feed_forward_length=640 "
                        "--set embedding_length=300 -o %s 2>&1",
             path);
    shell_expect(command, 0, "note: ffn_down_exps.weight: rows of 640 do not fit Q2_K, written as Q8_0");
    assert_int_equal(gguf_open(path, &g, &e), 0);
    assert_int_equal(gguf_tensor_find(g, "blk.2.ffn_down_exps.weight", 26)->type, QT_Q8_0);
    assert_int_equal(gguf_tensor_find(g, "blk.2.ffn_gate_exps.weight", 26)->type, QT_F16);
    gguf_close(g);
}

/* ---------------------------------------------------------------- running */

/* MXFP4 experts, other types elsewhere: as the judge computes. Roundings of stored rows are off, but those of
 * activations stay: where the last bit of a value decides one, a row differs a little more (docs/numerics.md). */
static void mxfp4_runs(void **state)
{
    enum { N = 40, V = 1024 };
    static double want[N * V], got[N * V];
    int32_t ids[N];
    char path[128];
    struct gguf *g;
    struct err e = {0};
    struct model_run r;
    for (int i = 0; i < N; i++) ids[i] = (i * 397 + 5) % V;
    synth("mxfp4", "--overwrite --quant mxfp4", path);
    assert_int_equal(gguf_open(path, &g, &e), 0);
    for (int l = 0; l < 4; l++) {
        static const char *const parts[] = {"gate", "up", "down"};
        for (int i = 0; i < 3; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", l, parts[i]);
            assert_int_equal(gguf_tensor_find(g, name, strlen(name))->type, QT_MXFP4);
        }
    }
    gguf_close(g);
    model_run_open(&r, path, &(struct model_run_options){.backend = "ref", .kv_sim_off = true});
    model_run_all(&r, ids, N, 16, want);
    model_run_close(&r);
    model_run_open(&r, path, &(struct model_run_options){.backend = "cpu", .threads = 2, .kv_sim_off = true});
    model_run_all(&r, ids, N, 7, got);
    model_run_close(&r);
    int n_off = 0;
    for (int t = 0; t < N; t++) {
        double worst = 0, top = 0;
        for (int i = t * V; i < (t + 1) * V; i++) {
            worst = fmax(worst, fabs(got[i] - want[i]));
            top = fmax(top, fabs(want[i]));
        }
        n_off += worst > 1e-4 * top;
        assert_true(top > 0.1 && worst <= 0.05 * top);
    }
    assert_true(n_off <= N / 4);
}

/* ---------------------------------------------------------------- large files */

/* Half a gigabyte into nothing: what is in memory is rows and the vocabulary. */
static void memory_is_bounded(void **state)
{
    struct rusage use;
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        execl(TEST_BUILD "/ds4-gguf", "ds4-gguf", "synth", "--preset", "pro", "--quant", "q2", "--layers", "1", "--set",
              "expert_count=16", "--set", "vocab_size=2000", "-o", "/dev/null", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(wait4(pid, &status, 0, &use), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    print_message("%ld kB\n", use.ru_maxrss);
    assert_true(use.ru_maxrss < 200000);
}

/* What cannot be written ends the work at once, not when all of it is done. */
static void full_disk(void **state)
{
    shell_expect(TEST_BUILD "/ds4-gguf synth --preset flash --quant q8 -o /dev/full 2>&1", 1, "cannot write");
}

/* A line on a terminal, which is gone at the end; nothing where nobody looks. */
static void progress(void **state)
{
    char command[400], path[128];
    struct str said = {0};
    snprintf(path, sizeof path, "%s/progress.gguf", folder);
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf synth --overwrite --preset tiny --quant q8 -o %s", path);
    struct str line = {0};
    str_printf(&line, "%s 2>&1", command);
    assert_int_equal(shell_run(str_c(&line), &said), 0);
    assert_null(strchr(str_c(&said), '\r'));
    assert_null(strchr(str_c(&said), '%'));
    str_clear(&line);
    str_printf(&line, "script -qec '%s' /dev/null 2>&1", command);
    if (shell_run("script -qec true /dev/null 2>&1", &said) == 0) {
        assert_int_equal(shell_run(str_c(&line), &said), 0);
        const char *first = strstr(str_c(&said), "\r0 % of 9.7 MB: token_embd.weight\033[K");
        if (!first || !strstr(first, "\r\033[Kds4-gguf: wrote ")) fail_msg("%s", str_c(&said));
    }
    str_free(&line);
    str_free(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_on_any_threads),
        cmocka_unit_test(same_bytes_as_ever),
        cmocka_unit_test(values_keep_the_size),
        cmocka_unit_test(experts_of_a_token_differ),
        cmocka_unit_test(is_recognised),
        cmocka_unit_test(shapes_follow_keys),
        cmocka_unit_test(values_as_set),
        cmocka_unit_test(keys_of_the_user),
        cmocka_unit_test(refusals),
        cmocka_unit_test(every_type),
        cmocka_unit_test(dialects_and_shards),
        cmocka_unit_test(shards_are_told_once),
        cmocka_unit_test(like_a_file),
        cmocka_unit_test(types_by_rules),
        cmocka_unit_test(rows_that_do_not_fit),
        cmocka_unit_test(mxfp4_runs),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(progress),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
