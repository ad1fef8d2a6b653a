/* The frame is written part by part; text collects in a span until the next special token. */
#include "models/deepseek4/deepseek4_prompt.h"
#include <string.h>
#include "base/str.h"
#include "models/deepseek4/deepseek4_effort.h"

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

/* ------------------------------------------------------------------------------------------------ writing a frame */

/* Collects a span of text until the next special token. Errors stick. */
struct frame {
    const struct bpe *bpe;
    const struct chat_options *options;
    struct bpe_ids *ids;
    struct str span;
    struct err *e;
    int rc;
};

static void frame_flush(struct frame *f)
{
    if (f->rc == 0 && f->span.n > 0) f->rc = bpe_encode(f->bpe, f->span.p, f->span.n, f->ids, f->e);
    str_clear(&f->span);
}

static void frame_special(struct frame *f, const char *special)
{
    frame_flush(f);
    bpe_ids_add(f->ids, bpe_special(f->bpe, special));
}

static void frame_text(struct frame *f, struct bpe_text text)
{
    if (text.n > 0) str_add(&f->span, text.p, text.n);
}

static void frame_tool_result(struct frame *f, struct bpe_text text)
{
    static const char closing[] = "</tool_result>";
    str_puts(&f->span, "<tool_result>");
    while (text.n > 0) {
        const char *const tag = memmem(text.p, text.n, closing, strlen(closing));
        const size_t n = tag ? (size_t)(tag - text.p) : text.n;
        str_add(&f->span, text.p, n);
        if (tag) str_puts(&f->span, "&lt;/tool_result>");
        const size_t read = tag ? n + strlen(closing) : n;
        text.p += read;
        text.n -= read;
    }
    str_puts(&f->span, closing);
}

/* ------------------------------------------------------------------------------------------------ parts of the frame
 */

static enum chat_thinking thinking_used(const struct chat_options *o)
{
    if (o->thinking == CHAT_THINK_MAX && o->ctx < CTX_OF_MAX) return CHAT_THINK_HIGH;
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

static void system_region(struct frame *f, const struct chat_message *m, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (m[i].role != CHAT_SYSTEM || m[i].text.n == 0) continue;
        if (any) str_puts(&f->span, "\n\n");
        frame_text(f, m[i].text);
        any = true;
    }
}

static bool is_turn(enum chat_role role)
{
    return role == CHAT_USER || role == CHAT_TOOL;
}

/* Index of the first message whose reasoning belongs into the prompt. */
static size_t reasoning_from(const struct chat_message *m, size_t n, const struct chat_options *o)
{
    size_t from = 0;
    bool tools = o->tools;
    for (size_t i = 0; i < n; i++) {
        if (m[i].role == CHAT_TOOL) tools = true;
        if (is_turn(m[i].role)) from = i;
    }
    return tools ? 0 : from;
}

/* The end of a turn: from here on the assistant speaks. */
static void answer_begin(struct frame *f, bool think)
{
    frame_special(f, ASSISTANT);
    frame_special(f, think ? THINK : ENDTHINK);
}

static void conversation(struct frame *f, const struct chat_message *m, size_t n)
{
    const bool thinking = f->options->thinking != CHAT_THINK_OFF;
    const size_t kept_from = reasoning_from(m, n, f->options);
    bool in_turn = false;
    for (size_t i = 0; i < n; i++) {
        if (m[i].role == CHAT_ASSISTANT) {
            const bool reasoning = thinking && i >= kept_from;
            if (in_turn) answer_begin(f, reasoning);
            if (in_turn && reasoning) {
                frame_text(f, m[i].reasoning);
                frame_special(f, ENDTHINK);
            }
            frame_text(f, m[i].text);
            frame_special(f, EOS);
            in_turn = false;
        } else if (is_turn(m[i].role)) {
            if (in_turn)
                str_puts(&f->span, "\n\n");
            else
                frame_special(f, USER);
            if (m[i].role == CHAT_TOOL)
                frame_tool_result(f, m[i].text);
            else
                frame_text(f, m[i].text);
            in_turn = true;
        }
    }
    if (in_turn) answer_begin(f, thinking);
}

/* ------------------------------------------------------------------------------------------------ the codec */

static int check(const struct bpe *b, struct err *e)
{
    for (size_t i = 0; i < N_REQUIRED; i++)
        if (bpe_special(b, specials[i]) < 0)
            return err_set(
                e, ERR_MODEL,
                "tokenizer.ggml.tokens has no token \"%s\", which the DeepSeek V4 chat format needs; the model file "
                "was made with another tokenizer",
                specials[i]);
    return 0;
}

static int frame_end(struct frame *f, size_t n_before)
{
    frame_flush(f);
    str_free(&f->span);
    if (f->rc != 0) f->ids->n = n_before;
    return f->rc;
}

static int render(const struct bpe *b, const struct chat_message *m, size_t n, const struct chat_options *o,
                  struct bpe_ids *ids, struct err *e)
{
    struct frame f = {.bpe = b, .options = o, .ids = ids, .e = e};
    const size_t n_before = ids->n;
    frame_special(&f, BOS);
    str_puts(&f.span, effort_text(o));
    frame_flush(&f); /* so that a change of effort leaves the tokens behind it as they are */
    system_region(&f, m, n);
    conversation(&f, m, n);
    return frame_end(&f, n_before);
}

static int render_next(const struct bpe *b, const struct chat_message *m, size_t n, const struct chat_options *o,
                       struct bpe_ids *ids, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (m[i].role == CHAT_SYSTEM)
            return err_set(e, ERR_ARG, "a system message cannot follow an answer: it belongs to the start of the chat");
    struct frame f = {.bpe = b, .options = o, .ids = ids, .e = e};
    const size_t n_before = ids->n;
    frame_special(&f, EOS);
    conversation(&f, m, n);
    return frame_end(&f, n_before);
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
    .check = check,
    .thinking_used = thinking_used,
    .render = render,
    .render_next = render_next,
    .is_rendered = is_rendered,
};
