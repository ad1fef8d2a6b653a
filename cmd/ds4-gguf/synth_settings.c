/* Settings as they are typed: known keys, keys with a type, and what was perhaps meant. */
#include "synth_settings.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char general_name[] = "general.name";

/* ---- keys that are near */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Fewest letters to insert, take out or change. */
static int distance(const char *a, const char *b)
{
    int row[SYNTH_KEY_MAX + 1];
    const int n = (int)strlen(b);
    for (int j = 0; j <= n; j++) row[j] = j;
    for (; *a; a++) {
        int corner = row[0]++;
        for (int j = 1; j <= n; j++) {
            const int changed = corner + (*a != b[j - 1]);
            corner = row[j];
            row[j] = least(changed, 1 + least(row[j], row[j - 1]));
        }
    }
    return row[n];
}

/* A key of which a part was typed is near as well: its end ("head_count"), or one of its words ("layer"). */
static int distance_to_key(const char *text, const char *key)
{
    char word[SYNTH_KEY_MAX];
    int d = distance(text, key);
    for (const char *p = key; *p;) {
        const size_t n = strcspn(p, "._");
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        d = least(d, 1 + least(distance(text, p), distance(text, word)));
        p += n + (p[n] != 0);
    }
    return d;
}

static int refuse_key(const struct param_key *keys, const char *key, struct err *e)
{
    const char *near[3] = {NULL};
    int far[3] = {SYNTH_KEY_MAX, SYNTH_KEY_MAX, SYNTH_KEY_MAX};
    for (; keys->name; keys++) {
        const char *name = keys->name;
        int d = distance_to_key(key, name);
        for (int k = 0; k < 3; k++) {
            if (d >= far[k]) continue;
            const char *other = near[k];
            const int other_d = far[k];
            near[k] = name, far[k] = d;
            name = other, d = other_d;
        }
    }
    return err_set(e, ERR_ARG,
                   "there is no key %s; near it are %s, %s and %s; a key that the model does not use needs a type, as "
                   "in %s=u32:1",
                   key, near[0], near[1], near[2], key);
}

/* ---- keys with a type */

static bool whole_text(const char *text, const char *end)
{
    return *text && !*end && errno == 0;
}

/* Writes the record, or with w NULL only looks whether the value is one of the type. */
static bool put_typed(struct gguf_writer *w, const char *key, const char *type, const char *text)
{
    char *end = (char *)"";
    errno = 0;
    if (!strcmp(type, "str")) {
        if (w) gguf_put_str(w, key, text, strlen(text));
    } else if (!strcmp(type, "bool")) {
        if (strcmp(text, "true") && strcmp(text, "false")) return false;
        if (w) gguf_put_bool(w, key, *text == 't');
    } else if (!strcmp(type, "f32")) {
        const float v = strtof(text, &end);
        if (!whole_text(text, end) || !isfinite(v)) return false;
        if (w) gguf_put_f32(w, key, v);
    } else if (!strcmp(type, "u64")) {
        const unsigned long long v = strtoull(text, &end, 10);
        if (!whole_text(text, end) || *text == '-') return false;
        if (w) gguf_put_u64(w, key, v);
    } else {
        const bool has_sign = !strcmp(type, "i32");
        const long long v = strtoll(text, &end, 10);
        if (!whole_text(text, end) || v < (has_sign ? INT32_MIN : 0) || v > (has_sign ? INT32_MAX : UINT32_MAX))
            return false;
        if (w && has_sign) gguf_put_i32(w, key, (int32_t)v);
        if (w && !has_sign) gguf_put_u32(w, key, (uint32_t)v);
    }
    return true;
}

/* The type in front of a value, which then begins behind it; NULL: there is none. */
static const char *take_type(const char **value)
{
    static const char *const types[] = {"u32", "i32", "u64", "f32", "bool", "str"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t n = strlen(types[i]);
        if (strncmp(*value, types[i], n) || (*value)[n] != ':') continue;
        *value += n + 1;
        return types[i];
    }
    return NULL;
}

/* Those that end with a dot are the beginnings of several. */
static bool is_ours(const char *key)
{
    static const char *const ours[] = {"general.architecture", "general.type", "general.quantization_version", "split.",
                                       "tokenizer.ggml."};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        const size_t n = strlen(ours[i]);
        if (!strncmp(key, ours[i], n) && (ours[i][n - 1] == '.' || !key[n])) return true;
    }
    return false;
}

static int check_free(struct synth_setting *s, const struct param_key *keys, struct err *e)
{
    if (is_ours(s->key)) return err_set(e, ERR_ARG, "%s cannot be set: it follows from the other options", s->key);
    s->type = take_type(&s->value);
    if (!s->type) return refuse_key(keys, s->key, e);
    if (put_typed(NULL, s->key, s->type, s->value)) return 0;
    return err_set(e, ERR_ARG, "%s: '%s' is no value of type %s", s->key, s->value, s->type);
}

/* ---- the list */

static bool is_shape(const struct synth_setting *s)
{
    return !s->type && strcmp(s->key, general_name);
}

/* The last value of a key counts, at its own place in the order. */
static void append(struct synth_settings *s, const struct synth_setting *new)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->at[i].key, new->key)) s->at[n++] = s->at[i];
    s->at[n++] = *new;
    s->n = n;
}

int synth_settings_add_pair(struct synth_settings *s, const struct synth_keys *family, const char *key,
                            const char *value, struct err *e)
{
    struct synth_setting new = {.value = value};
    const size_t n = strlen(family->arch);
    const bool prefixed = !strncmp(key, family->arch, n) && key[n] == '.';
    if (!*key || strlen(key) >= SYNTH_KEY_MAX)
        return err_set(e, ERR_ARG, "a key has 1 to %d letters", SYNTH_KEY_MAX - 1);
    if (s->n == SYNTH_SETTINGS_MAX) return err_set(e, ERR_ARG, "more than %d keys are set", SYNTH_SETTINGS_MAX);
    snprintf(new.key, sizeof new.key, "%s", prefixed ? key + n + 1 : key);
    const struct param_key *const known = param_find(family->keys, new.key);
    int rc = 0;
    if (known)
        rc = family->set(family->any, known, value, e);
    else if (strcmp(key, general_name)) {
        snprintf(new.key, sizeof new.key, "%s", key);
        rc = check_free(&new, family->keys, e);
    }
    if (!rc) append(s, &new);
    return rc;
}

int synth_settings_add(struct synth_settings *s, const struct synth_keys *family, const char *text, struct err *e)
{
    char key[SYNTH_KEY_MAX];
    const char *eq = strchr(text, '=');
    if (!eq) return err_set(e, ERR_ARG, "'%s' is not KEY=VALUE", text);
    snprintf(key, sizeof key, "%.*s", (int)(eq - text < SYNTH_KEY_MAX ? eq - text : SYNTH_KEY_MAX), text);
    return synth_settings_add_pair(s, family, eq - text < SYNTH_KEY_MAX ? key : "", eq + 1, e);
}

int synth_settings_apply(const struct synth_settings *s, const struct synth_keys *family, void *params, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < s->n && !rc; i++)
        if (is_shape(&s->at[i])) rc = family->set(params, param_find(family->keys, s->at[i].key), s->at[i].value, e);
    return rc;
}

const char *synth_settings_name(const struct synth_settings *s)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->at[i].key, general_name)) return s->at[i].value;
    return NULL;
}

void synth_settings_put(const struct synth_settings *s, struct gguf_writer *w)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i].type) put_typed(w, s->at[i].key, s->at[i].type, s->at[i].value);
}
