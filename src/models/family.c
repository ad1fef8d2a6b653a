/* The list of families, and the device of each part of a layer. */
#include "models/family.h"
#include <string.h>
#include "models/deepseek4/deepseek4.h"
#include "models/deepseek4/deepseek4_prompt.h"
#include "models/qwen38/qwen38.h"
#include "models/qwen38/qwen38_prompt.h"

struct dev *plan_device(const struct plan *p, int layer, enum plan_part part)
{
    (void)layer, (void)part;
    return p->dev;
}

const struct family *family_of(enum canonical_family f)
{
    switch (f) {
    case CANONICAL_DEEPSEEK4:
        return &deepseek4_family;
    case CANONICAL_QWEN38:
        return &qwen38_family;
    case CANONICAL_FAMILY_COUNT:
        break;
    }
    return NULL;
}

const struct prompt_codec *family_prompt(const char *name)
{
    static const struct prompt_codec *const prompts[] = {&deepseek4_prompt, &qwen38_prompt};
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++)
        if (strcmp(prompts[i]->family, name) == 0) return prompts[i];
    return NULL;
}
