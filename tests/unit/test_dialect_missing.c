/* Files of which one thing is missing: every record of the metadata, one by one, of both families. A model without it
 * is the same model, or has a value that the report names, or is refused by the name of what is missing. Tensors
 * likewise: the refusal names the one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "../support/dialect_forms.h"
#include "../support/synth_model.h"
#include "../support/synth_qwen38.h"
#include "../support/temp_files.h"
#include "dialect/canonical.h"
#include "quant/quant.h"

enum { FAMILIES = 2 };

static char base[FAMILIES][TEMP_PATH], edited[TEMP_PATH];

static int set_up(void **state)
{
    struct synth_shape v4 = synth_tiny();
    struct synth_qwen38 qwen = synth_qwen38_tiny();
    struct err e = {0};
    for (int i = 0; i < FAMILIES; i++) temp_file(base[i]);
    temp_file(edited);
    v4.rest = v4.embed = QT_F16;
    v4.dense = QT_Q8_0;
    return synth_deepseek4(base[0], &v4, &e) || synth_qwen38_write(base[1], &qwen, &e);
}

static int tear_down(void **state)
{
    temp_remove(edited);
    return temp_remove(base[0]) || temp_remove(base[1]);
}

static struct canonical *opened(const char *path, struct err *e)
{
    struct canonical *c;
    return canonical_open(&path, 1, NULL, &c, e) ? NULL : c;
}

static bool is_noted(const struct canonical *c, enum canonical_note kind, const char *name)
{
    const char *text;
    const size_t n = strlen(name);
    for (int i = 0; (text = canonical_note(c, kind, i, NULL)); i++)
        if (strncmp(text, name, n) == 0 && text[n] == ' ') return true;
    return false;
}

/* Behind the architecture. */
static const char *stem_of(const char *key)
{
    const bool of_model = strncmp(key, "deepseek4.", 10) == 0 || strncmp(key, "qwen4exp.", 9) == 0;
    return of_model ? strchr(key, '.') + 1 : key;
}

enum outcome { SAME, DERIVED, DEFAULTED, REFUSED, OUTCOMES };

static enum outcome without_key(int family, const char *key, uint64_t digest)
{
    const struct form_edit drop = {EDIT_DROP, key};
    struct err e = {0};
    const char *stem = stem_of(key);
    enum outcome o = SAME;
    if (dialect_form_edit(base[family], edited, &drop, 1, &e)) fail_msg("%s", e.msg);
    struct canonical *c = opened(edited, &e);
    if (!c) {
        if (!strstr(e.msg, stem)) fail_msg("without %s: %s", key, e.msg);
        return REFUSED;
    }
    if (is_noted(c, NOTE_DERIVED, stem)) {
        o = DERIVED;
        if (canonical_digest(c) != digest) fail_msg("without %s: another model is derived", key);
    } else if (is_noted(c, NOTE_DEFAULT, stem)) {
        o = DEFAULTED;
    } else if (canonical_digest(c) != digest) {
        fail_msg("without %s: another model, and nothing is said of it", key);
    }
    canonical_close(c);
    return o;
}

static void keys_one_by_one(void **state)
{
    for (int f = 0; f < FAMILIES; f++) {
        struct err e = {0};
        struct gguf *g;
        int n[OUTCOMES] = {0};
        struct canonical *whole = opened(base[f], &e);
        if (!whole || gguf_open(base[f], &g, &e)) fail_msg("%s", e.msg);
        for (uint64_t i = 0; i < gguf_n_kv(g); i++) {
            const struct gguf_str *k = &gguf_kv_at(g, i)->key;
            char key[96];
            snprintf(key, sizeof key, "%.*s", (int)k->n, k->p);
            n[without_key(f, key, canonical_digest(whole))]++;
        }
        print_message("%s: the same %d, derived %d, default %d, refused %d\n", f ? "qwen38" : "deepseek4", n[SAME],
                      n[DERIVED], n[DEFAULTED], n[REFUSED]);
        assert_true(n[DERIVED] >= 10 && n[DEFAULTED] >= 3 && n[REFUSED] >= 4);
        gguf_close(g);
        canonical_close(whole);
    }
}

/* Every tensor of a block is needed, or its absence makes no other model unnoticed. */
static void tensors_one_by_one(void **state)
{
    for (int f = 0; f < FAMILIES; f++) {
        struct err e = {0};
        struct gguf *g;
        int refused = 0, n = 0;
        if (gguf_open(base[f], &g, &e)) fail_msg("%s", e.msg);
        for (uint64_t i = 0; i < gguf_n_tensors(g); i += 3, n++) {
            const struct gguf_str *k = &gguf_tensor_at(g, i)->name;
            char name[96];
            const struct form_edit drop = {EDIT_NO_TENSORS, name};
            snprintf(name, sizeof name, "%.*s", (int)k->n, k->p);
            err_clear(&e);
            if (dialect_form_edit(base[f], edited, &drop, 1, &e)) fail_msg("%s", e.msg);
            struct canonical *c = opened(edited, &e);
            if (c && !canonical_tensor(c, "%s", "output.weight")) /* the embedding stands in */
                assert_string_equal(name, "output.weight");
            else if (c)
                fail_msg("without %s: it runs", name);
            else if (!strstr(e.msg, "missing") && !strstr(e.msg, "has no blk."))
                fail_msg("without %s: %s", name, e.msg);
            refused += !c;
            canonical_close(c);
        }
        assert_true(refused > n - 3);
        gguf_close(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_one_by_one), cmocka_unit_test(tensors_one_by_one)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
