/* DeepSeek V4 (Flash, PRO and any consistent shape): spec deepseek-v4. */
#ifndef MODELS_DEEPSEEK4_H
#define MODELS_DEEPSEEK4_H
#include "models/family.h"

extern const struct family deepseek4_family;

#endif
