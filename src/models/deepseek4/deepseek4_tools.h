/* Tools in the chat format of DeepSeek V4 (spec prompt-formats 3 and 4): the block that offers them, and the calls of
 * earlier answers. */
#ifndef MODELS_DEEPSEEK4_TOOLS_H
#define MODELS_DEEPSEEK4_TOOLS_H
#include "text/chat.h"

/* The block with one schema per line; ends in a line feed. */
void deepseek4_tools_offer(struct prompt *p, const struct chat_tool *tools, size_t n);
/* The calls of an assistant message behind its text: as the model wrote them where that is known, else
 *
 *   \n\n<DSML tool_calls>\n  then per call  <DSML invoke name="N">\n  its parameters, one per line (without any: an
 * empty line)  </DSML invoke>\n  and at the end  </DSML tool_calls>
 *
 * - A member of the arguments object is a parameter. Strings stand as they are, with string="true"; everything else is
 *   JSON in the official style, with string="false".
 * - Arguments that are no JSON object are one string parameter `arguments`; empty ones are no parameter.
 * - A closing parameter tag inside a string is written &lt;/..., inside JSON \u003c/... . Names have & < > " as
 *   entities. */
void deepseek4_tools_calls(struct prompt *p, const struct chat_message *m);

#endif
