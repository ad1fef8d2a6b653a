/* Qwen3.8 Flash Next (any consistent shape): spec qwen38. */
#ifndef MODELS_QWEN38_H
#define MODELS_QWEN38_H
#include "models/family.h"

extern const struct family qwen38_family;

#endif
