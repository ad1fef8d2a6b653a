/* Qwen's calls: <tool_call> <function=NAME> <parameter=KEY> value </parameter> ... </function> </tool_call>, one block
 * for each call. A value has a newline on either side that is not part of it. Also read: a call without its
 * <tool_call>, white space around '=' and ahead of '>'. */
#include "text/answer_syntax.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *text;
    enum answer_tag_kind kind;
    bool named; /* '=' and a name follow */
} tags[] = {
    {"<tool_call", TAG_BLOCK, false},    {"</tool_call", TAG_BLOCK_END, false}, {"<function", TAG_CALL, true},
    {"</function", TAG_CALL_END, false}, {"<parameter", TAG_PARAM, true},       {"</parameter", TAG_PARAM_END, false},
};

/* Whether a name ends ahead of byte i without its '>'. A key may hold '<'; not what a tag of the same call begins with:
 * then the bracket behind the key was lost. */
static bool name_ends(const char *p, size_t i, size_t n, enum answer_tag_kind kind)
{
    if (p[i] != '<') return false;
    return kind != TAG_PARAM || answer_literal(p + i, n - i, "</parameter", 11) > 0 ||
           answer_literal(p + i, n - i, "<parameter=", 11) > 0;
}

static void rest_of_tag(const char *p, size_t at, size_t n, bool named, struct answer_tag *t)
{
    const enum answer_tag_kind kind = t->kind;
    const size_t end = n < ANSWER_TAG_BYTES ? n : ANSWER_TAG_BYTES;
    t->kind = TAG_NONE;
    size_t i = at;
    if (named) {
        i = answer_skip_space(p, i, end);
        if (i < end && p[i] != '=') return;
        i = answer_skip_space(p, i < end ? i + 1 : i, end);
    }
    const size_t from = i;
    while (i < end && p[i] != '>' && (named ? !name_ends(p, i, n, kind) : answer_space(p[i]))) i++;
    if (i == end) {
        if (n < ANSWER_TAG_BYTES) t->kind = TAG_MORE;
        return;
    }
    if (p[i] != '>' || (named && i == from)) return;
    t->kind = kind;
    t->n = i + 1;
    if (!named) return;
    while (answer_space(p[i - 1])) i--;
    t->name = p + from;
    t->n_name = i - from;
}

static void xml_tag(const struct answer_spelling *like, const char *p, size_t n, struct answer_tag *t)
{
    *t = (struct answer_tag){.kind = TAG_NONE, .exact = true};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        const size_t len = strlen(tags[i].text);
        const int hit = answer_literal(p, n, tags[i].text, len);
        if (hit < 0) t->kind = TAG_MORE;
        if (hit <= 0) continue;
        t->kind = tags[i].kind;
        rest_of_tag(p, len, n, tags[i].named, t);
        return;
    }
}

/* An escaped end: '&', "amp;" any number of times, "lt;" and the rest of the end. What wrote it put "&lt;" for '<' or
 * "&amp;" for '&', one level each time. rest: behind the escaped character. Same results as answer_syntax.escape. */
static int escaped(const char *p, size_t n, const char *entity, const char *rest, struct str *out)
{
    size_t i = 1;
    int hit;
    while ((hit = answer_literal(p + i, n - i, "amp;", 4)) > 0 && i < ANSWER_TAG_BYTES) i += 4;
    if (hit < 0) return -1;
    char text[32];
    const size_t n_text = (size_t)snprintf(text, sizeof text, "%s%s", entity, rest), len = i + n_text;
    hit = answer_literal(p + i, n - i, text, n_text);
    if (hit <= 0) return hit;
    if (i == 1) {
        str_puts(out, entity[0] == 'l' ? "<" : ">");
        str_puts(out, rest);
    } else {
        str_puts(out, "&");
        str_add(out, p + 5, len - 5);
    }
    return (int)len;
}

static int xml_escape(const struct answer_spelling *like, const char *p, size_t n, struct str *out)
{
    return escaped(p, n, "lt;", "/parameter>", out);
}

static void xml_name(const char *p, size_t n, struct str *out)
{
    for (size_t i = 0; i < n;) {
        const int len = p[i] == '&' ? escaped(p + i, n - i, "gt;", "", out) : 0;
        if (len <= 0) str_add(out, p + i, 1);
        i += len > 0 ? (size_t)len : 1;
    }
}

const struct answer_syntax answer_xml = {
    .think_open = "<think>",
    .think_close = "</think>",
    .block = "tool_call",
    .call = "function",
    .param = "parameter",
    .forced_call = {"<tool_call>\n<function=", ">\n"},
    .newlines = true,
    .typed = true,
    .call_in_block = true,
    .tag = xml_tag,
    .name = xml_name,
    .escape = xml_escape,
};
