/* Calls as they are put together: the arguments as one JSON object, or the input of a custom tool. */
#include "base/mem.h"
#include "text/answer_internal.h"

static struct str *target(struct answer *a)
{
    return a->block.in_object ? &a->block.object : &a->block.call.arguments;
}

void call_open(struct answer *a, const struct chat_tool *tool)
{
    struct answer_call *const call = &a->block.call;
    *call = (struct answer_call){.tool = tool};
    tool_types_read(&call->types, tool->schema.p, tool->schema.n);
    if (!tool->custom) str_puts(&call->arguments, "{");
}

void call_send(struct answer *a)
{
    struct answer_call *const call = &a->block.call;
    if (call->sent) return;
    answer_end_prose(a);
    answer_put(a, ANSWER_CALL_BEGIN, call->tool->name.p, call->tool->name.n);
    call->sent = true;
}

void call_key(struct answer *a)
{
    struct answer_call *const call = &a->block.call;
    if (call->tool->custom) return;
    struct str *const out = target(a);
    const bool first = a->block.in_object ? out->n == 1 : !call->has_member;
    if (!first) str_puts(out, ",");
    if (!a->block.in_object) call->has_member = true;
    json_text_quote(out, str_c(&a->block.value.key), a->block.value.key.n);
    str_puts(out, ":");
}

/* Whole characters of the open string. */
static void add_characters(struct answer *a)
{
    if (a->block.call.tool->custom) {
        str_add(target(a), str_c(&a->piece), a->piece.n);
    } else if (a->piece.n) {
        str_clear(&a->quoted);
        json_text_quote(&a->quoted, a->piece.p, a->piece.n);
        str_add(target(a), a->quoted.p + 1, a->quoted.n - 2);
    }
}

void call_string(struct answer *a, const char *bytes, size_t n)
{
    if (!a->block.call.open_string) {
        a->block.call.open_string = true;
        if (!a->block.call.tool->custom) str_puts(target(a), "\"");
    }
    str_clear(&a->piece);
    utf8_feed(&a->block.value.utf8, bytes, n, &a->piece);
    add_characters(a);
}

void call_end_string(struct answer *a)
{
    if (!a->block.call.open_string) return;
    a->block.call.open_string = false;
    str_clear(&a->piece);
    utf8_end(&a->block.value.utf8, &a->piece);
    add_characters(a);
    if (!a->block.call.tool->custom) str_puts(target(a), "\"");
}

void call_json(struct answer *a, struct json_text value)
{
    json_text_minified(target(a), value);
}

void call_pass_on(struct answer *a)
{
    struct answer_call *const call = &a->block.call;
    if (!call->sent) return;
    answer_put(a, ANSWER_CALL_ARGUMENTS, str_c(&call->arguments), call->arguments.n);
    str_clear(&call->arguments);
}

bool call_complete(struct answer *a)
{
    struct answer_call *const call = &a->block.call;
    call_end_string(a);
    if (call->tool->custom) return call->has_member;
    str_puts(&call->arguments, "}");
    return true;
}

void call_deliver(struct answer *a, struct answer_call *call)
{
    if (!call->sent) {
        answer_end_prose(a);
        answer_put(a, ANSWER_CALL_BEGIN, call->tool->name.p, call->tool->name.n);
    }
    answer_put(a, ANSWER_CALL_ARGUMENTS, str_c(&call->arguments), call->arguments.n);
    answer_put(a, ANSWER_CALL_END, NULL, 0);
    a->n_calls++;
}

void call_free(struct answer_call *call)
{
    tool_types_free(&call->types);
    str_free(&call->arguments);
    *call = (struct answer_call){0};
}
