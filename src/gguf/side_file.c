#include "gguf/side_file.h"
#include <string.h>

#define UNUSED    "which this version does not use"
#define VISION    "a vision encoder, and this version reads text only"
#define ITS_MODEL "give the language model that it belongs to"
#define WANTED    "a language model is needed"

static const struct {
    const char *key, *value;
    struct side_file file;
} side_files[] = {
    {"general.type", "imatrix", {"an importance matrix, which is for making models", WANTED}},
    {"general.type", "adapter", {"an adapter, " UNUSED, WANTED}},
    {"general.type", "mmproj", {VISION, ITS_MODEL}},
    {"general.architecture", "clip", {VISION, ITS_MODEL}},
    {"general.architecture", "dspark", {"a DSpark draft, " UNUSED, SIDE_MODEL_ALONE}},
    {"general.architecture", "deepseek4-dspark", {"a DSpark draft of DeepSeek V4, " UNUSED, SIDE_MODEL_ALONE}},
    {"general.architecture", "deepseek41-dspark", {"a DSpark draft of DeepSeek V4.1, " UNUSED, SIDE_MODEL_ALONE}},
    {"general.architecture", "deepseek4-mtp", {"an MTP draft of DeepSeek V4, " UNUSED, SIDE_MODEL_ALONE}},
    {"general.architecture", "deepseek4_mtp_support", {"an MTP draft of DeepSeek V4, " UNUSED, SIDE_MODEL_ALONE}},
};

/* The text of a key; false: there is none. */
static bool text_of(const struct gguf *g, const char *key, struct gguf_str *s)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    return kv && kv->type == GGUF_STRING && gguf_string(kv, 0, s, NULL) == 0;
}

static bool is(const struct gguf_str *s, const char *text)
{
    return s->n == strlen(text) && memcmp(s->p, text, (size_t)s->n) == 0;
}

bool side_file_tell(const struct gguf *g, struct side_file *out)
{
    static const struct side_file vision = {VISION, ITS_MODEL}, dspark = {"a DSpark draft, " UNUSED, SIDE_MODEL_ALONE},
                                  dflash = {"a DFlash draft, " UNUSED, SIDE_MODEL_ALONE};
    struct gguf_str s;
    for (size_t i = 0; i < sizeof side_files / sizeof *side_files; i++) {
        if (!text_of(g, side_files[i].key, &s) || !is(&s, side_files[i].value)) continue;
        *out = side_files[i].file;
        return true;
    }
    if (!text_of(g, "general.architecture", &s)) return false;
    const bool drafts = is(&s, "dflash"), sees = s.n > 7 && memcmp(s.p + s.n - 7, "-vision", 7) == 0;
    /* Drafts of one architecture, of two kinds. */
    if (drafts) *out = gguf_kv_find(g, "dflash.hyper_connection.count") ? dspark : dflash;
    if (sees) *out = vision;
    return drafts || sees;
}
