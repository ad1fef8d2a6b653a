/* The chat frame of DeepSeek V4 (spec prompt-formats 1, 2, 5, 6):
 *
 *   BOS [effort text] SYSTEM { USER text ASSISTANT (THINK reasoning ENDTHINK | ENDTHINK) answer calls EOS } ...
 *   USER text ASSISTANT (THINK | ENDTHINK)
 *
 * Nothing stands between the parts.
 *
 * - SYSTEM: all system messages, wherever they stand, joined by an empty line; then an empty line (also where there is
 *   no system text) and the block of tools (deepseek4_tools.h). With tools_first the block comes first.
 * - One turn: consecutive user and tool messages, joined by an empty line; a tool message is written
 *   <tool_result>text</tool_result>, and a closing tag inside its text as &lt;/tool_result>. Results stand in the order
 *   of their calls.
 * - Reasoning of old answers is repeated only with tools (offered, or a call or result in the conversation), or behind
 *   the last user or tool message. An assistant message that no turn precedes is its bare text and calls.
 * - With maximal effort the format puts a text behind BOS. It needs a context of 393,216 tokens; in a smaller one
 *   CHAT_THINK_MAX becomes CHAT_THINK_HIGH (thinking_used says so). CHAT_THINK_MEDIUM is not known and as HIGH.
 *   CHAT_THINK_DEFAULT is LOW for later checkpoints: never a text behind BOS. */
#ifndef MODELS_DEEPSEEK4_PROMPT_H
#define MODELS_DEEPSEEK4_PROMPT_H
#include "text/chat.h"

/* Which effort is worded how (spec dialects 6.3); a model file does not say which of the two its weights were trained
 * with. For chat_options.efforts. */
enum deepseek4_efforts {
    DEEPSEEK4_EFFORTS_PREVIEW, /* high: nothing; max: the "absolute maximum" text. LOW is as HIGH */
    DEEPSEEK4_EFFORTS_0731 /* low: nothing; high: "absolute maximum"; max: "beyond maximum" (Flash 0731, Vision-Exp) */
};

extern const struct prompt_codec deepseek4_prompt;

#endif
