/* The text of the block that offers tools, without the schemas in its middle. In it the spellings of special tokens are
 * the tokens. */
#ifndef MODELS_DEEPSEEK4_TOOL_TEXT_H
#define MODELS_DEEPSEEK4_TOOL_TEXT_H

extern const char deepseek4_tool_text_before[], deepseek4_tool_text_after[];

#endif
