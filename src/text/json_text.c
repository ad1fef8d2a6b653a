/* One pass over JSON text: a state machine with a bit per level, so that no input can exhaust the stack. Values that
 * passed it are known to be valid, and everything else here relies on that. */
#include "text/json_text.h"
#include <stdint.h>
#include <string.h>
#include "text/utf8.h"

/* ------------------------------------------------------------------------------------------------ valid or not */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p)) p++;
    return p;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Value of a hexadecimal digit, or -1. */
static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    const char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* The four digits of a \u escape, or -1. */
static int32_t hex4(const char *p, const char *end)
{
    if (end - p < 4) return -1;
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_digit(p[i]);
        if (digit < 0) return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* The scanners stand at the first character of what they are named after and return what is behind it, or NULL. */

static const char *scan_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"') return p + 1;
        if (c < 0x20) return NULL;
        if (c != '\\') continue;
        if (++p == end) return NULL;
        if (*p == 'u') {
            if (hex4(p + 1, end) < 0) return NULL;
            p += 4;
        } else if (*p == '\0' || !strchr("\"\\/bfnrt", *p)) {
            return NULL;
        }
    }
    return NULL;
}

static const char *scan_digits(const char *p, const char *end)
{
    if (p == end || !is_digit(*p)) return NULL;
    while (p < end && is_digit(*p)) p++;
    return p;
}

static const char *scan_number(const char *p, const char *end)
{
    if (*p == '-') p++;
    if (p < end && *p == '0')
        p++;
    else if (!(p = scan_digits(p, end)))
        return NULL;
    if (p < end && *p == '.' && !(p = scan_digits(p + 1, end))) return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        p = scan_digits(p, end);
    }
    return p;
}

static const char *scan_word(const char *p, const char *end, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

static enum json_text_kind kind_at(char c)
{
    switch (c) {
    case '{':
        return JSON_TEXT_OBJECT;
    case '[':
        return JSON_TEXT_ARRAY;
    case '"':
        return JSON_TEXT_STRING;
    case 'n':
        return JSON_TEXT_NULL;
    case 't':
    case 'f':
        return JSON_TEXT_BOOL;
    default:
        return c == '-' || is_digit(c) ? JSON_TEXT_NUMBER : JSON_TEXT_NONE;
    }
}

static const char *scan_scalar(const char *p, const char *end)
{
    switch (kind_at(*p)) {
    case JSON_TEXT_STRING:
        return scan_string(p, end);
    case JSON_TEXT_NUMBER:
        return scan_number(p, end);
    case JSON_TEXT_NULL:
        return scan_word(p, end, "null");
    case JSON_TEXT_BOOL:
        return scan_word(p, end, *p == 't' ? "true" : "false");
    default:
        return NULL;
    }
}

/* Which of the open levels are objects. */
struct levels {
    uint8_t object[JSON_TEXT_DEPTH / 8];
    int depth;
};

static bool level_open(struct levels *l, bool object)
{
    if (l->depth == JSON_TEXT_DEPTH) return false;
    uint8_t *const byte = &l->object[l->depth / 8];
    const uint8_t bit = (uint8_t)(1 << l->depth % 8);
    *byte = (uint8_t)(object ? *byte | bit : *byte & ~bit);
    l->depth++;
    return true;
}

static bool in_object(const struct levels *l)
{
    const int top = l->depth - 1;
    return l->object[top / 8] >> top % 8 & 1;
}

/* At the first character of a member: skips its key and colon. */
static const char *scan_key(const char *p, const char *end)
{
    if (p == end || *p != '"' || !(p = scan_string(p, end))) return NULL;
    p = skip_space(p, end);
    return p < end && *p == ':' ? skip_space(p + 1, end) : NULL;
}

/* Behind a value: closes levels, then stands at the next value; at the end of the outermost one done is set. */
static const char *scan_after(const char *p, const char *end, struct levels *l, bool *done)
{
    while (l->depth > 0) {
        p = skip_space(p, end);
        if (p == end) return NULL;
        const bool object = in_object(l);
        if (*p == ',') {
            p = skip_space(p + 1, end);
            return object ? scan_key(p, end) : p;
        }
        if (*p++ != (object ? '}' : ']')) return NULL;
        l->depth--;
    }
    *done = true;
    return p;
}

static const char *scan_value(const char *p, const char *end)
{
    struct levels l;
    l.depth = 0;
    bool done = false;
    while (p && !done) {
        if (p == end) return NULL;
        const bool object = *p == '{';
        if (!object && *p != '[') {
            p = scan_scalar(p, end);
            if (p) p = scan_after(p, end, &l, &done);
            continue;
        }
        if (!level_open(&l, object)) return NULL;
        p = skip_space(p + 1, end);
        if (p < end && *p == (object ? '}' : ']')) {
            l.depth--;
            p = scan_after(p + 1, end, &l, &done);
        } else if (object) {
            p = scan_key(p, end);
        }
    }
    return p;
}

struct json_text json_text_read(const char *text, size_t n)
{
    const char *const end = text + n, *const p = skip_space(text, end);
    const char *const behind = p < end ? scan_value(p, end) : NULL;
    if (!behind || skip_space(behind, end) != end) return (struct json_text){JSON_TEXT_NONE, text, n};
    return (struct json_text){kind_at(*p), p, (size_t)(behind - p)};
}

/* ------------------------------------------------------------------------------------------------ inside of a value */

struct json_text_items json_text_items(struct json_text value)
{
    const bool inside = value.kind == JSON_TEXT_ARRAY || value.kind == JSON_TEXT_OBJECT;
    return (struct json_text_items){inside ? value.p : NULL, inside ? value.p + value.n : NULL};
}

/* Behind the valid value at p. */
static const char *behind(const char *p, const char *end)
{
    if (*p != '{' && *p != '[') return scan_scalar(p, end);
    int depth = 0;
    do {
        if (*p == '"') {
            p = scan_string(p, end);
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        if (*p == '}' || *p == ']') depth--;
        p++;
    } while (depth > 0);
    return p;
}

static struct json_text value_at(const char **p, const char *end)
{
    const char *const start = *p;
    *p = behind(start, end);
    return (struct json_text){kind_at(*start), start, (size_t)(*p - start)};
}

bool json_text_next(struct json_text_items *it, struct json_text *key, struct json_text *item)
{
    if (!it->p) return false;
    const bool object = it->end[-1] == '}';
    const char *p = it->p; /* the opening bracket, a comma, or the closing bracket */
    if (p + 1 < it->end) p = skip_space(p + 1, it->end);
    if (p + 1 == it->end) {
        it->p = NULL;
        return false;
    }
    struct json_text k = {JSON_TEXT_NONE, "", 0};
    if (object) {
        k = value_at(&p, it->end);
        p = skip_space(skip_space(p, it->end) + 1, it->end);
    }
    if (key) *key = k;
    *item = value_at(&p, it->end);
    it->p = skip_space(p, it->end);
    return true;
}

struct json_text json_text_member(struct json_text object, const char *name)
{
    struct json_text found = {JSON_TEXT_NONE, "", 0}, key, item;
    if (object.kind != JSON_TEXT_OBJECT) return found;
    const size_t n = strlen(name);
    struct str text = {0};
    struct json_text_items it = json_text_items(object);
    while (json_text_next(&it, &key, &item)) {
        str_clear(&text);
        json_text_unquote(&text, key);
        if (text.n == n && memcmp(str_c(&text), name, n) == 0) found = item;
    }
    str_free(&text);
    return found;
}

/* ------------------------------------------------------------------------------------------------ strings */

static void put_control(struct str *out, unsigned char c)
{
    static const char named[] = "\b\f\n\r\t", letters[] = "bfnrt";
    const char *const at = c ? strchr(named, c) : NULL;
    if (at)
        str_printf(out, "\\%c", letters[at - named]);
    else
        str_printf(out, "\\u%04x", c);
}

/* Bytes from p on that need no escape. */
static size_t plain_run(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (unsigned char)p[i] >= 0x20 && p[i] != '"' && p[i] != '\\' && (unsigned char)p[i] < 0x80) i++;
    return i;
}

void json_text_quote(struct str *out, const char *bytes, size_t n)
{
    str_puts(out, "\"");
    for (size_t i = 0; i < n;) {
        const size_t run = plain_run(bytes + i, n - i);
        str_add(out, bytes + i, run);
        i += run;
        if (i == n) break;
        const unsigned char c = (unsigned char)bytes[i];
        const int length = utf8_at(bytes + i, n - i);
        if (c == '"' || c == '\\')
            str_printf(out, "\\%c", c);
        else if (c < 0x20)
            put_control(out, c);
        else if (length > 0)
            str_add(out, bytes + i, (size_t)length);
        else
            str_puts(out, "\uFFFD");
        i += length > 0 ? (size_t)length : length < 0 ? (size_t)-length : n - i;
    }
    str_puts(out, "\"");
}

static void put_utf8(struct str *out, uint32_t c)
{
    char b[4];
    size_t n = 0;
    if (c < 0x80) {
        b[n++] = (char)c;
    } else {
        if (c < 0x800) {
            b[n++] = (char)(0xC0 | c >> 6);
        } else {
            if (c < 0x10000) {
                b[n++] = (char)(0xE0 | c >> 12);
            } else {
                b[n++] = (char)(0xF0 | c >> 18);
                b[n++] = (char)(0x80 | (c >> 12 & 0x3F));
            }
            b[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        }
        b[n++] = (char)(0x80 | (c & 0x3F));
    }
    str_add(out, b, n);
}

static bool is_surrogate(int32_t c, bool low)
{
    return c >= (low ? 0xDC00 : 0xD800) && c < (low ? 0xE000 : 0xDC00);
}

/* At the 'u' of an escape; returns what is behind its digits, or those of the pair it starts. */
static const char *put_escape_u(struct str *out, const char *p, const char *end)
{
    const int32_t c = hex4(p + 1, end);
    p += 5;
    if (is_surrogate(c, false) && end - p >= 2 && p[0] == '\\' && p[1] == 'u') {
        const int32_t low = hex4(p + 2, end);
        if (is_surrogate(low, true)) {
            put_utf8(out, (uint32_t)(0x10000 + (c - 0xD800) * 0x400 + (low - 0xDC00)));
            return p + 6;
        }
    }
    put_utf8(out, is_surrogate(c, false) || is_surrogate(c, true) ? 0xFFFD : (uint32_t)c);
    return p;
}

void json_text_unquote(struct str *out, struct json_text string)
{
    static const char letters[] = "bfnrt", named[] = "\b\f\n\r\t";
    if (string.kind != JSON_TEXT_STRING) return;
    const char *p = string.p + 1, *const end = string.p + string.n - 1;
    while (p < end) {
        const char *const escape = memchr(p, '\\', (size_t)(end - p));
        const char *const run_end = escape ? escape : end;
        str_add(out, p, (size_t)(run_end - p));
        p = run_end;
        if (p == end) break;
        p++;
        if (*p == 'u') {
            p = put_escape_u(out, p, end);
        } else {
            const char *const at = strchr(letters, *p);
            str_add(out, at ? &named[at - letters] : p, 1);
            p++;
        }
    }
}

/* ------------------------------------------------------------------------------------------------ written again */

static void rewrite(struct str *out, struct json_text value, const char *comma, const char *colon)
{
    struct str text = {0};
    for (const char *p = value.p, *const end = p + value.n; p < end;) {
        if (*p == '"') {
            const struct json_text string = value_at(&p, end);
            str_clear(&text);
            json_text_unquote(&text, string);
            json_text_quote(out, str_c(&text), text.n);
            continue;
        }
        if (*p == ',')
            str_puts(out, comma);
        else if (*p == ':')
            str_puts(out, colon);
        else if (!is_space(*p))
            str_add(out, p, 1);
        p++;
    }
    str_free(&text);
}

void json_text_official(struct str *out, struct json_text value)
{
    rewrite(out, value, ", ", ": ");
}

void json_text_minified(struct str *out, struct json_text value)
{
    rewrite(out, value, ",", ":");
}
