/* The chat frame of DeepSeek V4, written message by message. */
#include "models/deepseek4/deepseek4_prompt.h"
#include <string.h>
#include "base/mem.h"
#include "models/deepseek4/deepseek4_effort.h"
#include "models/deepseek4/deepseek4_tools.h"
#include "text/answer.h"
#include "text/closing.h"

#define BOS       "<｜begin▁of▁sentence｜>"
#define EOS       "<｜end▁of▁sentence｜>"
#define USER      "<｜User｜>"
#define ASSISTANT "<｜Assistant｜>"
#define THINK     "<think>"
#define ENDTHINK  "</think>"
#define DSML      "｜DSML｜"

/* The first N_REQUIRED are those of the frame; the model knows the others, which no text may become either. */
enum { N_REQUIRED = 7 };
static const char *const specials[] = {
    BOS,
    EOS,
    USER,
    ASSISTANT,
    THINK,
    ENDTHINK,
    DSML,
    "<｜latest_reminder｜>",
    "<｜action｜>",
    "<｜query｜>",
    "<｜authority｜>",
    "<｜domain｜>",
    "<｜title｜>",
    "<｜extracted_url｜>",
    "<｜read_url｜>",
    "<｜deepseek_image｜>",
};
static const char *const stops[] = {EOS};

enum { CTX_OF_MAX = 393216 }; /* tokens; the model card asks for 384K */

static void put(struct prompt *p, struct bpe_text text)
{
    prompt_text(p, text.p, text.n);
}

static void put_result(struct prompt *p, struct bpe_text text)
{
    struct str guarded = {0};
    closing_replace(&guarded, text, "</tool_result>", "&lt;");
    prompt_puts(p, "<tool_result>");
    prompt_text(p, str_c(&guarded), guarded.n);
    prompt_puts(p, "</tool_result>");
    str_free(&guarded);
}

/* ------------------------------------------------------------------------------------------------ parts of the frame
 */

static enum chat_thinking thinking_used(const struct chat_options *o)
{
    if (o->thinking == CHAT_THINK_DEFAULT)
        return o->efforts == DEEPSEEK4_EFFORTS_PREVIEW ? CHAT_THINK_HIGH : CHAT_THINK_LOW;
    if (o->thinking == CHAT_THINK_MEDIUM || (o->thinking == CHAT_THINK_MAX && o->ctx < CTX_OF_MAX))
        return CHAT_THINK_HIGH;
    return o->thinking;
}

static const char *effort_text(const struct chat_options *o)
{
    const bool preview = o->efforts == DEEPSEEK4_EFFORTS_PREVIEW;
    switch (thinking_used(o)) {
    case CHAT_THINK_HIGH:
        return preview ? "" : deepseek4_effort_absolute;
    case CHAT_THINK_MAX:
        return preview ? deepseek4_effort_absolute : deepseek4_effort_beyond;
    default:
        return "";
    }
}

/* System messages, joined by an empty line, with `before` ahead of the first. */
static void put_system(struct prompt *p, const struct chat_message *m, size_t n, const char *before)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (m[i].role != CHAT_SYSTEM || m[i].text.n == 0) continue;
        prompt_puts(p, any ? "\n\n" : before);
        put(p, m[i].text);
        any = true;
    }
}

static void system_region(struct prompt *p, const struct chat_message *m, size_t n, const struct chat_options *o)
{
    const bool tools = o->n_tools > 0;
    if (tools && o->tools_first) {
        deepseek4_tools_offer(p, o->tools, o->n_tools);
        put_system(p, m, n, "\n");
    } else {
        put_system(p, m, n, "");
        if (tools) prompt_puts(p, "\n\n");
        if (tools) deepseek4_tools_offer(p, o->tools, o->n_tools);
    }
}

/* Index of the first message whose reasoning belongs into the prompt. */
static size_t reasoning_from(const struct chat_message *m, size_t n, const struct chat_options *o)
{
    size_t from = 0;
    bool tools = o->n_tools > 0;
    for (size_t i = 0; i < n; i++) {
        if (m[i].role == CHAT_TOOL || (m[i].role == CHAT_ASSISTANT && m[i].n_calls > 0)) tools = true;
        if (chat_is_turn(&m[i])) from = i;
    }
    return tools ? 0 : from;
}

/* The end of a turn: from here on the assistant speaks. */
static void answer_begin(struct prompt *p, bool think)
{
    prompt_turn(p, ASSISTANT);
    prompt_special(p, think ? THINK : ENDTHINK);
}

/* An answer; reasoning: the open think block is filled and closed, NULL: there is none. */
static void put_answer(struct prompt *p, const struct chat_message *m, const struct bpe_text *reasoning)
{
    if (reasoning) {
        put(p, *reasoning);
        prompt_special(p, ENDTHINK);
    }
    put(p, m->text);
    deepseek4_tools_calls(p, m);
    prompt_special(p, EOS);
}

/* The turn m[from..to): texts where they stand, results in the order of their calls. */
static int put_turn(struct prompt *p, const struct chat_message *m, size_t from, size_t to, struct err *e)
{
    size_t *result, n_results = 0;
    const int rc = chat_results(m, from, to, &result, e);
    if (rc != 0) return rc;
    prompt_turn(p, USER);
    for (size_t i = from; i < to; i++) {
        if (!chat_is_turn(&m[i])) continue;
        if (i > from) prompt_puts(p, "\n\n");
        if (m[i].role == CHAT_TOOL)
            put_result(p, m[result[n_results++]].text);
        else
            put(p, m[i].text);
    }
    mem_free(result);
    return 0;
}

static int conversation(struct prompt *p, const struct chat_message *m, size_t n, size_t from,
                        const struct chat_options *o, struct err *e)
{
    const bool thinking = o->thinking != CHAT_THINK_OFF;
    const size_t kept_from = reasoning_from(m, n, o);
    bool in_turn = false;
    for (size_t i = from; i < n; i++) {
        if (m[i].role == CHAT_ASSISTANT) {
            const bool reasoning = thinking && i >= kept_from;
            if (in_turn) answer_begin(p, reasoning);
            put_answer(p, &m[i], in_turn && reasoning ? &m[i].reasoning : NULL);
            in_turn = false;
        } else if (chat_is_turn(&m[i])) {
            const size_t end = chat_turn_end(m, n, i);
            const int rc = put_turn(p, m, i, end, e);
            if (rc != 0) return rc;
            in_turn = true;
            i = end - 1;
        }
    }
    if (in_turn) answer_begin(p, thinking);
    return 0;
}

/* ------------------------------------------------------------------------------------------------ the codec */

static int check(const struct bpe *b, struct err *e)
{
    return chat_specials_check(b, specials, N_REQUIRED, "DeepSeek V4", e);
}

static int render(const struct chat_message *m, size_t n, const struct chat_options *o, struct prompt *p, struct err *e)
{
    prompt_special(p, BOS);
    prompt_puts(p, effort_text(o));
    prompt_cut(p); /* so that a change of effort leaves the tokens behind it as they are */
    system_region(p, m, n, o);
    return conversation(p, m, n, 0, o, e);
}

static int render_next(const struct chat_message *m, size_t n, size_t from, const struct chat_options *o,
                       struct prompt *p, struct err *e)
{
    const int rc = chat_no_system(m, n, from, e);
    if (rc != 0) return rc;
    prompt_special(p, EOS);
    return conversation(p, m, n, from, o, e);
}

static bool is_rendered(const char *text, size_t n)
{
    return (n >= strlen(BOS) && memcmp(text, BOS, strlen(BOS)) == 0) ||
           (n >= strlen(USER) && memcmp(text, USER, strlen(USER)) == 0);
}

const struct prompt_codec deepseek4_prompt = {
    .family = "deepseek4",
    .pretokenizer = PRETOKENIZER_JOYAI,
    .specials = specials,
    .n_specials = sizeof specials / sizeof *specials,
    .stops = stops,
    .n_stops = sizeof stops / sizeof *stops,
    .think_open = THINK,
    .think_close = ENDTHINK,
    .answer = &answer_dsml,
    .check = check,
    .thinking_used = thinking_used,
    .render = render,
    .render_next = render_next,
    .is_rendered = is_rendered,
};
