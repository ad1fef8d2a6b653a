/* --set KEY=VALUE of ds4-gguf synth. */
#ifndef SYNTH_SETTINGS_H
#define SYNTH_SETTINGS_H
#include "base/err.h"
#include "gguf/gguf.h"
#include "param_keys.h"

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

/* The keys of a family, with or without "arch." in front. */
struct synth_keys {
    const char *arch;
    const struct param_key *keys;
    /* param_set, for the family's own kinds too. */
    int (*set)(void *params, const struct param_key *k, const char *text, struct err *e);
    void *any; /* parameters that may be set to see whether a text is a value */
};

/* Adds "KEY=VALUE": a key of the family, general.name, or any other key with a type, "KEY=u32:VALUE" (u32, i32, u64,
 * f32, bool, str). ERR_ARG with near keys for a key that is neither. text is borrowed. */
int synth_settings_add(struct synth_settings *s, const struct synth_keys *family, const char *text, struct err *e);
int synth_settings_add_pair(struct synth_settings *s, const struct synth_keys *family, const char *key,
                            const char *value, struct err *e);
/* Sets those that are parameters of the family. */
int synth_settings_apply(const struct synth_settings *s, const struct synth_keys *family, void *params, struct err *e);
/* The value of general.name; NULL: not set. */
const char *synth_settings_name(const struct synth_settings *s);
/* Writes the keys that have a type. */
void synth_settings_put(const struct synth_settings *s, struct gguf_writer *w);

#endif
