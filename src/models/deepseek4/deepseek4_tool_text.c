/* Fixed by the format: the models were trained on these very bytes (see NOTICE). One sentence is our own: how to write
 * a closing tag inside a value. */
#include "models/deepseek4/deepseek4_tool_text.h"

#define DSML "｜DSML｜"

const char deepseek4_tool_text_before[] =
    "## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "
    "\"<" DSML "tool_calls>\" block like the following:\n\n"
    "<" DSML "tool_calls>\n"
    "<" DSML "invoke name=\"$TOOL_NAME\">\n"
    "<" DSML "parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</" DSML "parameter>\n"
    "...\n"
    "</" DSML "invoke>\n"
    "<" DSML "invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</" DSML "invoke>\n"
    "</" DSML "tool_calls>\n\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types (numbers, booleans, "
    "arrays, objects), pass the value in JSON format and set `string=\"false\"`."
    /* ours: */ " Only where a string itself contains `</" DSML "parameter>`, write that as `&lt;/" DSML "parameter>`."
    "\n\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside "
    "<think>...</think> BEFORE any tool calls or final response.\n\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n\n"
    "### Available Tool Schemas\n\n";

const char deepseek4_tool_text_after[] =
    "\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n";
