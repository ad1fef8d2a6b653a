/* Tools in the chat format of Qwen3.8 (spec qwen38 7.3 and 7.4): the block that offers them, and the calls of earlier
 * answers. */
#ifndef MODELS_QWEN38_TOOLS_H
#define MODELS_QWEN38_TOOLS_H
#include "text/chat.h"

#define QWEN38_TOOL_CALL     "<tool_call>"
#define QWEN38_TOOL_CALL_END "</tool_call>"

/* One line per tool, {"type": "function", "function": SCHEMA}: official separators at the top of the schema, nothing
 * between the parts of its members; without the members `strict` and `defer_loading`. A tool whose defer_loading is
 * true is left out. Nothing at all if no tool is left; before is written ahead of the block. True: there is one. */
bool qwen38_tools_offer(struct prompt *p, const struct chat_tool *tools, size_t n, const char *before);

/* In what order the tools' schemas declare their parameters: read once for all calls of a conversation, those that are
 * asked for. Borrows the tools. */
struct qwen38_order;
struct qwen38_orders {
    const struct chat_tool *tools;
    size_t n;
    struct qwen38_order *of; /* [n] */
};
void qwen38_orders_init(struct qwen38_orders *s, const struct chat_tool *tools, size_t n);
void qwen38_orders_free(struct qwen38_orders *s);

/* The calls of an assistant message behind its text (n_text bytes of it were written):
 *
 *   [\n\n behind a text, \n behind a call]<tool_call>\n<function=NAME>\n {<parameter=KEY>\nVALUE\n</parameter>\n}
 *   </function>\n</tool_call>
 *
 * The parameters are in the order of the tool's schema, then what it does not name. Strings stand as they are, other
 * values as minified JSON; arguments that are no JSON object are one parameter `arguments`. A </parameter> in a value
 * and a > in a key are escaped (closing_escape). A block that is known is repeated instead. 0 or
 * ERR_MEMORY. */
int qwen38_tools_calls(struct prompt *p, const struct chat_message *m, size_t n_text, struct qwen38_orders *orders,
                       struct err *e);

#endif
