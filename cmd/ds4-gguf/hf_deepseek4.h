/* config.json of a DeepSeek V4 source checkpoint (spec deepseek-v4 1). */
#ifndef HF_DEEPSEEK4_H
#define HF_DEEPSEEK4_H
#include "base/err.h"
#include "deepseek4_layout.h"

/* Reads and checks. What the architecture has no place for (another scoring function, another activation) is refused by
 * key. */
int hf_deepseek4_config(const char *path, struct deepseek4_params *p, struct err *e);

#endif
