/* The chat frame of Qwen3.8, written message by message. */
#include "models/qwen38/qwen38_prompt.h"
#include <string.h>
#include "base/mem.h"
#include "models/qwen38/qwen38_text.h"
#include "models/qwen38/qwen38_tools.h"
#include "text/answer.h"
#include "text/closing.h"

#define START            "<|im_start|>"
#define END              "<|im_end|>"
#define THINK            "<think>"
#define ENDTHINK         "</think>"
#define TOOL_RESPONSE    "<tool_response>"
#define ENDTOOL_RESPONSE "</tool_response>"

/* The frame needs the first N_REQUIRED; what it writes of the others is text where a vocabulary lacks them. */
enum { N_REQUIRED = 5 };
static const char *const specials[] = {
    START,
    END,
    "<|endoftext|>",
    THINK,
    ENDTHINK,
    QWEN38_TOOL_CALL,
    QWEN38_TOOL_CALL_END,
    TOOL_RESPONSE,
    ENDTOOL_RESPONSE,
    "<|vision_start|>",
    "<|image_pad|>",
    "<|vision_end|>",
};
static const char *const stops[] = {END, "<|endoftext|>"};

/* ------------------------------------------------------------------------------------------------ text */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct bpe_text trimmed_left(struct bpe_text t)
{
    while (t.n > 0 && is_blank(*t.p)) t.p++, t.n--;
    return t;
}

static struct bpe_text trimmed(struct bpe_text t)
{
    t = trimmed_left(t);
    while (t.n > 0 && is_blank(t.p[t.n - 1])) t.n--;
    return t;
}

static void put(struct prompt *p, struct bpe_text t)
{
    prompt_text(p, t.p, t.n);
}

/* ------------------------------------------------------------------------------------------------ parts of the frame
 */

static enum chat_thinking thinking_used(const struct chat_options *o)
{
    return o->thinking == CHAT_THINK_DEFAULT ? CHAT_THINK_HIGH : o->thinking;
}

static const char *effort_text(enum chat_thinking thinking)
{
    switch (thinking) {
    case CHAT_THINK_HIGH:
    case CHAT_THINK_MAX:
        return qwen38_effort_xhigh;
    case CHAT_THINK_LOW:
        return qwen38_effort_low;
    default:
        return "";
    }
}

static void turn_end(struct prompt *p)
{
    prompt_special(p, END);
    prompt_puts(p, "\n");
}

static void system_turn(struct prompt *p, const struct chat_message *m, size_t n, const struct chat_options *o)
{
    struct prompt body = {0};
    prompt_puts(&body, effort_text(thinking_used(o)));
    qwen38_tools_offer(&body, o->tools, o->n_tools, body.n > 0 ? "\n\n" : "");
    for (size_t i = 0; i < n; i++) {
        const struct bpe_text text = trimmed(m[i].text);
        if (m[i].role != CHAT_SYSTEM || text.n == 0) continue;
        if (body.n > 0) prompt_puts(&body, "\n\n");
        put(&body, text);
    }
    if (body.n > 0) {
        prompt_turn(p, START);
        prompt_puts(p, "system\n");
        prompt_append(p, &body);
        turn_end(p);
    }
    prompt_free(&body);
}

static void put_user(struct prompt *p, const struct chat_message *m)
{
    prompt_turn(p, START);
    prompt_puts(p, "user\n");
    put(p, trimmed(m->text));
    turn_end(p);
}

static void put_result(struct prompt *p, const struct chat_message *m)
{
    struct str guarded = {0};
    closing_escape(&guarded, m->text, ENDTOOL_RESPONSE, false);
    prompt_puts(p, "\n");
    prompt_special(p, TOOL_RESPONSE);
    prompt_puts(p, "\n");
    prompt_text(p, str_c(&guarded), guarded.n);
    prompt_puts(p, "\n");
    prompt_special(p, ENDTOOL_RESPONSE);
    str_free(&guarded);
}

/* The user and tool messages m[from..to). Of a run of results in a row each stands where the order of the calls wants
 * it. */
static int put_turns(struct prompt *p, const struct chat_message *m, size_t from, size_t to, struct err *e)
{
    size_t *result, n_results = 0;
    const int rc = chat_results(m, from, to, &result, e);
    if (rc != 0) return rc;
    bool open = false; /* a turn of results is */
    for (size_t i = from; i < to; i++) {
        if (!chat_is_turn(&m[i])) continue;
        const bool tool = m[i].role == CHAT_TOOL;
        if (open && !tool) turn_end(p);
        if (!open && tool) {
            prompt_turn(p, START);
            prompt_puts(p, "user");
        }
        if (tool)
            put_result(p, &m[result[n_results++]]);
        else
            put_user(p, &m[i]);
        open = tool;
    }
    if (open) turn_end(p);
    mem_free(result);
    return 0;
}

/* Reasoning and text of an answer; a think block at the start of its text counts as its reasoning. */
static void answer_split(const struct chat_message *m, struct bpe_text *reasoning, struct bpe_text *text)
{
    *reasoning = m->reasoning;
    *text = trimmed_left(m->text);
    const size_t open = strlen(THINK), close = strlen(ENDTHINK);
    if (m->reasoning.n == 0 && text->n >= open && memcmp(text->p, THINK, open) == 0) {
        const char *const end = memmem(text->p + open, text->n - open, ENDTHINK, close);
        if (end) {
            *reasoning = trimmed((struct bpe_text){text->p + open, (size_t)(end - text->p) - open});
            *text = trimmed_left((struct bpe_text){end + close, (size_t)(text->p + text->n - end) - close});
        }
    }
    while (reasoning->n > 0 && reasoning->p[reasoning->n - 1] == '\n') reasoning->n--;
    if (m->n_calls > 0) *text = trimmed(*text);
}

/* Whether the calls begin with what separates an answer from its think block: a block that the model wrote right behind
 * one. */
static bool has_separator(const struct chat_message *m, bool reasoned)
{
    return m->n_calls > 0 && m->block.n > 0 && (reasoned || *m->block.p == '\n');
}

static int put_answer(struct prompt *p, const struct chat_message *m, struct qwen38_orders *orders, struct err *e)
{
    struct bpe_text reasoning, text;
    answer_split(m, &reasoning, &text);
    prompt_turn(p, START);
    prompt_puts(p, "assistant\n");
    prompt_special(p, THINK);
    prompt_puts(p, "\n");
    put(p, reasoning);
    prompt_puts(p, "\n");
    prompt_special(p, ENDTHINK);
    if (text.n > 0 || !has_separator(m, reasoning.n > 0)) prompt_puts(p, "\n\n");
    put(p, text);
    const int rc = qwen38_tools_calls(p, m, text.n, orders, e);
    turn_end(p);
    return rc;
}

static void answer_begin(struct prompt *p, bool thinking)
{
    prompt_turn(p, START);
    prompt_puts(p, "assistant\n");
    prompt_special(p, THINK);
    prompt_puts(p, thinking ? "\n" : "\n\n");
    if (thinking) return;
    prompt_special(p, ENDTHINK);
    prompt_puts(p, "\n\n");
}

static int conversation(struct prompt *p, const struct chat_message *m, size_t n, size_t from,
                        const struct chat_options *o, struct err *e)
{
    struct qwen38_orders orders;
    bool in_turn = false;
    int rc = 0;
    qwen38_orders_init(&orders, o->tools, o->n_tools);
    for (size_t i = from; i < n && rc == 0; i++) {
        if (m[i].role == CHAT_ASSISTANT) {
            rc = put_answer(p, &m[i], &orders, e);
            in_turn = false;
        } else if (chat_is_turn(&m[i])) {
            const size_t end = chat_turn_end(m, n, i);
            rc = put_turns(p, m, i, end, e);
            in_turn = true;
            i = end - 1;
        }
    }
    qwen38_orders_free(&orders);
    if (rc == 0 && in_turn) answer_begin(p, o->thinking != CHAT_THINK_OFF);
    return rc;
}

/* ------------------------------------------------------------------------------------------------ the codec */

static int check(const struct bpe *b, struct err *e)
{
    return chat_specials_check(b, specials, N_REQUIRED, "Qwen3.8", e);
}

static int render(const struct chat_message *m, size_t n, const struct chat_options *o, struct prompt *p, struct err *e)
{
    system_turn(p, m, n, o);
    return conversation(p, m, n, 0, o, e);
}

static int render_next(const struct chat_message *m, size_t n, size_t from, const struct chat_options *o,
                       struct prompt *p, struct err *e)
{
    const int rc = chat_no_system(m, n, from, e);
    if (rc != 0) return rc;
    turn_end(p);
    return conversation(p, m, n, from, o, e);
}

static bool is_rendered(const char *text, size_t n)
{
    return n >= strlen(START) && memcmp(text, START, strlen(START)) == 0;
}

const struct prompt_codec qwen38_prompt = {
    .family = "qwen38",
    .pretokenizer = PRETOKENIZER_QWEN35,
    .specials = specials,
    .n_specials = sizeof specials / sizeof *specials,
    .stops = stops,
    .n_stops = sizeof stops / sizeof *stops,
    .think_open = THINK,
    .think_close = ENDTHINK,
    .answer = &answer_xml,
    .check = check,
    .thinking_used = thinking_used,
    .render = render,
    .render_next = render_next,
    .is_rendered = is_rendered,
};
