/* The structure of a tool block: blocks, calls, parameters, and what happens where it is broken.
 *
 * A call whose sending has begun must become valid. So it is sent early only when all that may follow leaves it valid
 * (answer_value.c); text between its tags is then passed over (IN_JUNK). Any other broken call is none: the block stays
 * text if it is the first one, else the answer ends with the calls before it. */
#include <assert.h>
#include <string.h>
#include "base/mem.h"
#include "text/answer_internal.h"

bool block_turn_ended(const struct answer *a)
{
    return a->ended && !a->limit;
}

struct answer_tag block_tag(const struct answer *a, size_t at)
{
    const struct answer_block *const b = &a->block;
    struct answer_tag tag;
    a->o.syntax->tag(b->open ? &b->spelling : NULL, a->in.p + at, a->in.n - at, &tag);
    if (tag.kind == TAG_MORE && (b->open ? block_turn_ended(a) : a->ended)) tag.kind = TAG_NONE;
    return tag;
}

void block_open(struct answer *a, const struct answer_tag *first)
{
    struct answer_block *const b = &a->block;
    *b = (struct answer_block){.open = true,
                               .thinking = a->reasoning,
                               .start = a->from,
                               .tag = a->pos,
                               .pos = a->pos + (first->kind == TAG_BLOCK ? first->n : 0),
                               .spelling = first->spelling};
    if (first->kind != TAG_BLOCK) answer_remark(a, "a tool block lacks the tag that opens it");
}

void block_free(struct answer *a)
{
    struct answer_block *const b = &a->block;
    call_free(&b->call);
    for (size_t i = 0; i < b->n_held; i++) call_free(&b->held[i]);
    mem_free(b->held);
    str_free(&b->value.key);
    str_free(&b->value.text);
    str_free(&b->object);
    str_free(&b->object_key);
    *b = (struct answer_block){0};
}

/* ------------------------------------------------------------------------------------------------ endings */

static enum read_result fail(struct answer *a, size_t at)
{
    a->block.failed_at = at;
    return READ_FAIL;
}

/* Something that is no part of a block follows complete calls, or there is none. */
static enum read_result no_more_calls(struct answer *a)
{
    return a->n_calls ? READ_OVER : fail(a, a->block.pos);
}

enum read_result block_broken(struct answer *a, size_t at)
{
    struct answer_block *const b = &a->block;
    answer_remark(a, "a call of %.*s is broken", (int)b->call.tool->name.n, b->call.tool->name.p);
    if (b->in_object) b->call.open_string = false;
    b->in_object = false;
    if (b->call.sent) {
        b->pos = at;
        b->state = IN_JUNK;
        return READ_ON;
    }
    b->pos = at;
    return no_more_calls(a);
}

enum read_result block_at_limit(struct answer *a)
{
    struct answer_block *const b = &a->block;
    if (b->thinking) return fail(a, a->in.n);
    if (b->state == IN_BLOCK || b->state == AFTER_BLOCK) {
        if (a->n_calls == 0) return fail(a, b->pos);
        a->cut = a->in.n - b->pos > 1 && a->in.p[b->pos + 1] != '/'; /* in the tag of a further call */
        return READ_OVER;
    }
    a->cut = true;
    return READ_OVER;
}

/* ------------------------------------------------------------------------------------------------ calls */

static void hold(struct answer_block *b)
{
    if (b->n_held == b->cap_held) {
        b->cap_held = b->cap_held * 2 + 4;
        b->held = mem_grow(b->held, b->cap_held * sizeof *b->held);
    }
    b->held[b->n_held++] = b->call;
    b->call = (struct answer_call){0};
}

/* The call is over; lacks: what is missing behind it if nothing else follows. */
static enum read_result close_call(struct answer *a, struct answer_lacking lacks)
{
    struct answer_block *const b = &a->block;
    if (lacks.call && !b->call.has_member && b->call.types.n) return block_broken(a, b->pos); /* cut off before them */
    if (!call_complete(a)) {
        answer_remark(a, "the custom tool %.*s is called without input", (int)b->call.tool->name.n,
                      b->call.tool->name.p);
        return block_broken(a, b->pos);
    }
    b->state = IN_BLOCK;
    if (a->o.one_call && b->n_held) { /* all that is wanted of it is the end of the block */
        b->spare = true;
        call_free(&b->call);
        return READ_ON;
    }
    if (b->thinking) {
        hold(b);
    } else {
        call_deliver(a, &b->call);
        call_free(&b->call);
    }
    b->end = b->stop ? b->stop : b->pos;
    b->lacks = lacks;
    return a->o.one_call && !b->thinking ? READ_OVER : READ_ON;
}

static const struct chat_tool *find_tool(const struct answer *a, const struct str *name)
{
    for (size_t i = 0; i < a->o.n_tools; i++)
        if (a->o.tools[i].name.n == name->n && memcmp(a->o.tools[i].name.p, str_c(name), name->n) == 0)
            return &a->o.tools[i];
    return NULL;
}

static enum read_result open_call(struct answer *a, const struct answer_tag *tag)
{
    struct answer_block *const b = &a->block;
    struct str name = {0};
    a->o.syntax->name(tag->name, tag->n_name, &name);
    const struct chat_tool *const tool = find_tool(a, &name);
    if (!tool) answer_remark(a, "no tool \"%s\" is declared", str_c(&name));
    str_free(&name);
    b->pos += tag->n;
    if (!tool) return no_more_calls(a);
    call_open(a, tool);
    b->at_turn_end = (struct answer_lacking){.call = true, .block = true};
    b->state = IN_CALL;
    return READ_ON;
}

/* The end of a block, at least one of whose calls is complete. */
static enum read_result end_block(struct answer *a, size_t n)
{
    struct answer_block *const b = &a->block;
    b->pos += n;
    if (!b->spare) {
        b->end = b->pos;
        b->lacks = (struct answer_lacking){0};
    }
    for (size_t i = 0; i < b->n_held; i++) {
        call_deliver(a, &b->held[i]);
        call_free(&b->held[i]);
    }
    b->n_held = 0;
    b->thinking = false;
    b->state = AFTER_BLOCK;
    return a->o.syntax->call_in_block && !a->o.one_call ? READ_ON : READ_OVER;
}

/* ------------------------------------------------------------------------------------------------ reading */

bool block_partial_end(const struct answer *a, size_t at, const char *element)
{
    const struct answer_spelling *const spelling = &a->block.spelling;
    char end[64] = "</";
    memcpy(end + 2, spelling->marker, spelling->n);
    const size_t n = 2 + spelling->n;
    assert(strlen(element) + 1 < sizeof end - n);
    strcpy(end + n, element);
    strcat(end, ">");
    return a->in.n - at > 1 && answer_literal(a->in.p + at, a->in.n - at, end, strlen(end)) < 0;
}

/* Stands at the next tag: READ_ON. Otherwise *tag says TAG_NONE. */
static enum read_result next_tag(struct answer *a, struct answer_tag *tag)
{
    struct answer_block *const b = &a->block;
    while (b->pos < a->in.n && answer_space(a->in.p[b->pos])) b->pos++;
    *tag = (struct answer_tag){.kind = TAG_NONE};
    if (b->pos == a->in.n) return block_turn_ended(a) ? READ_ON : READ_MORE;
    if (a->in.p[b->pos] == '<') *tag = block_tag(a, b->pos);
    if (tag->kind == TAG_NONE && block_turn_ended(a) &&
        (block_partial_end(a, b->pos, a->o.syntax->call) || block_partial_end(a, b->pos, a->o.syntax->block)))
        b->stop = b->pos, b->pos = a->in.n;
    return tag->kind == TAG_MORE ? READ_MORE : READ_ON;
}

static enum read_result read_block(struct answer *a)
{
    struct answer_tag tag;
    if (next_tag(a, &tag) == READ_MORE) return READ_MORE;
    if (tag.kind == TAG_CALL) return open_call(a, &tag);
    const bool calls = a->n_calls || a->block.n_held;
    if (tag.kind == TAG_BLOCK_END && calls) return end_block(a, tag.n);
    if (tag.kind == TAG_BLOCK && !calls) {
        answer_remark(a, "a tool block opens twice");
        a->block.pos += tag.n;
        return READ_ON;
    }
    if (a->n_calls)
        answer_remark(a, "the end of a tool block is missing");
    else
        answer_remark(a, "a tool block opens without a call in it");
    return no_more_calls(a);
}

static enum read_result read_after_block(struct answer *a)
{
    struct answer_tag tag;
    if (next_tag(a, &tag) == READ_MORE) return READ_MORE;
    if (tag.kind != TAG_BLOCK && tag.kind != TAG_CALL) return READ_OVER;
    if (tag.kind == TAG_BLOCK) a->block.pos += tag.n;
    a->block.state = IN_BLOCK;
    return READ_ON;
}

static enum read_result read_call(struct answer *a)
{
    struct answer_block *const b = &a->block;
    struct answer_tag tag;
    if (next_tag(a, &tag) == READ_MORE) return READ_MORE;
    switch (tag.kind) {
    case TAG_PARAM:
        return value_open(a, &tag);
    case TAG_CALL_END:
        b->pos += tag.n;
        return close_call(a, (struct answer_lacking){.block = true});
    case TAG_CALL:
    case TAG_BLOCK_END:
        answer_remark(a, "a call of %.*s lacks its end", (int)b->call.tool->name.n, b->call.tool->name.p);
        return close_call(a, (struct answer_lacking){.call = true, .block = true});
    default:
        break;
    }
    if (b->pos < a->in.n || b->thinking) return block_broken(a, b->pos);
    answer_remark(a, "the turn ends within a call of %.*s", (int)b->call.tool->name.n, b->call.tool->name.p);
    return close_call(a, b->at_turn_end);
}

/* A parameter that consists of parameters. */
static enum read_result read_object(struct answer *a)
{
    struct answer_block *const b = &a->block;
    struct answer_tag tag;
    if (next_tag(a, &tag) == READ_MORE) return READ_MORE;
    if (tag.kind == TAG_PARAM) return value_open(a, &tag);
    if (tag.kind != TAG_PARAM_END) return block_broken(a, b->pos);
    b->pos += tag.n;
    b->in_object = false;
    str_puts(&b->object, "}");
    str_clear(&b->value.key);
    str_add(&b->value.key, str_c(&b->object_key), b->object_key.n);
    call_key(a);
    call_json(a, json_text_read(b->object.p, b->object.n));
    b->state = IN_CALL;
    return READ_ON;
}

/* Between the tags of a call that is being sent stands something else: on to the next tag. If that is an end of a
 * parameter, then the one before it was none: the string goes on. */
static enum read_result read_junk(struct answer *a)
{
    struct answer_block *const b = &a->block;
    for (; b->pos < a->in.n; b->pos++) {
        if (a->in.p[b->pos] != '<') continue;
        const struct answer_tag tag = block_tag(a, b->pos);
        if (tag.kind == TAG_MORE) return READ_MORE;
        if (!tag.exact || tag.kind == TAG_NONE || tag.kind == TAG_BLOCK) continue;
        if (tag.kind == TAG_PARAM_END && !b->call.open_string) continue;
        b->state = IN_CALL;
        if (tag.kind == TAG_PARAM_END) {
            b->state = IN_VALUE;
            b->value.at = b->pos;
        }
        return READ_ON;
    }
    if (!block_turn_ended(a)) return READ_MORE;
    b->state = IN_CALL;
    return READ_ON;
}

static enum read_result step(struct answer *a)
{
    switch (a->block.state) {
    case IN_BLOCK:
        return read_block(a);
    case AFTER_BLOCK:
        return read_after_block(a);
    case IN_CALL:
        return read_call(a);
    case IN_VALUE:
        return value_read(a);
    case IN_LOOSE:
        return value_read_loose(a);
    case IN_OBJECT:
        return read_object(a);
    case IN_JUNK:
        return read_junk(a);
    }
    return READ_FAIL;
}

enum read_result block_read(struct answer *a)
{
    enum read_result r;
    while ((r = step(a)) == READ_ON) call_pass_on(a);
    call_pass_on(a);
    return r;
}

static void add_end(struct answer *a, const char *element)
{
    str_printf(&a->replay, "</%.*s%s>", (int)a->block.spelling.n, a->block.spelling.marker, element);
}

void block_replay(struct answer *a)
{
    const struct answer_block *const b = &a->block;
    const struct answer_syntax *const s = a->o.syntax;
    str_add(&a->replay, a->in.p + a->text_end, b->end - a->text_end);
    const bool newline = a->replay.n && a->replay.p[a->replay.n - 1] == '\n';
    if ((b->lacks.param ? s->newlines : b->lacks.call || b->lacks.block) && !newline) str_puts(&a->replay, "\n");
    if (b->lacks.param) add_end(a, s->param);
    if (b->lacks.param && (b->lacks.call || b->lacks.block)) str_puts(&a->replay, "\n");
    if (b->lacks.call) add_end(a, s->call);
    if (b->lacks.call && b->lacks.block) str_puts(&a->replay, "\n");
    if (b->lacks.block) add_end(a, s->block);
}
