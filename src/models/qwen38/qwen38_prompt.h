/* The chat frame of Qwen3.8 (spec qwen38 7).
 *
 *   [<|im_start|>system\n EFFORT \n\n TOOLS \n\n SYSTEM <|im_end|>\n]      what is empty is left out
 *   <|im_start|>user\n text <|im_end|>\n                                    each user message
 *   <|im_start|>assistant\n <think>\n reasoning \n</think>\n\n text calls <|im_end|>\n
 *   <|im_start|>user {\n<tool_response>\n result \n</tool_response>} <|im_end|>\n      consecutive results
 *
 * The answer starts with <|im_start|>assistant\n<think>\n, without thinking <think>\n\n</think>\n\n.
 *
 * - System messages are joined by an empty line wherever they stand. They, user texts and the texts of answers lose the
 *   white space around them; answers without calls keep what is at their end, so that an answer that comes back is the
 *   text the model wrote.
 * - Reasoning is always repeated, thinking or not. A text that starts with a think block and has no reasoning of its
 * own is split into the two.
 * - Results stand in the order of their calls: nothing else in the frame says to which one they belong.
 * - Tools and calls: qwen38_tools.h. */
#ifndef MODELS_QWEN38_PROMPT_H
#define MODELS_QWEN38_PROMPT_H
#include "text/chat.h"

extern const struct prompt_codec qwen38_prompt;

#endif
