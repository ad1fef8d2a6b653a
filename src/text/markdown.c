/* One byte at a time through the places of a line; all state is in struct markdown, so a cut changes nothing. */
#include "text/markdown.h"

enum { HEADING = 1, QUOTE = 2, BULLET = 4, CODE = 8, BOLD = 16, ITALIC = 32, STYLES = 6 };
static const char *const sgr[STYLES] = {"1;35", "32", "35", "36", "1", "3"};

/* ---------------------------------------------------------------- writing */

static void style(struct markdown *m, unsigned wanted, struct str *out)
{
    if (wanted == m->shown) return;
    const char *before = m->shown || !wanted ? "0" : "";
    str_puts(out, "\033[");
    str_puts(out, before);
    for (int i = 0; i < STYLES; i++) {
        if (!(wanted >> i & 1)) continue;
        if (*before) str_puts(out, ";");
        str_puts(out, before = sgr[i]);
    }
    str_puts(out, "m");
    m->shown = wanted;
}

static void put(struct markdown *m, char c, unsigned wanted, struct str *out)
{
    style(m, wanted, out);
    str_add(out, &c, 1);
    m->last = c;
}

static void put_held(struct markdown *m, unsigned wanted, struct str *out)
{
    for (int i = 0; i < m->n_held; i++) put(m, m->held[i], wanted, out);
    m->n_held = 0;
}

/* With too many of them held they are written without a colour. */
static void hold(struct markdown *m, char c, struct str *out)
{
    if (m->n_held == (int)sizeof m->held) put_held(m, m->line, out);
    m->held[m->n_held++] = c;
}

static void put_line_end(struct markdown *m, enum markdown_place next, struct str *out)
{
    const struct markdown fresh = {.place = next, .fence = m->fence, .fence_length = m->fence_length};
    put(m, '\n', 0, out);
    *m = fresh;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_blank(char c)
{
    return is_space(c) || c == '\n' || c == '\r' || c == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---------------------------------------------------------------- inside a line */

static unsigned inline_style(const struct markdown *m)
{
    if (m->code_length) return m->line | CODE;
    return m->line | (m->bold ? BOLD : 0) | (m->italic ? ITALIC : 0);
}

/* One mark is for italic, two for bold, more for both. A run closes what its own mark has opened, else it opens: not
 * behind a letter or digit (snake_case, 2*3) and not before a blank. */
static void emphasis(struct markdown *m, char next)
{
    const bool bold = m->run_length >= 2, italic = m->run_length != 2;
    const bool closes = !is_blank(m->before_run) && (m->run == '*' || !is_word(next));
    const bool ends_bold = closes && bold && m->bold == m->run, ends_italic = closes && italic && m->italic == m->run;
    if (ends_bold) m->bold = 0;
    if (ends_italic) m->italic = 0;
    if (ends_bold || ends_italic || is_blank(next) || is_word(m->before_run)) return;
    if (bold && !m->bold) m->bold = m->run;
    if (italic && !m->italic) m->italic = m->run;
}

static void run_end(struct markdown *m, char next)
{
    if (m->run == '`')
        m->code_length = !m->code_length ? m->run_length : m->code_length == m->run_length ? 0 : m->code_length;
    else if (m->run)
        emphasis(m, next);
    m->run = 0;
}

static void run_add(struct markdown *m, char c)
{
    if (!m->run) m->run_length = 0, m->before_run = m->last;
    m->run = c;
    m->run_length++;
}

static bool in_inline(struct markdown *m, char c, struct str *out)
{
    if (c != m->run) run_end(m, c);
    if (c == '\n') return put_line_end(m, MARKDOWN_LINE_START, out), true;
    const bool mark = !m->escaped && (c == '`' || (!m->code_length && (c == '*' || c == '_')));
    if (mark) run_add(m, c);
    m->escaped = c == '\\' && !m->escaped && !m->code_length;
    put(m, c, mark ? m->line : inline_style(m), out);
    return true;
}

/* ---------------------------------------------------------------- the start of a line */

/* These, as in_inline, return false when the byte is one for the place that they went to. */
static bool go(struct markdown *m, enum markdown_place place)
{
    m->place = place;
    return false;
}

static bool in_line_start(struct markdown *m, char c, struct str *out)
{
    if (c == '>') m->line |= QUOTE;
    if (c == '>' || is_space(c)) return put(m, c, m->line, out), true;
    m->count = 0;
    m->fence = c;
    if (c == '#') return go(m, MARKDOWN_HEADING);
    if (c == '`' || c == '~') return go(m, MARKDOWN_FENCE);
    if (c != '-' && c != '+' && c != '*' && !is_digit(c)) return go(m, MARKDOWN_INLINE);
    m->place = is_digit(c) ? MARKDOWN_NUMBER : MARKDOWN_BULLET;
    hold(m, c, out);
    return true;
}

static bool in_heading(struct markdown *m, char c, struct str *out)
{
    if (c == '#') return m->count++, put(m, c, m->line, out), true;
    if (m->count <= 6 && is_space(c)) m->line |= HEADING;
    return go(m, MARKDOWN_INLINE);
}

/* A bullet if a blank follows; else a * is the first of a run. */
static bool in_bullet(struct markdown *m, char c, struct str *out)
{
    m->place = MARKDOWN_INLINE;
    if (is_space(c) || m->held[0] != '*') return put_held(m, m->line | (is_space(c) ? BULLET : 0), out), false;
    m->n_held = 0;
    in_inline(m, '*', out);
    return false;
}

static bool in_number(struct markdown *m, char c, struct str *out)
{
    const bool digits = is_digit(m->held[m->n_held - 1]);
    if (digits && (c == '.' || c == ')' || (is_digit(c) && m->n_held < 9))) return hold(m, c, out), true;
    put_held(m, m->line | (!digits && is_space(c) ? BULLET : 0), out);
    return go(m, MARKDOWN_INLINE);
}

/* ---------------------------------------------------------------- code blocks */

/* Fewer than three backquotes begin inline code. */
static bool in_fence(struct markdown *m, char c, struct str *out)
{
    if (c == m->fence) return m->count++, put(m, c, m->line, out), true;
    if (m->count >= 3) return go(m, MARKDOWN_INFO);
    if (m->fence == '`') m->run = '`', m->run_length = m->count;
    return go(m, MARKDOWN_INLINE);
}

/* Behind a fence of backquotes there are none, or it was inline code. */
static bool in_info(struct markdown *m, char c, struct str *out)
{
    if (c == '`' && m->fence == '`') m->count = 0;
    m->fence_length = m->count;
    if (c == '\n')
        put_line_end(m, m->count ? MARKDOWN_CODE_START : MARKDOWN_LINE_START, out);
    else
        put(m, c, m->line, out);
    return true;
}

static bool in_code_start(struct markdown *m, char c, struct str *out)
{
    m->count = 0;
    if (is_space(c)) return put(m, c, CODE, out), true;
    return go(m, c == m->fence ? MARKDOWN_CODE_FENCE : MARKDOWN_CODE);
}

/* As many marks as opened the block, and nothing but blanks behind them, close it. */
static bool in_code_fence(struct markdown *m, char c, struct str *out)
{
    const bool behind_blank = m->n_held && is_space(m->held[m->n_held - 1]);
    if (is_space(c) || (c == m->fence && !behind_blank)) {
        m->count += c == m->fence;
        hold(m, c, out);
        return true;
    }
    const bool closes = m->count >= m->fence_length && is_blank(c);
    put_held(m, closes ? 0 : CODE, out);
    m->count = 0;
    return go(m, closes ? MARKDOWN_INFO : MARKDOWN_CODE);
}

static bool in_code(struct markdown *m, char c, struct str *out)
{
    if (c == '\n')
        put_line_end(m, MARKDOWN_CODE_START, out);
    else
        put(m, c, CODE, out);
    return true;
}

/* ---------------------------------------------------------------- all of it */

static bool (*const step[MARKDOWN_PLACE_COUNT])(struct markdown *m, char c, struct str *out) = {
    [MARKDOWN_LINE_START] = in_line_start, [MARKDOWN_HEADING] = in_heading,
    [MARKDOWN_BULLET] = in_bullet,         [MARKDOWN_NUMBER] = in_number,
    [MARKDOWN_FENCE] = in_fence,           [MARKDOWN_INFO] = in_info,
    [MARKDOWN_INLINE] = in_inline,         [MARKDOWN_CODE_START] = in_code_start,
    [MARKDOWN_CODE_FENCE] = in_code_fence, [MARKDOWN_CODE] = in_code};

void markdown_feed(struct markdown *m, const char *text, size_t n, struct str *out)
{
    for (size_t i = 0; i < n; i++)
        while (!step[m->place](m, text[i], out)) continue;
}

void markdown_end(struct markdown *m, struct str *out)
{
    const bool closes = m->place == MARKDOWN_CODE_FENCE && m->count >= m->fence_length;
    put_held(m, m->place == MARKDOWN_CODE_FENCE && !closes ? CODE : m->line, out);
    style(m, 0, out);
    *m = (struct markdown){0};
}

void markdown_forgotten(struct markdown *m)
{
    m->shown = 0;
}
