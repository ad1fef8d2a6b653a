#include "serve/request.h"
#include <string.h>
#include "base/mem.h"

char *request_text(struct request *r, const char *text, size_t n)
{
    if (r->n_texts == r->cap_texts)
        r->texts = mem_grow(r->texts, (r->cap_texts = 2 * r->cap_texts + 16) * sizeof *r->texts);
    char *copy = mem_alloc(n + 1);
    if (n) memcpy(copy, text, n);
    return r->texts[r->n_texts++] = copy;
}

/* Room for one more in an array of n that was grown by this alone. It doubles: not every allocator extends a large
 * array where it is. */
static void *room_for_one(void *array, size_t n, size_t size)
{
    const bool full = (n & (n - 1)) == 0; /* as many as fit are a power of two, or none */
    return full ? mem_grow(array, (n ? 2 * n : 1) * size) : array;
}

struct chat_message *request_message(struct request *r, enum chat_role role)
{
    r->message = room_for_one(r->message, r->n_messages, sizeof *r->message);
    struct chat_message *m = &r->message[r->n_messages++];
    *m = (struct chat_message){.role = role};
    return m;
}

struct chat_call *request_call(struct request *r)
{
    struct chat_message *m = &r->message[r->n_messages - 1];
    struct chat_call *calls = room_for_one((struct chat_call *)m->calls, m->n_calls, sizeof *calls);
    m->calls = calls;
    calls[m->n_calls] = (struct chat_call){0};
    return &calls[m->n_calls++];
}

struct chat_tool *request_tool(struct request *r, struct request_tool form)
{
    r->tool = room_for_one(r->tool, r->n_tools, sizeof *r->tool);
    r->tool_form = room_for_one(r->tool_form, r->n_tools, sizeof *r->tool_form);
    r->tool_form[r->n_tools] = form;
    r->tool[r->n_tools] = (struct chat_tool){.name = {form.name, strlen(form.name)}};
    return &r->tool[r->n_tools++];
}

void request_free(struct request *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_messages; i++) mem_free((struct chat_call *)r->message[i].calls);
    for (size_t i = 0; i < r->n_texts; i++) mem_free(r->texts[i]);
    mem_free(r->message);
    mem_free(r->tool);
    mem_free(r->tool_form);
    mem_free(r->stop);
    mem_free(r->texts);
    mem_free(r->raw);
    mem_free(r->key);
    json_decref(r->body);
    mem_free(r);
}
