/* What the user is told about a file: the report of spec dialects 13.1 and the warnings of 13.2. */
#include "dialect/dialect_internal.h"
#include <stdio.h>
#include <string.h>
#include "quant/quant.h"

/* ---- precision */

static double bits_of(uint32_t type)
{
    const struct quant_type *q = quant_type(type);
    return 8.0 * q->block_bytes / q->block;
}

static bool is_plain_float(uint32_t type)
{
    return type == QT_F32 || type == QT_F16 || type == QT_BF16;
}

static bool is_crude(uint32_t type)
{
    return type == QT_Q1_0 || type == QT_TQ1_0 || type == QT_TQ2_0 || type == QT_IQ1_S || type == QT_IQ1_M;
}

#define LARGER "a larger quantisation answers better, if this machine has the memory"

static const struct {
    enum tensor_class class;
    const char *id, *text;
    const char *remedy;
} concerns[] = {
    {CLASS_HYPER, "W1", "hyper-connection weights in %s: this file may ignore the prompt (known defect of such files)",
     "get another publisher's, in which these are F16, BF16, F32 or Q8_0"},
    {CLASS_ROUTER, "W2", "router in %s: widened, expert choice may differ",
     "a file that has it in F32, F16 or BF16 chooses as the model does"},
    {CLASS_INDEX, "W3", "long-context selection is imprecise: indexer or compressor in %s",
     "for long contexts get a file that has these in F16, BF16 or Q8_0"},
    {CLASS_MEMORY, "W4", "n-gram gates in %s: what the table adds is imprecise",
     "a file that has these in F16, BF16 or Q8_0 is better"},
    {CLASS_VECTOR, "W6", "norms, biases or other small vectors are quantised (%s)",
     "a file that has these in F32 is hardly larger and better"},
    {CLASS_EDGE, "W7", "very low precision: embedding or output in %s", LARGER},
    {CLASS_EXPERT, "W7", "very low precision: experts in %s", LARGER},
};

static bool is_concern(enum tensor_class class, uint32_t type)
{
    switch (class) {
    case CLASS_HYPER:
    case CLASS_INDEX:
    case CLASS_MEMORY:
        return bits_of(type) < 8;
    case CLASS_ROUTER:
    case CLASS_VECTOR:
        return !is_plain_float(type);
    case CLASS_EDGE:
        return bits_of(type) < 3;
    case CLASS_EXPERT:
        return is_crude(type);
    case CLASS_PLAIN:
        break;
    }
    return false;
}

static const struct source *first_concern(const struct canonical *c, enum tensor_class class, int *n)
{
    const struct source *first = NULL;
    *n = 0;
    for (uint64_t i = 0; i < c->sources.n; i++) {
        const struct source *s = source_at(c, i);
        if (!s->bound || c->family->tensors[s->row].class != class || !is_concern(class, s->t->type)) continue;
        if ((*n)++ == 0) first = s;
    }
    return first;
}

double canonical_expert_bits(const struct canonical *c)
{
    double bytes = 0, weights = 0;
    for (uint64_t i = 0; i < c->sources.n; i++) {
        const struct source *s = source_at(c, i);
        if (!s->bound || c->family->tensors[s->row].class != CLASS_EXPERT) continue;
        bytes += (double)tensor_view_bytes(&s->view);
        weights += (double)s->view.ne[0] * (double)s->view.ne[1] * (double)s->view.ne[2];
    }
    return weights > 0 ? 8 * bytes / weights : 0;
}

void dialect_warn_precision(struct canonical *c)
{
    for (size_t i = 0; i < sizeof concerns / sizeof *concerns; i++) {
        int n;
        char text[160];
        const struct source *s = first_concern(c, concerns[i].class, &n);
        if (!s) continue;
        const char *mark = strstr(concerns[i].text, "%s");
        snprintf(text, sizeof text, "%.*s%s%s", (int)(mark - concerns[i].text), concerns[i].text,
                 quant_type(s->t->type)->name, mark + 2);
        dialect_warn(c, concerns[i].id, "%s (%s%s); %s", text, s->name, n > 1 ? " and others" : "", concerns[i].remedy);
    }
    const double bits = canonical_expert_bits(c);
    if (bits > 0 && bits < 2.1)
        dialect_warn(c, "W7", "very low precision: experts have %.2f bits a weight; " LARGER, bits);
}

/* ---- keys that nobody asked for */

static bool is_asked_for(const struct canonical *c, const struct gguf_kv *kv)
{
    for (int i = 0; i < c->family->n_keys; i++)
        if (c->values[i].kv == kv) return true;
    for (int i = 0; i < c->family->n_arrays; i++)
        if (c->arrays[i].kv == kv) return true;
    return false;
}

/* Of the model: named after its architecture or its family. */
static bool is_model_key(const struct canonical *c, const struct gguf_str *key)
{
    char prefix[100];
    snprintf(prefix, sizeof prefix, "%.90s.", c->arch);
    if (dialect_begins(key, prefix)) return true;
    for (int i = 0; i < 4 && c->family->prefix[i]; i++) {
        snprintf(prefix, sizeof prefix, "%s.", c->family->prefix[i]);
        if (dialect_begins(key, prefix)) return true;
    }
    return false;
}

/* The type that the factor stands for, or that there is none. */
static bool is_known_scaling(const struct canonical *c, const struct gguf_kv *kv)
{
    return dialect_ends(&kv->key, ".rope.scaling.type") && is_model_key(c, &kv->key) &&
           (dialect_text_is(kv, "yarn") || dialect_text_is(kv, "none"));
}

/* It is the factor that is computed with; the type may contradict it. */
static void check_scaling(struct canonical *c, const struct gguf_kv *kv)
{
    if (c->refused.code) return; /* another value may stand in for the factor */
    const double factor = canonical_float(c, "rope.scaling.factor");
    const bool scaled = dialect_text_is(kv, "yarn");
    if (scaled != (factor > 1))
        dialect_warn(c, "W9", "key %.*s says %s, rope.scaling.factor %g: using the factor", (int)kv->key.n, kv->key.p,
                     scaled ? "yarn" : "none", factor);
}

/* Unknown keys are ignored; those that would change the computation are named. */
static bool changes_computation(const struct gguf_kv *kv)
{
    if (dialect_ends(&kv->key, ".rope.scaling.type")) return true; /* of no type that is known */
    return dialect_ends(&kv->key, ".attention.clamp_kqv") || dialect_begins(&kv->key, "reap.") ||
           dialect_contains(&kv->key, ".attn_res.");
}

enum { MOST_STRANGE = 10, MOST_IGNORED = 3 }; /* keys that are named */

void dialect_note_keys(struct canonical *c)
{
    int n = 0, strange = 0;
    for (uint64_t i = 0; i < gguf_set_n_kv(c->set); i++) {
        const struct gguf_kv *kv = gguf_set_kv_at(c->set, i);
        if (is_asked_for(c, kv)) continue;
        if (is_known_scaling(c, kv)) {
            check_scaling(c, kv);
            continue;
        }
        if (is_model_key(c, &kv->key) && n++ < MOST_IGNORED)
            dialect_note(c, NOTE_IGNORED, "key %.*s", (int)(kv->key.n < 100 ? kv->key.n : 100), kv->key.p);
        if (changes_computation(kv) && strange++ < MOST_STRANGE)
            dialect_warn(c, "", "key %.*s is not understood and has no effect",
                         (int)(kv->key.n < 100 ? kv->key.n : 100), kv->key.p);
    }
    if (strange > MOST_STRANGE)
        dialect_warn(c, "", "%d more keys are not understood and have no effect", strange - MOST_STRANGE);
    if (n > MOST_IGNORED)
        dialect_note(c, NOTE_IGNORED, "%d more key%s", n - MOST_IGNORED, n == MOST_IGNORED + 1 ? "" : "s");
}

/* ---- the report */

static int count_of(const struct canonical *c, uint32_t type)
{
    int n = 0;
    for (uint64_t i = 0; quant_type(type) && i < c->sources.n; i++)
        n += source_at(c, i)->bound && source_at(c, i)->t->type == type;
    return n;
}

static void census(const struct canonical *c, struct str *out)
{
    const char *between = "types: ";
    for (uint32_t type = 0; type < QT_READINGS_END; type++) {
        if (type == 256) type = QT_READINGS;
        const int n = count_of(c, type);
        if (!n) continue;
        str_printf(out, "%s%s %d", between, quant_type(type)->name, n);
        between = ", ";
    }
    const double bits = canonical_expert_bits(c);
    if (bits > 0) str_printf(out, "; experts %.2f bits a weight", bits);
    str_puts(out, "\n");
}

/* The notes of a kind, on one line. */
static void section(const struct canonical *c, enum canonical_note kind, const char *title, struct str *out)
{
    const char *text;
    for (int i = 0; (text = canonical_note(c, kind, i, NULL)); i++) str_printf(out, "%s%s", i ? ", " : title, text);
    if (kind == NOTE_RENAMED && canonical_note(c, kind, 0, NULL)) str_puts(out, c->n_renamed > 3 ? ", ...)" : ")");
    if (canonical_note(c, kind, 0, NULL)) str_puts(out, "\n");
}

void canonical_report(const struct canonical *c, struct str *out)
{
    const uint64_t n = gguf_set_n_tensors(c->set);
    const char *text;
    char renamed[40];
    str_printf(out, "model: %s, %s (%s, %s dialect), %d %s%s, %llu tensors\n", c->name, canonical_title(c),
               c->family->short_name, c->dialect, c->n_files, gguf_set_is_split(c->set) ? "shard" : "file",
               c->n_files == 1 ? "" : "s", (unsigned long long)n);
    section(c, NOTE_DERIVED, "derived: ", out);
    section(c, NOTE_DEFAULT, "defaults: ", out);
    snprintf(renamed, sizeof renamed, "renamed: %d tensors (", c->n_renamed);
    section(c, NOTE_RENAMED, renamed, out);
    section(c, NOTE_SPLIT, "split: ", out);
    section(c, NOTE_IGNORED, "ignored: ", out);
    census(c, out);
    for (int i = 0; (text = canonical_note(c, NOTE_WARNING, i, NULL)); i++) str_printf(out, "warning: %s\n", text);
}
