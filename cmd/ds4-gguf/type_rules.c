/* Types of tensors. */
#include "type_rules.h"
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/program.h"
#include "base/str.h"
#include "quant/quant.h"
#include "synth_blocks.h"

void type_rules_free(struct type_rules *r)
{
    for (int i = 0; i < r->n_rules; i++) {
        regfree(&r->rule[i].regex);
        mem_free(r->rule[i].text);
    }
    r->n_rules = 0;
}

/* Whether quant_encode knows a type: it takes a block of zeros. */
static bool can_write(uint32_t type)
{
    const float zeros[256] = {0};
    float ones[256];
    uint8_t out[1024];
    for (int i = 0; i < 256; i++) ones[i] = 1;
    const struct quant_type *t = quant_type(type);
    return t && t->block <= 256 && quant_encode(type, zeros, t->block, ones, out) == 0;
}

static bool is_known(bool made_up, uint32_t type)
{
    return made_up ? synth_can_fill(type) : can_write(type);
}

static int parse(bool made_up, const char *name, int *type, struct err *e)
{
    *type = quant_type_by_name(name);
    if (made_up && strcmp(name, "random") == 0) {
        *type = TYPE_RANDOM;
        return 0;
    }
    if (*type >= 0 && is_known(made_up, (uint32_t)*type)) return 0;
    struct str known = {0};
    if (made_up) str_puts(&known, " random");
    for (uint32_t i = 0; i < 64; i++)
        if (is_known(made_up, i)) str_printf(&known, " %s", quant_type(i)->name);
    err_set(e, ERR_ARG, "type %s cannot be written; known:%s", name, str_c(&known));
    str_free(&known);
    return ERR_ARG;
}

int type_rules_parse(const char *name, int *type, struct err *e)
{
    return parse(false, name, type, e);
}

int type_rules_add(struct type_rules *r, const char *spec, struct err *e)
{
    const char *eq = strrchr(spec, '=');
    struct str pattern = {0};
    if (!eq || eq == spec) return err_set(e, ERR_ARG, "'%s' is not REGEX=TYPE", spec);
    if (r->n_rules == TYPE_RULES_MAX) return err_set(e, ERR_ARG, "more than %d type rules", TYPE_RULES_MAX);
    int rc = parse(r->made_up, eq + 1, &r->rule[r->n_rules].type, e);
    if (rc) return rc;
    str_add(&pattern, spec, (size_t)(eq - spec));
    if (regcomp(&r->rule[r->n_rules].regex, str_c(&pattern), REG_EXTENDED | REG_NOSUB))
        rc = err_set(e, ERR_ARG, "'%s' is not a regular expression", str_c(&pattern));
    else
        r->rule[r->n_rules++].text = mem_strdup(spec);
    str_free(&pattern);
    return rc;
}

int type_rules_find(struct type_rules *r, const struct layout_tensor *t)
{
    for (int i = 0; i < r->n_rules; i++)
        if (regexec(&r->rule[i].regex, t->name, 0, NULL, 0) == 0) {
            r->rule[i].hit = true;
            return r->rule[i].type;
        }
    return TYPE_KEEP;
}

static int wanted(struct type_rules *r, const struct layout_tensor *t)
{
    const int type = type_rules_find(r, t);
    if (type != TYPE_KEEP) return type;
    switch (t->role) {
    case ROLE_EMBEDDING:
        return r->embedding;
    case ROLE_HEAD:
    case ROLE_ATTENTION:
    case ROLE_SHARED:
        return r->dense;
    case ROLE_EXPERTS:
        return r->experts;
    default:
        return TYPE_KEEP;
    }
}

uint32_t type_rules_pick(struct type_rules *r, struct layout_tensor *t, uint32_t exact_type, bool pads, int *fallback)
{
    *fallback = TYPE_KEEP;
    /* Small tensors decide much and weigh little: they are never rounded. */
    if (t->role == ROLE_VECTOR) return QT_F32;
    if (t->role == ROLE_SMALL || t->role == ROLE_IDS) return exact_type;
    if (t->role == ROLE_MIXER && exact_type == QT_BF16) exact_type = QT_F16;
    const int type = wanted(r, t);
    if (type == TYPE_KEEP) return exact_type;
    if (pads) type_rules_pad((uint32_t)type, t);
    const uint32_t taken = type_rules_fit((uint32_t)type, t);
    if (taken != (uint32_t)type) *fallback = type;
    return taken;
}

uint32_t type_rules_fit(uint32_t type, const struct layout_tensor *t)
{
    if (t->ne[0] % quant_type(type)->block == 0) return type;
    return t->ne[0] % quant_type(QT_Q8_0)->block ? QT_F16 : QT_Q8_0;
}

void type_rules_pad(uint32_t type, struct layout_tensor *t)
{
    if (type != QT_Q2_K || t->role != ROLE_EXPERTS || t->ne[0] % 256 == 0 || t->ne[0] % 16) return;
    t->logical = t->ne[0];
    t->ne[0] = (t->ne[0] + 255) / 256 * 256;
}

/* Name without the layer: what a note is about. */
static const char *stem(const struct layout_tensor *t)
{
    const char *dot = t->layer < 0 ? NULL : strchr(t->name + 4, '.');
    return dot ? dot + 1 : t->name;
}

void type_rules_note(const struct layout_tensor *tensors, int at, uint32_t wanted_type, uint32_t taken, bool *noted)
{
    const struct layout_tensor *t = &tensors[at];
    for (int i = 0; i < at; i++)
        if (noted[i] && strcmp(stem(&tensors[i]), stem(t)) == 0) return;
    noted[at] = true;
    program_say("ds4-gguf", "note: %s: rows of %d do not fit %s, written as %s", stem(t), (int)t->ne[0],
                quant_type(wanted_type)->name, quant_type(taken)->name);
}

int type_rules_all_hit(const struct type_rules *r, struct err *e)
{
    for (int i = 0; i < r->n_rules; i++)
        if (!r->rule[i].hit)
            return err_set(e, ERR_ARG, "%s %s decides no tensor", r->made_up ? "--types" : "--type", r->rule[i].text);
    return 0;
}
