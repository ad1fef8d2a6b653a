/* What the chat format puts behind the first token to ask for more reasoning (spec prompt-formats 2.1). */
#ifndef MODELS_DEEPSEEK4_EFFORT_H
#define MODELS_DEEPSEEK4_EFFORT_H

extern const char deepseek4_effort_absolute[]; /* preview: max; 0731 and later: high */
extern const char deepseek4_effort_beyond[];   /* 0731 and later: max */

#endif
