/* Values of parameters.
 *
 * A string ends at the end tag spelled like the block. A misspelt one ends it only if the next thing is a tag that may
 * follow a value (LOOK_END). Ends of the call or of the block inside a string are data unless the turn ends behind
 * them: then the string's own end is missing (LOOK_TAIL). Where a value seems to have swallowed the next parameter, the
 * call is refused rather than made of guesses. JSON ends at any end tag outside of its strings. */
#include <string.h>
#include "text/answer_internal.h"

static void flush(struct answer *a, size_t upto)
{
    struct answer_value *const v = &a->block.value;
    if (upto <= v->done) return;
    if (v->raw)
        str_add(&v->text, a->in.p + v->done, upto - v->done);
    else
        call_string(a, a->in.p + v->done, upto - v->done);
    v->done = upto;
}

/* Bytes of the newline right before `at`, as far as it was not flushed. */
static size_t newline_before(const struct answer *a, size_t at)
{
    const struct answer_value *const v = &a->block.value;
    if (at <= v->done || a->in.p[at - 1] != '\n') return 0;
    return at - v->done > 1 && a->in.p[at - 2] == '\r' ? 2 : 1;
}

/* Flushes what was read but newlines at its end, which may turn out to belong to end tags. */
static void flush_but_newlines(struct answer *a)
{
    flush(a, a->block.value.solid);
}

/* Everything before `at` was read. */
static void read_up_to(struct answer *a, size_t at)
{
    struct answer_value *const v = &a->block.value;
    const size_t before = v->at;
    v->at = at;
    while (at > before && (a->in.p[at - 1] == '\n' || a->in.p[at - 1] == '\r')) at--;
    if (at > before) v->solid = at;
}

static void begin_string(struct answer *a)
{
    struct answer_block *const b = &a->block;
    b->state = IN_VALUE;
    call_key(a);
    call_string(a, "", 0);
    /* With every declared parameter there, nothing that may follow can make the call invalid or lose a part of it. */
    if (!b->in_object && !b->thinking && (b->call.tool->custom || tool_types_all_given(&b->call.types))) call_send(a);
}

enum read_result value_open(struct answer *a, const struct answer_tag *tag)
{
    struct answer_block *const b = &a->block;
    struct answer_value *const v = &b->value;
    if (!b->in_object) call_end_string(a);
    const size_t start = b->pos + tag->n;
    struct str key = v->key, text = v->text;
    str_clear(&key);
    str_clear(&text);
    *v = (struct answer_value){
        .key = key, .text = text, .start = start, .at = start, .done = start, .solid = start, .type = tag->type};
    a->o.syntax->name(tag->name, tag->n_name, &v->key);
    if (b->call.tool->custom) {
        const bool input = v->key.n == 5 && memcmp(v->key.p, "input", 5) == 0;
        if (!input || b->call.has_member || v->type == VALUE_JSON) {
            answer_remark(a, "the custom tool \"%s\" takes one text named input", str_c(&v->key));
            return block_broken(a, start);
        }
        b->call.has_member = true;
        v->type = VALUE_STRING;
    }
    b->pos = start;
    b->state = IN_VALUE;
    struct tool_parameter *const declared =
        b->in_object ? NULL : tool_types_find(&b->call.types, str_c(&v->key), v->key.n);
    if (declared) declared->given = true;
    if (a->o.syntax->typed && !b->call.tool->custom) {
        const unsigned types = declared ? declared->types : (unsigned)TOOL_TYPES_ANY;
        v->raw = types != TOOL_TYPES_STRING;
        v->type = types & TOOL_TYPES_STRING ? VALUE_STRING : VALUE_JSON;
    } else if (v->type == VALUE_UNSAID) {
        v->type = VALUE_STRING;
        if (!b->in_object) {
            b->state = IN_LOOSE;
            return READ_ON;
        }
    }
    if (v->type == VALUE_STRING && !v->raw) begin_string(a);
    return READ_ON;
}

/* A parameter that does not say what it is: an object if it starts with a parameter, else a string. */
enum read_result value_read_loose(struct answer *a)
{
    struct answer_block *const b = &a->block;
    struct answer_value *const v = &b->value;
    while (v->at < a->in.n && answer_space(a->in.p[v->at])) v->at++;
    if (v->at == a->in.n && !block_turn_ended(a)) return READ_MORE;
    if (v->at < a->in.n && a->in.p[v->at] == '<') {
        const struct answer_tag tag = block_tag(a, v->at);
        if (tag.kind == TAG_MORE) return READ_MORE;
        if (tag.kind == TAG_PARAM) {
            b->in_object = true;
            str_clear(&b->object);
            str_puts(&b->object, "{");
            str_clear(&b->object_key);
            str_add(&b->object_key, str_c(&v->key), v->key.n);
            b->pos = v->at;
            b->state = IN_OBJECT;
            return READ_ON;
        }
    }
    v->at = v->start;
    begin_string(a);
    return READ_ON;
}

/* The text of a value whose type its text decides is whole. */
static void decide(struct answer *a)
{
    struct answer_value *const v = &a->block.value;
    const struct tool_parameter *const declared = tool_types_find(&a->block.call.types, str_c(&v->key), v->key.n);
    const unsigned types = declared ? declared->types : (unsigned)TOOL_TYPES_ANY;
    const struct json_text value = json_text_read(str_c(&v->text), v->text.n);
    const bool json = value.kind != JSON_TEXT_NONE && value.kind != JSON_TEXT_STRING &&
                      ((types & 1u << value.kind) || !(types & TOOL_TYPES_STRING));
    call_key(a);
    if (json) {
        call_json(a, value);
    } else {
        call_string(a, str_c(&v->text), v->text.n);
        call_end_string(a);
    }
}

/* The value is in[start..end); reading goes on at next. */
static enum read_result end_value(struct answer *a, size_t end, size_t next)
{
    struct answer_block *const b = &a->block;
    struct answer_value *const v = &b->value;
    if (v->openers && !b->call.sent) {
        answer_remark(a, "an end tag seems to be missing in the argument \"%s\" of %.*s", str_c(&v->key),
                      (int)b->call.tool->name.n, b->call.tool->name.p);
        return block_broken(a, end);
    }
    if (a->o.syntax->newlines) {
        const size_t newline = newline_before(a, end);
        end -= newline == 2 && !v->crlf ? 1 : newline;
    }
    flush(a, end);
    if (v->raw)
        decide(a);
    else if (b->in_object)
        call_end_string(a);
    v->look = LOOK_NOT;
    b->pos = next;
    b->state = b->in_object ? IN_OBJECT : IN_CALL;
    return READ_ON;
}

/* The turn ends in the value. */
static enum read_result end_with_turn(struct answer *a)
{
    struct answer_block *const b = &a->block;
    struct answer_value *const v = &b->value;
    if (b->thinking || b->in_object || (!b->call.sent && v->end_seen)) return block_broken(a, a->in.n);
    b->at_turn_end.param = true;
    return end_value(a, v->solid > v->done ? v->solid : v->done, a->in.n);
}

static enum read_result end_misspelt(struct answer *a, size_t next)
{
    const struct answer_block *const b = &a->block;
    answer_remark(a, "the end of the argument \"%s\" of %.*s is misspelt", str_c(&b->value.key),
                  (int)b->call.tool->name.n, b->call.tool->name.p);
    return end_value(a, b->value.at, next);
}

/* Whether what looks like an end of the value is one. */
static enum read_result look_ahead(struct answer *a)
{
    struct answer_block *const b = &a->block;
    struct answer_value *const v = &b->value;
    while (v->look_at < a->in.n && answer_space(a->in.p[v->look_at])) v->look_at++;
    if (v->look_at == a->in.n) {
        if (!block_turn_ended(a)) return READ_MORE;
        if (b->thinking || b->in_object) return block_broken(a, a->in.n);
        if (v->look == LOOK_END) return end_misspelt(a, a->in.n);
        b->at_turn_end = (struct answer_lacking){.block = !v->tail_block};
        return end_value(a, v->at - (a->o.syntax->newlines ? 0 : newline_before(a, v->at)), a->in.n);
    }
    const struct answer_tag tag =
        a->in.p[v->look_at] == '<' ? block_tag(a, v->look_at) : (struct answer_tag){.kind = TAG_NONE};
    if (tag.kind == TAG_MORE) return READ_MORE;
    const bool ends = tag.kind == TAG_CALL_END || tag.kind == TAG_BLOCK_END;
    if (v->look == LOOK_END) {
        if (ends || tag.kind == TAG_PARAM || tag.kind == TAG_CALL || (b->in_object && tag.kind == TAG_PARAM_END))
            return end_misspelt(a, v->look_at);
    } else if (ends && tag.exact) {
        v->tail_block |= tag.kind == TAG_BLOCK_END;
        v->look_at += tag.n;
        return READ_ON;
    } else {
        v->end_seen = true;
    }
    v->look = LOOK_NOT; /* it was data */
    read_up_to(a, v->look_at);
    return READ_ON;
}

static void look(struct answer *a, int how, const struct answer_tag *tag)
{
    struct answer_value *const v = &a->block.value;
    flush_but_newlines(a);
    v->look = how;
    v->look_at = v->at + tag->n;
    v->tail_block = tag->kind == TAG_BLOCK_END;
}

/* A parameter tag inside a string is data, unless it makes it likely that the string's own end is missing: it starts a
 * line, and it is the tag of another parameter of this tool, or the end of a call came before it. */
static void weigh_opener(struct answer *a, const struct answer_tag *tag)
{
    struct answer_block *const b = &a->block;
    struct answer_value *const v = &b->value;
    size_t line = v->at;
    while (line > v->start && (a->in.p[line - 1] == ' ' || a->in.p[line - 1] == '\t')) line--;
    if (line > v->start && a->in.p[line - 1] != '\n') return;
    struct str key = {0};
    a->o.syntax->name(tag->name, tag->n_name, &key);
    const struct tool_parameter *const other = tool_types_find(&b->call.types, str_c(&key), key.n);
    if (v->end_seen || (other && !other->given && !b->in_object)) v->openers++;
    str_free(&key);
}

/* At '<' in a string. */
static enum read_result tag_in_string(struct answer *a)
{
    struct answer_value *const v = &a->block.value;
    const struct answer_tag tag = block_tag(a, v->at);
    if (tag.kind == TAG_MORE) {
        flush_but_newlines(a);
        return READ_MORE;
    }
    if (tag.kind == TAG_PARAM_END && tag.exact) return end_value(a, v->at, v->at + tag.n);
    if (tag.kind == TAG_PARAM_END) {
        look(a, LOOK_END, &tag);
    } else if ((tag.kind == TAG_CALL_END || tag.kind == TAG_BLOCK_END) && tag.exact) {
        look(a, LOOK_TAIL, &tag);
    } else if (block_turn_ended(a) && block_partial_end(a, v->at, a->o.syntax->param) && a->in.n - v->at > 2) {
        a->block.stop = v->at; /* "</" alone is data */
        return end_with_turn(a);
    } else {
        if (tag.kind == TAG_PARAM && tag.exact) weigh_opener(a, &tag);
        read_up_to(a, v->at + 1);
    }
    return READ_ON;
}

/* At '&' in a string. */
static enum read_result entity_in_string(struct answer *a)
{
    struct answer_value *const v = &a->block.value;
    struct str plain = {0};
    const int n = a->o.syntax->escape(&a->block.spelling, a->in.p + v->at, a->in.n - v->at, &plain);
    if (n < 0 && !block_turn_ended(a)) {
        flush(a, v->at);
        return READ_MORE;
    }
    if (n <= 0) {
        read_up_to(a, v->at + 1);
        return READ_ON;
    }
    flush(a, v->at);
    if (v->raw)
        str_add(&v->text, plain.p, plain.n);
    else
        call_string(a, plain.p, plain.n);
    str_free(&plain);
    v->at += (size_t)n;
    v->done = v->solid = v->at;
    if (v->openers) v->openers--;
    return READ_ON;
}

/* The newline ahead of a value belongs to its tag where the frame writes one. */
static enum read_result skip_newline(struct answer *a)
{
    struct answer_value *const v = &a->block.value;
    const char *const p = a->in.p + v->start;
    const size_t n = a->in.n - v->start;
    if (n == 0 || (n == 1 && *p == '\r')) {
        if (!block_turn_ended(a)) return READ_MORE;
    } else {
        v->crlf = p[0] == '\r' && p[1] == '\n';
        v->start += v->crlf ? 2 : p[0] == '\n';
        v->at = v->done = v->solid = v->start;
    }
    v->begun = true;
    return READ_ON;
}

static enum read_result read_string(struct answer *a)
{
    struct answer_value *const v = &a->block.value;
    if (a->o.syntax->newlines && !v->begun) return skip_newline(a);
    if (v->look != LOOK_NOT) return look_ahead(a);
    for (; v->at < a->in.n; v->at++) {
        const char c = a->in.p[v->at];
        if (c == '<') return tag_in_string(a);
        if (c == '&') return entity_in_string(a);
        if (c != '\n' && c != '\r') v->solid = v->at + 1;
        if (!v->raw || v->type != VALUE_JSON) continue;
        /* where the type is JSON for certain, its strings are known for value_is_syntax */
        if (v->in_string && c == '\\')
            v->escape = !v->escape;
        else if (c == '"' && !v->escape)
            v->in_string = !v->in_string;
        if (c != '\\') v->escape = false;
    }
    if (block_turn_ended(a)) return end_with_turn(a);
    flush_but_newlines(a);
    return READ_MORE;
}

/* JSON is in[start..end). */
static enum read_result end_json(struct answer *a, size_t end, size_t next)
{
    static const struct json_text null = {JSON_TEXT_NULL, "null", 4};
    struct answer_block *const b = &a->block;
    struct answer_value *const v = &b->value;
    const char *const p = a->in.p + v->start;
    const size_t n = end - v->start;
    struct json_text value = json_text_read(p, n);
    size_t space = 0;
    while (space < n && answer_space(p[space])) space++;
    if (space == n) value = null;
    if (value.kind == JSON_TEXT_NONE) {
        answer_remark(a, "the argument \"%s\" of %.*s is not valid JSON", str_c(&v->key), (int)b->call.tool->name.n,
                      b->call.tool->name.p);
        return block_broken(a, end);
    }
    call_key(a);
    call_json(a, value);
    b->pos = next;
    b->state = b->in_object ? IN_OBJECT : IN_CALL;
    return READ_ON;
}

static enum read_result read_json(struct answer *a)
{
    struct answer_value *const v = &a->block.value;
    for (; v->at < a->in.n; v->at++) {
        const char c = a->in.p[v->at];
        if (v->in_string) {
            if (v->escape)
                v->escape = false;
            else if (c == '\\')
                v->escape = true;
            else if (c == '"')
                v->in_string = false;
            else if ((unsigned char)c < 0x20)
                return end_json(a, v->at, v->at);
        } else if (c == '"') {
            v->in_string = true;
        } else if (c == '<') {
            const struct answer_tag tag = block_tag(a, v->at);
            if (tag.kind == TAG_MORE) return READ_MORE;
            return end_json(a, v->at, v->at + (tag.kind == TAG_PARAM_END ? tag.n : 0));
        }
    }
    if (!block_turn_ended(a)) return READ_MORE;
    if (a->block.thinking || a->block.in_object) return block_broken(a, a->in.n);
    a->block.at_turn_end.param = true;
    return end_json(a, a->in.n, a->in.n);
}

enum read_result value_read(struct answer *a)
{
    return a->block.value.type == VALUE_JSON && !a->block.value.raw ? read_json(a) : read_string(a);
}

bool value_is_syntax(const struct answer *a)
{
    const struct answer_value *const v = &a->block.value;
    if (v->type == VALUE_JSON && !v->in_string) return true;
    if (v->look != LOOK_NOT) return v->look == LOOK_END;
    return v->type == VALUE_STRING && v->at < a->in.n && a->in.p[v->at] == '<' &&
           block_partial_end(a, v->at, a->o.syntax->param);
}
