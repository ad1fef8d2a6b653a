/* DeepSeek's tool blocks:
 *   <｜DSML｜tool_calls> <｜DSML｜invoke name="..."> <｜DSML｜parameter name="..." string="true|false"> ... and their
 * ends. Also read: bars missing, doubled or of another kind (U+2016, '|'), no marker at all if the whole block has
 * none, "toolcalls", typographic quotes, white space within tags (behind a marker it is a part of the spelling), and a
 * parameter's end that carries the parameter's name. */
#include "text/answer_syntax.h"
#include <string.h>

static const char *const bars[] = {"\xef\xbd\x9c", "\xe2\x80\x96", "|"};
static const char dsml[] = "DSML";
enum { MAX_BARS = 3 };
static const struct answer_spelling canonical = {"\xef\xbd\x9c"
                                                 "DSML\xef\xbd\x9c",
                                                 10};

/* Bytes of up to three bars; *more: the bytes end within or behind them. */
static size_t skip_bars(const char *p, size_t n, bool *more)
{
    size_t at = 0;
    for (int k = 0; k < MAX_BARS; k++) {
        if (at == n) {
            *more = true;
            return at;
        }
        size_t len = 0;
        for (size_t b = 0; b < sizeof bars / sizeof *bars; b++) {
            const int hit = answer_literal(p + at, n - at, bars[b], strlen(bars[b]));
            if (hit < 0) *more = true;
            if (hit > 0) len = strlen(bars[b]);
        }
        if (len == 0) return at;
        at += len;
    }
    return at;
}

/* Bytes of a marker with the white space behind it, 0: there is none. *broken: bars without "DSML". */
static size_t marker(const char *p, size_t n, bool *more, bool *broken)
{
    enum { TOO_MANY = sizeof((struct answer_spelling *)0)->marker + 1 };
    size_t at = skip_bars(p, n, more);
    if (*more) return 0;
    const int hit = answer_literal(p + at, n - at, dsml, sizeof dsml - 1);
    *more = hit < 0;
    *broken = hit == 0 && at > 0;
    if (hit <= 0) return 0;
    at += sizeof dsml - 1;
    at += skip_bars(p + at, n - at, more);
    at = answer_skip_space(p, at, n < TOO_MANY ? n : TOO_MANY);
    *more |= at == n;
    return at;
}

static bool is_quote(const char *p, size_t n, size_t *len)
{
    *len = 1;
    if (n && *p == '"') return true;
    *len = 3;
    /* U+201C to U+201F: “ ” „ ‟ */
    return n >= 3 && memcmp(p, "\xe2\x80", 2) == 0 && (unsigned char)p[2] >= 0x9c && (unsigned char)p[2] <= 0x9f;
}

/* The attributes of a tag, p[0..n) between its name and its '>'. False: not what a call or parameter has. */
static bool attributes(const char *p, size_t n, struct answer_tag *t)
{
    size_t i = 0;
    while (i < n) {
        const size_t before = i;
        i = answer_skip_space(p, i, n);
        if (i == n) break;
        if (i == before) return false;
        const size_t key = i;
        while (i < n && p[i] != '=' && !answer_space(p[i])) i++;
        const size_t n_key = i - key;
        i = answer_skip_space(p, i, n);
        if (i == n || p[i] != '=') return false;
        i = answer_skip_space(p, i + 1, n);
        size_t quote;
        if (!is_quote(p + i, n - i, &quote)) return false;
        const bool plain = quote == 1;
        const size_t value = i + quote;
        for (i = value; i < n && !(is_quote(p + i, n - i, &quote) && (quote == 1 || !plain));) i++;
        if (i >= n) return false;
        const size_t n_value = i - value;
        i += quote;
        if (n_key == 4 && memcmp(p + key, "name", 4) == 0 && !t->name && n_value) {
            t->name = p + value;
            t->n_name = n_value;
        } else if (n_key == 6 && memcmp(p + key, "string", 6) == 0 && t->kind == TAG_PARAM && t->type == VALUE_UNSAID) {
            if (n_value == 4 && memcmp(p + value, "true", 4) == 0)
                t->type = VALUE_STRING;
            else if (n_value == 5 && memcmp(p + value, "false", 5) == 0)
                t->type = VALUE_JSON;
            else
                return false;
        } else {
            return false;
        }
    }
    return t->name != NULL;
}

/* What stands behind the name of an element, up to '>'. t->kind says what it is and becomes what it turned out to be.
 */
static void rest_of_tag(const char *p, size_t at, size_t n, struct answer_tag *t)
{
    const size_t end = n < ANSWER_TAG_BYTES ? n : ANSWER_TAG_BYTES;
    const char *const close = memchr(p + at, '>', end - at);
    const char *const other = memchr(p + at, '<', (close ? (size_t)(close - p) : end) - at);
    const enum answer_tag_kind kind = t->kind;
    t->kind = TAG_NONE;
    if (other) return;
    if (!close) {
        if (n < ANSWER_TAG_BYTES) t->kind = TAG_MORE;
        return;
    }
    const size_t n_rest = (size_t)(close - p) - at;
    t->n = at + n_rest + 1;
    t->kind = kind;
    if (kind == TAG_CALL || kind == TAG_PARAM) {
        if (!attributes(p + at, n_rest, t)) t->kind = TAG_NONE;
        return;
    }
    for (size_t i = 0; i < n_rest; i++)
        if (!answer_space(p[at + i])) t->kind = TAG_NONE;
}

static const struct {
    const char *name;
    enum answer_tag_kind open, end;
} elements[] = {
    {"tool_calls", TAG_BLOCK, TAG_BLOCK_END},
    {"toolcalls", TAG_BLOCK, TAG_BLOCK_END},
    {"invoke", TAG_CALL, TAG_CALL_END},
    {"parameter", TAG_PARAM, TAG_PARAM_END},
};

/* Behind the name of an element comes '>', white space, or what is not known yet. */
static bool name_ends(const char *p, size_t at, size_t n)
{
    return at == n || p[at] == '>' || answer_space(p[at]);
}

/* An end tag with the marker and a name that no element has: taken for a misspelt end of a parameter. */
static void unknown_end(const char *p, size_t at, size_t n, struct answer_tag *t)
{
    while (at < n && at < ANSWER_TAG_BYTES &&
           (p[at] == '_' || p[at] == '-' || (p[at] >= '0' && p[at] <= '9') || (p[at] >= 'A' && p[at] <= 'Z') ||
            (p[at] >= 'a' && p[at] <= 'z')))
        at++;
    if (!name_ends(p, at, n)) return;
    t->kind = TAG_PARAM_END;
    t->exact = false;
    rest_of_tag(p, at, n, t);
}

static void dsml_tag(const struct answer_spelling *like, const char *p, size_t n, struct answer_tag *t)
{
    *t = (struct answer_tag){.kind = TAG_MORE};
    if (n == 1) return;
    const bool ends = p[1] == '/';
    const size_t from = ends ? 2 : 1;
    bool more = false, broken = false;
    const size_t n_marker = marker(p + from, n - from, &more, &broken);
    if (more) return;
    t->kind = TAG_NONE;
    if (broken || n_marker > sizeof t->spelling.marker) return;
    memcpy(t->spelling.marker, p + from, n_marker);
    t->spelling.n = n_marker;
    t->exact = !like || (like->n == n_marker && memcmp(like->marker, p + from, n_marker) == 0);
    const bool lost = like && like->n && !n_marker; /* the marker: only an end of a parameter is recognised without */
    const size_t at = from + n_marker;
    bool may_be = false;
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        if (lost && !(ends && elements[i].end == TAG_PARAM_END)) continue;
        const size_t len = strlen(elements[i].name);
        const int hit = answer_literal(p + at, n - at, elements[i].name, len);
        may_be |= hit < 0;
        if (hit <= 0 || !name_ends(p, at + len, n)) continue;
        t->kind = ends ? elements[i].end : elements[i].open;
        rest_of_tag(p, at + len, n, t);
        return;
    }
    if (may_be)
        t->kind = TAG_MORE;
    else if (like && ends && n_marker)
        unknown_end(p, at, n, t);
}

static void dsml_name(const char *p, size_t n, struct str *out)
{
    static const struct {
        const char *entity, *text;
    } known[] = {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}};
    for (size_t i = 0; i < n;) {
        size_t len = 1;
        const char *text = p + i;
        for (size_t k = 0; p[i] == '&' && k < sizeof known / sizeof *known; k++)
            if (answer_literal(p + i, n - i, known[k].entity, strlen(known[k].entity)) > 0) {
                len = strlen(known[k].entity);
                text = known[k].text;
            }
        str_add(out, text, 1);
        i += len;
    }
}

/* The one escape that the prompt asks for, written with the canonical marker or with that of the block. */
static int dsml_escape(const struct answer_spelling *like, const char *p, size_t n, struct str *out)
{
    const struct answer_spelling *const spellings[] = {&canonical, like};
    int result = answer_literal(p, n, "&lt;/", 5);
    if (result <= 0) return result;
    result = 0;
    static const char rest[] = "parameter>";
    for (size_t i = 0; i < 2 && result <= 0; i++) {
        char text[64];
        const size_t n_marker = spellings[i]->n, n_text = 5 + n_marker + sizeof rest - 1;
        memcpy(text, "&lt;/", 5);
        memcpy(text + 5, spellings[i]->marker, n_marker);
        memcpy(text + 5 + n_marker, rest, sizeof rest - 1);
        const int hit = answer_literal(p, n, text, n_text);
        if (hit < 0) result = -1;
        if (hit <= 0) continue;
        str_puts(out, "<");
        str_add(out, text + 4, n_text - 4);
        result = (int)n_text;
    }
    return result;
}

#define BAR "\xef\xbd\x9c"
const struct answer_syntax answer_dsml = {
    .think_open = "<think>",
    .think_close = "</think>",
    .block = "tool_calls",
    .call = "invoke",
    .param = "parameter",
    .forced_call = {"<" BAR "DSML" BAR "tool_calls>\n<" BAR "DSML" BAR "invoke name=\"", "\">\n"},
    .tag = dsml_tag,
    .name = dsml_name,
    .escape = dsml_escape,
};
