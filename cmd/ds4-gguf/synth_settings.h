/* --set KEY=VALUE of ds4-gguf synth. */
#ifndef SYNTH_SETTINGS_H
#define SYNTH_SETTINGS_H
#include "base/err.h"
#include "gguf/gguf.h"

enum { SYNTH_SETTINGS_MAX = 128, SYNTH_KEY_MAX = 128 };

/* What the command line sets, in its order: of a key that is set twice the last value counts. */
struct synth_settings {
    struct synth_setting {
        char key[SYNTH_KEY_MAX];
        const char *value; /* borrowed; without "TYPE:" */
        const char *type;  /* of a key that the family does not have; else NULL */
    } at[SYNTH_SETTINGS_MAX];
    int n;
};

/* Adds "KEY=VALUE": a key of the family, with or without its prefix, general.name, or any other key with a type,
 * "KEY=u32:VALUE" (u32, i32, u64, f32, bool, str). ERR_ARG with near keys for a key that is neither. text is borrowed.
 */
int synth_settings_add(struct synth_settings *s, const char *text, struct err *e);
int synth_settings_add_pair(struct synth_settings *s, const char *key, const char *value, struct err *e);
/* The value of general.name; NULL: not set. */
const char *synth_settings_name(const struct synth_settings *s);
/* True for a parameter of the family. */
bool synth_setting_is_shape(const struct synth_setting *s);
/* Writes the keys that have a type. */
void synth_settings_put(const struct synth_settings *s, struct gguf_writer *w);

#endif
