/* The chat frame of DeepSeek V4 (spec prompt-formats 1, 2, 5, 6):
 *
 *   BOS [effort text] SYSTEM { USER text ASSISTANT (THINK reasoning ENDTHINK | ENDTHINK) answer EOS } ... USER text
 *   ASSISTANT (THINK | ENDTHINK)
 *
 * Nothing stands between the parts. What lies between two special tokens is one span and encoded as a whole.
 *
 * - SYSTEM: all system messages, wherever they stand, joined by an empty line.
 * - One turn: consecutive user and tool messages, joined by an empty line; a tool message is written
 *   <tool_result>text</tool_result>, and a closing tag inside its text as &lt;/tool_result>.
 * - Reasoning of old answers is repeated only with tools (offered, or used in the conversation), or behind the last
 * user or tool message. An assistant message that no turn precedes is its bare text.
 * - With maximal effort the format puts a text behind BOS. It needs a context of 393,216 tokens; in a smaller one
 *   CHAT_THINK_MAX becomes CHAT_THINK_HIGH (thinking_used says so). */
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
