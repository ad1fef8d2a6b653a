/* A conversation that goes on: what render_next appends to a live timeline (prompt, then the answer as the model wrote
 * it) must give the same prompt as rendering all of it anew. Random conversations, both families, thinking on and off,
 * with and without tools. Where a family drops old reasoning, the prompt to compare with is the one whose answer began
 * without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/str.h"
#include "models/deepseek4/deepseek4_prompt.h"
#include "models/qwen38/qwen38_prompt.h"
#include "../support/prompt_shown.h"

enum { MAX_MESSAGES = 14, MAX_CALLS = 3, ROUNDS = 4000 };

/* One random conversation. Texts live in a fixed store; strings are told apart by their place in it. */
struct chat {
    struct chat_message m[MAX_MESSAGES];
    size_t n;
    struct chat_call calls[MAX_MESSAGES][MAX_CALLS];
    char store[1 << 14];
    size_t used;
    bool qwen, tools, thinking;
};

static uint64_t rng = 1;

static unsigned draw(unsigned n)
{
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return (unsigned)(rng * 0x2545F4914F6CDD1D >> 40) % n;
}

static struct bpe_text keep(struct chat *c, const struct str *s)
{
    assert_true(c->used + s->n < sizeof c->store);
    memcpy(c->store + c->used, str_c(s), s->n);
    c->used += s->n;
    return (struct bpe_text){c->store + c->used - s->n, s->n};
}

/* Up to five pieces between two fixed ones. */
static struct bpe_text pieces(struct chat *c, const char *before, const char *const *list, unsigned n,
                              const char *after)
{
    struct str s = {0};
    str_puts(&s, before);
    for (unsigned k = draw(6); k > 0; k--) str_puts(&s, list[draw(n)]);
    str_puts(&s, after);
    const struct bpe_text t = keep(c, &s);
    str_free(&s);
    return t;
}

static struct bpe_text client_text(struct chat *c)
{
    static const char *const list[] = {
        "a",       "\n", " ",          "é",          "{}",  "</tool_result>", "</tool_response>",
        "<think>", "0",  "<｜User｜>", "<|im_end|>", "&lt;"};
    return pieces(c, "", list, 12, "");
}

/* What models write: no special tokens inside, and not what their frame would change at the ends. */
static struct bpe_text model_text(struct chat *c, bool may_be_empty)
{
    static const char *const list[] = {"a", "\n", " ", "é", "{}", "<b>", "</parameter>", "&amp;"};
    if (may_be_empty && draw(3) == 0) return (struct bpe_text){"", 0};
    return pieces(c, "x", list, 8, draw(2) ? "y" : "z");
}

static struct bpe_text block(struct chat *c, const struct chat_message *m)
{
    static const char *const dsml[] = {"<｜DSML｜invoke name=\"f\">\n", "</｜DSML｜invoke>", " ", "<think>"};
    static const char *const xml[] = {"<function=f>\n", "</function>", "\n", "</tool_call>\n<tool_call>"};
    if (!c->qwen)
        return pieces(c, draw(2) ? "\n\n<｜DSML｜tool_calls>" : "<｜DSML｜tool_calls>", dsml, 4,
                      "</｜DSML｜tool_calls>");
    const bool separated = m->text.n > 0 || m->reasoning.n > 0;
    return pieces(c, separated ? "\n\n<tool_call>" : "<tool_call>", xml, 4, "</tool_call>");
}

static void add_answer(struct chat *c)
{
    struct chat_message *const m = &c->m[c->n];
    m->role = CHAT_ASSISTANT;
    /* thinking without a word ends in the same text as no thinking for one family, so there it always has one */
    if (c->thinking) m->reasoning = model_text(c, !c->qwen);
    m->text = model_text(c, true);
    if (c->tools && draw(2)) {
        m->calls = c->calls[c->n];
        m->n_calls = 1 + draw(MAX_CALLS);
        for (size_t i = 0; i < m->n_calls; i++)
            c->calls[c->n][i] = (struct chat_call){.id = {&"0123456789"[c->n % 5 + i], 1}, .name = {"f", 1}};
        m->block = block(c, m);
    }
    c->n++;
}

static void add_turn(struct chat *c)
{
    for (unsigned k = 1 + draw(4); k > 0 && c->n < MAX_MESSAGES; k--) {
        struct chat_message *const m = &c->m[c->n++];
        m->role = c->tools && draw(2) ? CHAT_TOOL : CHAT_USER;
        m->text = client_text(c);
        if (m->role == CHAT_TOOL) m->call_id = (struct bpe_text){&"0123456789"[draw(9)], 1};
    }
}

static void chat_make(struct chat *c, bool qwen, bool thinking, bool tools)
{
    memset(c, 0, sizeof *c);
    c->qwen = qwen;
    c->thinking = thinking;
    c->tools = tools;
    if (draw(2)) c->m[c->n++] = (struct chat_message){.role = CHAT_SYSTEM, .text = client_text(c)};
    if (draw(8) == 0) add_answer(c);
    while (c->n < MAX_MESSAGES - 1 && draw(8) > 0) {
        add_turn(c);
        if (c->n < MAX_MESSAGES) add_answer(c);
    }
    if (c->n < MAX_MESSAGES && draw(2)) add_turn(c);
}

/* The answer m as it was sampled behind the prompt p. */
static void answer_sampled(struct prompt *p, const struct chat *c, const struct chat_message *m)
{
    struct str s = {0};
    str_add(&s, m->reasoning.p ? m->reasoning.p : "", m->reasoning.n);
    if (c->thinking) {
        const bool block_separates = m->text.n == 0 && m->n_calls > 0;
        str_puts(&s, !c->qwen ? "</think>" : block_separates ? "\n</think>" : "\n</think>\n\n");
    }
    str_add(&s, m->text.p, m->text.n);
    if (m->n_calls > 0) str_add(&s, m->block.p, m->block.n);
    prompt_marked(p, str_c(&s), s.n, c->qwen ? &qwen38_prompt : &deepseek4_prompt);
    str_free(&s);
}

static bool has_turn(const struct chat *c, size_t from)
{
    for (size_t i = from; i < c->n; i++)
        if (chat_is_turn(&c->m[i])) return true;
    return false;
}

/* The live timeline in which m[a] was the answer, and the rest behind it. */
static void live(struct prompt *p, const struct chat *c, const struct prompt_codec *codec, const struct chat_options *o,
                 size_t a)
{
    const bool dropped = !c->qwen && c->thinking && !c->tools && has_turn(c, a + 1);
    const struct chat_options without = {.thinking = CHAT_THINK_OFF};
    assert_int_equal(codec->render(c->m, a, dropped ? &without : o, p, NULL), 0);
    if (dropped)
        prompt_text(p, c->m[a].text.p, c->m[a].text.n);
    else
        answer_sampled(p, c, &c->m[a]);
    assert_int_equal(codec->render_next(c->m, c->n, a + 1, o, p, NULL), 0);
}

/* Every answer of the conversation that followed a turn is taken for the live one. Returns how many there were. */
static size_t check(const struct chat *c)
{
    static const struct chat_tool tool[] = {{TEXT("f"), TEXT("{\"name\": \"f\"}")}};
    const struct prompt_codec *const codec = c->qwen ? &qwen38_prompt : &deepseek4_prompt;
    const struct chat_options o = {
        .thinking = c->thinking ? CHAT_THINK_HIGH : CHAT_THINK_OFF, .tools = tool, .n_tools = c->tools};
    struct prompt all = {0};
    struct str want = {0};
    size_t n = 0;
    assert_int_equal(codec->render(c->m, c->n, &o, &all, NULL), 0);
    prompt_show(&all, &want);
    for (size_t a = 1; a < c->n; a++) {
        if (c->m[a].role != CHAT_ASSISTANT || !chat_is_turn(&c->m[a - 1]) || a + 1 == c->n) continue;
        struct prompt p = {0};
        struct str got = {0};
        live(&p, c, codec, &o, a);
        prompt_show(&p, &got);
        assert_string_equal(str_c(&got), str_c(&want));
        str_free(&got);
        prompt_free(&p);
        n++;
    }
    str_free(&want);
    prompt_free(&all);
    return n;
}

static void run(bool qwen)
{
    static struct chat c;
    for (int kind = 0; kind < 4; kind++) {
        size_t checked = 0;
        for (int i = 0; i < ROUNDS / 4; i++) {
            chat_make(&c, qwen, kind & 1, kind & 2);
            checked += check(&c);
        }
        assert_true(checked > ROUNDS / 8);
    }
}

static void test_deepseek4(void **state)
{
    run(false);
}

static void test_qwen38(void **state)
{
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deepseek4), cmocka_unit_test(test_qwen38)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
