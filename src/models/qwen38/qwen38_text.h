/* Texts that the format fixes (see NOTICE). */
#ifndef MODELS_QWEN38_TEXT_H
#define MODELS_QWEN38_TEXT_H

extern const char qwen38_effort_xhigh[], qwen38_effort_low[];  /* at the start of the system turn */
extern const char qwen38_tools_before[], qwen38_tools_after[]; /* around the lines of the tools */

#endif
