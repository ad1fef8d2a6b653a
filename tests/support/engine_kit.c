/* Model files and expected logits are made once per program, when they are first wanted. */
#include "engine_kit.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "quant/quant.h"
#include "shell_run.h"
#include "synth_model.h"
#include "synth_qwen38.h"
#include "temp_files.h"

static struct {
    char path[KIT_MODEL_COUNT][TEMP_PATH];
    float *truth[KIT_MODEL_COUNT];
    int32_t tokens[KIT_TOKENS];
} kit;

uint64_t kit_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

int kit_below(uint64_t *state, int n)
{
    return (int)(kit_random(state) >> 33) % n;
}

const int32_t *kit_tokens(void)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    if (kit.tokens[0] == 0)
        for (int i = 0; i < KIT_TOKENS; i++) kit.tokens[i] = 1 + kit_below(&state, KIT_VOCAB - 1);
    return kit.tokens;
}

static struct synth_shape shape_of(enum kit_model m)
{
    struct synth_shape s = m == KIT_Q2 ? synth_wide() : synth_tiny();
    s.embed = s.dense = m == KIT_F16 ? QT_F16 : QT_Q8_0;
    s.gate = s.up = s.down = m == KIT_F16 ? QT_F16 : m == KIT_Q8 ? QT_Q8_0 : QT_Q2_K;
    s.rest = m == KIT_F16 ? QT_F16 : QT_F32;
    return s;
}

static int qwen_write(const char *path, struct err *e)
{
    struct synth_qwen38 s = synth_qwen38_tiny();
    assert_int_equal(s.V, KIT_VOCAB);
    s.type = s.table = QT_Q8_0, s.experts = QT_MXFP4;
    s.rho = 32, s.P = 1, s.Hi = 8, s.B = 32, s.eos = 7, s.draft = true;
    return synth_qwen38_write(path, &s, e);
}

static int nine_write(const char *path)
{
    struct str command = {0}, said = {0};
    str_printf(&command,
               TEST_BUILD "/ds4-gguf synth --preset tiny --quant q8 --set vocab_size=%d --types '"
                          "blk.[02].ffn_gate_exps=iq3_xxs,blk.[02].ffn_up_exps=iq4_xs,blk.[02].ffn_down_exps=q3_k,"
                          "ffn_gate_exps=iq2_xs,ffn_up_exps=iq1_m,ffn_down_exps=iq4_nl,"
                          "shexp=mxfp4,attn_q=q6_k,attn_(kv|output)=q5_k' -t 1 --overwrite -o %s 2>&1",
               KIT_VOCAB, path);
    const int rc = shell_run(str_c(&command), &said);
    if (rc) print_error("%s\n%s\n", str_c(&command), str_c(&said));
    str_free(&command);
    str_free(&said);
    return rc;
}

const char *kit_path(enum kit_model m)
{
    struct err e = {0};
    if (!kit.path[m][0] && m == KIT_NINE) {
        temp_file(kit.path[m]);
        assert_int_equal(nine_write(kit.path[m]), 0);
    }
    if (!kit.path[m][0] && m == KIT_QWEN) {
        temp_file(kit.path[m]);
        if (qwen_write(kit.path[m], &e)) fail_msg("%s", e.msg);
    }
    if (!kit.path[m][0]) {
        const struct synth_shape s = shape_of(m);
        assert_int_equal(s.V, KIT_VOCAB);
        temp_file(kit.path[m]);
        if (synth_deepseek4(kit.path[m], &s, &e)) fail_msg("%s", e.msg);
    }
    return kit.path[m];
}

void kit_clean(void)
{
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        if (kit.path[m][0]) temp_remove(kit.path[m]);
        kit.path[m][0] = 0;
        mem_free(kit.truth[m]);
        kit.truth[m] = NULL;
    }
}

int kit_teardown(void **state)
{
    kit_clean();
    return 0;
}

static void silent(void *arg, int level, const char *subject, const char *text)
{
    (void)arg, (void)level, (void)subject, (void)text;
}

struct ds4_options kit_options(enum kit_model m)
{
    static const char *paths[KIT_MODEL_COUNT];
    paths[m] = kit_path(m);
    return (struct ds4_options){.model_paths = &paths[m],
                                .n_model_paths = 1,
                                .backend = "cpu",
                                .threads = 2,
                                .sessions = 8,
                                .ctx = 4096,
                                .anchor_bytes = 4 << 20,
                                .draft = m == KIT_QWEN,
                                .log = silent};
}

ds4_engine *kit_open(const struct ds4_options *o)
{
    struct ds4_error e = {0};
    ds4_engine *g = NULL;
    if (ds4_engine_open(o, &g, &e)) fail_msg("%s", e.message);
    return g;
}

ds4_session *kit_session(ds4_engine *g)
{
    struct ds4_error e = {0};
    ds4_session *s = NULL;
    if (ds4_session_create(g, 4096, &s, &e)) fail_msg("%s", e.message);
    return s;
}

void kit_submit(ds4_session *s, const int32_t *tokens, int n)
{
    struct ds4_error e = {0};
    if (ds4_session_submit(s, tokens, n, &e)) fail_msg("%s", e.message);
}

void kit_sync(ds4_session *s, const int32_t *tokens, int n)
{
    struct ds4_error e = {0};
    if (ds4_session_sync(s, tokens, n, NULL, NULL, NULL, &e)) fail_msg("%s", e.message);
}

void kit_rewind(ds4_session *s, int pos)
{
    struct ds4_error e = {0};
    if (ds4_session_rewind(s, pos, &e)) fail_msg("%s", e.message);
}

/* The engine that a session belongs to is known to its test only; a sync of the whole history drives it. */
void kit_eval(ds4_session *s, const int32_t *tokens, int n)
{
    const int length = ds4_session_length(s);
    int32_t *all = mem_alloc((size_t)(length + n) * sizeof *all);
    memcpy(all, ds4_session_tokens(s), (size_t)length * sizeof *all);
    memcpy(all + length, tokens, (size_t)n * sizeof *all);
    kit_sync(s, all, length + n);
    mem_free(all);
}

const float *kit_truth(enum kit_model m, int n)
{
    const size_t row = KIT_VOCAB * sizeof(float);
    if (!kit.truth[m]) {
        struct ds4_options o = kit_options(m);
        o.threads = 1;
        ds4_engine *g = kit_open(&o);
        ds4_session *s = kit_session(g);
        kit.truth[m] = mem_alloc(KIT_TRUTH * row);
        for (int i = 0; i < KIT_TRUTH; i++) {
            kit_submit(s, kit_tokens() + i, 1);
            assert_int_equal(ds4_engine_step(g, NULL), 0);
            assert_int_equal(ds4_session_collect(s, NULL, NULL), DS4_DONE);
            memcpy(kit.truth[m] + (size_t)i * KIT_VOCAB, ds4_session_logits(s), row);
        }
        ds4_session_free(s);
        ds4_engine_close(g);
    }
    return kit.truth[m] + (size_t)(n - 1) * KIT_VOCAB;
}

void kit_check(const ds4_session *s, enum kit_model m, int n)
{
    assert_int_equal(ds4_session_length(s), n);
    assert_memory_equal(ds4_session_tokens(s), kit_tokens(), (size_t)n * sizeof(int32_t));
    assert_non_null(ds4_session_logits(s));
    assert_memory_equal(ds4_session_logits(s), kit_truth(m, n), KIT_VOCAB * sizeof(float));
}
