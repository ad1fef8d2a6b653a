/* Answers with calls, written by the frames of both families and read by the parser of what models say: the same
 * reasoning, text, names and arguments come out, and the block that the parser keeps is what was written. Random
 * arguments of pieces that are likely to hurt: closing tags, entities, quotes, white space, control characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/str.h"
#include "models/deepseek4/deepseek4_prompt.h"
#include "models/qwen38/qwen38_prompt.h"
#include "text/answer.h"
#include "text/json_text.h"
#include "../support/prompt_shown.h"

enum { MAX_CALLS = 3, ROUNDS = 1500 };

static uint64_t rng = 1;

static unsigned draw(unsigned n)
{
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return (unsigned)(rng * 0x2545F4914F6CDD1D >> 40) % n;
}

/* ------------------------------------------------------------------------------------------------ making arguments */

/* "&lt;" and what follows '<' in a closing tag are never neighbours here by chance: DSML cannot tell them from an
 * escaped tag (spec prompt-formats 4.2). The other family can, and has more pieces. Nor does a bare end tag stand right
 * before a tag of the structure: that is read as a misspelt end (docs/tool-calls.md). */
static const char *const pieces[] = {"a",
                                     "\n",
                                     " ",
                                     "é",
                                     "\"",
                                     "\\",
                                     "\0",
                                     "\x1b",
                                     "<b>",
                                     "</function>",
                                     "x</｜DSML｜invoke>",
                                     "</｜DSML｜parameter>",
                                     "<tool_call>",
                                     "]",
                                     "1",
                                     "&lt;",
                                     "&amp;",
                                     "&",
                                     "</parameter>",
                                     "&lt;/parameter>",
                                     "&amp;lt;/parameter>",
                                     "amp;"};

static void add_string(struct str *json)
{
    struct str s = {0};
    for (unsigned k = draw(6); k > 0; k--) {
        const char *const piece = pieces[draw(sizeof pieces / sizeof *pieces)];
        str_add(&s, piece, *piece ? strlen(piece) : 1);
    }
    json_text_quote(json, str_c(&s), s.n);
    str_free(&s);
}

static void add_value(struct str *json, int depth)
{
    static const char *const scalars[] = {"null", "true", "false", "-1.50e3", "0", "12345678901234567890"};
    const unsigned kind = draw(depth > 0 ? 4 : 2);
    if (kind == 0) {
        str_puts(json, scalars[draw(6)]);
    } else if (kind == 1) {
        add_string(json);
    } else {
        const bool object = kind == 2;
        str_puts(json, object ? "{" : "[");
        for (unsigned i = 0, n = draw(3); i < n; i++) {
            if (i > 0) str_puts(json, ",");
            if (object) str_printf(json, "\"k%u\":", i);
            add_value(json, depth - 1);
        }
        str_puts(json, object ? "}" : "]");
    }
}

/* Members s0.. are strings, as the schema declares; j0.. are other values that a schema says nothing about. */
static void add_arguments(struct str *json)
{
    str_puts(json, "{");
    for (unsigned i = 0, n = draw(5); i < n; i++) {
        if (i > 0) str_puts(json, ",");
        if (i < 2) {
            str_printf(json, "\"s%u\":", i);
            add_string(json);
        } else {
            str_printf(json, "\"j%u>&gt;\":[", i);
            add_value(json, 2);
            str_puts(json, "]");
        }
    }
    str_puts(json, "}");
}

/* ------------------------------------------------------------------------------------------------ reading answers */

struct heard {
    struct str reasoning, text, name[MAX_CALLS], arguments[MAX_CALLS];
    size_t n_calls, n_ended;
};

static void hear(void *arg, enum answer_kind kind, const char *bytes, size_t n)
{
    struct heard *const h = arg;
    switch (kind) {
    case ANSWER_REASONING:
        str_add(&h->reasoning, bytes, n);
        break;
    case ANSWER_TEXT:
        str_add(&h->text, bytes, n);
        break;
    case ANSWER_CALL_BEGIN:
        assert_true(h->n_calls < MAX_CALLS);
        str_add(&h->name[h->n_calls++], bytes, n);
        break;
    case ANSWER_CALL_ARGUMENTS:
        str_add(&h->arguments[h->n_calls - 1], bytes, n);
        break;
    case ANSWER_CALL_END:
        h->n_ended++;
        break;
    }
}

static void heard_free(struct heard *h)
{
    str_free(&h->reasoning);
    str_free(&h->text);
    for (int i = 0; i < MAX_CALLS; i++) {
        str_free(&h->name[i]);
        str_free(&h->arguments[i]);
    }
}

static void expect_same(const struct str *got, struct bpe_text want)
{
    assert_int_equal(got->n, want.n);
    assert_memory_equal(str_c(got), want.p, want.n);
}

static void expect_same_json(const struct str *got, struct bpe_text want)
{
    struct str a = {0}, b = {0};
    const struct json_text v = json_text_read(str_c(got), got->n);
    assert_int_equal(v.kind, JSON_TEXT_OBJECT);
    json_text_minified(&a, v);
    json_text_minified(&b, json_text_read(want.p, want.n));
    assert_string_equal(str_c(&a), str_c(&b));
    str_free(&a);
    str_free(&b);
}

/* ------------------------------------------------------------------------------------------------ both */

static const struct chat_tool tool[] = {
    {TEXT("f"), TEXT("{\"name\": \"f\", \"parameters\": {\"type\": \"object\", \"properties\": {\"s0\": {\"type\": "
                     "\"string\"}, \"s1\": {\"type\": \"string\"}}}}")}};
static const struct chat_options options = {.thinking = CHAT_THINK_HIGH, .tools = tool, .n_tools = 1};

/* What the frame writes for an answer behind a question, without the end of the turn. */
static void written(const struct prompt_codec *codec, const struct chat_message *answer, struct str *out)
{
    const struct chat_message m[] = {ASK("q"), *answer};
    struct prompt question = {0}, both = {0};
    struct str before = {0}, all = {0};
    assert_int_equal(codec->render(m, 1, &options, &question, NULL), 0);
    assert_int_equal(codec->render(m, 2, &options, &both, NULL), 0);
    prompt_spell(&question, &before);
    prompt_spell(&both, &all);
    const char *const end = memmem(all.p + before.n, all.n - before.n, codec->stops[0], strlen(codec->stops[0]));
    assert_non_null(end);
    assert_memory_equal(all.p, before.p, before.n);
    str_add(out, all.p + before.n, (size_t)(end - all.p) - before.n);
    prompt_free(&question);
    prompt_free(&both);
    str_free(&before);
    str_free(&all);
}

static void check(const struct prompt_codec *codec, struct chat_message *m)
{
    struct str said = {0}, again = {0};
    struct heard h = {0};
    written(codec, m, &said);
    const struct answer_options o = {.syntax = codec->answer, .thinking = true, .tools = tool, .n_tools = 1};
    struct answer *const a = answer_create(&o, hear, &h);
    answer_feed(a, said.p, said.n);
    assert_int_equal(answer_finish(a, CAUSE_STOP), END_CALLS);
    assert_null(answer_note(a));
    expect_same(&h.reasoning, m->reasoning);
    expect_same(&h.text, m->text);
    assert_int_equal(h.n_calls, m->n_calls);
    assert_int_equal(h.n_ended, m->n_calls);
    for (size_t i = 0; i < m->n_calls; i++) {
        expect_same(&h.name[i], m->calls[i].name);
        expect_same_json(&h.arguments[i], m->calls[i].arguments);
    }
    m->block.p = answer_block(a, &m->block.n);
    written(codec, m, &again);
    assert_string_equal(str_c(&again), str_c(&said));
    answer_free(a);
    heard_free(&h);
    str_free(&said);
    str_free(&again);
}

static void run(const struct prompt_codec *codec)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct str arguments[MAX_CALLS] = {{0}};
        struct chat_call calls[MAX_CALLS];
        struct chat_message m = {.role = CHAT_ASSISTANT, .text = TEXT("Look."), .reasoning = TEXT("r"), .calls = calls};
        if (draw(2)) m.text.n = 0;
        m.n_calls = 1 + draw(MAX_CALLS);
        for (size_t i = 0; i < m.n_calls; i++) {
            add_arguments(&arguments[i]);
            calls[i] = (struct chat_call){.name = TEXT("f"), .arguments = {arguments[i].p, arguments[i].n}};
        }
        check(codec, &m);
        for (size_t i = 0; i < m.n_calls; i++) str_free(&arguments[i]);
    }
}

static void test_deepseek4(void **state)
{
    run(&deepseek4_prompt);
}

static void test_qwen38(void **state)
{
    run(&qwen38_prompt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deepseek4), cmocka_unit_test(test_qwen38)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
