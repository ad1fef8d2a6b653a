/* The prose of an answer: reasoning, text, think tags, and where tool blocks start. */
#include "text/answer.h"
#include <stdarg.h>
#include <string.h>
#include "base/mem.h"
#include "text/answer_internal.h"

int answer_literal(const char *p, size_t n, const char *text, size_t n_text)
{
    const size_t common = n < n_text ? n : n_text;
    if (common && p[0] != text[0]) return 0;
    if (memcmp(p, text, common) != 0) return 0;
    return common == n_text ? 1 : -1;
}

bool answer_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

size_t answer_skip_space(const char *p, size_t at, size_t n)
{
    while (at < n && answer_space(p[at])) at++;
    return at;
}

const char *answer_think_close(const struct answer_syntax *s)
{
    return s->think_close;
}

/* ------------------------------------------------------------------------------------------------ giving out */

static void flush(struct answer *a)
{
    if (a->out.n) a->sink(a->arg, a->out_kind, a->out.p, a->out.n);
    str_clear(&a->out);
}

void answer_put(struct answer *a, enum answer_kind kind, const char *bytes, size_t n)
{
    const bool single = kind == ANSWER_CALL_BEGIN || kind == ANSWER_CALL_END;
    if (n == 0 && !single) return;
    if (single || a->out_kind != kind) flush(a);
    if (single) {
        a->sink(a->arg, kind, bytes, n);
        return;
    }
    a->out_kind = kind;
    str_add(&a->out, bytes, n);
}

void answer_remark(struct answer *a, const char *fmt, ...)
{
    if (a->note.n) return;
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&a->note, fmt, ap);
    va_end(ap);
    if (a->note.n) text_defuse(a->note.p, a->note.n);
}

static enum answer_kind prose_kind(const struct answer *a)
{
    return a->reasoning ? ANSWER_REASONING : ANSWER_TEXT;
}

/* Gives out what stands before `upto`. */
static void give(struct answer *a, size_t upto)
{
    if (a->fresh && !a->reasoning && a->o.syntax->newlines)
        while (a->from < upto && (a->in.p[a->from] == '\n' || a->in.p[a->from] == '\r')) a->from++;
    if (a->from >= upto) return;
    str_clear(&a->piece);
    utf8_feed(&a->utf8, a->in.p + a->from, upto - a->from, &a->piece);
    answer_put(a, prose_kind(a), str_c(&a->piece), a->piece.n);
    a->from = upto;
}

/* Reasoning or text is over: a character that is not whole never will be. */
static void end_characters(struct answer *a)
{
    str_clear(&a->piece);
    utf8_end(&a->utf8, &a->piece);
    answer_put(a, prose_kind(a), str_c(&a->piece), a->piece.n);
}

void answer_end_prose(struct answer *a)
{
    if (a->n_calls) return;
    end_characters(a);
    a->reasoning = false;
    a->text_end = a->block.start;
}

/* ------------------------------------------------------------------------------------------------ prose */

static void skip(struct answer *a, size_t n)
{
    a->pos += n;
    a->from = a->pos;
}

static void close_thinking(struct answer *a)
{
    size_t end = a->pos;
    if (a->o.syntax->newlines)
        while (end > a->from && (a->in.p[end - 1] == '\n' || a->in.p[end - 1] == '\r')) end--;
    give(a, end);
    end_characters(a);
    a->reasoning = false;
    a->fresh = true;
    a->think_opened = true;
    a->code = (struct code_spans){0};
    a->quiet = 0;
    a->failed = false;
    skip(a, strlen(a->o.syntax->think_close));
}

/* At '<' that may start a think tag. READ_ON: it did, READ_FAIL: it did not. A tag that only repeats what is so already
 * is dropped at the very start of reasoning or text; elsewhere it is text. */
static enum read_result think_tag(struct answer *a)
{
    const char *const p = a->in.p + a->pos;
    const size_t n = a->in.n - a->pos;
    const size_t n_open = strlen(a->o.syntax->think_open), n_close = strlen(a->o.syntax->think_close);
    const int open = a->fresh && !a->think_opened ? answer_literal(p, n, a->o.syntax->think_open, n_open) : 0;
    const int close = a->fresh || a->reasoning ? answer_literal(p, n, a->o.syntax->think_close, n_close) : 0;
    if (open > 0) {
        a->think_opened = a->reasoning = true;
        skip(a, n_open);
        return READ_ON;
    }
    if (close > 0) {
        if (a->reasoning)
            close_thinking(a);
        else
            skip(a, n_close);
        return READ_ON;
    }
    return (open < 0 || close < 0) && !a->ended ? READ_MORE : READ_FAIL;
}

/* At '<' that may start a tool block. READ_ON: it did. */
static enum read_result block_tag_in_prose(struct answer *a)
{
    if (a->o.n_tools == 0 || a->pos < a->quiet || code_spans_open(&a->code)) return READ_FAIL;
    const struct answer_tag tag = block_tag(a, a->pos);
    if (tag.kind == TAG_MORE) return READ_MORE;
    const bool bare_call =
        tag.kind == TAG_CALL && !a->reasoning && !a->failed && (a->o.syntax->call_in_block || tag.spelling.n);
    if (tag.kind != TAG_BLOCK && !bare_call) return READ_FAIL;
    block_open(a, &tag);
    return READ_ON;
}

/* Up to the start of a block (true) or the end of the bytes. White space is held: a block or think tag may follow. */
static bool read_prose(struct answer *a)
{
    while (a->pos < a->in.n) {
        const char c = a->in.p[a->pos];
        size_t end = a->pos + 1;
        if (c == '<') {
            enum read_result r = think_tag(a);
            if (r == READ_ON) continue;
            const enum read_result block = block_tag_in_prose(a);
            if (block == READ_ON) return true;
            if (r == READ_MORE || block == READ_MORE) break;
        }
        if (!answer_space(c)) {
            while (end < a->in.n && !answer_space(a->in.p[end]) && a->in.p[end] != '<') end++;
            give(a, end);
            a->fresh = false;
        }
        code_spans_feed(&a->code, a->in.p + a->pos, end - a->pos);
        a->pos = end;
    }
    if (a->ended || (a->o.n_tools == 0 && !a->o.syntax->newlines && !a->fresh)) give(a, a->pos);
    return false;
}

/* Reads on as far as the bytes allow. */
static void advance(struct answer *a)
{
    while (!a->over) {
        if (!a->block.open && !read_prose(a)) return;
        enum read_result r = block_read(a);
        if (r == READ_MORE && a->ended) r = block_at_limit(a);
        if (r == READ_MORE) return;
        if (r == READ_OVER) {
            a->over = true;
        } else {
            /* Its bytes are prose, and so read a second time, but no block is tried again in what was tried already. */
            a->failed = true;
            a->pos = a->block.tag;
            a->quiet = a->block.failed_at > a->pos ? a->block.failed_at : a->pos + 1;
            block_free(a);
        }
    }
}

/* Forgets bytes that are not needed any more, so that a long text is not kept. */
static void forget(struct answer *a)
{
    enum { WORTH_MOVING = 1 << 16 };
    if (a->block.open || (a->from < a->in.n && (a->from < WORTH_MOVING || a->from < a->in.n / 2))) return;
    const size_t n = a->from;
    memmove(a->in.p, a->in.p + n, a->in.n - n);
    a->in.n -= n;
    a->pos -= n;
    a->quiet = a->quiet > n ? a->quiet - n : 0;
    a->from = 0;
}

/* ------------------------------------------------------------------------------------------------ interface */

struct answer *answer_create(const struct answer_options *o, answer_sink *sink, void *arg)
{
    struct answer *const a = mem_alloc(sizeof *a);
    a->o = *o;
    a->sink = sink;
    a->arg = arg;
    a->reasoning = o->thinking;
    a->fresh = true;
    return a;
}

void answer_free(struct answer *a)
{
    if (!a) return;
    block_free(a);
    str_free(&a->in);
    str_free(&a->piece);
    str_free(&a->quoted);
    str_free(&a->out);
    str_free(&a->note);
    str_free(&a->replay);
    mem_free(a);
}

bool answer_feed(struct answer *a, const char *bytes, size_t n)
{
    if (a->over || a->ended) return true;
    if (n == 0) return false;
    str_add(&a->in, bytes, n);
    advance(a);
    flush(a);
    if (!a->over) forget(a);
    return a->over;
}

enum answer_end answer_finish(struct answer *a, enum answer_cause cause)
{
    a->ended = true;
    a->limit = cause == CAUSE_LENGTH;
    if (cause != CAUSE_STOP_STRING && !a->over) {
        advance(a);
        if (!a->over) end_characters(a);
        flush(a);
    }
    if (a->n_calls) block_replay(a);
    if (a->cut) return END_LENGTH;
    if (a->n_calls) return END_CALLS;
    return a->limit ? END_LENGTH : END_STOP;
}

bool answer_inside_thinking(const struct answer *a)
{
    return a->reasoning && !(a->block.open && (a->block.state != IN_BLOCK || a->block.n_held));
}

bool answer_is_syntax(const struct answer *a)
{
    if (!a->block.open || a->over || a->ended) return false;
    switch (a->block.state) {
    case IN_VALUE:
        return value_is_syntax(a);
    case AFTER_BLOCK:
    case IN_LOOSE:
        return false;
    default:
        return true;
    }
}

void answer_force_call(const struct answer *a, const char *name, size_t n, struct str *out)
{
    const struct answer_syntax *const s = a->o.syntax;
    if (a->block.open) return;
    /* A blank line stands before a block; behind a think block that the prompt has closed the frame may have put it. */
    const bool framed = s->newlines && !a->o.thinking && a->fresh && !a->think_opened;
    size_t newlines = 0;
    while (newlines < 2 && a->in.n - newlines > a->from && a->in.p[a->in.n - 1 - newlines] == '\n') newlines++;
    for (; !framed && newlines < 2; newlines++) str_puts(out, "\n");
    str_puts(out, s->forced_call[0]);
    str_add(out, name, n);
    if (n) str_puts(out, s->forced_call[1]);
}

const char *answer_block(const struct answer *a, size_t *n)
{
    *n = a->replay.n;
    return a->replay.n ? a->replay.p : NULL;
}

const char *answer_note(const struct answer *a)
{
    return a->note.n ? a->note.p : NULL;
}
